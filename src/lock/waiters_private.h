#ifndef HOLDFAST_WAITERS_PRIVATE_H
#define HOLDFAST_WAITERS_PRIVATE_H
/*
 * What the files of queue share: waiters.c lets requests in and asks for the first of them,
 * waiters_admit.c says who may ask, waiters_leave.c is how they get out, verdict.c does what the
 * masters have answered, and what follows the end of a hold.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/waiters.h"

/* So often it is asked again quickly, in longer and longer steps, for a lock that should be free.
 */
enum { WAITERS_HURRY = 5 };

/* Readers, or takers of permits, of one lock that are asked for at a time: the others follow as
 * these are let in. */
enum { WAITERS_CLAIMS_MAX = 256 };

/* Starts a claim for this request, in the place of `prev` if not NULL. False: every permit is
 * asked for already. */
bool waiters_claim(struct broker *, struct lock *, struct lock_request *, const struct ended_hold *,
                   int64_t now_ms);
/* Its owner has this part of the lock already, through another broker: it is moved here. */
void waiters_take_over(struct broker *, struct lock *, struct lock_request *, struct lock_part,
                       int64_t now_ms);
/* Whoever stands behind others, and may have the lock through another broker, must not wait for
 * them: the masters are asked for that, for all who are there, while no other claim is under way.
 */
void waiters_ask_owners(struct broker *, struct lock *, int64_t now_ms);
/* Is that still to be asked for this one? Not while it is known here who has it instead. */
bool waiters_may_own(const struct broker *, const struct lock *, const struct lock_request *);
void waiters_owner_was_asked(struct lock_queue *, struct lock_request *);
/* Where the claims of these end; arg: the lock. */
void verdict_on_owner_asked(struct claim *, void *arg, int64_t now_ms);
void verdict_on_claim_end(struct claim *, void *arg, int64_t now_ms);
void verdict_on_takeover_end(struct claim *, void *arg, int64_t now_ms);

/* The two halves of waiters_admits(): can it be asked for besides the claims under way, */
bool waiters_goes_along(const struct lock_queue *, const struct lock_request *);
/* and besides the holds? */
enum waiters_admission waiters_holds_admit(const struct lock *, const struct lock_request *,
                                           struct lock_part *in_use);
/* True when this broker would hear if what keeps this request out were taken away. */
bool waiters_will_hear(const struct broker *, const struct lock *, const struct lock_request *,
                       int64_t now_ms);
/* Asks the masters about the holds that waiters_doubts() means; the queue is run when they have
 * answered. */
void waiters_check(struct broker *, struct lock *, const struct lock_request *, int64_t now_ms);
/* Is a claim under way for this owner? There is never a second one beside it. */
bool waiters_owner_asks(const struct lock_queue *, const struct owner *);
/* The first for whom nothing is under way; NULL: there is none. */
struct lock_request *waiters_first(const struct lock_queue *);
/* It stands in the queue no longer: it has its answer, or is about to get it. */
void waiters_remove(struct broker *, struct lock_request *);
/* The end of its WAIT; for r->due. */
void waiters_on_wait_over(struct broker *, struct due *, int64_t now_ms);
/* It does not get the lock: nil, or this error; its place in the line between brokers goes too. */
void waiters_refuse(struct broker *, struct lock_request *, const char *failure);
/* False: its user has lost the right to the lock; it has left with that error. */
bool waiters_may_be_granted(struct broker *, struct lock_request *);
void waiters_refuse_kind(struct broker *, struct lock_request *, struct lock_part in_use);
/* Whoever did not want to wait has his answer: those whose question this claim has answered; with
 * NULL all. */
void waiters_refuse_tries(struct broker *, struct lock *, const struct claim *,
                          const char *failure);
/* Those who are left wait, and what their connections say behind it waits with them. */
void waiters_park(struct lock_queue *);
/* They are asked for again some time later; pttl_ms: what is left of the hold in the way, or 0. */
void waiters_retry_later(struct broker *, struct lock_queue *, int64_t pttl_ms, int64_t now_ms);
/* Does the answer to who asked for one hold for who wants the other? */
bool waiters_same_question(struct lock_part asked, struct lock_part want);
#endif
