#ifndef HOLDFAST_QUEUE_PRIVATE_H
#define HOLDFAST_QUEUE_PRIVATE_H
/*
 * What the files of queue share: queue.c lets requests in and asks for the first of them,
 * queue_admit.c says who may ask, queue_leave.c is how they get out, queue_verdict.c does what the
 * masters have answered, and what follows the end of a hold.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/queue.h"

/* So often it is asked again quickly, in longer and longer steps, for a lock that should be free.
 */
enum { QUEUE_HURRY = 5 };

/* Readers, or takers of permits, of one lock that are asked for at a time: the others follow as
 * these are let in. */
enum { QUEUE_CLAIMS_MAX = 256 };

/* Starts a claim for this request, in the place of `prev` if not NULL. False: every permit is
 * asked for already. */
bool queue_claim(struct broker *, struct lock *, struct lock_request *, const struct queue_passed *,
                 int64_t now_ms);
/* Its owner has this part of the lock already, through another broker: it is moved here. */
void queue_take_over(struct broker *, struct lock *, struct lock_request *, struct lock_part,
                     int64_t now_ms);
/* Where the claims of these two end; arg: the lock. */
void queue_on_claim_end(struct claim *, void *arg, int64_t now_ms);
void queue_on_takeover_end(struct claim *, void *arg, int64_t now_ms);

/* The two halves of queue_admits(): can it be asked for besides the claims under way, */
bool queue_goes_along(const struct lock_queue *, const struct lock_request *);
/* and besides the holds? */
enum queue_admission queue_holds_admit(const struct lock *, const struct lock_request *,
                                       struct lock_part *in_use);
/* True when this broker would hear if what keeps this request out were taken away. */
bool queue_will_hear(const struct broker *, const struct lock *, const struct lock_request *,
                     int64_t now_ms);
/* Asks the masters about the holds that queue_doubts() means; the queue is run when they have
 * answered. */
void queue_check(struct broker *, struct lock *, const struct lock_request *, int64_t now_ms);
/* Is a claim under way for this owner? There is never a second one beside it. */
bool queue_owner_asks(const struct lock_queue *, const struct owner *);
/* The first for whom nothing is under way; NULL: there is none. */
struct lock_request *queue_first(const struct lock_queue *);
/* It stands in the queue no longer: it has its answer, or is about to get it. */
void queue_remove(struct broker *, struct lock_request *);
/* A walk along those who wait: any of them may leave at each step, and others may come. The lock is
 * used by the caller until the end. */
struct queue_walk {
    struct lock_request *next;
    struct queue_walk *outer;
};
void queue_walk_begin(struct lock_queue *, struct queue_walk *);
struct lock_request *queue_walk_next(struct queue_walk *); /* NULL: it has been the last one */
void queue_walk_end(struct lock_queue *, struct queue_walk *);
/* A call of queue_join(): what joins may leave again, and be freed, before the call is over. */
struct queue_joining {
    struct lock_request *request; /* NULL: it has left */
    struct queue_joining *outer;
};
/* The end of its WAIT; for r->due. */
void queue_on_wait_over(struct broker *, struct due *, int64_t now_ms);
/* It does not get the lock: nil, or this error; its place in the line between brokers goes too. */
void queue_refuse(struct broker *, struct lock_request *, const char *failure);
/* False: its user has lost the right to the lock; it has left with that error. */
bool queue_may_be_granted(struct broker *, struct lock_request *);
void queue_refuse_kind(struct broker *, struct lock_request *, struct lock_part in_use);
/* Whoever did not want to wait has his answer: those whose question this claim has answered; with
 * NULL all. */
void queue_refuse_tries(struct broker *, struct lock *, const struct claim *, const char *failure);
/* Those who are left wait, and what their connections say behind it waits with them. */
void queue_park(struct lock_queue *);
/* They are asked for again some time later; pttl_ms: what is left of the hold in the way, or 0. */
void queue_retry_later(struct broker *, struct lock_queue *, int64_t pttl_ms, int64_t now_ms);
/* Does the answer to who asked for one hold for who wants the other? */
bool queue_same_question(struct lock_part asked, struct lock_part want);
#endif
