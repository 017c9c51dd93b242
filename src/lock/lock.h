#pragma once
/*
 * lock: what this broker knows of one lock: who of its clients hold it, who waits, and the state
 * table of a hold. Plain data with the moves that are allowed; what happens when is broker's
 * business.
 *
 *   a hold:
 *             renewal failed              renewed
 *     HELD ------------------> JEOPARDY ----------> HELD
 *      | \                     | |
 *      |  \--------------------|-+--> LOST   it cannot be kept: the holder is told,
 *      |                       |       |     and nobody else gets it before its deadline
 *      v                       v       v
 *     ENDED: released, moved, gone or lapsed; freed when what follows has been done (work.h)
 *
 * An owner has a lock alone, or a share of it: with the other readers, or one of n permits. He may
 * have both while he goes from one to the other.
 *
 * A hold comes into being when a majority has granted it (claim.h) and not before.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>
#include <uthash.h>

#include "base/sm.h"
#include "lock/due.h"
#include "session/session.h"

struct broker;
struct claim;
struct round;
struct multilock_name;
struct lock_info;
struct lock_queue;
struct lock_request;
struct multilock;
struct shares;
struct spot;

enum { LOCK_NAME_MAX = 512, LOCK_OWNER_MAX = 256 };

/* ---- owners: one object for each id that is in use, counted ---- */
struct owner {
    UT_hash_handle hh;
    LIST_HEAD(, lock_request) waits; /* for it, of those that leave their connection free (ASYNC) */
    uint32_t refs;
    uint16_t len;
    bool shared;         /* more than one connection has acted for it */
    uint64_t session_id; /* the first that did; 0: none yet */
    char text[];         /* len bytes and a NUL */
};
/* Finds or makes the owner with this id, and takes a reference. */
struct owner *owner_get(const char *text, size_t len);
struct owner *owner_ref(struct owner *);
void owner_unref(struct owner *); /* also NULL */
/* Notes that a connection acts for the owner. */
void owner_used(struct owner *, uint64_t session_id);
/* What stands in the place of an owner where commands of Redis hold a lock begins so: behind it is
 * what they have written there (dropin/state.h). No owner of LOCK does. */
#define LOCK_DROP_IN "drop-in "
static inline bool owner_is_drop_in(const char *text, size_t len)
{
    return len >= sizeof LOCK_DROP_IN - 1 &&
           memcmp(text, LOCK_DROP_IN, sizeof LOCK_DROP_IN - 1) == 0;
}
static inline bool owner_same(const struct owner *a, const struct owner *b)
{
    return a == b;
}

/* ---- what of a lock somebody has: the lock alone, a reader's share, or one of n permits ---- */
enum lock_kind { LOCK_EXCLUSIVE, LOCK_SHARED, LOCK_LIMIT, LOCK_KINDS };
enum { LOCK_PERMITS_MAX = 4096, LOCK_PART_MAX = LOCK_OWNER_MAX + 2 };
struct lock_part {
    uint8_t kind;         /* enum lock_kind */
    uint16_t limit, slot; /* LOCK_LIMIT: permit `slot`, from 0, of `limit` */
};
/* Writes a part as the scripts do (src/redis/lua/shares.lua): "-", "r:<owner>", "s:<limit>:<slot>".
 * Returns its length. */
size_t lock_part_text(struct lock_part, const struct owner *, char out[LOCK_PART_MAX + 1]);
/* True when holds of these two kinds can exist for one lock: permits go with permits of the same
 * number only. */
bool lock_kinds_mix(struct lock_part, struct lock_part);
/* Returns "exclusive", "shared", "limit". */
const char *lock_kind_name(uint8_t kind);
/* Returns "an exclusive lock", "a shared lock", "a lock with 3 permits". */
const char *lock_part_words(struct lock_part, char *out, size_t size);

/* ---- one hold of a client of this broker ---- */
enum hold_state { HOLD_HELD, HOLD_JEOPARDY, HOLD_LOST, HOLD_ENDED, HOLD_STATES };
extern const struct sm_state hold_states[HOLD_STATES];

/* A reference to a hold, of a request or of one name of it, until the hold has ended. */
struct hold_ref {
    struct hold *hold; /* NULL: none, or it has ended */
    LIST_ENTRY(hold_ref) of_hold;
    uint64_t released_by; /* it has ended: session that said UNLOCK; 0: none */
};

/* A connection that has entered a hold which belongs to another connection of its owner, or to none
 * any more: it relies on the hold, and is told when that ends without it (hold_guest.c). */
struct hold_guest {
    LIST_ENTRY(hold_guest) of_hold, of_session;
    struct hold *hold;
    struct session *session;
    uint32_t count; /* entered so often */
    bool tell;
};

/* What follows when a hold has ended: broker does it when the flow that ended it has returned. */
enum hold_after {
    HOLD_AFTER_NOTHING, /* whoever ended it sees to the lock */
    HOLD_AFTER_RUN,     /* neither handed over nor released: it lapses on the masters by itself */
    HOLD_AFTER_PASS_ON, /* the lock is handed over or released */
    HOLD_AFTER_LAPSED,  /* likewise, but there is nothing to release */
};

