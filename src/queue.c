/*
 * The line of a lock. Invariants: at most one claim is under way for it; while a client of this
 * broker holds the lock none is; a request without WAIT never stays behind a verdict that it has
 * seen.
 *
 * Refusals are from memory while a client of this broker holds the lock: the masters are not asked.
 */
#include "queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "broker_state.h"
#include "claim.h"
#include "deadlock.h"
#include "keep.h"
#include "line.h"
#include "renew.h"
#include "stats.h"
#include "util.h"

/* Asking again for a lock that is held elsewhere: quickly when we were called up and came too late,
 * else only in case that a call was lost. */
enum { RETRY_TURN_MS = 2, RETRY_TURNS = 5, RETRY_LINED_MS = 500 };

static void on_claim_end(struct claim *c, void *arg, int64_t now_ms);
static void on_takeover_end(struct claim *c, void *arg, int64_t now_ms);

/* ---- the line between brokers ---- */

static const char *where(bool is_turn, bool is_lined)
{
    return is_turn ? "front" : is_lined ? "keep" : "tail";
}

/* Where the ticket of this request, or of the broker, is to stand if the claim is refused. */
static struct line_place place_of(const struct lock_queue *q, const struct lock_request *r)
{
    const struct lock_request *last = TAILQ_LAST(&q->waiters, lock_requests);
    if (r->fair && r->wait_until_ms)
        return (struct line_place){r->ticket, where(r->turn, r->lined)};
    if (!r->wait_until_ms && !last->wait_until_ms)
        return (struct line_place){0, NULL}; /* tries only, as far as is worth looking */
    return (struct line_place){0, where(q->turn, q->lined)};
}

/* ---- leaving ---- */

static void leave(struct broker *b, struct lock_request *r)
{
    struct lock_queue *q = r->lock->queue;
    TAILQ_REMOVE(&q->waiters, r, queued);
    broker_due_cancel(b, &r->due); /* it may go on for a while: a take-over enters once more */
    r->waiting = false;
    q->n_waiters--;
    b->n_waiters--;
    if (q->claimer == r)
        q->claimer = NULL;
    request_unpark(&r->base);
}

/* It gives up: its place in the line goes with it. */
static void give_up(struct broker *b, struct lock_request *r)
{
    struct lock *l = r->lock;
    leave(b, r);
    if (r->fair && (r->lined || r->turn))
        line_leave(b, l, r->ticket, b->now_ms);
    else if (TAILQ_EMPTY(&l->queue->waiters) && (l->queue->lined || l->queue->turn) &&
             !l->queue->claim)
        line_leave(b, l, 0, b->now_ms);
}

void queue_leave(struct broker *b, struct lock_request *r)
{
    give_up(b, r);
}

static void refuse(struct broker *b, struct lock_request *r, const char *failure)
{
    give_up(b, r);
    if (failure) {
        stats.acquires_no_quorum++;
        broker_finish_error(b, r, "%s", failure);
        return;
    }
    if (r->wait_until_ms)
        stats.acquires_timeout++;
    else
        stats.acquires_busy++;
    broker_finish(b, r, RESULT_NOT_GRANTED);
}

/* Everybody who did not want to wait has his answer. */
static void refuse_tries(struct broker *b, struct lock *l, const char *failure)
{
    struct lock_request *r, *next;
    for (r = TAILQ_FIRST(&l->queue->waiters); r; r = next) {
        next = TAILQ_NEXT(r, queued);
        if (r->wait_until_ms == 0)
            refuse(b, r, failure);
    }
}

static void on_wait_over(struct broker *b, struct due *due, int64_t now_ms)
{
    struct lock_request *r =
        (struct lock_request *)((char *)due - offsetof(struct lock_request, due));
    struct lock *l = r->lock;
    broker_use(l);
    refuse(b, r, l->queue->failure);
    queue_undefer(b, l, now_ms);
    broker_put(b, l);
}

static void on_retry(struct broker *b, struct due *due, int64_t now_ms)
{
    struct lock_queue *q = (struct lock_queue *)((char *)due - offsetof(struct lock_queue, retry));
    struct lock_request *head = TAILQ_FIRST(&q->waiters);
    stats.retries++;
    if (head)
        queue_run(b, head->lock, now_ms);
}

/* pttl_ms: what is left of the hold in the way; its holder may be dead, and then nobody calls us
 * up: so we are there when it ends. */
