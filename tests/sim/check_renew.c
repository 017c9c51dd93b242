/* The life of a hold under renewal, as stories in virtual time: kept, in jeopardy, lost, and what
 * happens when the broker or its machine stands still. */
#include <check.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "story.h"
#include "suite.h"

enum { LEASE_MS = 3000 }; /* world_defaults() */

static void cut_all(int broker, int n, bool cut)
{
    for (int i = 0; i < n; i++)
        story_cut(broker, i, cut);
}

START_TEST(kept_for_as_long_as_wanted)
{
    story_begin(_i, 1, "x");
    story_gets(0, "LOCK n TELL");
    int64_t asks = world_asks(0);
    for (int told = 0; told < 30; told++) {
        world_run_ms(LEASE_MS / 3);
        const char *push = world_push(0);
        int64_t token, left_ms;
        ck_assert_msg(sscanf(push, "renewed n %" SCNd64 " %" SCNd64, &token, &left_ms) == 2, "%s",
                      push);
        ck_assert_int_gt(left_ms, LEASE_MS * 9 / 10);
    }
    asks = world_asks(0) - asks;
    ck_assert_msg(asks >= 29 && asks <= 36, "%" PRId64 " renewals in ten leases", asks);
    story_frees(0);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

START_TEST(jeopardy_and_safe_again)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n");
    cut_all(0, 2, true);
    world_run_ms(LEASE_MS / 2);
    story_pushed(0, "jeopardy n");
    cut_all(0, 2, false);
    world_run_ms(LEASE_MS / 3);
    story_pushed(0, "safe n");
    world_run_ms(2 * LEASE_MS);
    story_pushed(0, "");
    story_frees(0);
    world_end();
}
END_TEST

/* It is told before its time is over, nobody gets it before, and the next token is larger. */
START_TEST(lost_in_time)
{
    story_begin(3, 2, "xy");
    int64_t token = story_gets(0, "LOCK n");
    cut_all(0, 3, true);
    int64_t cut_us = sim_now_us();
    world_say(1, "LOCK n WAIT 0");
    while (world.apps[0].n_pushes < 2 && sim_now_us() < cut_us + 2 * LEASE_MS * 1000)
        world_run_ms(1);
    story_pushed(0, "jeopardy n");
    story_pushed(0, "lost n");
    const struct lock *l = locktab_find(&world.brokers[0].b.locks, "n", 1);
    int64_t left_ms = lock_first_hold(l)->deadline_ms - world_local_ms(&world.brokers[0]);
    ck_assert_int_ge(left_ms, LEASE_MS / 20);
    story_answers(1, ""); /* history.c sees that it does not come too early */
    world_run_ms(LEASE_MS);
    ck_assert_int_gt(story_granted(1), token);
    world_end();
}
END_TEST

/* What a renewal brings after the deadline is too late, even from a majority. */
START_TEST(too_late_is_lost)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n");
    world_run_ms(LEASE_MS / 2);
    for (int i = 0; i < 3; i++) /* renewed there, and nobody hears of it */
        story_cut(0, i, true);
    world_run_ms(LEASE_MS + 200);
    cut_all(0, 3, false);
    world_run_ms(50);
    story_pushed(0, "jeopardy n");
    story_pushed(0, "lost n");
    story_pushed(0, "");
    world_say(0, "UNLOCK n");
    world_run_ms(500);
    story_answers(0, "-NOTHELD");
    world_end();
}
END_TEST

/* ---- the broker stands still ---- */

START_TEST(stopped_for_three_leases)
{
    story_begin(3, 2, "xy");
    int64_t token = story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 0");
    world_run_ms(10);
    int64_t pauses = (int64_t)stats.pauses_detected;
    world_broker_pause(0, true);
    world_run_ms(3 * LEASE_MS);
    ck_assert_int_gt(story_granted(1), token);
    if (_i)
        world_say(0, "UNLOCK n"); /* it lies in the socket when the broker wakes up */
    world_broker_pause(0, false);
    world_run_ms(50);
    story_pushed(0, _i ? "" : "lost n");
    story_answers(0, _i ? "-NOTHELD" : "");
    ck_assert_int_gt((int64_t)stats.pauses_detected, pauses);
    story_frees(1);
    world_end();
}
END_TEST

/* The masters have said yes, and the broker stands still before it can say so. */
START_TEST(no_late_grant)
{
    story_begin(3, 2, "xy");
    world_say(0, "LOCK n");
    story_run_there();
    world_broker_pause(0, true);
    world_run_ms(3 * LEASE_MS);
    story_gets(1, "LOCK n LEASE 6000");
    world_broker_pause(0, false);
    world_run_ms(500);
    story_answers(0, "-NOQUORUM");
    world_end();
}
END_TEST

/* The machine sleeps: the clock of the broker goes on in the meantime (CLOCK_BOOTTIME). */
static void sleep_for(int broker, int64_t ms, bool clock_goes_on)
{
    struct world_broker *wb = &world.brokers[broker];
    world_broker_pause(broker, true);
    world_run_ms(ms);
    if (!clock_goes_on)
        wb->local_us -= ms * 1000;
    world_broker_pause(broker, false);
    world_run_ms(20);
}

static void tell_of_sleep(bool clock_goes_on)
{
    story_begin(3, 2, "xy");
    int64_t token = story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 0 LEASE 6000");
    sleep_for(0, 2 * LEASE_MS, clock_goes_on);
    story_pushed(0, "lost n");
    ck_assert_int_gt(story_granted(1), token);
    world_end();
}

