/*
 * The order of those who wait, and the questions that are asked for them. Invariants: a lock has
 * one claim under way, or several of readers, or several of permits of one number; for a request
 * whose claim is under way nothing else is asked; while a client of this broker has the lock in a
 * way that keeps the first in the queue out, nobody asks for him; a request without WAIT never
 * stays behind a verdict that it has seen.
 *
 * Refusals are from memory while a client of this broker holds the lock: the masters are not asked.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "broker_state.h"
#include "claim.h"
#include "deadlock.h"
#include "defer.h"
#include "keep.h"
#include "line.h"
#include "lock_share.h"
#include "queue_private.h"
#include "renew.h"
#include "stats.h"
#include "util.h"

/* Asking again for a lock that is held elsewhere: quickly when we were called up and came too late,
 * else only in case that a call was lost. */
enum { RETRY_TURN_MS = 2, RETRY_LINED_MS = 500 };

/* Readers, or permits, that are asked for at the same time. */
enum { CLAIMS_MAX = 256 };

/* ---- the line between brokers ---- */

static const char *where(bool is_turn, bool is_lined)
{
    return is_turn ? "front" : is_lined ? "keep" : "tail";
}

/* Where the ticket of this request, or of the broker, is to stand if the claim is refused. */
static struct line_place place_of(const struct lock_queue *q, const struct lock_request *r)
{
    const struct lock_request *last = TAILQ_LAST(&q->waiters, lock_requests);
    bool somebody_waits = r->wait_until_ms || (last && last->wait_until_ms);
    if (r->fair && r->wait_until_ms)
        return (struct line_place){r->ticket, where(r->turn, r->lined)};
    if (!somebody_waits)
        return (struct line_place){0, NULL}; /* tries only, as far as is worth looking */
    /* of several claims the first one lines the broker up */
    return (struct line_place){0, where(q->turn, q->lined || q->n_claims > 0)};
}

/* ---- leaving ---- */

struct lock_request *queue_first(const struct lock_queue *q)
{
    struct lock_request *r;
    TAILQ_FOREACH(r, &q->waiters, queued)
    {
        if (!r->claim)
            return r;
    }
    return NULL;
}

void queue_remove(struct broker *b, struct lock_request *r)
{
    struct lock_queue *q = r->lock->queue;
    TAILQ_REMOVE(&q->waiters, r, queued);
    broker_due_cancel(b, &r->due); /* it may go on for a while: a take-over enters once more */
    r->waiting = false;
    q->n_waiters--;
    b->n_waiters--;
    if (q->upgrader == r)
        q->upgrader = NULL;
    if (r->claim)
        r->claim->request = NULL;
    r->claim = NULL;
    request_unpark(&r->base);
}

/* It gives up: its place in the line goes with it. */
static void give_up(struct broker *b, struct lock_request *r)
{
    struct lock *l = r->lock;
    bool was_first = TAILQ_FIRST(&l->queue->waiters) == r;
    queue_remove(b, r);
    const struct lock_request *first = queue_first(l->queue);
    if (was_first && first && !queue_same_question(r->want, first->want))
        broker_due_cancel(b, &l->queue->retry); /* what he wants has not been asked */
    if (r->fair && (r->lined || r->turn))
        line_leave(b, l, r->ticket, b->now_ms);
    else if (TAILQ_EMPTY(&l->queue->waiters) && (l->queue->lined || l->queue->turn) &&
             l->queue->n_claims == 0)
        line_leave(b, l, 0, b->now_ms);
}

void queue_leave(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    give_up(b, r);
    queue_run(b, r->lock, now_ms);
}

void queue_refuse(struct broker *b, struct lock_request *r, const char *failure)
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

void queue_kind_error(struct broker *b, struct lock_request *r, const struct lock *l,
                      struct lock_part in_use)
{
    char is[64], wanted[64];
    stats.acquires_kind++;
    broker_finish_error(b, r, "KIND '%s' is held as %s; it cannot be %s before that has ended",
                        l->name, lock_part_words(in_use, is, sizeof is),
                        lock_part_words(r->want, wanted, sizeof wanted));
}

void queue_refuse_kind(struct broker *b, struct lock_request *r, struct lock_part in_use)
{
    give_up(b, r);
    queue_kind_error(b, r, r->lock, in_use);
}

bool queue_same_question(struct lock_part asked, struct lock_part want)
{
    bool is_stronger = asked.kind == LOCK_SHARED && want.kind == LOCK_EXCLUSIVE;
    return is_stronger || (asked.kind == want.kind && asked.limit == want.limit);
}

