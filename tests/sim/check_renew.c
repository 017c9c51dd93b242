/* The life of a hold under renewal, as stories in virtual time: kept, in jeopardy, lost, and what
 * happens when the broker or its machine stands still. */
#include <check.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
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

/* Who enters a hold in jeopardy again for less than its lease has not renewed it. */
START_TEST(entered_for_less_in_jeopardy)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n");
    story_gets(0, "RENEW n LEASE 6000");
    cut_all(0, 2, true);
    world_run_ms(2 * LEASE_MS * 3 / 4);
    story_pushed(0, "jeopardy n");
    cut_all(0, 2, false);
    do {
        world_say(0, "LOCK n LEASE 300");
        world_run_ms(5);
    } while (world_reply(0)[0] == '-');
    world_run_ms(2 * LEASE_MS);
    story_pushed(0, "safe n");
    world_run_ms(4 * LEASE_MS);
    story_pushed(0, "");
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

/* The broker comes late to its end, by less than what is taken off a lease for safety too. */
START_TEST(maxhold_is_no_pause)
{
    story_begin(1, 1, "x");
    uint64_t pauses = stats.lost_pause;
    story_gets(0, "LOCK n MAXHOLD 60");
    world_run_ms(20);
    world_broker_pause(0, true);
    world_run_ms(20 + _i);
    world_broker_pause(0, false);
    world_run_ms(200);
    ck_assert_uint_eq(stats.lost_pause, pauses);
    const char *push = world_push(0);
    ck_assert_msg(strstr(push, "max-hold") != NULL, "%s", push);
    world_end();
}
END_TEST

/* Taken back at the very end of its MAXHOLD: there is nothing left to be told of. */
START_TEST(taken_back_when_maxhold_ends)
{
    story_begin(3, 3, "xxy");
    story_gets(0, "LOCK n MAXHOLD 4000 LEASE 6000");
    for (int i = 0; i < 3; i++) /* the masters would have it for longer */
        ck_assert(fake_server_prolong(&world.servers[i], "holdfast:{n}", 3000));
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

/* ---- a shorter lease ---- */

/* What a request for less cut, when too few masters heard of it, would be free too early: for the
 * holder, at its broker and on the masters. */
static const char *const shorter[] = {"RENEW n LEASE 500", "LOCK n LEASE 500",
                                      "MLOCK 1 n LEASE 500", "MLOCK 2 n m LEASE 500"};

static int64_t left_ms(int broker, const char *name)
{
    const struct lock *l = locktab_find(&world.brokers[broker].b.locks, name, strlen(name));
    const struct hold *h = l ? lock_first_hold(l) : NULL;
    return h ? h->deadline_ms - world_local_ms(&world.brokers[broker]) : 0;
}

static void have_the_lease(int64_t ms)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_ge(world_lock_at(i, "n")->left_ms, ms);
}

START_TEST(a_failed_shorter_lease_cuts_nothing)
{
    story_begin(3, 2, "xy");
    world_say(0, "LOCK n LEASE 6000");
    world_run_ms(10);
    ck_assert_int_gt(story_validity_ms(0), 5900);
    story_cut(0, 1, true);
    story_cut(0, 2, true);
    world_say(0, "%s", shorter[_i]);
    world_run_ms(490);
    const char *reply = world_reply(0), *words = strstr(reply, "is held for ");
    ck_assert_msg(strncmp(reply, "-NOQUORUM", 9) == 0, "%s", reply);
    ck_assert_msg(_i > 0 || (words && atoi(words + 12) > 5400), "%s", reply);
    ck_assert_int_gt(left_ms(0, "n"), 5400);
    story_cut(0, 1, false);
    story_cut(0, 2, false);
    world_run_ms(20);
    have_the_lease(5400);
    world_say(1, "LOCK n WAIT 0");
    world_run_ms(5200);
    story_answers(1, ""); /* history.c sees that it does not come too early */
    world_run_ms(500);
    story_granted(1);
    world_end();
}
END_TEST