static void retry_later(struct broker *b, struct lock_queue *q, int64_t pttl_ms, int64_t now_ms)
{
    int64_t step = RETRY_LINED_MS, jitter = RETRY_LINED_MS / 2;
    if (q->hurry > 0) {
        step = jitter = RETRY_TURN_MS << (RETRY_TURNS - q->hurry--);
    } else if (pttl_ms > 0 && pttl_ms < step) {
        step = pttl_ms + 1;
        jitter = RETRY_TURN_MS;
    }
    q->retry.fn = on_retry;
    broker_due_at(b, &q->retry, now_ms + step + (int64_t)broker_random(b, (uint64_t)jitter + 1));
}

/* ---- claims for the head of the line ---- */

static void claim_for(struct broker *b, struct lock *l, struct lock_request *r,
                      const struct queue_passed *prev, bool takeover, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    int64_t lease_ms = r->lease_ms ? r->lease_ms : b->conf.lease_ms;
    if (r->maxhold_ms)
        lease_ms = renew_lease_ms(0, lease_ms, r->maxhold_ms);
    assert(!q->claim);
    broker_due_cancel(b, &q->retry);
    struct claim *c =
        claim_new(b, l, r->owner, lease_ms, takeover ? on_takeover_end : on_claim_end, l);
    c->takeover = takeover;
    c->maxhold_ms = r->maxhold_ms;
    stats.acquire_tries++;
    if (prev) { /* it is ours to give: nobody needs to be lined up for it */
        c->prev_op = prev->op;
        c->prev_lease_ms = prev->lease_ms;
    } else {
        c->place = place_of(q, r);
    }
    q->claim = c;
    q->claimer = r;
    broker_use(l);
    claim_start(c, now_ms);
}

static void granted(struct broker *b, struct lock *l, struct lock_request *r, const struct claim *c,
                    int64_t now_ms)
{
    leave(b, r);
    stats.acquires_granted++;
    if (c->prev_op)
        stats.handovers++;
    broker_finish_granted(b, r, keep_start(b, l, c, r, now_ms));
}

/* Nobody is there any more who wanted it: the next one, or nobody (safety R9). */
static void grant_unwanted(struct broker *b, struct lock *l, const struct claim *c, int64_t now_ms)
{
    struct queue_passed passed = {c->op, c->lease_ms};
    stats.acquires_abandoned++;
    queue_pass_on(b, l, &passed, NULL, false, now_ms);
}

static void finish_releaser(struct broker *b, struct lock_queue *q, const struct claim *c)
{
    struct lock_request *r = q->releaser;
    q->releaser = NULL;
    if (!r)
        return;
    if (c->end == CLAIM_GRANTED || (c->end != CLAIM_FAILED && !c->foreign))
        broker_finish_count(
            b, r, 1); /* given up in any case, also when the next one could not get it at once */
    else if (c->end == CLAIM_FAILED)
        broker_finish_error(
            b, r, "%s; '%s' is given up and will be free at the end of its lease at the latest",
            c->reason, c->lock->name);
    else
        broker_finish(b, r, RESULT_NOT_HELD);
}

/* Those who are left wait, and what their connections say behind it waits with them. */
static void park_waiters(struct lock_queue *q)
{
    struct lock_request *first = TAILQ_FIRST(&q->waiters);
    if (first) /* the others were parked when they came */
        request_park(&first->base);
}

/* The owner holds it already, through another broker: it moves here, and is entered once more. */
static void on_takeover_end(struct claim *c, void *arg, int64_t now_ms)
{
    struct lock *l = arg;
    struct broker *b = c->broker;
    struct lock_queue *q = l->queue;
    struct lock_request *r = q->claimer;
    q->claim = NULL;
    q->claimer = NULL;
    if (c->end == CLAIM_GRANTED && r) {
        leave(b, r);
        keep_start(b, l, c, r, now_ms);
        r->goes_on = true;
        b->resubmit(b, r, now_ms);
        refuse_tries(b, l, NULL);
    } else { /* granted, but he has gone: it lapses, as it would have done without him */
        refuse_tries(b, l, c->end == CLAIM_FAILED ? c->reason : NULL);
        park_waiters(q);
        retry_later(b, q, 0, now_ms);
    }
    queue_undefer(b, l, now_ms);
    broker_put(b, l);
}

/* How many hand-overs here in a row while others stand in the line. */
static void count_passes(struct lock_queue *q, const struct claim *c, int64_t now_ms)
{
    q->line = c->line;
    if (!c->prev_op || c->line == 0)
        q->passed = 0;
    else if (q->passed++ == 0)
        q->passed_since_ms = now_ms;
}

