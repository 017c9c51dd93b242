/*
 * The list of those who wait is the lock's (queue->deferred); broker runs a request again.
 */
#include "defer.h"

#include "broker_state.h"
#include "claim.h"

static bool is_busy(const struct hold *h)
{
    return h && h->busy;
}

bool defer_needed(const struct lock *l, const struct lock_request *r)
{
    const struct lock_queue *q = l->queue;
    if (is_busy(lock_hold_of(l, r->owner)) || is_busy(lock_share_of(l, r->owner)))
        return true;
    if (!q)
        return false;
    /* said behind a LOCK of its connection before it was known that this one has to wait */
    const struct lock_request *first = TAILQ_FIRST(&q->waiters);
    if (first && first != r && first->base.session && first->base.session == r->base.session)
        return true;
    /* The order of one connection is kept, not that of several: one that waits behind its own LOCK
     * must not keep another's UNLOCK for a hold that does not exist yet. */
    const struct lock_request *earlier;
    TAILQ_FOREACH(earlier, &q->deferred, queued) {
        if (earlier->base.session == r->base.session && owner_same(earlier->owner, r->owner))
            return true;
    }
    const struct claim *c;
    LIST_FOREACH(c, &q->claims, of_lock) {
        if (c->request && c->request != r && owner_same(c->owner, r->owner))
            return true;
    }
    return false;
}

void defer_request(struct lock *l, struct lock_request *r)
{
    TAILQ_INSERT_TAIL(&lock_queue_get(l)->deferred, r, queued);
    r->deferred = true;
}

void defer_run(struct broker *b, struct lock *l, int64_t now_ms)
{
    TAILQ_HEAD(, lock_request) again = TAILQ_HEAD_INITIALIZER(again);
    struct lock_request *r;
    if (!l->queue)
        return;
    broker_use(l);
    TAILQ_CONCAT(&again, &l->queue->deferred, queued);
    while ((r = TAILQ_FIRST(&again))) {
        TAILQ_REMOVE(&again, r, queued);
        r->deferred = false;
        b->resubmit(b, r, now_ms);
    }
    broker_put(b, l);
}
