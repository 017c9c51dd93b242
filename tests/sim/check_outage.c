/* Masters that forget everything while locks are held, as stories in virtual time: nothing is lost
 * whose broker lives, and nobody else gets it (safety R14). */
#include <check.h>

#include "story.h"
#include "suite.h"

/* ---- votes of a former life ---- */

/* The first master has voted, and the others are still silent. */
static void say_and_only_the_first_hears(const char *words)
{
    story_cut(0, 1, true);
    story_cut(0, 2, true);
    world_say(0, "%s", words);
    world_run_ms(5);
    story_answers(0, "");
}

/* A claim has one vote, and the master that gave it forgets it: with the next one there is no
 * majority. */
START_TEST(a_claim_has_no_vote_of_a_former_life)
{
    story_begin(3, 1, "x");
    say_and_only_the_first_hears("LOCK n");
    story_restart_empty(0);
    ck_assert_int_eq(story_state(0, 0), MASTER_QUARANTINE);
    story_cut(0, 1, false);
    world_run_ms(300);
    story_answers(0, "-NOQUORUM");
    world_end();
}
END_TEST

/* The same of a lease that is to be prolonged. */
START_TEST(a_renewal_has_no_vote_of_a_former_life)
{
    story_begin(3, 1, "x");
    (void)story_gets(0, "LOCK n LEASE 2000");
    world_run_ms(1000);
    say_and_only_the_first_hears("RENEW n LEASE 2000");
    story_restart_empty(0);
    story_cut(0, 1, false);
    world_run_ms(300);
    story_answers(0, "-NOQUORUM");
    world_end();
}
END_TEST

static Suite *outage_suite(void)
{
    Suite *s = suite_create("outage");
    TCase *c = tcase_create("outage");
    tcase_add_test(c, a_claim_has_no_vote_of_a_former_life);
    tcase_add_test(c, a_renewal_has_no_vote_of_a_former_life);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(outage_suite());
}
