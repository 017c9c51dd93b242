/* A client without its socket: the queue of its requests, and their replies in order.
 *
 * Owns the requests from session_ask() to session_flush(), and the bytes of immediate replies that
 * have to wait for requests before them (struct held; of the pool, as pipelines make many).
 * Does not know sockets, commands or locks; what a request is about is its type's business.
 *
 * Invariants: a finished request at the head means `ready`, so that nobody forgets to flush, and so
 * does one with a tag whose end may be told; n_parked counts the parked ones in the list; a request
 * of the list is parked or done but never both; while the list is empty the session has no memory
 * of its own but its names. */
#include "session/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/util.h"
#include "session/login.h"
#include "session/session_private.h"
#include "session/user.h"
#include "stats/libraries.h"

enum {
    HELD_SMALL = 64,    /* bytes kept without a block of their own: nearly every immediate reply */
    HELD_BUF_MAX = 1024 /* bytes of session->held that are worth keeping */
};

/* An immediate reply behind requests that are not finished. */
struct held {
    struct request request; /* first */
    size_t len;
    char *big; /* NULL: in small */
    char small[HELD_SMALL];
};

static void held_write(struct request *r, struct resp_writer *w, int64_t now_ms)
{
    struct held *h = (struct held *)r;

    (void)now_ms;
    r->session->held_len -= h->len;
    buf_append(w->out, h->big ? h->big : h->small, h->len);
}

static void held_free(struct request *r)
{
    struct held *h = (struct held *)r;

    free(h->big);
    pool_put(h, sizeof *h);
}

/* Nothing to abandon: it is done from the start. */
static const struct request_type held_type = {.write = held_write, .free = held_free};

static struct held *held_new(const char *bytes, size_t len)
{
    struct held *h = pool_get(sizeof *h);

    h->request.type = &held_type;
    h->request.done = true;
    h->len = len;
    if (len > sizeof h->small)
        h->big = util_memdup(bytes, len);
    else
        memcpy(h->small, bytes, len);
    return h;
}

void session_set_user(struct session *s, struct user *user)
{
    struct user *old = s->user;

    s->user = user ? user_ref(user) : NULL;
    user_unref(old);
}

void session_init(struct session *s, uint64_t id, const struct session_events *events,
                  struct buf *out, int64_t now_ms)
{
    *s = (struct session){
        .id = id,
        .events = events,
        .out = out,
        .proto = 2,
        .created_ms = now_ms,
        .last_ms = now_ms,
    };
    library_move(-1, s->library);
    TAILQ_INIT(&s->requests);
    TAILQ_INIT(&s->told);
    TAILQ_INIT(&s->multilocks);
    LIST_INIT(&s->holds);
    LIST_INIT(&s->entered);
    TAILQ_INIT(&s->subscriptions);
}

static void unlink_request(struct session *s, struct request *r)
{
    TAILQ_REMOVE(&s->requests, r, link);
    s->n_requests--;
    s->n_left++;
}

void session_fini(struct session *s, int64_t now_ms)
{
    struct request *r;

    assert(LIST_EMPTY(&s->holds) && LIST_EMPTY(&s->entered) && !s->owner &&
           TAILQ_EMPTY(&s->subscriptions));
    s->ended = s->ready = true; /* nobody flushes it any more */
    session_cancel_all(s, now_ms);
    while ((r = TAILQ_FIRST(&s->requests)) != NULL) {
        unlink_request(s, r);
        if (r->parked)
            s->n_parked--;
        r->parked = false;
        r->session = NULL;
        if (r->done)
            r->type->free(r);
        else
            r->type->abandon(r, now_ms);
    }
    assert(s->n_requests == 0 && s->n_parked == 0);
    login_drop(s->login);
    s->login = NULL;
    session_set_user(s, NULL);
    user_unref(s->own_user);
    s->own_user = NULL;
    free(s->name);
    library_move(s->library, -1);
    free(s->lib_name);
    free(s->lib_ver);
    buf_fini(&s->held);
}

void session_announce(struct session *s)
{
    if (s->ready)
        return;
    s->ready = true;
    s->events->on_ready(s);
}

static void append_request(struct session *s, struct request *r)
{
    r->session = s;
    TAILQ_INSERT_TAIL(&s->requests, r, link);
    s->n_requests++;
}

struct resp_writer session_reply(struct session *s)
{
    struct buf *out = TAILQ_EMPTY(&s->requests) ? s->out : &s->held;

    return (struct resp_writer){.out = out, .proto = s->proto};
}

void session_reply_end(struct session *s)
{
    size_t len = buf_len(&s->held);

    if (len == 0) { /* it is in `out` */
        session_announce(s);
        return;
    }
    append_request(s, &held_new(buf_head(&s->held), len)->request);
    s->held_len += len;
    buf_consume(&s->held, len);
    if (s->held.cap > HELD_BUF_MAX)
        buf_trim(&s->held);
}

void session_ask(struct session *s, struct request *r)
{
    assert(!r->done && !r->parked);
    append_request(s, r);
}

void request_park(struct request *r)
{
    assert(!r->done);
    if (r->parked)
        return;
    r->parked = r->waited = true;
    struct session *s = r->session;
    if (r->async)
        s->n_async_waits++;
    else if (s && s->n_parked++ == 0 && s->events->on_blocked)
        s->events->on_blocked(s);
}

void request_unpark(struct request *r)
{
    if (!r->parked)
        return;
    r->parked = false;
    struct session *s = r->session;
    if (r->async)
        s->n_async_waits--;
    else if (s && --s->n_parked == 0)
        s->events->on_unblocked(s);
}

void request_finish(struct request *r)
{
    struct session *s = r->session;

    assert(!r->done);
    request_unpark(r);
    r->done = true;
    if (!s)
        r->type->free(r);
    else if (r->async)
        session_told(r);
    else if (TAILQ_FIRST(&s->requests) == r)
        session_announce(s);
    else if (r->may_wait && !session_is_blocked(s))
        s->events->on_unblocked(s);
}

struct resp_writer session_write_begin(struct session *s)
{
    s->writing = true;
    return (struct resp_writer){.out = s->out, .proto = s->proto};
}

void session_write_end(struct session *s)
{
    s->writing = false;
    if (buf_len(&s->held) > 0) {
        buf_append(s->out, buf_head(&s->held), buf_len(&s->held));
        buf_consume(&s->held, buf_len(&s->held));
    }
}

static void write_reply(struct session *s, struct request *r, int64_t now_ms)
{
    struct resp_writer w = session_write_begin(s);

    r->type->write(r, &w, now_ms);
    session_write_end(s);
}

void session_flush(struct session *s, int64_t now_ms)
{
    struct request *r;

    if (s->writing)
        return;
    s->ready = false;
    if (!TAILQ_EMPTY(&s->told))
        session_tell(s, now_ms);
    while ((r = TAILQ_FIRST(&s->requests)) != NULL && r->done) {
        write_reply(s, r, now_ms);
        unlink_request(s, r);
        if (s->events->on_written && r->type != &held_type)
            s->events->on_written(r);
        r->type->free(r);
        if (!TAILQ_EMPTY(&s->told))
            session_tell(s, now_ms);
    }
    if (!r)
        buf_trim(&s->held);
}

struct resp_writer session_push(struct session *s, int64_t now_ms)
{
    session_flush(s, now_ms);
    return (struct resp_writer){.out = s->writing ? &s->held : s->out, .proto = s->proto};
}

void session_push_end(struct session *s)
{
    session_announce(s);
}
