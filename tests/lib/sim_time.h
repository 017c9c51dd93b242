#pragma once
/*
 * sim_time: virtual time, what happens in it, and chance. One simulation at a time in a process.
 *
 * Events run in the order of their time, those of the same time in the order in which they were
 * made: one seed is one run. Also gives the clock.h of the program under test its time.
 */
#include <stdbool.h>
#include <stdint.h>

struct sim_event;
typedef void (*sim_fn)(void *arg);

/* Everything is drawn from this seed, also the key of util_hash(). */
void sim_begin(uint64_t seed);
/* Drops what has not happened. */
void sim_end(void);

int64_t sim_now_us(void);

/* Runs fn at this time, or now when it has passed. The event lives until it has run or been
 * cancelled. */
struct sim_event *sim_at(int64_t at_us, sim_fn fn, void *arg);
void sim_cancel(struct sim_event *); /* also NULL */

/* Runs the next event; false: there is none. */
bool sim_step(void);
/* When the next one is due; INT64_MAX: none. */
int64_t sim_next_us(void);
/* The time goes on to `until_us`, and everything until then happens. */
void sim_run_until(int64_t until_us);

/* 0 to below - 1; 0 for below 0 and 1. */
int64_t sim_random(int64_t below);
int64_t sim_between(int64_t min, int64_t max);
bool sim_chance(int per_mille);
