/* Masters that are found by Sentinels, as stories in virtual time (safety R17): who is cut off from
 * the Sentinels together with the old master stops in time, and the new one gives nothing away
 * before that. */
#include <check.h>
#include <string.h>

#include "story.h"
#include "suite.h"

enum { TIMEOUT_MS = 2000, QUARANTINE_MS = 8000 + 40 + 1000 }; /* max_lease and the timeout; drift */

static struct fake_sentinels sentinels;
static struct fake_server spare;

static void begin(int n_servers, const char *owners)
{
    sentinels = (struct fake_sentinels){.timeout_ms = TIMEOUT_MS};
    LIST_INIT(&sentinels.ears);
    story_begin_found(n_servers, 2, &sentinels, owners, 1);
    fake_server_init(&spare, "spare");
}

static void end(void)
{
    fake_server_kill(&spare);
    world_end();
    fake_server_fini(&spare);
}

/* Broker 0 and the first server on one side, all others on the other. */
static void cut_off(void)
{
    fake_master_ear(world.brokers[0].masters[0])->deaf = 7;
    story_cut(1, 0, true);
    for (int i = 1; i < world.brokers[0].n_masters; i++)
        story_cut(0, i, true);
}

static bool is_told_lost(int app)
{
    for (const char *push = world_push(app); *push; push = world_push(app))
        if (strncmp(push, "lost ", 5) == 0)
            return true;
    return false;
}

static void promote(void)
{
    story_cut(1, 0, false);
    fake_sentinels_name(&sentinels, &spare);
}

/* The hold that broker 0 keeps alive ends in time for the one that broker 1 gives by the new
 * master: the judge sees that these do not meet. */
START_TEST(who_is_cut_off_with_the_old_master_stops)
{
    begin(1, "xy");
    int64_t token = story_gets(0, "LOCK n");
    cut_off();
    promote();
    world_say(1, "LOCK n WAIT 60000");
    world_run_ms(TIMEOUT_MS + 200);
    ck_assert_int_eq(story_state(1, 0), MASTER_QUARANTINE);
    world_run_ms(QUARANTINE_MS + 3000 - TIMEOUT_MS);
    ck_assert(is_told_lost(0));
    ck_assert_int_gt(story_granted(1), token);
    end();
}
END_TEST

/* What it grants last, with the longest lease, is over before the new master gives anything. */
START_TEST(the_last_grant_by_the_old_master_is_waited_for)
{
    begin(1, "xy");
    cut_off();
    promote();
    world_say(1, "LOCK n WAIT 60000");
    world_run_ms(TIMEOUT_MS - 500);
    story_gets(0, "LOCK n LEASE 6000");
    world_run_ms(5500); /* the lease that was told is running */
    story_answers(1, "");
    world_run_ms(QUARANTINE_MS);
    ck_assert_int_gt(story_granted(1), 0);
    end();
}
END_TEST

/* What was planted with the new master is no vote before that, either: nobody keeps the hold alive
 * with the old one, where somebody else gets it when its time is over. */
START_TEST(what_was_planted_counts_later)
{
    begin(1, "xy");
    (void)story_gets(1, "LOCK n LEASE 1200");
    cut_off();
    promote();
    world_run_ms(900);
    ck_assert(fake_server_find(&spare, "holdfast:{n}", "-") != NULL);
    world_say(1, "RENEW n LEASE 1200");
    world_run_ms(400);
    (void)story_gets(0, "LOCK n LEASE 500");
    story_answers(1, "-NOQUORUM");
    end();
}
END_TEST

/* Of the words of one Sentinel nothing follows, whichever side it is on. */
START_TEST(one_sentinel_is_no_majority)
{
    begin(1, "x");
    fake_sentinel_names(&sentinels, 0, &spare);
    world_run_ms(3 * TIMEOUT_MS);
    ck_assert_int_eq(story_state(0, 0), MASTER_ACTIVE);
    fake_master_ear(world.brokers[0].masters[0])->deaf =
        4; /* one of the two that name the old one */
    world_run_ms(3 * TIMEOUT_MS);
    ck_assert_int_ne(story_state(0, 0), MASTER_ACTIVE);
    ck_assert_int_eq(story_state(1, 0), MASTER_ACTIVE);
    fake_master_ear(world.brokers[0].masters[0])->deaf = 0;
    world_run_ms(1000);
    ck_assert_int_eq(story_state(0, 0), MASTER_ACTIVE);
    end();
}
END_TEST

/* All Sentinels are away for a moment: nothing is lost, and no quarantine is owed, as it is the
 * same run of the same server. */
START_TEST(a_short_silence_costs_nothing)
{
    begin(_i, "x");
    int64_t token = story_gets(0, "LOCK n");
    for (int i = 0; i < 2; i++)
        fake_master_ear(world.brokers[i].masters[0])->deaf = 7;
    world_run_ms(TIMEOUT_MS + 500);
    ck_assert_int_ne(story_state(0, 0), MASTER_ACTIVE);
    for (int i = 0; i < 2; i++)
        fake_master_ear(world.brokers[i].masters[0])->deaf = 0;
    world_run_ms(1000);
    ck_assert_int_eq(story_state(0, 0), MASTER_ACTIVE);
    ck_assert_int_eq(story_gets(0, "RENEW n"), token);
    ck_assert(!is_told_lost(0));
    end();
}
END_TEST

