/*
 * Passes a lock on when a hold of it has ended: one script gives it to the next waiter, or releases
 * it for others.
 */
#include "lock/handover.h"

#include <stdlib.h>

#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/defer.h"
#include "lock/finish.h"
#include "lock/lock_share.h"
#include "lock/queue.h"
#include "lock/release.h"
#include "lock/tickets.h"
#include "lock/waiters_private.h"
#include "stats/stats.h"

/* Nobody has what this UNLOCK gives back: its owner may have taken it to another broker, unless he
 * has said more since. He may have another hold of the lock, which he had before. */
void handover_not_there(struct broker *b, struct lock_request *r)
{
    const struct hold *h = lock_hold_of(r->lock, r->owner);
    int64_t arrived_ms = r->base.arrived_us / 1000;
    bool has_said_more =
        h && (h->since_ms > arrived_ms || (h->since_ms == arrived_ms && h->op != r->other_op));
    if (r->missed || has_said_more || defer_needed(r->lock, r)) {
        finish_as(b, r, RESULT_NOT_HELD);
        return;
    }
    r->missed = true;
    work_ready(&b->work, r);
}

/* True when a master had the hold until now, unless a majority has another operation: then that
 * master is one to which a take-over by its owner has not come yet. Or when a majority may have had
 * it: masters in quarantine have forgotten it, and none of them has another operation in its place,
 * as they would if its owner had taken it to another broker. No master that has confirmed this
 * release can get it back (safety R2), and nobody gets the lock before a lease is over (R5). */
static bool was_there(const struct round *round, int64_t now_ms)
{
    int n = round->quorum.n, may_have = n, others = 0;
    bool has_ended = false;
    for (int i = 0; i < n; i++) {
        const struct vote *v = &round->votes[i];
        if (v->state != VOTE_ANSWERED)
            continue;
        has_ended |= v->code == RELEASE_ENDED;
        others += v->code == RELEASE_OTHER;
        may_have -= !round_may_forget(round, i, now_ms);
    }
    if (has_ended)
        return others < quorum_need(n);
    return !others && may_have >= quorum_need(n);
}

void handover_not_confirmed(struct broker *b, struct lock_request *r, const char *why)
{
    finish_error(b, r,
                 "%s; '%s' is given up and will be free at the end of its lease at the latest", why,
                 r->lock->name);
}

static void on_released(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct broker *b = r->broker;
    if (quorum_state(&round->quorum) == QUORUM_WON) {
        if (was_there(round, now_ms))
            finish_count(b, r, 1);
        else
            handover_not_there(b, r);
        return;
    }
    char *why = round_no_quorum(round, now_ms);
    handover_not_confirmed(b, r, why);
    free(why);
}

/* True when the lock is to be released, so that the first one in the line is called up: others have
 * been passed over often or long enough, or order is strict and it is not this one's turn. */
static bool must_yield(const struct broker *b, const struct lock_queue *q,
                       const struct lock_request *first, int64_t now_ms)
{
    if (first->fair)
        return !first->turn;
    return q->line > 0 && q->passed > 0 &&
           (q->passed >= b->conf.handover_max_count ||
            now_ms - q->passed_since_ms >= b->conf.handover_max_time_ms);
}

/* True when the owner goes on as a reader, and the first one here waits to have the lock alone: he
 * would have got it before those who wait elsewhere, but this broker does not stand in their line.
 */
static bool stays_first(const struct broker *b, const struct lock *l,
                        const struct ended_hold *passed, const struct lock_request *first)
{
    const struct lock_queue *q = l->queue;
    return first && first->wait_until_ms && !first->fair && !first->multilock &&
           !first->outside.on_turn && first->want.kind == LOCK_EXCLUSIVE &&
           passed->part.kind == LOCK_EXCLUSIVE && share_count(l) > 0 && !lock_exclusive(l) &&
           !q->lined && !q->outside && q->n_claims == 0 && !b->paused;
}

