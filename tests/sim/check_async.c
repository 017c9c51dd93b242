/* LOCK with a tag, and CANCEL, as stories in virtual time. The judge (history.h) sees to it that no
 * end is told before QUEUED, nor after CANCEL has been answered. */
#include <check.h>
#include <string.h>

#include "stats/stats.h"
#include "story.h"
#include "suite.h"

/* The next push of this application is the grant for this tag. */
static void granted(int app, const char *tag)
{
    char expected[32];
    snprintf(expected, sizeof expected, "async %s granted ", tag);
    story_pushed(app, expected);
}

/* ---- what stands behind it ---- */

START_TEST(nothing_behind_it_is_held_up)
{
    story_begin(3, 1, "xy");
    story_gets(0, "LOCK n");
    story_gets(1, "LOCK u");
    world_say(1, "LOCK n WAIT 0 ASYNC t");
    world_say(1, "UNLOCK u");
    world_say(1, "LOCK v WAIT 1000");
    world_say(1, "MLOCK 2 k m ASYNC s");
    world_run_ms(20);
    story_answers(1, "QUEUED");
    story_answers(1, "1");
    story_granted(1);
    story_answers(1, "QUEUED");
    story_pushed(1, "async s granted [");
    story_pushed(1, "");
    story_frees(0);
    granted(1, "t");
    world_end();
}
END_TEST

/* One connection stands in line as often as it asks, in that order. */
START_TEST(two_of_one_connection_stand_in_line)
{
    story_begin(_i, 2, "xy");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 0 OWNER p ASYNC 1%s", _i == 3 ? " FAIR" : "");
    world_say(1, "LOCK n WAIT 0 OWNER q ASYNC 2%s", _i == 3 ? " FAIR" : "");
    world_run_ms(600);
    story_frees(0);
    world_run_ms(600);
    granted(1, "1");
    story_pushed(1, "");
    world_say(1, "UNLOCK n OWNER p");
    world_run_ms(20);
    granted(1, "2");
    world_end();
}
END_TEST

START_TEST(one_without_wait_is_tried_once)
{
    story_begin(3, 2, "xy");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n ASYNC t");
    world_say(1, "LOCK n WAIT 40 ASYNC s");
    world_run_ms(20);
    story_pushed(1, "async t timeout");
    world_run_ms(40);
    story_pushed(1, "async s timeout");
    world_end();
}
END_TEST

/* The reply to an UNLOCK whose hold-up nobody can help keeps up QUEUED, and the end behind it. */
START_TEST(an_end_is_told_behind_its_queued)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n");
    for (int i = 0; i < 3; i++)
        story_cut(0, i, true);
    world_say(0, "UNLOCK n");
    world_say(0, "LOCK m WAIT 5000 ASYNC t");
    world_say(0, "LOCK m ASYNC s OWNER q");
    world_say(0, "CANCEL t");
    world_run_ms(100);
    story_answers(0, "");
    story_pushed(0, "");
    world_run_ms(600);
    story_answers(0, "-NOQUORUM");
    story_answers(0, "QUEUED");
    story_answers(0, "QUEUED");
    story_answers(0, "1");
    story_pushed(0, "async t cancelled");
    story_pushed(0, "async s error NOQUORUM");
    for (int i = 0; i < 3; i++)
        story_cut(0, i, false);
    world_end();
}
END_TEST

/* ---- CANCEL ---- */

START_TEST(cancel_ends_a_wait)
{
    story_begin(3, 2, "xyz");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 0 ASYNC t");
    world_say(2, "LOCK n WAIT 0 ASYNC t");
    world_run_ms(20);
    world_say(1, "CANCEL t");
    world_say(1, "CANCEL t");
    world_run_ms(20);
    story_answers(1, "QUEUED");
    story_answers(1, "1");
    story_answers(1, "0");
    story_pushed(1, "async t cancelled");
    story_frees(0);
    world_run_ms(20);
    granted(2, "t");
    story_pushed(1, "");
    world_end();
}
END_TEST

