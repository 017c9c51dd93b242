/* Since when a broker has its name at a master, from the records that the master tells. */
#include "redis/place.h"

#include <check.h>
#include <string.h>

#include "suite.h"

enum { MEMORY_MS = 7000 };

static struct place place;

/* The answer took 10 ms. */
static bool told(const char *record, const char *life, bool is_active, int64_t heard_ms)
{
    struct place_told t = {record, strlen(record), is_active, heard_ms - 10, heard_ms};
    struct life l = {{0}};
    strcpy(l.text, life);
    return place_take(&place, "x", &t, &l);
}

static void begin(void)
{
    place = (struct place){.is_ours = false};
    ck_assert(told("x -1 0 5", "1 a", true, 1000));
}

START_TEST(since_the_first_answer)
{
    begin();
    ck_assert(told("x -1 0 5", "1 a", true, 2000));
    ck_assert(place.is_ours);
    ck_assert_int_eq(place.since_ms, 1000);
    ck_assert_int_eq(place.whole_ms, 1000);
    ck_assert_int_eq(place.joined_ms, 990);
    ck_assert_int_eq(place.asked_ms, 1990);
    ck_assert_int_eq(place_complete_ms(&place, MEMORY_MS), 1000 + MEMORY_MS);
}
END_TEST

START_TEST(a_life_that_follows)
{
    begin();
    ck_assert(told("x -1 0 5", "1 a", true, 2000));
    place_broke(&place, 2500);
    ck_assert(told("x -1 0 9", "2 b", false, 1990 + PLACE_GAP_MS + _i));
    ck_assert_int_eq(place.joined_ms, 1980 + PLACE_GAP_MS + _i);
    ck_assert_int_eq(place.since_ms == 1000, _i == 0);
    ck_assert_int_eq(place.whole_ms == 1000, _i == 0);
}
END_TEST

/* ... on the same link, as when all data are deleted. */
START_TEST(a_life_that_follows_on_the_same_link)
{
    begin();
    ck_assert(told("x -1 0 9", "2 b", true, 990 + PLACE_SILENCE_MS + _i));
    ck_assert_int_eq(place.since_ms == 1000, _i == 0);
}
END_TEST

/* The link broke after a silence; when it was still the same life, nothing has happened. */
START_TEST(a_silence)
{
    begin();
    place_broke(&place, 990 + PLACE_SILENCE_MS + _i);
    ck_assert(told("x -1 0 9", "2 b", true, 8000));
    ck_assert_int_eq(place.since_ms, _i ? 8000 : 1000);
    place_broke(&place, 20000);
    ck_assert(told("x -1 0 9", "2 b", true, 21000));
    place_broke(&place, 21500);
    ck_assert(told("x -1 0 12", "3 c", true, 22000));
    ck_assert_int_eq(place.since_ms, _i ? 8000 : 1000);
}
END_TEST

START_TEST(taken_anew)
{
    begin();
    ck_assert(told("x -1 0 9", "1 a", true, 3000));
    ck_assert_int_eq(place.since_ms, 3000);
}
END_TEST

START_TEST(taken_in_quarantine)
{
    place = (struct place){.is_ours = false};
    ck_assert(told("x -1 0 5", "1 a", false, 1000));
    ck_assert_int_eq(place.whole_ms, INT64_MAX);
    ck_assert(told("x -1 0 5", "1 a", true, 8000));
    ck_assert_int_eq(place.since_ms, 1000);
    ck_assert_int_eq(place.whole_ms, 8000);
}
END_TEST

START_TEST(another_one_has_it)
{
    begin();
    ck_assert(told(_i ? "y -1 0 7" : "", "1 a", true, 2000));
    ck_assert(place.is_lost);
    ck_assert_int_eq(place_complete_ms(&place, MEMORY_MS), INT64_MAX);
    ck_assert(told("x -1 0 5", "2 b", true, 3000));
    ck_assert(place.is_lost);
}
END_TEST

/* In this life it was another one's before: what that has told is not known. */
START_TEST(another_one_had_it)
{
    begin();
    ck_assert(told(_i ? "x 300 7 9" : "x -2 0 9", "2 b", false, 2000));
    ck_assert(place.is_ours);
    ck_assert_int_eq(place.since_ms, 2000);
    ck_assert_int_eq(place.whole_ms, INT64_MAX);
}
END_TEST

START_TEST(the_one_before_has_left)
{
    place = (struct place){.is_ours = false};
    ck_assert(told("x 300 77 5", "1 a", true, 1000));
    ck_assert_int_eq(place_complete_ms(&place, MEMORY_MS), 1300);
    ck_assert_int_eq(place.token, 77);
    ck_assert(told("x -1 0 9", "2 b", false, 2000));
    ck_assert_int_eq(place_complete_ms(&place, MEMORY_MS), 1300);
}
END_TEST

START_TEST(what_is_no_record)
{
    static const char *const records[] = {"x",        "x 1 2",    "x 1 2 3 4",
                                          "x -3 0 5", "x 0 -1 5", "x a b c"};
    begin();
    ck_assert(!told(records[_i], "1 a", true, 2000));
    ck_assert_int_eq(place.asked_ms, 990);
}
END_TEST

static Suite *place_suite(void)
{
    Suite *s = suite_create("place");
    TCase *c = tcase_create("place");
    tcase_add_test(c, since_the_first_answer);
    tcase_add_loop_test(c, a_life_that_follows, 0, 2);
    tcase_add_loop_test(c, a_life_that_follows_on_the_same_link, 0, 2);
    tcase_add_loop_test(c, a_silence, 0, 2);
    tcase_add_test(c, taken_anew);
    tcase_add_test(c, taken_in_quarantine);
    tcase_add_loop_test(c, another_one_has_it, 0, 2);
    tcase_add_loop_test(c, another_one_had_it, 0, 2);
    tcase_add_test(c, the_one_before_has_left);
    tcase_add_loop_test(c, what_is_no_record, 0, 6);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(place_suite());
}
