/* Restarts, lost data and clocks that jump, as stories in virtual time: quarantine, its end, what
 * lives through it, and from where the tokens go on. */
#include <check.h>

#include "redis/args.h"
#include "story.h"
#include "suite.h"

enum { QUARANTINE_MS = 6000 + 30 + 1000 }; /* max_lease of world_defaults(), drift, and a second */

static void all_are(int server, enum master_state state)
{
    for (int i = 0; i < story_conf.n_brokers; i++)
        ck_assert_msg(story_state(i, server) == state, "broker %d: master %d is %s", i, server,
                      master_state_name(story_state(i, server)));
}

/* What makes a server forget, or look as if it had. */
static void (*const losses[])(int) = {story_restart_empty, NULL, NULL};

static void lose(int how, int server)
{
    if (losses[how]) {
        losses[how](server);
    } else if (how == 1) {
        fake_server_kill(&world.servers[server]);
        fake_server_start(&world.servers[server], true);
    } else {
        fake_server_flush(&world.servers[server]);
    }
    world_run_ms(2500); /* an idle link is looked at every two seconds */
}

START_TEST(quarantine_and_its_end)
{
    story_begin(3, 2, "");
    int64_t at_us = sim_now_us();
    lose(_i, 1);
    all_are(1, MASTER_QUARANTINE);
    int64_t earliest_us = at_us + QUARANTINE_MS * 1000;
    while (story_state(0, 1) == MASTER_QUARANTINE)
        world_run_ms(10);
    ck_assert_int_ge(sim_now_us(), earliest_us);
    ck_assert_int_lt(sim_now_us(), earliest_us + 3000000); /* counted from when it was seen */
    world_run_ms(2500);
    all_are(1, MASTER_ACTIVE);
    world_end();
}
END_TEST

/* Each master restarts empty, one after the other: a lock that is watched, and one with a lease,
 * are planted there meanwhile, and live. */
START_TEST(every_master_in_turn)
{
    story_begin(_i, 2, "xy");
    int64_t token = story_gets(0, "LOCK n");
    for (int i = 0; i < _i; i++) {
        story_restart_empty(i);
        world_say(1, "LOCK n");
        world_run_ms(1500);
        story_answers(1, "nil");
        world_settle();
        world_run_ms(1500);
        ck_assert_int_eq(world_copies("n"), _i);
    }
    story_pushed(0, "");
    ck_assert_int_eq(story_gets(0, "RENEW n"), token);
    story_frees(0);
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    world_end();
}
END_TEST

START_TEST(a_single_master_stays_out)
{
    story_begin(1, 1, "x");
    int64_t token = story_gets(0, "LOCK n LEASE 4000");
    story_restart_empty(0);
    world_connect(1, 0, "y");
    world_say(1, "LOCK n WAIT 5000");
    world_run_ms(5200);
    story_answers(1, "-NOQUORUM");
    world_settle();
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    world_end();
}
END_TEST

/* Two that end nearly together do not keep each other out. */
START_TEST(two_that_end_together)
{
    story_begin(3, 1, "");
    story_restart_empty(0);
    fake_server_kill(&world.servers[1]);
    fake_server_start(&world.servers[1], false);
    int64_t at_us = sim_now_us();
    world_run_ms(QUARANTINE_MS - 500);
    ck_assert_int_eq(story_state(0, 0), MASTER_QUARANTINE);
    world_run_ms(800);
    ck_assert_int_lt(sim_now_us() - at_us, (QUARANTINE_MS + 500) * 1000);
    all_are(0, MASTER_ACTIVE);
    all_are(1, MASTER_ACTIVE);
    world_end();
}
END_TEST

/* A broker that has just started does not guess. */
START_TEST(a_new_broker_sees_it)
{
    story_begin(3, 2, "");
    story_restart_empty(1);
    world_run_ms(3000);
    world_broker_kill(1);
    world_broker_start(1);
    world_run_ms(200);
    all_are(1, MASTER_QUARANTINE);
    world_run_ms(QUARANTINE_MS - 4000);
    all_are(1, MASTER_QUARANTINE);
    world_run_ms(1500);
    all_are(1, MASTER_ACTIVE);
    world_end();
}
END_TEST

