/* Does what the end of a waiter's claim means: grants the lock, refuses it, or asks again. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/finish.h"
#include "lock/handover.h"
#include "lock/hold.h"
#include "lock/queue.h"
#include "lock/tickets.h"
#include "lock/waiters_private.h"
#include "stats/stats.h"

static void granted(struct broker *b, struct lock *l, struct lock_request *r, const struct claim *c,
                    int64_t now_ms)
{
    waiters_remove(b, r);
    stats.acquires_granted++;
    if (c->prev_op)
        stats.handovers++;
    finish_granted(b, r, hold_start(b, l, c, r, now_ms));
}

/* Passes on a lock that was granted for a request that has left (safety R9). */
static void grant_unwanted(struct broker *b, struct lock *l, const struct claim *c, int64_t now_ms)
{
    struct ended_hold passed = {c->op, c->lease_ms, c->part, c->owner};
    stats.acquires_abandoned++;
    handover_pass_on(b, l, &passed, NULL, false, now_ms);
}

/* Answers the UNLOCK whose hold was to be handed over: that hold is given up, whether the next one
 * got it or not. One that may still have been there has been released instead, and then that
 * release answers (c->releaser is NULL). */
static void finish_releaser(struct broker *b, const struct claim *c)
{
    struct lock_request *r = c->releaser;
    if (!r)
        return;
    if (c->end == CLAIM_FAILED)
        handover_not_confirmed(b, r, c->reason);
    else
        finish_count(b, r, 1);
}

/* Counts the hand-overs here in a row while others stand in the line. */
static void count_passes(struct lock_queue *q, const struct claim *c, int64_t now_ms)
{
    bool stayed = q->stayed;
    q->line = c->line;
    q->stayed = false;
    if ((!c->prev_op && !stayed) || c->line == 0)
        q->passed = 0;
    else if (!stayed && q->passed++ == 0)
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
    if (r && waiters_may_be_granted(b, r)) {
        granted(b, l, r, c, now_ms);
    } else {
        grant_unwanted(b, l, c, now_ms);
    }
    if (c->part.kind == LOCK_SHARED && c->line > 0)
        tickets_call_next(b, l, now_ms); /* he may be a reader too */
    waiters_run(b, l, now_ms);
}

/* Notes where the ticket of a refused claim stands. `r`: whose claim it was, or NULL. A line that
 * has been forgotten is joined anew; called up meanwhile: it is our turn again. */
static void keep_ticket(struct lock_queue *q, struct lock_request *r, const struct claim *c)
{
    if (c->place.where && c->place.number && r) {
        r->turn = r->turn && strcmp(c->place.where, "front") != 0;
        r->lined = !r->turn;
    } else if (c->place.where && !c->place.number) {
        bool stood = strcmp(c->place.where, "keep") == 0 && c->line > 0;
        q->lined = strcmp(c->place.where, "keep") != 0 || stood;
        q->line = c->line - stood;
        q->turn = q->turn && strcmp(c->place.where, "front") != 0;
    }
}

void verdict_note_ticket(struct lock *l, const struct claim *c)
{
    if (c->end == CLAIM_BUSY && c->retry_ms > 0)
        keep_ticket(l->queue, NULL, c);
}

/* Takes out the ticket of a claim whose request left while it was under way, when nobody else
 * waits: nobody is to be called up for it. */
static void leave_empty_line(struct broker *b, struct lock *l, const struct claim *c,
                             int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    if (c->end == CLAIM_BUSY && c->place.where && c->place.number)
        tickets_leave(b, l, c->place.number, now_ms);
    else if ((q->lined || q->turn) && q->n_claims == 0)
        tickets_leave(b, l, 0, now_ms);
}

static void claim_refused(struct broker *b, struct lock *l, struct lock_request *r,
                          const struct claim *c, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    bool is_failure = c->end == CLAIM_FAILED;
    if (r && r->wait_until_ms)
        waiters_park(b, q, r); /* also when it is not the first */
    if (is_failure)
        queue_set_failure(&b->failed, q, util_strdup(c->reason));
    else
        keep_ticket(q, r, c);
    waiters_refuse_tries(b, l, is_failure ? NULL : c, q->failure);
    const struct lock_request *first = waiters_first(q);
    if (!first) {
        if (!r)
            leave_empty_line(b, l, c, now_ms);
        return;
    }
    if (!is_failure && !waiters_same_question(c->part, first->want)) {
        waiters_run(b, l, now_ms); /* what he wants has not been asked yet */
        return;
    }
    if (c->split && !q->hurried) { /* several have asked at once, and none has got it */
        q->hurried = true;
        q->hurry = WAITERS_HURRY;
    }
    waiters_refuse_tries(b, l, NULL, q->failure); /* they stand behind one who waits */
    waiters_park_first(b, q);
    waiters_retry_later(b, q, c->end == CLAIM_BUSY ? c->retry_ms : 0, now_ms);
}

