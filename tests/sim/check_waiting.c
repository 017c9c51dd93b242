/* Who waits, and what stands behind him, as stories in virtual time. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "story.h"
#include "suite.h"

/* ---- what one connection says behind a LOCK that may wait ---- */

static const char *const waits[] = {"LOCK z WAIT 1200", "MLOCK 2 q z WAIT 1200"};
static const struct {
    const char *words, *answer;
} behind[] = {{"UNLOCK u", "1"}, {"LOCK m", "["}, {"MLOCK 2 m k", "[["}};

enum { WAITS = sizeof waits / sizeof waits[0], BEHIND = sizeof behind / sizeof behind[0] };

/* z is held through the other broker, which only the masters know. */
START_TEST(nothing_is_begun_behind_one_that_waits)
{
    int n = _i % 2 ? 3 : 1;
    story_begin(n, 2, "xy");
    story_gets(1, "LOCK z");
    story_gets(0, "LOCK u");
    world_say(0, "%s", waits[_i / 2 % WAITS]);
    world_say(0, "%s", behind[_i / 2 / WAITS].words);
    world_run_ms(1000);
    ck_assert_int_eq(world_copies("u"), n);
    ck_assert_int_eq(world_copies("m") + world_copies("k"), 0);
    world_run_ms(400);
    story_answers(0, "nil");
    story_answers(0, behind[_i / 2 / WAITS].answer);
    world_end();
}
END_TEST

/* Who does not have to wait keeps up only what is said behind him. */
START_TEST(what_stands_behind_goes_on_when_it_is_granted)
{
    story_begin(3, 1, "x");
    world_say(0, "LOCK a LEASE 2000");
    world_say(0, "LOCK n WAIT 1200");
    world_say(0, "MLOCK 2 b c WAIT 1200");
    world_say(0, "UNLOCK n");
    world_run_ms(50);
    story_granted(0);
    story_granted(0);
    story_answers(0, "[[");
    story_answers(0, "1");
    world_end();
}
END_TEST

/* ---- readers ---- */

static char name[2];

static bool is_reader(const char *owner)
{
    int limit;
    const char *kind = world_kind(name, owner, &limit);
    return kind && strcmp(kind, "SHARED") == 0;
}

static void find_name(const char *reader)
{
    for (name[0] = 'a'; name[0] < 'z' && !is_reader(reader); name[0]++) {
    }
}

/* A lock that the judge knows as one of readers, and four of them, two at each broker. */
static void begin_readers(int n_servers)
{
    int n = 0;
    story_begin(n_servers, 2, "");
    world.conf.kinds = true;
    for (char owner[] = "a"; n < 4 && owner[0] <= 'z'; owner[0]++) {
        if (n == 0)
            find_name(owner);
        if (is_reader(owner)) {
            world_connect(n, n / 2, owner);
            n++;
        }
    }
    ck_assert_int_eq(n, 4);
}

static void reads(int app, const char *options)
{
    world_say(app, "LOCK %s SHARED %s", name, options);
    world_run_ms(10);
    (void)story_granted(app);
}

START_TEST(a_fair_reader_gets_in_beside_a_reader)
{
    begin_readers(_i);
    reads(0, "");
    for (int app = 1; app < 4; app++)
        reads(app, "FAIR WAIT 5000");
    world_end();
}
END_TEST

/* Not past a writer, at whichever broker. */
START_TEST(a_fair_reader_stays_behind_a_writer)
{
    begin_readers(_i);
    reads(0, "");
    world_say(2, "LOCK %s FAIR WAIT 5000", name);
    world_run_ms(20);
    world_say(1, "LOCK %s SHARED FAIR WAIT 5000", name);
    world_say(3, "LOCK %s SHARED FAIR WAIT 5000", name);
    world_run_ms(1500);
    for (int app = 1; app < 4; app++)
        story_answers(app, "");
    world_end();
}
END_TEST