/* One name of two is granted for less, and the other one is not: the first one keeps its time. */
START_TEST(a_shorter_lease_of_several_or_of_none)
{
    story_begin(3, 2, "xy");
    story_gets(0, "LOCK n LEASE 6000");
    story_gets(1, "LOCK m LEASE 6000");
    world_say(0, "MLOCK 2 n m LEASE 500");
    world_run_ms(20);
    story_answers(0, "nil");
    story_gets(0, "LOCK k LEASE 6000");
    story_cut(0, 1, true);
    world_say(0, "RENEW n");
    world_run_ms(10);
    story_granted(0);
    story_cut(0, 1, false);
    for (int i = 0; i < 2; i++)
        fake_server_lapse(&world.servers[i], "holdfast:{k}",
                          "-"); /* gone from a majority: it cannot be entered */
    world_say(0, "MLOCK 2 n k LEASE 500");
    world_run_ms(20);
    story_answers(0, "nil");
    ck_assert_int_gt(left_ms(0, "n"), 5500);
    have_the_lease(5500);
    world_run_ms(1000);
    story_frees(0);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* A watched one is renewed for as long as before. */
START_TEST(a_failed_shorter_lease_is_no_new_lease)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n TELL");
    cut_all(0, 3, true);
    world_say(0, "%s", shorter[_i]);
    world_run_ms(490);
    story_answers(0, "-NOQUORUM");
    ck_assert_int_gt(left_ms(0, "n"), LEASE_MS - 700);
    cut_all(0, 3, false);
    for (int i = 0; i < 3; i++) {
        int64_t token, told_ms;
        while (world.apps[0].n_pushes == 0)
            world_run_ms(10);
        const char *push = world_push(0);
        if (sscanf(push, "renewed n %" SCNd64 " %" SCNd64, &token, &told_ms) == 2)
            ck_assert_int_gt(told_ms, LEASE_MS * 9 / 10);
        ck_assert_msg(strncmp(push, "lost", 4) != 0, "%s", push);
    }
    world_end();
}
END_TEST

/* Who enters a lock again, in a function of its own perhaps, cuts nothing of what was told before.
 */
START_TEST(a_second_entry_cuts_nothing)
{
    story_begin(3, 2, "xy");
    story_gets(0, "LOCK n LEASE 6000");
    world_say(0, "%s", shorter[1 + _i]);
    world_run_ms(10);
    if (_i == 0)
        ck_assert_int_gt(story_validity_ms(0), 5800);
    ck_assert_int_gt(left_ms(0, "n"), 5800);
    have_the_lease(5800);
    world_say(0, "UNLOCK n");
    world_run_ms(10);
    have_the_lease(5800);
    world_end();
}
END_TEST

/* Granted, it counts: here, on the masters, and also on one that did not hear of it in time. */
START_TEST(a_shorter_lease_is_granted)
{
    story_begin(3, 2, "xy");
    story_gets(0, "LOCK n LEASE 6000");
    story_cut(0, 2, true);
    world_say(0, "RENEW n LEASE 500");
    world_run_ms(10);
    ck_assert_int_le(story_validity_ms(0), 500);
    ck_assert_int_le(left_ms(0, "n"), 500);
    for (int i = 0; i < 2; i++)
        ck_assert_int_le(world_lock_at(i, "n")->left_ms, 500);
    world_run_ms(600);
    story_cut(0, 2, false);
    world_run_ms(300);
    ck_assert_int_eq(world_copies("n"), 0);
    story_gets(1, "LOCK n");
    world_end();
}
END_TEST

/* ---- a shorter lease of what was taken over ---- */

/* The owner has been told 6000 ms through broker 0. One of the two masters that broker 1 reaches
 * has missed it: a take-over there knows of no more than that one has. */
static void begin_with_one_behind(void)
{
    story_begin(3, 2, "xxy");
    story_gets(0, "LOCK n LEASE 500");
    story_cut(0, 2, true);
    story_gets(0, "RENEW n LEASE 6000");
    story_cut(1, 1, true);
}

