/* Masters that forget everything while locks are held, as stories in virtual time: nothing is lost
 * whose broker lives, and nobody else gets it (safety R14). */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "story.h"
#include "suite.h"

/* ---- votes of a former life ---- */

/* The first master has voted, and the others are still silent. */
static void say_and_only_the_first_hears(const char *words)
{
    story_cut(0, 1, true);
    story_cut(0, 2, true);
    world_say(0, "%s", words);
    world_run_ms(5);
    story_answers(0, "");
}

/* A claim has one vote, and the master that gave it forgets it: with the next one there is no
 * majority. */
START_TEST(a_claim_has_no_vote_of_a_former_life)
{
    story_begin(3, 1, "x");
    say_and_only_the_first_hears("LOCK n");
    story_restart_empty(0);
    ck_assert_int_eq(story_state(0, 0), MASTER_QUARANTINE);
    story_cut(0, 1, false);
    world_run_ms(300);
    story_answers(0, "-NOQUORUM");
    world_end();
}
END_TEST

/* The same of a lease that is to be prolonged. */
START_TEST(a_renewal_has_no_vote_of_a_former_life)
{
    story_begin(3, 1, "x");
    (void)story_gets(0, "LOCK n LEASE 2000");
    world_run_ms(1000);
    say_and_only_the_first_hears("RENEW n LEASE 2000");
    story_restart_empty(0);
    story_cut(0, 1, false);
    world_run_ms(300);
    story_answers(0, "-NOQUORUM");
    world_end();
}
END_TEST

/* ---- what is held lives through it ---- */

static void restart_all_empty(void)
{
    for (int i = 0; i < story_conf.n_servers; i++)
        fake_server_kill(&world.servers[i]);
    for (int i = 0; i < story_conf.n_servers; i++)
        fake_server_start(&world.servers[i], false);
    world_run_ms(200);
    for (int i = 0; i < story_conf.n_servers; i++)
        ck_assert_int_eq(story_state(0, i), MASTER_QUARANTINE);
}

/* The first application says so, and too few vote for it. */
static void has_no_quorum(const char *words)
{
    world_say(0, "%s", words);
    world_run_ms(250);
    story_answers(0, "-NOQUORUM");
}

/* Begins with a lock by these words that all of n masters forget. Returns its token. */
static int64_t hold_what_all_forget(int n, const char *words)
{
    story_begin(n, 1, "x");
    int64_t token = story_gets(0, words);
    restart_all_empty();
    return token;
}

/* This application has been told of jeopardy, and that all is well again, and of no loss. */
static void hears_no_loss(int app)
{
    for (const char *push = world_push(app); *push; push = world_push(app))
        ck_assert_msg(strncmp(push, "lost ", 5) != 0, "pushed: %s", push);
}

/* All masters restart empty at once: watched locks and a lease live, nobody else gets one, and
 * tokens go on. */
START_TEST(all_masters_forget_everything)
{
    story_begin(_i, 2, "xyz");
    int64_t token = story_gets(0, "LOCK n TELL");
    (void)story_gets(0, "LOCK n");
    (void)story_gets(0, "LOCK m LEASE 5000");
    restart_all_empty();
    ck_assert_int_eq(world_copies("n"), _i);
    ck_assert_int_eq(world_copies("m"), _i);
    ck_assert_int_eq(world_lock_at(0, "n")->token, token);
    ck_assert_int_eq(world_lock_at(0, "n")->count, 2);
    world_say(1, "LOCK n WAIT 500");
    world_run_ms(3500);
    hears_no_loss(0);
    ck_assert_int_eq(world_copies("n"), _i);
    world_settle();
    hears_no_loss(0);
    ck_assert_int_eq(story_gets(0, "RENEW n"), token);
    world_say(0, "UNLOCK n");
    world_run_ms(10);
    story_answers(0, "0");
    story_frees(0);
    world_reply(1); /* of its WAIT */
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    world_end();
}
END_TEST