/* Alone and as a reader; said together: so the judge does not count how often. */
static void has_it_twice(int app)
{
    world_say(app, "LOCK n SHARED");
    world_say(app, "LOCK n WAIT 300");
    world_run_ms(20);
    (void)story_granted(app);
    (void)story_granted(app);
}

/* z has it alone and as a reader, and gives back the former. A reader is next here and does not get
 * it, because a writer stands in the line before him. */
START_TEST(unlock_counts_although_the_next_one_stays_out)
{
    story_begin(_i, 2, "zw");
    world_connect(2, 0, "r");
    has_it_twice(0);
    world_say(2, "LOCK n SHARED WAIT 700");
    world_run_ms(10);
    world_say(1, "LOCK n WAIT 700");
    world_run_ms(20);
    world_say(0, "UNLOCK n");
    world_run_ms(20);
    story_answers(0, "1");
    world_end();
}
END_TEST

/* z has it alone and as a reader, takes the former to another broker, and says UNLOCK at the first
 * one, which has not heard of that yet: the latter is given back. */
START_TEST(unlock_gives_back_what_was_not_taken_along)
{
    story_begin(_i, 2, "zz");
    has_it_twice(1);
    world_say(0, "RENEW n");
    story_run_there();
    world_say(1, "UNLOCK n");
    world_run_ms(20);
    story_answers(1, "1");
    world_end();
}
END_TEST

static void is_granted_soon(int app)
{
    for (int i = 0; world.apps[app].n_replies == 0; i++) {
        ck_assert_int_lt(i, 1000);
        sim_run_until(sim_now_us() + 5);
    }
    (void)story_granted(app);
}

/* The same where masters and programs are quick: whenever he says it, one of the two is given back,
 * and the other one is still there. */
START_TEST(unlock_gives_back_one_of_the_two)
{
    static const int n_servers[] = {1, 3};
    for (int after_us = 0; after_us < 1000; after_us += 20) {
        story_begin(n_servers[_i], 2, "zz");
        fake_net = (struct fake_net){.latency_min_us = 10, .latency_max_us = 40};
        world_say(1, "LOCK n SHARED");
        world_say(1, "LOCK n WAIT 300");
        is_granted_soon(1);
        is_granted_soon(1);
        world_say(0, "RENEW n");
        is_granted_soon(0);
        sim_run_until(sim_now_us() + after_us);
        world_say(1, "UNLOCK n");
        world_run_ms(30);
        story_answers(1, "1");
        world_say(1, "HOLDS n");
        world_run_ms(30);
        story_answers(1, "1");
        world_end();
    }
}
END_TEST

/* He has both: one at each broker. */
START_TEST(holds_counts_what_was_taken_along)
{
    story_begin(_i, 2, "zz");
    world_say(1, "LOCK n SHARED");
    world_say(1, "LOCK n WAIT 300");
    world_run_ms(20);
    (void)story_granted(1);
    (void)story_granted(1);
    (void)story_gets(0, "RENEW n");
    for (int app = 0; app < 2; app++) {
        world_say(app, "HOLDS n");
        world_run_ms(30);
        story_answers(app, "2");
    }
    world_end();
}
END_TEST

/* x has it alone and as a reader, and gives back the former. Who has waited longer to have it alone
 * keeps out a reader who came later, at whichever broker. */
START_TEST(who_goes_on_as_a_reader_lets_no_later_one_in)
{
    static const struct {
        int writer, reader;
    } at[] = {{1, 2}, {1, 1}, {1, 0}, {0, 1}};
    story_begin(_i % 2 ? 3 : 1, 3, "z");
    world_connect(1, at[_i / 2].writer, "w");
    world_connect(2, at[_i / 2].reader, "r");
    world_say(0, "LOCK n SHARED"); /* said together: so the judge does not count how often */
    world_say(0, "LOCK n WAIT 300");
    world_run_ms(20);
    (void)story_granted(0);
    (void)story_granted(0);
    world_say(1, "LOCK n WAIT 0");
    world_run_ms(20);
    world_say(2, "LOCK n SHARED WAIT 0");
    world_run_ms(20);
    world_say(0, "UNLOCK n");
    world_run_ms(2500);
    story_answers(0, "1");
    story_answers(1, "");
    story_answers(2, "");
    world_close(0, true);
    world_run_ms(20);
    (void)story_granted(1);
    world_end();
}
END_TEST

