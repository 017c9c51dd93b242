#ifndef HOLDFAST_QUEUE_H
#define HOLDFAST_QUEUE_H
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
 *   a hold ends --+--> next waiter: one script ends it and gives him the lock (hand-over)
 *                 +--> nobody here whom it fits, or others have waited long enough, or FAIR:
 *                      release, which calls up the next one in the line between brokers
 *
 * Whether it is this broker's turn, while others wait at other brokers, is the business of line.h.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/claim.h"
#include "lock/lock.h"

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

/* ---- for requests about several names (multilock.h) ---- */

/* Can it be asked for, as far as is known here? WRONG_KIND: `in_use` says as what it is held. */
enum queue_admission { QUEUE_MAY_ASK, QUEUE_MUST_WAIT, QUEUE_WRONG_KIND };
enum queue_admission queue_admits(struct lock *, const struct lock_request *,
                                  struct lock_part *in_use);
/* The hold that a LOCK like this enters again, or, for an owner without a name, that keeps it from
 * entering; NULL: it is another one that is asked for. */
struct hold *queue_already_has(const struct lock *, const struct lock_request *);
/* A claim for it, not started yet. */
struct claim *queue_new_claim(struct broker *, struct lock *, struct lock_request *,
                              struct lock_part, claim_fn on_end, void *arg);
/* It has been refused: what has become of the ticket. */
void queue_note_ticket(struct lock *, const struct claim *);
/* It gets in line, at the head or behind the others, and is run by multilock_turn() when it is its
 * turn. retry_ms: what is left of the hold in the way; 0: it is not known. */
void queue_wait(struct broker *, struct lock *, struct lock_request *, bool at_head,
                int64_t retry_ms, int64_t now_ms);
/* A request that has waited is judged again before it is granted: its user may have lost the right
 * meanwhile. NULL: it may have the lock; else the error, heap. */
char *queue_not_permitted(const struct lock_request *, const struct lock *);
void queue_held_error(struct broker *, struct lock_request *, const struct lock *);
void queue_kind_error(struct broker *, struct lock_request *, const struct lock *,
                      struct lock_part in_use);

/* True when what keeps this request out, by the holds that are known here, may not be so any more:
 * it gets in line, and the masters are asked about them. */
bool queue_doubts(const struct broker *, const struct lock *, const struct lock_request *,
                  int64_t now_ms);
/* An ear has been deaf: whoever waits here for holds of this broker is looked at anew, soon. */
void queue_doubt(struct broker *, struct lock *, int64_t now_ms);

/* So many of those who wait are turned away with this error. Returns how many there were. */
int queue_turn_away(struct broker *, struct lock *, const char *error, int most);
#endif
