/* Unit tests of state: what is written is what is supposed, whatever bytes it has; and texts of
 * strangers are read within bounds. */
#include "dropin/state.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

enum { NOW_MS = 5000, AHEAD_MS = 1000000 };

static struct keys keys;
static const struct resp_arg names[] = {{"lock", 4}, {"mark", 4}};
static struct buf text;
static struct state_found found;
static char answer[256];

static void begin(void)
{
    keys_begin(&keys, names, 2, (int64_t)(NOW_MS + AHEAD_MS) * 1000);
    buf_consume(&text, buf_len(&text));
}

static void finish(void)
{
    keys_fini(&keys);
    buf_fini(&text);
}

/* Says a command to the make-believe; its reply is `answer`, in RESP. */
static void say(const char *command)
{
    struct resp_arg words[300];
    char copy[4096];
    struct store_reply reply = {0};
    struct buf out = {0};
    struct resp_writer w = {&out, 2};
    int n = 0;
    snprintf(copy, sizeof copy, "%s", command);
    for (char *p = strtok(copy, " "); p; p = strtok(NULL, " "))
        words[n++] = (struct resp_arg){p, strlen(p)};
    keys_suppose(&keys, words, n, &reply);
    store_reply_write(&reply, &w);
    buf_append(&out, "", 1);
    snprintf(answer, sizeof answer, "%s", buf_head(&out));
    buf_fini(&out);
    store_reply_fini(&reply);
}

static void assert_says(const char *command, const char *expected)
{
    say(command);
    ck_assert_str_eq(answer, expected);
}

static void assert_written(const char *expected)
{
    ck_assert_int_eq(state_write(&keys, 0, &text, &found), 0);
    ck_assert_uint_eq(buf_len(&text), strlen(expected));
    ck_assert(memcmp(buf_head(&text), expected, strlen(expected)) == 0);
    buf_consume(&text, buf_len(&text));
}

static int suppose(enum truth_kind kind, const char *state, size_t len, int64_t expires_ms)
{
    struct truth t = {.kind = (uint8_t)kind, .expires_ms = expires_ms};
    truth_set_text(&t, state, len);
    int result = state_suppose(&keys, 0, &t, AHEAD_MS);
    truth_fini(&t);
    return result;
}

START_TEST(what_stands_there_is_written)
{
    begin();
    ck_assert_int_eq(state_write(&keys, 0, &text, &found), 0);
    ck_assert(!found.is_there && buf_len(&text) == 0);
    say("SET lock me PX 700");
    assert_written("drop-in s t me");
    ck_assert(found.is_there && found.has_time);
    ck_assert_int_eq(found.expires_ms, NOW_MS + AHEAD_MS + 700);
    say("PERSIST lock");
    assert_written("drop-in s - me");
    ck_assert(!found.has_time);
    say("DEL lock");
    say("HSET lock b 22 a 1");
    assert_written("drop-in h - 1:b2:221:a1:1");
    say("PEXPIRE lock 5");
    assert_written("drop-in h t 1:b2:221:a1:1");
    finish();
}
END_TEST

START_TEST(what_was_written_is_supposed)
{
    static const char string[] = "drop-in s t a\0b\r\n", hash[] = "drop-in h - 1:b2:221:a0:";
    begin();
    ck_assert_int_eq(suppose(TRUTH_DROPIN, string, sizeof string - 1, NOW_MS + 40), 0);
    assert_says("STRLEN lock", ":5\r\n");
    assert_says("PTTL lock", ":40\r\n");
    ck_assert_int_eq(state_write(&keys, 0, &text, &found), 0);
    ck_assert_uint_eq(buf_len(&text), sizeof string - 1);
    ck_assert(memcmp(buf_head(&text), string, sizeof string - 1) == 0);
    begin();
    ck_assert_int_eq(suppose(TRUTH_DROPIN, hash, sizeof hash - 1, NOW_MS + 40), 0);
    assert_says("HGETALL lock", "*4\r\n$1\r\nb\r\n$2\r\n22\r\n$1\r\na\r\n$0\r\n\r\n");
    assert_says("PTTL lock", ":-1\r\n"); /* kept for a time that Redis does not know of */
    begin();
    ck_assert_int_eq(suppose(TRUTH_DROPIN, "drop-in s - ", 12, NOW_MS + 40), 0);
    assert_says("GET lock", "$0\r\n\r\n");
    begin();
    ck_assert_int_eq(suppose(TRUTH_FREE, "", 0, 0), 0);
    assert_says("EXISTS lock", ":0\r\n");
    finish();
}
END_TEST

