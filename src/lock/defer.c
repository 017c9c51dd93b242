/*
 * The list of those who wait is the lock's (queue->deferred); broker runs a request again.
 */
#include "lock/defer.h"

#include <stddef.h>

#include "lock/broker_state.h"
#include "lock/claim.h"

static bool is_busy(const struct hold *h)
{
    return h && h->busy;
}

/* Said behind a LOCK of its connection before it was known that this one has to wait. Only such
 * requests are ever parked. */
static bool is_behind_a_waiter(const struct lock *l, const struct lock_request *r)
{
    const struct session *s = r->base.session;
    const struct request *earlier;
    if (!s || s->n_parked == 0)
        return false;
    TAILQ_FOREACH(earlier, &s->requests, link) {
        if (earlier == &r->base)
            return false;
        if (earlier->parked && ((const struct lock_request *)earlier)->lock == l)
            return true;
    }
    return false;
}

bool defer_needed(const struct lock *l, const struct lock_request *r)
{
    const struct lock_queue *q = l->queue;
    if (is_busy(lock_hold_of(l, r->owner)) || is_busy(lock_share_of(l, r->owner)))
        return true;
    if (!q)
        return false;
    if (is_behind_a_waiter(l, r))
        return true;
    /* The order of one connection is kept, not that of several: one that waits behind its own LOCK
     * must not keep another's UNLOCK for a hold that does not exist yet. */
    const struct lock_request *earlier;
    TAILQ_FOREACH(earlier, &q->deferred, queued) {
        if (earlier->number < r->number && earlier->base.session == r->base.session &&
            owner_same(earlier->owner, r->owner))
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

static void on_undefer(struct broker *b, struct due *due, int64_t now_ms)
{
    const struct lock_queue *q =
        (struct lock_queue *)((char *)due - offsetof(struct lock_queue, undefer));
    const struct lock_request *first = TAILQ_FIRST(&q->deferred);
    if (first)
        defer_run(b, first->lock, now_ms);
}

void defer_run_soon(struct broker *b, struct lock *l)
{
    struct lock_queue *q = l->queue;
    if (!q || TAILQ_EMPTY(&q->deferred))
        return;
    q->undefer.fn = on_undefer;
    broker_due_at(b, &q->undefer, b->now_ms);
}

void defer_end(struct broker *b, struct lock *l)
{
    struct lock_request *r;
    while (l->queue && (r = TAILQ_FIRST(&l->queue->deferred))) {
        TAILQ_REMOVE(&l->queue->deferred, r, queued);
        r->deferred = false;
        broker_finish(b, r, RESULT_NOT_GRANTED);
    }
}
