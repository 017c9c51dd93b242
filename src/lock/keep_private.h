#ifndef HOLDFAST_KEEP_PRIVATE_H
#define HOLDFAST_KEEP_PRIVATE_H
/*
 * What the files of keep share: keep.c is the life of a hold, keep_plant.c puts it where it is
 * missing.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/keep.h"

/* Who was in the way of a claim on some master has released it there by then. */
enum { KEEP_LOOK_MS = 20 };

/* Does its watchdog renew it? */
bool keep_is_renewed(const struct hold *);
/* Sets the next time at which something is due for it. */
void keep_schedule(struct broker *, struct hold *);
/* It is missing somewhere, or may be: it is looked after within so long. */
void keep_look_within(struct hold *, int64_t wait_ms, int64_t now_ms);
/* What its last round still brings is not wanted any more. */
void keep_forget_open(struct hold *);
#endif