void queue_refuse_tries(struct broker *b, struct lock *l, const struct claim *c,
                        const char *failure)
{
    struct lock_request *r, *next;
    for (r = TAILQ_FIRST(&l->queue->waiters); r; r = next) {
        next = TAILQ_NEXT(r, queued);
        if (r->wait_until_ms == 0 && !r->claim && (!c || queue_same_question(c->part, r->want)))
            queue_refuse(b, r, failure);
    }
}

static void on_wait_over(struct broker *b, struct due *due, int64_t now_ms)
{
    struct lock_request *r =
        (struct lock_request *)((char *)due - offsetof(struct lock_request, due));
    struct lock *l = r->lock;
    broker_use(l);
    queue_refuse(b, r, l->queue->failure);
    queue_run(b, l, now_ms); /* those behind it may be able to share what it could not */
    defer_run(b, l, now_ms);
    broker_put(b, l);
}

void queue_park(struct lock_queue *q)
{
    struct lock_request *first = queue_first(q);
    if (first) /* the others were parked when they came */
        request_park(&first->base);
}

static void on_retry(struct broker *b, struct due *due, int64_t now_ms)
{
    struct lock_queue *q = (struct lock_queue *)((char *)due - offsetof(struct lock_queue, retry));
    struct lock_request *head = TAILQ_FIRST(&q->waiters);
    stats.retries++;
    if (head)
        queue_run(b, head->lock, now_ms);
}

/* Its holder may be dead, and then nobody calls us up: so we are there when it ends. */
void queue_retry_later(struct broker *b, struct lock_queue *q, int64_t pttl_ms, int64_t now_ms)
{
    int64_t step = RETRY_LINED_MS, jitter = RETRY_LINED_MS / 2;
    if (q->hurry > 0) {
        step = jitter = RETRY_TURN_MS << (QUEUE_HURRY - q->hurry--);
    } else if (pttl_ms > 0 && pttl_ms < step) {
        step = pttl_ms + 1;
        jitter = RETRY_TURN_MS;
    }
    q->retry.fn = on_retry;
    broker_due_at(b, &q->retry, now_ms + step + (int64_t)broker_random(b, (uint64_t)jitter + 1));
}

/* ---- asking ---- */

struct claim *queue_new_claim(struct broker *b, struct lock *l, struct lock_request *r,
                              struct lock_part part, claim_fn on_end, void *arg)
{
    int64_t lease_ms = r->lease_ms ? r->lease_ms : b->conf.lease_ms;
    if (r->maxhold_ms)
        lease_ms = renew_lease_ms(0, lease_ms, r->maxhold_ms);
    struct claim *c = claim_new(b, l, r->owner, lease_ms, on_end, arg);
    c->part = part;
    c->maxhold_ms = r->maxhold_ms;
    c->request = r;
    c->place = place_of(lock_queue_get(l), r);
    stats.acquire_tries++;
    return c;
}

bool queue_claim(struct broker *b, struct lock *l, struct lock_request *r,
                 const struct queue_passed *prev, int64_t now_ms)
{
    struct lock_part part = r->want;
    assert(!r->claim);
    /* brokers begin at different permits, so that they seldom ask for the same one */
    if (part.kind != LOCK_EXCLUSIVE && !share_ask(l, &part, item_hash(b->id, strlen(b->id))))
        return false;
    if (prev && prev->part.kind == LOCK_LIMIT)
        share_ask_instead(l, &part, prev->part.slot);
    else
        broker_due_cancel(b, &l->queue->retry);
    struct claim *c = queue_new_claim(b, l, r, part, queue_on_claim_end, l);
    if (prev) { /* it is ours to give: nobody needs to be lined up for it */
        c->prev_op = prev->op;
        c->prev_lease_ms = prev->lease_ms;
        c->prev_part = prev->part;
        c->place.where = NULL;
    }
    r->claim = c;
    broker_use(l);
    claim_start(c, now_ms);
    return true;
}

void queue_take_over(struct broker *b, struct lock *l, struct lock_request *r,
                     struct lock_part part, int64_t now_ms)
{
    struct claim *c = queue_new_claim(b, l, r, part, queue_on_takeover_end, l);
    c->takeover = true;
    r->claim = c;
    broker_use(l);
    claim_start(c, now_ms);
}

bool queue_owner_asks(const struct lock_queue *q, const struct owner *owner)
{
    const struct claim *c;
    LIST_FOREACH(c, &q->claims, of_lock)
    {
        if (owner_same(c->owner, owner))
            return true;
    }
    return false;
}

