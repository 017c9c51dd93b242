/*
 * What a broker remembers of its holds while others take them away, as stories in virtual time:
 * nobody is refused for what was so more than a second ago, whether the broker hears what others do
 * or not; and while it hears, the masters are not asked.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "stats/stats.h"
#include "story.h"
#include "suite.h"

enum { X = 0, ELSEWHERE = 1, Y = 2, Z = 3, OLD_MS = 1100 };

/* x at both brokers, y and z at the first one. */
static void begin(int n_servers)
{
    story_begin(n_servers, 2, "xx");
    world_connect(Y, 0, "y");
    world_connect(Z, 0, "z");
}

static void deafen(bool deaf)
{
    for (int i = 0; i < story_conf.n_servers; i++)
        fake_master_deafen(world.brokers[0].masters[i], deaf);
}

static void answers(int app, const char *words, const char *expected)
{
    world_say(app, "%s", words);
    world_run_ms(20);
    story_answers(app, expected);
}

/* x takes it to the other broker, and gives it back there; the first one does not hear of it. */
static void leave_in_secret(void)
{
    deafen(true);
    story_gets(ELSEWHERE, "RENEW n LEASE 6000");
    answers(ELSEWHERE, "UNLOCK n", "1");
}

static void force_in_secret(void)
{
    deafen(true);
    answers(ELSEWHERE, "FORCEUNLOCK n", "1");
}

/* The link is down and that is known, as when it was reset. */
static void deafen_openly(void)
{
    struct world_broker *wb = &world.brokers[0];
    deafen(true);
    for (int i = 0; i < story_conf.n_servers; i++)
        broker_listens(&wb->b, i, INT64_MAX, 0, world_local_ms(wb));
}

/* ---- what is asked ---- */

START_TEST(holds_are_counted_where_they_are)
{
    begin(_i);
    story_gets(X, "LOCK n LEASE 6000");
    deafen(true);
    story_gets(ELSEWHERE, "RENEW n LEASE 6000");
    story_gets(ELSEWHERE, "LOCK n LEASE 6000");
    world_run_ms(OLD_MS);
    answers(X, "HOLDS n", "2");
    world_end();
}
END_TEST

/* Not for a second either, where it is known that nothing is heard. */
START_TEST(holds_are_asked_for_where_nothing_is_heard)
{
    begin(_i);
    story_gets(X, "LOCK n LEASE 6000");
    deafen_openly();
    story_gets(X, "LOCK m LEASE 6000");
    story_gets(ELSEWHERE, "RENEW n LEASE 6000");
    story_gets(ELSEWHERE, "LOCK n LEASE 6000");
    story_gets(ELSEWHERE, "RENEW m LEASE 6000");
    story_gets(ELSEWHERE, "LOCK m LEASE 6000");
    answers(X, "HOLDS n", "2");
    answers(X, "HOLDS m", "2");
    world_end();
}
END_TEST

START_TEST(who_locks_what_has_moved_gets_it)
{
    begin(_i);
    story_gets(X, "LOCK n LEASE 6000");
    deafen(true);
    story_gets(ELSEWHERE, "RENEW n LEASE 6000");
    story_gets(X, "LOCK n WAIT 3000 LEASE 6000");
    story_pushed(X, "lost n");
    answers(X, "HOLDS n", "2");
    world_end();
}
END_TEST

/* Forced away, it is not there to be entered again: it is a lock like any other. */
START_TEST(who_locks_what_was_forced_gets_it_anew)
{
    begin(_i);
    int64_t token = story_gets(X, "LOCK n LEASE 6000");
    force_in_secret();
    ck_assert_int_gt(story_gets(X, "LOCK n LEASE 6000"), token);
    answers(X, "HOLDS n", "1");
    world_end();
}
END_TEST

START_TEST(who_unlocks_what_has_moved_gives_it_back)
{
    begin(_i);
    story_gets(X, "LOCK n LEASE 6000");
    story_gets(X, "LOCK n LEASE 6000");
    deafen(true);
    story_gets(ELSEWHERE, "RENEW n LEASE 6000");
    answers(X, "UNLOCK n", "0");
    story_gets(ELSEWHERE, "RENEW n LEASE 6000");
    answers(X, "UNLOCK n", "1");
    ck_assert_int_eq(world_copies("n"), 0);
    answers(X, "UNLOCK n", "-NOTHELD");
    world_end();
}
END_TEST

