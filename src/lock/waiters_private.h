#pragma once
/*
 * What the files of waiters share with verdict.c and handover.c: waiters.c lets requests in and
 * asks for the first of them, waiters_admit.c says who may ask, waiters_check.c asks about holds,
 * waiters_leave.c lets requests out, verdict.c does what the end of a claim means, handover.c what
 * follows the end of a hold.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/waiters.h"

/* Quick retries, in longer and longer steps, for a lock that should be free. */
enum { WAITERS_HURRY = 5 };

/* Claims of readers, or of takers of permits, that one lock has under way at most: the others
 * follow as these end. */
enum { WAITERS_CLAIMS_MAX = 256 };

/* Starts a claim for this request, in the place of `prev` if not NULL. False: every permit is
 * asked for already. */
bool waiters_claim(struct broker *, struct lock *, struct lock_request *, const struct ended_hold *,
                   int64_t now_ms);
/* Takes the lock over for this request, whose owner may have this part of it through another
 * broker. */
void waiters_take_over(struct broker *, struct lock *, struct lock_request *, struct lock_part,
                       claim_fn on_end, int64_t now_ms);
/* Asks the masters whether waiters behind others have the lock through another broker: those must
 * not wait. For all who have not been asked for yet, while no other claim is under way. */
void waiters_ask_owners(struct broker *, struct lock *, int64_t now_ms);
/* True when that is still to be asked for this request; false while a hold here excludes it. */
bool waiters_may_own(const struct broker *, const struct lock *, const struct lock_request *);
void waiters_owner_was_asked(struct lock_queue *, struct lock_request *);
/* Ends of claims; arg: the lock. */
void verdict_on_owner_asked(struct claim *, void *arg, int64_t now_ms);
void verdict_on_claim_end(struct claim *, void *arg, int64_t now_ms);

/* The two halves of waiters_admits(): true when it can be asked for besides the claims under way;
 */
bool waiters_goes_along(const struct lock_queue *, const struct lock_request *);
/* and whether it can besides the holds. */
enum waiters_admission waiters_holds_admit(const struct lock *, const struct lock_request *,
                                           struct lock_part *in_use);
/* True when this broker would hear if what keeps this request out were taken away. */
bool waiters_will_hear(const struct broker *, const struct lock *, const struct lock_request *,
                       int64_t now_ms);
/* Asks the masters about the holds that waiters_doubts() means; the queue is run when they have
 * answered. */
void waiters_check(struct broker *, struct lock *, const struct lock_request *, int64_t now_ms);
/* True when a claim is under way for this owner: a second one never begins. */
bool waiters_owner_asks(const struct lock_queue *, const struct owner *);
/* Returns the first request that has no claim under way; NULL: none. */
struct lock_request *waiters_first(const struct lock_queue *);
/* Takes a request out of the queue: it has its answer, or is about to get it. */
void waiters_remove(struct broker *, struct lock_request *);
/* Gives the turn to a request of a room above. */
void waiters_give_outside(struct broker *, struct lock *, struct lock_request *);
/* The end of its WAIT; for r->due. */
void waiters_on_wait_over(struct broker *, struct due *, int64_t now_ms);
/* Ends a request with nil, or with this error, and takes its ticket out of the line. */
void waiters_refuse(struct broker *, struct lock_request *, const char *failure);
/* False when its user has lost the right to the lock: the request has ended with that error. */
bool waiters_may_be_granted(struct broker *, struct lock_request *);
/* Ends a request with this error (heap, freed here), and takes its ticket out of the line. */
void waiters_refuse_with(struct broker *, struct lock_request *, char *error);
void waiters_refuse_kind(struct broker *, struct lock_request *, struct lock_part in_use);
/* Ends the requests that do not wait: those whose question this claim has answered; NULL: all. */
void waiters_refuse_tries(struct broker *, struct lock *, const struct claim *,
                          const char *failure);
/* Parks the first request that has no claim: its connection runs nothing behind it. */
void waiters_park_first(struct broker *, struct lock_queue *);
/* Parks this request of the queue, likewise. */
void waiters_park(struct broker *, struct lock_queue *, struct lock_request *);
/* Runs the queue again some time later; pttl_ms: what is left of the hold in the way, or 0. */
void waiters_retry_later(struct broker *, struct lock_queue *, int64_t pttl_ms, int64_t now_ms);
/* True when a refusal of `asked` answers a request for `want` too. */
bool waiters_same_question(struct lock_part asked, struct lock_part want);
