/* Brokers that do not share their settings or their masters, as stories in virtual time: what one
 * refusal stops, what an administrator's ADOPT changes, and what becomes of the holds of those
 * whose settings are no longer in force. */
#include <check.h>

#include "story.h"
#include "suite.h"

enum { QUARANTINE_MS = 6000 + 30 + 1000, LEASE_MS = 3000 }; /* as world_defaults() has it */

/* Broker 0 has been there for long; broker 1, with settings of its own, comes later. */
static void begin(const char *servers, const char *later_servers)
{
    const struct world_view views[] = {{"old", servers, NULL}, {"new", later_servers, NULL}};
    story_begin_as(5, views, 2, "xy");
    world_broker_start(1);
    world_run_ms(3 * QUARANTINE_MS);
    world_connect(1, 1, "y");
}

static void refused(int app, const char *words)
{
    world_say(app, "%s", words);
    world_run_ms(300);
    story_answers(app, "-NOQUORUM nothing may be granted while");
}

static void adopt(int broker, int master)
{
    master_adopt(world.brokers[broker].masters[master]);
    world_run_ms(20);
}

/* Over A B C and over A D E: only A knows of both. */
START_TEST(one_veto_stops_everything)
{
    begin("abc", "ade");
    ck_assert_ptr_nonnull(rounds_veto(&world.brokers[1].b.rounds));
    refused(1, "LOCK n");
    refused(1, "LOCK m LEASE 1000");
    story_gets(0, "LOCK n");
    ck_assert(rounds_has_quorum(&world.brokers[0].b.rounds, 0));
    ck_assert(!rounds_has_quorum(&world.brokers[1].b.rounds, 0));
    world_end();
}
END_TEST

/* The one whose settings are no longer in force has B and C still. What it has told its holders
 * stands, and the other one grants nothing until that is over. */
START_TEST(adopted_by_another_list)
{
    begin("abc", "ade");
    story_gets(0, "LOCK n");
    int64_t token = story_gets(0, "LOCK l LEASE 6000");
    int64_t at_us = sim_now_us();
    adopt(1, 0);
    ck_assert_int_eq(story_state(1, 0), MASTER_ACTIVE);
    refused(0, "LOCK m");
    story_pushed(0, ""); /* it is due in a while */
    world_say(1, "LOCK l WAIT 60000");
    world_run_ms(LEASE_MS - 400);
    story_pushed(0, "jeopardy n");
    story_pushed(0, "lost n");
    while (sim_now_us() - at_us < QUARANTINE_MS * 1000 - 100000) {
        world_run_ms(50);
        story_answers(1, "");
    }
    world_run_ms(5000);
    ck_assert_int_gt(story_granted(1), token);
    world_end();
}
END_TEST

/* It has so much to do that it never looks at the marks. */
START_TEST(a_busy_broker_hears_of_it)
{
    begin(NULL, NULL);
    ck_assert_ptr_nonnull(rounds_veto(&world.brokers[1].b.rounds));
    for (int i = 0; i < 20; i++) {
        story_gets(0, "LOCK n");
        story_frees(0);
    }
    for (int i = 0; i < 5; i++)
        master_adopt(world.brokers[1].masters[i]);
    world_run_ms(6);
    for (int i = 0; i < 20; i++) {
        world_say(0, "LOCK n LEASE 6000");
        world_run_ms(10);
        story_answers(0, "-NOQUORUM");
    }
    world_run_ms(100);
    story_gets(1, "LOCK n");
    world_end();
}
END_TEST

/* Nothing is renewed under settings of before; the holder is told while its lock is still good. */
START_TEST(a_hold_ends_with_its_settings)
{
    begin(NULL, NULL);
    story_gets(0, "LOCK n");
    for (int i = 0; i < 5; i++)
        adopt(1, i);
    world_say(1, "LOCK n WAIT 10000");
    world_run_ms(LEASE_MS);
    story_pushed(0, "jeopardy n");
    story_pushed(0, "lost n");
    world_run_ms(200);
    story_granted(1);
    world_end();
}
END_TEST

/* Unless they come back in time: then nothing is lost. */
START_TEST(a_hold_lives_when_it_is_settled)
{
    begin(NULL, NULL);
    story_gets(0, "LOCK n");
    adopt(1, 0);
    refused(0, "LOCK m");
    world_run_ms(900);
    story_pushed(0, "jeopardy n");
    adopt(0, 0);
    world_run_ms(LEASE_MS);
    story_pushed(0, "safe n");
    story_pushed(0, "");
    story_frees(0);
    world_end();
}
END_TEST

