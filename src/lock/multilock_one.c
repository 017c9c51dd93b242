/*
 * Requests for one of the names: what is done for one name alone (entering again, giving back) goes
 * through a request of its own, without a session, on the road of every other one. MUNLOCK is made
 * of nothing else.
 *
 * Such a request has no type: nobody gets a reply to it, and broker frees it when it is finished.
 * The item for which it ran hears of it before; `pending` keeps that item alive until then.
 */
#include "base/pool.h"
#include "lock/broker_state.h"
#include "lock/finish.h"
#include "lock/hold.h"
#include "lock/multilock_private.h"

static struct lock_request *new_one(const struct multilock_name *item, struct owner *owner,
                                    enum lock_verb verb)
{
    const struct multilock *m = item->multilock;
    struct lock_request *r = pool_get(sizeof *r);
    r->broker = m->broker;
    r->number = ++m->broker->last_request;
    r->owner = owner_ref(owner);
    r->verb = (uint8_t)verb;
    r->by_session = m->request->by_session;
    r->lock = item->lock;
    work_ref(r->lock);
    return r;
}

void multilock_run_one(struct multilock_name *item, enum lock_verb verb)
{
    struct multilock *m = item->multilock;
    const struct lock_request *like = m->request;
    struct lock_request *r = new_one(item, like->owner, verb);
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

static void unlocks_over(struct multilock *m)
{
    if (m->error)
        multilock_finish_error(m);
    else
        finish_count(m->broker, m->request, m->request->count);
}

static void unlock_over(struct multilock *m, const struct lock_request *r)
{
    m->request->count += r->result == RESULT_COUNT && r->count == 1;
    if (m->pending == 0)
        unlocks_over(m);
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
        multilock_keep_error(m, r->text);
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
        hold_ref_clear(&item->hold);
        item->granted = false;
        if (!h || !hold_is_valid(h, now_ms) || item->repeated)
            continue;
        hold_drop_id(h, m->request->id);
        struct lock_request *r = new_one(item, h->owner, VERB_UNLOCK);
        r->base.arrived_us = now_ms * 1000;
        work_ready(&m->broker->work, r);
    }
}

void multilock_unlock(struct multilock *m)
{
    if (multilock_is_deferred(m))
        return;
    for (int i = 0; i < m->n; i++)
        multilock_run_one(&m->items[i], VERB_UNLOCK);
}
