/* Runs cases.h twice: against src/redis/lua on a redis-server of its own, and against the model of
 * the simulation. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cases.h"
#include "mirror_cases.h"
#include "sides.h"
#include "suite.h"

enum { WORDS = SIDE_WORDS, TEXT = SIDE_TEXT, TILDE = 250 };

static bool is_like(const char *expected, const char *got)
{
    char a[TEXT], b[TEXT], *x[WORDS], *y[WORDS];
    snprintf(a, sizeof a, "%s", expected);
    snprintf(b, sizeof b, "%s", got);
    int n = side_split(a, x), m = side_split(b, y);
    if (n != m)
        return false;
    for (int i = 0; i < n; i++) {
        const char *p = x[i], *q = y[i];
        if (*p == '[' && *q == '[')
            p++, q++;
        if (*p == '~' && atol(q) <= atol(p + 1) && atol(q) >= atol(p + 1) - TILDE)
            continue;
        if (strcmp(p, q) != 0)
            return false;
    }
    return true;
}

static void run_step(const struct side *s, const struct script_case *c, const char *step)
{
    char out[TEXT];
    const char *arrow = strstr(step, " ->");
    side_step(s, step, out);
    ck_assert_msg(is_like(arrow ? arrow + 3 : "", out), "%s, case '%s', step '%s': %s",
                  side_name(s), c->name, step, out);
}

static void run_case(const struct side *s, const struct script_case *c, bool mirror)
{
    int i = 0;
    side_mirror(mirror);
    side_begin(s);
    if (strcmp(c->steps[0], "NOJOIN") == 0)
        i++;
    else
        run_step(s, c, "join - - RUN 0 s -> active 0 s 0");
    for (; c->steps[i]; i++)
        run_step(s, c, c->steps[i]);
    side_end(s);
    side_mirror(false);
}

START_TEST(a_case)
{
    run_case(sides[_i % SIDES], &script_cases[_i / SIDES], false);
}
END_TEST

START_TEST(a_case_of_a_broker_that_mirrors)
{
    run_case(sides[SIDE_REDIS], &script_cases[_i], true);
}
END_TEST

START_TEST(a_case_in_a_partition)
{
    side_partition(true);
    run_case(sides[SIDE_REDIS], &script_cases[_i], false);
    side_partition(false);
}
END_TEST

START_TEST(a_plain_key)
{
    run_case(sides[SIDE_REDIS], &mirror_cases[_i], true);
}
END_TEST

/* What is there can be given back when there is no room for more, or there never would be. */
START_TEST(a_full_server_lets_go)
{
    static const struct script_case c = {.name = "full"};
    const struct side *s = sides[SIDE_REDIS];
    side_mirror(_i == 1);
    side_begin(s);
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 0");
    run_step(s, &c, "acquire n - r1.1 R 9000 50 7 - -> 1 50 0");
    run_step(s, &c, "acquire m - p1.1 P 9000 5 7 mode=1:0 -> 1 51 0");
    side_by_hand("CONFIG SET maxmemory 1");
    run_step(s, &c, "CALL 1000000");
    run_step(s, &c, "release n - r1.1 0 - -> 1 0");
    run_step(s, &c, "CALL 1000001");
    run_step(s, &c, "release m - p1.1 0 part=s:1:0 -> 1 0");
    run_step(s, &c, "REDIS EXISTS n m -> 0");
    side_by_hand("CONFIG SET maxmemory 0");
    side_end(s);
    side_mirror(false);
}
END_TEST

/* A peek lists 16 holds; whoever asks for himself is told of his own. */
START_TEST(one_of_many_is_found)
{
    static const struct script_case c = {.name = "many"};
    const struct side *s = sides[_i];
    char line[SIDE_TEXT];
    side_begin(s);
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 0");
    for (int i = 0; i < 20; i++) {
        snprintf(line, sizeof line, "acquire n - r.%d o%d 9000 %d 7 mode=s -> 1 %d 0", i, i, 50 + i,
                 50 + i);
        run_step(s, &c, line);
    }
    for (int i = 0; i < 20; i++) {
        snprintf(line, sizeof line, "peek n - o%d -> [1 ~9000 r.%d o%d %d 1 %d 0 r:o%d]", i, i, i,
                 50 + i, 50 + i, i);
        run_step(s, &c, line);
    }
    run_step(s, &c, "peek n - o20 -> []");
    side_end(s);
}
END_TEST

