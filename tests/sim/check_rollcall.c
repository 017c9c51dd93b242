/* The roll call (safety R15) as stories in virtual time: when all brokers have signed, a master
 * that has forgotten everything is active at once; when one is missing, or in doubt, it is not. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "redis/place.h"
#include "story.h"
#include "suite.h"

enum {
    QUARANTINE_MS = 6000 + 30 + 1000, /* max_lease of world_defaults(), drift, and a second */
    SOON_MS = 100
};

static void begin(int n_servers, int n_brokers, const char *owners, const char *brokers)
{
    story_list(brokers, NULL);
    story_begin(n_servers, n_brokers, owners);
    world_run_ms(600); /* all have been heard since the masters are active */
}

static void restart(int server)
{
    fake_server_kill(&world.servers[server]);
    world_run_ms(300);
    fake_server_start(&world.servers[server], false);
}

static bool is_active(int server)
{
    return world.servers[server].up && fake_server_is_active(&world.servers[server]);
}

/* It comes within so long; returns when. */
static int64_t becomes_active_us(int server, int64_t within_ms)
{
    int64_t end_us = sim_now_us() + within_ms * 1000;
    while (!is_active(server) && sim_now_us() < end_us)
        world_run_ms(1);
    ck_assert_msg(is_active(server), "it is not active after %d ms", (int)within_ms);
    return sim_now_us();
}

/* Brokers try again to connect about once a second. */
static void reachable(int broker, int server)
{
    while (story_state(broker, server) < MASTER_QUARANTINE)
        world_run_ms(1);
}

static void stays_out(int server, int64_t ms)
{
    int64_t end_us = sim_now_us() + ms * 1000;
    while (sim_now_us() < end_us) {
        ck_assert_msg(!is_active(server), "active %d ms too early",
                      (int)((end_us - sim_now_us()) / 1000));
        world_run_ms(10);
    }
}

static void leave(int broker)
{
    world_broker_leave(broker);
    while (world.brokers[broker].alive)
        world_run_ms(1);
}

static int64_t granted_soon(int app, const char *words)
{
    world_say(app, "%s", words);
    world_run_ms(30);
    return story_granted(app);
}

/* ---- all have signed ---- */

/* A hold lives through it, and the next one is granted right after the locks have been planted. */
START_TEST(first_grant_right_after)
{
    begin(1, 1, "xy", "b0");
    world_connect(2, 0, "z");
    int64_t token = story_gets(0, "LOCK n");
    int64_t lease_token = story_gets(1, "LOCK l LEASE 6000");
    restart(0);
    reachable(0, 0);
    (void)becomes_active_us(0, SOON_MS);
    world_run_ms(20);
    ck_assert_int_gt(granted_soon(2, "LOCK m"), lease_token);
    world_say(2, "LOCK n");
    world_run_ms(20);
    story_answers(2, "nil");
    ck_assert_int_eq(world_copies("n") + world_copies("l"), 2);
    ck_assert_int_eq(story_gets(0, "RENEW n"), token);
    world_run_ms(5000);
    story_frees(0);
    story_gets(2, "LOCK n");
    world_end();
}
END_TEST

START_TEST(two_brokers_one_late)
{
    begin(1, 2, "xy", "b0,b1");
    story_gets(0, "LOCK n");
    story_gets(1, "LOCK m LEASE 6000");
    story_cut(1, 0, true);
    restart(0);
    reachable(0, 0);
    stays_out(0, 2000);
    ck_assert_str_eq(master_status(world.brokers[0].masters[0], 0)->roll_missing, "b1");
    story_cut(1, 0, false);
    (void)becomes_active_us(0, 4000);
    world_run_ms(300);
    ck_assert_int_eq(world_copies("n") + world_copies("m"), 2);
    world_connect(2, 0, "z");
    granted_soon(2, "LOCK o");
    world_end();
}
END_TEST

/* All at once, and back one after the other. */
START_TEST(three_masters_at_once)
{
    begin(3, 2, "xy", "b0,b1");
    int64_t token = story_gets(0, "LOCK n");
    for (int i = 0; i < 3; i++)
        fake_server_kill(&world.servers[i]);
    world_run_ms(400);
    for (int i = 0; i < 3; i++)
        fake_server_start(&world.servers[i], false);
    for (int i = 0; i < 3; i++)
        (void)becomes_active_us(i, 1500);
    world_run_ms(300);
    world_say(1, "LOCK n");
    world_run_ms(30);
    story_answers(1, "nil");
    ck_assert_int_gt(granted_soon(1, "LOCK m"), token);
    story_frees(0);
    world_end();
}
END_TEST

