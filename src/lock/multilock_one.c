/*
 * Requests for one of the names: what is done for one name alone (entering again, giving back) goes
 * through a request of its own, without a session, on the road of every other one. MUNLOCK is made
 * of nothing else.
 *
 * Such a request belongs to nobody but its own end, where it frees itself; the item for which it
 * ran hears of it there. `pending` keeps that item alive until then.
 */
#include "base/pool.h"
#include "lock/broker_state.h"
#include "lock/hold.h"
#include "lock/multilock_private.h"

static void on_one_over(struct request *);

static const struct request_type one_type = {NULL, NULL, on_one_over};

static struct lock_request *new_one(struct broker *b, struct lock *l, struct owner *owner,
                                    enum lock_verb verb)
{
    struct lock_request *r = pool_get(sizeof *r);
    r->base.type = &one_type;
    r->broker = b;
    r->number = ++b->last_request;
    r->owner = owner_ref(owner);
    r->verb = (uint8_t)verb;
    r->lock = l;
    broker_use(l);
    return r;
}

void multilock_run_one(struct multilock_name *item, enum lock_verb verb, int64_t now_ms)
{
    struct multilock *m = item->multilock;
    const struct lock_request *like = m->request;
    struct lock_request *r = new_one(m->broker, item->lock, like->owner, verb);
    r->base.arrived_us = like->base.arrived_us;
    r->want = like->want;
    r->lease_ms = like->lease_ms;
    r->maxhold_ms = like->maxhold_ms;
    r->tell = like->tell;
    r->id = m->id ? owner_ref(m->id) : NULL;
    r->by_session = m->by_session;
    r->item = item;
    m->pending++;
    m->broker->resubmit(m->broker, r, now_ms);
}

static void unlocks_over(struct multilock *m)
{
    if (m->error)
        multilock_finish_error(m);
    else
        broker_finish_count(m->broker, m->request, m->request->count);
}

static void one_over(struct multilock_name *item, struct lock_request *r, int64_t now_ms)
{
    struct multilock *m = item->multilock;
    m->pending--;
    if (m->request->verb == VERB_MUNLOCK) {
        m->request->count += r->result == RESULT_COUNT && r->count == 1;
        if (r->result == RESULT_ERROR)
            multilock_keep_error(m, r->text);
        if (m->pending == 0)
            unlocks_over(m);
        return;
    }
    item->hold = r->told;
    r->told = NULL; /* its pin is ours now */
    item->repeated = r->repeated;
    if (r->repeated)
        hold_rejoin(m->broker, item->hold, m->request);
    item->end = item->hold ? CLAIM_GRANTED : CLAIM_BUSY;
    if (item->hold)
        item->hold->busy = true; /* as multilock_try.c's settle() says */
    if (r->result == RESULT_ERROR)
        multilock_keep_error(m, r->text);
    if (m->pending == 0)
        multilock_claims_over(m, now_ms);
}

static void on_one_over(struct request *base)
{
    struct lock_request *r = (struct lock_request *)base;
    struct broker *b = r->broker;
    if (r->item)
        one_over(r->item, r, b->now_ms);
    if (r->told)
        hold_unpin(r->told);
    lock_request_free(r);
}

void multilock_give_back(struct multilock *m, int64_t now_ms)
{
    for (int i = 0; i < m->n; i++) {
        struct multilock_name *item = &m->items[i];
        if (!item->hold)
            continue;
        struct hold *h = item->hold;
        item->hold = NULL;
        if (hold_is_valid(h, now_ms) && !item->repeated) {
            hold_drop_id(h, m->id);
            struct lock_request *r = new_one(m->broker, item->lock, h->owner, VERB_UNLOCK);
            r->base.arrived_us = now_ms * 1000;
            r->by_session = m->by_session;
            m->broker->resubmit(m->broker, r, now_ms);
        }
        hold_unpin(h);
    }
}

void multilock_unlock(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct multilock *m = r->multilock;
    (void)b;
    if (multilock_is_deferred(m))
        return;
    m->pending++;
    for (int i = 0; i < m->n; i++)
        multilock_run_one(&m->items[i], VERB_UNLOCK, now_ms);
    if (--m->pending == 0)
        unlocks_over(m);
}
