/* The clock of tokens, with brokers and masters whose clocks are right, ahead, behind, or absurd;
 * counters; the last check. */
#include <check.h>

#include "base/util.h"
#include "redis/token.h"
#include "suite.h"

static const int64_t NOW_MS = 5000, WALL_MS = INT64_C(1800000000000), HOUR_MS = 3600000;
static const int64_t CENTURY_MS = INT64_C(3155760000000);

static struct token_clock h;

static void set(int64_t wall_ms, int64_t a_ms, int64_t b_ms, int64_t c_ms)
{
    int64_t times_ms[] = {a_ms, b_ms, c_ms};

    h = (struct token_clock){0};
    token_set_wall(&h, wall_ms, NOW_MS);
    token_set_masters(&h, times_ms, 3, NOW_MS);
}

START_TEST(usual)
{
    set(WALL_MS, WALL_MS, WALL_MS + 5, WALL_MS - 5);
    ck_assert_int_eq(token_floor(&h, NOW_MS), WALL_MS << 10);
    ck_assert_int_eq(token_floor(&h, NOW_MS), (WALL_MS << 10) + 1);
    ck_assert_int_eq(token_floor(&h, NOW_MS + 1), (WALL_MS + 1) << 10);
    token_saw(&h, WALL_MS << 11);
    ck_assert_int_eq(token_floor(&h, NOW_MS + 2), (WALL_MS << 11) + 1);
    token_saw(&h, 7);
    ck_assert_int_eq(token_floor(&h, NOW_MS + 2), (WALL_MS << 11) + 2);
}
END_TEST

/* As far as the others can follow, and no further. */
START_TEST(a_broker_ahead)
{
    set(WALL_MS + HOUR_MS / 2, WALL_MS, WALL_MS, WALL_MS);
    ck_assert_int_eq(token_floor(&h, NOW_MS), (WALL_MS + HOUR_MS / 2) << 10);
    set(WALL_MS + 3 * CENTURY_MS, WALL_MS, WALL_MS, WALL_MS);
    ck_assert_int_eq(token_floor(&h, NOW_MS), (WALL_MS + HOUR_MS) << 10);
    set(WALL_MS - 2 * HOUR_MS, WALL_MS, WALL_MS, WALL_MS);
    ck_assert_int_eq(token_floor(&h, NOW_MS), (WALL_MS - 2 * HOUR_MS) << 10);
}
END_TEST

/* Above what any broker can have given, whatever its clock shows. */
START_TEST(the_base_is_above_all)
{
    static const int64_t off_ms[] = {0, 3600000 / 2, -3600000, 1000 * INT64_C(3155760000)};

    for (int i = 0; i < 4; i++) {
        set(WALL_MS + 3 * CENTURY_MS, WALL_MS, WALL_MS, WALL_MS);
        int64_t given = token_floor(&h, NOW_MS);
        set(WALL_MS + off_ms[i], WALL_MS - HOUR_MS / 2, WALL_MS - HOUR_MS / 2, WALL_MS);
        ck_assert_int_gt(token_base(&h, NOW_MS), given);
        ck_assert_int_gt(token_floor(&h, NOW_MS), given);
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
        struct token_clock other = h;
        int64_t given = token_base(&other, NOW_MS + 100);
        token_set_masters(&h, &master_ms, 1, NOW_MS);
        ck_assert_int_gt(token_base(&h, NOW_MS + 1000), given);
    }
    set(WALL_MS, WALL_MS, WALL_MS + CENTURY_MS, WALL_MS + CENTURY_MS); /* and was wrong before */
    int64_t right_ms = WALL_MS;
    token_set_masters(&h, &right_ms, 1, NOW_MS);
    ck_assert_int_eq(token_base(&h, NOW_MS), (WALL_MS + 3 * HOUR_MS) << 10);
}
END_TEST

START_TEST(masters_that_are_wrong)
{
    set(WALL_MS, 1000, WALL_MS + 1, 3 * CENTURY_MS); /* the absurd ones are not believed */
    ck_assert_int_eq(token_base(&h, NOW_MS), (WALL_MS + 1 + 2 * HOUR_MS) << 10);
    set(WALL_MS, WALL_MS - HOUR_MS, WALL_MS, WALL_MS + CENTURY_MS);
    ck_assert_int_eq(token_base(&h, NOW_MS), (WALL_MS + 2 * HOUR_MS) << 10);
    set(WALL_MS, 1000, 1000, 1000);
    ck_assert_int_eq(token_floor(&h, NOW_MS), WALL_MS << 10);
    ck_assert_int_eq(token_base(&h, NOW_MS), (WALL_MS << 10) + 1);
    set(WALL_MS + 3 * CENTURY_MS, 1000, 1000, 1000); /* all are: still in what can be counted */
    ck_assert_int_eq(token_floor(&h, NOW_MS), TOKEN_UNTIL_MS << 10);
    ck_assert_int_lt(token_base(&h, NOW_MS), INT64_C(1) << 53);
}
END_TEST

/* Brokers of all versions must agree on these for ever. */
START_TEST(the_bucket_of_a_name_never_changes)
{
    ck_assert_uint_eq(util_fixed_hash("", 0), 2166136261u);
    ck_assert_uint_eq(util_fixed_hash("a", 1), 0xe40c292cu);
    ck_assert_uint_eq(util_fixed_hash("foobar", 6), 0xbf9cf968u); /* the published FNV-1a vectors */
    ck_assert_int_eq(token_bucket("a", 1), (int)((0xe40c292cu ^ 0xe40cu) % 4096));
    ck_assert_int_eq(token_bucket("foobar", 6), (int)((0xbf9cf968u ^ 0xbf9cu) % 4096));
}
END_TEST

START_TEST(counters_have_names)
{
    char counter[TOKEN_COUNTER_MAX + 1];
    token_counter(-1, counter);
    ck_assert_str_eq(counter, "base");
    token_counter(0, counter);
    ck_assert_str_eq(counter, "0");
    token_counter(TOKEN_BUCKETS - 1, counter);
    ck_assert_str_eq(counter, "4095");
}
END_TEST

START_TEST(no_token_at_or_below_what_was_granted_before)
{
    static struct token_granted granted;
    ck_assert(token_grant(&granted, "n", 1, 0, 7));
    ck_assert_int_eq(token_highest(&granted, "n", 1), 7);
    ck_assert(!token_grant(&granted, "n", 1, 7, 6));
    ck_assert(!token_grant(&granted, "n", 1, 7, 7));
    ck_assert(token_grant(&granted, "n", 1, 3, 5)); /* asked for before 7 was granted */
    ck_assert_int_eq(token_highest(&granted, "n", 1), 7);
    ck_assert(token_grant(&granted, "n", 1, 7, 8));
    ck_assert_int_eq(token_highest(&granted, "n", 1), 8);
    ck_assert_int_eq(token_highest(&granted, "m", 1), 0);
}
END_TEST

static Suite *token_suite(void)
{
    Suite *s = suite_create("token");
    TCase *c = tcase_create("clock");
    tcase_add_test(c, usual);
    tcase_add_test(c, a_broker_ahead);
    tcase_add_test(c, the_base_is_above_all);
    tcase_add_test(c, the_base_is_above_the_last_one);
    tcase_add_test(c, masters_that_are_wrong);
    tcase_add_test(c, the_bucket_of_a_name_never_changes);
    tcase_add_test(c, counters_have_names);
    tcase_add_test(c, no_token_at_or_below_what_was_granted_before);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(token_suite());
}
