#pragma once
/*
 * What the files of hold share: hold.c is the life of a hold, hold_renew.c asks the masters for
 * it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/hold.h"

/* After this time a hold looks again at masters where another one was in the way of its claim: the
 * other one has been released there by then. */
enum { HOLD_LOOK_MS = 20 };

/* True when the watchdog renews it. */
bool hold_is_renewed(const struct hold *);
/* Sets the next time at which something is due for it. */
void hold_schedule(struct broker *, struct hold *);
/* Looks within wait_ms where the hold is missing. */
void hold_look_within(struct hold *, int64_t wait_ms, int64_t now_ms);
/* Renews it, if MAXHOLD leaves time. */
void hold_renew(struct broker *, struct hold *, int64_t now_ms);
/* Asks whether and where a hold that is not renewed stands; it is planted where it is missing when
 * all have answered. */
void hold_look(struct broker *, struct hold *, int64_t now_ms);
/* Returns the arguments of plant.lua and replant.lua, in memory that is used again: the hold as it
 * is, for all the time that its holder has been told. */
struct args *hold_plant_args(struct broker *, const struct hold *, int64_t now_ms);
/* Ignores what its last round still answers. */
void hold_forget_open(struct hold *);