/* It has been given by the masters, or is on its way: nothing is left there. */
START_TEST(what_is_granted_after_cancel_is_given_back)
{
    static const char *const words[] = {
        "LOCK n ASYNC t",         "LOCK n LEASE 5000 ASYNC t",    "LOCK n SHARED ASYNC t",
        "LOCK n LIMIT 2 ASYNC t", "LOCK n FAIR WAIT 900 ASYNC t", "MLOCK 2 n m ASYNC t"};
    story_begin(_i % 2 ? 3 : 1, 1, "x");
    world_say(0, "%s", words[_i / 2]);
    story_run_there();
    world_say(0, "CANCEL t");
    world_run_ms(20);
    story_answers(0, "QUEUED");
    story_answers(0, "1");
    story_pushed(0, "async t cancelled");
    ck_assert_int_eq(world_copies("n") + world_copies("m"), 0);
    world_end();
}
END_TEST

/* The lock is freed and the wait for it cancelled, a little earlier or later: either it is held and
 * was said to be, or neither. */
START_TEST(cancel_and_a_grant_cross)
{
    story_begin(_i % 2 ? 3 : 1, 1 + _i / 10 % 2, "xy");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 0 ASYNC t");
    world_run_ms(20);
    story_answers(1, "QUEUED");
    world_say(0, "UNLOCK n");
    sim_run_until(sim_now_us() + _i * 40);
    world_say(1, "CANCEL t");
    world_run_ms(20);
    bool cancelled = strcmp(world_reply(1), "1") == 0;
    story_pushed(1, cancelled ? "async t cancelled" : "async t granted");
    story_pushed(1, "");
    ck_assert_int_eq(world_copies("n"), cancelled ? 0 : _i % 2 ? 3 : 1);
    world_end();
}
END_TEST

/* It counts once more on the masters when CANCEL is said. */
/* CANCEL of an entry, and HOLDS, have been answered: the lock is entered once. */
static void is_left(void)
{
    story_answers(0, "QUEUED");
    story_answers(0, "1");
    story_answers(0, "1");
    story_frees(0);
    ck_assert_int_eq(world_copies("n"), 0);
}

START_TEST(a_re_entry_that_is_cancelled_is_left)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n");
    world_say(0, "LOCK n ASYNC t");
    story_run_there();
    world_say(0, "CANCEL t");
    world_say(0, "HOLDS n");
    world_run_ms(20);
    is_left();
    world_end();
}
END_TEST

/* The masters cannot be reached when it is to be left: it does not count all the same. */
START_TEST(what_is_cancelled_in_an_outage_is_left)
{
    story_begin(_i % 2 ? 3 : 1, 1, "x");
    story_gets(0, "LOCK n");
    world_say(0, "LOCK n ASYNC t");
    story_run_there();
    world_say(0, "CANCEL t");
    sim_run_until(sim_now_us() + _i * 100);
    for (int i = 0; i < world.conf.n_servers; i++)
        story_cut(0, i, true);
    world_run_ms(story_conf.broker.request_timeout_ms + 50);
    for (int i = 0; i < world.conf.n_servers; i++)
        story_cut(0, i, false);
    world_run_ms(1000);
    world_say(0, "HOLDS n");
    world_run_ms(20);
    is_left();
    world_end();
}
END_TEST

START_TEST(an_mlock_that_waits_is_cancelled)
{
    story_begin(3, 1, "xy");
    story_gets(0, "LOCK n");
    world_say(1, "MLOCK 2 m n WAIT 0 ASYNC t");
    world_run_ms(20);
    world_say(1, "CANCEL t");
    story_frees(0);
    story_answers(1, "QUEUED");
    story_answers(1, "1");
    ck_assert_int_eq(world_copies("n") + world_copies("m"), 0);
    ck_assert_int_eq(world.brokers[0].b.n_waiters, 0);
    world_end();
}
END_TEST

/* ---- the connection ends ---- */

/* Nobody was told that it is held, so nobody has to wait for the end of its lease. */
START_TEST(a_grant_of_nobody_is_given_back)
{
    static const char *const words[] = {"LOCK n LEASE 5000 ASYNC t", "MLOCK 2 n m ASYNC t",
                                        "LOCK n FAIR WAIT 900 ASYNC t"};
    story_begin(3, 1, "xy");
    world_say(0, "%s", words[_i]);
    story_run_there();
    world_close(0, false);
    world_run_ms(20);
    ck_assert_int_eq(world_copies("n") + world_copies("m"), 0);
    story_gets(1, "LOCK n");
    world_end();
}
END_TEST

/* More of them than fit into one turn stay in their queues for a while, where nobody minds them:
 * not the one behind them at their broker, nor that at another one. */