char *verdict_deadlock(const struct lock *l)
{
    stats.acquires_deadlock++;
    return util_format("DEADLOCK '%s' is read by you and by another one who waits already to have "
                       "it alone; release your share first",
                       l->name);
}

static void refuse_for_good(struct broker *b, struct lock *l, struct lock_request *r,
                            const struct claim *c, int64_t now_ms)
{
    if (c->end == CLAIM_KIND)
        waiters_refuse_kind(b, r, c->in_use);
    else
        waiters_refuse_with(b, r, verdict_deadlock(l));
    waiters_run(b, l, now_ms);
}

static void enter_taken_over(struct broker *b, struct lock *l, struct lock_request *r,
                             const struct claim *c, int64_t now_ms)
{
    if (r->fair && (r->lined || r->turn))
        tickets_leave(b, l, r->ticket, now_ms);
    waiters_remove(b, r);
    hold_start(b, l, c, r, now_ms);
    r->goes_on = true;
    work_ready(&b->work, r);
}

/* Enters the hold that the owner had through another broker, and that has moved here. */
static void on_takeover_end(struct claim *c, void *arg, int64_t now_ms)
{
    struct lock *l = arg;
    struct broker *b = c->broker;
    struct lock_queue *q = l->queue;
    struct lock_request *r = c->request;
    if (r)
        r->claim = NULL;
    if (c->end == CLAIM_GRANTED && r) {
        enter_taken_over(b, l, r, c, now_ms);
        work_lock(&b->work, l, WORK_RUN); /* when that has entered it */
    } else { /* granted, but he has gone: it lapses, as it would have done without him */
        waiters_refuse_tries(b, l, NULL, c->end == CLAIM_FAILED ? c->reason : NULL);
        waiters_park_first(b, q);
        waiters_retry_later(b, q, 0, now_ms);
    }
    waiters_ask_owners(b, l, now_ms);
    queue_undefer(&b->work, l);
}

/* Takes over what the owner has through another broker; or asks again, when it is what was given
 * back here and the masters have not been told yet. */
static void same_owner(struct broker *b, struct lock *l, struct lock_request *r,
                       const struct claim *c, int64_t now_ms)
{
    if (rounds_resend(&b->rounds, l->name, l->name_len, now_ms) || !waiters_may_be_granted(b, r))
        waiters_run(b, l, now_ms);
    else if (r->unnamed) /* nobody else has its owner: what is left there lapses */
        claim_refused(b, l, r, c, now_ms);
    else
        waiters_take_over(b, l, r, c->part, on_takeover_end, now_ms);
}

void verdict_on_claim_end(struct claim *c, void *arg, int64_t now_ms)
{
    struct lock *l = arg;
    struct broker *b = c->broker;
    struct lock_queue *q = l->queue;
    struct lock_request *r = c->request;
    if (r)
        r->claim = NULL;
    queue_set_failure(&b->failed, q, NULL);
    if (c->end == CLAIM_GRANTED)
        claim_granted(b, l, r, c, now_ms);
    else if (c->end == CLAIM_SAME_OWNER && r)
        same_owner(b, l, r, c, now_ms);
    else if ((c->end == CLAIM_KIND || c->end == CLAIM_DEADLOCK) && r)
        refuse_for_good(b, l, r, c, now_ms);
    else
        claim_refused(b, l, r, c, now_ms);
    finish_releaser(b, c); /* its reply leaves after that of the one who has waited */
    waiters_ask_owners(b, l, now_ms);
    queue_undefer(&b->work, l);
}

/* Leaves a request whose owner does not have the lock where it stood. A try is decided by what the
 * first one is told. */
void verdict_on_owner_asked(struct claim *c, void *arg, int64_t now_ms)
{
    struct lock *l = arg;
    struct broker *b = c->broker;
    struct lock_request *r = c->request;
    if (r)
        r->claim = NULL;
    if (r && c->end == CLAIM_GRANTED)
        enter_taken_over(b, l, r, c, now_ms);
    else if (r && r->wait_until_ms == 0)
        due_cancel(&b->due, &l->queue->retry);
    work_lock(&b->work, l, WORK_RUN | WORK_UNDEFER);
}
