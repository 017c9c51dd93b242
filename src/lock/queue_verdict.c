/*
 * What follows a verdict of the masters, and what follows the end of a hold: the next one gets the
 * lock, or it is released for others.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/defer.h"
#include "lock/hold.h"
#include "lock/line.h"
#include "lock/lock_share.h"
#include "lock/queue_private.h"
#include "stats/stats.h"

/* ---- verdicts ---- */

static void granted(struct broker *b, struct lock *l, struct lock_request *r, const struct claim *c,
                    int64_t now_ms)
{
    queue_remove(b, r);
    stats.acquires_granted++;
    if (c->prev_op)
        stats.handovers++;
    broker_finish_granted(b, r, hold_start(b, l, c, r, now_ms));
}

/* Nobody is there any more who wanted it: the next one, or nobody (safety R9). */
static void grant_unwanted(struct broker *b, struct lock *l, const struct claim *c, int64_t now_ms)
{
    struct queue_passed passed = {c->op, c->lease_ms, c->part, c->owner};
    stats.acquires_abandoned++;
    queue_pass_on(b, l, &passed, NULL, false, now_ms);
}

/* Nobody has what this UNLOCK gives back: its owner may have taken it to another broker, unless he
 * has said more since. */
static void not_there(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    if (r->missed || lock_hold_of(r->lock, r->owner) || defer_needed(r->lock, r)) {
        broker_finish(b, r, RESULT_NOT_HELD);
        return;
    }
    r->missed = true;
    b->resubmit(b, r, now_ms);
}

/* What was to be handed over is given up in any case, also when the next one could not get it at
 * once. Of a permit that was refused its own release may tell instead. */
static void finish_releaser(struct broker *b, const struct claim *c, int64_t now_ms)
{
    struct lock_request *r = c->releaser;
    if (!r)
        return;
    if (c->end == CLAIM_FAILED)
        broker_finish_error(
            b, r, "%s; '%s' is given up and will be free at the end of its lease at the latest",
            c->reason, c->lock->name);
    else if (c->end == CLAIM_GRANTED || !c->foreign)
        broker_finish_count(b, r, 1);
    else
        not_there(b, r, now_ms);
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
    q->hurried = false;
    if (!c->prev_op && !c->place.number)
        q->lined = q->turn = false; /* the script has taken our ticket out */
    count_passes(q, c, now_ms);
    if (r)
        r->lined = r->turn = false;
    if (r && queue_may_be_granted(b, r)) {
        granted(b, l, r, c, now_ms);
    } else {
        grant_unwanted(b, l, c, now_ms);
    }
    if (c->part.kind == LOCK_SHARED && c->line > 0)
        line_call_next(b, l, now_ms); /* he may be a reader too */
    queue_run(b, l, now_ms);
}

/* What has become of the ticket of a claim that was refused. `r`: whose claim it was, or NULL. A
 * line that has been forgotten is joined anew; called up meanwhile: it is our turn again. */
static void keep_ticket(struct lock_queue *q, struct lock_request *r, const struct claim *c)
{
    if (c->place.where && c->place.number && r) {
        r->lined = true;
        r->turn = false;
    } else if (c->place.where && !c->place.number) {
        q->lined = strcmp(c->place.where, "keep") != 0 || c->line > 0;
        q->turn = q->turn && strcmp(c->place.where, "front") != 0;
    }
}

void queue_note_ticket(struct lock *l, const struct claim *c)
{
    if (c->end == CLAIM_BUSY && c->retry_ms > 0)
        keep_ticket(l->queue, NULL, c);
}

/* Whoever this claim was for has gone while it was under way, and nobody else waits: so nobody is
 * to be called up for the ticket that it has left. */
static void leave_line(struct broker *b, struct lock *l, const struct claim *c, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    if (c->end == CLAIM_BUSY && c->place.where && c->place.number)
        line_leave(b, l, c->place.number, now_ms);
    else if ((q->lined || q->turn) && q->n_claims == 0)
        line_leave(b, l, 0, now_ms);
}

