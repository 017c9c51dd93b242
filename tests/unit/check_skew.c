/* Clocks that jump, are slewed, or only differ: what the samples of them show. */
#include <check.h>

#include "redis/skew.h"
#include "suite.h"

enum { DRIFT_PPM = 5000, S = 1000000, WINDOW_US = 60 * S, ERROR_US = 1000 };

static int64_t apart_us, age_us;

static enum skew_verdict take(struct skew *s, int64_t offset_us, int64_t error_us, int64_t at_us)
{
    const struct skew_sample sample = {offset_us, error_us, at_us};
    return skew_take(s, &sample, DRIFT_PPM, WINDOW_US, &apart_us, &age_us);
}

/* A sample each millisecond for so long, of a clock that runs faster by ppm: when it was noticed,
 * 0: never. */
static int64_t noticed_us(struct skew *s, int64_t from_us, int64_t ppm, int64_t for_us,
                          enum skew_verdict as)
{
    int64_t first_us = s->known ? s->best.offset_us : 0;
    for (int64_t t = 1000; t <= for_us; t += 1000) {
        enum skew_verdict v = take(s, first_us + t / 1000 * ppm / 1000, ERROR_US, from_us + t);
        if (v != SKEW_FINE) {
            ck_assert_int_eq(v, as);
            return t;
        }
    }
    return 0;
}

START_TEST(jumps)
{
    struct skew s = {0};

    ck_assert_int_eq(take(&s, 77 * S, ERROR_US, S), SKEW_FINE);
    ck_assert_int_eq(take(&s, 77 * S + 90000, ERROR_US, 2 * S), SKEW_FINE);
    ck_assert_int_eq(take(&s, 78 * S, ERROR_US, 3 * S), SKEW_AHEAD);
    ck_assert_int_eq(apart_us, S - 90000);
    ck_assert_int_eq(age_us, S);
    ck_assert_int_eq(take(&s, 78 * S, ERROR_US, 4 * S), SKEW_FINE);
    ck_assert_int_eq(take(&s, 70 * S, ERROR_US, 5 * S), SKEW_BEHIND);
}
END_TEST

/* A bad sample proves nothing, and spoils none. */
START_TEST(a_slow_answer)
{
    struct skew s = {0};

    ck_assert_int_eq(take(&s, 0, ERROR_US, S), SKEW_FINE);
    ck_assert_int_eq(take(&s, 2 * S, 2 * S, 2 * S), SKEW_FINE);
    ck_assert_int_eq(s.best.offset_us, 0);
    ck_assert_int_eq(take(&s, 2 * S, ERROR_US, 3 * S), SKEW_AHEAD);
}
END_TEST

START_TEST(a_fast_slew_is_noticed_within_seconds)
{
    struct skew s = {0};

    ck_assert_int_eq(noticed_us(&s, 0, 0, 200 * S, SKEW_FINE), 0);
    int64_t at_us = noticed_us(&s, 200 * S, 80000, 30 * S, SKEW_AHEAD);
    ck_assert_int_gt(at_us, 1 * S);
    ck_assert_int_lt(at_us, 3 * S);
    ck_assert_int_gt(noticed_us(&s, 300 * S, -80000, 30 * S, SKEW_BEHIND), 0);
}
END_TEST

/* Before it has shortened a lease by more than the drift and the tolerance do. */
START_TEST(a_slew_just_beyond_the_drift)
{
    struct skew s = {0};

    ck_assert_int_eq(noticed_us(&s, 0, 0, 200 * S, SKEW_FINE), 0);
    ck_assert_int_gt(noticed_us(&s, 200 * S, 2 * DRIFT_PPM, 30 * S, SKEW_AHEAD), 0);
}
END_TEST

START_TEST(drift_within_its_budget)
{
    struct skew s = {0};

    ck_assert_int_eq(noticed_us(&s, 0, DRIFT_PPM, 400 * S, SKEW_FINE), 0);
    ck_assert_int_eq(noticed_us(&s, 400 * S, -DRIFT_PPM, 400 * S, SKEW_FINE), 0);
}
END_TEST

static Suite *skew_suite(void)
{
    Suite *s = suite_create("skew");
    TCase *c = tcase_create("skew");
    tcase_add_test(c, jumps);
    tcase_add_test(c, a_slow_answer);
    tcase_add_test(c, a_fast_slew_is_noticed_within_seconds);
    tcase_add_test(c, a_slew_just_beyond_the_drift);
    tcase_add_test(c, drift_within_its_budget);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(skew_suite());
}
