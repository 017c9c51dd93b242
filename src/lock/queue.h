#pragma once
/*
 * queue: the requests that stand at one lock and the claims that are under way for them, as plain
 * data. A lock has one only while there are any. What is done with it is defer's, claim's and
 * waiters' business.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "lock/work.h"

/* Those whose last try has failed for want of a majority; those in which somebody waits. */
LIST_HEAD(lock_queues, lock_queue);

/* Who waits for it, and what is under way for them. */
struct lock_queue {
    struct lock_requests waiters;  /* LOCK requests in order of arrival */
    struct lock_requests deferred; /* requests of an owner whose hold is busy */
    uint32_t n_waiters;
    uint32_t n_to_ask;         /* of the waiters: not owner_asked */
    uint32_t n_tries;          /* of the waiters: without WAIT */
    LIST_HEAD(, claim) claims; /* under way: one, or several of readers or of permits */
    uint32_t n_claims;
    struct lock_request *outside;  /* whose turn it is to ask by himself (waiters_outside.c) */
    struct lock_request *upgrader; /* a reader who waits to have the lock alone; NULL: none */
    struct due retry;              /* asks again, when it is held elsewhere */
    uint32_t hurry;          /* quick retries left: called up too early, or votes were split */
    int64_t line;            /* tickets of others in the line, as the masters last said */
    uint32_t passed;         /* hand-overs here while others stood in the line */
    int64_t passed_since_ms; /* the first of them */
    char *failure;           /* why the last try failed (no quorum); NULL: it was busy */
    LIST_ENTRY(lock_queue) failed; /* in lock_queues, while there is a failure */
    LIST_ENTRY(lock_queue) waited; /* in broker->waited, from the first that was parked on */
    bool is_waited;
    bool running;        /* waiters_run() is under way */
    bool takeover_waits; /* until no claim is under way: no further one begins */
    bool hurried;        /* it has asked quickly again, after votes were split */
    bool lined;          /* this broker's own ticket stands in the line */
    bool stayed;         /* before all others, when its hold of the lock ended: handover.c */
    bool turn;           /* it has been called up and has not got the lock yet */
};

/* Notes why the last try failed (heap, the queue's from now on); NULL: it did not. */
void queue_set_failure(struct lock_queues *, struct lock_queue *, char *text);

/* Something is over: the requests that are deferred at this lock go again. */
static inline void queue_undefer(struct work *w, struct lock *l)
{
    if (l->queue && !TAILQ_EMPTY(&l->queue->deferred))
        work_lock(w, l, WORK_UNDEFER);
}
/* Returns the queue of a lock, made when there is none. */
struct lock_queue *queue_get(struct lock *);
/* True when nobody stands in it, nothing is under way, and nothing in it has to be remembered. */
bool queue_is_over(const struct lock *);
/* Frees it; its timer has been cancelled. */
void queue_free(struct lock *);
