/* Who waits, and what stands behind him, as stories in virtual time. */
#include <check.h>
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
