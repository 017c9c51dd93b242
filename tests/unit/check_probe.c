/* Unit tests of probe: which states are tried, what is said of each, and that it ends. */
#include "dropin/probe.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "dropin/cage.h"
#include "dropin/store.h"
#include "suite.h"

static struct cage *cage;
static struct buf told;
static int n_rows;

static void on_row(void *arg, const struct probe_row *row)
{
    (void)arg;
    n_rows++;
    buf_printf(&told, "%s: %s -> %s%s\n", row->state, row->does, row->reply,
               row->is_error ? " (error)" : "");
}

static int probe(const char *body, int n_keys, long steps_max)
{
    static const struct resp_arg keys[] = {{"lock", 4}, {"mark", 4}};
    static const struct resp_arg args[] = {{"me", 2}, {"500", 3}};
    struct probe_script script = {.body = body,
                                  .len = strlen(body),
                                  .keys = keys,
                                  .args = args,
                                  .n_keys = n_keys,
                                  .n_args = 2};
    struct store_reply error = {0};
    buf_consume(&told, buf_len(&told));
    n_rows = 0;
    int refused = probe_run(cage, &script, steps_max, on_row, NULL, &error);
    ck_assert_int_eq(error.n_nodes, refused < 0);
    buf_append(&told, "", 1);
    store_reply_fini(&error);
    return refused;
}

static void assert_told(const char *body, int n_keys, const char *expected)
{
    ck_assert_int_eq(probe(body, n_keys, 0), 0);
    ck_assert_str_eq(buf_head(&told), expected);
}

static void assert_says(const char *line)
{
    ck_assert_msg(strstr(buf_head(&told), line) != NULL, "no \"%s\" in\n%s", line, buf_head(&told));
}

START_TEST(a_release_is_told)
{
    assert_told("if type(redis.pcall('GET', KEYS[1])) ~= 'table' and "
                "redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
                "return 0",
                1,
                "free: looks at KEYS[1] -> 0\n"
                "held by somebody else: looks at KEYS[1] -> 0\n"
                "held by ARGV[1]: frees KEYS[1] -> 1\n"
                "hash, field somebody else = 1: looks at KEYS[1] -> 0\n");
}
END_TEST

START_TEST(counts_are_told)
{
    ck_assert_int_eq(probe("if redis.call('EXISTS', KEYS[1]) == 0 or "
                           "redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':7') == 1 then "
                           "redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':7', 1) "
                           "redis.call('PEXPIRE', KEYS[1], ARGV[2]) return nil end "
                           "return redis.call('PTTL', KEYS[1])",
                           1, 0),
                     0);
    assert_says("free: takes KEYS[1] for 500 ms -> nil\n");
    assert_says("the same once more: keeps KEYS[1], field me:7 1 to 2 for 500 ms -> nil\n");
    assert_says("hash, field me:7 = 2: keeps KEYS[1], field me:7 2 to 3 for 500 ms -> nil\n");
    assert_says("hash, field somebody else = 1: looks at KEYS[1] and its time -> 30000\n");
    assert_says("hash, field somebody else = 1, without a time: looks at KEYS[1] and its time -> "
                "-1\n");
    assert_says("held by somebody else: looks at KEYS[1] -> WRONGTYPE");
}
END_TEST

