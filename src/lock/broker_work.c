/*
 * Runs what is to be done next (work.h), when the flow that left it has returned: the only place
 * where one flow follows another, where a session hears that its request is finished, and where
 * requests, holds and locks are freed.
 *
 * Every call into the broker that may change something stands between broker_begin() and
 * broker_end(), which goes through the list until it is empty. What is too much for one turn of the
 * loop is cut before it gets here (broker_turn.c, rounds): each event leaves a few items.
 */
#include <assert.h>

#include "lock/broker.h"
#include "lock/broker_private.h"
#include "lock/defer.h"
#include "lock/handover.h"
#include "lock/hold.h"
#include "lock/multilock.h"
#include "lock/queue.h"
#include "lock/waiters.h"

/* ---- requests ---- */

/* The request of an application: its session hears of it, and frees it. */
static void finish_asked(struct broker *b, struct lock_request *r)
{
    assert(b->phase == BROKER_WORK); /* never inside its own call, nor inside another one */
    if (r->multilock)
        multilock_over(r);
    request_finish(&r->base);
}

/* One that multilock, or a room above, has made. */
static void finish_made(struct lock_request *r, int64_t now_ms)
{
    struct waiter_outside outside = r->outside;
    if (r->item)
        multilock_one_over(r, now_ms);
    lock_request_free(r);
    if (outside.on_over)
        outside.on_over(outside.arg, now_ms);
}

static void end_request(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    work_unref(&b->work, r->lock);
    r->lock = NULL;
    if (r->base.type)
        finish_asked(b, r);
    else
        finish_made(r, now_ms);
}

/* ---- holds ---- */

static void pass_on(struct broker *b, struct hold *h, struct lock_request *releaser,
                    bool is_lapsing, int64_t now_ms)
{
    int64_t lease_ms = h->shortened ? b->conf.max_lease_ms : h->lease_ms;
    const struct ended_hold ended = {h->op, lease_ms, h->part, h->owner};
    handover_pass_on(b, h->lock, &ended, releaser, is_lapsing, now_ms);
}

void broker_end_hold(struct broker *b, struct hold *h, struct lock_request *releaser,
                     int64_t now_ms)
{
    notify_released(h, now_ms);
    hold_end(b, h, HOLD_AFTER_NOTHING);
    pass_on(b, h, releaser, false, now_ms);
}

/* ---- the list ---- */

static void after_end(struct broker *b, struct hold *h, int64_t now_ms)
{
    switch ((enum hold_after)h->after) {
    case HOLD_AFTER_NOTHING:
        break;
    case HOLD_AFTER_RUN:
        waiters_run(b, h->lock, now_ms);
        break;
    case HOLD_AFTER_PASS_ON:
    case HOLD_AFTER_LAPSED:
        pass_on(b, h, NULL, h->after == HOLD_AFTER_LAPSED, now_ms);
        break;
    }
    hold_free(h);
}

static void end_lock_work(struct broker *b, struct lock *l, unsigned todo, int64_t now_ms)
{
    if (todo & WORK_RUN)
        waiters_run(b, l, now_ms);
    if (todo & WORK_UNDEFER)
        defer_ready(b, l);
    if (l->refs > 0 || l->todo)
        return;
    /* Nothing refers to it any more. */
    if (l->queue && queue_is_over(l)) {
        due_cancel(&b->due, &l->queue->retry);
        queue_free(l);
    }
    locktab_drop(&b->locks, l);
}

static void work_one(struct broker *b, enum work_kind kind, int64_t now_ms)
{
    unsigned todo;
    struct lock *l;
    switch (kind) {
    case WORK_FINISHED:
        end_request(b, work_take_finished(&b->work), now_ms);
        break;
    case WORK_ENDED:
        after_end(b, work_take_ended(&b->work), now_ms);
        break;
    case WORK_READY:
        broker_run(b, work_take_ready(&b->work), now_ms);
        break;
    case WORK_LOCK:
        l = work_take_lock(&b->work, &todo);
        end_lock_work(b, l, todo, now_ms);
        break;
    }
}

void broker_begin(struct broker *b, int64_t now_ms)
{
    assert(b->phase == BROKER_IDLE); /* no event calls back into the broker */
    b->phase = BROKER_FLOW;
    b->now_ms = now_ms;
}

void broker_end(struct broker *b, int64_t now_ms)
{
    assert(b->phase == BROKER_FLOW);
    while (!work_is_done(&b->work)) {
        enum work_kind kind = work_next(&b->work);
        b->phase = kind == WORK_FINISHED ? BROKER_WORK : BROKER_FLOW;
        work_one(b, kind, now_ms);
    }
    b->phase = BROKER_IDLE;
}
