/* The only place that asks the operating system for the time. Everything that decides is handed
 * the time as an argument, so that tests can invent it. */
#ifndef HOLDFAST_CLOCK_H
#define HOLDFAST_CLOCK_H

#include <stdint.h>

/* CLOCK_BOOTTIME: never goes back, is not set by anybody, and counts while the machine sleeps (a
 * lease at a master runs out then too). */
int64_t clock_ms(void);
int64_t clock_us(void);

/* Time since 1970 in ms, for people to read; nothing may be decided by it. */
int64_t clock_wall_ms(void);

#endif