/* ---- several names ---- */

/* z is held, and so an MLOCK of m and z takes nothing: m is free for others, whenever they ask. */
START_TEST(what_an_mlock_waits_for_is_free)
{
    for (int after_us = 0; after_us < 4000; after_us += 100) {
        story_begin(_i % 2 ? 3 : 1, 2, "z");
        world_connect(1, _i / 2, "y");
        world_connect(2, 0, "x");
        story_gets(0, "LOCK z");
        world_run_ms(20);
        world_say(1, "MLOCK 2 m z WAIT 0");
        sim_run_until(sim_now_us() + after_us);
        (void)story_gets(2, "LOCK m");
        world_end();
    }
}
END_TEST

/* ---- readers who want to have it alone ---- */

static bool is_told_deadlock(int app)
{
    return world.apps[app].n_replies > 0 &&
           strncmp(world.apps[app].replies[0], "-DEADLOCK", strlen("-DEADLOCK")) == 0;
}

/* Two who read it have asked to have it alone: somebody has been told. He gives back his share, and
 * the other one has it; when he asks again, if the master that calls up would have told him too.
 * Returns how many were told. */
static int one_gives_way(int one, int other, int64_t within_ms)
{
    int n_told = is_told_deadlock(one) + is_told_deadlock(other);
    ck_assert_msg(n_told > 0, "both wait");
    int told = is_told_deadlock(one) ? one : other, left = told == one ? other : one;
    story_answers(told, "-DEADLOCK");
    world_say(told, "UNLOCK %s", name);
    world_run_ms(within_ms);
    story_answers(told, "1");
    if (n_told == 1)
        (void)story_granted(left);
    return n_told;
}

/* Whoever asks first, and however long their questions are on the way. */
START_TEST(of_two_readers_who_want_it_alone_one_is_told)
{
    int n_told[2] = {0};
    for (int after_us = 0; after_us < 4000; after_us += 100) {
        int first = after_us % 200 ? 2 : 0;
        begin_readers(_i);
        reads(0, "");
        reads(2, "");
        for (int i = 0; i < after_us; i += 200)
            (void)sim_random(2); /* other delays each time */
        fake_net = (struct fake_net){.latency_min_us = 50, .latency_max_us = 3000};
        world_say(first, "LOCK %s WAIT 0", name);
        sim_run_until(sim_now_us() + after_us);
        world_say(2 - first, "LOCK %s WAIT 0", name);
        world_run_ms(30);
        n_told[0] += is_told_deadlock(0);
        n_told[1] += is_told_deadlock(2);
        (void)one_gives_way(0, 2, 800);
        world_end();
    }
    ck_assert_msg(n_told[0] > 0 && n_told[1] > 0, "%d and %d", n_told[0], n_told[1]);
}
END_TEST

/* Who has come to the masters is never the one who is told, however long he waits. */
START_TEST(of_two_readers_who_want_it_alone_the_later_one_is_told)
{
    for (int after_ms = 20; after_ms < 5000; after_ms += 330) {
        begin_readers(_i);
        reads(0, "");
        reads(2, "");
        world_say(0, "LOCK %s WAIT 0", name);
        world_run_ms(after_ms);
        world_say(2, "LOCK %s WAIT 0", name);
        world_run_ms(20);
        ck_assert_msg(is_told_deadlock(2), "after %d ms", after_ms);
        ck_assert_int_eq(one_gives_way(0, 2, 30), 1);
        world_end();
    }
}
END_TEST

