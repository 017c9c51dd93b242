/* Who waits, and what stands behind him, as stories in virtual time. */
#include <check.h>

#include "stats/stats.h"
#include "story.h"
#include "suite.h"

/* ---- what one connection says behind a LOCK that may wait ---- */

static const char *const waits[] = {"LOCK z WAIT 1200", "MLOCK 2 q z WAIT 1200"};
static const struct {
    const char *words, *answer;
} behind[] = {{"UNLOCK u", "1"}, {"LOCK m", "["}, {"MLOCK 2 m k", "[["}};

enum { WAITS = sizeof waits / sizeof waits[0], BEHIND = sizeof behind / sizeof behind[0] };

/* z is held through the other broker, which only the masters know. */
START_TEST(nothing_is_begun_behind_one_that_waits)
{
    int n = _i % 2 ? 3 : 1;
    story_begin(n, 2, "xy");
    story_gets(1, "LOCK z");
    story_gets(0, "LOCK u");
    world_say(0, "%s", waits[_i / 2 % WAITS]);
    world_say(0, "%s", behind[_i / 2 / WAITS].words);
    world_run_ms(1000);
    ck_assert_int_eq(world_copies("u"), n);
    ck_assert_int_eq(world_copies("m") + world_copies("k"), 0);
    world_run_ms(400);
    story_answers(0, "nil");
    story_answers(0, behind[_i / 2 / WAITS].answer);
    world_end();
}
END_TEST

/* Who does not have to wait keeps up only what is said behind him. */
START_TEST(what_stands_behind_goes_on_when_it_is_granted)
{
    story_begin(3, 1, "x");
    world_say(0, "LOCK a LEASE 2000");
    world_say(0, "LOCK n WAIT 1200");
    world_say(0, "MLOCK 2 b c WAIT 1200");
    world_say(0, "UNLOCK n");
    world_run_ms(50);
    story_granted(0);
    story_granted(0);
    story_answers(0, "[[");
    story_answers(0, "1");
    world_end();
}
END_TEST

static Suite *waiting_suite(void)
{
    Suite *s = suite_create("waiting");
    TCase *c = tcase_create("waiting");
    tcase_add_loop_test(c, nothing_is_begun_behind_one_that_waits, 0, 2 * WAITS * BEHIND);
    tcase_add_test(c, what_stands_behind_goes_on_when_it_is_granted);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(waiting_suite());
}
