/*
 * Each of these is one write to the masters, and the count of the hold is what the last write that
 * a majority confirmed says: a failed one is taken back, here and by a second write.
 */
#include "lock/enter.h"

#include <assert.h>
#include <stdlib.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/defer.h"
#include "lock/hold.h"
#include "lock/queue.h"
#include "lock/renew.h"
#include "stats/stats.h"

static void begin(struct hold *h, struct lock_request *r)
{
    assert(!h->busy);
    h->busy = true;
    hold_pin(h);
    r->hold = h;
}

static void over(struct broker *b, struct hold *h, struct lock_request *r, int64_t now_ms)
{
    struct lock *l = h->lock;
    h->busy = false;
    r->hold = NULL;
    hold_unpin(h);
    defer_run(b, l, now_ms);
}

static void set_count(struct hold *h, uint32_t count)
{
    h->count = count;
    h->seq++;
    h->recounted = true;
}

/* By how much the request changes the count. */
static int step_of(const struct lock_request *r)
{
    return r->verb == VERB_LOCK ? 1 : r->verb == VERB_UNLOCK ? -1 : 0;
}

/* `why`: of NOQUORUM. `as_before`: a majority has the count of before. */
static void no_quorum(struct broker *b, struct lock_request *r, const struct hold *h,
                      const char *why, bool as_before, int64_t now_ms)
{
    const char *name = r->lock->name;
    if (r->verb == VERB_RENEW) /* it may have got through to some */
        broker_finish_error(b, r,
                            "NOQUORUM %s; '%s' is held for %lld ms more, and is not known to be "
                            "renewed",
                            why, name, (long long)(h->deadline_ms - now_ms));
    else if (as_before)
        broker_finish_error(b, r, "NOQUORUM %s; '%s' is still entered as often as before", why,
                            name);
    else
        broker_finish_error(b, r,
                            "NOQUORUM %s; '%s' is still held, HOLDS tells how often it is entered",
                            why, name);
}

/* A majority of masters has not got this hold. */
static void gone(struct broker *b, struct hold *h, struct lock_request *r,
                 const struct round *round, int64_t now_ms)
{
    enum lost_reason why = hold_why_gone(round);
    struct lock *l = h->lock;
    if (h->state == HOLD_HELD || h->state == HOLD_JEOPARDY)
        hold_lose(b, h, why, true, now_ms);
    bool asks_anew = r->verb == VERB_LOCK && !r->goes_on && !r->item;
    if (asks_anew && r->base.session) /* of a connection that has gone nothing would end its wait */
        b->resubmit(b, r, now_ms);    /* it is asked for as by somebody who does not hold it */
    else if (r->verb != VERB_LOCK && why == LOST_MOVED && !r->goes_on)
        enter_take_over(b, l, r, now_ms); /* its owner had it elsewhere, and wants it here */
    else
        broker_finish(b, r, r->verb == VERB_LOCK ? RESULT_NOT_GRANTED : RESULT_NOT_HELD);
}

/* A majority has it now. */
static void written(struct broker *b, struct hold *h, struct lock_request *r, struct round *round,
                    int64_t now_ms)
{
    hold_seen(h, round);
    if (r->verb == VERB_UNLOCK)
        return;
    hold_confirmed(b, h, round, now_ms);
    hold_follow(h, round);
    if (r->item) /* of several names none is granted yet */
        return;
    hold_use_lease(b, h, r, now_ms);
    hold_add_id(h, r->id);
}

/* `why`: what the first round said when this one takes back what that one wrote; NULL: it is the
 * first. */
static void conclude(struct round *round, struct lock_request *r, const char *why, int64_t now_ms)
{
    struct broker *b = r->broker;
    struct hold *h = r->hold;
    struct lock *l = h->lock;
    bool won = quorum_state(&round->quorum) == QUORUM_WON;
    bool ended = !hold_is_valid(h, now_ms);
    broker_use(l);
    hold_pin(h);
    if (won && !ended && !why)
        written(b, h, r, round, now_ms);
    over(b, h, r, now_ms);
    if (ended)
        broker_finish(b, r, r->verb == VERB_LOCK ? RESULT_NOT_GRANTED : RESULT_NOT_HELD);
    else if (round_is_refused(round))
        gone(b, h, r, round, now_ms);
    else if (why)
        no_quorum(b, r, h, why, won, now_ms);
    else if (r->verb == VERB_UNLOCK)
        broker_finish_count(b, r, 0);
    else
        broker_finish_granted(b, r, h);
    hold_unpin(h);
    broker_put(b, l);
}

static void on_failed(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    char *why = r->text;
    r->text = NULL;
    if (quorum_state(&round->quorum) != QUORUM_WON && step_of(r) && hold_is_valid(r->hold, now_ms))
        hold_look_again(r->broker, r->hold, now_ms);
    conclude(round, r, why, now_ms);
    free(why);
}

static void on_written(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct hold *h = r->hold;
    struct buf why = {0};
    if (quorum_state(&round->quorum) == QUORUM_WON || round_is_refused(round) ||
        !hold_is_valid(h, now_ms)) {
        conclude(round, r, NULL, now_ms);
        return;
    }
    round_describe(round, &why, now_ms);
    r->text = util_memdup(buf_head(&why), buf_len(&why));
    buf_fini(&why);
    if (!step_of(r)) {
        on_failed(round, r, now_ms);
        return;
    }
    /* Some may have got it. Who asks the masters, or takes the hold over, goes by the latest
     * version of the count that a majority shows: so the old count goes there under a later one,
     * before the answer says that it counts. */
    set_count(h, h->count - (uint32_t)step_of(r));
    hold_write(r->broker, h, 0, on_failed, r, now_ms);
}

