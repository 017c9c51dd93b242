#pragma once
/*
 * queue: who gets a lock next. Waiters stand in order of arrival; one question to the masters at a
 * time is under way for the first of them, whatever their number.
 *
 *              join                      claim granted
 *   request ---------> WAITING (head: asked) ---------> holds it
 *                        |  |  |
 *                        |  |  +-- end of WAIT: nil, or the last NOQUORUM
 *                        |  +----- its connection has ended: gone
 *                        +-------- LOCK without WAIT: the next verdict decides, nil or an
 *                                  error when the lock is not his
 *
 * Whether it is this broker's turn, while others wait at other brokers, is the business of
 * tickets.h.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/claim.h"
#include "lock/lock.h"

struct broker;
struct lock;
struct lock_request;

/* A hold that has ended. */
struct ended_hold {
    uint64_t op;
    int64_t lease_ms;
    struct lock_part part;
    const struct owner *owner; /* lent */
};

/* Puts a LOCK request into the queue and runs the queue. */
void waiters_join(struct broker *, struct lock *, struct lock_request *, int64_t now_ms);
/* Takes it out without an answer, and runs the queue. In two steps: its place goes at once, and
 * what follows, waiters_leave(), when it is taken off broker->leavers. */
void waiters_leave(struct broker *, struct lock_request *, int64_t now_ms);
void waiters_leave_later(struct broker *, struct lock_request *);

/* Runs the queue: starts what can be started. For broker_work.c: other flows ask for it by
 * WORK_RUN. */
void waiters_run(struct broker *, struct lock *, int64_t now_ms);

/* Does what a call of the masters says: the lock has been released, and it is the turn of the
 * request with this ticket, or (0) of this broker. */
void waiters_call(struct broker *, struct lock *, uint64_t number, int64_t now_ms);

/* ---- for requests about several names (multilock.h) ---- */

/* Says whether it can be asked for, as far as this broker knows. WRONG_KIND: *in_use is what it is
 * held as. */
enum waiters_admission { WAITERS_MAY_ASK, WAITERS_MUST_WAIT, WAITERS_WRONG_KIND };
enum waiters_admission waiters_admits(struct lock *, const struct lock_request *,
                                      struct lock_part *in_use);
/* Returns the hold that a LOCK like this enters again, or, for an owner without a name, that keeps
 * it from entering; NULL: none. */
struct hold *waiters_already_has(const struct lock *, const struct lock_request *);
/* Makes a claim for a request, without starting it. */
struct claim *waiters_new_claim(struct broker *, struct lock *, struct lock_request *,
                                struct lock_part, claim_fn on_end, void *arg);
/* Notes what has become of the ticket of a claim that was refused. */
void verdict_note_ticket(struct lock *, const struct claim *);
/* Counts a CLAIM_DEADLOCK and returns its error, heap. */
char *verdict_deadlock(const struct lock *);
/* A majority of the masters may be there again: who could not be granted for want of it asks in the
 * next turn. */
void waiters_masters_back(struct broker *, int64_t now_ms);

/* Puts an MLOCK into the queue, at the head or behind the others; multilock_turn() runs it when it
 * is its turn. retry_ms: what is left of the hold in the way; 0: it is not known. */
void waiters_wait(struct broker *, struct lock *, struct lock_request *, bool at_head,
                  int64_t retry_ms, int64_t now_ms);
/* Judges a request that has waited again before it is granted: its user may have lost the right
 * meanwhile. NULL: it may have the lock; else the error, heap. */
char *waiters_not_permitted(const struct lock_request *, const struct lock *);
void waiters_held_error(struct broker *, struct lock_request *, const struct lock *);
void waiters_kind_error(struct broker *, struct lock_request *, const struct lock *,
                        struct lock_part in_use);

/* True when what keeps this request out, by the holds that are known here, may not be so any more:
 * it gets in line, and the masters are asked about them. */
bool waiters_doubts(const struct broker *, const struct lock *, const struct lock_request *,
                    int64_t now_ms);
/* Runs the queue soon if it waits for holds of this broker: an ear has been deaf. */
void waiters_doubt(struct broker *, struct lock *, int64_t now_ms);

/* Ends up to `most` waiters with this error. Returns how many. */
int waiters_turn_away(struct broker *, struct lock *, const char *error, int most);

/* ---- for rooms above: who waits among LOCKs and asks the masters himself ----
 *
 * on_turn: it is his turn: nobody else in the queue asks until one of the functions below is
 * called. on_over: he stands there no longer, as his time is over or the broker goes down, and his
 * request is gone. Both run in a flow, or when one has returned, never inside these functions. */
struct lock_request *waiters_join_outside(struct broker *, struct lock *,
                                          const struct waiter_outside *, int64_t until_ms,
                                          int64_t now_ms);
/* At his turn he has found the lock held, for so long (0: it is not known): he waits on, before all
 * others, unless his time is over (r->wait_until_ms, which the caller has looked at). */
void waiters_outside_again(struct broker *, struct lock_request *, int64_t retry_ms,
                           int64_t now_ms);
/* He has it at his turn, or gives up, then or before: the request is gone, and on_over does not
 * follow. */
void waiters_outside_end(struct broker *, struct lock_request *, int64_t now_ms);
