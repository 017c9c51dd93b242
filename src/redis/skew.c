/*
 * Arithmetic of samples of a clock. The marks are compared now and then only: a slew is no matter
 * of milliseconds, and answers come by the thousand.
 */
#include "redis/skew.h"

#include <stdlib.h>

enum {
    TOLERANCE_US = 100 * 1000,
    AGEING_PPM = 1000, /* how fast a sample gets worse */
    COMPARE_US = 100 * 1000
};

static bool is_apart(const struct skew_sample *old, const struct skew_sample *new,
                     int64_t drift_ppm)
{
    int64_t drift_us = (new->at_us - old->at_us) / 1000 * drift_ppm / 1000;

    return llabs(new->offset_us - old->offset_us) >
           new->error_us + old->error_us + drift_us + TOLERANCE_US;
}

/* Returns a kept sample that differs too much from the new one; NULL: none does. */
static const struct skew_sample *find_apart(struct skew *s, const struct skew_sample *new,
                                            int64_t drift_ppm)
{
    if (is_apart(&s->best, new, drift_ppm))
        return &s->best;
    if (new->at_us - s->compared_us < COMPARE_US)
        return NULL;
    s->compared_us = new->at_us;
    for (int i = 0; i < s->n_marks; i++)
        if (is_apart(&s->marks[i], new, drift_ppm))
            return &s->marks[i];
    return NULL;
}

static void begin(struct skew *s, const struct skew_sample *sample)
{
    *s = (struct skew){.known = true, .best = *sample};
}

static void keep_mark(struct skew *s, int64_t now_us, int64_t window_us)
{
    int last = (s->next_mark + SKEW_MARKS - 1) % SKEW_MARKS;

    if (s->n_marks > 0 && now_us - s->marks[last].at_us < window_us / SKEW_MARKS)
        return;
    s->marks[s->next_mark] = s->best;
    s->next_mark = (s->next_mark + 1) % SKEW_MARKS;
    s->n_marks += s->n_marks < SKEW_MARKS;
}

enum skew_verdict skew_take(struct skew *s, const struct skew_sample *new, int64_t drift_ppm,
                            int64_t window_us, int64_t *apart_us, int64_t *age_us)
{
    if (!s->known) {
        begin(s, new);
        return SKEW_FINE;
    }
    const struct skew_sample *apart = find_apart(s, new, drift_ppm);
    if (apart) {
        *apart_us = new->offset_us - apart->offset_us;
        *age_us = new->at_us - apart->at_us;
        begin(s, new);
        return *apart_us > 0 ? SKEW_AHEAD : SKEW_BEHIND;
    }
    if (new->error_us <= s->best.error_us + (new->at_us - s->best.at_us) / 1000000 * AGEING_PPM)
        s->best = *new;
    keep_mark(s, new->at_us, window_us);
    return SKEW_FINE;
}