/* What a renewal needs stands together in front: a million of them do not fit into any cache. */
struct hold {
    struct due due; /* next: renewal, end of MAXHOLD, lapse; see hold.c */
    struct lock *lock;
    struct session *session; /* the connection that it belongs to; NULL: it has gone */
    struct round *open;      /* the last round about it, until all have answered; or NULL */
    uint64_t op;             /* number of the operation under which the masters keep it */
    int64_t deadline_ms; /* the holder may rely on it until then; never later than it was told */
    int64_t end_ms;      /* MAXHOLD; INT64_MAX: none */
    int64_t renew_ms;    /* when the next renewal is due; not watched: a look where it is missing */
    int64_t since_ms;    /* granted */
    int64_t seen_ms;     /* a majority of masters had it then */
    int64_t seq;         /* number of count's version on the masters; its token is `token` */
    uint32_t count;      /* entered so often */
    uint32_t untold;     /* of these, entries that nobody was told of: they are being given back */
    uint32_t lease_ms;
    uint8_t state;      /* enum hold_state */
    uint8_t after;      /* enum hold_after; of an ENDED one */
    bool watched : 1;   /* the broker renews it while its connection lives */
    bool tell : 1;      /* TELL: its connection gets pushes about it */
    bool busy : 1;      /* a request of its owner is under way: later ones wait (queue->deferred) */
    bool inherits : 1;  /* taken over: its holder may have been told more than we know */
    bool recounted : 1; /* count or version are not those with which the masters have begun */
    bool checked : 1;   /* the masters are being asked whether it is still there */
    bool torn : 1;      /* a take-over by this broker has failed, and may have moved it on some */
    bool shortened : 1; /* some master may have it for longer than its holder was told */
    bool leaves : 1;    /* its connection has gone: it is on broker->leaving, to be released */
    struct lock_part part;
    uint32_t asked_before_ms; /* since_ms less the time when the masters were asked for it; only the
                               * judge of the simulation wants to know */
    union {
        LIST_ENTRY(hold) of_lock;
        STAILQ_ENTRY(hold) ended; /* ENDED: in broker->work.ended */
    };
    LIST_HEAD(, hold_ref) refs;
    LIST_HEAD(, hold_guest) guests;
    LIST_ENTRY(hold) of_session; /* valid while session is not NULL, or `leaves` */
    struct owner *owner;
    struct hold_ids *ids; /* of the LOCKs that it counts; NULL: none had one */
    int64_t token;
};

/* ---- one lock ---- */
struct lock {
    struct lock *next;        /* in its bucket of the table */
    LIST_HEAD(, hold) holds;  /* an exclusive one first */
    struct lock_queue *queue; /* queue.h; NULL: nobody waits and nothing is under way */
    struct shares *shares;    /* readers and permits (lock_share.h); NULL: none */
    struct spot *spot;        /* what the room above keeps here (dropin/spot.h); NULL: nothing */
    STAILQ_ENTRY(lock) work;  /* in broker->work.locks while todo is not 0 */
    uint32_t hash;
    uint32_t refs;      /* requests and rounds under way that point here */
    uint32_t n_leaving; /* of its holds, those that are to be released */
    uint32_t n_changes; /* drop-in: asked for so often while something referred to it */
    uint16_t name_len;
    uint8_t todo; /* what is to be done next: bits of work.h */
    char name[];  /* and a NUL */
};

TAILQ_HEAD(lock_requests, lock_request);

/* ---- what an application asks; command/lock makes it, broker runs it ---- */
enum lock_verb {
    VERB_LOCK,
    VERB_UNLOCK,
    VERB_RENEW,
    VERB_HOLDS,
    VERB_INFO,
    VERB_FORCE,
    VERB_MLOCK,
    VERB_MUNLOCK
};

enum lock_result {
    RESULT_NONE,        /* not done yet */
    RESULT_GRANTED,     /* token, deadline_ms (LOCK, RENEW) */
    RESULT_NOT_GRANTED, /* nil */
    RESULT_COUNT,       /* count: UNLOCK 1 or 0, HOLDS, FORCEUNLOCK */
    RESULT_NOT_HELD,
    RESULT_INFO,  /* info */
    RESULT_MANY,  /* many: all of them are granted (MLOCK) */
    RESULT_ERROR, /* text: code and all */
};

/* Where a request stands: in one list at most, by `queued`. The drawing is in work.h. */
enum lock_place {
    PLACE_NOWHERE,  /* under way: the masters are asked for it; or it has not begun */
    PLACE_READY,    /* broker->work.ready: it is to be run */
    PLACE_WAITING,  /* queue->waiters */
    PLACE_DEFERRED, /* queue->deferred */
    PLACE_FINISHED, /* broker->work.finished: it has its result */
};

/* Somebody of a room above who waits in the queue, see waiters.h. */
struct waiter_outside {
    void (*on_turn)(void *arg, int64_t now_ms);
    void (*on_over)(void *arg, int64_t now_ms);
    void *arg;
};

