/*
 * A request about several names, from its beginning to its end: the locks and holds that it refers
 * to, the first error, and the wait for an earlier request of the same owner.
 *
 * It neither asks nor releases: that is multilock_try.c and multilock_one.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/defer.h"
#include "lock/finish.h"
#include "lock/hold.h"
#include "lock/multilock_private.h"
#include "lock/queue.h"
#include "stats/stats.h"

void multilock_begin(struct broker *b, struct lock_request *r, const struct resp_arg *names, int n)
{
    struct multilock *m = util_alloc(sizeof *m + (size_t)n * sizeof m->items[0]);
    m->broker = b;
    m->request = r;
    m->n = n;
    for (int i = 0; i < n; i++) {
        m->items[i].multilock = m;
        m->items[i].lock = locktab_get(&b->locks, names[i].ptr, names[i].len);
        work_ref(m->items[i].lock);
    }
    r->multilock = m;
    m->session = r->base.session;
    if (m->session)
        TAILQ_INSERT_TAIL(&m->session->multilocks, m, of_session);
}

void multilock_leave_session(struct multilock *m)
{
    if (m->session)
        TAILQ_REMOVE(&m->session->multilocks, m, of_session);
    m->session = NULL;
}

void multilock_over(struct broker *b, struct lock_request *r)
{
    struct multilock *m = r->multilock;
    multilock_leave_session(m);
    for (int i = 0; i < m->n; i++)
        queue_undefer(&b->work, m->items[i].lock);
}

static bool names(const struct multilock *m, const struct lock *l)
{
    for (int i = 0; i < m->n; i++) {
        if (m->items[i].lock == l)
            return true;
    }
    return false;
}

bool multilock_is_before(const struct lock *l, const struct lock_request *r)
{
    const struct multilock *m;
    if (!r->base.session)
        return false;
    TAILQ_FOREACH(m, &r->base.session->multilocks, of_session) {
        if (m->request->number >= r->number)
            return false;
        if (owner_same(m->request->owner, r->owner) && names(m, l))
            return true;
    }
    return false;
}

void multilock_free(struct multilock *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n; i++) {
        hold_ref_clear(&m->items[i].hold);
        work_unref(&m->broker->work, m->items[i].lock);
    }
    free(m->error);
    free(m);
}

int multilock_count(const struct multilock *m)
{
    return m->n;
}

const struct hold_ref *multilock_hold(const struct multilock *m, int i)
{
    return &m->items[i].hold;
}

int64_t multilock_token(const struct multilock *m, int i)
{
    return m->items[i].token;
}

void multilock_set_hold(struct multilock_name *item, struct hold *h)
{
    item->granted = true;
    item->token = h->token;
    hold_ref_set(&item->hold, h);
    h->busy = true; /* until it is decided for all: end_busy() in multilock_try.c */
}

void multilock_set_lock(struct broker *b, struct lock_request *r, struct lock *l)
{
    work_ref(l);
    work_unref(&b->work, r->lock);
    r->lock = l;
}

void multilock_keep_error(struct multilock *m, const char *text)
{
    if (!m->error)
        m->error = util_strdup(text);
}

void multilock_finish_error(struct multilock *m)
{
    stats.acquires_no_quorum += strncmp(m->error, "NOQUORUM", 8) == 0;
    finish_error(m->broker, m->request, "%s", m->error);
}

bool multilock_is_deferred(struct multilock *m)
{
    for (int i = 0; i < m->n; i++) {
        const struct lock *l = m->items[i].lock;
        if (defer_needed(l, m->request) || multilock_is_before(l, m->request)) {
            multilock_set_lock(m->broker, m->request, m->items[i].lock);
            defer_request(m->items[i].lock, m->request);
            return true;
        }
    }
    return false;
}