static void claim_refused(struct broker *b, struct lock *l, struct lock_request *r,
                          const struct claim *c, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    bool is_failure = c->end == CLAIM_FAILED;
    if (r && r->wait_until_ms)
        request_park(&r->base); /* also when it is not the first */
    if (is_failure)
        q->failure = util_strdup(c->reason);
    else
        keep_ticket(q, r, c);
    queue_refuse_tries(b, l, is_failure ? NULL : c, q->failure);
    const struct lock_request *first = queue_first(q);
    if (!first) {
        if (!r)
            leave_line(b, l, c, now_ms);
        return;
    }
    if (!is_failure && !queue_same_question(c->part, first->want)) {
        queue_run(b, l, now_ms); /* what he wants has not been asked yet */
        return;
    }
    if (c->split && !q->hurried) { /* several have asked at once, and none has got it */
        q->hurried = true;
        q->hurry = QUEUE_HURRY;
    }
    queue_refuse_tries(b, l, NULL, q->failure); /* they stand behind one who waits */
    queue_park(q);
    queue_retry_later(b, q, c->end == CLAIM_BUSY ? c->retry_ms : 0, now_ms);
}

static void refuse_for_good(struct broker *b, struct lock *l, struct lock_request *r,
                            const struct claim *c, int64_t now_ms)
{
    if (c->end == CLAIM_KIND) {
        queue_refuse_kind(b, r, c->in_use);
    } else {
        queue_leave(b, r, now_ms);
        stats.acquires_deadlock++;
        broker_finish_error(b, r,
                            "DEADLOCK '%s' is read by you and by another one who waits already to "
                            "have it alone; release your share first",
                            l->name);
    }
    queue_run(b, l, now_ms);
}

/* Through another broker; or here, and the masters have not been told yet that it was given back.
 */
static void same_owner(struct broker *b, struct lock *l, struct lock_request *r,
                       const struct claim *c, int64_t now_ms)
{
    if (rounds_resend(&b->rounds, l->name, l->name_len, now_ms) || !queue_may_be_granted(b, r))
        queue_run(b, l, now_ms);
    else if (r->unnamed) /* nobody else has its owner: what is left there lapses */
        claim_refused(b, l, r, c, now_ms);
    else
        queue_take_over(b, l, r, c->part, now_ms);
}

void queue_on_claim_end(struct claim *c, void *arg, int64_t now_ms)
{
    struct lock *l = arg;
    struct broker *b = c->broker;
    struct lock_queue *q = l->queue;
    struct lock_request *r = c->request;
    if (r)
        r->claim = NULL;
    free(q->failure);
    q->failure = NULL;
    if (c->end == CLAIM_GRANTED)
        claim_granted(b, l, r, c, now_ms);
    else if (c->end == CLAIM_SAME_OWNER && r)
        same_owner(b, l, r, c, now_ms);
    else if ((c->end == CLAIM_KIND || c->end == CLAIM_DEADLOCK) && r)
        refuse_for_good(b, l, r, c, now_ms);
    else
        claim_refused(b, l, r, c, now_ms);
    finish_releaser(b, c, now_ms); /* its reply leaves after that of the one who has waited */
    defer_run(b, l, now_ms);
    broker_put(b, l);
}

