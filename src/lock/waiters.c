/*
 * The order of those who wait, and the questions that are asked for them. Invariants: for a request
 * whose claim is under way nothing else is asked; what is asked goes along with what is under way
 * and held (waiters_admit.c); a request without WAIT never stays behind a verdict that it has seen.
 *
 * Refusals are from memory while a client of this broker holds the lock: the masters are not asked.
 */
#include <assert.h>
#include <stddef.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/deadlock.h"
#include "lock/finish.h"
#include "lock/hold.h"
#include "lock/lock_share.h"
#include "lock/queue.h"
#include "lock/renew.h"
#include "lock/tickets.h"
#include "lock/waiters_private.h"
#include "stats/stats.h"

/* Times of retries for a lock that is held elsewhere: quick when this broker was called up and came
 * too early, or when votes were split; else only in case that a call was lost. */
enum { RETRY_TURN_MS = 2, RETRY_LINED_MS = 500 };

/* ---- the line between brokers ---- */

static const char *where(bool is_turn, bool is_lined)
{
    return is_turn ? "front" : is_lined ? "keep" : "tail";
}

/* Returns where the ticket of this request, or of the broker, is to stand if the claim is refused.
 */
static struct ticket_place place_of(const struct lock_queue *q, const struct lock_request *r)
{
    const struct lock_request *last = TAILQ_LAST(&q->waiters, lock_requests);
    bool somebody_waits = r->wait_until_ms || (last && last->wait_until_ms);
    if (r->fair && r->wait_until_ms)
        return (struct ticket_place){r->ticket, where(r->turn, r->lined)};
    if (!somebody_waits)
        return (struct ticket_place){0, NULL}; /* tries only, as far as is worth looking */
    /* of several claims the first one lines the broker up */
    return (struct ticket_place){0, where(q->turn, q->lined || q->n_claims > 0)};
}

/* ---- those who wait ---- */

struct lock_request *waiters_first(const struct lock_queue *q)
{
    struct lock_request *r;
    TAILQ_FOREACH(r, &q->waiters, queued) {
        if (!r->claim)
            return r;
    }
    return NULL;
}

void waiters_park(struct broker *b, struct lock_queue *q, struct lock_request *r)
{
    if (!q->is_waited)
        LIST_INSERT_HEAD(&b->waited, q, waited);
    q->is_waited = true;
    request_park(&r->base);
}

void waiters_park_first(struct broker *b, struct lock_queue *q)
{
    struct lock_request *first = waiters_first(q);
    if (first) /* the others were parked when they came */
        waiters_park(b, q, first);
}

/* ---- asking ---- */

struct claim *waiters_new_claim(struct broker *b, struct lock *l, struct lock_request *r,
                                struct lock_part part, claim_fn on_end, void *arg)
{
    int64_t lease_ms = r->lease_ms ? r->lease_ms : b->conf.lease_ms;
    if (r->maxhold_ms)
        lease_ms = renew_lease_ms(0, lease_ms, r->maxhold_ms);
    struct claim *c = claim_new(b, l, r->owner, lease_ms, on_end, arg);
    c->part = part;
    c->maxhold_ms = r->maxhold_ms;
    c->request = r;
    c->place = place_of(queue_get(l), r);
    stats.acquire_tries++;
    return c;
}

bool waiters_claim(struct broker *b, struct lock *l, struct lock_request *r,
                   const struct ended_hold *prev, int64_t now_ms)
{
    struct lock_part part = r->want;
    assert(!r->claim);
    if (part.kind != LOCK_EXCLUSIVE && !share_ask(l, &part, b->first_permit))
        return false;
    if (prev && prev->part.kind == LOCK_LIMIT)
        share_ask_instead(l, &part, prev->part.slot);
    else
        due_cancel(&b->due, &l->queue->retry);
    struct claim *c = waiters_new_claim(b, l, r, part, verdict_on_claim_end, l);
    if (prev) { /* it is ours to give: nobody needs to be lined up for it */
        c->prev_op = prev->op;
        c->prev_lease_ms = prev->lease_ms;
        c->prev_part = prev->part;
        c->place.where = NULL;
    }
    r->claim = c;
    waiters_owner_was_asked(l->queue, r); /* it would say so */
    claim_start(c, now_ms);
    return true;
}

