#ifndef HOLDFAST_LINE_H
#define HOLDFAST_LINE_H
/*
 * line: the line between brokers. Brokers that wait for a lock held elsewhere stand in a line that
 * is kept on the masters (src/redis/lua/line_up.lua, call_up.lua): one ticket a broker, whatever
 * the number of its waiters, and one for each FAIR request. Whoever sets the lock free calls up the
 * first of them.
 *
 *   one master:   the release itself calls up, in the same script
 *   a quorum:     the agreed master's line counts (rounds_agreed); the releasing broker has it
 *                 call up (pass.lua) when a majority is free and this one has answered, so that
 *                 nobody is called too early
 *
 * The line is order, never safety: who is called up must still be granted the lock, and if a call
 * is lost everybody asks again by himself.
 */
#include <stdint.h>

#include "lock/broker_state.h"

struct lock;
struct owner;

/* Where a ticket is to stand when its owner does not get the lock. */
struct line_place {
    uint64_t number;   /* of a FAIR request; 0: the broker's own ticket */
    const char *where; /* "tail", "front", "keep" (line_up.lua); NULL: nobody waits */
};

/* A place as the scripts are told of it (acquire.lua). */
struct line_words {
    char ticket[BROKER_TICKET_MAX + 1];
    const char *place;
    const char *judge; /* run id of the master whose line decides on turns; "-": each its own */
};

/* What it points to is valid until the masters are asked. */
void line_words(struct broker *, const struct lock *, const struct line_place *,
                struct line_words *out, int64_t now_ms);
/* What the line is by this round of acquire.lua: tickets on the agreed master, or the most that
 * anybody has when that one has not answered. */
int64_t line_length(struct broker *, const struct lock *, const struct round *, int64_t now_ms);

/* The ticket gets in line, behind the others. */
void line_join(struct broker *, const struct lock *, uint64_t number, int64_t now_ms);
/* It is taken out; when the lock is free, the next one is called up. */
void line_leave(struct broker *, const struct lock *, uint64_t number, int64_t now_ms);
/* A call that came to us is not for us any more: the next one is called up when the lock is free.
 */
void line_call_next(struct broker *, const struct lock *, int64_t now_ms);

/* Where a hold that is to end comes from. Of an operation of our own no late copy of a request can
 * create it anew (lua/call.lua); of another broker's the masters keep a tombstone. */
enum line_origin {
    LINE_FOREIGN, /* another broker's, or it is not known */
    LINE_ASKED,   /* ours: the request that creates it may not have been answered */
    LINE_GRANTED, /* ours, and it was */
};

/* A hold that is to end, as the masters know it. */
struct line_hold {
    const char *op;
    struct lock_part part;
    const struct owner *owner; /* of a reader's share; else not looked at */
    int64_t lease_ms;          /* so long its release is owed to a master that cannot be reached */
    enum line_origin origin;
};

/* Adds the part of a hold, the last argument of several scripts. */
void line_add_part(struct args *, struct lock_part, const struct owner *);

/* Ends the hold on all masters, and the next one in the line is called up. `place`: who lines up in
 * the same step, and is not called when it is at the front; NULL: nobody. The verdict (fn may be
 * NULL): won when a majority has confirmed. Keeps the lock alive while it needs it. */
void line_release(struct broker *, struct lock *, const struct line_hold *,
                  const struct line_place *place, round_fn fn, void *arg, int64_t now_ms);
#endif
