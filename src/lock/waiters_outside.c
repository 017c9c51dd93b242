/*
 * Requests of rooms above that wait in the queue among LOCKs, and ask the masters themselves when
 * it is their turn. The ticket of this broker stands in the line for them, too.
 *
 *   waiters_join_outside --> WAITING --its turn--> queue->outside --waiters_outside_end--> gone
 *                            |  ^                        |
 *                   on_over <+  +--waiters_outside_again-+
 *
 * Invariant: while one of them has its turn, nobody else in the queue asks.
 */
#include <string.h>

#include "base/pool.h"
#include "lock/broker_state.h"
#include "lock/queue.h"
#include "lock/tickets.h"
#include "lock/waiters_private.h"

struct lock_request *waiters_join_outside(struct broker *b, struct lock *l,
                                          const struct waiter_outside *outside, int64_t until_ms,
                                          int64_t now_ms)
{
    char owner[BROKER_OP_MAX + 1];
    struct lock_request *r = pool_get(sizeof *r);
    broker_op_text(b, ++b->last_op, owner); /* nobody else is this owner: it never enters again */
    r->broker = b;
    r->lock = l;
    work_ref(l);
    r->owner = owner_get(owner, strlen(owner));
    r->number = ++b->last_request;
    r->base.arrived_us = now_ms * 1000;
    r->verb = VERB_LOCK;
    r->unnamed = true;
    r->wait_until_ms = until_ms;
    r->outside = *outside;
    waiters_join(b, l, r, now_ms);
    return r;
}

/* Gives a request from outside its turn. The broker lines up before it asks, so that whoever frees
 * the lock after a refusal calls it up. */
void waiters_give_outside(struct broker *b, struct lock *l, struct lock_request *r)
{
    struct lock_queue *q = l->queue;
    waiters_remove(b, r);
    b->n_waiters++; /* he waits all the same */
    q->outside = r;
    if (!q->lined && !q->turn)
        tickets_join(b, l, 0, b->now_ms);
    q->lined |= !q->turn;
    r->has_turn = true;
    work_ready(&b->work, r);
}

static void end_turn(struct broker *b, struct lock_request *r)
{
    r->lock->queue->outside = NULL;
    b->n_waiters--;
    work_lock(&b->work, r->lock, WORK_RUN);
}

void waiters_outside_again(struct broker *b, struct lock_request *r, int64_t retry_ms,
                           int64_t now_ms)
{
    struct lock *l = r->lock;
    struct lock_queue *q = l->queue;
    end_turn(b, r);
    if (!q->lined)
        tickets_join(b, l, 0, now_ms);
    q->lined = true;
    q->turn = false;
    waiters_wait(b, l, r, true, retry_ms, now_ms);
}

/* Takes the ticket of this broker out of the line, or passes its turn on, if nobody waits here. */
static void leave_line(struct broker *b, struct lock *l, int64_t now_ms)
{
    struct lock_queue *q = l->queue;
    if (TAILQ_EMPTY(&q->waiters) && (q->lined || q->turn) && q->n_claims == 0) {
        tickets_leave(b, l, 0, now_ms);
        q->lined = false;
    }
    q->turn = false;
}

void waiters_outside_end(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    if (r->place == PLACE_WAITING) {
        waiters_leave(b, r, now_ms);
    } else {
        end_turn(b, r);
        leave_line(b, r->lock, now_ms);
    }
    work_unref(&b->work, r->lock);
    r->lock = NULL;
    lock_request_free(r);
}