/* A counter that an acquire, failing in the middle, has not written, is made good by commit. */
START_TEST(a_commit_raises_the_counter)
{
    static const struct script_case c = {.name = "counter"};
    const struct side *s = sides[SIDE_REDIS];
    side_begin(s);
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 0");
    run_step(s, &c, "acquire n - r1.1 R 9000 50 7 - -> 1 50 0");
    side_by_hand("HSET holdfast:master 7 3");
    run_step(s, &c, "commit n - r1.1 50 7 - -> 1 50");
    run_step(s, &c, "acquire m - r1.2 R 9000 5 7 - -> 1 51 0");
    side_end(s);
}
END_TEST

/* Left by a broker with an absurd clock; nobody was ever told such a token. */
START_TEST(counters_that_cannot_be_counted_on)
{
    static const struct script_case c = {.name = "absurd"};
    const struct side *s = sides[SIDE_REDIS];
    char out[SIDE_TEXT];
    side_begin(s);
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 0");
    run_step(s, &c, "acquire n - x.1 X 1000 50 7 - -> 1 50 0");
    run_step(s, &c, "acquire m - x.2 X 1000 60 8 - -> 1 60 0");
    side_by_hand("HSET holdfast:master 7 10559000000000000");
    side_step(s, "join - - RUN 0 s", out);
    long long at_least = (long long)time(NULL) * 1000 * 1024,
              high = atoll(out + strlen("active 0 s "));
    ck_assert_msg(high > at_least && high < at_least + 3600000LL * 3 * 1024, "%s", out);
    side_step(s, "acquire k - x.3 X 1000 50 7 -", out);
    ck_assert_int_eq(atoll(out + 2), high + 1);
    run_step(s, &c, "acquire l - x.4 X 1000 50 8 - -> 1 61 0");
    side_end(s);
}
END_TEST

/* The place of a share in the set ends a moment before its hash: whoever takes the lock then must
 * end the hash too. Only a real server has such moments; here they are made by hand. */
START_TEST(a_share_that_has_lapsed_is_not_renewed)
{
    static const struct script_case c = {.name = "lapsed"};
    const struct side *s = sides[SIDE_REDIS];
    side_begin(s);
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 0");
    run_step(s, &c, "acquire n - r1.1 R 9000 50 7 mode=s -> 1 50 0");
    run_step(s, &c, "acquire m - p1.1 P 9000 5 7 mode=1:0 -> 1 51 0");
    side_by_hand("ZADD holdfast:{n}:shares 1 r:R");
    side_by_hand("ZADD holdfast:{m}:shares 1 s:1:0");
    run_step(s, &c, "acquire n - w1.1 W 1000 5 7 - -> 1 52 0");
    run_step(s, &c, "acquire m - w2.1 W 1000 5 7 - -> 1 53 0");
    run_step(s, &c, "renew n - r1.1 9000 1 101 r:R -> 0");
    run_step(s, &c, "renew m - p1.1 9000 1 101 s:1:0 -> 0");
    run_step(s, &c, "takeover m - p2.1 0 P 5 7 none n -> 0 ~1000 0 0 0 0 0 0");
    run_step(s, &c, "release m - w2.1 0 - -> 1 0");
    run_step(s, &c, "acquire m - p3.1 P 1000 5 7 mode=2:1 -> 1 54 0");
    side_end(s);
}
END_TEST

START_TEST(half_a_hold_is_none)
{
    static const struct script_case c = {.name = "half a hold"};
    const struct side *s = sides[SIDE_REDIS];
    side_begin(s);
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 0");
    side_by_hand("SET holdfast:{n} owner=X");
    run_step(s, &c, "takeover n - x1.1 0 X 5 7 none ? -> 0 -1 0 0 0 0 0 0");
    run_step(s, &c, "peek n - - -> []");
    run_step(s, &c, "acquire n - x.1 X 1000 50 7 - -> -2 0 0");
    run_step(s, &c, "release n - x.1 0 - -> -1 0");
    side_end(s);
}
END_TEST

/* One master has a single counter, several have many: no token comes again when their number
 * changes. */
START_TEST(no_token_comes_again_with_new_settings)
{
    static const struct script_case c = {.name = "new settings"};
    const struct side *s = sides[SIDE_REDIS];
    side_begin(s);
    run_step(s, &c, "SETTINGS three");
    run_step(s, &c, "join - - RUN 0 three -> active 0 three 0");
    run_step(s, &c, "acquire n - x.1 X 1000 50 7 - -> 1 50 0");
    run_step(s, &c, "join - - RUN 0 one -> active 0 three 50");
    run_step(s, &c, "join - - RUN 0 one 1 -> active 0 one 50");
    run_step(s, &c, "SETTINGS one");
    run_step(s, &c, "acquire m - x.2 X 1000 5 base - -> 1 51 0");
    run_step(s, &c, "join - - RUN 0 three 1 -> active 0 three 51");
    run_step(s, &c, "SETTINGS three");
    run_step(s, &c, "acquire k - x.3 X 1000 5 8 - -> 1 52 0");
    side_by_hand(
        "HSET holdfast:master run_id another 7 70"); /* as it was before it started again */
    run_step(s, &c, "join - - RUN 0 one -> active 0 one 70");
    run_step(s, &c, "SETTINGS one");
    run_step(s, &c, "acquire j - x.4 X 1000 5 base - -> 1 71 0");
    side_end(s);
}
END_TEST

