#ifndef HOLDFAST_QUEUE_H
#define HOLDFAST_QUEUE_H
/*
 * queue: who gets a lock next. Waiters stand in order of arrival; one question to the masters at a
 * time is under way for the first of them, whatever their number.
 *
 *              join                      claim granted
 *   request ---------> WAITING (head: asked) ----------> holds it
 *                        |   |  \- end of WAIT: nil, or the last NOQUORUM
 *                        |   \---- its connection has ended: gone
 *                        \-------- LOCK without WAIT: the next verdict decides, nil when it is not
 * his
 *
 *   a hold ends ----> next waiter: one script ends the old hold and gives him the lock (hand-over)
 *               \---> nobody waits here, or others have waited long enough: release, which calls up
 * the next one
 *
 * Whether it is this broker's turn, while others wait at other brokers, is the business of line.h.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock.h"

struct broker;
struct lock;
struct lock_request;

/* A LOCK request gets in line, and what can be started is started. */
void queue_join(struct broker *, struct lock *, struct lock_request *, int64_t now_ms);
/* It leaves the line, without an answer. */
void queue_leave(struct broker *, struct lock_request *, int64_t now_ms);

/* A hold that is over. */
struct queue_passed {
    uint64_t op;
    int64_t lease_ms;
    struct lock_part part;
    const struct owner *owner; /* lent */
};

/* A hold of ours is over: the next waiter gets the lock, or it is released on the masters.
 * `releaser`, when not NULL, is the UNLOCK that ended it, and is finished when a majority has
 * confirmed. `is_lapsing`: its time to live is over, so there is nothing to release. */
void queue_pass_on(struct broker *, struct lock *, const struct queue_passed *,
                   struct lock_request *releaser, bool is_lapsing, int64_t now_ms);

/* Starts what can be started, e.g. after a hold has ended without being passed on. */
void queue_run(struct broker *, struct lock *, int64_t now_ms);

/* The masters call us up: the lock has been released, and it is the turn of the request with this
 * ticket, or (0) of this broker. */
void queue_call(struct broker *, struct lock *, uint64_t number, int64_t now_ms);

/* Everybody who waits is turned away with this error. */
void queue_turn_away(struct broker *, struct lock *, const char *error);
#endif