/* Beside a third one, who gives back his share later. */
START_TEST(of_two_readers_beside_a_third_one_is_told)
{
    for (int after_ms = 20; after_ms < 5000; after_ms += 990) {
        begin_readers(_i % 2 ? 3 : 1);
        int third = _i / 2 ? 1 : 3;
        reads(0, "");
        reads(2, "");
        reads(third, "");
        world_say(0, "LOCK %s WAIT 0", name);
        world_run_ms(after_ms);
        world_say(2, "LOCK %s WAIT 0", name);
        world_run_ms(1000);
        world_say(third, "UNLOCK %s", name);
        world_run_ms(30);
        story_answers(third, "1");
        ck_assert_int_eq(one_gives_way(0, 2, 30), 1);
        world_end();
    }
}
END_TEST

/* ---- FAIR: the order of arrival, of writers and readers ---- */

/* Kind and broker of each: the first has the lock, the others come one after the other. */
static const char *const arrivals[] = {
    "r0 w1 r0",       "r0 w0 r0",          "w0 r0 r0 w0",          "w0 r1 r1 w0 w1",
    "w0 r0 w1 w0 w1", "r0 w1 r1 r0 w1",    "r1 w0 w0 r1",          "r0 r0 w1 w1 w0",
    "w0 w1 r1 r1 w0", "r0 w1 r0 w1 r0 w1", "w1 r0 r1 r0 w0 r1 r0", "r0 r1 w0 r0 r1 w1 r1",
    "w1 r0 r1 w0",    "w0 w0 r1 r0 w1",    "w0 r0 w1 w0 w1",       "w1 r0 r1 w1 w0 r1 w0"};

enum { ARRIVALS = sizeof arrivals / sizeof arrivals[0], PER_ARRIVAL = 3 };

static bool is_mixed(void)
{
    int n_readers = 0, limit;
    for (char owner[] = "a"; owner[0] <= 'z'; owner[0]++) {
        n_readers += is_reader(owner);
        if (world_kind(name, owner, &limit) && !is_reader(owner))
            return false;
    }
    return n_readers >= WORLD_APPS && n_readers <= 26 - WORLD_APPS;
}

/* A lock that the judge knows as one of readers and writers. */
static void begin_mixed(int n_servers, int n_brokers)
{
    story_begin(n_servers, n_brokers, "");
    world.conf.kinds = true;
    for (name[0] = 'a'; name[0] < 'z' && !is_mixed(); name[0]++) {
    }
}

static void connect_one(int app, int broker, bool reads)
{
    static char owner[2];
    if (app == 0)
        owner[0] = 'a';
    while (is_reader(owner) != reads)
        owner[0]++;
    world_connect(app, broker, owner);
    owner[0]++;
}

static bool reads_as(const char *pattern, int app)
{
    return pattern[3 * app] == 'r';
}

/* Returns how many have come, the first of them has the lock. */
static int arrive(int n_servers, const char *pattern)
{
    int n = ((int)strlen(pattern) + 1) / 3;
    begin_mixed(n_servers, 2);
    for (int app = 0; app < n; app++) {
        bool reader = reads_as(pattern, app);
        connect_one(app, pattern[3 * app + 1] - '0', reader);
        world_say(app, "LOCK %s %s %s", name, reader ? "SHARED" : "", app > 0 ? "FAIR WAIT 0" : "");
        world_run_ms(20);
    }
    return n;
}

/* These have it, those behind them do not; they give it back. */
static void have_it_alone(int first, int end, int n)
{
    for (int app = first; app < end; app++) {
        ck_assert_msg(world.apps[app].n_replies == 1, "%d waits while it is free", app);
        (void)story_granted(app);
    }
    for (int app = end; app < n; app++)
        ck_assert_msg(world.apps[app].n_replies == 0, "%d came in before %d", app, end);
    for (int app = first; app < end; app++)
        world_say(app, "UNLOCK %s", name);
    world_run_ms(100);
    for (int app = first; app < end; app++)
        story_answers(app, "1");
}

