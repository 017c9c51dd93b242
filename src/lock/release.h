#pragma once
/* release: ends a hold on all masters and calls up the next one in the line between brokers. */
#include <stdint.h>

#include "lock/broker_state.h"
#include "lock/tickets.h"

/* Where a hold that is to end comes from. Of an operation of our own no late copy of a request can
 * create it anew (lua/call.lua); of another broker's the masters keep a tombstone. */
enum release_origin {
    RELEASE_FOREIGN, /* another broker's, or it is not known */
    RELEASE_ASKED,   /* ours: the request that creates it may not have been answered */
    RELEASE_GRANTED, /* ours, and it was */
};

/* A hold that is to end, as the masters know it. */
struct release_what {
    const char *op;
    struct lock_part part;
    const struct owner *owner; /* of a reader's share; else not looked at */
    int64_t lease_ms;          /* so long its release is owed to a master that cannot be reached */
    enum release_origin origin;
};

/* Ends the hold on all masters, and the next one in the line is called up. `place`: who lines up in
 * the same step, and is not called when it is at the front; NULL: nobody. The verdict (fn may be
 * NULL): won when a majority has confirmed. Keeps the lock alive while it needs it. */
void release_hold(struct broker *, struct lock *, const struct release_what *,
                  const struct ticket_place *place, round_fn fn, void *arg, int64_t now_ms);
