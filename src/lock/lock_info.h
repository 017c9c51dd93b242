#pragma once
/*
 * lock_info: the answer to LOCKINFO, and what it is made from: what each master says of a lock, and
 * what this broker knows itself.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "redis/round.h"

/* As many holds as peek.lua shows, and as many waiters as LOCKINFO lists. */
enum { LOCK_INFO_HOLDERS = 16, LOCK_INFO_WAITERS = 64 };

/* A hold, as one master has it. */
struct lock_info_seen {
    char *op;
    struct owner *owner; /* one reference */
    struct lock_part part;
    int64_t pttl_ms, token, count;
    struct count_version version; /* of count */
};

struct lock_info_master {
    bool answered;    /* what it does not show is not there */
    char *text;       /* "free", "held by x under token 5, 20 ms left", or why there is no answer */
    int64_t n_holds;  /* there */
    int64_t plain_ms; /* for which a program that does not use holdfast has it (R23); 0: none has */
    int n_seen;       /* the first of them */
    struct lock_info_seen *seen;
};

struct lock_info_holder {
    struct owner *owner; /* one reference */
    bool here;           /* a client of this broker: session_id, since_ms and watched are known */
    bool watched;
    uint64_t session_id; /* 0: the connection has gone */
    int64_t token, count, left_ms, since_ms;
};

struct lock_info_waiter {
    struct owner *owner; /* one reference */
    uint64_t session_id;
    int64_t waited_ms;
    struct lock_part want;
    bool fair;
};

struct lock_info {
    char *name; /* of the lock; heap, NULL but in the answer to LOCKINFO */
    size_t name_len;
    bool held;             /* else `part` means nothing */
    struct lock_part part; /* what it is in use as */
    int64_t n_holders;     /* as far as is known */
    int n_listed;
    struct lock_info_holder listed[LOCK_INFO_HOLDERS];
    uint32_t n_waiters; /* here */
    int n_waiters_listed;
    struct lock_info_waiter waiters[LOCK_INFO_WAITERS];
    int n_masters;
    struct lock_info_master masters[];
};

/* What is said of a holder who has the lock on the masters themselves (R23). */
#define LOCK_INFO_PLAIN "a program that does not use holdfast"

struct lock_info *lock_info_new(int n_masters);
void lock_info_free(struct lock_info *); /* also NULL */

/* Notes that master i shows this hold, whose `op` (heap) and reference to the owner are taken over.
 */
void lock_info_saw(struct lock_info *, int i, const struct lock_info_seen *);
/* True when a majority of masters shows a hold under this operation. */
bool lock_info_is_held(const struct lock_info *, const char *op);
/* True when a majority would show it if those did that have not answered; "": a hold that no master
 * shows. */
bool lock_info_may_hold(const struct lock_info *, const char *op);
/* Returns this hold as the master shows it that has the latest version of its count; NULL: none. */
const struct lock_info_seen *lock_info_latest(const struct lock_info *, const char *op);
/* Returns for people what a master shows: "free", or who holds the lock there; heap. */
char *lock_info_describe(const struct lock_info_master *);
/* Returns the highest token that a master shows for this operation: masters may differ in it, as a
 * commit may not have reached all of them. 0: none shows it. */
int64_t lock_info_highest_token(const struct lock_info *, const char *op);
/* True when no master before master i shows its j-th hold. */
bool lock_info_is_first(const struct lock_info *, int i, int j);
