#pragma once
/*
 * due: what is to be done at a time: a renewal, the end of a WAIT, a retry. Entries are in their
 * objects; the broker takes them out and runs them (broker_turn.c).
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/wheel.h"

struct broker;
struct due;

typedef void (*due_fn)(struct broker *, struct due *, int64_t now_ms);

struct due {
    struct wheel_entry entry; /* first */
    due_fn fn;
    bool first; /* in the wheel of what goes before all else */
};

struct due_wheels {
    struct wheel first, usual; /* what goes before all else: renewals; and the rest */
};

static inline void due_cancel(struct due_wheels *d, struct due *due)
{
    if (wheel_armed(&due->entry)) /* mostly not */
        wheel_cancel(due->first ? &d->first : &d->usual, &due->entry);
}
/* Runs due->fn once, at due_ms. */
static inline void due_at(struct due_wheels *d, struct due *due, int64_t due_ms)
{
    due_cancel(d, due);
    due->first = false;
    wheel_add(&d->usual, &due->entry, due_ms);
}
/* Likewise, before everything that is due by due_at(). */
static inline void due_at_first(struct due_wheels *d, struct due *due, int64_t due_ms)
{
    due_cancel(d, due);
    due->first = true;
    wheel_add(&d->first, &due->entry, due_ms);
}
