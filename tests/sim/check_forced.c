/*
 * Schedules that chance finds seldom or never, forced: each is one story in virtual time, with what
 * must not happen at its end. SIM_MUTATION=n makes a deliberate mistake (fake_server.h); the story
 * about the rule that is missing then fails: check_mutations.c sees to that.
 *
 * The counters of tokens are set far above the clocks of the brokers, so that they alone decide.
 */
#include <check.h>
#include <string.h>

#include "redis/args.h"
#include "stats/stats.h"
#include "story.h"
#include "suite.h"

static const int64_t K = (int64_t)1 << 52;

/* ---- the scene ---- */

static void count_from(int server, int64_t count)
{
    story_set_counter(server, K + count);
}

/* From now on everything that is sent arrives a second time, up to so much later. */
static void copy_all(int64_t ms)
{
    fake_net.copy_per_mille = ms ? 1000 : 0;
    fake_net.copy_us = ms * 1000;
}

static void lose_lock(int server)
{
    ck_assert(fake_server_lapse(&world.servers[server], "holdfast:{n}", "-"));
}

static void is_held_by(int server, const char *owner)
{
    const struct fake_lock *l = world_lock_at(server, "n");
    ck_assert_msg(l && strcmp(l->owner, owner) == 0, "server %d: held by %s", server,
                  l ? l->owner : "nobody");
}

/* Nothing of the lock is anywhere for so long. */
static void stays_free(int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += 20) {
        world_run_ms(20);
        ck_assert_int_eq(world_copies("n"), 0);
    }
}

/* ---- tokens ---- */

/* Five masters count (4,2,2,4,4). The first broker gets 5, 3, 3 and stops before it commits 5;
 * meanwhile a key is lost and the second is granted 5. A commit without condition gives it again.
 */
START_TEST(no_token_twice_by_commit)
{
    static const int64_t counts[] = {4, 2, 2, 4, 4};
    story_begin(5, 2, "xy");
    for (int i = 0; i < 5; i++)
        count_from(i, counts[i]);
    story_cut(0, 3, true);
    story_cut(0, 4, true);
    story_cut(1, 0, true);
    story_cut(1, 1, true);
    world_say(0, "LOCK n");
    story_run_there();
    for (int i = 0; i < 3; i++)
        story_cut(0, i, true);
    lose_lock(2);
    ck_assert_int_eq(story_gets(1, "LOCK n"), K + 5);
    for (int i = 0; i < 3; i++)
        story_cut(0, i, false);
    world_run_ms(400);
    story_answers(0, "-NOQUORUM");
    world_end();
}
END_TEST

/* Three masters count (0,1,1). The first broker gets 1 and 2 on two of them. Its key on the first
 * one is lost; the second broker is granted 2 and gives it back; then the first one's late request
 * lands on the third master, with 3. To lower that to 2 gives 2 twice. */
START_TEST(no_token_twice_by_lowering)
{
    story_begin(3, 2, "xy");
    count_from(0, 0);
    count_from(1, 1);
    count_from(2, 1);
    story_cut(0, 2, true);
    story_cut(1, 1, true);
    world_say(0, "LOCK n");
    story_run_there();
    story_cut(0, 0, true);
    story_cut(0, 1, true);
    lose_lock(0);
    ck_assert_int_eq(story_gets(1, "LOCK n"), K + 2);
    story_frees(1);
    for (int i = 2; i >= 0; i--)
        story_cut(0, i, false);
    world_run_ms(20);
    ck_assert_int_eq(story_granted(0), K + 3);
    world_end();
}
END_TEST

/* A master restarts empty, and somebody who has never seen a token asks. */
START_TEST(tokens_rise_over_lost_data)
{
    story_begin(_i, 2, "x");
    for (int i = 0; _i > 1 && i < _i; i++) /* a single one goes by the clocks */
        count_from(i, 0);
    int64_t token = story_gets(0, "LOCK n");
    story_frees(0);
    for (int i = 0; i < _i; i++) {
        story_restart_empty(i);
        world_settle();
    }
    world_broker_kill(1);
    world_broker_start(1);
    world_settle();
    world_connect(1, 1, "y");
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    world_end();
}
END_TEST