/* One of three: the others have to say first that this broker is still the one of its name. */
START_TEST(one_of_three)
{
    begin(3, 2, "xy", "b0,b1");
    story_gets(0, "LOCK n");
    restart(1);
    (void)becomes_active_us(1, 1500);
    world_run_ms(300);
    ck_assert_int_eq(world_copies("n"), 3);
    world_end();
}
END_TEST

/* The master takes no locks at first, as one that has no room. */
START_TEST(not_before_all_is_planted)
{
    begin(1, 1, "xy", "b0");
    int64_t token = story_gets(0, "LOCK n LEASE 6000");
    world.servers[0].refuses = "OOM command not allowed when used memory > 'maxmemory'.";
    restart(0);
    reachable(0, 0);
    stays_out(0, 1000);
    world.servers[0].refuses = NULL;
    (void)becomes_active_us(0, 1500);
    ck_assert_int_eq(world_lock_at(0, "n")->token, token);
    world_end();
}
END_TEST

/* ---- somebody is missing ---- */

/* Until its time the master is out, and what a living broker's clients have stays. */
START_TEST(one_missing)
{
    begin(1, 2, "xy", "b0,b1");
    int64_t token = story_gets(0, "LOCK n");
    world_broker_kill(1);
    restart(0);
    stays_out(0, QUARANTINE_MS - 100);
    (void)becomes_active_us(0, 3000);
    world_run_ms(500);
    char last[WORLD_TEXT] = "";
    for (const char *push = world_push(0); *push; push = world_push(0))
        snprintf(last, sizeof last, "%s", push);
    ck_assert_msg(strncmp(last, "safe n", 6) == 0, "'%s'", last);
    ck_assert_int_eq(story_gets(0, "RENEW n"), token);
    world_end();
}
END_TEST

/* ... also when it comes back in between: nobody knows what it had told. */
START_TEST(one_comes_back_without_memory)
{
    begin(1, 2, "xy", "b0,b1");
    restart(0);
    world_broker_kill(1);
    world_run_ms(1000);
    world_broker_start(1);
    stays_out(0, QUARANTINE_MS - 1000 - 100);
    (void)becomes_active_us(0, 3000);
    world_end();
}
END_TEST

/* A signature of the life before counts no more. */
START_TEST(a_second_restart)
{
    begin(1, 2, "xy", "b0,b1");
    story_cut(1, 0, true);
    restart(0);
    reachable(0, 0);
    stays_out(0, 500); /* it has signed */
    story_cut(0, 0, true);
    restart(0);
    story_cut(1, 0, false);
    stays_out(0, 2500);
    story_cut(0, 0, false);
    (void)becomes_active_us(0, 4000);
    world_end();
}
END_TEST

/* ---- a broker restarted just before ---- */

/* kill -9: what it had told is not known to the new one, which waits until that is over. */
START_TEST(restarted_by_kill)
{
    begin(1, 1, "x", "b0");
    story_gets(0, "LOCK n LEASE 6000");
    world_broker_kill(0);
    world_broker_start(0);
    world_run_ms(500);
    restart(0);
    stays_out(0, 6000);
    (void)becomes_active_us(0, 3000);
    world_end();
}
END_TEST

START_TEST(restarted_cleanly)
{
    begin(1, 2, "x", "b0,b1");
    story_gets(0, "LOCK n LEASE 6000");
    story_frees(0);
    leave(0);
    world_broker_start(0);
    world_run_ms(500);
    restart(0);
    reachable(0, 0);
    reachable(1, 0);
    (void)becomes_active_us(0, SOON_MS);
    world_end();
}
END_TEST

/* Its clients still rely on something. */
START_TEST(restarted_with_leases)
{
    begin(1, 1, "x", "b0");
    story_gets(0, "LOCK n LEASE 6000");
    leave(0);
    world_broker_start(0);
    world_run_ms(500);
    restart(0);
    stays_out(0, 6000);
    (void)becomes_active_us(0, 3000);
    world_end();
}
END_TEST

/* The one before it had been killed: of that the one that leaves knows no more than this one. */
START_TEST(killed_and_then_restarted_cleanly)
{
    begin(1, 1, "x", "b0");
    story_gets(0, "LOCK n LEASE 6000");
    world_broker_kill(0);
    world_broker_start(0);
    world_run_ms(200);
    leave(0);
    world_broker_start(0);
    world_run_ms(200);
    restart(0);
    stays_out(0, 5000);
    (void)becomes_active_us(0, 5000);
    world_end();
}
END_TEST

