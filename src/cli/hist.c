/*
 * Below HIST_STEPS a cell is one microsecond; above, each power of two is cut into HIST_STEPS.
 */
#include "cli/hist.h"

static int cell_of(int64_t us)
{
    int shift = 0, cell;
    while (us >> shift >= 2 * HIST_STEPS)
        shift++;
    cell = shift * HIST_STEPS + (int)(us >> shift);
    return cell < HIST_ROWS * HIST_STEPS ? cell : HIST_ROWS * HIST_STEPS - 1;
}

/* Returns the largest value that belongs to a cell. */
static int64_t cell_end(int cell)
{
    int shift = cell < 2 * HIST_STEPS ? 0 : cell / HIST_STEPS - 1;
    int64_t step = cell - shift * HIST_STEPS;
    return ((step + 1) << shift) - 1;
}

void hist_record(struct hist *h, int64_t us)
{
    if (us < 0)
        us = 0;
    h->cells[cell_of(us)]++;
    h->count++;
    h->sum_us += us;
    if (us > h->max_us)
        h->max_us = us;
}

int64_t hist_at(const struct hist *h, double q)
{
    uint64_t seen = 0, want = (uint64_t)(q * (double)h->count);
    if (h->count == 0)
        return 0;
    for (int i = 0; i < HIST_ROWS * HIST_STEPS; i++) {
        seen += h->cells[i];
        if (seen > want || seen == h->count)
            return cell_end(i) < h->max_us ? cell_end(i) : h->max_us;
    }
    return h->max_us;
}
