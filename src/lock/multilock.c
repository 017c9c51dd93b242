/*
 * A request about several names, from its beginning to its end: the locks and holds that it refers
 * to, the first error, the wait for an earlier request of the same owner, and the requests for one
 * of the names. multilock_try.c asks for all of them.
 *
 * What is done for one name alone (entering again, giving back) goes through a request of its own,
 * without a session, on the road of every other one. MUNLOCK is made of nothing else. Such a
 * request has no type: nobody gets a reply to it, and broker_work.c frees it when it is finished.
 * The item for which it ran hears of it before; `pending` keeps that item alive until then.
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

void multilock_undefer(struct multilock *m)
{
    for (int i = 0; i < m->n; i++)
        queue_undefer(&m->broker->work, m->items[i].lock);
}

void multilock_over(struct lock_request *r)
{
    multilock_leave_session(r->multilock);
    multilock_undefer(r->multilock);
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
    free(m->failure);
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

void multilock_keep_error(struct multilock *m, char *text)
{
    if (m->error)
        free(text);
    else
        m->error = text;
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

/* ---- requests for one of the names ---- */

void multilock_run_one(struct multilock_name *item, enum lock_verb verb)
{
    struct multilock *m = item->multilock;
    const struct lock_request *like = m->request;
    struct lock_request *r = broker_new_request(m->broker, item->lock, like, verb);
    r->base.arrived_us = like->base.arrived_us;
    r->want = like->want;
    r->lease_ms = like->lease_ms;
    r->maxhold_ms = like->maxhold_ms;
    r->tell = like->tell;
    r->id = like->id ? owner_ref(like->id) : NULL;
    r->item = item;
    m->pending++;
    work_ready(&m->broker->work, r);
}

static void unlock_over(struct multilock *m, const struct lock_request *r)
{
    m->request->count += r->result == RESULT_COUNT && r->count == 1;
    if (m->pending > 0)
        return;
    if (m->error)
        multilock_finish_error(m);
    else
        finish_count(m->broker, m->request, m->request->count);
}

static void entry_over(struct multilock_name *item, struct lock_request *r, int64_t now_ms)
{
    struct multilock *m = item->multilock;
    struct hold *h = r->hold.hold;
    item->repeated = r->repeated;
    item->end = h ? CLAIM_GRANTED : CLAIM_BUSY;
    if (h)
        multilock_set_hold(item, h);
    if (h && r->repeated)
        hold_rejoin(m->broker, h, m->request);
    if (m->pending == 0)
        multilock_claims_over(m, now_ms);
}

void multilock_one_over(struct lock_request *r, int64_t now_ms)
{
    struct multilock *m = r->item->multilock;
    m->pending--;
    if (r->result == RESULT_ERROR)
        multilock_keep_error(m, util_strdup(r->text));
    if (m->request->verb == VERB_MUNLOCK)
        unlock_over(m, r);
    else
        entry_over(r->item, r, now_ms);
}

void multilock_give_back(struct multilock *m, int64_t now_ms)
{
    for (int i = 0; i < m->n; i++) {
        struct multilock_name *item = &m->items[i];
        struct hold *h = item->hold.hold;
        item->granted = false;
        if (h && !item->repeated)
            hold_give_back(m->broker, h, m->request, now_ms);
        hold_ref_clear(&item->hold);
    }
}

void multilock_unlock(struct multilock *m)
{
    if (multilock_is_deferred(m))
        return;
    for (int i = 0; i < m->n; i++)
        multilock_run_one(&m->items[i], VERB_UNLOCK);
}
