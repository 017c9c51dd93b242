/* Invariant: bucket i holds the values in (lower, upper], so that a power of two is always the
 * upper end of one: cumulative counts to it are exact. */
#include "base/hist.h"

#include <math.h>
#include <stddef.h>

/* v is the value less 1. Up to HIST_SUBS each has its own bucket; above, the leading bit chooses
 * the power of two and the bits behind it the part of that. */
static size_t bucket_of(uint64_t v)
{
    if (v < HIST_SUBS)
        return v;
    unsigned exponent = 63 - (unsigned)__builtin_clzll(v);
    return (exponent - HIST_SUB_BITS + 1) * HIST_SUBS +
           ((v >> (exponent - HIST_SUB_BITS)) & (HIST_SUBS - 1));
}

static int64_t bucket_upper(size_t i)
{
    if (i < HIST_SUBS)
        return (int64_t)i + 1;
    return (int64_t)(HIST_SUBS + i % HIST_SUBS + 1) << (i / HIST_SUBS - 1);
}

void hist_add(struct hist *hist, int64_t us)
{
    uint64_t value = us > 0 ? (uint64_t)us : 0;
    uint64_t v = value > 0 ? value - 1 : 0;

    hist->bucket[bucket_of(v > UINT32_MAX ? UINT32_MAX : v)]++;
    hist->count++;
    hist->sum_us += value;
    if (value > hist->max_us)
        hist->max_us = value;
}

void hist_subtract(struct hist *hist, const struct hist *then)
{
    int64_t max_us = 0;

    hist->count -= then->count;
    hist->sum_us -= then->sum_us;
    for (size_t i = 0; i < HIST_BUCKETS; i++) {
        hist->bucket[i] -= then->bucket[i];
        if (hist->bucket[i] > 0)
            max_us = bucket_upper(i);
    }
    if (hist->max_us > (uint64_t)max_us)
        hist->max_us = (uint64_t)max_us;
}

int64_t hist_quantile(const struct hist *hist, double q)
{
    double rank = ceil(q * (double)hist->count);
    uint64_t seen = 0;

    for (size_t i = 0; i < HIST_BUCKETS; i++) {
        seen += hist->bucket[i];
        if (seen > 0 && (double)seen >= rank) {
            int64_t upper = bucket_upper(i);
            return upper < (int64_t)hist->max_us ? upper : (int64_t)hist->max_us;
        }
    }
    return (int64_t)hist->max_us;
}

uint64_t hist_count_to(const struct hist *hist, unsigned exponent)
{
    size_t end = bucket_of(UINT64_C(1) << exponent);
    uint64_t n = 0;

    for (size_t i = 0; i < end && i < HIST_BUCKETS; i++)
        n += hist->bucket[i];
    return n;
}