void waiters_take_over(struct broker *b, struct lock *l, struct lock_request *r,
                       struct lock_part part, claim_fn on_end, int64_t now_ms)
{
    struct claim *c = waiters_new_claim(b, l, r, part, on_end, l);
    c->takeover = true;
    r->claim = c;
    claim_start(c, now_ms);
}

void waiters_ask_owners(struct broker *b, struct lock *l, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    struct lock_request *r;
    if (!q || q->n_to_ask == 0 || q->n_claims > 0 || b->paused || lock_exclusive(l))
        return;
    if (l->todo & WORK_RUN) /* an MLOCK has its turn first, and then this is asked again */
        return;
    (void)rounds_resend(&b->rounds, l->name, l->name_len, now_ms); /* it is not to be found */
    TAILQ_FOREACH(r, &q->waiters, queued) {
        if (q->n_claims == WAITERS_CLAIMS_MAX)
            return;
        if (r->owner_asked || r->claim || waiters_owner_asks(q, r->owner))
            continue;
        if (waiters_may_own(b, l, r))
            waiters_take_over(b, l, r, r->want, verdict_on_owner_asked, now_ms);
        waiters_owner_was_asked(q, r);
    }
}

/* Lets an MLOCK, or one of a room above, try. The queue is run again after that: it may have to
 * wait here again, or elsewhere. */
static void give_turn(struct broker *b, struct lock *l, struct lock_request *r)
{
    if (r->want.kind != LOCK_EXCLUSIVE && !share_is_free(l, r->want))
        return; /* every permit is being asked for: their claims run the queue again */
    if (r->outside.on_turn) {
        waiters_give_outside(b, l, r);
        return;
    }
    waiters_remove(b, r);
    r->has_turn = true;
    work_ready(&b->work, r);
    work_lock(&b->work, l, WORK_RUN);
}

/* FAIR: a place in the line is kept until the call. Only the agreed master knows whose turn it is,
 * and the others would let anybody in. Asks all the same, and where it stands, when no call has
 * come for long. */
static bool waits_for_call(const struct lock_queue *q, const struct lock_request *r, bool is_retry)
{
    return r->lined && !q->turn && !is_retry;
}

/* Asks for one waiter, or lets it wait. As run_one(). */
static bool ask_for(struct broker *b, struct lock *l, struct lock_request *r, bool is_retry,
                    int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    bool is_set = wheel_armed(&q->retry.entry);
    if (r->multilock || r->outside.on_turn) {
        if (!is_set)
            give_turn(b, l, r);
        return false;
    }
    if (waits_for_call(q, r, is_retry)) {
        if (!is_set)
            waiters_retry_later(b, q, 0, now_ms);
        waiters_refuse_tries(b, l, NULL, NULL);
        return false;
    }
    return !is_set && q->n_claims < WAITERS_CLAIMS_MAX && waiters_claim(b, l, r, NULL, now_ms) &&
           r->want.kind != LOCK_EXCLUSIVE;
}

/* Does what can be done for one waiter. False: nothing more is to be asked now. */
static bool run_one(struct broker *b, struct lock *l, struct lock_request *r, bool is_retry,
                    int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    struct lock_part in_use;
    if (r->claim)
        return r->want.kind != LOCK_EXCLUSIVE;
    if (!waiters_goes_along(q, r))
        return false;
    const struct hold *own = waiters_already_has(l, r);
    if (own && hold_is_valid(own, now_ms)) { /* its owner has got it, for another request */
        waiters_remove(b, r);
        work_ready(&b->work, r);
        return true;
    }
    enum waiters_admission says = waiters_holds_admit(l, r, &in_use);
    if (says != WAITERS_MAY_ASK && waiters_doubts(b, l, r, now_ms)) {
        waiters_check(b, l, r, now_ms);
        return false;
    }
    switch (says) {
    case WAITERS_WRONG_KIND:
        waiters_refuse_kind(b, r, in_use);
        return true;
    case WAITERS_MUST_WAIT:
        if (r->wait_until_ms == 0) {
            waiters_refuse(b, r, NULL);
            return true;
        }
        if (waiters_will_hear(b, l, r, now_ms))
            due_cancel(&b->due, &q->retry); /* the end of what is in the way will be seen here */
        else
            waiters_retry_later(b, q, 0, now_ms);
        waiters_refuse_tries(b, l, NULL, NULL);
        return false;
    default:
        return ask_for(b, l, r, is_retry, now_ms);
    }
}