/* And nobody waits while it is free. */
START_TEST(fair_keeps_the_order_of_arrival)
{
    static const int n_servers[PER_ARRIVAL] = {1, 3, 5};
    const char *pattern = arrivals[_i / PER_ARRIVAL];
    int n = arrive(n_servers[_i % PER_ARRIVAL], pattern);
    for (int first = 0, end; first < n; first = end) {
        end = first + 1;
        while (end < n && reads_as(pattern, first) && reads_as(pattern, end))
            end++;
        have_it_alone(first, end, n);
    }
    world_end();
}
END_TEST

/* Each gives it back as soon as he has it, so that calls and releases meet on their way. */
START_TEST(fair_keeps_the_order_of_those_who_are_quick)
{
    int64_t tokens[WORLD_APPS] = {0};
    const char *pattern = arrivals[_i % ARRIVALS];
    int n = arrive(_i / ARRIVALS % 2 ? 3 : 1, pattern), served = 0;
    fake_net = (struct fake_net){.latency_min_us = 300, .latency_max_us = 1500 + 100 * _i};
    for (int ms = 0; served < n; ms++) {
        ck_assert_int_lt(ms, 300);
        for (int app = 0; app < n; app++) {
            if (tokens[app] > 0 || world.apps[app].n_replies == 0)
                continue;
            tokens[app] = story_granted(app);
            served++;
            world_say(app, "UNLOCK %s", name);
        }
        world_run_ms(1);
    }
    for (int app = 1; app < n; app++) {
        for (int before = 0; before < app; before++)
            ck_assert_msg(tokens[before] < tokens[app] ||
                              (reads_as(pattern, before) && reads_as(pattern, app)),
                          "%s: %d got in before %d", pattern, app, before);
    }
    world_end();
}
END_TEST

/* A lapse calls nobody up by itself. */
START_TEST(fair_hears_of_a_lapse)
{
    begin_mixed(_i, 1);
    connect_one(0, 0, true);
    connect_one(1, 0, false);
    world_say(0, "LOCK %s SHARED LEASE 1000", name);
    world_run_ms(10);
    (void)story_granted(0);
    world_say(1, "LOCK %s FAIR WAIT 0", name);
    world_run_ms(1050);
    (void)story_granted(1);
    world_end();
}
END_TEST

/* A writer keeps readers out who come later, as long as his broker is there. */
START_TEST(a_writer_whose_broker_is_dead_keeps_no_reader_out)
{
    begin_mixed(_i, 2);
    connect_one(0, 0, true);
    connect_one(1, 1, false);
    connect_one(2, 0, true);
    reads(0, "");
    world_say(1, "LOCK %s WAIT 0", name);
    world_run_ms(20);
    world_say(2, "LOCK %s SHARED WAIT 0", name);
    world_run_ms(2000);
    story_answers(2, "");
    world_broker_kill(1);
    world_run_ms(1000);
    (void)story_granted(2);
    world_end();
}
END_TEST

/* ---- who has entered what belongs to another connection ---- */

enum { OTHER = 1, STRANGER = 2 };

/* x enters on a second connection what belongs to the first one. */
static int64_t enter_twice(int n_servers)
{
    story_begin(n_servers, 1, "xxy");
    int64_t token = story_gets(0, "LOCK n TELL");
    ck_assert_int_eq(story_gets(OTHER, "LOCK n TELL"), token);
    return token;
}

START_TEST(who_has_entered_is_told_when_it_is_released)
{
    enter_twice(_i);
    world_close(0, true);
    world_run_ms(10);
    story_pushed(OTHER, "lost n");
    (void)story_gets(STRANGER, "LOCK n");
    world_end();
}
END_TEST

START_TEST(who_has_entered_is_told_when_it_lapses)
{
    enter_twice(_i);
    world_close(0, false);
    world_say(STRANGER, "LOCK n WAIT 0");
    world_run_ms(4000);
    story_pushed(OTHER, "lost n");
    (void)story_granted(STRANGER);
    world_end();
}
END_TEST

START_TEST(who_has_left_is_not_told)
{
    enter_twice(3);
    world_say(OTHER, "UNLOCK n");
    world_run_ms(10);
    story_answers(OTHER, "0");
    world_close(0, true);
    world_run_ms(10);
    story_pushed(OTHER, "");
    world_end();
}
END_TEST

