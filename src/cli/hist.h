#ifndef HOLDFAST_HIST_H
#define HOLDFAST_HIST_H
/*
 * hist: a histogram of times in microseconds, exact to about 1.6 % (64 steps for each power of
 * two), of constant size.
 */
#include <stdint.h>

enum { HIST_STEPS = 64, HIST_ROWS = 40 };

struct hist {
    uint64_t count;
    int64_t max_us, sum_us;
    uint64_t cells[HIST_ROWS * HIST_STEPS];
};

void hist_record(struct hist *h, int64_t us);
/* Returns the upper end of the cell with the quantile q (0 to 1), never above the maximum; 0:
 * empty. */
int64_t hist_at(const struct hist *h, double q);
#endif
