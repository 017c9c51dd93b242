/* Acquire, order, re-entry, release: each as one short story in virtual time. */
#include <check.h>
#include <stdio.h>

#include "story.h"
#include "suite.h"

START_TEST(one_round_each)
{
    story_begin(_i, 1, "x");
    int64_t asks = world_asks(0);
    int64_t token = story_gets(0, "LOCK n");
    ck_assert_int_eq(world_asks(0), asks + 1);
    ck_assert_int_eq(world_copies("n"), _i);
    story_frees(0);
    ck_assert_int_eq(world_asks(0), asks + 2);
    ck_assert_int_eq(world_copies("n"), 0);
    ck_assert_int_gt(story_gets(0, "LOCK n"), token);
    world_end();
}
END_TEST

START_TEST(busy_is_nil)
{
    story_begin(3, 2, "x");
    world_connect(1, 0, "y");
    world_connect(2, 1, "z");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n");
    world_say(2, "LOCK n");
    world_run_ms(20);
    story_answers(1, "nil");
    story_answers(2, "nil");
    world_say(1, "UNLOCK n");
    world_say(2, "UNLOCK n");
    world_run_ms(20);
    story_answers(1, "-NOTHELD");
    story_answers(2, "-NOTHELD");
    ck_assert_int_eq(world_copies("n"), 3);
    world_end();
}
END_TEST

START_TEST(first_come_first_served)
{
    story_begin(3, 1, "wxyz");
    for (int i = 0; i < 4; i++) {
        world_say(i, "LOCK n WAIT 0");
        world_run_ms(5);
    }
    int64_t last = story_granted(0);
    for (int i = 0; i < 4; i++) {
        for (int j = i + 1; j < 4; j++)
            story_answers(j, "");
        story_frees(i);
        if (i < 3) {
            int64_t token = story_granted(i + 1);
            ck_assert_int_gt(token, last);
            last = token;
        }
    }
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

START_TEST(waits_for_another_broker)
{
    story_begin(3, 2, "xy");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 0");
    world_run_ms(1000);
    story_answers(1, "");
    story_frees(0);
    story_granted(1);
    world_end();
}
END_TEST

START_TEST(wait_ends)
{
    story_begin(3, 1, "xy");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 500");
    world_run_ms(490);
    story_answers(1, "");
    world_run_ms(20);
    story_answers(1, "nil");
    world_end();
}
END_TEST

START_TEST(enters_again)
{
    story_begin(3, 2, "xx");
    world_say(0, "LOCK n");
    int64_t token = story_gets(0, "LOCK n");
    ck_assert_int_eq(story_granted(0), token);
    world_say(0, "HOLDS n");
    world_say(0, "UNLOCK n");
    world_run_ms(20);
    story_answers(0, "2");
    story_answers(0, "0");
    world_say(1, "HOLDS n");
    world_say(1, "RENEW n");
    world_run_ms(20);
    story_answers(1, "1");
    ck_assert_int_gt(story_granted(1), token);
    world_run_ms(1500);
    char lost[64];
    snprintf(lost, sizeof lost, "lost n %ld moved", token);
    ck_assert_str_eq(world_push(0), lost);
    world_end();
}
END_TEST

START_TEST(without_a_majority_nothing_stays)
{
    story_begin(3, 1, "x");
    fake_server_stop(&world.servers[1], true);
    fake_server_stop(&world.servers[2], true);
    world_say(0, "LOCK n");
    world_run_ms(1000);
    story_answers(0, "-NOQUORUM only 1 of 3");
    ck_assert_int_eq(world_copies("n"), 0);
    fake_server_stop(&world.servers[1], false);
    fake_server_stop(&world.servers[2], false);
    world_run_ms(1000);
    ck_assert_int_eq(world_copies("n"), 0);
    story_gets(0, "LOCK n");
    world_end();
}
END_TEST

START_TEST(one_slow_master_does_not_slow)
{
    story_begin(5, 1, "x");
    fake_server_stop(&world.servers[4], true);
    story_gets(0, "LOCK n");
    ck_assert_int_eq(world_copies("n"), 4);
    fake_server_stop(&world.servers[4], false);
    world_run_ms(5);
    ck_assert_int_eq(world_copies("n"), 5);
    world_end();
}
END_TEST

START_TEST(quit_frees_and_reset_lapses)
{
    story_begin(3, 1, "xy");
    world_say(0, "LOCK a");
    world_say(1, "LOCK b");
    world_run_ms(10);
    world_close(0, true);
    world_close(1, false);
    world_run_ms(10);
    ck_assert_int_eq(world_copies("a"), 0);
    ck_assert_int_eq(world_copies("b"), 3);
    world_run_ms(story_conf.broker.lease_ms);
    ck_assert_int_eq(world_copies("b"), 0);
    world_end();
}
END_TEST

START_TEST(force_takes_it_away)
{
    story_begin(3, 2, "x");
    world_connect(1, 1, "admin");
    int64_t token = story_gets(0, "LOCK n");
    char lost[64];
    snprintf(lost, sizeof lost, "lost n %ld gone", token);
    world_say(1, "FORCEUNLOCK n");
    world_run_ms(20);
    story_answers(1, "1");
    ck_assert_int_eq(world_copies("n"), 0);
    world_run_ms(story_conf.broker.lease_ms / 3 + 50);
    ck_assert_str_eq(world_push(0), lost);
    world_say(1, "FORCEUNLOCK n");
    world_run_ms(20);
    story_answers(1, "0");
    world_end();
}
END_TEST

/* Who waits gets the lock by it and keeps it, one by one or, of three permits or readers, all. */
START_TEST(force_ends_what_stood_there)
{
    static const char *const kinds[] = {"LOCK n", "LOCK n LIMIT 1", "LOCK n SHARED"};
    char text[64];
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        story_begin(_i, 1, "xabc");
        world_connect(4, 0, "admin");
        story_gets(0, kinds[k]);
        for (int i = 1; i <= 3; i++) {
            snprintf(text, sizeof text, "LOCK n%s WAIT 0", k == 1 ? " LIMIT 1" : "");
            world_say(i, "%s", text);
        }
        world_run_ms(50);
        world_say(4, "FORCEUNLOCK n");
        world_run_ms(500);
        story_answers(4, "1");
        story_granted(1);
        world_say(1, "HOLDS n");
        world_run_ms(50);
        story_answers(1, "1");
        for (int i = 2; i <= 3; i++)
            story_answers(i, "");
        world_end();
    }
}
END_TEST

