/*
 * A request about several names, from its beginning to its end: the locks that it uses, the holds
 * that it has pinned, the first error, and the wait for an earlier request of the same owner.
 *
 * It neither asks nor releases: that is many_try.c and many_one.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/defer.h"
#include "lock/keep.h"
#include "lock/many_private.h"
#include "stats/stats.h"

void many_begin(struct broker *b, struct lock_request *r, const struct resp_arg *names, int n)
{
    struct many *m = util_alloc(sizeof *m + (size_t)n * sizeof m->items[0]);
    m->broker = b;
    m->request = r;
    m->by_session = r->by_session;
    m->id = r->id ? owner_ref(r->id) : NULL;
    m->n = n;
    for (int i = 0; i < n; i++) {
        m->items[i].many = m;
        m->items[i].lock = locktab_get(&b->locks, names[i].ptr, names[i].len);
        broker_use(m->items[i].lock);
    }
    r->many = m;
    m->session = r->base.session;
    if (m->session)
        TAILQ_INSERT_TAIL(&m->session->manys, m, of_session);
}

void many_leave_session(struct many *m)
{
    if (m->session)
        TAILQ_REMOVE(&m->session->manys, m, of_session);
    m->session = NULL;
}

void many_over(struct broker *b, struct lock_request *r)
{
    struct many *m = r->many;
    many_leave_session(m);
    for (int i = 0; i < m->n; i++)
        defer_run_soon(b, m->items[i].lock);
}

static bool names(const struct many *m, const struct lock *l)
{
    for (int i = 0; i < m->n; i++) {
        if (m->items[i].lock == l)
            return true;
    }
    return false;
}

bool many_is_before(const struct lock *l, const struct lock_request *r)
{
    const struct many *m;
    if (!r->base.session)
        return false;
    TAILQ_FOREACH(m, &r->base.session->manys, of_session) {
        if (m->request->number >= r->number)
            return false;
        if (owner_same(m->request->owner, r->owner) && names(m, l))
            return true;
    }
    return false;
}

void many_free(struct many *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n; i++) {
        if (m->items[i].hold)
            keep_unpin(m->items[i].hold);
        broker_put(m->broker, m->items[i].lock);
    }
    owner_unref(m->id);
    free(m->error);
    free(m);
}

int many_count(const struct many *m)
{
    return m->n;
}

struct hold *many_hold(const struct many *m, int i)
{
    return m->items[i].hold;
}

void many_untold(struct many *m)
{
    m->request = NULL;
    m->next = m->broker->untold;
    m->broker->untold = m;
}

void many_settle(struct broker *b, int64_t now_ms)
{
    struct many *m;
    while ((m = b->untold)) {
        b->untold = m->next;
        many_give_back(m, now_ms);
        many_free(m);
    }
}

void many_set_lock(struct broker *b, struct lock_request *r, struct lock *l)
{
    broker_use(l);
    if (r->lock)
        broker_put(b, r->lock);
    r->lock = l;
}

void many_keep_error(struct many *m, const char *text)
{
    if (!m->error)
        m->error = util_strdup(text);
}

void many_finish_error(struct many *m)
{
    stats.acquires_no_quorum += strncmp(m->error, "NOQUORUM", 8) == 0;
    broker_finish_error(m->broker, m->request, "%s", m->error);
}

bool many_is_deferred(struct many *m)
{
    for (int i = 0; i < m->n; i++) {
        const struct lock *l = m->items[i].lock;
        if (defer_needed(l, m->request) || many_is_before(l, m->request)) {
            many_set_lock(m->broker, m->request, m->items[i].lock);
            defer_request(m->items[i].lock, m->request);
            return true;
        }
    }
    return false;
}
