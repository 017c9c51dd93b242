#pragma once
/*
 * skew: measures how far another clock is ahead of ours, and whether it runs at the same rate.
 *
 * Takes samples of the offset, each exact to half a round trip. Keeps the best recent sample, whose
 * error grows with age until a better one replaces it. A clock that is slewed would drag that
 * sample along unseen; so skew also keeps older samples, the marks, spread over the last window.
 * The offset of a new sample may differ from those of the best one and the marks by their errors,
 * the allowed drift and a tolerance, not by more.
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

/* Takes a sample. The rates may differ by drift_ppm over the last window_us. Another verdict than
 * SKEW_FINE forgets all samples but this one and sets by how much the offsets differ, and how old
 * the other sample is. */
enum skew_verdict skew_take(struct skew *, const struct skew_sample *, int64_t drift_ppm,
                            int64_t window_us, int64_t *apart_us, int64_t *age_us);
