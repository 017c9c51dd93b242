/* The clock of tokens: with brokers and masters whose clocks are right, ahead, behind, or absurd.
 */
#include <check.h>

#include "redis/hybrid.h"
#include "suite.h"

static const int64_t NOW_MS = 5000, WALL_MS = INT64_C(1800000000000), HOUR_MS = 3600000;
static const int64_t CENTURY_MS = INT64_C(3155760000000);

static struct hybrid h;

static void set(int64_t wall_ms, int64_t a_ms, int64_t b_ms, int64_t c_ms)
{
    int64_t times_ms[] = {a_ms, b_ms, c_ms};

    h = (struct hybrid){0};
    hybrid_set_wall(&h, wall_ms, NOW_MS);
    hybrid_set_masters(&h, times_ms, 3, NOW_MS);
}

START_TEST(usual)
{
    set(WALL_MS, WALL_MS, WALL_MS + 5, WALL_MS - 5);
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS), WALL_MS << 10);
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS), (WALL_MS << 10) + 1);
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS + 1), (WALL_MS + 1) << 10);
    hybrid_saw(&h, WALL_MS << 11);
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS + 2), (WALL_MS << 11) + 1);
    hybrid_saw(&h, 7);
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS + 2), (WALL_MS << 11) + 2);
}
END_TEST

/* As far as the others can follow, and no further. */
START_TEST(a_broker_ahead)
{
    set(WALL_MS + HOUR_MS / 2, WALL_MS, WALL_MS, WALL_MS);
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS), (WALL_MS + HOUR_MS / 2) << 10);
    set(WALL_MS + 3 * CENTURY_MS, WALL_MS, WALL_MS, WALL_MS);
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS), (WALL_MS + HOUR_MS) << 10);
    set(WALL_MS - 2 * HOUR_MS, WALL_MS, WALL_MS, WALL_MS);
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS), (WALL_MS - 2 * HOUR_MS) << 10);
}
END_TEST

/* Above what any broker can have given, whatever its clock shows. */
START_TEST(the_base_is_above_all)
{
    static const int64_t off_ms[] = {0, 3600000 / 2, -3600000, 1000 * INT64_C(3155760000)};

    for (int i = 0; i < 4; i++) {
        set(WALL_MS + 3 * CENTURY_MS, WALL_MS, WALL_MS, WALL_MS);
        int64_t given = hybrid_floor(&h, NOW_MS);
        set(WALL_MS + off_ms[i], WALL_MS - HOUR_MS / 2, WALL_MS - HOUR_MS / 2, WALL_MS);
        ck_assert_int_gt(hybrid_base(&h, NOW_MS), given);
        ck_assert_int_gt(hybrid_floor(&h, NOW_MS), given);
    }
}
END_TEST

/* Counters are lost again, and the clocks of the masters have gone back in between. */
START_TEST(the_base_is_above_the_last_one)
{
    static const int64_t back_ms[] = {0, 5000, 3600000 - 1000};

    for (int i = 0; i < 3; i++) {
        int64_t master_ms = WALL_MS - back_ms[i];
        set(WALL_MS, WALL_MS, WALL_MS, WALL_MS);
        struct hybrid other = h;
        int64_t given = hybrid_base(&other, NOW_MS + 100);
        hybrid_set_masters(&h, &master_ms, 1, NOW_MS);
        ck_assert_int_gt(hybrid_base(&h, NOW_MS + 1000), given);
    }
    set(WALL_MS, WALL_MS, WALL_MS + CENTURY_MS, WALL_MS + CENTURY_MS); /* and was wrong before */
    int64_t right_ms = WALL_MS;
    hybrid_set_masters(&h, &right_ms, 1, NOW_MS);
    ck_assert_int_eq(hybrid_base(&h, NOW_MS), (WALL_MS + 3 * HOUR_MS) << 10);
}
END_TEST

START_TEST(masters_that_are_wrong)
{
    set(WALL_MS, 1000, WALL_MS + 1, 3 * CENTURY_MS); /* the absurd ones are not believed */
    ck_assert_int_eq(hybrid_base(&h, NOW_MS), (WALL_MS + 1 + 2 * HOUR_MS) << 10);
    set(WALL_MS, WALL_MS - HOUR_MS, WALL_MS, WALL_MS + CENTURY_MS);
    ck_assert_int_eq(hybrid_base(&h, NOW_MS), (WALL_MS + 2 * HOUR_MS) << 10);
    set(WALL_MS, 1000, 1000, 1000);
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS), WALL_MS << 10);
    ck_assert_int_eq(hybrid_base(&h, NOW_MS), (WALL_MS << 10) + 1);
    set(WALL_MS + 3 * CENTURY_MS, 1000, 1000, 1000); /* all are: still in what can be counted */
    ck_assert_int_eq(hybrid_floor(&h, NOW_MS), HYBRID_UNTIL_MS << 10);
    ck_assert_int_lt(hybrid_base(&h, NOW_MS), INT64_C(1) << 53);
}
END_TEST

static Suite *hybrid_suite(void)
{
    Suite *s = suite_create("hybrid");
    TCase *c = tcase_create("hybrid");
    tcase_add_test(c, usual);
    tcase_add_test(c, a_broker_ahead);
    tcase_add_test(c, the_base_is_above_all);
    tcase_add_test(c, the_base_is_above_the_last_one);
    tcase_add_test(c, masters_that_are_wrong);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(hybrid_suite());
}