/* Locks that cannot be planted, as other programs have written where they stand, keep no others
 * from being planted, however many there are. */
START_TEST(what_cannot_be_planted_is_in_nobodys_way)
{
    enum { MANY = 450, IN_THE_WAY = 15 };
    char text[32];
    story_begin(1, 1, "x");
    story_conf.broker.max_locks_per_client = MANY;
    broker_configure(&world.brokers[0].b, &story_conf.broker);
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "LOCK k%d LEASE 6000", i);
        (void)story_gets(0, text);
    }
    fake_server_kill(&world.servers[0]);
    fake_server_start(&world.servers[0], false);
    for (int i = 0; i < IN_THE_WAY; i++) {
        snprintf(text, sizeof text, "holdfast:{k%d}", i * MANY / IN_THE_WAY);
        fake_server_set_foreign(&world.servers[0], text);
    }
    world_run_ms(500);
    ck_assert_int_eq(fake_server_count_locks(&world.servers[0], NULL), MANY - IN_THE_WAY);
    world_end();
}
END_TEST

static bool takes_as(const char *name, int app, const char *option)
{
    int limit;
    const char *kind = world_kind(name, world.apps[app].owner, &limit);
    return kind && strcmp(kind, option) == 0;
}

/* Returns a name that the judge expects these two to take so: see world_kind(). */
static const char *name_for(int app, int other, const char *option)
{
    static char name[8];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "k%d", i);
        if (takes_as(name, app, option) && takes_as(name, other, option))
            return name;
    }
    ck_abort_msg("no name is taken so: %s", option);
}

static void gets_as(int app, const char *words, const char *name, const char *option)
{
    char text[64];
    snprintf(text, sizeof text, "LOCK %s %s %s", name, option, words);
    (void)story_gets(app, text);
}

/* Readers and permits: each is planted as what it is. */
START_TEST(shares_are_remembered)
{
    static const char *const options[] = {"SHARED", "LIMIT 2"};
    const char *option = options[_i / 4];
    story_begin(_i % 4, 1, "prs");
    world.conf.kinds = true;
    const char *name = name_for(0, 2, option);
    gets_as(0, "", name, option);
    gets_as(2, "LEASE 5000", name, option);
    restart_all_empty();
    world_settle();
    hears_no_loss(0);
    world_say(0, "UNLOCK %s", name);
    world_run_ms(20);
    story_answers(0, "1");
    world_end();
}
END_TEST

START_TEST(several_names_are_remembered)
{
    story_begin(_i, 2, "xy");
    world_say(0, "MLOCK 2 a b LEASE 5000");
    world_run_ms(10);
    ck_assert_msg(world_reply(0)[0] == '[', "no grant");
    restart_all_empty();
    ck_assert_int_eq(world_copies("a"), _i);
    ck_assert_int_eq(world_copies("b"), _i);
    world_end();
}
END_TEST

/* ---- what is planted is believed late ---- */

/* A lease with one sound master of three, and one that has just been planted: by then somebody
 * else may rely on a vote that the latter has forgotten. */
START_TEST(what_was_planted_is_no_vote_at_once)
{
    story_begin(3, 1, "x");
    (void)story_gets(0, "LOCK n LEASE 3000");
    world_run_ms(2150); /* less than a third of it is left */
    story_restart_empty(0);
    ck_assert_int_eq(world_copies("n"), 3);
    story_cut(0, 2, true);
    has_no_quorum("RENEW n LEASE 3000");
    world_end();
}
END_TEST

/* Later it is; but not while more than a third of what was told is left: others are given that time
 * to come and say what they hold. */
START_TEST(what_was_planted_is_a_vote_at_last)
{
    int64_t token = hold_what_all_forget(1, "LOCK n LEASE 4000");
    world_run_ms(1300);
    has_no_quorum("RENEW n LEASE 4000");
    world_run_ms(1200);
    ck_assert_int_eq(story_gets(0, "RENEW n LEASE 4000"), token);
    world_end();
}
END_TEST