/* What should not be possible: the one who was told a higher token before sees it. */
START_TEST(a_token_that_goes_back_is_refused)
{
    story_begin(3, 1, "x");
    int64_t token = story_gets(0, "LOCK n");
    story_frees(0);
    ck_assert(token_grant(&world.brokers[0].b.granted, "n", 1, token, token + K));
    world_say(0, "LOCK n");
    world_run_ms(10);
    story_answers(0, "-NOQUORUM the masters gave token");
    ck_assert_int_eq(stats.fence_regressions, 1);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

START_TEST(a_take_over_has_a_new_token)
{
    story_begin(3, 2, "xx");
    int64_t token = story_gets(0, "LOCK n");
    ck_assert_int_gt(story_gets(1, "RENEW n"), token);
    world_end();
}
END_TEST

/* ---- majorities ---- */

/* One broker sees one master, the other one the other two. */
START_TEST(a_minority_is_no_majority)
{
    story_begin(3, 2, "xy");
    for (int i = 1; i < 3; i++) {
        story_cut(0, i, true);
        fake_master_break(world.brokers[0].masters[i]);
    }
    story_cut(1, 0, true);
    world_run_ms(10000); /* until they are known to be away */
    world_say(0, "LOCK n LEASE 5000");
    world_run_ms(500);
    story_answers(0, "-NOQUORUM");
    world_say(1, "LOCK n LEASE 5000");
    world_run_ms(500);
    story_granted(1);
    world_end();
}
END_TEST

/* What was got from a minority is given back at once, and does not wait for the end of its lease.
 */
START_TEST(a_failed_try_is_undone)
{
    story_begin(3, 2, "xy");
    story_cut(0, 1, true);
    story_cut(0, 2, true);
    world_say(0, "LOCK n LEASE 6000");
    world_run_ms(500);
    story_answers(0, "-NOQUORUM");
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* The masters answer late: what is left of the lease counts from the question. */
START_TEST(a_slow_answer_shortens_the_validity)
{
    story_begin(3, 1, "x");
    fake_net.latency_min_us = fake_net.latency_max_us = 90000;
    world_say(0, "LOCK n LEASE 3000");
    world_run_ms(300);
    ck_assert_int_le(story_validity_ms(0), 3000 - 180);
    fake_net.latency_min_us = fake_net.latency_max_us = 1000;
    world_end();
}
END_TEST

/* Two masters know of token 5 and 3: the larger one counts only when a majority has it. */
START_TEST(a_majority_has_the_token)
{
    story_begin(3, 2, "xy");
    count_from(0, 4);
    count_from(1, 2);
    count_from(2, 2);
    story_cut(0, 2, true);
    ck_assert_int_eq(story_gets(0, "LOCK n"), K + 5);
    story_frees(0);
    story_cut(1, 0, true);
    ck_assert_int_gt(story_gets(1, "LOCK n"), K + 5);
    world_end();
}
END_TEST

/* ---- votes that were forgotten ---- */

/* Two of three masters hold it, one of them forgets it: with the third that is a majority again. */
START_TEST(a_forgotten_hold_is_not_given)
{
    story_begin(3, 2, "xy");
    story_cut(0, 2, true);
    story_gets(0, "LOCK n LEASE 5000");
    story_restart_empty(1);
    world_run_ms(900);
    world_say(1, "LOCK n");
    world_run_ms(500);
    const char *reply = world_reply(1);
    ck_assert_msg(*reply == '-' || strcmp(reply, "nil") == 0, "%s", reply);
    world_end();
}
END_TEST

/* One master has voted, restarts before the second vote is heard, and votes for somebody else. */
START_TEST(a_forgotten_vote_does_not_count)
{
    story_begin(3, 2, "xy");
    story_conf.broker.request_timeout_ms = 4000;
    for (int i = 0; i < 2; i++) /* patient enough to see the master come back */
        broker_configure(&world.brokers[i].b, &story_conf.broker);
    story_cut(0, 2, true);
    story_cut(1, 1, true);
    world_say(0, "LOCK n LEASE 6000");
    story_run_there();
    story_cut(0, 1, true); /* its vote is on the way, the first master's arrives */
    world_run_ms(20);
    story_restart_empty(0);
    world_run_ms(1500);
    world_say(1, "LOCK n LEASE 6000");
    world_run_ms(20);
    const char *second = world_reply(1);
    ck_assert_msg(*second != '[', "granted with a vote that was given before: %s", second);
    story_cut(0, 1, false);
    world_run_ms(20);
    world_end();
}
END_TEST

/* The same, but the tokens differ: the commit must not count on a master that has forgotten. */
START_TEST(a_commit_after_a_restart_is_none)
{
    story_begin(3, 2, "xy");
    count_from(0, 6);
    count_from(1, 2);
    count_from(2, 1);
    story_conf.broker.request_timeout_ms = 9000;
    for (int i = 0; i < 2; i++)
        broker_configure(&world.brokers[i].b, &story_conf.broker);
    story_cut(0, 2, true);
    world_say(0, "LOCK n LEASE 6000");
    story_run_there();
    story_cut(0, 1, true);
    world_run_ms(20);
    story_restart_empty(0);
    world_run_ms(1500);
    story_cut(0, 1, false);
    world_run_ms(9000);
    const char *reply = world_reply(0);
    ck_assert_msg(*reply == '-', "granted by a commit on a master that has forgotten: %s", reply);
    world_end();
}
END_TEST

/* A clock jumps ahead, and leases end before their holders think so. */
START_TEST(a_jump_ends_no_lease)
{
    story_begin(_i, 2, "xy");
    story_gets(0, "LOCK n LEASE 5000");
    for (int i = 0; i < _i; i++)
        fake_server_jump(&world.servers[i], 6000);
    world_say(1, "LOCK n WAIT 2000");
    world_run_ms(3000);
    const char *reply = world_reply(1);
    ck_assert_msg(*reply == '-' || strcmp(reply, "nil") == 0, "%s", reply);
    world_end();
}
END_TEST

/* ---- messages that come twice, or late ---- */

START_TEST(a_late_acquire_finds_the_way_shut)
{
    story_begin(3, 1, "x");
    copy_all(_i);
    story_gets(0, "LOCK n LEASE 6000");
    copy_all(0);
    story_frees(0);
    stays_free(_i + 100);
    world_end();
}
END_TEST

/* It was another broker that released it: that one's calls say nothing of the late one. */
START_TEST(a_late_acquire_finds_the_way_shut_by_force)
{
    story_begin(3, 2, "xy");
    copy_all(_i);
    story_gets(0, "LOCK n LEASE 6000");
    copy_all(0);
    world_say(1, "FORCEUNLOCK n");
    world_run_ms(20);
    story_answers(1, "1");
    stays_free(_i + 100);
    world_end();
}
END_TEST

/* One master has given it, and FORCEUNLOCK has freed it there, before another one gives it too. */
START_TEST(what_was_forced_is_not_granted)
{
    story_begin(3, 2, "xy");
    story_cut(0, 1, true);
    story_cut(1, 2, true);
    world_run_ms(2000); /* both have noticed */
    fake_server_stop(&world.servers[2], true);
    world_say(0, "LOCK n LEASE 6000");
    world_run_ms(10);
    world_say(1, "FORCEUNLOCK n");
    world_run_ms(20);
    story_answers(1, "1");
    story_gets(1, "LOCK n LEASE 6000");
    fake_server_stop(&world.servers[2], false);
    world_run_ms(20);
    story_answers(0, "-NOQUORUM ");
    story_cut(0, 1, false);
    story_cut(1, 2, false);
    story_frees(1);
    story_gets(0, "LOCK n LEASE 6000");
    world_end();
}
END_TEST

START_TEST(a_late_renewal_creates_nothing)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n LEASE 6000");
    copy_all(300);
    story_gets(0, "RENEW n LEASE 5000");
    copy_all(0);
    story_frees(0);
    stays_free(400);
    world_end();
}
END_TEST

START_TEST(a_late_release_frees_nobody_else)
{
    story_begin(3, 1, "xy");
    story_gets(0, "LOCK n");
    copy_all(300);
    story_frees(0);
    copy_all(0);
    world_say(1, "LOCK n LEASE 6000");
    world_run_ms(400);
    story_granted(1);
    for (int i = 0; i < 3; i++)
        is_held_by(i, "y");
    world_end();
}
END_TEST

START_TEST(a_repeated_acquire_counts_once)
{
    story_begin(3, 1, "x");
    copy_all(300);
    int64_t token = story_gets(0, "LOCK n LEASE 6000");
    copy_all(0);
    world_run_ms(400);
    for (int i = 0; i < 3; i++) {
        is_held_by(i, "x");
        ck_assert_int_eq(world_lock_at(i, "n")->token, token);
        ck_assert_int_eq(world_lock_at(i, "n")->count, 1);
    }
    story_frees(0);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* Its count of two arrives once more after the count of one. */
START_TEST(a_late_count_is_old)
{
    story_begin(3, 2, "xx");
    for (int i = 0; i < _i; i++)
        (void)sim_random(2); /* another chance that all of them come late */
    story_gets(0, "LOCK n");
    copy_all(300);
    story_gets(0, "LOCK n");
    copy_all(0);
    world_say(0, "UNLOCK n");
    world_run_ms(400);
    story_answers(0, "0");
    story_gets(1, "RENEW n");
    story_frees(1);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* UNLOCK of what it does not hold asks for it by take-over; a late copy of that must not touch what
 * the same owner gets afterwards. */
START_TEST(a_late_take_over_is_old)
{
    story_begin(3, 1, "x");
    copy_all(300);
    world_say(0, "UNLOCK n");
    world_run_ms(5);
    story_answers(0, "-NOTHELD");
    copy_all(0);
    world_say(0, "LOCK n LEASE 6000");
    world_run_ms(400);
    story_granted(0);
    story_frees(0);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* A master refuses for a moment, so that UNLOCK has to be repeated there. */
static void refuse_unlock(int app)
{
    world.brokers[0].b.rounds.request_timeout_ms = 1000; /* the time to repeat it in */
    world.servers[0].refuses = "MISCONF Errors writing to the AOF file";
    world_say(app, "UNLOCK n");
    world_run_ms(5);
    world.servers[0].refuses = NULL;
}

/* The same said by another connection asks by take-over, which must not get in between. */
START_TEST(an_unlock_comes_before_the_next)
{
    story_begin(1, 1, "xx");
    story_gets(0, "LOCK n");
    refuse_unlock(0);
    world_say(1, "UNLOCK n");
    world_run_ms(10);
    story_answers(0, "1");
    story_answers(1, "-NOTHELD");
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* Nor must a LOCK find what its owner has given back, and enter it a second time; not when he was
 * told that nobody knows either. (What has been taken over counts as held elsewhere.) */
START_TEST(an_unlock_comes_before_the_next_lock)
{
    bool in_vain = _i;
    story_begin(1, 1, "xx");
    story_gets(0, "LOCK n");
    story_gets(1, "RENEW n");
    if (in_vain) {
        world.servers[0].refuses = "MISCONF Errors writing to the AOF file";
        world_say(1, "UNLOCK n");
        world_run_ms(450);
        story_answers(1, "-NOQUORUM");
        world.servers[0].refuses = NULL;
    } else {
        refuse_unlock(1);
    }
    story_gets(0, "LOCK n");
    if (!in_vain)
        story_answers(1, "1");
    story_frees(0);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* A take-over that has not come to one of the masters yet leaves the former hold there. To end that
 * one is not to end what the owner has by then. */
START_TEST(an_unlock_beside_a_take_over_ends_the_hold)
{
    story_begin(3, 2, "xx");
    story_gets(0, "LOCK n LEASE 6000");
    story_cut(1, 2, true);
    world_say(1, "RENEW n LEASE 6000");
    story_run_there();
    world_say(0, "UNLOCK n");
    world_run_ms(100);
    story_granted(1);
    story_answers(0, "1");
    world_say(0, "HOLDS n");
    world_run_ms(20);
    story_answers(0, "0");
    story_cut(1, 2, false);
    world_run_ms(100);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* A hold that UNLOCK has taken over, as it was entered twice, lasts for what was told, and not for
 * ever: it is watched when its owner says RENEW, which comes before what was left of its lease is
 * over. */
START_TEST(what_unlock_takes_over_lasts_and_can_be_renewed)
{
    story_begin(3, 2, "xx");
    story_gets(0, "LOCK n");
    story_gets(0, "LOCK n");
    world_broker_kill(0);
    world_run_ms(story_conf.broker.lease_ms * 8 / 10);
    world_say(1, "UNLOCK n");
    world_run_ms(20);
    story_answers(1, "0");
    if (_i) {
        story_gets(1, "RENEW n");
        world_run_ms(2 * story_conf.broker.lease_ms);
        story_pushed(1, "");
        story_frees(1);
    } else {
        world_run_ms(story_conf.broker.lease_ms / 10);
        ck_assert_int_ge(world_copies("n"), 2);
        world_run_ms(story_conf.broker.lease_ms / 4);
    }
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* Three masters and three brokers, and the tokens of `n` are far ahead of the clocks. */
static void begin_with_high_tokens(void)
{
    story_begin(3, 3, "xxx");
    story_gets(0, "LOCK n");
    story_frees(0);
    for (int i = 0; i < 3; i++)
        story_set_counter(i, story_counter(i) + ((int64_t)5000 << 10));
}

/* Two of three masters refuse one count, and take the old one that is told them after it. Whoever
 * asks, here or elsewhere, is told what its owner was told. */
START_TEST(a_count_that_failed_is_taken_back)
{
    bool unlocks = _i;
    story_begin(3, 2, "xx");
    story_gets(0, "LOCK n LEASE 6000");
    story_gets(0, "LOCK n LEASE 6000");
    for (int i = 1; i < 3; i++)
        world.servers[i].refuses = "MISCONF Errors writing to the AOF file";
    world_say(0, unlocks ? "UNLOCK n" : "LOCK n LEASE 6000");
    story_run_there();
    for (int i = 1; i < 3; i++)
        world.servers[i].refuses = NULL;
    world_run_ms(20);
    const char *reply = world_reply(0);
    ck_assert_msg(strncmp(reply, "-NOQUORUM", 9) == 0 && strstr(reply, "as often as before"), "%s",
                  reply);
    world_say(0, "HOLDS n");
    world_say(1, "HOLDS n");
    world_run_ms(20);
    story_answers(0, "2");
    story_answers(1, "2");
    story_gets(1, "RENEW n");
    world_say(1, "HOLDS n");
    world_run_ms(20);
    story_answers(1, "2");
    world_end();
}
END_TEST

/* When that cannot be told either, the answer does not say so, and it is told later. */
START_TEST(a_count_that_failed_is_taken_back_later)
{
    story_begin(3, 2, "xx");
    story_gets(0, "LOCK n LEASE 6000");
    story_cut(0, 1, true);
    story_cut(0, 2, true);
    world_say(0, "LOCK n LEASE 6000");
    world_run_ms(500);
    const char *reply = world_reply(0);
    ck_assert_msg(strncmp(reply, "-NOQUORUM", 9) == 0 && strstr(reply, "HOLDS tells"), "%s", reply);
    story_cut(0, 1, false);
    story_cut(0, 2, false);
    world_run_ms(2000);
    world_say(0, "HOLDS n");
    world_say(1, "HOLDS n");
    world_run_ms(20);
    story_answers(0, "1");
    story_answers(1, "1");
    world_end();
}
END_TEST

/* One master has missed a count that the others have: it is not the one that is believed. */
START_TEST(the_latest_count_is_told)
{
    story_begin(3, 2, "xx");
    story_gets(0, "LOCK n LEASE 6000");
    story_cut(0, _i, true);
    story_gets(0, "LOCK n LEASE 6000");
    world_say(1, "HOLDS n");
    world_run_ms(20);
    story_answers(1, "2");
    story_cut(0, _i, false);
    world_end();
}
END_TEST

/* A hold was planted on one master: the count that the next broker tells counts there too. */
START_TEST(a_count_is_told_to_all)
{
    begin_with_high_tokens();
    story_gets(0, "LOCK n");
    lose_lock(2);
    world_run_ms(story_conf.broker.lease_ms); /* renewed, and planted there */
    story_cut(1, 2, true);
    story_gets(1, "RENEW n");
    story_cut(1, 2, false);
    world_run_ms(20);
    story_gets(1, "LOCK n");
    world_run_ms(story_conf.broker.lease_ms);
    story_cut(2, 0, true);
    story_gets(2, "RENEW n");
    story_cut(2, 0, false);
    world_say(2, "UNLOCK n");
    world_run_ms(20);
    story_answers(2, "0");
    story_frees(2);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* One master has an older hold of the same owner, entered more often: that count is over. */
START_TEST(an_older_count_is_over)
{
    begin_with_high_tokens();
    for (int i = 0; i < 3; i++)
        story_gets(0, "LOCK n LEASE 6000");
    story_cut(0, 2, true);
    for (int i = 2; i >= 0; i--) {
        world_say(0, "UNLOCK n");
        world_run_ms(20);
        story_answers(0, i ? "0" : "1");
    }
    story_gets(1, "LOCK n"); /* its token is later by less than there were entries */
    world_run_ms(story_conf.broker.lease_ms);
    story_cut(2, 0, true);
    story_gets(2, "RENEW n");
    story_cut(2, 0, false);
    story_frees(2);
    story_cut(0, 2, false);
    world_end();
}
END_TEST

/* What a master has lost is not there, whoever says that he renews it. */
START_TEST(a_renewal_creates_nothing)
{
    story_begin(1, 1, "x");
    story_gets(0, "LOCK n");
    lose_lock(0);
    world_say(0, "RENEW n");
    world_run_ms(20);
    story_answers(0, "-NOTHELD");
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* One master has it, one has not, and the third, which has it too, does not answer: that is no
 * "not held". */
START_TEST(not_held_needs_a_majority)
{
    story_begin(3, 2, "xx");
    story_gets(0, "LOCK n LEASE 6000");
    lose_lock(2);
    story_cut(1, 0, true);
    world_say(1, "RENEW n");
    world_run_ms(500);
    story_answers(1, "-NOQUORUM");
    story_cut(1, 0, false);
    world_run_ms(50);
    world_say(1, "RENEW n");
    world_run_ms(500);
    story_granted(1);
    world_end();
}
END_TEST

/* A try that was refused arrives once more when the lock is free: its owner has not locked it. */
START_TEST(a_late_try_counts_nothing)
{
    story_begin(3, 2, "xy");
    story_gets(0, "LOCK n");
    copy_all(300);
    world_say(1, "LOCK n");
    world_run_ms(5);
    story_answers(1, "nil");
    copy_all(0);
    world_say(0, "UNLOCK n");
    world_run_ms(400);
    story_answers(0, "1");
    story_gets(1, "LOCK n");
    story_frees(1);
    ck_assert_int_eq(world_copies("n"), 0);
    world_end();
}
END_TEST

/* A hold is planted where it is missing; when the plant arrives it is over, and somebody else is
 * there. */
START_TEST(a_late_plant_overwrites_nobody)
{
    story_begin(3, 2, "xy");
    story_conf.broker.request_timeout_ms = 1000;
    for (int i = 0; i < 2; i++)
        broker_configure(&world.brokers[i].b, &story_conf.broker);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++)
            master_configure(world.brokers[j].masters[i],
                             &(struct master_setup){.request_timeout_ms = 1000}, NULL);
    story_gets(0, "LOCK n LEASE 500");
    lose_lock(2);
    world_say(0, "RENEW n LEASE 500");
    sim_run_until(sim_now_us() + 2500); /* answered: missing on the third */
    story_cut(0, 2, true);              /* and the plant is held up */
    world_run_ms(600);
    story_granted(0);
    ck_assert_int_eq(world_copies("n"), 0);
    story_gets(1, "LOCK n LEASE 3000");
    story_cut(0, 2, false);
    world_run_ms(20);
    for (int i = 0; i < 3; i++)
        is_held_by(i, "y");
    world_end();
}
END_TEST

/* ---- promises 3 and 4 ---- */

/* The broker that is next in line dies: those behind it are served all the same. */
START_TEST(the_next_in_line_dies)
{
    story_begin(_i, 3, "xyz");
    story_gets(0, "LOCK n");
    world_say(1, "LOCK n WAIT 0");
    world_run_ms(10);
    world_say(2, "LOCK n WAIT 0 FAIR");
    world_run_ms(10);
    world_say(0, "UNLOCK n");
    story_run_there(); /* released, and the call is on its way */
    world_broker_kill(1);
    world_run_ms(story_conf.broker.max_lease_ms + 2000);
    story_granted(2);
    world_end();
}
END_TEST

/* Two of three masters stand still while a hold is handed over: nobody has the lock then, neither
 * who gave it up nor who waited for it, and it is free when they go on, not at the end of a lease.
 */
START_TEST(a_hand_over_that_failed_leaves_nothing)
{
    story_begin(3, 1, "xyz");
    story_gets(0, "LOCK n LEASE 6000");
    world_say(1, "LOCK n WAIT 100 LEASE 6000");
    world_run_ms(20);
    fake_server_stop(&world.servers[1], true);
    fake_server_stop(&world.servers[2], true);
    world_say(0, "UNLOCK n");
    world_run_ms(700);
    story_answers(0, "-NOQUORUM ");
    fake_server_stop(&world.servers[1], false);
    fake_server_stop(&world.servers[2], false);
    world_run_ms(300);
    stays_free(1000);
    world_end();
}
END_TEST

/* An owner takes its hold to another broker while a connection of its own enters it again here, and
 * that one goes before the masters have answered: nobody is left who would get the lock next. */
START_TEST(a_lock_of_nobody_waits_for_nothing)
{
    story_begin(3, 2, "xx");
    story_gets(0, "LOCK n LEASE 6000");
    world_say(1, "RENEW n LEASE 6000");
    story_run_there();
    world_say(0, "LOCK n WAIT 0 LEASE 6000");
    while (world.apps[0].n_run == 0)
        sim_step();
    world_close(0, false);
    world_run_ms(20);
    story_granted(1);
    story_frees(1);
    stays_free(1000);
    world_end();
}
END_TEST

/* A connection asks in the name of an owner who has the lock on another one, and behind that
 * repeats what that one has said, or enters it again. It goes before the masters have answered: the
 * first of its requests to be given up lets the next one run, and nothing may come to belong to a
 * connection that is about to be freed. */
START_TEST(a_connection_that_ends_gets_nothing)
{
    static const struct {
        const char *held, *said[3];
    } stories[] = {
        {"LOCK n SHARED ID t", {"LOCK n OWNER x", "LOCK n SHARED OWNER x ID t"}},
        {"LOCK n SHARED ID t", {"LOCK n OWNER x", "LOCK n SHARED OWNER x"}},
        {"LOCK n SHARED ID t", {"LOCK n OWNER x", "MLOCK 1 n OWNER x SHARED ID t"}},
        {"LOCK n ID t", {"MLOCK 2 n m OWNER x", "LOCK n OWNER x ID t", "LOCK n OWNER x ID t"}},
        {"LOCK n ID t", {"MLOCK 2 n m OWNER x", "LOCK n OWNER x", "LOCK n OWNER x"}}};
    struct world_app *keeps = &world.apps[0], *goes = &world.apps[1];
    int n = 0;
    story_begin(_i % 2 ? 3 : 1, 1, "xy");
    story_gets(0, stories[_i / 4].held);
    while (n < 3 && stories[_i / 4].said[n])
        world_say(1, "%s", stories[_i / 4].said[n++]);
    while (goes->n_run < n)
        sim_step();
    ck_assert_int_eq(goes->n_replies, 0);
    world_close(1, _i / 2 % 2);
    ck_assert(LIST_EMPTY(&goes->session.holds) && !LIST_EMPTY(&keeps->session.holds));
    world_run_ms(20);
    ck_assert(LIST_EMPTY(&goes->session.holds));
    world_say(0, "HOLDS n");
    world_run_ms(20);
    story_answers(0, "1");
    story_frees(0);
    stays_free(1000);
    world_end();
}
END_TEST

/* An UNLOCK that was said behind an MLOCK under way: the broker ends all the same. */
START_TEST(a_broker_ends_with_what_is_deferred)
{
    story_begin(1, 2, "xy");
    story_gets(1, "LOCK n LEASE 6000");
    world_say(0, "MLOCK 2 n m");
    world_say(0, "UNLOCK m");
    while (world.apps[0].n_run < 2)
        sim_step();
    story_answers(0, "");
    world_broker_kill(0);
    world_end();
}
END_TEST

/* An owner who has the lock through one broker asks for it at another one, where somebody waits for
 * it already: it moves there and is entered once more; so it is when both have asked at once. */
START_TEST(an_owner_who_has_it_stands_behind_nobody)
{
    static const char *const asks[] = {"LOCK n", "LOCK n WAIT 0", "LOCK n WAIT 3000 FAIR",
                                       "LOCK n LEASE 6000", "LOCK n WAIT 3000 LEASE 6000"};
    story_begin(_i % 2 ? 3 : 1, 2, "xx");
    world_connect(2, 1, "w");
    int64_t token = story_gets(0, "LOCK n LEASE 6000");
    world_say(2, "LOCK n WAIT 0");
    if (_i / 2 % 2)
        world_run_ms(100);
    ck_assert_int_gt(story_gets(1, asks[_i / 4]), token);
    world_say(1, "HOLDS n");
    world_run_ms(20);
    story_answers(1, "2");
    story_answers(2, "");
    world_say(1, "UNLOCK n");
    world_say(1, "UNLOCK n");
    world_run_ms(20);
    story_answers(1, "0");
    story_answers(1, "1");
    story_granted(2);
    world_end();
}
END_TEST

/* Whoever does not have it is told so behind those who wait, and they are not kept from it. */
START_TEST(an_owner_who_has_nothing_stands_behind_all)
{
    story_begin(_i % 2 ? 3 : 1, 2, "xw");
    world_connect(2, 1, "y");
    world_connect(3, 1, "z");
    story_gets(0, "LOCK n LEASE 6000");
    world_say(1, "LOCK n WAIT 0 LEASE 6000");
    if (_i / 2 % 2)
        world_run_ms(100);
    world_say(2, "LOCK n");
    world_say(3, "LOCK n WAIT 0 LEASE 6000");
    world_run_ms(20);
    story_answers(2, "nil");
    story_frees(0);
    world_run_ms(20);
    story_granted(1);
    story_answers(3, "");
    story_frees(1);
    world_run_ms(20);
    story_granted(3);
    world_end();
}
END_TEST

/* Whoever asks in the last millisecond of a lease does not take the rest, 0 ms, for unknown. */
START_TEST(asked_in_the_last_millisecond)
{
    story_begin(_i % 2 ? 3 : 1, 2, "xy");
    story_gets(0, "LOCK n LEASE 1000");
    while (world_lock_at(0, "n")->left_ms > 2)
        sim_run_until(sim_now_us() + 100);
    sim_run_until(sim_now_us() + 100 * _i);
    world_say(1, "LOCK n WAIT 3000");
    world_run_ms(50);
    story_granted(1);
    world_end();
}
END_TEST

/* One of two names is held: the other one is not even taken for a moment. */
START_TEST(several_names_or_none)
{
    story_begin(1, 1, "xy");
    story_gets(1, "LOCK m LEASE 6000");
    world_close(1, false); /* so that the broker has to ask */
    world_broker_kill(0);
    world_broker_start(0);
    world_settle();
    world_connect(0, 0, "x");
    int64_t token = fake_server_counter(&world.servers[0], "base");
    world_say(0, "MLOCK 2 n m");
    world_run_ms(5);
    story_answers(0, "nil");
    ck_assert_int_eq(fake_server_counter(&world.servers[0], "base"), token);
    world_end();
}
END_TEST

static Suite *forced_suite(void)
{
    Suite *s = suite_create("forced");
    TCase *c = tcase_create("forced");
    tcase_add_test(c, no_token_twice_by_commit);
    tcase_add_test(c, no_token_twice_by_lowering);
    tcase_add_test(c, a_count_is_told_to_all);
    tcase_add_test(c, an_older_count_is_over);
    tcase_add_loop_test(c, a_count_that_failed_is_taken_back, 0, 2);
    tcase_add_test(c, a_count_that_failed_is_taken_back_later);
    tcase_add_loop_test(c, the_latest_count_is_told, 0, 3);
    tcase_add_loop_test(c, tokens_rise_over_lost_data, 1, 2);
    tcase_add_loop_test(c, tokens_rise_over_lost_data, 3, 4);
    tcase_add_test(c, a_token_that_goes_back_is_refused);
    tcase_add_test(c, a_take_over_has_a_new_token);
    tcase_add_test(c, a_minority_is_no_majority);
    tcase_add_test(c, a_failed_try_is_undone);
    tcase_add_test(c, a_slow_answer_shortens_the_validity);
    tcase_add_test(c, a_majority_has_the_token);
    tcase_add_test(c, a_forgotten_hold_is_not_given);
    tcase_add_test(c, a_forgotten_vote_does_not_count);
    tcase_add_test(c, a_commit_after_a_restart_is_none);
    tcase_add_loop_test(c, a_jump_ends_no_lease, 1, 2);
    tcase_add_loop_test(c, a_jump_ends_no_lease, 3, 4);
    tcase_add_loop_test(c, a_late_acquire_finds_the_way_shut, 300, 301);
    tcase_add_loop_test(c, a_late_acquire_finds_the_way_shut, 10000, 10001);
    tcase_add_loop_test(c, a_late_acquire_finds_the_way_shut_by_force, 300, 301);
    tcase_add_loop_test(c, a_late_acquire_finds_the_way_shut_by_force, 10000, 10001);
    tcase_add_test(c, what_was_forced_is_not_granted);
    tcase_add_test(c, a_late_renewal_creates_nothing);
    tcase_add_test(c, a_late_release_frees_nobody_else);
    tcase_add_test(c, a_repeated_acquire_counts_once);
    tcase_add_loop_test(c, a_late_count_is_old, 0, 8);
    tcase_add_test(c, a_late_take_over_is_old);
    tcase_add_test(c, an_unlock_comes_before_the_next);
    tcase_add_loop_test(c, an_unlock_comes_before_the_next_lock, 0, 2);
    tcase_add_test(c, an_unlock_beside_a_take_over_ends_the_hold);
    tcase_add_loop_test(c, what_unlock_takes_over_lasts_and_can_be_renewed, 0, 2);
    tcase_add_test(c, a_renewal_creates_nothing);
    tcase_add_test(c, not_held_needs_a_majority);
    tcase_add_test(c, a_late_try_counts_nothing);
    tcase_add_test(c, a_late_plant_overwrites_nobody);
    tcase_add_loop_test(c, the_next_in_line_dies, 1, 2);
    tcase_add_loop_test(c, the_next_in_line_dies, 3, 4);
    tcase_add_test(c, a_hand_over_that_failed_leaves_nothing);
    tcase_add_test(c, a_lock_of_nobody_waits_for_nothing);
    tcase_add_loop_test(c, a_connection_that_ends_gets_nothing, 0, 20);
    tcase_add_test(c, a_broker_ends_with_what_is_deferred);
    tcase_add_loop_test(c, an_owner_who_has_it_stands_behind_nobody, 0, 20);
    tcase_add_loop_test(c, an_owner_who_has_nothing_stands_behind_all, 0, 4);
    tcase_add_loop_test(c, asked_in_the_last_millisecond, 0, 30);
    tcase_add_test(c, several_names_or_none);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(forced_suite());
}
