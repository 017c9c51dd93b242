#pragma once
/*
 * reentry: what an owner does with a hold that it has: enters again, leaves once (UNLOCK of a
 * re-entered hold), renews.
 *
 * One at a time for each hold (hold->busy); later requests of the owner are deferred, in their
 * order. Counts go to the masters as absolute values with a sequence (safety R2).
 */
#include <stdint.h>

struct broker;
struct hold;
struct lock_request;

/* LOCK by an owner that holds: the count rises, the token stays, the validity is fresh. */
void reentry_again(struct broker *, struct hold *, struct lock_request *, int64_t now_ms);
/* LOCK with an ID that the hold counts: answered as the first one, with what is left of the
 * validity. */
void reentry_repeated(struct broker *, struct hold *, struct lock_request *);
/* UNLOCK of a hold that has been entered more than once. */
void reentry_leave(struct broker *, struct hold *, struct lock_request *, int64_t now_ms);
/* RENEW on the connection that has it. */
void reentry_renew(struct broker *, struct hold *, struct lock_request *, int64_t now_ms);