struct lock_request {
    struct request base;   /* first */
    struct broker *broker; /* since broker_submit */
    TAILQ_ENTRY(lock_request) queued;
    LIST_ENTRY(lock_request) of_owner; /* in owner->waits: `async`, and in a queue */
    uint64_t number;                   /* rises from request to request */
    struct lock *lock;                 /* one of lock->refs; NULL: none */
    struct claim *claim;               /* under way for it; NULL: none */
    struct lock_part want;             /* LOCK: what it asks for; the slot is not its choice */
    struct owner *owner;               /* one reference */
    struct owner *id;      /* ID: a text, kept as owners are, one reference; NULL: none */
    struct hold_ref hold;  /* whose count is being written; then the one that the reply tells of */
    struct due due;        /* end of WAIT */
    int64_t lease_ms;      /* asked for; 0: none, watched */
    int64_t wait_until_ms; /* 0: one try; INT64_MAX: for ever */
    int64_t maxhold_ms;    /* 0: none */
    uint8_t verb;          /* enum lock_verb */
    uint8_t result;        /* enum lock_result */
    uint8_t place;         /* enum lock_place */
    bool tell;
    bool async;        /* ASYNC: its connection goes on meanwhile */
    bool told;         /* ASYNC: that it was granted */
    bool leaves;       /* its connection has gone, and it is out of its queue: on broker->leavers */
    bool has_turn;     /* MLOCK, outside: it is ready because it is its turn in a queue */
    bool untold;       /* nobody could be told that it is granted */
    bool gives_back;   /* UNLOCK by the broker: leaves `hold` once, of which nobody was told */
    bool goes_on;      /* it has begun: it waits for no other request of its owner any more */
    bool missed;       /* UNLOCK: what it gave back was not there */
    bool fair;         /* FAIR: order of arrival across brokers */
    bool unnamed;      /* for the owner of its connection, who has no name: never enters again */
    bool repeated;     /* its ID is counted already: it has been answered alike */
    bool owner_asked;  /* the masters have been asked whether its owner has it elsewhere */
    bool lined, turn;  /* fair: its ticket stands in the line; it has been called up */
    uint64_t ticket;   /* fair: its number */
    uint64_t other_op; /* UNLOCK: of what its owner had besides when it was run; 0: nothing */
    int64_t token, deadline_ms;
    int64_t count;
    struct {
        bool peeked;             /* the masters have shown what there is */
        bool failed;             /* one of the releases could not be confirmed */
        int pending;             /* releases whose verdict is still to come */
        int64_t below;           /* ends holds with tokens below it: those that stood there when it
                                  * began; 0: it has not */
    } force;                     /* FORCEUNLOCK */
    char *text;                  /* of RESULT_ERROR and RESULT_NOT_HELD; heap */
    struct lock_info *info;      /* lock_info.h */
    struct multilock *multilock; /* MLOCK, MUNLOCK: the names; see multilock.h */
    struct multilock_name *item; /* one name's part of such a request, which hears of its end */
    struct waiter_outside outside; /* on_turn NULL: it is a LOCK */
    uint64_t by_session;           /* id of the session that has asked, also for others */
};

/* ---- moves ---- */
bool lock_is_idle(const struct lock *); /* nothing refers to it: locktab may drop it */
static inline void hold_ref_clear(struct hold_ref *ref)
{
    if (ref->hold)
        LIST_REMOVE(ref, of_hold);
    ref->hold = NULL;
    ref->released_by = 0;
}
/* Refers to this hold from now on; a reference that is set already is set anew. */
static inline void hold_ref_set(struct hold_ref *ref, struct hold *h)
{
    hold_ref_clear(ref);
    ref->hold = h;
    LIST_INSERT_HEAD(&h->refs, ref, of_hold);
}
void lock_add_hold(struct lock *, struct hold *);
void lock_remove_hold(struct lock *, struct hold *);
/* Returns the hold of this owner, the exclusive one before a share; NULL: none. */
struct hold *lock_hold_of(const struct lock *, const struct owner *);
/* Returns this owner's reader's share or permit; NULL: none. */
struct hold *lock_share_of(const struct lock *, const struct owner *);
static inline struct hold *lock_first_hold(const struct lock *l)
{
    return LIST_FIRST(&l->holds);
}
/* Returns the exclusive hold; NULL: none. */
static inline struct hold *lock_exclusive(const struct lock *l)
{
    struct hold *h = LIST_FIRST(&l->holds);
    return h && h->part.kind == LOCK_EXCLUSIVE ? h : NULL;
}

/* ---- a LOCK that a client repeats, because the reply was lost, says the same ID ---- */
enum { HOLD_IDS_MAX = 16, LOCK_ID_MAX = 64 };
/* Adds an ID to a hold, in place of the oldest of HOLD_IDS_MAX. NULL: does nothing. */
void hold_add_id(struct hold *, struct owner *id);
/* True when the hold counts a LOCK with this ID; false for NULL. */
bool hold_has_id(const struct hold *, const struct owner *id);
/* Removes an ID from a hold. NULL: does nothing. */
void hold_drop_id(struct hold *, const struct owner *id);
void hold_drop_ids(struct hold *);
void lock_request_free(struct lock_request *);