START_TEST(the_machine_sleeps)
{
    tell_of_sleep(true);
}
END_TEST

/* What it would be with CLOCK_MONOTONIC: two holders, and the judge ends the process. */
START_TEST(a_clock_that_sleeps_too)
{
    tell_of_sleep(false);
}
END_TEST

/* ---- ends ---- */

START_TEST(maxhold_ends_it)
{
    story_begin(3, 2, "xx");
    world_say(0, "LOCK n MAXHOLD 8000");
    world_run_ms(4000);
    story_granted(0);
    if (_i) { /* taken over by another broker half way */
        story_gets(1, "RENEW n");
        world_run_ms(1500); /* the first broker hears of it at its next renewal */
        story_pushed(0, "lost n");
    }
    while (sim_now_us() < 0 || world.apps[_i].n_pushes == 0)
        world_run_ms(10);
    const char *push = world_push(_i);
    ck_assert_msg(strstr(push, "max-hold") != NULL, "%s", push);
    world_run_ms(1500);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* Taken back at the very end of its MAXHOLD: there is nothing left to be told of. */
START_TEST(taken_back_when_maxhold_ends)
{
    story_begin(3, 3, "xxy");
    story_gets(0, "LOCK n MAXHOLD 4000 LEASE 6000");
    for (int i = 0; i < 3; i++) /* the masters would have it for longer */
        world_lock_at(i, "n")->expires_ms += 3000;
    world_run_ms(3980 + _i);
    world_say(1, "RENEW n");
    world_run_ms(10);
    const char *reply = world_reply(1);
    int64_t token, validity_ms;
    if (sscanf(reply, "[%" SCNd64 " %" SCNd64 "]", &token, &validity_ms) == 2)
        ck_assert_int_le(validity_ms, 10);
    world_say(2, "LOCK n WAIT 9000");
    world_run_ms(9500); /* history.c sees when that is too early */
    story_granted(2);
    world_end();
}
END_TEST

/* A renewal is under way when it is given back: nothing raises it again. */
START_TEST(nothing_after_the_release)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n");
    story_cut(0, 2, true);
    world_run_ms(LEASE_MS / 3 + 10); /* the renewal is held up on its way to the third */
    story_frees(0);
    story_cut(0, 2, false);
    for (int i = 0; i < 100; i++) {
        world_run_ms(20);
        ck_assert_int_eq(world_copies("n"), 0);
    }
    world_end();
}
END_TEST

START_TEST(a_broken_connection_is_not_renewed)
{
    story_begin(3, 1, "xy");
    int64_t token = story_gets(0, "LOCK n");
    world_close(0, false);
    world_say(1, "LOCK n WAIT 0");
    world_run_ms(LEASE_MS - 100);
    story_answers(1, "");
    world_run_ms(300);
    ck_assert_int_gt(story_granted(1), token);
    world_end();
}
END_TEST

START_TEST(a_shorter_lease_counts_at_once)
{
    story_begin(3, 1, "x");
    world_say(0, "LOCK n LEASE 6000");
    world_run_ms(10);
    ck_assert_int_gt(story_validity_ms(0), 5500);
    cut_all(0, 3, true);
    world_say(0, "RENEW n LEASE 500");
    world_run_ms(300);
    const char *reply = world_reply(0), *words = strstr(reply, "is held for ");
    ck_assert_msg(strncmp(reply, "-NOQUORUM", 9) == 0 && words, "%s", reply);
    ck_assert_int_le(atoi(words + 12), 300); /* not what was left of the old one */
    cut_all(0, 3, false);
    world_run_ms(6000);
    world_end();
}
END_TEST

/* A release that a master turns away reaches it as soon as it would take one. */
START_TEST(a_refused_release_is_tried_again)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n LEASE 6000");
    for (int i = 0; i < 2; i++)
        world.servers[i].refuses = "MISCONF Redis is configured to save RDB snapshots";
    world_say(0, "UNLOCK n");
    world_run_ms(1000);
    story_answers(0, "-NOQUORUM");
    ck_assert_int_eq(world_copies("n"), 2);
    for (int i = 0; i < 2; i++)
        world.servers[i].refuses = NULL;
    world_run_ms(500);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

static Suite *renew_suite(void)
{
    Suite *s = suite_create("renew");
    TCase *c = tcase_create("renew");
    tcase_add_loop_test(c, kept_for_as_long_as_wanted, 1, 2);
    tcase_add_loop_test(c, kept_for_as_long_as_wanted, 3, 4);
    tcase_add_test(c, jeopardy_and_safe_again);
    tcase_add_test(c, lost_in_time);
    tcase_add_test(c, too_late_is_lost);
    tcase_add_loop_test(c, stopped_for_three_leases, 0, 2);
    tcase_add_test(c, no_late_grant);
    tcase_add_test(c, the_machine_sleeps);
    tcase_add_test_raise_signal(c, a_clock_that_sleeps_too, SIGABRT);
    tcase_add_loop_test(c, maxhold_ends_it, 0, 2);
    tcase_add_loop_test(c, taken_back_when_maxhold_ends, 0, 20);
    tcase_add_test(c, nothing_after_the_release);
    tcase_add_test(c, a_broken_connection_is_not_renewed);
    tcase_add_test(c, a_shorter_lease_counts_at_once);
    tcase_add_test(c, a_refused_release_is_tried_again);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(renew_suite());
}
