#pragma once
/*
 * turns: calls about the same names go in the order in which they came: a line for each name, at
 * its spot, a seat in it for each call. Those that only look go side by side; one that writes goes
 * when all before it have left, and keeps those behind it back.
 *
 *     seat --turns_join--> waits --turns_may_go, turns_go--> under way --turns_leave--> gone
 *                            ^                                   |
 *                            +------------turns_wait-------------+
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "dropin/spot.h"

/* So many go side by side in one line. */
enum { TURNS_LOOK_MAX = 64 };

struct seat {
    TAILQ_ENTRY(seat) next;
    struct spot *spot; /* in whose line it is; NULL: in none */
    void *call;
    bool under_way, writes;
};

struct turns {
    TAILQ_HEAD(, spot) lines; /* in which somebody may go on */
};

void turns_init(struct turns *);
/* Takes the last seat of the line at this spot. */
void turns_join(struct seat *, struct spot *, void *call);
/* True when it may go, as far as this line is concerned: all before it are under way and look, and
 * are fewer than TURNS_LOOK_MAX; or none is before it. */
bool turns_may_go(const struct seat *, bool writes);
void turns_go(struct turns *, struct seat *, bool writes);
void turns_wait(struct turns *, struct seat *);
/* The caller sees to the spot (spot_leave). */
void turns_leave(struct turns *, struct seat *);

/* Returns the next call that waits in a line where something has changed, and behind none that
 * waits; NULL: that was all. */
void *turns_next(struct turns *);
/* Calls `each` for the calls in the line at a spot. */
void turns_each(const struct spot *, void (*each)(void *call));
