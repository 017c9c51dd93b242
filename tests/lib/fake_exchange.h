#pragma once
/*
 * fake_exchange: exchange.h without masters: one truth by name, in the hands of a test. What is
 * asked waits until the test lets it be judged, and is judged in one step, as by a majority that
 * agrees. Several brokers may ask.
 */
#include <stddef.h>
#include <stdint.h>

#include "dropin/exchange.h"

void fake_exchange_reset(void); /* nothing stands anywhere, nothing is asked */

/* What stands under a name now; FREE when its time is over. Holds until the next call. */
const struct truth *fake_truth(const char *name, int64_t now_ms);
/* Somebody else puts this there, under an operation of his own. */
void fake_put(const char *name, enum truth_kind, const char *text, int64_t expires_ms);
void fake_end(const char *name);

/* So much earlier than it ends a truth is told to end: masters differ. */
extern int64_t fake_margin_ms;

/* How many exchanges wait for their answer; how many have been asked in all. */
int fake_waiting(void);
int fake_asked(void);
/* What the oldest one that waits asks for its item i. */
const struct exchange_item *fake_item(int i);

/* Judges the n-th of those that wait, from 0: it is done, or refused; then on_end runs in a flow.
 */
void fake_judge(int n, int64_t now_ms);
/* Judges all, the oldest first, also those that are asked meanwhile. */
void fake_judge_all(int64_t now_ms);
/* The oldest one fails; `done`: nobody knows, but it has been done. */
void fake_fail(bool done, int64_t now_ms);
/* The oldest one is refused: `kind` is said of its item 0 (SPLIT, FOREIGN, or what stands there,
 * but not by a majority of all, for UNKNOWN). */
void fake_refuse(enum truth_kind kind, int64_t now_ms);