/* RENEW makes it his, and the end of the first connection is nothing to him. */
START_TEST(who_renews_keeps_it)
{
    enter_twice(3);
    (void)story_gets(OTHER, "RENEW n");
    story_pushed(0, "lost n");
    world_close(0, true);
    world_run_ms(10);
    story_pushed(OTHER, "");
    world_say(STRANGER, "LOCK n");
    world_run_ms(10);
    story_answers(STRANGER, "nil");
    world_end();
}
END_TEST

static Suite *waiting_suite(void)
{
    Suite *s = suite_create("waiting");
    TCase *c = tcase_create("waiting");
    tcase_add_loop_test(c, nothing_is_begun_behind_one_that_waits, 0, 2 * WAITS * BEHIND);
    tcase_add_test(c, what_stands_behind_goes_on_when_it_is_granted);
    tcase_add_loop_test(c, a_fair_reader_gets_in_beside_a_reader, 1, 2);
    tcase_add_loop_test(c, a_fair_reader_gets_in_beside_a_reader, 3, 4);
    tcase_add_loop_test(c, a_fair_reader_stays_behind_a_writer, 1, 2);
    tcase_add_loop_test(c, a_fair_reader_stays_behind_a_writer, 3, 4);
    tcase_add_loop_test(c, unlock_counts_although_the_next_one_stays_out, 1, 2);
    tcase_add_loop_test(c, unlock_counts_although_the_next_one_stays_out, 3, 4);
    tcase_add_loop_test(c, unlock_gives_back_what_was_not_taken_along, 1, 2);
    tcase_add_loop_test(c, unlock_gives_back_what_was_not_taken_along, 3, 4);
    tcase_add_loop_test(c, unlock_gives_back_one_of_the_two, 0, 2);
    tcase_add_loop_test(c, holds_counts_what_was_taken_along, 1, 2);
    tcase_add_loop_test(c, holds_counts_what_was_taken_along, 3, 4);
    tcase_add_loop_test(c, who_goes_on_as_a_reader_lets_no_later_one_in, 0, 8);
    tcase_add_loop_test(c, of_two_readers_who_want_it_alone_one_is_told, 1, 2);
    tcase_add_loop_test(c, of_two_readers_who_want_it_alone_one_is_told, 3, 4);
    tcase_add_loop_test(c, of_two_readers_who_want_it_alone_the_later_one_is_told, 1, 2);
    tcase_add_loop_test(c, of_two_readers_who_want_it_alone_the_later_one_is_told, 3, 4);
    tcase_add_loop_test(c, of_two_readers_beside_a_third_one_is_told, 0, 4);
    tcase_add_loop_test(c, what_an_mlock_waits_for_is_free, 0, 4);
    tcase_add_loop_test(c, fair_keeps_the_order_of_arrival, 0, ARRIVALS * PER_ARRIVAL);
    tcase_add_loop_test(c, fair_keeps_the_order_of_those_who_are_quick, 0, 4 * ARRIVALS);
    tcase_add_loop_test(c, fair_hears_of_a_lapse, 1, 2);
    tcase_add_loop_test(c, fair_hears_of_a_lapse, 3, 4);
    tcase_add_loop_test(c, a_writer_whose_broker_is_dead_keeps_no_reader_out, 1, 2);
    tcase_add_loop_test(c, a_writer_whose_broker_is_dead_keeps_no_reader_out, 3, 4);
    tcase_add_loop_test(c, who_has_entered_is_told_when_it_is_released, 1, 2);
    tcase_add_loop_test(c, who_has_entered_is_told_when_it_is_released, 3, 4);
    tcase_add_loop_test(c, who_has_entered_is_told_when_it_lapses, 3, 4);
    tcase_add_test(c, who_has_left_is_not_told);
    tcase_add_test(c, who_renews_keeps_it);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(waiting_suite());
}