/* ---- two of one name ---- */

static const char *const one_name[] = {"b0", "b0", "b1"};

static void begin_with_one_name(int n_servers, const char *brokers)
{
    static const struct world_view views[WORLD_BROKERS];
    story_list(brokers, one_name);
    story_begin_as(n_servers, views, 2, "x");
    world_run_ms(600);
}

/* The second one comes in the middle of a quarantine: nobody knows what both have told. */
START_TEST(two_of_one_name_veto)
{
    begin_with_one_name(1, "b0,b1");
    restart(0);
    world_run_ms(1000);
    world_broker_start(1);
    world_run_ms(100);
    ck_assert_str_eq(master_status(world.brokers[1].masters[0], 0)->roll_veto,
                     "two brokers have the name b0");
    stays_out(0, QUARANTINE_MS - 1500);
    (void)becomes_active_us(0, 4000);
    world_end();
}
END_TEST

/* The first one, which had stood still, comes back before the second one, and keeps its holds
 * there. After one more restart nobody knows of that: the second one does not sign. */
START_TEST(the_first_of_one_name_was_there_in_between)
{
    begin_with_one_name(1, "b0");
    story_cut(0, 0, true);
    world_broker_start(1);
    world_run_ms(PLACE_GAP_MS + 2000);
    story_cut(1, 0, true);
    restart(0);
    story_cut(0, 0, false);
    reachable(0, 0);
    world_run_ms(1000);
    story_cut(1, 0, false);
    reachable(1, 0);
    world_run_ms(500);
    story_cut(0, 0, true);
    restart(0);
    reachable(1, 0);
    stays_out(0, QUARANTINE_MS - 500);
    world_end();
}
END_TEST

/* From then on the first one gets nothing. */
START_TEST(the_first_of_one_name_is_refused)
{
    begin_with_one_name(3, "b0");
    world_broker_start(1);
    world_run_ms(100);
    world_say(0, "LOCK n");
    world_run_ms(500);
    story_answers(0, "-NOQUORUM");
    world_connect(1, 1, "y");
    story_gets(1, "LOCK n");
    world_end();
}
END_TEST

/* The first one cannot reach the masters at which the second one has taken the name. One of them
 * forgets it. */
START_TEST(the_first_of_one_name_does_not_sign)
{
    begin_with_one_name(3, "b0");
    story_cut(0, 0, true);
    story_cut(0, 1, true);
    world_broker_start(1);
    story_cut(1, 2, true);
    world_run_ms(100);
    world_connect(1, 1, "y");
    story_gets(1, "LOCK n LEASE 6000");
    story_cut(1, 0, true);
    restart(0);
    story_cut(0, 0, false);
    reachable(0, 0);
    stays_out(0, 5000);
    world_end();
}
END_TEST

/* Out of sight for long: whoever had the name meanwhile is not known. */
START_TEST(out_of_sight)
{
    begin(1, 1, "x", "b0");
    story_cut(0, 0, true);
    world_run_ms(PLACE_GAP_MS + 1000);
    restart(0);
    story_cut(0, 0, false);
    reachable(0, 0);
    stays_out(0, QUARANTINE_MS - 100);
    (void)becomes_active_us(0, 3000);
    world_end();
}
END_TEST

/* It stood still, and its link broke meanwhile. */
START_TEST(stood_still)
{
    begin(1, 1, "x", "b0");
    world_broker_pause(0, true);
    world_run_ms(6000);
    restart(0);
    world_broker_pause(0, false);
    reachable(0, 0);
    stays_out(0, QUARANTINE_MS - 100);
    (void)becomes_active_us(0, 3000);
    world_end();
}
END_TEST

/* ---- what else is in doubt ---- */

/* Brokers of another list. */
START_TEST(another_list)
{
    static const struct world_view views[] = {{"old", NULL, NULL}, {"new", NULL, NULL}};
    story_list("b0", NULL);
    story_begin_as(1, views, 2, "x");
    world_run_ms(600);
    story_gets(0, "LOCK n");
    world_broker_start(1);
    world_run_ms(500);
    story_cut(0, 0, true);
    restart(0);
    while (story_state(1, 0) != MASTER_QUARANTINE)
        world_run_ms(10);
    stays_out(0, 1000);
    master_adopt(world.brokers[1].masters[0]);
    story_cut(0, 0, false);
    stays_out(0, QUARANTINE_MS - 2500);
    world_end();
}
END_TEST