START_TEST(a_native_hold_is_a_string)
{
    begin();
    ck_assert_int_eq(suppose(TRUTH_NATIVE, "worker 7", 8, NOW_MS + 40), 0);
    assert_says("GET lock", "$8\r\nworker 7\r\n");
    assert_says("PTTL lock", ":40\r\n");
    begin();
    ck_assert_int_eq(suppose(TRUTH_NATIVE, "", 0, NOW_MS + 40), 0); /* readers */
    assert_says("GET lock", "$0\r\n\r\n");
    finish();
}
END_TEST

START_TEST(texts_that_are_no_states)
{
    static const char *const wrong[] = {
        "",
        "drop-in",
        "drop-in s t",
        "drop-in x t me",
        "drop-in s x me",
        "drop-in stt me",
        "drop-in h t ",
        "drop-in h t 1:a",
        "drop-in h t 1:a1:b1:c",
        "drop-in h t 1:a2:b",
        "drop-in h t 1:a9999:b",
        "drop-in h t 1:a99999999999999999999:b",
        "drop-in h t -1:a1:b",
        "drop-in h t 01:a1:b",
        "drop-in h t :a1:b",
        "drop-in h t 1:a1:b ",
        "owner",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        begin();
        ck_assert_msg(suppose(TRUTH_DROPIN, wrong[i], strlen(wrong[i]), NOW_MS + 40) == -1, "'%s'",
                      wrong[i]);
        assert_says("EXISTS lock", ":0\r\n");
        ck_assert(!state_is_kept(wrong[i], strlen(wrong[i]), "drop-in h t 1:a1:b", 18));
    }
    finish();
}
END_TEST

/* Bytes of strangers: whatever they are, they are read within their bounds. */
START_TEST(any_bytes)
{
    static const char alphabet[] = "drop-in sht-:0123456789ab\0\n";
    unsigned seed = 1;
    for (int i = 0; i < 20000; i++) {
        char bytes[64];
        size_t len = (size_t)(rand_r(&seed) % 40);
        memcpy(bytes, "drop-in h t ", 12);
        for (size_t j = 12; j < 12 + len; j++)
            bytes[j] = alphabet[(size_t)rand_r(&seed) % sizeof alphabet];
        char *exact = malloc(12 + len);
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, bytes, 12 + len);
        begin();
        (void)suppose(TRUTH_DROPIN, exact, 12 + len, NOW_MS + 40);
        (void)state_is_kept(exact, 12 + len, exact, 12 + len);
        free(exact);
    }
    finish();
}
END_TEST