/* Not beside a master that says that somebody else has it: he may have a majority by what the one
 * in quarantine has forgotten. */
START_TEST(what_was_planted_is_no_vote_beside_another)
{
    story_begin(3, 2, "xy");
    (void)story_gets(0, "LOCK n LEASE 4000");
    for (int i = 0; i < 3; i++)
        story_cut(0, i, true);
    story_cut(1, 1, true);
    world_say(1, "FORCEUNLOCK n");
    world_run_ms(250);
    story_answers(1, "1");
    (void)story_gets(1, "LOCK n LEASE 5000"); /* of masters 0 and 2 */
    story_cut(1, 0, true);
    story_restart_empty(0);
    for (int i = 0; i < 3; i++)
        story_cut(0, i, false);
    while (!world_lock_at(0, "n"))
        world_run_ms(1); /* planted there for the first one */
    world_run_ms(2500);
    ck_assert(world_lock_at(1, "n") && world_lock_at(2, "n"));
    world_say(0, "RENEW n LEASE 4000");
    world_run_ms(250);
    ck_assert_msg(world_reply(0)[0] != '[', "renewed beside another one");
    world_end();
}
END_TEST

/* Before that no master is asked: all have more to do. */
START_TEST(what_is_planted_is_not_asked_for)
{
    int64_t token = hold_what_all_forget(3, "LOCK n");
    story_pushed(0, "");
    int64_t asks = world_asks(0);
    world_run_ms(1200);
    story_pushed(0, "jeopardy n");
    ck_assert_int_eq(world_asks(0), asks);
    world_run_ms(2000);
    story_pushed(0, "safe n");
    world_run_ms(6000); /* the quarantine is over */
    ck_assert_int_eq(story_gets(0, "RENEW n"), token);
    world_end();
}
END_TEST

/* A master that forgets everything once more within its quarantine counts claim_timeout anew, here
 * 500 ms. What was told lasts for 3000 ms, of which the last 300 belong to its holder, and it is
 * tried again each time when an eighth of what is left is over, or a little more: so it is kept if
 * 860 ms are left when the master is there again. */
START_TEST(a_second_restart_in_time_costs_nothing)
{
    int64_t token = hold_what_all_forget(1, "LOCK n TELL");
    world_run_ms(3000 - 220 -
                 (1000 + 50 * _i)); /* so much is left then, and 100 ms less when it is found */
    restart_all_empty();
    world_run_ms(7500); /* the quarantine is over */
    hears_no_loss(0);
    ck_assert_int_eq(story_gets(0, "RENEW n"), token);
    world_end();
}
END_TEST

/* ---- two brokers that remember one lock ---- */

/* Its owner has taken it to the second broker, and the first one has not heard of it. Returns the
 * token there. */
static int64_t take_it_away(const char *words)
{
    story_begin(1, 2, "xx");
    (void)story_gets(0, "LOCK n LEASE 5000");
    story_cut(0, 0, true);
    return story_gets(1, words);
}

static void wait_planted(int64_t token)
{
    for (int i = 0; i < 200; i++) {
        const struct fake_lock *l = world_lock_at(0, "n");
        if (l && l->token == token)
            return;
        world_run_ms(10);
    }
    ck_abort_msg("it was not planted");
}

START_TEST(the_older_one_is_told)
{
    int64_t token = take_it_away("RENEW n LEASE 5000");
    story_restart_empty(0);
    wait_planted(token);
    story_cut(0, 0, false);
    world_run_ms(1500);
    wait_planted(token);
    world_say(0, "RENEW n");
    world_run_ms(300);
    ck_assert_msg(world_reply(0)[0] != '[', "the older one goes on");
    world_end();
}
END_TEST