/* Its clock has jumped: what was planted there may be gone already. */
START_TEST(a_jump_in_the_middle)
{
    begin(1, 2, "xy", "b0,b1");
    story_cut(1, 0, true);
    restart(0);
    reachable(0, 0);
    fake_server_jump(&world.servers[0], 3000);
    world_run_ms(1000);
    story_cut(1, 0, false);
    stays_out(0, QUARANTINE_MS - 1500);
    (void)becomes_active_us(0, 8000);
    world_end();
}
END_TEST

/* A jump alone is no new life: nothing is planted. */
START_TEST(a_jump)
{
    begin(1, 1, "x", "b0");
    fake_server_jump(&world.servers[0], 3000);
    while (is_active(0))
        world_run_ms(10);
    stays_out(0, QUARANTINE_MS - 100);
    world_settle();
    world_end();
}
END_TEST

/* What commands of Redis have told no broker remembers. */
START_TEST(drop_in_is_not_remembered)
{
    begin(1, 1, "x", "b0");
    world_say(0, "SET k v NX PX 5000");
    world_run_ms(50);
    story_answers(0, "OK");
    restart(0);
    stays_out(0, 6000);
    (void)becomes_active_us(0, 3000);
    world_end();
}
END_TEST

/* ---- tokens ---- */

/* Broker 0 gives this lock so often that no other one counts as far by itself: the last token. */
static int64_t tokens_of_one(void)
{
    int64_t token = 0;
    for (int i = 0; i < 200; i++) {
        token = story_gets(0, "LOCK n");
        story_frees(0);
    }
    return token;
}

/* One broker has granted tokens far ahead of what the other one would. */
START_TEST(the_highest_token)
{
    begin(_i, 2, "xy", "b0,b1");
    int64_t token = tokens_of_one();
    for (int i = 0; i < _i; i++)
        fake_server_kill(&world.servers[i]);
    world_run_ms(300);
    for (int i = 0; i < _i; i++)
        fake_server_start(&world.servers[i], false);
    for (int i = 0; i < _i; i++)
        (void)becomes_active_us(i, 1500);
    world_run_ms(300);
    ck_assert_int_gt(granted_soon(1, "LOCK n"), token);
    world_end();
}
END_TEST

/* It has left since, and has told it to the one in its place. */
START_TEST(the_highest_token_of_one_that_left)
{
    begin(1, 2, "xy", "b0,b1");
    int64_t token = tokens_of_one();
    leave(0);
    world_broker_start(0);
    world_run_ms(500);
    restart(0);
    (void)becomes_active_us(0, 1500);
    world_run_ms(300);
    ck_assert_int_gt(granted_soon(1, "LOCK n"), token);
    world_end();
}
END_TEST

/* ---- taken over ---- */

/* The owner has taken its hold to the other broker, where it is planted: the first broker does not
 * bring it back, and does not go on believing that it has it. */
START_TEST(taken_over_before)
{
    begin(1, 2, "xx", "b0,b1");
    story_gets(0, "LOCK n LEASE 6000");
    int64_t token = story_gets(1, "RENEW n LEASE 6000");
    restart(0);
    (void)becomes_active_us(0, 1500);
    world_run_ms(300);
    ck_assert_int_eq(world_lock_at(0, "n")->token, token);
    world_say(1, "UNLOCK n");
    world_run_ms(30);
    story_answers(1, "1");
    world_connect(2, 0, "z");
    ck_assert_int_gt(granted_soon(2, "LOCK n"), token);
    world_say(0, "RENEW n");
    world_run_ms(30);
    story_answers(0, "-NOTHELD");
    world_end();
}
END_TEST

/* ---- told elsewhere for longer than the broker knows that has it now ---- */

enum { TOLD_MS = 6000, KNOWN_MS = 2000 };

/* x was told TOLD_MS by the first broker, which two masters know. The second broker takes the lock
 * over, where one of these and the third master say how long; and the first one hears of that. */
static void take_over_what_was_told_elsewhere(void)
{
    begin(3, 3, "xxy", "b0,b1,b2");
    (void)story_gets(0, "LOCK n LEASE 2000");
    story_cut(0, 2, true);
    (void)story_gets(0, "RENEW n LEASE 6000");
    story_cut(1, 0, true);
    (void)story_gets(1, "LOCK n LEASE 1000");
    world_run_ms(200);
    story_cut(1, 0, false);
    world_run_ms(200);
}

static void restart_all(void)
{
    for (int i = 0; i < 3; i++)
        fake_server_kill(&world.servers[i]);
    story_cut(0, 2, false);
    for (int i = 0; i < 3; i++)
        fake_server_start(&world.servers[i], false);
}

