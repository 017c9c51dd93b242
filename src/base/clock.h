/* clock: the only place that asks the operating system for the time. Everything that decides is
 * handed the time as an argument, so that tests can invent it. */
#pragma once

#include <stdint.h>

/* Return CLOCK_BOOTTIME: it never goes back, nobody sets it, and it counts while the machine sleeps
 * (a lease at a master runs out then too). */
int64_t clock_ms(void);
int64_t clock_us(void);

/* Returns the time since 1970 in ms, for people to read; nothing may be decided by it but the floor
 * of tokens (redis/token.h). */
int64_t clock_wall_ms(void);
