#ifndef HOLDFAST_LOCK_H
#define HOLDFAST_LOCK_H
/*
 * lock: what this broker knows of one lock: who of its clients hold it, who waits, and the state
 * table of a hold. Plain data with the moves that are allowed; what happens when is broker's
 * business.
 *
 *   a hold:
 *             renewal failed              renewed
 *     HELD ------------------> JEOPARDY ----------> HELD
 *       |   \                   |    |
 *       |    \------------------+---/|   it cannot be kept: the holder is told, and nobody else
 * gets it |            v               |   before its deadline |           LOST             | v v v
 *     ENDED: released, moved, gone or lapsed; freed when nothing refers to it any more
 *
 * A hold comes into being when a majority has granted it (claim.h) and not before.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uthash.h>

#include "session.h"
#include "sm.h"
#include "wheel.h"

struct broker;
struct claim;
struct round;
struct lock_queue;
struct lock_request;

enum { LOCK_NAME_MAX = 512, LOCK_OWNER_MAX = 256, LOCK_INFO_WAITERS = 64 };

/* ---- owners: one object for each id that is in use, counted ---- */
struct owner {
    UT_hash_handle hh;
    uint32_t refs;
    uint16_t len;
    bool shared;         /* more than one connection has acted for it */
    uint64_t session_id; /* the first that did; 0: none yet */
    char text[];         /* len bytes and a NUL */
};
/* The owner with this id, found or made; one more reference. */
struct owner *owner_get(const char *text, size_t len);
struct owner *owner_ref(struct owner *);
void owner_unref(struct owner *); /* also NULL */
/* A connection acts for it. */
void owner_used(struct owner *, uint64_t session_id);
static inline bool owner_same(const struct owner *a, const struct owner *b)
{
    return a == b;
}

/* ---- something that is due; the wheel hands it out and broker_turn runs `fn` ---- */
struct due;
typedef void (*due_fn)(struct broker *, struct due *, int64_t now_ms);
struct due {
    struct wheel_entry entry; /* first */
    due_fn fn;
};

/* ---- one hold of a client of this broker ---- */
enum hold_state { HOLD_HELD, HOLD_JEOPARDY, HOLD_LOST, HOLD_ENDED, HOLD_STATES };
extern const struct sm_state hold_states[HOLD_STATES];

/* What a renewal needs stands together in front: a million of them do not fit into any cache. */
struct hold {
    struct due due; /* next: renewal, end of MAXHOLD, lapse; see keep.c */
    struct broker *broker;
    struct lock *lock;
    struct session *session; /* the connection that it belongs to; NULL: it has gone */
    struct round *open;      /* the last round about it, until all have answered; or NULL */
    uint64_t op;             /* number of the operation under which the masters keep it */
    int64_t deadline_ms; /* the holder may rely on it until then; never later than it was told */
    int64_t end_ms;      /* MAXHOLD; INT64_MAX: none */
    int64_t renew_ms;    /* when the next renewal is due; not watched: a look where it is missing */
    int64_t since_ms;    /* granted */
    int64_t seq;         /* version of count on the masters */
    uint32_t count;      /* entered so often */
    uint32_t lease_ms;
    uint32_t asked_lease_ms; /* of the renewal under way */
    uint32_t pins;           /* references besides the lock's; freed when 0 and ENDED */
    uint8_t state;           /* enum hold_state */
    uint8_t failures;        /* renewals in a row */
    bool watched;            /* the broker renews it while its connection lives */
    bool tell;               /* TELL: push each renewal */
    bool busy; /* a request of its owner is under way: later ones wait (queue->deferred) */
    LIST_ENTRY(hold) of_lock;
    LIST_ENTRY(hold) of_session; /* valid while session is not NULL */
    struct owner *owner;
    int64_t token;
    int64_t asked_ms; /* when the masters were asked for it: its first promise counts from there */
    int64_t
        inherited_ms; /* taken over: until then its holder may have been told more than we know */
    uint64_t released_by; /* session that said UNLOCK; 0: none */
};

/* ---- one lock ---- */
struct lock {
    struct lock *next; /* in its bucket of the table */
    LIST_HEAD(, hold) holds;
    struct lock_queue *queue; /* NULL: nobody waits and nothing is under way */
    uint32_t hash;
    uint16_t refs; /* requests and claims that point here besides holds and queue */
    uint16_t name_len;
    char name[]; /* and a NUL */
};

TAILQ_HEAD(lock_requests, lock_request);