static void is_not_granted(int app, int64_t ms)
{
    int64_t end_us = sim_now_us() + ms * 1000;
    while (sim_now_us() < end_us) {
        world_say(app, "LOCK n");
        world_run_ms(100);
        ck_assert_msg(world_reply(app)[0] != '[', "granted %d ms too early",
                      (int)((end_us - sim_now_us()) / 1000));
    }
}

/* It is planted for as long as anybody can have been told. */
START_TEST(planted_for_what_was_told_elsewhere)
{
    take_over_what_was_told_elsewhere();
    restart_all();
    for (int i = 0; i < 3; i++)
        (void)becomes_active_us(i, 1500);
    is_not_granted(2, TOLD_MS - 2200);
    world_end();
}
END_TEST

/* It has lapsed at the broker that took it over, whose memory is not enough to sign with. */
START_TEST(no_signature_after_it_has_lapsed_here)
{
    take_over_what_was_told_elsewhere();
    world_run_ms(KNOWN_MS);
    restart_all();
    is_not_granted(2, TOLD_MS - KNOWN_MS - 700);
    world_end();
}
END_TEST

/* ---- FAIR ---- */

/* The line between brokers is gone with the masters. Those who wait at one broker are served in
 * their order all the same, and nobody is left behind. */
START_TEST(fair_outlives_the_line)
{
    int served[2] = {0}; /* the last one at each broker */
    begin(_i, 2, "x", "b0,b1");
    int64_t token = story_gets(0, "LOCK n");
    for (int app = 1; app < 7; app++) {
        char owner[2] = {(char)('a' + app)};
        world_connect(app, app % 2, owner);
        world_say(app, "LOCK n WAIT 0 FAIR");
        world_run_ms(10);
    }
    for (int i = 0; i < _i; i++)
        restart(i);
    for (int i = 0; i < _i; i++)
        (void)becomes_active_us(i, 2000);
    story_frees(0);
    for (int n = 0; n < 6; n++) {
        int app = 1;
        for (int ms = 0; app == 7 || world.apps[app].n_replies == 0; app = app % 7 + 1) {
            if (app == 7) {
                ck_assert_int_lt(ms++, 2000);
                world_run_ms(1);
            }
        }
        int64_t newer = story_granted(app);
        ck_assert_int_gt(newer, token);
        token = newer;
        ck_assert_int_gt(app, served[app % 2]);
        served[app % 2] = app;
        story_frees(app);
    }
    world_end();
}
END_TEST

static Suite *rollcall_suite(void)
{
    Suite *s = suite_create("rollcall");
    TCase *c = tcase_create("rollcall");
    tcase_add_test(c, first_grant_right_after);
    tcase_add_test(c, two_brokers_one_late);
    tcase_add_test(c, three_masters_at_once);
    tcase_add_test(c, one_of_three);
    tcase_add_test(c, not_before_all_is_planted);
    tcase_add_test(c, one_missing);
    tcase_add_test(c, one_comes_back_without_memory);
    tcase_add_test(c, a_second_restart);
    tcase_add_test(c, restarted_by_kill);
    tcase_add_test(c, restarted_cleanly);
    tcase_add_test(c, restarted_with_leases);
    tcase_add_test(c, killed_and_then_restarted_cleanly);
    tcase_add_test(c, two_of_one_name_veto);
    tcase_add_test(c, the_first_of_one_name_was_there_in_between);
    tcase_add_test(c, the_first_of_one_name_is_refused);
    tcase_add_test(c, the_first_of_one_name_does_not_sign);
    tcase_add_test(c, out_of_sight);
    tcase_add_test(c, stood_still);
    tcase_add_test(c, another_list);
    tcase_add_test(c, a_jump_in_the_middle);
    tcase_add_test(c, a_jump);
    tcase_add_test(c, drop_in_is_not_remembered);
    tcase_add_loop_test(c, the_highest_token, 1, 2);
    tcase_add_loop_test(c, the_highest_token, 3, 4);
    tcase_add_test(c, the_highest_token_of_one_that_left);
    tcase_add_test(c, taken_over_before);
    tcase_add_test(c, planted_for_what_was_told_elsewhere);
    tcase_add_test(c, no_signature_after_it_has_lapsed_here);
    tcase_add_loop_test(c, fair_outlives_the_line, 1, 2);
    tcase_add_loop_test(c, fair_outlives_the_line, 3, 4);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(rollcall_suite());
}