/* So does one behind whom somebody waits at the first broker. */
START_TEST(what_has_moved_is_not_handed_over)
{
    begin(_i);
    story_gets(X, "LOCK n LEASE 6000");
    world_say(Y, "LOCK n WAIT 0");
    world_run_ms(20);
    deafen(true);
    story_gets(ELSEWHERE, "RENEW n LEASE 6000");
    answers(X, "UNLOCK n", "1");
    world_run_ms(1000);
    story_granted(Y);
    world_end();
}
END_TEST

/* ---- masters in quarantine ---- */

/* So many of the masters restart empty, the last ones first; the hold is remembered for as long as
 * was promised. */
START_TEST(who_has_forgotten_it_denies_no_hold)
{
    int n_masters = _i < 4 ? 3 : 1, n_empty = _i < 4 ? _i : 1;
    bool nobody_knows = 2 * n_empty > n_masters;
    begin(n_masters);
    story_gets(X, "LOCK n LEASE 6000");
    for (int i = 0; i < n_empty; i++)
        story_restart_empty(n_masters - 1 - i);
    world_run_ms(OLD_MS);
    answers(X, "HOLDS n", "1");
    answers(ELSEWHERE, "HOLDS n", "1"); /* its broker has put it there again */
    answers(ELSEWHERE, "HOLDS m", nobody_knows ? "-NOQUORUM" : "0");
    answers(Y, "HOLDS n", nobody_knows ? "-NOQUORUM" : "0");
    if (n_empty < n_masters)
        answers(X, "UNLOCK n", "1");
    world_end();
}
END_TEST

/* ---- refusals ---- */

static const char *const tries[] = {"LOCK n",         "LOCK n WAIT 3000", "LOCK n SHARED",
                                    "LOCK n LIMIT 2", "MLOCK 2 m n",      "MLOCK 2 m n WAIT 3000"};
enum { TRIES = sizeof tries / sizeof tries[0] };

static void is_granted(int app, const char *words)
{
    world_say(app, "%s", words);
    world_run_ms(20);
    const char *reply = world_reply(app);
    ck_assert_msg(reply[0] == '[', "%s: '%s'", words, reply);
}

START_TEST(what_is_free_is_not_refused)
{
    begin(_i / 2 % 2 ? 3 : 1);
    story_gets(X, "LOCK n LEASE 6000");
    if (_i % 2)
        leave_in_secret();
    else
        force_in_secret();
    world_run_ms(OLD_MS);
    is_granted(Y, tries[_i / 4]);
    world_end();
}
END_TEST

/* Asked for one request, the masters are asked again for the next one: in between it may have come
 * free. */
START_TEST(what_is_free_is_not_refused_where_nothing_is_heard)
{
    begin(_i / 2 % 2 ? 3 : 1);
    story_gets(X, "LOCK n LEASE 6000");
    deafen_openly();
    answers(Y, "LOCK n", "nil");
    answers(Y, "UNLOCK n", "-NOTHELD");
    if (_i % 2)
        leave_in_secret();
    else
        force_in_secret();
    is_granted(Y, tries[_i / 4]);
    world_end();
}
END_TEST

/* A hold whose connection has gone lapses by itself, unless somebody ends it before. */
START_TEST(what_nobody_renews_is_looked_at_too)
{
    begin(3);
    story_gets(X, "LOCK n");
    world_close(X, false);
    leave_in_secret();
    world_run_ms(OLD_MS);
    story_gets(Y, "LOCK n");
    world_end();
}
END_TEST

START_TEST(readers_and_permits_are_looked_at)
{
    const char *kind = _i ? "LIMIT 2" : "SHARED", *is = "";
    char words[64], name[2] = "a";
    int limit;
    begin(3);
    world.conf.kinds = true; /* the judge has to know what is taken as what */
    for (; !is || strcmp(is, kind) != 0; name[0]++)
        is = world_kind(name, "y", &limit);
    name[0]--;
    snprintf(words, sizeof words, "LOCK %s %s LEASE 6000", name, kind);
    story_gets(Y, words);
    story_gets(Z, words);
    deafen(true);
    world_say(ELSEWHERE, "FORCEUNLOCK %s", name);
    world_run_ms(20);
    story_answers(ELSEWHERE, "1");
    world_run_ms(OLD_MS);
    if (!_i)
        snprintf(words, sizeof words, "LOCK %s", name);
    story_gets(X, words);
    world_end();
}
END_TEST