START_TEST(the_newer_one_shortens_nothing)
{
    story_begin(1, 2, "xy");
    int64_t older = story_gets(0, "LOCK n LEASE 5000");
    story_cut(0, 0, true);
    world_say(1, "FORCEUNLOCK n");
    world_run_ms(20);
    story_answers(1, "1");
    int64_t newer = story_gets(1, "LOCK n LEASE 2000");
    story_cut(1, 0, true);
    story_restart_empty(0);
    story_cut(0, 0, false);
    wait_planted(older);
    story_cut(1, 0, false);
    wait_planted(newer);
    ck_assert_int_gt(world_lock_at(0, "n")->left_ms, 2500);
    world_end();
}
END_TEST

/* ---- what was ended for a broker that does not know ---- */

/* The second broker has given the lock back, a third one holds it; the first one has not heard of
 * either, and comes with what it remembers. It is told that this is over, also where the holder's
 * broker has not come yet. */
static void remembers_in_vain(const char *ends, const char *owners)
{
    story_begin(1, 3, owners);
    (void)story_gets(0, "LOCK n LEASE 5000");
    story_cut(0, 0, true);
    if (strcmp(ends, "UNLOCK n") == 0)
        (void)story_gets(1, "RENEW n LEASE 5000");
    world_say(1, "%s", ends);
    world_run_ms(20);
    story_answers(1, "1");
    int64_t token = story_gets(2, "LOCK n LEASE 5000");
    story_cut(2, 0, true);
    story_restart_empty(0);
    story_cut(0, 0, false);
    world_run_ms(1500);
    ck_assert_int_eq(world_copies("n"), 0);
    story_cut(2, 0, false);
    wait_planted(token);
    world_end();
}

START_TEST(what_was_taken_over_and_given_back)
{
    remembers_in_vain("UNLOCK n", "xxz");
}
END_TEST

START_TEST(what_was_forced)
{
    remembers_in_vain("FORCEUNLOCK n", "xyz");
}
END_TEST

/* ---- an old copy ---- */

/* It has another hold, of a later token, and one with less time than was told. */
START_TEST(an_old_copy_loses)
{
    story_begin(1, 2, "xy");
    int64_t token = story_gets(0, "LOCK n LEASE 5000");
    (void)story_gets(0, "LOCK m LEASE 5000");
    fake_server_kill(&world.servers[0]);
    (void)fake_server_prolong(&world.servers[0], "holdfast:{m}", -3000);
    (void)fake_server_lapse(&world.servers[0], "holdfast:{n}", "-");
    fake_server_set_hold(&world.servers[0], "holdfast:{n}", "b9.1", "y", token + 1000, 9000);
    fake_server_start(&world.servers[0], true);
    world_run_ms(200);
    ck_assert_int_eq(world_lock_at(0, "n")->token, token);
    ck_assert_int_gt(world_lock_at(0, "m")->left_ms, 4000);
    world_end();
}
END_TEST

/* ---- those who wait ---- */

/* Nobody's wait ends for want of a majority, but by its own time; then that is the reason. They are
 * served in order as soon as there is one. */
START_TEST(waits_last_through_an_outage)
{
    story_begin(_i, 1, "xyzw");
    world_say(0, "LOCK n");
    world_run_ms(10);
    int64_t token = story_granted(0);
    world_say(1, "LOCK n WAIT 60000");
    world_run_ms(5);
    world_say(2, "MLOCK 2 n m WAIT 60000");
    world_run_ms(5);
    world_say(3, "LOCK n WAIT 1000");
    restart_all_empty();
    world_say(0, "UNLOCK n");
    world_run_ms(2000);
    story_answers(3, "-NOQUORUM");
    story_answers(1, "");
    story_answers(2, "");
    while (story_state(0, 0) != MASTER_ACTIVE)
        world_run_ms(1);
    world_run_ms(_i == 1 ? 20 : 1000);
    ck_assert_int_gt(story_granted(1), token);
    world_say(1, "UNLOCK n");
    world_run_ms(20);
    story_answers(1, "1");
    ck_assert_msg(strncmp(world_reply(2), "[[", 2) == 0, "the next one does not get it");
    world_end();
}
END_TEST