/* Asks the masters for the lease that the request names, else for that of the hold. */
static void write_lease(struct broker *b, struct hold *h, struct lock_request *r, int64_t now_ms)
{
    int64_t lease_ms = r->lease_ms ? r->lease_ms : h->lease_ms;
    lease_ms = renew_lease_ms(now_ms, lease_ms, h->end_ms);
    hold_write(b, h, lease_ms > 0 ? lease_ms : 0, on_written, r, now_ms);
}

void enter_again(struct broker *b, struct hold *h, struct lock_request *r, int64_t now_ms)
{
    stats.acquires_reentered++;
    begin(h, r);
    set_count(h, h->count + 1);
    write_lease(b, h, r, now_ms);
}

void enter_repeated(struct broker *b, struct hold *h, struct lock_request *r)
{
    stats.acquires_repeated++;
    r->repeated = true;
    hold_rejoin(b, h, r);
    broker_finish_granted(b, r, h);
}

void enter_leave(struct broker *b, struct hold *h, struct lock_request *r, int64_t now_ms)
{
    assert(h->count > 1);
    begin(h, r);
    set_count(h, h->count - 1);
    hold_write(b, h, 0, on_written, r, now_ms);
}

void enter_renew(struct broker *b, struct hold *h, struct lock_request *r, int64_t now_ms)
{
    begin(h, r);
    write_lease(b, h, r, now_ms);
}

/* ---- take-over ---- */

/* What this owner, or somebody who had the lock alone, is known here to have had. What it was asked
 * for goes with it, but for TELL: the new connection may not want pushes. Its count is known better
 * here than on the masters. Returns the IDs that it counts. */
static struct hold_ids *end_old(struct broker *b, struct lock *l, struct claim *c, int64_t now_ms)
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
    if (c->seq <= h->seq)
        c->seq = h->seq + 1;
    ids = h->ids;
    h->ids = NULL;
    hold_moved(b, h, LOST_MOVED, now_ms);
    return ids;
}

static void taken_over(struct broker *b, struct claim *c, struct lock_request *r, int64_t now_ms)
{
    struct hold_ids *ids = end_old(b, c->lock, c, now_ms);
    hold_start(b, c->lock, c, r, now_ms)->ids = ids;
    r->goes_on = true;
    b->resubmit(b, r, now_ms); /* UNLOCK: what it came for; RENEW: the lease begins now */
}

/* The masters know of no hold of this owner: that answers also those of its requests that came
 * before they were asked. Not later ones: by then it may have got the lock through another broker.
 */
static void answer_alike(struct broker *b, struct lock *l, const struct claim *c)
{
    TAILQ_HEAD(, lock_request) same = TAILQ_HEAD_INITIALIZER(same);
    struct lock_request *r, *next;
    for (r = TAILQ_FIRST(&l->queue->deferred); r; r = next) {
        next = TAILQ_NEXT(r, queued);
        if (!owner_same(r->owner, c->owner))
            continue;
        if ((r->verb != VERB_UNLOCK && r->verb != VERB_RENEW) ||
            r->base.arrived_us >= c->sent_ms * 1000)
            break;
        TAILQ_REMOVE(&l->queue->deferred, r, queued);
        TAILQ_INSERT_TAIL(&same, r, queued);
        r->deferred = false;
    }
    while ((r = TAILQ_FIRST(&same))) {
        TAILQ_REMOVE(&same, r, queued);
        broker_finish(b, r, RESULT_NOT_HELD);
    }
}

static void on_taken_over(struct claim *c, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct broker *b = c->broker;
    struct lock *l = c->lock;
    struct hold *old = r->hold;
    broker_use(l);
    r->claim = NULL;
    if (old) {
        old->busy = false;
        r->hold = NULL;
        hold_unpin(old);
    }
    if (c->end == CLAIM_GRANTED) {
        taken_over(b, c, r, now_ms);
    } else if (c->end == CLAIM_FAILED) {
        stats.acquires_no_quorum++;
        broker_finish_error(b, r, "%s; if '%s' was held it still is", c->reason, l->name);
    } else {
        broker_finish(b, r, RESULT_NOT_HELD);
        if (!old)
            answer_alike(b, l, c);
    }
    /* those who wait for the lock come first: otherwise many who ask for what they do not have
     * would keep everybody from it */
    if (l->queue)
        l->queue->takeover_waits = false;
    queue_run(b, l, now_ms);
    defer_run(b, l, now_ms);
    broker_put(b, l);
}

void enter_take_over(struct broker *b, struct lock *l, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = lock_hold_of(l, r->owner), *alone = lock_exclusive(l);
    int64_t lease_ms = r->lease_ms ? r->lease_ms : b->conf.lease_ms;
    struct lock_queue *q;
    if (h && hold_is_valid(h, now_ms))
        lease_ms = renew_lease_ms(now_ms, lease_ms, h->end_ms);
    if (!h && alone && hold_is_valid(alone, now_ms) && hold_is_fresh(b, alone, now_ms)) {
        broker_finish(b, r, RESULT_NOT_HELD); /* from memory: somebody else holds it here */
        return;
    }
    q = lock_queue_get(l);
    q->takeover_waits = q->n_claims > 0;
    if (q->takeover_waits) { /* one at a time: their end runs what is deferred */
        defer_request(l, r);
        return;
    }
    /* What has been given back here is released before it can be found. */
    (void)rounds_resend(&b->rounds, l->name, l->name_len, now_ms);
    if (h)
        begin(h, r);
    struct claim *c = claim_new(b, l, r->owner, lease_ms, on_taken_over, r);
    c->takeover = c->any = true;
    c->has_hold = h != NULL;
    c->request = r;
    r->claim = c;
    claim_start(c, now_ms);
}
