/*
 * Plain commands and scripts of Redis about locks, as stories in virtual time: real Lua on the
 * masters and in the brokers. How often the masters are asked, and what one broker knows of what
 * another one does, stands here; that replies are those of Redis is seen by tests/dropin.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "story.h"
#include "suite.h"

/* x and y at the first broker, elsewhere at the second. */
enum { X = 0, ELSEWHERE = 1, Y = 2 };

static const char unlock_body[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                  "return redis.call('del', KEYS[1]) else return 0 end";
static const char lock_body[] =
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) "
    "return redis.call('hget', KEYS[1], ARGV[2]) end return 'held ' .. redis.call('pttl', KEYS[1])";
static const char all_body[] =
    "for i = 1, #KEYS do if redis.call('exists', KEYS[i]) == 1 then return 0 end end "
    "for i = 1, #KEYS do redis.call('set', KEYS[i], ARGV[1], 'PX', 2000) end return #KEYS";

static void begin(int n_servers)
{
    story_begin(n_servers, 2, "xe");
    world_connect(Y, 0, "y");
    world_script("unlock", unlock_body);
    world_script("lock", lock_body);
    world_script("all", all_body);
}

/* Says it and is answered within some milliseconds. */
static void says(int app, const char *words, const char *expected)
{
    world_say(app, "%s", words);
    world_run_ms(20);
    const char *reply = world_reply(app);
    ck_assert_msg(strcmp(reply, expected) == 0, "%s: '%s', not '%s'", words, reply, expected);
}

/* The same, by so many questions to the masters. */
static void says_by(int app, const char *words, const char *expected, int64_t asks)
{
    int broker = app == ELSEWHERE;
    int64_t before = world_asks(broker);
    says(app, words, expected);
    ck_assert_msg(world_asks(broker) - before == asks, "%s: %" PRId64 " questions", words,
                  world_asks(broker) - before);
}

static void deafen(bool deaf)
{
    for (int i = 0; i < story_conf.n_servers; i++)
        fake_master_deafen(world.brokers[0].masters[i], deaf);
}

/* ---- what is asked ---- */

