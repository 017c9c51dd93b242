/*
 * The requests of a session that have a tag (ASYNC). One of them is not in the list of requests:
 * nothing stands behind it. It is here, by its tag, until its end has been told.
 *
 *   session_ask_async --> open --request_finish--> told --session_tell--> gone
 *                           \---session_cancel----/
 *
 * Owns the table of tags and an entry for each; the request belongs to the session until its end
 * has been told, and to nobody here once it is cancelled or abandoned.
 *
 * Invariants: an entry is told when `after` requests have left the list, which is when its QUEUED
 * has; n_async_waits counts the parked ones that have not been taken away.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "session/session_private.h"

/* Tags come from strangers: keyed hash. */
#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)util_hash((key), (len)))
#define uthash_fatal(text) util_die("session: %s", (text))
#include <uthash.h>

struct async {
    UT_hash_handle hh; /* session->asyncs: in the order in which they came */
    TAILQ_ENTRY(async) link;
    const struct request_type *type;
    struct request *request; /* NULL: cancelled */
    uint64_t after;          /* see above; UINT64_MAX: QUEUED has not been written */
    size_t len;
    char tag[SESSION_TAG_MAX];
};

static struct async *find(const struct session *s, const char *tag, size_t len)
{
    struct async *a;

    HASH_FIND(hh, s->asyncs, tag, len, a);
    return a;
}

void session_ask_async(struct session *s, struct request *r, const char *tag, size_t len)
{
    struct async *a = util_alloc(sizeof *a);

    assert(!r->done && !r->parked && len <= SESSION_TAG_MAX && !find(s, tag, len));
    a->type = r->type;
    a->request = r;
    a->after = UINT64_MAX;
    a->len = len;
    memcpy(a->tag, tag, len);
    HASH_ADD(hh, s->asyncs, tag, len, a);
    s->n_async++;
    r->session = s;
    r->async = a;
}

void session_queued(struct session *s, const struct request *r)
{
    bool held = !TAILQ_EMPTY(&s->requests); /* as the reply behind them is */

    r->async->after = s->n_left + s->n_requests + held;
    session_announce(s);
}

bool session_has_tag(const struct session *s, const char *tag, size_t len)
{
    return find(s, tag, len) != NULL;
}

const char *session_tag(const struct async *a, size_t *len)
{
    *len = a->len;
    return a->tag;
}

void session_told(struct request *r)
{
    TAILQ_INSERT_TAIL(&r->session->told, r->async, link);
    session_announce(r->session);
}

/* Takes the request from its entry: it belongs to who runs it. */
static struct request *take_away(struct session *s, struct async *a)
{
    struct request *r = a->request;

    if (r->parked)
        s->n_async_waits--;
    r->parked = false;
    r->async = NULL;
    r->session = NULL;
    a->request = NULL;
    return r;
}

static void free_tag(struct session *s, struct async *a)
{
    HASH_DEL(s->asyncs, a);
    s->n_async--;
    free(a);
}

struct request *session_cancel(struct session *s, const char *tag, size_t len)
{
    struct async *a = find(s, tag, len);

    if (!a || !a->request || a->request->done)
        return NULL;
    if (s->events->on_written)
        s->events->on_written(a->request);
    TAILQ_INSERT_TAIL(&s->told, a, link);
    session_announce(s);
    return take_away(s, a);
}

void session_cancel_all(struct session *s, int64_t now_ms)
{
    struct async *a, *next;

    TAILQ_INIT(&s->told);
    HASH_ITER(hh, s->asyncs, a, next)
    {
        struct request *r = a->request ? take_away(s, a) : NULL;
        free_tag(s, a);
        if (r && r->done)
            r->type->free(r);
        else if (r)
            r->type->abandon(r, now_ms);
    }
}

static void tell(struct session *s, struct async *a, int64_t now_ms)
{
    struct request *r = a->request;
    struct resp_writer w = session_write_begin(s);

    a->type->push(s, a, r, &w, now_ms);
    session_write_end(s);
    if (r && s->events->on_written)
        s->events->on_written(r);
    if (r)
        r->type->free(r);
    free_tag(s, a);
}

/* Those that have to wait for their QUEUED are no more than the replies before it. */
void session_tell(struct session *s, int64_t now_ms)
{
    struct async *a, *next;

    for (a = TAILQ_FIRST(&s->told); a; a = next) {
        next = TAILQ_NEXT(a, link);
        if (s->n_left < a->after)
            continue;
        TAILQ_REMOVE(&s->told, a, link);
        tell(s, a, now_ms);
    }
}

/* ---- those that wait ---- */

static const struct request *first_parked(const struct async *a)
{
    while (a && !(a->request && a->request->parked))
        a = a->hh.next;
    return a ? a->request : NULL;
}

const struct request *session_waiting(const struct session *s, const struct request *last)
{
    const struct request *r;

    if (last && last->async)
        return first_parked(last->async->hh.next);
    if (!last && session_is_blocked(s))
        TAILQ_FOREACH(r, &s->requests, link)
            if (r->parked)
                return r;
    return s->n_async_waits > 0 ? first_parked(s->asyncs) : NULL;
}