START_TEST(trust_ends_it)
{
    story_begin(3, 2, "");
    story_restart_empty(1);
    ck_assert_ptr_null(
        quarantine_trust(&world.brokers[0].quarantine, "b", world_local_ms(&world.brokers[0])));
    fake_master_break(world.brokers[0].masters[0]); /* anything that makes a turn */
    world_run_ms(3000);
    all_are(1, MASTER_ACTIVE);
    world_end();
}
END_TEST

/* The base is the highest token of the others, asked when the quarantine was over: not one that was
 * known before. */
START_TEST(the_floor_is_asked_at_the_end)
{
    int64_t high = (int64_t)1 << 52;
    story_begin(3, 1, "");
    story_restart_empty(1);
    world_run_ms(QUARANTINE_MS - 1000);
    story_set_counter(0, high); /* given by another broker meanwhile */
    world_settle();
    ck_assert_int_ge(fake_server_counter(&world.servers[1], "base"), high);
    world_end();
}
END_TEST

/* ---- other servers in the place of one ---- */

static struct fake_server spare;

/* Fail-over: the spare one answers in its place, until everybody relies on it. */
static void fail_over(int server)
{
    fake_server_init(&spare, "spare");
    fake_server_kill(&world.servers[server]);
    world.servers[server].instead = &spare;
    world_run_ms(2500);
    ck_assert_int_eq(story_state(0, server), MASTER_QUARANTINE);
    while (story_state(0, server) != MASTER_ACTIVE)
        world_run_ms(100);
}

/* And back, to a process that has stood aside meanwhile. */
static void fail_back(int server)
{
    fake_server_kill(&spare);
    world.servers[server].instead = NULL;
    world.servers[server].up = true;
}

static void end_with_spare(void)
{
    world_end();
    fake_server_fini(&spare);
}

START_TEST(a_run_that_comes_back_is_another_one)
{
    story_begin(_i, 2, "xy");
    fail_over(0);
    int64_t token = story_gets(0, "LOCK n LEASE 5000");
    fail_back(0);
    world_run_ms(2500);
    all_are(0, MASTER_QUARANTINE);
    world_settle();
    world_run_ms(5000);
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    end_with_spare();
}
END_TEST

/* Only the other masters can tell it that the good mark it sees is an old one. */
START_TEST(a_new_broker_hears_of_it)
{
    story_begin(3, 1, "");
    fail_over(0);
    world_broker_kill(0);
    fail_back(0);
    world_broker_start(0);
    world_run_ms(200);
    all_are(0, MASTER_QUARANTINE);
    world_settle();
    end_with_spare();
}
END_TEST

/* A broker that has heard nothing of what all the others have gone through ends nothing. */
START_TEST(old_news_ends_no_life)
{
    story_begin(3, 2, "");
    for (int i = 0; i < 3; i++)
        story_cut(1, i, true);
    fail_over(0);
    for (int i = 0; i < 3; i++)
        story_cut(1, i, false);
    world_run_ms(3000);
    all_are(0, MASTER_ACTIVE);
    fail_back(0);
    end_with_spare();
}
END_TEST

/* Too few others to ask: it waits for them, and goes by the clocks in the end. */
START_TEST(too_few_to_ask)
{
    story_begin(3, 1, "");
    story_restart_empty(1);
    fake_server_kill(&world.servers[0]);
    world_run_ms(QUARANTINE_MS + 2000);
    ck_assert_int_eq(story_state(0, 1), MASTER_QUARANTINE);
    fake_server_start(&world.servers[0], true); /* now that one is in quarantine */
    world_run_ms(3000);
    ck_assert_int_eq(story_state(0, 1), MASTER_QUARANTINE);
    world_settle();
    world_connect(0, 0, "x");
    story_gets(0, "LOCK n");
    world_end();
}
END_TEST

/* ---- clocks of brokers ---- */

static int64_t token_of(int server, int64_t ahead_ms)
{
    return (fake_server_time_ms(&world.servers[server]) + ahead_ms) << 10;
}

static void set_wall_ahead(int broker, int64_t ms)
{
    world.brokers[broker].wall_skew_ms = ms;
    world_run_ms(1500);
}