/* Who waits for it, and what is under way for them. */
struct lock_queue {
    struct lock_requests waiters;        /* LOCK requests in order of arrival */
    TAILQ_HEAD(, lock_request) deferred; /* requests of an owner whose hold is busy */
    uint32_t n_waiters;
    struct claim *claim; /* under way for the head, or (releaser) a hand-over; NULL: none */
    struct lock_request *claimer;  /* whom it is for; NULL: he has gone */
    struct lock_request *releaser; /* the UNLOCK whose hold it hands over; NULL: none */
    struct due retry;              /* asks again, when it is held elsewhere */
    uint32_t hurry;          /* quick retries left, after we were called up and came too early */
    int64_t line;            /* tickets of others in the line, as the masters last said */
    uint32_t passed;         /* hand-overs here while others stood in the line */
    int64_t passed_since_ms; /* the first of them */
    bool lined;              /* this broker's own ticket stands in the line */
    bool turn;               /* it has been called up and has not got the lock yet */
    char *failure;           /* why the last try failed (no quorum); NULL: it was busy */
};

/* ---- what an application asks; cmd_lock makes it, broker runs it ---- */
enum lock_verb { VERB_LOCK, VERB_UNLOCK, VERB_RENEW, VERB_HOLDS, VERB_INFO, VERB_FORCE };

enum lock_result {
    RESULT_NONE,        /* not done yet */
    RESULT_GRANTED,     /* token, deadline_ms (LOCK, RENEW) */
    RESULT_NOT_GRANTED, /* nil */
    RESULT_COUNT,       /* count: UNLOCK 1 or 0, HOLDS, FORCEUNLOCK */
    RESULT_NOT_HELD,
    RESULT_INFO,  /* info */
    RESULT_ERROR, /* text: code and all */
};

struct lock_request {
    struct request base;   /* first */
    struct broker *broker; /* since broker_submit */
    TAILQ_ENTRY(lock_request) queued;
    struct lock *lock;     /* one of lock->refs; NULL: none */
    struct owner *owner;   /* one reference */
    struct hold *told;     /* the hold that the reply tells of, pinned until it has been written */
    struct hold *hold;     /* pinned while its count is being written */
    struct due due;        /* end of WAIT */
    int64_t lease_ms;      /* asked for; 0: none, watched */
    int64_t wait_until_ms; /* 0: one try; INT64_MAX: for ever */
    int64_t maxhold_ms;    /* 0: none */
    uint8_t verb;          /* enum lock_verb */
    uint8_t result;        /* enum lock_result */
    bool tell, waiting;    /* waiting: in queue->waiters */
    bool deferred;         /* in queue->deferred */
    bool goes_on;          /* it has begun: it waits for no other request of its owner any more */
    bool fair;             /* FAIR: order of arrival across brokers */
    bool lined, turn;      /* fair: its ticket stands in the line; it has been called up */
    uint64_t ticket;       /* fair: its number */
    int64_t token, deadline_ms;
    int64_t asked_lease_ms; /* of the write under way */
    int64_t count;
    bool failed;            /* one of the releases of FORCEUNLOCK could not be confirmed */
    int pending;            /* answers still to come (FORCEUNLOCK) */
    char *text;             /* of RESULT_ERROR and RESULT_NOT_HELD; heap */
    struct lock_info *info; /* heap */
};

/* Answer to LOCKINFO. */
struct lock_info_master {
    char *text; /* "free", "held by x under token 5 for 20 ms", or why there is no answer */
    bool answered, held;
    int64_t pttl_ms, token, count;
    char *op, *owner;
};
struct lock_info {
    /* what this broker knows: its own client's hold, when there is one, and who waits here */
    struct owner *owner; /* one reference; NULL: no client of this broker holds it */
    uint64_t session_id; /* 0: the connection has gone */
    int64_t token, count, left_ms, since_ms;
    bool watched;
    uint32_t n_waiters;
    int n_listed; /* the first of them, in order */
    struct lock_info_waiter {
        struct owner *owner; /* one reference */
        uint64_t session_id;
        int64_t waited_ms;
        bool fair;
    } listed[LOCK_INFO_WAITERS];
    int n_masters;
    struct lock_info_master masters[];
};

/* ---- moves ---- */
struct lock_queue *lock_queue_get(struct lock *); /* makes it when there is none */
bool lock_is_idle(const struct lock *);           /* nothing refers to it: locktab may drop it */
struct hold *lock_hold_of(const struct lock *, const struct owner *);
struct hold *lock_first_hold(const struct lock *);
void lock_request_free(struct lock_request *);
#endif
