#pragma once
/*
 * spot: what drop-in keeps at a lock: the line of the calls about it (turns.h), and what is
 * remembered of it (memory.h). It hangs on the lock, so that a call looks for its name once.
 *
 *   spot_get --> in use --seats, or something known--> spot_leave, with neither --> gone
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "dropin/exchange.h"
#include "lock/due.h"

struct broker;
struct locktab_name;
struct memory;
struct seat;

enum { SPOT_LIBRARY = 40 };

TAILQ_HEAD(seats, seat);

struct spot {
    struct lock *lock; /* whose spot this is; it stays as long */
    /* ---- turns.c ---- */
    struct seats seats;
    TAILQ_ENTRY(spot) looked_at;
    bool is_listed; /* in turns->lines: somebody may go on */
    /* ---- memory.c ---- */
    bool is_known;           /* what follows is in use */
    bool is_held;            /* by a client of this broker, by commands of Redis */
    TAILQ_ENTRY(spot) known; /* in memory->known */
    struct due due;          /* its time is over */
    struct memory *memory;
    struct truth truth;         /* DROPIN or NATIVE */
    int64_t since_ms;           /* a majority was asked then and has said so */
    uint64_t session_id;        /* of who has taken it here; 0: nobody has */
    int64_t held_since_ms;      /* here, */
    char library[SPOT_LIBRARY]; /* and by what program */
    size_t bytes;               /* that it counts for */
};

/* Return the spot of the lock of this name; get makes it when there is none, find returns NULL. */
struct spot *spot_get(struct broker *, const struct locktab_name *);
struct spot *spot_find(struct broker *, const struct locktab_name *);
/* Frees a spot at which nothing is kept any more, and its lock with the end of the flow. */
void spot_leave(struct broker *, struct spot *);