START_TEST(all_that_a_script_can_do_has_a_name)
{
    static const struct {
        const char *body, *line;
    } cases[] = {
        {"return 1", "free: nothing -> 1\n"},
        {"return {false, {ok='x'}, 'y', {1}}", "free: nothing -> [nil, x, 'y', [1]]\n"},
        {"redis.call('SET', KEYS[1], ARGV[1]) return redis.status_reply('TAKEN')",
         "free: takes KEYS[1] without a time to live -> TAKEN\n"},
        {"return redis.call('SET', KEYS[1], ARGV[1], 'PX', 5)",
         "held by somebody else: replaces the holder of KEYS[1] for 5 ms -> OK\n"},
        {"return redis.call('SET', KEYS[1], ARGV[1], 'PX', 5)",
         "held by ARGV[1]: renews KEYS[1] for 5 ms -> OK\n"},
        {"return redis.call('PEXPIRE', KEYS[1], 30000)",
         "held by somebody else: renews KEYS[1] for 30000 ms -> 1\n"},
        {"redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1) return 0",
         "hash, field somebody else = 1: replaces the holder of KEYS[1], field me 1, without field "
         "somebody else without a time to live -> 0\n"},
        {"redis.call('SET', KEYS[1], 'x') return redis.call('DEL', KEYS[1])",
         "free: leaves nothing at KEYS[1] -> 1\n"},
        {"redis.call('PUBLISH', 'c', 'a') redis.call('PUBLISH', 'c', 'b') return 0",
         "free: publishes 2 messages -> 0\n"},
        {"redis.call('SET', KEYS[1], 'made up') return redis.call('GET', KEYS[1])",
         "held by made up: renews KEYS[1] without a time to live -> 'made up'\n"},
        {"redis.call('SET', KEYS[1], 'x') error('no')",
         "free: takes KEYS[1] without a time to live -> ERR user_script:1: no script"},
        {"return redis.call('PTTL', KEYS[1]) == 1 and redis.call('DEL', KEYS[1])",
         "held by somebody else, ends in 1 ms: frees KEYS[1] -> 1\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(probe(cases[i].body, 1, 0), 0);
        assert_says(cases[i].line);
    }
}
END_TEST

START_TEST(keys_are_tried_alone_and_together)
{
    ck_assert_int_eq(probe("if redis.call('EXISTS', KEYS[1], KEYS[2]) == 2 then "
                           "return redis.call('DEL', KEYS[1], KEYS[2]) end return "
                           "redis.call('EXISTS', KEYS[2])",
                           2, 0),
                     0);
    assert_says("all keys free: looks at KEYS[1]; looks at KEYS[2] -> 0\n");
    assert_says("all keys held by somebody else: frees KEYS[1]; frees KEYS[2] -> 2\n");
    assert_says("KEYS[1] held by somebody else: looks at KEYS[1]; looks at KEYS[2] -> 0\n");
    assert_says("KEYS[2] held by somebody else: looks at KEYS[1]; looks at KEYS[2] -> 1\n");
}
END_TEST

START_TEST(refusals_are_counted)
{
    ck_assert_int_eq(probe("if redis.call('EXISTS', KEYS[1]) == 1 then "
                           "return redis.call('LPUSH', KEYS[1], 1) end return 1",
                           1, 0),
                     2);
    assert_says("free: looks at KEYS[1] -> 1\n");
    assert_says("held by somebody else: refused: the script calls LPUSH, which is not served");
    ck_assert_int_gt(probe("return redis.call('INCR', KEYS[1])", 1, 0), 0);
    assert_says("free: refused: the script counts in 'lock', which has no time to live");
    ck_assert_int_eq(probe("return (", 1, 0), -1);
    ck_assert_int_eq(probe("\033Lua", 1, 0), -1);
    ck_assert_int_eq(n_rows, 0);
}
END_TEST

/* A broker does it in between, so it must not take long whatever the script is. */
START_TEST(it_ends_within_its_steps)
{
    ck_assert_int_gt(probe("while true do end", 2, 0), 5);
    ck_assert_int_eq(probe("while true do end", 2, 1), 1);
    ck_assert_int_eq(n_rows, 2);
    assert_says("others: not tried: the runs took too many steps -> \n");
    ck_assert_int_eq(probe("return 1", 2, CAGE_STEPS), 0);
    ck_assert_ptr_null(strstr(buf_head(&told), "not tried"));
    ck_assert_int_eq(probe("for i = 1, 500 do end return i", 2, CAGE_STEPS), 0);
    ck_assert_int_le(n_rows, 9);
}
END_TEST

/* Walks over all states, and returns how many were served; `told` is the refusal that ended it, or
 * empty. */
static int walk(const char *body, int n_keys)
{
    static const struct resp_arg keys[] = {{"lock", 4}, {"mark", 4}};
    static const struct resp_arg args[] = {{"me", 2}, {"500", 3}};
    const struct probe_script script = {.body = body,
                                        .len = strlen(body),
                                        .keys = keys,
                                        .args = args,
                                        .n_keys = n_keys,
                                        .n_args = 2};
    struct probe_walk *w = probe_walk_new(cage, &script);
    struct probe_row row;
    enum probe_step step;
    int n = 0;
    buf_consume(&told, buf_len(&told));
    while ((step = probe_walk_step(w, &row)) == PROBE_SERVED) {
        ck_assert_int_lt(cage_steps(cage), PROBE_WALK_STEPS);
        n++;
    }
    if (step == PROBE_REFUSED)
        buf_printf(&told, "%s: %s", row.state, row.does);
    buf_append(&told, "", 1);
    probe_walk_free(w);
    return n;
}

START_TEST(a_walk_finds_what_is_refused)
{
    ck_assert_int_eq(walk("return redis.call('EXISTS', KEYS[1])", 1), 1 + 3 * (3 + 6));
    ck_assert_str_eq(buf_head(&told), "");
    ck_assert_int_eq(walk("return redis.call('EXISTS', KEYS[2])", 2), 1 + 3 * 3 * (3 + 6));
    ck_assert_int_eq(walk("return redis.call('LPUSH', KEYS[1], 1)", 1), 0);
    assert_says("free: refused: the script calls LPUSH, which is not served");
    (void)walk("if redis.pcall('HGET', KEYS[1], ARGV[1]) == '2' then "
               "return redis.call('LPUSH', KEYS[1], 1) end return 1",
               1);
    assert_says("hash, field ARGV[1] = 2: refused: the script calls LPUSH");
    (void)walk("if redis.call('EXISTS', KEYS[1]) == 0 and redis.call('PTTL', KEYS[2]) == -1 and "
               "redis.pcall('HGET', KEYS[2], ARGV[1] .. ':7') == '1' then "
               "redis.call('SADD', KEYS[1], 1) end return 1",
               2);
    assert_says("KEYS[2] hash, field me:7 = 1, without a time: refused: the script calls SADD");
}
END_TEST

/* The loop of the broker waits for each state. */
START_TEST(a_walk_has_little_time)
{
    ck_assert_int_eq(walk("while true do end", 1), 0);
    ck_assert_str_eq(buf_head(&told), "");
    ck_assert_int_eq(walk("if redis.call('EXISTS', KEYS[1]) == 1 then while true do end end", 1),
                     1);
    ck_assert_str_eq(buf_head(&told), "");
    ck_assert_int_eq(probe("for i = 1, 700 do end return 1", 1, 0), 0); /* as ever */
}
END_TEST

static void setup(void)
{
    cage = cage_new(4);
}

static void teardown(void)
{
    cage_free(cage);
    buf_fini(&told);
}

int main(void)
{
    Suite *s = suite_create("probe");
    TCase *tc = tcase_create("probe");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_release_is_told);
    tcase_add_test(tc, counts_are_told);
    tcase_add_test(tc, all_that_a_script_can_do_has_a_name);
    tcase_add_test(tc, keys_are_tried_alone_and_together);
    tcase_add_test(tc, refusals_are_counted);
    tcase_add_test(tc, it_ends_within_its_steps);
    tcase_add_test(tc, a_walk_finds_what_is_refused);
    tcase_add_test(tc, a_walk_has_little_time);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