START_TEST(those_that_leave_later_are_passed_over)
{
    struct request_list kept = TAILQ_HEAD_INITIALIZER(kept);
    struct broker *b;
    story_begin(3, 2, "xyzw"); /* x at one broker, the others at the second */
    b = &world.brokers[1].b;
    story_gets(_i % 2, "LOCK n");
    for (int i = 0; i < 5; i++)
        world_say(2, "LOCK n WAIT 0 OWNER p%d ASYNC %d%s", i, i, _i / 2 == i % 2 ? " FAIR" : "");
    world_say(2, "MLOCK 2 m n WAIT 0 ASYNC m");
    world_run_ms(20);
    world_say(3, "LOCK n WAIT 0 ASYNC t");
    world_run_ms(20);
    world_say(_i % 2, "UNLOCK n");
    story_run_there();
    b->leaves_left = 0;
    session_cancel_all(&world.apps[2].session, world_local_ms(&world.brokers[1]));
    ck_assert_uint_eq(b->n_waiters, 1);
    world.apps[2].n_asyncs = 0;
    TAILQ_CONCAT(&kept, &b->leavers, link); /* as if hundreds of others had to leave first */
    world_wake(1);
    world_run_ms(1500);
    granted(3, "t");
    TAILQ_CONCAT(&b->leavers, &kept, link);
    world_wake(1);
    world_run_ms(1);
    ck_assert(TAILQ_EMPTY(&b->leavers));
    world_end();
}
END_TEST

/* ---- DRAINING ---- */

START_TEST(draining_ends_those_that_wait)
{
    story_begin(3, 1, "xy");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 0 ASYNC t");
    world_run_ms(20);
    broker_drain(&world.brokers[0].b);
    world_say(1, "LOCK k ASYNC s");
    world_run_ms(20);
    story_pushed(1, "async s error DRAINING");
    story_pushed(1, "async t error DRAINING");
    world_end();
}
END_TEST

/* ---- circles ---- */

/* Four tasks of one connection: what two of them hold and wait for is a circle of these two. */
START_TEST(owners_that_wait_for_each_other_are_a_circle)
{
    story_begin(3, 1, "x");
    world.apps[0].session.tell = false;
    story_gets(0, "LOCK n OWNER p");
    story_gets(0, "LOCK m OWNER q");
    world_say(0, "LOCK m WAIT 0 OWNER p ASYNC 1");
    world_run_ms(20);
    story_pushed(0, "");
    world_say(0, "LOCK n WAIT 0 OWNER q ASYNC 2");
    world_run_ms(20);
    story_pushed(0, "async 2 error DEADLOCK 'n' is held by connection 1, which waits for 'm'");
    world_say(0, "UNLOCK m OWNER q");
    world_run_ms(20);
    granted(0, "1");
    world_end();
}
END_TEST

/* A task that waits says nothing about what other tasks of its connection hold. */
START_TEST(other_owners_are_none)
{
    story_begin(3, 1, "xy");
    story_gets(0, "LOCK n"); /* by the owner of the connection, whom it may name or not */
    world.apps[0].session.owner_named = _i == 1;
    story_gets(1, "LOCK m");
    world_say(0, "LOCK m WAIT 0 OWNER p ASYNC 1");
    world_run_ms(20);
    world_say(1, "LOCK n WAIT 0 ASYNC 2");
    world_run_ms(20);
    world_say(0, "LOCK n WAIT 0 OWNER q ASYNC 3");
    world_run_ms(20);
    story_pushed(0, "");
    story_pushed(1, "");
    story_answers(0, "QUEUED");
    story_answers(0, "QUEUED");
    story_answers(1, "QUEUED");
    story_frees(0);
    granted(1, "2");
    story_frees(1);
    granted(0, "3");
    world_end();
}
END_TEST

/* ---- another connection of the owner gives back what nobody has been told of ---- */

/* One of the names is free again before the grant of both could be told: of the other one, what the
 * MLOCK has entered does not count any more. */
START_TEST(what_no_end_tells_of_does_not_count)
{
    story_begin(_i, 1, "xx");
    world_say(0, "MLOCK 2 n m WAIT 1000 ASYNC t");
    world_say(0, "LOCK n");
    story_run_there();
    world_say(1, "UNLOCK n");
    world_say(1, "UNLOCK m");
    world_run_ms(20);
    story_pushed(0, "async t timeout");
    story_answers(0, "QUEUED");
    story_answers(0, "nil"); /* it was over before that could be told */
    story_answers(1, "1");
    story_answers(1, "1");
    world_end();
}
END_TEST