START_TEST(each_command_asks_once)
{
    begin(_i);
    says_by(X, "SET n me NX PX 2000", "OK", 1);
    says_by(X, "GET n", "me", 1);
    says_by(X, "PEXPIRE n 3000", "1", 1);
    says_by(X, "EVAL unlock 1 n you", "0", 1);
    says_by(X, "EVAL unlock 1 n me", "1", 1);
    says_by(X, "GET n", "nil", 1);
    says_by(X, "EVAL lock 1 n 2000 me", "1", 1);
    says_by(X, "EVAL lock 1 n 2000 me", "2", 1);
    ck_assert_int_eq(world_copies("n"), _i);
    says_by(ELSEWHERE, "SET n you NX PX 2000", "nil", 1); /* what it hears first answers it */
    says_by(ELSEWHERE, "EVAL lock 1 n 2000 me", "3", 1);
    says_by(X, "DEL n", "1", 2); /* knows of count 2 only */
    world_run_ms(20);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

START_TEST(what_ends_by_its_time)
{
    begin(_i);
    says(X, "SET n me NX PX 500", "OK");
    world_run_ms(400);
    says(ELSEWHERE, "SET n you NX PX 500", "nil");
    world_run_ms(100);
    says(ELSEWHERE, "SET n you NX PX 500", "OK");
    says(X, "EVAL unlock 1 n me", "0");
    says(X, "GET n", "you");
    world_end();
}
END_TEST

START_TEST(a_time_is_what_the_masters_say)
{
    begin(_i);
    says(X, "SET n me NX PX 2000", "OK");
    world_run_ms(500);
    for (int app = X; app <= ELSEWHERE; app++) {
        world_say(app, "PTTL n");
        world_run_ms(20);
        int left_ms = atoi(world_reply(app));
        ck_assert_int_ge(left_ms, 1400);
        ck_assert_int_le(left_ms, 1490);
    }
    says(X, "PERSIST n", "1");
    says(ELSEWHERE, "PTTL n", "-1");
    world_end();
}
END_TEST

/* ---- several brokers ---- */

START_TEST(a_refusal_from_memory)
{
    begin(_i);
    says(X, "SET n me NX PX 3000", "OK");
    says_by(Y, "SET n you NX PX 3000", "nil", 0);
    says(ELSEWHERE, "DEL n", "1");
    says_by(Y, "SET n you NX PX 3000", "OK", 1);
    says(ELSEWHERE, "PEXPIRE n 3000", "1"); /* another operation: it might end unheard */
    says_by(X, "SET n me NX PX 3000", "nil", 1);
    world_end();
}
END_TEST

START_TEST(no_refusal_from_memory_by_the_deaf)
{
    begin(_i);
    says(X, "SET n me NX PX 3000", "OK");
    deafen(true);
    says(ELSEWHERE, "DEL n", "1");
    world_run_ms(1100);
    says(Y, "SET n you NX PX 3000", "OK");
    world_end();
}
END_TEST

START_TEST(wrong_guesses_are_put_right)
{
    begin(_i);
    deafen(true);
    says(X, "SET n me NX PX 3000", "OK");
    says(ELSEWHERE, "SET n you XX PX 3000", "OK");
    says(X, "EVAL unlock 1 n me", "0");
    says(X, "GET n", "you");
    says(ELSEWHERE, "DEL n", "1");
    says(X, "EVAL unlock 1 n you", "0");
    says(X, "EVAL lock 1 n 3000 me", "1");
    says(ELSEWHERE, "EVAL lock 1 n 3000 me", "2");
    says(X, "EVAL lock 1 n 3000 me", "3");
    world_end();
}
END_TEST

START_TEST(several_keys)
{
    begin(_i);
    says_by(X, "EVAL all 3 a b c me", "3", 3); /* one for each name, in one call */
    ck_assert_int_eq(world_copies("c"), _i);
    says(ELSEWHERE, "EVAL all 3 z c y you", "0");
    ck_assert_int_eq(world_copies("z"), 0);
    says(ELSEWHERE, "DEL a b nothing", "2");
    says(ELSEWHERE, "EXISTS a b c", "1");
    world_end();
}
END_TEST

/* Both at once, again and again: one at most has it, and each knows which. */
START_TEST(two_brokers_at_once)
{
    begin(_i);
    fake_net = (struct fake_net){.latency_min_us = 500, .latency_max_us = 3000};
    int won = 0;
    for (int i = 0; i < 200; i++) {
        char words[64];
        int n = 0;
        snprintf(words, sizeof words, "SET n%d me NX PX 5000", i);
        world_say(X, "%s", words);
        world_say(ELSEWHERE, "%s", words);
        world_run_ms(150);
        for (int app = X; app <= ELSEWHERE; app++) {
            const char *reply = world_reply(app);
            ck_assert_msg(strcmp(reply, "OK") == 0 || strcmp(reply, "nil") == 0, "'%s'", reply);
            n += strcmp(reply, "OK") == 0;
        }
        ck_assert_int_le(n, 1);
        won += n;
        snprintf(words, sizeof words, "GET n%d", i);
        says(X, words, n ? "me" : "nil");
    }
    ck_assert_int_gt(won, 150);
    world_end();
}
END_TEST

/* A count by two brokers at once is a true one. */
START_TEST(counts_of_two_brokers)
{
    begin(_i);
    fake_net = (struct fake_net){.latency_min_us = 500, .latency_max_us = 3000};
    int64_t counted = 0, tried_again = 0;
    for (int i = 0; i < 200; i++) {
        world_say(X, "EVAL lock 1 n 60000 me");
        world_say(ELSEWHERE, "EVAL lock 1 n 60000 me");
        world_run_ms(300);
        for (int app = X; app <= ELSEWHERE; app++) {
            const char *reply = world_reply(app);
            if (strncmp(reply, "-TRYAGAIN", 9) == 0)
                tried_again++;
            else
                counted++;
            ck_assert_msg(*reply && (*reply != '-' || strncmp(reply, "-TRYAGAIN", 9) == 0), "'%s'",
                          reply);
        }
    }
    world_say(X, "HGET n me");
    world_run_ms(20);
    ck_assert_int_eq(atoi(world_reply(X)), counted);
    ck_assert_int_gt(counted, tried_again);
    world_end();
}
END_TEST

/* ---- with LOCK ---- */

START_TEST(native_locks_and_plain_ones_exclude_each_other)
{
    begin(_i);
    story_gets(X, "LOCK n LEASE 6000");
    says(Y, "SET n me NX PX 500", "nil");
    says(ELSEWHERE, "SET n me NX PX 500", "nil");
    says(ELSEWHERE, "GET n", "x");
    says(ELSEWHERE, "DEL n", "0");
    says(Y, "DEL n", "0");
    world_say(Y, "PEXPIRE n 500");
    world_run_ms(20);
    story_answers(Y, "-ERR the command writes to 'n', which is held by LOCK, by x:");
    ck_assert_int_eq(world_copies("n"), _i);
    says(X, "UNLOCK n", "1");
    says(ELSEWHERE, "SET n me NX PX 500", "OK");
    says(X, "LOCK n", "nil");
    says(ELSEWHERE, "DEL n", "1");
    story_gets(X, "LOCK n");
    world_end();
}
END_TEST

START_TEST(who_waits_by_lock_is_called_up)
{
    begin(_i);
    says(ELSEWHERE, "SET n me NX PX 5000", "OK");
    world_say(X, "LOCK n WAIT 5000");
    world_run_ms(100);
    story_answers(X, "");
    says(ELSEWHERE, "EVAL unlock 1 n me", "1");
    world_run_ms(30);
    story_granted(X);
    says(Y, "SET n me NX PX 500", "nil");
    world_end();
}
END_TEST

START_TEST(readers_are_looked_at)
{
    begin(_i);
    story_gets(X, "LOCK n SHARED LEASE 6000");
    says(Y, "SET n me NX PX 500", "nil");
    says(ELSEWHERE, "SET n me NX PX 500", "nil");
    says(ELSEWHERE, "EXISTS n", "1");
    says(ELSEWHERE, "DEL n m", "0");
    says(ELSEWHERE, "EVAL all 2 n m me", "0");
    world_end();
}
END_TEST

START_TEST(forceunlock_ends_a_plain_lock)
{
    begin(_i);
    says(X, "SET n me NX PX 5000", "OK");
    says(ELSEWHERE, "FORCEUNLOCK n", "1");
    says(Y, "SET n you NX PX 5000", "OK");
    says(X, "EVAL unlock 1 n me", "0");
    world_end();
}
END_TEST

/* ---- faults ---- */

START_TEST(a_master_that_is_silent)
{
    begin(3);
    says(X, "SET n me NX PX 5000", "OK");
    story_cut(0, 0, true);
    says(X, "PEXPIRE n 4000", "1");
    says(X, "SET m me NX PX 5000", "OK");
    says(ELSEWHERE, "SET m you NX PX 5000", "nil");
    says(X, "EVAL unlock 1 m me", "1");
    says(ELSEWHERE, "SET m you NX PX 5000", "OK");
    story_cut(0, 0, false);
    world_run_ms(1000);
    says(X, "GET n", "me");
    says(X, "GET m", "you");
    says(X, "DEL n m", "2");
    world_end();
}
END_TEST

START_TEST(no_majority)
{
    begin(3);
    says(X, "SET n me NX PX 5000", "OK");
    story_cut(0, 0, true);
    story_cut(0, 1, true);
    for (int i = 0; i < 4; i++)
        world_say(X, i % 2 ? "DEL n" : "SET m me NX PX 5000");
    world_run_ms(story_conf.broker.request_timeout_ms * 3);
    story_answers(X, "-NOQUORUM ");
    story_answers(X, "-NOQUORUM ");
    for (int i = 0; i < 2; i++) {
        const char *reply = world_reply(X);
        ck_assert_msg(*reply == '-', "'%s'", reply);
    }
    story_cut(0, 0, false);
    story_cut(0, 1, false);
    world_run_ms(3000);
    says(X, "SET m me NX PX 5000", "OK");
    world_end();
}
END_TEST

/* One has done it, one has not got the hold, of one nobody knows: a majority may have it. It is not
 * done again, and nobody is told that nothing was done. */
START_TEST(what_a_majority_may_have_done_has_failed)
{
    begin(3);
    says(X, "SET n me NX PX 5000", "OK");
    ck_assert(fake_server_lapse(&world.servers[1], "holdfast:{n}", "-"));
    story_cut(0, 2, true);
    world_say(X, "PEXPIRE n 300");
    world_run_ms(story_conf.broker.request_timeout_ms * 2);
    story_answers(X, "-NOQUORUM ");
    story_cut(0, 2, false);
    world_end();
}
END_TEST

/* The time that was asked for in vain arrives late, and what puts it back behind it: the lock has
 * been given back meanwhile, and stays free. */
START_TEST(what_has_ended_is_not_put_back)
{
    begin(3);
    says(X, "SET n me NX PX 5000", "OK");
    story_cut(0, 0, true);
    story_cut(0, 1, true);
    world_say(X, "PEXPIRE n 4000");
    world_run_ms(story_conf.broker.request_timeout_ms + 20);
    story_answers(X, "-NOQUORUM ");
    says(ELSEWHERE, "EVAL unlock 1 n me", "1");
    story_cut(0, 0, false);
    story_cut(0, 1, false);
    world_run_ms(100);
    ck_assert_int_eq(world_copies("n"), 0);
    world_run_ms(1000);
    says(ELSEWHERE, "GET n", "nil");
    world_end();
}
END_TEST

START_TEST(a_broker_that_dies_leaves_what_was_taken)
{
    begin(_i);
    says(X, "SET n me NX PX 1000", "OK");
    world_say(X, "SET m me NX PX 1000");
    story_run_there();
    world_broker_kill(0);
    world_run_ms(20);
    says(ELSEWHERE, "GET n", "me");
    says(ELSEWHERE, "SET m you NX PX 1000", "nil");
    world_run_ms(1000);
    says(ELSEWHERE, "SET n you NX PX 1000", "OK");
    world_end();
}
END_TEST

START_TEST(a_connection_that_goes_leaves_what_it_took)
{
    begin(_i);
    world_say(X, "SET n me NX PX 5000");
    story_run_there();
    world_close(X, true);
    world_run_ms(20);
    says(Y, "GET n", "me");
    world_end();
}
END_TEST

/* ---- a bad network ---- */

static void bad_network(bool bad)
{
    fake_net = (struct fake_net){.latency_min_us = 200, .latency_max_us = 3000};
    if (!bad)
        return;
    fake_net.slow_per_mille = 20;
    fake_net.slow_us = 100000;
    fake_net.loss_per_mille = 5;
    fake_net.copy_per_mille = 10;
    fake_net.copy_us = 100000;
}

static bool is_unknown(const char *reply)
{
    return strncmp(reply, "-NOQUORUM", 9) == 0;
}

/* Adds up the replies that are there. */
static void count_replies(int *done, int *unknown)
{
    for (int app = X; app <= Y; app++) {
        const char *reply;
        while (*(reply = world_reply(app))) {
            bool is_again = strncmp(reply, "-TRYAGAIN", 9) == 0;
            ck_assert_msg(*reply != '-' || is_again || is_unknown(reply), "'%s'", reply);
            *done += *reply >= '0' && *reply <= '9'; /* else: held, as nobody knew by whom */
            *unknown += is_unknown(reply);
        }
    }
}

/* What was confirmed is counted once, what failed once or not at all, what was refused never. */
START_TEST(counts_over_a_bad_network)
{
    enum { ROUNDS = 300 };
    int done = 0, unknown = 0;
    begin(_i);
    bad_network(true);
    for (int i = 0; i < ROUNDS; i++) {
        for (int app = X; app <= Y; app++)
            world_say(app, "EVAL lock 1 n 600000 me");
        world_run_ms(i % 3 ? 30 : 400);
        count_replies(&done, &unknown);
    }
    bad_network(false);
    world_run_ms(20000);
    count_replies(&done, &unknown);
    world_say(X, "HGET n me");
    world_run_ms(200);
    int count = atoi(world_reply(X));
    ck_assert_msg(count >= done && count <= done + unknown, "%d: %d done, %d unknown", count, done,
                  unknown);
    ck_assert_int_gt(done, ROUNDS / 2);
    world_end();
}
END_TEST

/* Who has been told OK has it alone until he gives it back: a release that finds it says so. */
START_TEST(holders_over_a_bad_network)
{
    enum { ROUNDS = 400 };
    bool has[3] = {false}, may_have[3] = {false};
    int taken = 0;
    begin(_i);
    bad_network(true);
    for (int i = 0; i < ROUNDS; i++) {
        int app = (int)sim_random(3);
        bool frees = has[app] || may_have[app];
        world_say(app, frees ? "EVAL unlock 1 n %d" : "SET n %d NX PX 600000", app);
        do
            world_run_ms(50);
        while (world.apps[app].n_asks > 0);
        const char *reply = world_reply(app);
        bool others = has[(app + 1) % 3] || has[(app + 2) % 3];
        bool is_told = *reply && *reply != '-';
        if (frees && is_told) {
            ck_assert_msg(!has[app] || strcmp(reply, "1") == 0, "lost: '%s'", reply);
            has[app] = may_have[app] = false;
        } else if (frees) {
            may_have[app] = may_have[app] || has[app]; /* it may be gone by now */
            has[app] = false;
        } else if (strcmp(reply, "OK") == 0) {
            ck_assert_msg(!others, "two have it");
            has[app] = true;
            taken++;
        } else {
            may_have[app] = is_unknown(reply);
        }
    }
    ck_assert_int_gt(taken, ROUNDS / 20);
    bad_network(false);
    world_end();
}
END_TEST

int main(void)
{
    static const int servers[] = {1, 3, 5};
    Suite *s = suite_create("call");
    TCase *t = tcase_create("call");
    const TTest *const each[] = {
        each_command_asks_once,
        what_ends_by_its_time,
        a_time_is_what_the_masters_say,
        a_refusal_from_memory,
        no_refusal_from_memory_by_the_deaf,
        wrong_guesses_are_put_right,
        several_keys,
        two_brokers_at_once,
        counts_of_two_brokers,
        native_locks_and_plain_ones_exclude_each_other,
        who_waits_by_lock_is_called_up,
        readers_are_looked_at,
        forceunlock_ends_a_plain_lock,
        a_broker_that_dies_leaves_what_was_taken,
        a_connection_that_goes_leaves_what_it_took,
        counts_over_a_bad_network,
        holders_over_a_bad_network,
    };
    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        for (size_t j = 0; j < sizeof servers / sizeof servers[0]; j++)
            tcase_add_loop_test(t, each[i], servers[j], servers[j] + 1);
    }
    tcase_add_test(t, a_master_that_is_silent);
    tcase_add_test(t, no_majority);
    tcase_add_test(t, what_a_majority_may_have_done_has_failed);
    tcase_add_test(t, what_has_ended_is_not_put_back);
    suite_add_tcase(s, t);
    return suite_run(s);
}
