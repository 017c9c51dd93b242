#pragma once
/*
 * view: what server, pages and commands may know of a broker, as values. It looks and changes
 * nothing; whoever uses it needs no field of a broker, a lock, a hold or a queue.
 *
 * Texts are lent: names until the next turn of the loop, what a master says until the next call
 * about it (struct master_status). Ages and times left are in ms, from now_ms on.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/master.h"

struct broker;
struct session;

/* ---- levels ---- */
struct view_levels {
    uint32_t n_exclusive, n_shared, n_limited; /* holds of clients of this broker, by kind */
    uint32_t n_holds;                          /* of all kinds */
    uint32_t n_drop_in;                        /* taken here by commands of Redis, beside these */
    uint32_t n_relied_on;                      /* of them, watched, connected and not lost */
    uint32_t n_jeopardy;                       /* and those whose last renewal has failed */
    uint32_t n_waiters;                        /* requests that wait for a lock */
    size_t n_names;                            /* locks with a hold or a waiter here; none of those
                                                * that drop-in remembers */
    int64_t memory_bytes;                      /* of locks, holds and waiters, about */
};
struct view_levels view_levels(const struct broker *);
/* PAUSE was said (broker_pause); it is on its way out (broker_drain). */
bool view_is_paused(const struct broker *);
bool view_is_draining(const struct broker *);
/* Some question to the masters has no verdict yet, or all locks are being gone through. */
bool view_is_asking(const struct broker *);
/* Nothing is left to be done with the masters, and all that was sent is answered. */
bool view_is_done(const struct broker *, int64_t now_ms);
/* The bounds of LEASE: the shortest one of which a millisecond can be relied on, and max_lease. */
int64_t view_min_lease_ms(const struct broker *);
int64_t view_max_lease_ms(const struct broker *);

/* ---- locks ---- */
/* A client of this broker holds it or waits for it. */
bool view_has_lock(struct broker *, const char *name, size_t len);
/* How many requests of clients of this broker wait for it. */
uint32_t view_n_waiters(struct broker *, const char *name, size_t len);
/* True when this connection holds it: for the owner of this text, or for its own one if NULL. */
bool view_is_held_by(struct broker *, const char *name, size_t len, const struct session *,
                     const char *owner, size_t owner_len);
/* Goes through all locks in pieces, as SCAN does: calls `each` for those of one more bucket and
 * returns the cursor for the next call; 0: that was all (locktab_scan). */
typedef void (*view_lock_fn)(void *arg, const char *name, size_t len);
uint64_t view_scan(struct broker *, uint64_t cursor, view_lock_fn each, void *arg);

/* ---- who has a lock, and who waits for it, as far as this broker knows without asking ---- */

enum { VIEW_GROUPS = 4, VIEW_CONTENDED_MAX = 100 };

/* Those of them that are alike: of one name, and of one kind. */
struct view_group {
    const char *client; /* CLIENT SETNAME, else the client library; NULL: neither was said */
    uint8_t kind;       /* enum lock_kind: what they have, or want */
    uint32_t n;
};
struct view_lock {
    const char *name;
    size_t name_len;
    uint32_t n_holders;       /* clients of this broker; if there are none, others may have it */
    uint8_t kind;             /* as what they have it */
    uint16_t limit;           /* LOCK_LIMIT: the number of permits */
    int64_t held_ms, left_ms; /* of the one that has had it longest */
    uint32_t n_waiters;
    int64_t waited_ms; /* of the first in the queue */
    /* The largest groups first; smaller ones are left out, and who comes behind many others. */
    struct view_group holders[VIEW_GROUPS], waiters[VIEW_GROUPS];
    int n_holder_groups, n_waiter_groups;
};
/* False: no client of this broker holds it or waits for it. */
bool view_lock(struct broker *, const char *name, size_t len, int64_t now_ms, struct view_lock *);
/* Writes the locks for which most requests wait, at most max (VIEW_CONTENDED_MAX); returns how
 * many, and in *steps how much was looked at for it. Of very many such locks it looks at those
 * alone that came to be waited for last. */
int view_contended(const struct broker *, int64_t now_ms, struct view_lock *out, int max,
                   int *steps);

/* ---- holds of a connection ---- */
struct view_hold {
    const char *name; /* of the lock */
    size_t name_len;
    int64_t held_ms;
    int64_t left_ms;    /* until its lease ends; 0: it is over */
    uint32_t n_waiters; /* for this lock, of this broker */
    uint32_t n_holders; /* clients of this broker that have it, this one among them */
    bool in_jeopardy;   /* its last renewal has failed */
};
/* Calls `each` for every hold until it returns false. */
typedef bool (*view_hold_fn)(void *arg, const struct view_hold *);
void view_holds(const struct session *, int64_t now_ms, view_hold_fn each, void *arg);

/* ---- the masters ---- */
struct view_master {
    const struct master_status *status;
    bool votes;       /* active and not stalled */
    int64_t since_ms; /* it has voted, or has not, for so long */
    int64_t clock_offset_ms;
};
int view_n_masters(const struct broker *);
const char *view_master_name(const struct broker *, int i);
struct view_master view_master(const struct broker *, int i, int64_t now_ms);
/* What its Sentinels say (master_sentinels); NULL: it is not found by any. */
const char *view_master_sentinels(const struct broker *, int i, int64_t now_ms);
/* Why it does not vote, in a few words (master_reason). */
const char *view_master_reason(const struct broker *, int i, int64_t now_ms);
/* How many vote, and whether that is enough for a lock. */
int view_n_voters(const struct broker *, int64_t now_ms);
bool view_has_quorum(struct broker *, int64_t now_ms);
/* Why no lock can be had although a majority may be there; NULL: nothing speaks against it. */
const char *view_veto(const struct broker *);