START_TEST(a_waiting_lock_blocks_what_follows)
{
    story_begin(3, 2, "xy");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 0");
    world_say(1, "UNLOCK n");
    world_run_ms(1000);
    story_answers(1, "");
    world_say(0, "UNLOCK n");
    world_run_ms(100);
    story_granted(1);
    story_answers(1, "1");
    world_end();
}
END_TEST

START_TEST(a_short_maxhold_is_granted_first)
{
    story_begin(3, 1, "x");
    world_say(0, "LOCK n MAXHOLD 200");
    world_run_ms(100);
    story_granted(0);
    ck_assert_str_eq(world_push(0), "");
    story_frees(0);
    world_end();
}
END_TEST

/* The next name of one letter, from *c on, that is a lock of three permits. */
static char next_of_three(char *c)
{
    for (int limit = 0;; ++*c) {
        char name[2] = {*c};
        ck_assert_int_le(*c, 'z');
        if (world_kind(name, "x", &limit) && limit == 3)
            return (*c)++;
    }
}

/* Each broker begins at a permit of its own, so none of them has to be asked for another one. */
START_TEST(permits_are_asked_for_once)
{
    story_begin(3, 3, "xyz");
    world.conf.kinds = true;
    char c = 'a', one = next_of_three(&c), other = next_of_three(&c);
    for (int i = 0; i < 3; i++) {
        world.brokers[i].b.first_permit = (uint32_t)i;
        int64_t asks = world_asks(i);
        if (_i)
            world_say(i, "MLOCK 2 %c %c LIMIT 3", one, other);
        else
            world_say(i, "LOCK %c LIMIT 3", one);
        world_run_ms(10);
        ck_assert_int_eq(*world_reply(i), '[');
        ck_assert_int_eq(world_asks(i), asks + 1 + _i);
    }
    world_end();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("acquire");
    TCase *t = tcase_create("acquire");
    tcase_add_loop_test(t, one_round_each, 1, 6);
    tcase_add_test(t, busy_is_nil);
    tcase_add_test(t, first_come_first_served);
    tcase_add_test(t, waits_for_another_broker);
    tcase_add_test(t, wait_ends);
    tcase_add_test(t, enters_again);
    tcase_add_test(t, without_a_majority_nothing_stays);
    tcase_add_test(t, one_slow_master_does_not_slow);
    tcase_add_test(t, quit_frees_and_reset_lapses);
    tcase_add_test(t, force_takes_it_away);
    tcase_add_loop_test(t, force_ends_what_stood_there, 1, 2);
    tcase_add_loop_test(t, force_ends_what_stood_there, 3, 4);
    tcase_add_test(t, a_waiting_lock_blocks_what_follows);
    tcase_add_test(t, a_short_maxhold_is_granted_first);
    tcase_add_loop_test(t, permits_are_asked_for_once, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