/* Lets other brokers go first. True: this one has to line up behind them, in the same script that
 * releases. */
static bool yield(struct broker *b, struct lock_queue *q, const struct lock_request *first,
                  int64_t now_ms)
{
    bool lines_up = !first->fair && !q->lined;
    stats.yields++;
    q->passed = 0;
    q->lined |= lines_up;
    waiters_retry_later(b, q, 0, now_ms);
    return lines_up;
}

/* Lines up before the others, in the script that releases. It counts as a hand-over: others wait no
 * longer than they do for those. */
static const char *stay(struct lock_queue *q, int64_t now_ms)
{
    if (q->passed++ == 0)
        q->passed_since_ms = now_ms;
    q->stayed = true;
    q->lined = true;
    q->turn = false;
    return "front";
}

/* True when one script can end the hold and give its place to this request. Readers make room only
 * together. */
static bool fits(const struct broker *b, const struct lock *l, const struct ended_hold *passed,
                 const struct lock_request *first)
{
    if (!first || first->multilock || first->outside.on_turn || l->queue->outside || b->paused ||
        lock_exclusive(l) || waiters_owner_asks(l->queue, first->owner) ||
        waiters_already_has(l, first))
        return false;
    if (passed->part.kind == LOCK_LIMIT)
        return first->want.kind == LOCK_LIMIT && first->want.limit == passed->part.limit;
    return passed->part.kind == LOCK_EXCLUSIVE && first->want.kind != LOCK_LIMIT &&
           l->queue->n_claims == 0 && (share_count(l) == 0 || first->want.kind == LOCK_SHARED);
}

/* `where` this broker lines up; NULL: it does not. */
static void release(struct broker *b, struct lock *l, const struct ended_hold *passed,
                    const char *where, struct lock_request *releaser, int64_t now_ms)
{
    struct ticket_place place = {0, where};
    char op[BROKER_OP_MAX + 1];
    broker_op_text(b, passed->op, op);
    struct release_what hold = {op, passed->part, passed->owner, passed->lease_ms, RELEASE_GRANTED};
    release_hold(b, l, &hold, where ? &place : NULL, releaser ? on_released : NULL, releaser,
                 now_ms);
}

/* Runs the queue after a release without a hand-over. A broker that stands in the line behind
 * others waits for its call. */
static void ask_anew(struct broker *b, struct lock *l, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    if (q && q->lined && !q->turn && q->line > 0) {
        waiters_retry_later(b, q, 0, now_ms);
    } else if (q) {
        due_cancel(&b->due, &q->retry);
        waiters_run(b, l, now_ms);
    }
}

void handover_pass_on(struct broker *b, struct lock *l, const struct ended_hold *passed,
                      struct lock_request *releaser, bool is_lapsing, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    struct lock_request *first = q ? waiters_first(q) : NULL;
    bool can_hand_over = fits(b, l, passed, first) && !rounds_veto(&b->rounds);
    bool stays = !can_hand_over && stays_first(b, l, passed, first);
    bool yields = (can_hand_over || stays) && must_yield(b, q, first, now_ms);
    if (can_hand_over && !yields && waiters_claim(b, l, first, passed, now_ms)) {
        bool was_turn = q->turn;
        first->claim->releaser = releaser;
        first->claim->on_undone = on_released;
        q->turn = true; /* readers behind a reader come with him, whoever else waits */
        waiters_run(b, l, now_ms);
        q->turn = was_turn;
        return;
    }
    const char *where = NULL;
    if (yields)
        where = yield(b, q, first, now_ms) ? "tail" : NULL;
    else if (stays)
        where = stay(q, now_ms);
    if (!is_lapsing || releaser || where || yields)
        release(b, l, passed, where, releaser, now_ms);
    else if (first && first->lined)
        tickets_call_next(b, l, now_ms); /* as a release would */
    if (!yields)
        ask_anew(b, l, now_ms);
}
