/* When a hold is next due, for leases from 3 ms to a day and extreme random numbers. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "lock/renew.h"
#include "suite.h"

static const int64_t leases[] = {3, 10, 100, 600, 1000, 30000, 60000, 86400000};
static const uint64_t randoms[] = {0, 1, 99, UINT32_MAX, UINT64_MAX};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

START_TEST(renewal_is_at_a_third_and_never_later)
{
    for (size_t i = 0; i < COUNT(leases); i++) {
        for (size_t j = 0; j < COUNT(randoms); j++) {
            for (int64_t now = 1000; now < 1100; now += 7) {
                int64_t due = renew_next_ms(now, leases[i], randoms[j]), third = leases[i] / 3;
                ck_assert_msg(due <= now + third, "lease %d", (int)leases[i]);
                ck_assert_msg(due >= now + third - third / 10 - 20 && due >= now, "lease %d",
                              (int)leases[i]);
            }
        }
    }
}
END_TEST

START_TEST(holds_taken_together_spread_and_meet_in_slots)
{
    int64_t first = INT64_MAX, last = 0;
    for (uint64_t r = 0; r < 5000; r++) {
        int64_t due = renew_next_ms(100000, 30000, r);
        ck_assert_int_eq(due % 20, 0);
        first = due < first ? due : first;
        last = due > last ? due : last;
    }
    ck_assert_int_ge(last - first, 900); /* a tenth of ten seconds */
}
END_TEST

START_TEST(retries_come_closer_and_stay_before_the_deadline)
{
    int64_t now = 0, deadline = 30000;
    for (int i = 0; i < 100 && now < renew_lost_ms(deadline, 30000); i++) {
        int64_t next = renew_retry_ms(now, deadline, 0);
        ck_assert_int_ge(next, now + 10);
        ck_assert_int_le(next, now + 10 + (deadline - now) / 8);
        now = next;
    }
    ck_assert_int_ge(now, renew_lost_ms(deadline, 30000));
    ck_assert_int_lt(now, deadline);
}
END_TEST

START_TEST(lost_is_told_before_the_deadline)
{
    ck_assert_int_eq(renew_lost_ms(100000, 30000), 99500);
    ck_assert_int_eq(renew_lost_ms(100000, 600), 99940);
    ck_assert_int_eq(renew_lost_ms(100000, 9), 100000);
}
END_TEST

START_TEST(a_lease_ends_with_maxhold)
{
    ck_assert_int_eq(renew_lease_ms(1000, 30000, INT64_MAX), 30000);
    ck_assert_int_eq(renew_lease_ms(1000, 30000, 11000), 10000);
    ck_assert_int_le(renew_lease_ms(1000, 30000, 900), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("renew");
    TCase *c = tcase_create("renew");
    tcase_add_test(c, renewal_is_at_a_third_and_never_later);
    tcase_add_test(c, holds_taken_together_spread_and_meet_in_slots);
    tcase_add_test(c, retries_come_closer_and_stay_before_the_deadline);
    tcase_add_test(c, lost_is_told_before_the_deadline);
    tcase_add_test(c, a_lease_ends_with_maxhold);
    suite_add_tcase(s, c);
    return suite_run(s);
}
