#pragma once
/*
 * broker_state: the data of one broker, which its flows share: configuration, masters, locks, work
 * list, wheels, and the ids that it makes, as text. The flows (those above it in src/README.md)
 * each own a part of what is done with it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "lock/due.h"
#include "lock/lock.h"
#include "lock/locktab.h"
#include "lock/queue.h"
#include "lock/work.h"
#include "redis/life.h"
#include "redis/round.h"

enum { BROKER_ID_LEN = 13, BROKER_OP_MAX = BROKER_ID_LEN + 16, BROKER_TICKET_MAX = BROKER_OP_MAX };
/* Refusals rely on no knowledge older than this: the masters are asked. */
enum { BROKER_MEMORY_MS = 1000 };

/* The subscriber link to a master, by which this broker hears what others do to its holds. */
struct broker_ear {
    int64_t since_ms; /* it has heard everything since then; INT64_MAX: it hears nothing */
    int64_t heard_ms; /* and up to then */
};

struct grave;
STAILQ_HEAD(graves, grave);

/* See replant.h, which has the drawing of these states. */
enum replant_state { REPLANT_IDLE, REPLANT_SWEEPING, REPLANT_PAUSED, REPLANT_FINISHED };
struct replant_call;
STAILQ_HEAD(replant_calls, replant_call);

/* What is known of a master's life, and what is planted there. */
struct broker_replant {
    struct life life; /* the last one that it was seen in */
    bool quarantined;
    uint8_t state;  /* enum replant_state */
    bool seen_all;  /* no lock is left to be looked at */
    bool blocked;   /* the master took no more: after a pause */
    uint32_t sweep; /* answers of earlier ones count for nothing */
    int n_open;     /* plants under way */
    uint64_t cursor;
    int64_t resume_ms;             /* PAUSED */
    struct replant_calls answered; /* in this turn */
    struct replant_calls failed;   /* of this sweep: to be planted once more */
};

/* What runs now. Flows are entered by broker_begin() or from the work list, never from one another,
 * and a request's session hears that it is finished only while none runs. */
enum broker_phase {
    BROKER_IDLE, /* no call into the broker is under way */
    BROKER_FLOW, /* a flow runs */
    BROKER_WORK  /* what is finished is taken off the work list */
};

struct broker {
    struct conf_lock conf; /* may be replaced at any time by broker_configure() */
    struct broker_ear ears[ROUNDS_MASTERS_MAX];
    struct broker_replant replants[ROUNDS_MASTERS_MAX];
    int n_quarantined;          /* of the masters */
    int n_plants;               /* of replants, under way or answered */
    int64_t exchanges_until_ms; /* drop-in: what was exchanged may be held until then, and is not
                                 * remembered here */
    struct due doubt; /* an ear has been deaf: those who wait for holds are looked at anew */
    uint64_t doubt_cursor;
    struct lock_queues failed;
    struct lock_queues waited;  /* in which somebody waits, or has waited */
    int64_t inherited_until_ms; /* a hold that was taken over has lapsed: its holder may have been
                                 * told more by the broker that had it, until then at most */
    struct graves graves;
    uint32_t n_graves;
    int64_t graves_lost_until_ms; /* some were forgotten, for want of room */
    struct rounds rounds;
    struct locktab locks;
    struct due_wheels due;
    char id[BROKER_ID_LEN + 1]; /* random: distinguishes this process from every other broker */
    struct work work;           /* what is to be done next */
    uint8_t phase;              /* enum broker_phase */
    uint32_t first_permit; /* where it begins to look for a free one (share_ask), from its id: so
                              brokers seldom ask for the same one */
    uint64_t last_op;
    uint64_t last_ticket;
    uint64_t last_request;
    struct token_granted granted;
    uint64_t rng;   /* for util_jitter() */
    int64_t now_ms; /* of this turn; for figures only */
    LIST_HEAD(, hold)
    leaving; /* of connections that have gone: to be released, some in each turn */
    struct request_list
        leavers;              /* requests with a tag of such connections: to leave their queues */
    int leaves_left;          /* so many more of both in this turn */
    bool sweeps, sweep_again; /* all locks are being gone through; this bucket once more */
    int sweep_left;           /* steps of it left in this turn */
    uint64_t sweep_cursor;    /* the next bucket */
    bool draining;
    bool paused; /* nobody new gets a lock; see broker_pause() */
    uint32_t n_holds, n_waiters;
    uint32_t n_renewed;          /* of n_holds: hold_is_renewed() */
    uint32_t n_held[LOCK_KINDS]; /* of n_holds */
    uint32_t n_jeopardy;
    uint32_t n_drop_in;    /* beside n_holds: what commands of Redis hold (dropin/memory) */
    uint32_t n_remembered; /* locks of which dropin/memory knows: those among them */
};

static inline bool broker_has_one_master(const struct broker *b)
{
    return b->rounds.n == 1;
}
/* How many locks its clients have, by LOCK and by commands of Redis. */
static inline int64_t broker_n_locks(const struct broker *b)
{
    return (int64_t)b->n_holds + b->n_drop_in;
}
/* True when these are as many as are allowed (max_locks). */
static inline bool broker_is_full(const struct broker *b)
{
    return b->conf.max_locks > 0 && broker_n_locks(b) >= b->conf.max_locks;
}
/* A request of the broker itself about this lock, in the name of the owner and the connection of
 * another one. It has no type, so nobody gets a reply; broker_work.c frees it when it is finished.
 */
struct lock_request *broker_new_request(struct broker *, struct lock *,
                                        const struct lock_request *like, enum lock_verb);
/* The broker that has asked this round. */
struct broker *broker_of_round(const struct round *);
/* Writes the id of an operation: "<broker>.<number>". */
void broker_op_text(const struct broker *, uint64_t op, char out[BROKER_OP_MAX + 1]);
/* Returns whether this id of an operation is of this broker. */
bool broker_has_op(const struct broker *, const char *op);
/* Writes a ticket: "<broker>", or "<broker>/<number>" for a number other than 0. */
void broker_ticket_text(const struct broker *, uint64_t number, char out[BROKER_TICKET_MAX + 1]);
/* Appends the part of a hold, the last argument of several scripts. */
void broker_add_part(struct args *, struct lock_part, const struct owner *);
/* Returns for how many ms the masters keep a tombstone of an operation of another broker, or of a
 * permit that was handed over: as long as a copy of the request that created it can be under way.
 * Late copies of all others are known by the numbers of calls (lua/call.lua). */
int64_t broker_tomb_ms(const struct broker *);

/* True when the broker would have heard, up to a second ago, of anybody who took away a hold that a
 * majority of masters had at since_ms. */
bool broker_has_heard(const struct broker *, const struct lock *, int64_t since_ms, int64_t now_ms);