static void run(struct broker *b, struct lock *l, bool is_retry, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    struct lock_request *r, *next;
    if (!q || b->paused || q->outside)
        return;
    assert(!q->running);
    q->running = true;
    for (r = TAILQ_FIRST(&q->waiters); r; r = next) {
        next = TAILQ_NEXT(r, queued); /* no step but the last one takes out another request */
        if (!run_one(b, l, r, is_retry, now_ms))
            break;
    }
    q->running = false;
    if (q->n_to_ask > 0)
        waiters_ask_owners(b, l, now_ms);
}

void waiters_run(struct broker *b, struct lock *l, int64_t now_ms)
{
    run(b, l, false, now_ms);
}

static void on_waiters_retry(struct broker *b, struct due *due, int64_t now_ms)
{
    struct lock_queue *q = (struct lock_queue *)((char *)due - offsetof(struct lock_queue, retry));
    struct lock_request *head = TAILQ_FIRST(&q->waiters);
    stats.retries++;
    if (head)
        run(b, head->lock, true, now_ms);
}

/* A dead holder calls nobody up: so the retry is there when the lease ends. */
void waiters_retry_later(struct broker *b, struct lock_queue *q, int64_t pttl_ms, int64_t now_ms)
{
    int64_t step = RETRY_LINED_MS, jitter = RETRY_LINED_MS / 2;
    if (q->hurry > 0) {
        step = jitter = RETRY_TURN_MS << (WAITERS_HURRY - q->hurry--);
    } else if (pttl_ms > 0 && pttl_ms < step) {
        step = pttl_ms + 1;
        jitter = RETRY_TURN_MS;
    }
    q->retry.fn = on_waiters_retry;
    due_at(&b->due, &q->retry, now_ms + step + (int64_t)util_jitter(&b->rng, (uint64_t)jitter + 1));
}

void waiters_masters_back(struct broker *b, int64_t now_ms)
{
    struct lock_queue *q;
    LIST_FOREACH(q, &b->failed, failed) {
        if (wheel_armed(&q->retry.entry))
            due_at(&b->due, &q->retry, now_ms);
    }
}

static bool is_upgrade(const struct lock *l, const struct lock_request *r)
{
    return r->want.kind == LOCK_EXCLUSIVE && lock_share_of(l, r->owner);
}

static bool is_deadlock(struct broker *b, const struct lock *l, struct lock_request *r)
{
    struct buf circle = {0};
    bool found = true;
    if (r->outside.on_turn)
        return false; /* what its connection holds is not known here */
    if (l->queue && l->queue->upgrader && is_upgrade(l, r))
        buf_printf(&circle,
                   "'%s' is read by both of you, and %s waits already to have it alone; release "
                   "your share first",
                   l->name, l->queue->upgrader->owner->text);
    else
        found = deadlock_find(r, l, &circle);
    if (found) {
        stats.acquires_deadlock++;
        finish_error(b, r, "DEADLOCK %.*s", (int)buf_len(&circle), buf_head(&circle));
    }
    buf_fini(&circle);
    return found;
}

static void get_in_line(struct broker *b, struct lock *l, struct lock_request *r, bool at_head)
{
    struct lock_queue *q = l->queue;
    if (at_head)
        TAILQ_INSERT_HEAD(&q->waiters, r, queued);
    else
        TAILQ_INSERT_TAIL(&q->waiters, r, queued);
    r->place = PLACE_WAITING;
    if (r->async)
        LIST_INSERT_HEAD(&r->owner->waits, r, of_owner);
    r->owner_asked |= r->unnamed || r->multilock;
    q->n_tries += r->wait_until_ms == 0;
    q->n_to_ask += !r->owner_asked;
    q->n_waiters++;
    b->n_waiters++;
    if (r->wait_until_ms && is_upgrade(l, r))
        q->upgrader = r;
    if (r->wait_until_ms && r->wait_until_ms != INT64_MAX) {
        r->due.fn = waiters_on_wait_over;
        due_at(&b->due, &r->due, r->wait_until_ms);
    }
}