/* Its tokens stay where the others can follow, and in what can be counted. */
START_TEST(a_broker_far_ahead)
{
    static const int64_t century_ms = INT64_C(3155760000000);
    story_begin(_i, 2, "xy");
    set_wall_ahead(0, 3 * century_ms);
    int64_t token = story_gets(0, "LOCK n");
    ck_assert_int_le(token, token_of(0, 2 * 3600000));
    story_frees(0);
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    world_end();
}
END_TEST

static void lose_all(int n)
{
    for (int i = 0; i < n; i++)
        story_restart_empty(i);
    world_settle();
}

/* All is lost, the broker that was ahead too: the tokens of the other one are not lower. */
START_TEST(all_is_lost_but_the_right_clock)
{
    story_begin(_i, 2, "xy");
    set_wall_ahead(0, 50 * 60000);
    int64_t token = story_gets(0, "LOCK n");
    world_broker_kill(0);
    lose_all(_i);
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    world_end();
}
END_TEST

/* Nobody has given a token yet that a broker had to add to. */
START_TEST(all_is_lost_and_nobody_remembers)
{
    story_begin(1, 1, "x");
    set_wall_ahead(0, 50 * 60000);
    int64_t token = story_gets(0, "LOCK n");
    world_broker_kill(0);
    story_restart_empty(0);
    world_broker_start(0);
    world.brokers[0].wall_skew_ms = 0;
    world_settle();
    world_connect(1, 0, "y");
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    world_end();
}
END_TEST

/* All is lost again, and the clocks of the masters have gone back in between: a broker that has
 * seen no token of the other one goes on above them. */
START_TEST(all_is_lost_twice_and_clocks_go_back)
{
    int64_t token = 0;
    story_begin(_i, 2, "xy");
    world_broker_kill(0);
    lose_all(_i);
    world_broker_start(0);
    world_settle();
    world_connect(0, 0, "x");
    for (int i = 0; i < 10; i++) {
        token = story_gets(0, "LOCK n");
        story_frees(0);
    }
    world_broker_kill(0);
    for (int i = 0; i < _i; i++)
        fake_server_jump(&world.servers[i], -60000);
    world_run_ms(2500); /* the other one has noticed */
    lose_all(_i);
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    world_end();
}
END_TEST

/* ---- clocks that jump ---- */

/* Ahead: its leases have ended early. Everybody keeps it out for as long as one may last. */
START_TEST(a_jump_ahead)
{
    story_begin(3, 2, "x");
    story_gets(0, "LOCK n");
    fake_server_jump(&world.servers[2], 60000);
    world_run_ms(4500);
    all_are(2, MASTER_QUARANTINE);
    world_run_ms(QUARANTINE_MS + 2500);
    all_are(2, MASTER_ACTIVE);
    story_pushed(0, "");
    ck_assert_int_eq(world_copies("n"), 3);
    world_end();
}
END_TEST

/* What it was told of that is lost with the link: it is told again. */
START_TEST(a_jump_is_not_forgotten_with_its_link)
{
    story_begin(3, 1, "");
    fake_server_jump(&world.servers[2], 60000);
    while (story_state(0, 2) == MASTER_ACTIVE)
        world_run_ms(1);
    fake_server_kill(&world.servers[2]);
    world.servers[2].up = true; /* only the link was lost */
    world_run_ms(1000);
    all_are(2, MASTER_QUARANTINE);
    ck_assert(!fake_server_is_active(&world.servers[2]));
    world_settle();
    world_end();
}
END_TEST

/* A clock that is slewed jumps nowhere: no two answers in a row are far apart. Nor may it go unseen
 * because there are many. */
START_TEST(a_slew_under_load)
{
    story_begin(3, 1, "x");
    fake_server_set_drift(&world.servers[2], 80000);
    for (int i = 0; i < 200 && fake_server_is_active(&world.servers[2]); i++) {
        story_gets(0, "LOCK n");
        story_frees(0);
    }
    all_are(2, MASTER_QUARANTINE);
    fake_server_set_drift(&world.servers[2], 0);
    world_settle();
    world_end();
}
END_TEST

/* In the middle of a quarantine: by that clock it would be over at once. */
START_TEST(a_jump_in_quarantine)
{
    story_begin(3, 2, "");
    story_restart_empty(1);
    world_run_ms(1000);
    fake_server_jump(&world.servers[1], 60000);
    world_run_ms(QUARANTINE_MS - 2000);
    all_are(1, MASTER_QUARANTINE);
    ck_assert(!fake_server_is_active(&world.servers[1]));
    world_settle();
    world_end();
}
END_TEST