/* Can it be asked for besides what is under way? */
static bool goes_along(const struct lock_queue *q, const struct lock_request *r)
{
    const struct claim *c = LIST_FIRST(&q->claims);
    if (!c)
        return true;
    return !queue_owner_asks(q, r->owner) && q->n_claims < CLAIMS_MAX && !q->takeover_waits &&
           !c->takeover && c->part.kind != LOCK_EXCLUSIVE && c->part.kind == r->want.kind &&
           c->part.limit == r->want.limit;
}

/* As far as is known here. */
static enum queue_admission admission(const struct lock *l, const struct lock_request *r,
                                      struct lock_part *in_use)
{
    const struct lock_queue *q = l->queue;
    const struct hold *alone = lock_exclusive(l);
    bool is_lined = r->fair ? r->lined || r->turn : q->lined || q->turn;
    if (alone) {
        *in_use = alone->part;
        if (r->want.kind == LOCK_LIMIT)
            return QUEUE_WRONG_KIND;
        return r->want.kind == LOCK_SHARED && owner_same(alone->owner, r->owner) ? QUEUE_MAY_ASK
                                                                                 : QUEUE_MUST_WAIT;
    }
    if (share_count(l) == 0 || !share_kind(l, in_use))
        return QUEUE_MAY_ASK;
    if (!lock_kinds_mix(*in_use, r->want))
        return QUEUE_WRONG_KIND;
    if (in_use->kind == LOCK_LIMIT)
        return share_count(l) < in_use->limit ? QUEUE_MAY_ASK : QUEUE_MUST_WAIT;
    if (r->want.kind == LOCK_SHARED || (share_count(l) == 1 && lock_share_of(l, r->owner)))
        return QUEUE_MAY_ASK;
    /* once, for the place in the line: so that readers at other brokers see that he waits */
    return r->wait_until_ms && !is_lined ? QUEUE_MAY_ASK : QUEUE_MUST_WAIT;
}

struct hold *queue_already_has(const struct lock *l, const struct lock_request *r)
{
    struct hold *h = lock_exclusive(l);
    if (r->want.kind == LOCK_EXCLUSIVE)
        return h && owner_same(h->owner, r->owner) ? h : NULL;
    h = lock_share_of(l, r->owner);
    return h && h->part.kind == r->want.kind && h->part.limit == r->want.limit ? h : NULL;
}

/* One step along the queue. False: nothing more is to be asked now. */
static bool run_one(struct broker *b, struct lock *l, struct lock_request *r, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    struct lock_part in_use;
    if (r->claim)
        return r->want.kind != LOCK_EXCLUSIVE;
    if (!goes_along(q, r))
        return false;
    const struct hold *own = queue_already_has(l, r);
    if (own &&
        keep_is_valid(own, now_ms)) { /* its owner has got it meanwhile, for another request */
        queue_remove(b, r);
        b->resubmit(b, r, now_ms);
        return true;
    }
    switch (admission(l, r, &in_use)) {
    case QUEUE_WRONG_KIND:
        queue_refuse_kind(b, r, in_use);
        return true;
    case QUEUE_MUST_WAIT:
        if (r->wait_until_ms == 0) {
            queue_refuse(b, r, NULL);
            return true;
        }
        broker_due_cancel(b, &q->retry); /* the end of what is in the way will be seen here */
        queue_refuse_tries(b, l, NULL, NULL);
        return false;
    default:
        if (r->many && !wheel_armed(&q->retry.entry)) {
            queue_remove(b, r);
            b->many_turn(b, r, now_ms); /* it may come back here, or go elsewhere */
            return true;
        }
        return !wheel_armed(&q->retry.entry) && queue_claim(b, l, r, NULL, now_ms) &&
               r->want.kind != LOCK_EXCLUSIVE;
    }
}

void queue_run(struct broker *b, struct lock *l, int64_t now_ms)
{
    struct lock_request *r, *next;
    if (!l->queue || b->paused)
        return;
    broker_use(l);
    for (r = TAILQ_FIRST(&l->queue->waiters); r; r = next) {
        next = TAILQ_NEXT(r, queued);
        if (!run_one(b, l, r, now_ms))
            break;
    }
    broker_put(b, l);
}

enum queue_admission queue_admits(struct lock *l, const struct lock_request *r,
                                  struct lock_part *in_use)
{
    struct lock_queue *q = lock_queue_get(l);
    enum queue_admission says = admission(l, r, in_use);
    return says == QUEUE_MAY_ASK && !goes_along(q, r) ? QUEUE_MUST_WAIT : says;
}

