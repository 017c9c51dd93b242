/*
 * The list of those who wait is the lock's (queue->deferred). They go again in their order: by the
 * work list, where nothing of the same lock gets between them.
 */
#include "lock/defer.h"

#include <assert.h>

#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/finish.h"
#include "lock/queue.h"

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
    assert(r->place == PLACE_NOWHERE);
    TAILQ_INSERT_TAIL(&queue_get(l)->deferred, r, queued);
    r->place = PLACE_DEFERRED;
}

void defer_remove(struct lock *l, struct lock_request *r)
{
    TAILQ_REMOVE(&l->queue->deferred, r, queued);
    r->place = PLACE_NOWHERE;
}

static struct lock_request *first_deferred(const struct lock *l)
{
    return l->queue ? TAILQ_FIRST(&l->queue->deferred) : NULL;
}

void defer_ready(struct broker *b, struct lock *l)
{
    struct lock_request *r;
    while ((r = first_deferred(l))) {
        defer_remove(l, r);
        work_ready(&b->work, r);
    }
}

void defer_end(struct broker *b, struct lock *l)
{
    struct lock_request *r;
    while ((r = first_deferred(l))) {
        defer_remove(l, r);
        finish_as(b, r, RESULT_NOT_GRANTED);
    }
}