/* Calls are numbered by the time: that of a broker which has not been heard of for an hour is
 * dropped. */
START_TEST(numbers_of_long_ago_are_forgotten)
{
    static const struct script_case c = {.name = "numbers"};
    const struct side *s = sides[SIDE_REDIS];
    side_begin(s);
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 0");
    run_step(s, &c, "CALL 80");
    run_step(s, &c, "acquire n - x.1 X 1000 50 7 - -> 1 50 0");
    run_step(s, &c, "CALL 77");
    run_step(s, &c, "acquire m - x.2 X 1000 60 7 - -> REPEATED");
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 50");
    run_step(s, &c, "acquire m - x.2 X 1000 60 7 - -> 1 60 0");
    run_step(s, &c, "CALL 9007199254740000");
    run_step(s, &c, "acquire k - x.3 X 1000 70 7 - -> 1 70 0");
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 70");
    run_step(s, &c, "CALL 77");
    run_step(s, &c, "acquire j - x.4 X 1000 80 7 - -> REPEATED");
    side_end(s);
}
END_TEST

/* When its clock has gone back, the server may count as ready and yet as one with rare things,
 * which no share need prolong. Made by hand. */
START_TEST(a_share_is_seen_when_the_clock_goes_back)
{
    static const struct script_case c = {.name = "clock back"};
    const struct side *s = sides[SIDE_REDIS];
    side_begin(s);
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 0");
    run_step(s, &c, "acquire z - x.1 X 9000 50 base - -> 1 50 0");
    side_by_hand("HSET holdfast:master rare 9999999999999");
    run_step(s, &c, "acquire n - r1.1 R 9000 51 base mode=s -> 1 51 0");
    run_step(s, &c, "acquire n - w1.1 W 9000 52 base - -> 0 ~9000 0");
    side_end(s);
}
END_TEST

/* And a full server takes nothing, whether it has to be remembered as rare or not; but it can be
 * put into quarantine. */
START_TEST(a_full_server_takes_nothing)
{
    static const struct script_case c = {.name = "full"};
    const struct side *s = sides[SIDE_REDIS];
    side_begin(s);
    run_step(s, &c, "join - - RUN 0 s -> active 0 s 0");
    run_step(s, &c, "acquire z - x.0 X 9000 50 base - -> 1 50 0");
    side_by_hand("CONFIG SET maxmemory 1");
    run_step(s, &c, "acquire n - x.1 X 9000 50 base - -> OOM");
    run_step(s, &c, "acquire n - x.2 X 9000 50 base prev=gone.1,tomb=500 -> OOM");
    run_step(s, &c, "suspend - - RUN 5000 -> quarantine ~5000");
    side_by_hand("CONFIG SET maxmemory 0");
    side_end(s);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("scripts");
    TCase *t = tcase_create("cases");
    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, a_case, 0, SIDES * SCRIPT_CASES);
    tcase_add_loop_test(t, a_case_of_a_broker_that_mirrors, 0, SCRIPT_CASES);
    tcase_add_loop_test(t, a_case_in_a_partition, 0, SCRIPT_CASES);
    tcase_add_loop_test(t, a_plain_key, 0, MIRROR_CASES);
    tcase_add_loop_test(t, one_of_many_is_found, 0, SIDES);
    tcase_add_test(t, a_share_that_has_lapsed_is_not_renewed);
    tcase_add_loop_test(t, a_full_server_lets_go, 0, 2);
    tcase_add_test(t, a_full_server_takes_nothing);
    tcase_add_test(t, a_share_is_seen_when_the_clock_goes_back);
    tcase_add_test(t, a_commit_raises_the_counter);
    tcase_add_test(t, counters_that_cannot_be_counted_on);
    tcase_add_test(t, half_a_hold_is_none);
    tcase_add_test(t, no_token_comes_again_with_new_settings);
    tcase_add_test(t, numbers_of_long_ago_are_forgotten);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return suite_run_with_redis(suite());
}