/* Who takes it over with a LOCK for less cuts nothing. */
START_TEST(a_take_over_cuts_nothing)
{
    begin_with_one_behind();
    story_gets(1, "LOCK n LEASE 1000");
    ck_assert_int_gt(world_lock_at(0, "n")->left_ms, 5800);
    ck_assert_int_gt(world_lock_at(2, "n")->left_ms, 900);
    world_end();
}
END_TEST

/* Nor does a RENEW for less that was not granted. */
START_TEST(a_failed_shorter_lease_of_a_take_over_cuts_nothing)
{
    begin_with_one_behind();
    world_say(1, "RENEW n LEASE 1000");
    story_run_there(); /* taken over */
    fake_server_stop(&world.servers[2], true);
    world_run_ms(700);
    story_answers(1, "-");
    ck_assert_str_eq(world_lock_at(0, "n")->owner, "x");
    ck_assert_int_gt(world_lock_at(0, "n")->left_ms, 5000);
    fake_server_stop(&world.servers[2], false);
    story_cut(0, 2, false);
    story_cut(1, 1, false);
    world_say(2, "LOCK n WAIT 0");
    world_run_ms(4800);
    story_answers(2, ""); /* history.c sees that it does not come too early */
    world_run_ms(700);
    story_granted(2);
    world_end();
}
END_TEST

/* Whoever is told of renewals is told when another connection of its owner has made it less. */
START_TEST(a_shorter_lease_is_told)
{
    story_begin(3, 1, "xx");
    story_gets(0, "LOCK n LEASE 6000 TELL");
    story_gets(1, "RENEW n LEASE 500");
    int64_t token, told_ms;
    const char *push = world_push(0);
    ck_assert_msg(sscanf(push, "renewed n %" SCNd64 " %" SCNd64, &token, &told_ms) == 2, "%s",
                  push);
    ck_assert_int_le(told_ms, 500);
    world_end();
}
END_TEST

/* What is planted where it was missing is there for as long as its holder was told, whose clock may
 * be slower. */
START_TEST(planted_for_all_that_was_told)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n LEASE 6000");
    fake_server_lapse(&world.servers[2], "holdfast:{n}", "-");
    story_gets(0, "RENEW n LEASE 6000");
    world_run_ms(20);
    const struct fake_lock *l = world_lock_at(2, "n");
    ck_assert_ptr_nonnull(l);
    int64_t told_ms = left_ms(0, "n");
    ck_assert_int_ge(l->left_ms, told_ms + told_ms * story_conf.broker.drift_ppm / 1000000);
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
    tcase_add_test(c, entered_for_less_in_jeopardy);
    tcase_add_test(c, lost_in_time);
    tcase_add_test(c, too_late_is_lost);
    tcase_add_loop_test(c, stopped_for_three_leases, 0, 2);
    tcase_add_test(c, no_late_grant);
    tcase_add_test(c, the_machine_sleeps);
    tcase_add_test_raise_signal(c, a_clock_that_sleeps_too, SIGABRT);
    tcase_add_loop_test(c, maxhold_ends_it, 0, 2);
    tcase_add_loop_test(c, maxhold_is_no_pause, 0, 30);
    tcase_add_loop_test(c, taken_back_when_maxhold_ends, 0, 20);
    tcase_add_test(c, nothing_after_the_release);
    tcase_add_test(c, a_broken_connection_is_not_renewed);
    tcase_add_loop_test(c, a_failed_shorter_lease_cuts_nothing, 0, 4);
    tcase_add_test(c, a_shorter_lease_of_several_or_of_none);
    tcase_add_loop_test(c, a_failed_shorter_lease_is_no_new_lease, 0, 3);
    tcase_add_loop_test(c, a_second_entry_cuts_nothing, 0, 3);
    tcase_add_test(c, a_shorter_lease_is_granted);
    tcase_add_test(c, a_take_over_cuts_nothing);
    tcase_add_test(c, a_failed_shorter_lease_of_a_take_over_cuts_nothing);
    tcase_add_test(c, a_shorter_lease_is_told);
    tcase_add_test(c, planted_for_all_that_was_told);
    tcase_add_test(c, a_refused_release_is_tried_again);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(renew_suite());
}