/* Of three masters one fails over: it has no vote meanwhile, and the lock is planted there. */
START_TEST(one_of_three_fails_over)
{
    begin(3, "xy");
    int64_t token = story_gets(0, "LOCK n");
    fake_server_kill(&world.servers[0]);
    fake_sentinels_name(&sentinels, &spare);
    world_run_ms(1000);
    ck_assert_int_eq(story_state(0, 0), MASTER_QUARANTINE);
    ck_assert_int_eq(story_state(1, 0), MASTER_QUARANTINE);
    world_say(1, "LOCK n");
    world_run_ms(1500);
    story_answers(1, "nil");
    world_settle();
    ck_assert_int_eq(story_gets(0, "RENEW n"), token);
    story_frees(0);
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    end();
}
END_TEST

/* ---- in any order ---- */

enum { STEPS = 3000, STEP_MS = 40, CANDIDATES = 3 };

static struct fake_server others[CANDIDATES - 1];
static int64_t latest,
    adopted[FAKE_SENTINELS]; /* of the configurations that Sentinels agree upon */

static struct fake_server *candidate(void)
{
    return latest % CANDIDATES == 0 ? &world.servers[0] : &others[latest % CANDIDATES - 1];
}

/* Sentinels agree on another master when a majority has heard of the last one, and hear of it one
 * by one. Who is promoted is another run, empty or with old data; who was the master goes on. */
static void move_sentinels(void)
{
    int i = (int)sim_random(FAKE_SENTINELS), know = 0;

    for (int k = 0; k < FAKE_SENTINELS; k++)
        know += adopted[k] == latest;
    if (know > FAKE_SENTINELS / 2 && sim_chance(4)) {
        latest++;
        if (candidate()->up)
            fake_server_kill(candidate());
        fake_server_start(candidate(), sim_chance(500));
    }
    if (adopted[i] == latest || !sim_chance(100))
        return;
    adopted[i] = latest;
    fake_sentinel_names(&sentinels, i, candidate());
}

static void disturb(int broker)
{
    struct master *m = world.brokers[broker].masters[0];

    if (sim_chance(8))
        fake_master_ear(m)->deaf = sim_chance(600) ? (unsigned)sim_random(8) : 0;
    if (sim_chance(8))
        fake_master_cut(m, sim_chance(300));
}

static void say_something(int app)
{
    if (world.apps[app].n_asks > 1 || !sim_chance(200))
        return;
    switch (sim_random(6)) {
    case 0:
    case 1:
        world_say(app, "LOCK n LEASE %d", (int)sim_between(500, 6000));
        break;
    case 2:
        world_say(app, "LOCK n WAIT 3000");
        break;
    case 3:
        world_say(app, "RENEW n");
        break;
    case 4:
        world_say(app, "LOCK n");
        break;
    default:
        world_say(app, "UNLOCK n");
    }
}

START_TEST(in_any_order)
{
    sentinels = (struct fake_sentinels){.timeout_ms = TIMEOUT_MS};
    LIST_INIT(&sentinels.ears);
    latest = 0;
    memset(adopted, 0, sizeof adopted);
    fake_server_init(&others[0], "e");
    fake_server_init(&others[1], "f");
    story_list(_i % 4 > 1 ? "b0,b1" : NULL, NULL);
    story_begin_found(_i % 2 ? 3 : 1, 2, &sentinels, "vwxy", (uint64_t)_i + 1);
    for (int step = 0; step < STEPS; step++) {
        move_sentinels();
        for (int i = 0; i < 2; i++)
            disturb(i);
        for (int i = 0; i < 4; i++)
            say_something(i);
        world_run_ms(STEP_MS);
    }
    for (int i = 0; i < 2; i++) {
        fake_master_ear(world.brokers[i].masters[0])->deaf = 0;
        story_cut(i, 0, false);
    }
    fake_sentinels_name(&sentinels, candidate());
    world_settle();
    for (int i = 0; i < CANDIDATES - 1; i++)
        if (others[i].up)
            fake_server_kill(&others[i]);
    world_end();
    for (int i = 0; i < CANDIDATES - 1; i++)
        fake_server_fini(&others[i]);
}
END_TEST

static Suite *sentinel_suite(void)
{
    Suite *s = suite_create("sentinel");
    TCase *c = tcase_create("sentinel");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, who_is_cut_off_with_the_old_master_stops);
    tcase_add_test(c, the_last_grant_by_the_old_master_is_waited_for);
    tcase_add_test(c, what_was_planted_counts_later);
    tcase_add_test(c, one_sentinel_is_no_majority);
    tcase_add_loop_test(c, a_short_silence_costs_nothing, 1, 4);
    tcase_add_test(c, one_of_three_fails_over);
    tcase_add_loop_test(c, in_any_order, 0, 12);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(sentinel_suite());
}