START_TEST(the_bounds)
{
    char big[DROPIN_STATE_MAX];
    begin();
    memset(big, 'x', sizeof big);
    const struct resp_arg most[] = {{"SET", 3}, names[0], {big, DROPIN_STATE_MAX - 12}};
    keys_suppose(&keys, most, 3, NULL);
    ck_assert_int_eq(state_write(&keys, 0, &text, &found), 0);
    ck_assert_uint_eq(buf_len(&text), DROPIN_STATE_MAX);
    ck_assert_int_eq(suppose(TRUTH_DROPIN, buf_head(&text), buf_len(&text), NOW_MS + 1), 0);
    const struct resp_arg more[] = {{"SET", 3}, names[0], {big, DROPIN_STATE_MAX - 11}};
    keys_suppose(&keys, more, 3, NULL);
    ck_assert_int_eq(state_write(&keys, 0, &text, &found), -1);
    ck_assert_uint_eq(buf_len(&text), DROPIN_STATE_MAX); /* what was there before */

    begin();
    for (int i = 0; i <= STATE_FIELDS_MAX; i++) {
        char command[64];
        snprintf(command, sizeof command, "HSET lock field%d %d", i, i);
        say(command);
        ck_assert_int_eq(state_write(&keys, 0, &text, &found), i < STATE_FIELDS_MAX ? 0 : -1);
        if (i == STATE_FIELDS_MAX - 1) {
            struct buf copy = {0};
            buf_append(&copy, buf_head(&text), buf_len(&text));
            begin();
            ck_assert_int_eq(suppose(TRUTH_DROPIN, buf_head(&copy), buf_len(&copy), NOW_MS + 1), 0);
            assert_says("HLEN lock", ":128\r\n");
            buf_fini(&copy);
        }
        buf_consume(&text, buf_len(&text));
    }
    finish();
}
END_TEST

static bool is_kept(const char *old, const char *new)
{
    return state_is_kept(old, strlen(old), new, strlen(new));
}

START_TEST(which_change_keeps_the_hold)
{
    ck_assert(is_kept("drop-in s t me", "drop-in s - me"));
    ck_assert(is_kept("drop-in s t ", "drop-in s t "));
    ck_assert(!is_kept("drop-in s t me", "drop-in s t you"));
    ck_assert(!is_kept("drop-in s t me", "drop-in s t mee"));
    ck_assert(is_kept("drop-in h t 1:a1:1", "drop-in h t 1:a1:2"));
    ck_assert(is_kept("drop-in h t 1:a1:11:b1:1", "drop-in h t 1:b1:9"));
    ck_assert(!is_kept("drop-in h t 1:a1:1", "drop-in h t 1:b1:1"));
    ck_assert(!is_kept("drop-in h t 1:a1:b", "drop-in h t 1:b1:a")); /* a value is no field */
    ck_assert(!is_kept("drop-in s t 1:a1:1", "drop-in h t 1:a1:1"));
}
END_TEST

static void assert_shown(const char *state, size_t len, const char *want)
{
    struct buf shown = {0};
    state_show(state, len, &shown);
    buf_append(&shown, "", 1);
    ck_assert_str_eq(buf_head(&shown), want);
    buf_fini(&shown);
}

START_TEST(people_are_shown_little_and_printable)
{
    static const char nul[] = "drop-in s t a\0b\r\n",
                      hash[] = "drop-in h t 1:a1:27:c\033[31m\0012:zz";
    char cut[200], long_text[200];
    assert_shown("drop-in s - me", 14, "me");
    assert_shown("drop-in s t ", 12, "");
    assert_shown(nul, sizeof nul - 1, "a\\x00b\\x0d\\x0a");
    assert_shown(hash, sizeof hash - 1, "a: 2, c\\x1b[31m\\x01: zz");
    assert_shown("drop-in h t 1:a1:27:cc", 22, "a: 2\342\200\246"); /* cut short */
    assert_shown("no state", 8, "no state");
    memset(long_text, 'x', sizeof long_text);
    memcpy(long_text, "drop-in s t ", 12);
    snprintf(cut, sizeof cut, "%.80s\342\200\246", long_text + 12);
    assert_shown(long_text, sizeof long_text, cut);
    ck_assert(state_is_hash(hash, sizeof hash - 1) && !state_is_hash(nul, sizeof nul - 1));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("state");
    TCase *t = tcase_create("state");
    tcase_add_test(t, what_stands_there_is_written);
    tcase_add_test(t, what_was_written_is_supposed);
    tcase_add_test(t, a_native_hold_is_a_string);
    tcase_add_test(t, texts_that_are_no_states);
    tcase_add_test(t, any_bytes);
    tcase_add_test(t, the_bounds);
    tcase_add_test(t, which_change_keeps_the_hold);
    tcase_add_test(t, people_are_shown_little_and_printable);
    suite_add_tcase(s, t);
    return suite_run(s);
}