/* What is given back is given back to the masters that take it. */
START_TEST(a_release_needs_no_settings)
{
    begin("abc", "ade");
    story_gets(0, "LOCK n LEASE 6000");
    adopt(1, 0);
    refused(0, "LOCK m");
    world_connect(2, 0, "z");
    world_say(2, "LOCK n WAIT 5000");
    world_run_ms(50);
    world_say(0, "UNLOCK n");
    world_run_ms(50);
    story_answers(0, "1");
    ck_assert_int_le(world_copies("n"), 1);
    world_run_ms(5100);
    story_answers(2, "-NOQUORUM");
    world_end();
}
END_TEST

/* It is known until that master has taken the settings: a link that is lost does not end it. */
START_TEST(a_veto_outlives_its_link)
{
    begin("abc", "ade");
    fake_server_kill(&world.servers[0]);
    world_run_ms(2 * QUARANTINE_MS);
    refused(1, "LOCK n");
    fake_server_start(&world.servers[0], false); /* the first one there decides anew */
    world_run_ms(3 * QUARANTINE_MS);
    ck_assert(rounds_has_quorum(&world.brokers[0].b.rounds, 0) !=
              rounds_has_quorum(&world.brokers[1].b.rounds, 0));
    world_end();
}
END_TEST

/* ---- names that lead to different servers ---- */

/* Broker 0 has enough to do never to fall silent, for so long. */
static void keep_busy(int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += 20) {
        world_say(0, "LOCK k LEASE 6000");
        world_run_ms(10);
        if (world_reply(0)[0] == '[') {
            world_say(0, "UNLOCK k");
            world_run_ms(10);
            story_answers(0, "1");
        } else {
            world_run_ms(10);
        }
    }
}

/* In a move of two of three masters each broker would have a majority of its own. */
START_TEST(two_names_lead_elsewhere)
{
    static const struct world_view views[] = {{NULL, "abc", NULL}, {NULL, "bde", "bac"}};
    story_begin_as(5, views, 2, "x");
    story_gets(0, "LOCK n");
    world_broker_start(1);
    keep_busy(2 * QUARANTINE_MS);
    story_pushed(0, "jeopardy n");
    story_pushed(0, "lost n");
    world_connect(1, 1, "y");
    for (int i = 0; i < 20; i++) {
        world_say(0, "LOCK n LEASE 6000");
        world_say(1, "LOCK n LEASE 6000");
        world_run_ms(500);
        story_answers(0, "-NOQUORUM");
        story_answers(1, "-NOQUORUM");
    }
    world_broker_kill(0); /* moved too: the others are no longer kept out */
    world_run_ms(3 * QUARANTINE_MS);
    ck_assert_int_gt(story_gets(1, "LOCK n"), 0);
    world_end();
}
END_TEST

/* With one of three nobody is in the way of anybody, and no hold is lost. */
START_TEST(one_name_leads_elsewhere)
{
    static const struct world_view views[] = {{NULL, "abc", NULL}, {NULL, "bcd", "bca"}};
    story_begin_as(4, views, 2, "x");
    int64_t token = story_gets(0, "LOCK n");
    world_broker_start(1);
    world_run_ms(100);
    world_connect(1, 1, "y");
    for (int i = 0; i < 40; i++) {
        world_say(1, "LOCK n");
        world_run_ms(500);
        story_answers(1, "nil");
    }
    story_pushed(0, "");
    ck_assert_int_ne(story_state(0, 0), MASTER_ACTIVE);
    ck_assert_int_ne(story_state(1, 2), MASTER_ACTIVE);
    story_frees(0);
    ck_assert_int_gt(story_gets(1, "LOCK n"), token);
    world_end();
}
END_TEST

static Suite *settings_suite(void)
{
    Suite *s = suite_create("settings");
    TCase *c = tcase_create("settings");
    tcase_add_test(c, one_veto_stops_everything);
    tcase_add_test(c, adopted_by_another_list);
    tcase_add_test(c, a_busy_broker_hears_of_it);
    tcase_add_test(c, a_hold_ends_with_its_settings);
    tcase_add_test(c, a_hold_lives_when_it_is_settled);
    tcase_add_test(c, a_release_needs_no_settings);
    tcase_add_test(c, a_veto_outlives_its_link);
    tcase_add_test(c, two_names_lead_elsewhere);
    tcase_add_test(c, one_name_leads_elsewhere);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(settings_suite());
}
