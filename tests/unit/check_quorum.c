/* Votes, tokens and validity: every split of up to 15 masters, and the counterexamples of the token
 * rule. */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>

#include "redis/quorum.h"
#include "suite.h"

START_TEST(majority_of_the_configured)
{
    static const int need[] = {0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8};
    for (int n = 1; n <= QUORUM_MASTERS_MAX; n++)
        ck_assert_int_eq(quorum_need(n), need[n]);
}
END_TEST

/* Any number of yes, then any number of no: won, lost, or open, and never two of them. */
START_TEST(every_split)
{
    for (int n = 1; n <= QUORUM_MASTERS_MAX; n++) {
        for (int yes = 0; yes <= n; yes++) {
            for (int no = 0; yes + no <= n; no++) {
                struct quorum q;
                quorum_init(&q, n);
                for (int i = 0; i < yes; i++)
                    quorum_yes(&q, i, 7);
                for (int i = 0; i < no; i++)
                    quorum_no(&q, n - 1 - i);
                enum quorum_state want = yes >= quorum_need(n)     ? QUORUM_WON
                                         : n - no < quorum_need(n) ? QUORUM_LOST
                                                                   : QUORUM_PENDING;
                ck_assert_msg(quorum_state(&q) == want, "n=%d yes=%d no=%d", n, yes, no);
            }
        }
    }
}
END_TEST

START_TEST(the_first_vote_of_a_master_counts)
{
    struct quorum q;
    quorum_init(&q, 3);
    quorum_no(&q, 0);
    quorum_yes(&q, 0, 9);
    quorum_yes(&q, 1, 5);
    quorum_no(&q, 1);
    quorum_yes(&q, 1, 8);
    ck_assert_int_eq(q.n_yes, 1);
    ck_assert_int_eq(q.n_no, 1);
    ck_assert_int_eq(quorum_token(&q), 5);
    ck_assert_int_eq(q.yes & q.no, 0);
}
END_TEST

START_TEST(tokens_agree_only_when_a_majority_has_the_largest)
{
    struct quorum q;
    quorum_init(&q, 5);
    quorum_yes(&q, 0, 5);
    quorum_yes(&q, 1, 3);
    quorum_yes(&q, 2, 3);
    ck_assert_int_eq(quorum_token(&q), 5);
    ck_assert(!quorum_agreed(&q)); /* a majority with 3 is not one with 5 */
    quorum_yes(&q, 3, 5);
    ck_assert(!quorum_agreed(&q));
    quorum_yes(&q, 4, 5);
    ck_assert(quorum_agreed(&q));
}
END_TEST

START_TEST(a_veto_is_stronger_than_all_votes)
{
    struct quorum q;
    quorum_init(&q, 3);
    quorum_yes(&q, 0, 5);
    quorum_yes(&q, 1, 5);
    quorum_veto(&q);
    ck_assert_int_eq(quorum_state(&q), QUORUM_LOST);
    quorum_yes(&q, 2, 5);
    ck_assert_int_eq(quorum_state(&q), QUORUM_LOST);
    quorum_init(&q, 3);
    ck_assert_int_eq(quorum_state(&q), QUORUM_PENDING);
}
END_TEST

START_TEST(validity_is_what_is_left_less_drift_and_steps)
{
    ck_assert_int_eq(quorum_validity_ms(30000, 1000, 1000, 5000), 30000 - 150 - 2);
    ck_assert_int_eq(quorum_validity_ms(30000, 1000, 1040, 5000), 30000 - 40 - 150 - 2);
    ck_assert_int_eq(quorum_validity_ms(1, 0, 0, 5000), 1 - 1 - 2); /* drift is rounded up */
    ck_assert_int_eq(quorum_validity_ms(100, 0, 500, 0), -402);
    ck_assert_int_eq(quorum_validity_ms(1000, 0, 0, 0), 998);
}
END_TEST

START_TEST(a_lease_for_a_validity)
{
    for (int64_t ms = 1; ms < 100000; ms += 7) {
        for (int64_t ppm = 0; ppm <= 100000; ppm += 5000) {
            int64_t lease_ms = quorum_lease_ms(ms, ppm);
            /* each ck_assert writes to a file: too slow for so many */
            if (quorum_validity_ms(lease_ms, 0, 0, ppm) < ms ||
                quorum_validity_ms(lease_ms - 1, 0, 0, ppm) >= ms)
                ck_abort_msg("%" PRId64 " ms is not the shortest lease for %" PRId64 " ms",
                             lease_ms, ms);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("quorum");
    TCase *c = tcase_create("quorum");
    tcase_add_test(c, majority_of_the_configured);
    tcase_add_test(c, every_split);
    tcase_add_test(c, the_first_vote_of_a_master_counts);
    tcase_add_test(c, tokens_agree_only_when_a_majority_has_the_largest);
    tcase_add_test(c, a_veto_is_stronger_than_all_votes);
    tcase_add_test(c, validity_is_what_is_left_less_drift_and_steps);
    tcase_add_test(c, a_lease_for_a_validity);
    suite_add_tcase(s, c);
    return suite_run(s);
}