static void claim_granted(struct broker *b, struct lock *l, struct lock_request *r,
                          const struct claim *c, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    q->hurry = 0;
    if (!c->prev_op && !c->place.number)
        q->lined = q->turn = false; /* the script has taken our ticket out */
    count_passes(q, c, now_ms);
    if (r) {
        r->lined = r->turn = false;
        granted(b, l, r, c, now_ms);
    } else {
        grant_unwanted(b, l, c, now_ms);
    }
    if (!q->claim)
        refuse_tries(b, l, NULL);
}

static void claim_refused(struct broker *b, struct lock *l, struct lock_request *r,
                          const struct claim *c, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    if (c->end == CLAIM_FAILED) {
        q->failure = util_strdup(c->reason);
    } else if (c->place.where && c->place.number && r) {
        r->lined = true;
        r->turn = false;
    } else if (c->place.where && !c->place.number) {
        /* a line that has been forgotten is joined anew; called up meanwhile: it is our turn again
         */
        q->lined = strcmp(c->place.where, "keep") != 0 || c->line > 0;
        q->turn = q->turn && strcmp(c->place.where, "front") != 0;
    }
    refuse_tries(b, l, q->failure);
    park_waiters(q);
    retry_later(b, q, c->end == CLAIM_BUSY ? c->retry_ms : 0, now_ms);
}

static void on_claim_end(struct claim *c, void *arg, int64_t now_ms)
{
    struct lock *l = arg;
    struct broker *b = c->broker;
    struct lock_queue *q = l->queue;
    struct lock_request *r = q->claimer;
    q->claim = NULL;
    q->claimer = NULL;
    finish_releaser(b, q, c);
    free(q->failure);
    q->failure = NULL;
    if (c->end == CLAIM_GRANTED)
        claim_granted(b, l, r, c, now_ms);
    else if (c->end == CLAIM_SAME_OWNER && r)
        claim_for(b, l, r, NULL, true, now_ms);
    else
        claim_refused(b, l, r, c, now_ms);
    queue_undefer(b, l, now_ms);
    broker_put(b, l);
}

/* ---- the line ---- */

void queue_run(struct broker *b, struct lock *l, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    if (!q || q->claim)
        return;
    if (lock_first_hold(l)) {
        broker_due_cancel(b, &q->retry);
        refuse_tries(b, l, NULL);
    } else if (!b->paused && !TAILQ_EMPTY(&q->waiters)) {
        claim_for(b, l, TAILQ_FIRST(&q->waiters), NULL, false, now_ms);
    }
}

static bool is_deadlock(struct broker *b, const struct lock *l, struct lock_request *r)
{
    struct buf circle = {0};
    bool found = deadlock_find(r, l, &circle);
    if (found) {
        stats.acquires_deadlock++;
        broker_finish_error(b, r, "DEADLOCK %.*s", (int)buf_len(&circle), buf_head(&circle));
    }
    buf_fini(&circle);
    return found;
}

void queue_join(struct broker *b, struct lock *l, struct lock_request *r, int64_t now_ms)
{
    if (r->wait_until_ms && lock_first_hold(l) && is_deadlock(b, l, r))
        return;
    struct lock_queue *q = lock_queue_get(l);
    bool is_alone = TAILQ_EMPTY(&q->waiters) && !q->claim && !lock_first_hold(l) && !b->paused;
    TAILQ_INSERT_TAIL(&q->waiters, r, queued);
    r->waiting = true;
    q->n_waiters++;
    b->n_waiters++;
    if (r->wait_until_ms && r->wait_until_ms != INT64_MAX) {
        r->due.fn = on_wait_over;
        broker_due_at(b, &r->due, r->wait_until_ms);
    }
    if (!is_alone)
        request_park(&r->base);
    if (r->fair) {
        r->ticket = ++b->last_ticket;
        r->lined = !is_alone && r->wait_until_ms;
        if (r->lined)
            line_join(b, l, r->ticket, now_ms);
    }
    /* while a retry is set for those who stand before him, a waiter waits for it like them */
    if (is_alone || r->wait_until_ms == 0 || !wheel_armed(&q->retry.entry))
        queue_run(b, l, now_ms);
}

/* ---- the end of a hold ---- */

static void on_released(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct broker *b = r->broker;
    bool was_there = false;
    for (int i = 0; i < round->quorum.n; i++)
        was_there |= round->votes[i].state == VOTE_ANSWERED && round->votes[i].code == 1;
    if (quorum_state(&round->quorum) == QUORUM_WON) {
        if (was_there)
            broker_finish_count(b, r, 1);
        else
            broker_finish(b, r, RESULT_NOT_HELD);
        return;
    }
    struct buf why = {0};
    round_describe(round, &why, now_ms);
    broker_finish_error(
        b, r,
        "NOQUORUM %.*s; '%s' is given up and will be free at the end of its lease at the latest",
        (int)buf_len(&why), buf_head(&why), r->lock->name);
    buf_fini(&why);
}