START_TEST(who_waits_for_several_is_told_why)
{
    story_begin(1, 1, "x");
    restart_all_empty();
    world_say(0, "MLOCK 2 n m WAIT 700");
    world_run_ms(650);
    story_answers(0, "");
    world_run_ms(100);
    story_answers(0, "-NOQUORUM");
    world_say(0, "MLOCK 2 n m");
    world_run_ms(20);
    story_answers(0, "-NOQUORUM");
    world_end();
}
END_TEST

/* What it asks for is to be lined up behind the reader: no run of the queue may ask for that again
 * at once. */
START_TEST(who_waits_for_several_beside_a_reader_asks_now_and_then)
{
    story_begin(1, 1, "xy");
    world_say(0, "LOCK n SHARED");
    world_run_ms(10);
    (void)story_granted(0);
    world_say(1, "LOCK m");
    world_run_ms(10);
    (void)story_granted(1);
    restart_all_empty();
    int64_t asks = world_asks(0);
    world_say(1, "MLOCK 2 n m WAIT 1000");
    world_run_ms(900);
    ck_assert_int_lt(world_asks(0) - asks, 40);
    world_run_ms(150);
    story_answers(1, "-NOQUORUM");
    world_end();
}
END_TEST

/* They meet at one name, and each is refused while the other one asks. */
START_TEST(two_that_wait_for_several_ask_now_and_then)
{
    story_begin(1, 1, "xy");
    restart_all_empty();
    int64_t asks = world_asks(0);
    world_say(0, "MLOCK 2 n m WAIT 1000");
    world_say(1, "MLOCK 2 n k WAIT 1000");
    world_run_ms(900);
    ck_assert_int_lt(world_asks(0) - asks, 40);
    world_run_ms(150);
    story_answers(0, "-NOQUORUM");
    story_answers(1, "-NOQUORUM");
    world_end();
}
END_TEST

static Suite *outage_suite(void)
{
    Suite *s = suite_create("outage");
    TCase *c = tcase_create("outage");
    tcase_add_test(c, a_claim_has_no_vote_of_a_former_life);
    tcase_add_test(c, a_renewal_has_no_vote_of_a_former_life);
    tcase_add_loop_test(c, all_masters_forget_everything, 1, 2);
    tcase_add_loop_test(c, all_masters_forget_everything, 3, 4);
    tcase_add_test(c, what_cannot_be_planted_is_in_nobodys_way);
    tcase_add_loop_test(c, shares_are_remembered, 1, 2);
    tcase_add_loop_test(c, shares_are_remembered, 3, 4);
    tcase_add_loop_test(c, shares_are_remembered, 5, 6);
    tcase_add_loop_test(c, shares_are_remembered, 7, 8);
    tcase_add_loop_test(c, several_names_are_remembered, 1, 2);
    tcase_add_loop_test(c, several_names_are_remembered, 3, 4);
    tcase_add_test(c, what_was_planted_is_no_vote_at_once);
    tcase_add_test(c, what_was_planted_is_a_vote_at_last);
    tcase_add_test(c, what_was_planted_is_no_vote_beside_another);
    tcase_add_test(c, what_is_planted_is_not_asked_for);
    tcase_add_loop_test(c, a_second_restart_in_time_costs_nothing, 0, 10);
    tcase_add_test(c, the_older_one_is_told);
    tcase_add_test(c, the_newer_one_shortens_nothing);
    tcase_add_test(c, an_old_copy_loses);
    tcase_add_test(c, what_was_taken_over_and_given_back);
    tcase_add_test(c, what_was_forced);
    tcase_add_loop_test(c, waits_last_through_an_outage, 1, 2);
    tcase_add_loop_test(c, waits_last_through_an_outage, 3, 4);
    tcase_add_test(c, who_waits_for_several_is_told_why);
    tcase_add_test(c, who_waits_for_several_beside_a_reader_asks_now_and_then);
    tcase_add_test(c, two_that_wait_for_several_ask_now_and_then);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(outage_suite());
}