/* It waits for holds that are known here, and the broker goes deaf meanwhile. */
START_TEST(who_waits_is_served)
{
    begin(_i);
    story_gets(X, "LOCK n LEASE 6000");
    world_say(Y, "LOCK n WAIT 0");
    world_run_ms(20);
    leave_in_secret();
    world_run_ms(3000);
    story_granted(Y);
    world_end();
}
END_TEST

/* Deaf for a moment only, and just then it was said. */
START_TEST(who_waits_is_served_after_a_gap)
{
    begin(_i);
    story_gets(X, "LOCK n LEASE 6000");
    world_say(Y, "LOCK n WAIT 0");
    world_run_ms(20);
    leave_in_secret();
    deafen(false);
    world_run_ms(1500);
    story_granted(Y);
    world_end();
}
END_TEST

START_TEST(what_is_held_is_refused)
{
    begin(3);
    story_gets(X, "LOCK n LEASE 6000");
    deafen(true);
    world_run_ms(OLD_MS);
    answers(Y, "LOCK n", "nil");
    answers(Y, "UNLOCK n", "-NOTHELD");
    answers(Y, "LOCK n LIMIT 2", "-KIND");
    answers(Y, "MLOCK 2 m n", "nil");
    ck_assert_int_eq(world_copies("m"), 0);
    world_run_ms(OLD_MS);
    for (int i = 0; i < 3; i++)
        story_cut(0, i, true);
    world_run_ms(50);
    world_say(Y, "LOCK n");
    world_run_ms(500);
    story_answers(Y, "-NOQUORUM");
    for (int i = 0; i < 3; i++)
        story_cut(0, i, false);
    world_run_ms(100);
    world_end();
}
END_TEST

/* ---- while it hears ---- */

START_TEST(nothing_is_asked_while_it_hears)
{
    begin(3);
    story_gets(X, "LOCK n LEASE 6000");
    int64_t asks = world_asks(0);
    for (int i = 0; i < 20; i++) {
        world_run_ms(200);
        answers(X, "HOLDS n", "1");
        answers(Y, "LOCK n", "nil");
    }
    ck_assert_int_eq(world_asks(0), asks);
    world_end();
}
END_TEST

START_TEST(it_hears_that_it_is_forced)
{
    begin(_i);
    story_gets(X, "LOCK n LEASE 6000");
    world_say(Y, "LOCK n WAIT 0");
    world_run_ms(20);
    answers(ELSEWHERE, "FORCEUNLOCK n", "1");
    world_run_ms(20);
    story_pushed(X, "lost n");
    story_granted(Y);
    world_end();
}
END_TEST

static Suite *memory_suite(void)
{
    Suite *s = suite_create("memory");
    TCase *c = tcase_create("memory");
    for (int n = 1; n <= 3; n += 2) {
        tcase_add_loop_test(c, holds_are_counted_where_they_are, n, n + 1);
        tcase_add_loop_test(c, holds_are_asked_for_where_nothing_is_heard, n, n + 1);
        tcase_add_loop_test(c, who_locks_what_has_moved_gets_it, n, n + 1);
        tcase_add_loop_test(c, who_locks_what_was_forced_gets_it_anew, n, n + 1);
        tcase_add_loop_test(c, who_unlocks_what_has_moved_gives_it_back, n, n + 1);
        tcase_add_loop_test(c, what_has_moved_is_not_handed_over, n, n + 1);
        tcase_add_loop_test(c, who_waits_is_served, n, n + 1);
        tcase_add_loop_test(c, who_waits_is_served_after_a_gap, n, n + 1);
        tcase_add_loop_test(c, it_hears_that_it_is_forced, n, n + 1);
    }
    tcase_add_loop_test(c, who_has_forgotten_it_denies_no_hold, 1, 5);
    tcase_add_loop_test(c, what_is_free_is_not_refused, 0, 4 * TRIES);
    tcase_add_loop_test(c, what_is_free_is_not_refused_where_nothing_is_heard, 0, 4 * TRIES);
    tcase_add_test(c, what_nobody_renews_is_looked_at_too);
    tcase_add_loop_test(c, readers_and_permits_are_looked_at, 0, 2);
    tcase_add_test(c, what_is_held_is_refused);
    tcase_add_test(c, nothing_is_asked_while_it_hears);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(memory_suite());
}