/* Several who wait for permits may be called up at once: so their numbers are odd (call_up.lua). */
static uint64_t new_ticket(struct broker *b, const struct lock_request *r)
{
    b->last_ticket += 2;
    return b->last_ticket + (r->want.kind == LOCK_LIMIT);
}

void waiters_join(struct broker *b, struct lock *l, struct lock_request *r, int64_t now_ms)
{
    if (r->wait_until_ms && lock_first_hold(l) && is_deadlock(b, l, r))
        return;
    struct lock_queue *q = queue_get(l);
    get_in_line(b, l, r, false);
    if (r->fair)
        r->ticket = new_ticket(b, r);
    /* while a retry is set for those who stand before him, a waiter waits for it like them */
    if (r->wait_until_ms == 0)
        due_cancel(&b->due, &q->retry);
    waiters_run(b, l, now_ms);
    if (r->place != PLACE_WAITING || (r->claim && !r->claim->takeover))
        return;
    if (r->fair && r->wait_until_ms) { /* else its claim lines it up */
        r->lined = true;
        tickets_join(b, l, r->ticket, now_ms);
    }
    waiters_park(b, l->queue, r);
}

void waiters_wait(struct broker *b, struct lock *l, struct lock_request *r, bool at_head,
                  int64_t retry_ms, int64_t now_ms)
{
    if (r->wait_until_ms && lock_first_hold(l) && is_deadlock(b, l, r))
        return;
    struct lock_queue *q = queue_get(l);
    struct lock_part in_use;
    get_in_line(b, l, r, at_head);
    waiters_park(b, q, r);
    if (waiters_doubts(b, l, r, now_ms))
        waiters_check(b, l, r, now_ms);
    /* Also beside readers, where it may ask to be lined up, and beside the claim of another one
     * that asks for several: the next run of the queue would ask at once. */
    if (waiters_first(q) == r && waiters_holds_admit(l, r, &in_use) == WAITERS_MAY_ASK)
        waiters_retry_later(b, q, retry_ms, now_ms);
}

/* ---- called up ---- */

static struct lock_request *find_called(const struct lock_queue *q, uint64_t number)
{
    struct lock_request *r = TAILQ_FIRST(&q->waiters);
    while (r && number && r->ticket != number)
        r = TAILQ_NEXT(r, queued);
    return r;
}

/* It is not wanted here, or must not be taken: lines up anew when we go on. */
static void give_turn_back(struct broker *b, struct lock *l, struct lock_request *r,
                           uint64_t number, int64_t now_ms)
{
    if (r && number)
        r->lined = false;
    else if (r)
        l->queue->lined = false;
    if (number)
        tickets_leave(b, l, number, now_ms);
    else
        tickets_call_next(b, l, now_ms);
}

void waiters_call(struct broker *b, struct lock *l, uint64_t number, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    struct lock_request *r = q ? find_called(q, number) : NULL;
    struct lock_part in_use;
    stats.wakeups++;
    if (q && q->outside && !number) { /* who asks now gets it, or asks again soon */
        q->hurry = WAITERS_HURRY;
        q->turn = true;
        q->lined = false;
        return;
    }
    if (!lock_exclusive(l) && (!r || b->paused)) {
        give_turn_back(b, l, r, number, now_ms);
        return;
    }
    if (r && number) {
        r->turn = true;
        r->lined = false;
    }
    if (!r || lock_exclusive(l)) /* its end here hands it over, or calls up the next one */
        return;
    q->hurry = WAITERS_HURRY;
    due_cancel(&b->due, &q->retry);
    if (!number) {
        q->turn = true;
        q->lined = false;
        waiters_run(b, l, now_ms);
    } else if (!r->claim && !r->multilock && !q->outside &&
               waiters_admits(l, r, &in_use) == WAITERS_MAY_ASK) {
        waiters_claim(b, l, r, NULL, now_ms);
    }
}