/* Back: leases last longer there, which is no danger. */
START_TEST(a_jump_back)
{
    story_begin(3, 1, "x");
    story_gets(0, "LOCK n");
    fake_server_jump(&world.servers[2], -60000);
    world_run_ms(6000);
    all_are(2, MASTER_ACTIVE);
    story_pushed(0, "");
    world_end();
}
END_TEST

/* Back: a share that was over, and that nobody has looked at since, has its key again. It is none
 * beside those who have got the lock meanwhile, whether its place was still seen or not. */
START_TEST(a_share_that_comes_back_is_none)
{
    static const struct {
        int64_t wait_ms;
        const char *share, *next;
    } cases[] = {{510, "LOCK n SHARED LEASE 500", "LOCK n LEASE 5000"},
                 {3000, "LOCK n SHARED LEASE 500", "LOCK n LEASE 5000"},
                 {510, "LOCK n SHARED LEASE 500", "LOCK n LIMIT 1 LEASE 5000"},
                 {3000, "LOCK n SHARED LEASE 500", "LOCK n LIMIT 1 LEASE 5000"},
                 {510, "LOCK n LIMIT 2 LEASE 500", "LOCK n LEASE 5000"},
                 {3000, "LOCK n LIMIT 2 LEASE 500", "LOCK n LEASE 5000"}};
    story_begin(1, 3, "xyx");
    story_gets(0, cases[_i].share);
    world_run_ms(cases[_i].wait_ms);
    story_gets(1, cases[_i].next);
    fake_server_jump(&world.servers[0], -cases[_i].wait_ms - 200);
    world_run_ms(10);
    world_say(2, "RENEW n");
    world_run_ms(50);
    story_answers(2, "-NOTHELD");
    world_say(2, "%s", cases[_i].share);
    world_run_ms(50);
    const char *reply = world_reply(2);
    ck_assert_msg(reply[0] != '[', "%s", reply);
    world_end();
}
END_TEST

static Suite *restart_suite(void)
{
    Suite *s = suite_create("restart");
    TCase *c = tcase_create("restart");
    tcase_add_loop_test(c, quarantine_and_its_end, 0, 3);
    tcase_add_loop_test(c, every_master_in_turn, 3, 4);
    tcase_add_loop_test(c, every_master_in_turn, 5, 6);
    tcase_add_test(c, a_single_master_stays_out);
    tcase_add_test(c, two_that_end_together);
    tcase_add_test(c, a_new_broker_sees_it);
    tcase_add_test(c, trust_ends_it);
    tcase_add_test(c, the_floor_is_asked_at_the_end);
    tcase_add_loop_test(c, a_run_that_comes_back_is_another_one, 1, 2);
    tcase_add_loop_test(c, a_run_that_comes_back_is_another_one, 3, 4);
    tcase_add_test(c, a_new_broker_hears_of_it);
    tcase_add_test(c, old_news_ends_no_life);
    tcase_add_test(c, too_few_to_ask);
    tcase_add_loop_test(c, a_broker_far_ahead, 1, 2);
    tcase_add_loop_test(c, a_broker_far_ahead, 3, 4);
    tcase_add_loop_test(c, all_is_lost_but_the_right_clock, 1, 2);
    tcase_add_loop_test(c, all_is_lost_but_the_right_clock, 3, 4);
    tcase_add_test(c, all_is_lost_and_nobody_remembers);
    tcase_add_loop_test(c, all_is_lost_twice_and_clocks_go_back, 1, 2);
    tcase_add_loop_test(c, all_is_lost_twice_and_clocks_go_back, 3, 4);
    tcase_add_test(c, a_jump_ahead);
    tcase_add_test(c, a_jump_is_not_forgotten_with_its_link);
    tcase_add_test(c, a_slew_under_load);
    tcase_add_test(c, a_jump_in_quarantine);
    tcase_add_test(c, a_jump_back);
    tcase_add_loop_test(c, a_share_that_comes_back_is_none, 0, 6);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(restart_suite());
}
