#pragma once
/*
 * work: what is to be done next. No flow calls one above it: it puts an item here and returns, and
 * broker_work.c, the top of the room, runs the items one after the other when no flow is running.
 * So a request never ends inside its own call, no object is freed under a caller, and no call is
 * nested deeper than the table of modules.
 *
 *   a request:
 *
 *     submitted --> NOWHERE, it runs --> its result (finish.h) --> FINISHED --> its session's, or
 *                    ^  |  |  |                                                 freed
 *                    |  |  |  +-- it has to wait: WAITING (waiters.h) -----------+
 *                    |  |  +----- one is before it: DEFERRED (defer.h) ----------+
 *                    |  +-------- it goes on as another step --------------------+
 *                    |                                                           |
 *                    +--------------------------- READY <------------------------+
 *                                     its turn (MLOCK), its owner has it meanwhile,
 *                                     that one is over
 *
 *   a hold:  hold_end() ---> ended ---> what follows (enum hold_after) ---> freed
 *   a lock:  `todo` says whether its waiters are to be run, its deferred requests are to go on; at
 *            the end it is freed when nothing refers to it
 *
 * The kinds are run in this order: what is finished, holds that have ended, what is ready, locks;
 * each kind in the order in which it was put here. Entries are in the objects: nothing is
 * allocated.
 */
#include <stdbool.h>

#include "lock/lock.h"

/* In the order in which they are run. */
enum work_kind { WORK_FINISHED, WORK_ENDED, WORK_READY, WORK_LOCK };

/* What is to be done with a lock. */
enum {
    WORK_LOOK = 1,    /* it may be idle */
    WORK_RUN = 2,     /* waiters_run() */
    WORK_UNDEFER = 4, /* defer_ready() */
};

struct work {
    unsigned kinds; /* bit k: there are items of kind k */
    struct lock_requests finished, ready;
    STAILQ_HEAD(, hold) ended;
    STAILQ_HEAD(, lock) locks;
};

void work_init(struct work *);
static inline bool work_is_done(const struct work *w)
{
    return w->kinds == 0;
}
/* The kind of the next item; there is one. */
static inline enum work_kind work_next(const struct work *w)
{
    return (enum work_kind)__builtin_ctz(w->kinds);
}

/* The request is run; again, if it has been run before. */
void work_ready(struct work *, struct lock_request *);
/* It has its result. */
void work_finished(struct work *, struct lock_request *);
/* It has ended: hold_end() puts it here. */
void work_ended(struct work *, struct hold *);
/* `todo`: bits of the above, besides those that are set. */
void work_lock(struct work *, struct lock *, unsigned todo);

/* The first item of its kind, taken out of the list. */
struct lock_request *work_take_finished(struct work *);
struct lock_request *work_take_ready(struct work *);
struct hold *work_take_ended(struct work *);
/* *todo: what is to be done with it. */
struct lock *work_take_lock(struct work *, unsigned *todo);

/* A request, or a round under way, refers to the lock: it stays until that is taken back. */
static inline void work_ref(struct lock *l)
{
    l->refs++;
}
void work_unref(struct work *, struct lock *);
/* Something of the lock has ended: it is looked at, now or when the last reference is taken back.
 */
static inline void work_look(struct work *w, struct lock *l)
{
    if (l->refs == 0)
        work_lock(w, l, WORK_LOOK);
}
