/*
 * Keeps a copy of each histogram as it was at the beginning of each of the last minutes; what is
 * newer than a copy is the difference to it.
 */
#include "stats/recent.h"

#include <string.h>

#include "stats/private.h"

enum { MINUTE_MS = 60000, COPIES = RECENT_MINUTES + 1 };

#define NUMBER_ROW(field, metric, help) HIST_##field,
enum { STATS_HISTS(NUMBER_ROW) HISTS };
#undef NUMBER_ROW

/* Copy number n stands in copies[n % COPIES]; copied is the number of the next. Where there are
 * fewer than COPIES, all that was counted is recent. */
static struct hist copies[COPIES][HISTS];
static uint64_t copied;
static int64_t due_ms;

void recent_tick(int64_t now_ms)
{
    if (now_ms < due_ms)
        return;
    if (due_ms)
        for (size_t i = 0; i < HISTS; i++)
            copies[copied % COPIES][i] = *stats_hist(&stats_hist_rows[i]);
    copied += due_ms != 0;
    due_ms = now_ms + MINUTE_MS;
}

void recent_reset(void)
{
    copied = 0;
    due_ms = 0;
}

void recent_hist(size_t i, struct hist *out)
{
    *out = *stats_hist(&stats_hist_rows[i]);
    if (copied >= COPIES)
        hist_subtract(out, &copies[copied % COPIES][i]);
}