static bool is_upgrade(const struct lock *l, const struct lock_request *r)
{
    return r->want.kind == LOCK_EXCLUSIVE && lock_share_of(l, r->owner);
}

static bool is_deadlock(struct broker *b, const struct lock *l, struct lock_request *r)
{
    struct buf circle = {0};
    bool found = true;
    if (l->queue && l->queue->upgrader && is_upgrade(l, r))
        buf_printf(&circle,
                   "'%s' is read by both of you, and %s waits already to have it alone; release "
                   "your share first",
                   l->name, l->queue->upgrader->owner->text);
    else
        found = deadlock_find(r, l, &circle);
    if (found) {
        stats.acquires_deadlock++;
        broker_finish_error(b, r, "DEADLOCK %.*s", (int)buf_len(&circle), buf_head(&circle));
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
    r->waiting = true;
    q->n_waiters++;
    b->n_waiters++;
    if (r->wait_until_ms && is_upgrade(l, r))
        q->upgrader = r;
    if (r->wait_until_ms && r->wait_until_ms != INT64_MAX) {
        r->due.fn = on_wait_over;
        broker_due_at(b, &r->due, r->wait_until_ms);
    }
}

void queue_join(struct broker *b, struct lock *l, struct lock_request *r, int64_t now_ms)
{
    if (r->wait_until_ms && lock_first_hold(l) && is_deadlock(b, l, r))
        return;
    struct lock_queue *q = lock_queue_get(l);
    bool is_alone =
        TAILQ_EMPTY(&q->waiters) && q->n_claims == 0 && !lock_first_hold(l) && !b->paused;
    get_in_line(b, l, r, false);
    if (r->fair) {
        r->ticket = ++b->last_ticket;
        r->lined = !is_alone && r->wait_until_ms;
        if (r->lined)
            line_join(b, l, r->ticket, now_ms);
    }
    broker_use(l);
    /* while a retry is set for those who stand before him, a waiter waits for it like them */
    if (r->wait_until_ms == 0)
        broker_due_cancel(b, &q->retry);
    queue_run(b, l, now_ms);
    if (r->waiting && !r->claim)
        request_park(&r->base);
    broker_put(b, l);
}

void queue_wait(struct broker *b, struct lock *l, struct lock_request *r, bool at_head,
                int64_t retry_ms, int64_t now_ms)
{
    if (lock_first_hold(l) && is_deadlock(b, l, r))
        return;
    struct lock_queue *q = lock_queue_get(l);
    get_in_line(b, l, r, at_head);
    request_park(&r->base);
    if (queue_first(q) == r && !lock_first_hold(l) && q->n_claims == 0)
        queue_retry_later(b, q, retry_ms, now_ms);
}

/* ---- called up ---- */

static struct lock_request *find_called(const struct lock_queue *q, uint64_t number)
{
    struct lock_request *r = TAILQ_FIRST(&q->waiters);
    while (r && number && r->ticket != number)
        r = TAILQ_NEXT(r, queued);
    return r;
}

void queue_call(struct broker *b, struct lock *l, uint64_t number, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    struct lock_request *r = q ? find_called(q, number) : NULL;
    struct lock_part in_use;
    stats.wakeups++;
    if (r && b->paused) { /* others may take it; we line up anew when we go on */
        if (number)
            r->lined = false;
        else
            q->lined = false;
    }
    if (!r || lock_exclusive(l) || b->paused) {
        if (!lock_exclusive(l)) /* else our own release will call up the next one */
            line_call_next(b, l, now_ms);
        return;
    }
    q->hurry = QUEUE_HURRY;
    broker_due_cancel(b, &q->retry);
    if (number) {
        r->turn = true;
        r->lined = false;
        if (!r->claim && !r->many && goes_along(q, r) && admission(l, r, &in_use) == QUEUE_MAY_ASK)
            queue_claim(b, l, r, NULL, now_ms);
    } else {
        q->turn = true;
        q->lined = false;
        queue_run(b, l, now_ms);
    }
}

void queue_turn_away(struct broker *b, struct lock *l, const char *error)
{
    struct lock_request *r;
    broker_use(l);
    while (l->queue && (r = TAILQ_FIRST(&l->queue->waiters))) {
        queue_remove(b, r);
        broker_finish_error(b, r, "%s", error);
    }
    defer_run(b, l, b->now_ms);
    broker_put(b, l);
}