/* Others have been passed over often or long enough, or order is strict: the lock is released, and
 * whoever stands first in the line is called up. */
static bool must_yield(const struct broker *b, const struct lock_queue *q, int64_t now_ms)
{
    if (TAILQ_FIRST(&q->waiters)->fair)
        return true;
    return q->line > 0 && q->passed > 0 &&
           (q->passed >= b->conf.handover_max_count ||
            now_ms - q->passed_since_ms >= b->conf.handover_max_time_ms);
}

/* We let the others go first; true: and have to line up behind them, in the same script that
 * releases. */
static bool yield(struct broker *b, struct lock_queue *q, int64_t now_ms)
{
    bool lines_up = !TAILQ_FIRST(&q->waiters)->fair && !q->lined;
    stats.yields++;
    q->passed = 0;
    q->lined |= lines_up;
    retry_later(b, q, 0, now_ms);
    return lines_up;
}

void queue_pass_on(struct broker *b, struct lock *l, const struct queue_passed *passed,
                   struct lock_request *releaser, bool is_lapsing, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    static const struct line_place tail = {0, "tail"};
    char op[BROKER_OP_MAX + 1];
    bool lines_up = false;
    bool somebody_waits =
        q && !q->claim && !TAILQ_EMPTY(&q->waiters) && !lock_first_hold(l) && !b->paused;
    if (somebody_waits && !must_yield(b, q, now_ms)) {
        q->releaser = releaser;
        claim_for(b, l, TAILQ_FIRST(&q->waiters), passed, false, now_ms);
        return;
    }
    if (somebody_waits)
        lines_up = yield(b, q, now_ms);
    if (is_lapsing && !releaser && !somebody_waits)
        return;
    broker_op_text(b, passed->op, op);
    line_release(b, l, op, lines_up ? &tail : NULL, passed->lease_ms, releaser ? on_released : NULL,
                 releaser, now_ms);
    if (!somebody_waits)
        queue_run(b, l, now_ms);
}

/* ---- called up ---- */

void queue_call(struct broker *b, struct lock *l, uint64_t number, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    struct lock_request *r = NULL;
    stats.wakeups++;
    if (q && number) {
        TAILQ_FOREACH(r, &q->waiters, queued)
        {
            if (r->ticket == number)
                break;
        }
    } else if (q) {
        r = TAILQ_FIRST(&q->waiters);
    }
    if (r && b->paused) { /* others may take it; we line up anew when we go on */
        if (number)
            r->lined = false;
        else
            q->lined = false;
    }
    if (!r || lock_first_hold(l) || b->paused) {
        if (!lock_first_hold(l)) /* else our own release will call up the next one */
            line_call_next(b, l, now_ms);
        return;
    }
    q->hurry = RETRY_TURNS;
    if (number) {
        r->turn = true;
        r->lined = false;
    } else {
        q->turn = true;
        q->lined = false;
    }
    if (!q->claim)
        claim_for(b, l, r, NULL, false, now_ms);
}

void queue_turn_away(struct broker *b, struct lock *l, const char *error)
{
    struct lock_request *r;
    broker_use(l);
    while (l->queue && (r = TAILQ_FIRST(&l->queue->waiters))) {
        leave(b, r);
        broker_finish_error(b, r, "%s", error);
    }
    queue_undefer(b, l, b->now_ms);
    broker_put(b, l);
}

/* ---- requests of one owner that must keep their order ---- */

bool queue_must_defer(const struct lock *l, const struct lock_request *r)
{
    const struct lock_queue *q = l->queue;
    const struct hold *h = lock_hold_of(l, r->owner);
    if (h && h->busy)
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
    TAILQ_FOREACH(earlier, &q->deferred, queued)
    {
        if (earlier->base.session == r->base.session && owner_same(earlier->owner, r->owner))
            return true;
    }
    return q->claim && q->claimer && q->claimer != r && owner_same(q->claimer->owner, r->owner);
}

void queue_defer(struct lock *l, struct lock_request *r)
{
    TAILQ_INSERT_TAIL(&lock_queue_get(l)->deferred, r, queued);
    r->deferred = true;
}

void queue_undefer(struct broker *b, struct lock *l, int64_t now_ms)
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
