/*
 * A take-over is a claim that finds what its owner has, wherever it stands, and puts it under a new
 * operation. One at a time for each lock, and none beside other claims.
 */
#include "lock/takeover.h"

#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/defer.h"
#include "lock/finish.h"
#include "lock/hold.h"
#include "lock/queue.h"
#include "lock/renew.h"
#include "stats/stats.h"

/* Ends the holds of this broker that the take-over replaces: the owner's own, and exclusive ones of
 * other owners, which are lost. MAXHOLD and count go on to the claim: this broker knows the count
 * better than the masters. TELL does not: the new connection may not want pushes. Returns the IDs
 * that the owner's hold counts. */
static struct hold_ids *end_old(struct broker *b, struct lock *l, struct claim *c,
                                const struct session *taker, int64_t now_ms)
{
    struct hold_ids *ids;
    struct hold *h;
    while (c->part.kind == LOCK_EXCLUSIVE && (h = lock_exclusive(l)) &&
           !owner_same(h->owner, c->owner))
        hold_moved(b, h, LOST_GONE, now_ms);
    h = c->part.kind == LOCK_EXCLUSIVE ? lock_exclusive(l) : lock_share_of(l, c->owner);
    if (!h)
        return NULL;
    if (h->end_ms < c->end_ms)
        c->end_ms = h->end_ms;
    c->count = h->count;
    ids = h->ids;
    h->ids = NULL;
    hold_drop_guest(h, taker);
    hold_moved(b, h, LOST_MOVED, now_ms);
    return ids;
}

/* The masters know of no hold of this owner: answers the deferred requests of the owner that came
 * before the masters were asked, too. Later ones ask again: by then the owner may have got the lock
 * through another broker. */
static void answer_alike(struct broker *b, struct lock *l, const struct claim *c)
{
    struct lock_request *r, *next;
    for (r = TAILQ_FIRST(&l->queue->deferred); r; r = next) {
        next = TAILQ_NEXT(r, queued);
        if (!owner_same(r->owner, c->owner))
            continue;
        if ((r->verb != VERB_UNLOCK && r->verb != VERB_RENEW) ||
            r->base.arrived_us >= c->sent_ms * 1000)
            break;
        defer_remove(l, r);
        finish_as(b, r, RESULT_NOT_HELD);
    }
}

static void on_taken_over(struct claim *c, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct broker *b = c->broker;
    struct lock *l = c->lock;
    r->claim = NULL;
    if (r->hold.hold) {
        r->hold.hold->busy = false;
        r->hold.hold->torn |= c->end != CLAIM_GRANTED;
    }
    hold_ref_clear(&r->hold);
    if (c->end == CLAIM_GRANTED) {
        struct hold_ids *ids = end_old(b, l, c, r->base.session, now_ms);
        hold_start(b, l, c, r, now_ms)->ids = ids;
        r->goes_on = true;
        work_ready(&b->work, r); /* UNLOCK: what it came for; RENEW: the lease begins now */
    } else if (c->end == CLAIM_FAILED) {
        stats.acquires_no_quorum++;
        if (r->missed) /* its hold here has ended */
            finish_error(b, r,
                         "%s; '%s' is given up here, and held only if its owner has taken it to "
                         "another broker",
                         c->reason, l->name);
        else
            finish_error(b, r, "%s; if '%s' was held it still is", c->reason, l->name);
    } else {
        finish_as(b, r, RESULT_NOT_HELD);
        if (!c->has_hold)
            answer_alike(b, l, c);
    }
    if (l->queue)
        l->queue->takeover_waits = false;
    /* those who wait for the lock come before what is deferred: otherwise many who ask for what
     * they do not have would keep everybody from it */
    work_lock(&b->work, l, WORK_RUN | WORK_UNDEFER);
}

void takeover_begin(struct broker *b, struct lock *l, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = lock_hold_of(l, r->owner), *alone = lock_exclusive(l);
    int64_t lease_ms = r->lease_ms ? r->lease_ms : b->conf.lease_ms;
    struct lock_queue *q;
    if (h && hold_is_valid(h, now_ms))
        lease_ms = renew_lease_ms(now_ms, lease_ms, h->end_ms);
    if (!h && alone && hold_is_valid(alone, now_ms) && hold_is_fresh(b, alone, r, now_ms)) {
        finish_as(b, r, RESULT_NOT_HELD); /* from memory: somebody else holds it here */
        return;
    }
    q = queue_get(l);
    q->takeover_waits = q->n_claims > 0;
    if (q->takeover_waits) { /* one at a time: their end runs what is deferred */
        defer_request(l, r);
        return;
    }
    /* What has been given back here is released before it can be found. */
    (void)rounds_resend(&b->rounds, l->name, l->name_len, now_ms);
    if (h)
        hold_set_busy(h, r);
    struct claim *c = claim_new(b, l, r->owner, lease_ms, on_taken_over, r);
    c->takeover = c->any = true;
    c->has_hold = h != NULL;
    c->request = r;
    r->claim = c;
    claim_start(c, now_ms);
}
