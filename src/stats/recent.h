#pragma once
/*
 * recent: the histograms of stats.h over the last minutes alone, beside those that count from the
 * start: what has become slow just now does not show in a week of good times.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/hist.h"

enum { RECENT_MINUTES = 5 };

/* Call about once a second. */
void recent_tick(int64_t now_ms);
/* Forgets what was: the counts have begun anew. */
void recent_reset(void);
/* Writes what has been added to histogram number i, in the order of STATS_HISTS, within the last
 * RECENT_MINUTES, or up to a minute more. */
void recent_hist(size_t i, struct hist *out);
