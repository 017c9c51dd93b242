#pragma once
/*
 * tickets: the line between brokers. Brokers that wait for a lock held elsewhere stand in a line
 * that is kept on the masters (src/redis/lua/line_up.lua, call_up.lua): one ticket a broker,
 * whatever the number of its waiters, and one for each FAIR request. Whoever sets the lock free
 * calls up the first of them.
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

/* Where a ticket is to stand when its owner does not get the lock. */
struct ticket_place {
    uint64_t number;   /* of a FAIR request; 0: the broker's own ticket */
    const char *where; /* "tail", "front", "keep" (line_up.lua); NULL: nobody waits */
};

/* A place as the scripts are told of it (acquire.lua). */
struct tickets_words {
    char ticket[BROKER_TICKET_MAX + 1];
    const char *place;
    const char *judge; /* run id of the master whose line decides on turns; "-": each its own */
};

/* What it points to is valid until the masters are asked. */
void tickets_words(struct broker *, const struct lock *, const struct ticket_place *,
                   struct tickets_words *out, int64_t now_ms);
/* What the line is by this round of acquire.lua: tickets on the agreed master, or the most that
 * anybody has when that one has not answered. */
int64_t tickets_length(struct broker *, const struct lock *, const struct round *, int64_t now_ms);

/* The ticket gets in line, behind the others. */
void tickets_join(struct broker *, const struct lock *, uint64_t number, int64_t now_ms);
/* It is taken out; when the lock is free, the next one is called up. */
void tickets_leave(struct broker *, const struct lock *, uint64_t number, int64_t now_ms);
/* A call that came to us is not for us any more: the next one is called up when the lock is free.
 */
void tickets_call_next(struct broker *, const struct lock *, int64_t now_ms);
/* Master i calls up the next one in its line. */
void tickets_call(struct broker *, const struct lock *, int i, int64_t now_ms);