/* The owner holds it already, through another broker: it moves here, and is entered once more. */
void queue_on_takeover_end(struct claim *c, void *arg, int64_t now_ms)
{
    struct lock *l = arg;
    struct broker *b = c->broker;
    struct lock_queue *q = l->queue;
    struct lock_request *r = c->request;
    if (r)
        r->claim = NULL;
    if (c->end == CLAIM_GRANTED && r) {
        queue_remove(b, r);
        hold_start(b, l, c, r, now_ms);
        r->goes_on = true;
        b->resubmit(b, r, now_ms);
        queue_run(b, l, now_ms);
    } else { /* granted, but he has gone: it lapses, as it would have done without him */
        queue_refuse_tries(b, l, NULL, c->end == CLAIM_FAILED ? c->reason : NULL);
        queue_park(q);
        queue_retry_later(b, q, 0, now_ms);
    }
    defer_run(b, l, now_ms);
    broker_put(b, l);
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
            not_there(b, r, now_ms);
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
static bool must_yield(const struct broker *b, const struct lock_queue *q,
                       const struct lock_request *first, int64_t now_ms)
{
    if (first->fair)
        return true;
    return q->line > 0 && q->passed > 0 &&
           (q->passed >= b->conf.handover_max_count ||
            now_ms - q->passed_since_ms >= b->conf.handover_max_time_ms);
}

/* We let the others go first; true: and have to line up behind them, in the same script that
 * releases. */
static bool yield(struct broker *b, struct lock_queue *q, const struct lock_request *first,
                  int64_t now_ms)
{
    bool lines_up = !first->fair && !q->lined;
    stats.yields++;
    q->passed = 0;
    q->lined |= lines_up;
    queue_retry_later(b, q, 0, now_ms);
    return lines_up;
}

/* Can one script end the one and give its place to the other? Readers make room only together. */
static bool fits(const struct broker *b, const struct lock *l, const struct queue_passed *passed,
                 const struct lock_request *first)
{
    if (!first || first->multilock || b->paused || lock_exclusive(l) ||
        queue_owner_asks(l->queue, first->owner) || queue_already_has(l, first))
        return false;
    if (passed->part.kind == LOCK_LIMIT)
        return first->want.kind == LOCK_LIMIT && first->want.limit == passed->part.limit;
    return passed->part.kind == LOCK_EXCLUSIVE && first->want.kind != LOCK_LIMIT &&
           l->queue->n_claims == 0 && (share_count(l) == 0 || first->want.kind == LOCK_SHARED);
}

static void release(struct broker *b, struct lock *l, const struct queue_passed *passed,
                    bool lines_up, struct lock_request *releaser, int64_t now_ms)
{
    static const struct line_place tail = {0, "tail"};
    char op[BROKER_OP_MAX + 1];
    broker_op_text(b, passed->op, op);
    struct line_hold hold = {op, passed->part, passed->owner, passed->lease_ms, LINE_GRANTED};
    line_release(b, l, &hold, lines_up ? &tail : NULL, releaser ? on_released : NULL, releaser,
                 now_ms);
}

/* After a release without a hand-over. Whoever stands in the line with others before him waits for
 * his call. */
static void ask_anew(struct broker *b, struct lock *l, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    if (q && q->lined && !q->turn && q->line > 0) {
        queue_retry_later(b, q, 0, now_ms);
    } else if (q) {
        broker_due_cancel(b, &q->retry);
        queue_run(b, l, now_ms);
    }
}

void queue_pass_on(struct broker *b, struct lock *l, const struct queue_passed *passed,
                   struct lock_request *releaser, bool is_lapsing, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    struct lock_request *first = q ? queue_first(q) : NULL;
    bool can_hand_over = fits(b, l, passed, first) && !rounds_veto(&b->rounds);
    bool yields = can_hand_over && must_yield(b, q, first, now_ms);
    if (can_hand_over && !yields && queue_claim(b, l, first, passed, now_ms)) {
        bool was_turn = q->turn;
        first->claim->releaser = releaser;
        first->claim->on_undone = on_released;
        q->turn = true; /* readers behind a reader come with him, whoever else waits */
        queue_run(b, l, now_ms);
        q->turn = was_turn;
        return;
    }
    bool lines_up = yields && yield(b, q, first, now_ms);
    if (!is_lapsing || releaser || yields)
        release(b, l, passed, lines_up, releaser, now_ms);
    if (!yields)
        ask_anew(b, l, now_ms);
}
