#ifndef HOLDFAST_HOLD_PRIVATE_H
#define HOLDFAST_HOLD_PRIVATE_H
/*
 * What the files of hold share: hold.c is the life of a hold, hold_plant.c puts it where it is
 * missing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/hold.h"

/* After this time a hold looks again at masters where another one was in the way of its claim: the
 * other one has been released there by then. */
enum { HOLD_LOOK_MS = 20 };

/* "<token>.<number>": the version of its count, as the masters keep it (lua/hold.lua); the length,
 * without a NUL. */
enum { HOLD_VERSION_MAX = 41 };
size_t hold_version_text(const struct hold *, char out[HOLD_VERSION_MAX]);

/* True when the watchdog renews it. */
bool hold_is_renewed(const struct hold *);
/* Sets the next time at which something is due for it. */
void hold_schedule(struct broker *, struct hold *);
/* Looks within wait_ms where the hold is missing. */
void hold_look_within(struct hold *, int64_t wait_ms, int64_t now_ms);
/* Ignores what its last round still answers. */
void hold_forget_open(struct hold *);
#endif
