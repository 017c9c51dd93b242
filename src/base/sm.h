/* Checked state machines. A table has one row per state: its name and the states that may follow.
 *
 *   enum { IDLE, BUSY, DEAD };
 *   static const struct sm_state states[] = {
 *       [IDLE] = { "idle", 1U << BUSY | 1U << DEAD },
 *       [BUSY] = { "busy", 1U << IDLE | 1U << DEAD },
 *       [DEAD] = { "dead", 0 },
 *   };
 *
 * The state itself is a uint8_t in the object, which starts out as the first state. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct sm_state {
    const char *name;
    uint32_t next; /* bit i: may move to state i; so at most 32 states */
};

/* void sm_move(const struct sm_state *table, uint8_t *state, const char *object, int to)
 *
 * Moves *state, and writes the line `object: state a -> b` at trace level. A move that the table
 * does not allow (a state may follow itself only when its row says so) is a mistake of ours: it is
 * logged and the process aborts. The expression for object is evaluated only when a line is
 * written, so it may call a function that makes the text. */
#define sm_move(table, state, object, to)                                                          \
    do {                                                                                           \
        const struct sm_state *sm_table_ = (table);                                                \
        uint8_t *sm_state_ = (state);                                                              \
        const int sm_to_ = (to);                                                                   \
        if (!sm_allows(sm_table_, *sm_state_, sm_to_))                                             \
            sm_refuse(sm_table_, *sm_state_, (object), sm_to_);                                    \
        if (log_enabled(LOG_LEVEL_TRACE))                                                          \
            sm_trace(sm_table_, *sm_state_, (object), sm_to_);                                     \
        *sm_state_ = (uint8_t)sm_to_;                                                              \
    } while (0)

static inline bool sm_allows(const struct sm_state *table, uint8_t state, int to)
{
    return to >= 0 && to < 32 && (table[state].next >> to & 1U) != 0;
}

static inline const char *sm_name(const struct sm_state *table, uint8_t state)
{
    return table[state].name;
}

/* Write the trace line of sm_move, or end the process. */
void sm_trace(const struct sm_state *table, uint8_t state, const char *object, int to);
_Noreturn void sm_refuse(const struct sm_state *table, uint8_t state, const char *object, int to);
