/* hist: a histogram of times in microseconds, of constant size.
 *
 * Log-linear, as HdrHistogram (http://hdrhistogram.org): each power of two is cut into HIST_SUBS
 * buckets, so a quantile is at most 12.5 % too large. From 1 us to 71 minutes; what is longer
 * counts as that. */
#pragma once

#include <stdint.h>

enum {
    HIST_SUB_BITS = 3,
    HIST_SUBS = 1 << HIST_SUB_BITS,
    HIST_BUCKETS = (32 - HIST_SUB_BITS + 1) * HIST_SUBS
};
struct hist {
    uint64_t count;
    uint64_t sum_us;
    uint64_t max_us;
    uint64_t bucket[HIST_BUCKETS];
};

void hist_add(struct hist *hist, int64_t us); /* O(1); below 1 counts as 1 in the buckets */
/* Takes away what was added before `then` was copied from it; max_us is the upper end of a bucket
 * afterwards. */
void hist_subtract(struct hist *hist, const struct hist *then);
/* q from 0 to 1. The upper end of the bucket in which the quantile lies, never above max_us; 0 when
 * empty. */
int64_t hist_quantile(const struct hist *hist, double q);
/* Returns how many of values 0..2^exponent us (included) were added, exactly. */
uint64_t hist_count_to(const struct hist *hist, unsigned exponent);
