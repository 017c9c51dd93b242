#ifndef HOLDFAST_WAITERS_H
#define HOLDFAST_WAITERS_H
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

/* A hold that is over. */
struct ended_hold {
    uint64_t op;
    int64_t lease_ms;
    struct lock_part part;
    const struct owner *owner; /* lent */
};

/* A LOCK request gets in line, and what can be started is started. */
void waiters_join(struct broker *, struct lock *, struct lock_request *, int64_t now_ms);
/* It leaves the line, without an answer. */
void waiters_leave(struct broker *, struct lock_request *, int64_t now_ms);

/* Starts what can be started, e.g. after a hold has ended without being passed on. */
void waiters_run(struct broker *, struct lock *, int64_t now_ms);

/* The masters call us up: the lock has been released, and it is the turn of the request with this
 * ticket, or (0) of this broker. */
void waiters_call(struct broker *, struct lock *, uint64_t number, int64_t now_ms);

/* ---- for requests about several names (multilock.h) ---- */

/* Can it be asked for, as far as is known here? WRONG_KIND: `in_use` says as what it is held. */
enum waiters_admission { WAITERS_MAY_ASK, WAITERS_MUST_WAIT, WAITERS_WRONG_KIND };
enum waiters_admission waiters_admits(struct lock *, const struct lock_request *,
                                      struct lock_part *in_use);
/* The hold that a LOCK like this enters again, or, for an owner without a name, that keeps it from
 * entering; NULL: it is another one that is asked for. */
struct hold *waiters_already_has(const struct lock *, const struct lock_request *);
/* A claim for it, not started yet. */
struct claim *waiters_new_claim(struct broker *, struct lock *, struct lock_request *,
                                struct lock_part, claim_fn on_end, void *arg);
/* It has been refused: what has become of the ticket. */
void verdict_note_ticket(struct lock *, const struct claim *);
/* It gets in line, at the head or behind the others, and is run by multilock_turn() when it is its
 * turn. retry_ms: what is left of the hold in the way; 0: it is not known. */
void waiters_wait(struct broker *, struct lock *, struct lock_request *, bool at_head,
                  int64_t retry_ms, int64_t now_ms);
/* A request that has waited is judged again before it is granted: its user may have lost the right
 * meanwhile. NULL: it may have the lock; else the error, heap. */
char *waiters_not_permitted(const struct lock_request *, const struct lock *);
void waiters_held_error(struct broker *, struct lock_request *, const struct lock *);
void waiters_kind_error(struct broker *, struct lock_request *, const struct lock *,
                        struct lock_part in_use);

/* True when what keeps this request out, by the holds that are known here, may not be so any more:
 * it gets in line, and the masters are asked about them. */
bool waiters_doubts(const struct broker *, const struct lock *, const struct lock_request *,
                    int64_t now_ms);
/* An ear has been deaf: whoever waits here for holds of this broker is looked at anew, soon. */
void waiters_doubt(struct broker *, struct lock *, int64_t now_ms);

/* So many of those who wait are turned away with this error. Returns how many there were. */
int waiters_turn_away(struct broker *, struct lock *, const char *error, int most);
#endif