/* What is given back late, when its hold is over, is not taken from the next one of the owner. */
START_TEST(what_is_given_back_is_no_later_hold)
{
    story_begin(_i, 1, "xxy");
    world_say(0, "MLOCK 2 n m WAIT 1000 ASYNC t");
    world_say(0, "LOCK n");
    story_run_there();
    world_say(1, "UNLOCK n");
    world_say(1, "LOCK n");
    world_say(1, "UNLOCK m");
    world_run_ms(20);
    story_pushed(0, "async t timeout");
    story_answers(0, "QUEUED");
    story_answers(0, "nil");
    story_answers(1, "1");
    story_granted(1);
    story_answers(1, "1");
    world_say(2, "LOCK n");
    world_run_ms(20);
    story_answers(2, "nil");
    world_end();
}
END_TEST

/* ---- RESP2 ---- */

static char message[WORLD_TEXT];

static void on_message(struct world_app *app, const char *text)
{
    (void)app;
    snprintf(message, sizeof message, "%s", text);
}

static void begin_resp2(void)
{
    story_begin(3, 1, "xy");
    world.conf.on_message = on_message;
    message[0] = '\0';
    world_subscribe(0, "async:t");
    world.apps[1].session.proto = 2;
}

START_TEST(resp2_is_told_by_a_message)
{
    begin_resp2();
    world_say(1, "LOCK n ASYNC t");
    world_say(1, "LOCK n ASYNC s");
    world_run_ms(20);
    story_answers(1, "QUEUED");
    story_answers(1, "-ERR nobody listens to the channel 'async:s'");
    world_wake(0);
    world_run_ms(1);
    ck_assert_msg(strncmp(message, "message async:t granted ", 24) == 0, "%s", message);
    ck_assert_int_eq(world_copies("n"), 3);
    world_end();
}
END_TEST

START_TEST(a_grant_that_nobody_hears_is_given_back)
{
    static const char *const words[] = {"LOCK n LEASE 5000 ASYNC t", "MLOCK 2 n m ASYNC t"};
    begin_resp2();
    world_say(1, "%s", words[_i]);
    story_run_there();
    world_close(0, true);
    world_run_ms(20);
    story_answers(1, "QUEUED");
    ck_assert_str_eq(message, "");
    ck_assert_int_eq(world_copies("n") + world_copies("m"), 0);
    world_end();
}
END_TEST

static Suite *async_suite(void)
{
    Suite *s = suite_create("async");
    TCase *t = tcase_create("async");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, nothing_behind_it_is_held_up);
    tcase_add_loop_test(t, two_of_one_connection_stand_in_line, 1, 4);
    tcase_add_test(t, one_without_wait_is_tried_once);
    tcase_add_test(t, an_end_is_told_behind_its_queued);
    tcase_add_test(t, cancel_ends_a_wait);
    tcase_add_loop_test(t, what_is_granted_after_cancel_is_given_back, 0, 12);
    tcase_add_loop_test(t, cancel_and_a_grant_cross, 0, 40);
    tcase_add_test(t, a_re_entry_that_is_cancelled_is_left);
    tcase_add_loop_test(t, what_is_cancelled_in_an_outage_is_left, 0, 12);
    tcase_add_test(t, an_mlock_that_waits_is_cancelled);
    tcase_add_loop_test(t, a_grant_of_nobody_is_given_back, 0, 3);
    tcase_add_loop_test(t, those_that_leave_later_are_passed_over, 0, 4);
    tcase_add_test(t, draining_ends_those_that_wait);
    tcase_add_test(t, owners_that_wait_for_each_other_are_a_circle);
    tcase_add_loop_test(t, other_owners_are_none, 0, 2);
    tcase_add_loop_test(t, what_no_end_tells_of_does_not_count, 1, 4);
    tcase_add_loop_test(t, what_is_given_back_is_no_later_hold, 1, 4);
    tcase_add_test(t, resp2_is_told_by_a_message);
    tcase_add_loop_test(t, a_grant_that_nobody_hears_is_given_back, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return suite_run(async_suite());
}
