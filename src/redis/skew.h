#ifndef HOLDFAST_SKEW_H
#define HOLDFAST_SKEW_H
/*
 * skew: how far another clock is ahead of ours, and whether it still runs at the same rate.
 *
 * It is told of samples, each known to half a round trip. The best recent one is kept, getting
 * worse with age; a better one takes its place. As that moves with each good sample, a clock that
 * is slewed would go unseen by it: so older ones are kept besides, spread over the last window, and
 * none of them may be further apart from a new sample than their errors, the drift allowed, and a
 * tolerance.
 */
#include <stdbool.h>
#include <stdint.h>

enum { SKEW_MARKS = 8 };

struct skew_sample {
    int64_t offset_us; /* the other clock less ours */
    int64_t error_us;  /* at most so far off, when it was taken */
    int64_t at_us;     /* by our clock */
};

struct skew {
    bool known;
    struct skew_sample best;
    struct skew_sample marks[SKEW_MARKS]; /* a ring */
    int n_marks, next_mark;
    int64_t compared_us; /* with the marks */
};

enum skew_verdict {
    SKEW_FINE,
    SKEW_BEHIND, /* it has jumped, or was slewed, back */
    SKEW_AHEAD
};

/* drift_ppm: by how much the rates may differ. window_us: the time for which that must hold. After
 * another verdict than SKEW_FINE all begins anew from this sample, and apart and age, in us, say by
 * how much and since when. */
enum skew_verdict skew_take(struct skew *, const struct skew_sample *, int64_t drift_ppm,
                            int64_t window_us, int64_t *apart_us, int64_t *age_us);
#endif
