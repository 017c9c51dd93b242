/* reply: what comes out of good bytes, however they are cut, and that bad ones end it without
 * growth. */
#include "net/reply.h"

#include <hiredis/hiredis.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

static struct reply r;

static void begin(void)
{
    r = (struct reply){0};
    reply_start(&r, 1 << 20);
}

static void end(void)
{
    reply_fini(&r);
}

static enum reply_result feed(const char *text)
{
    reply_feed(&r, text, strlen(text));
    return reply_next(&r);
}

static void ck_value(int i, enum reply_type type, int depth, int64_t integer, const char *text)
{
    ck_assert_int_lt(i, r.count);
    const struct reply_value *v = &r.values[i];
    ck_assert_int_eq(v->type, type);
    ck_assert_int_eq(v->depth, depth);
    ck_assert_int_eq(v->integer, integer);
    if (text) {
        ck_assert_str_eq(reply_text(&r, v), text);
        ck_assert_uint_eq(v->len, strlen(text));
    }
}

START_TEST(each_type)
{
    ck_assert_int_eq(feed(":-42\r\n"), REPLY_READY);
    ck_value(0, REPLY_INTEGER, 0, -42, NULL);
    ck_assert_int_eq(feed("+OK\r\n"), REPLY_READY);
    ck_value(0, REPLY_STATUS, 0, 0, "OK");
    ck_assert(reply_is_text(&r, r.values, "OK"));
    ck_assert(!reply_is_text(&r, r.values, "O"));
    ck_assert(!reply_is_error(&r, r.values, "OK"));
    ck_assert_int_eq(feed("$3\r\nabc\r\n"), REPLY_READY);
    ck_value(0, REPLY_TEXT, 0, 0, "abc");
    ck_assert_int_eq(feed("$-1\r\n"), REPLY_READY);
    ck_value(0, REPLY_NIL, 0, 0, NULL);
    ck_assert_int_eq(feed("*-1\r\n"), REPLY_READY);
    ck_value(0, REPLY_NIL, 0, 0, NULL);
    ck_assert_int_eq(feed("*0\r\n"), REPLY_READY);
    ck_value(0, REPLY_ARRAY, 0, 0, NULL);
    ck_assert_int_eq(r.count, 1);
    ck_assert_int_eq(reply_next(&r), REPLY_MORE);
    ck_assert_int_eq(r.count, 0);
}
END_TEST

START_TEST(errors)
{
    ck_assert_int_eq(feed("-LATE too late\r\n"), REPLY_READY);
    ck_value(0, REPLY_ERROR, 0, 0, "LATE too late");
    ck_assert(reply_is_error(&r, r.values, "LATE"));
    ck_assert(!reply_is_error(&r, r.values, "LAT"));
    ck_assert(!reply_is_error(&r, r.values, "LATER"));
    ck_assert(!reply_is_text(&r, r.values, "LATE too late"));
    ck_assert_int_eq(feed("-LATE\r\n"), REPLY_READY);
    ck_assert(reply_is_error(&r, r.values, "LATE"));
}
END_TEST

static const char nested[] = "*3\r\n:7\r\n*2\r\n$2\r\nab\r\n$0\r\n\r\n*1\r\n:-1\r\n+OK\r\n";

static void ck_nested(void)
{
    ck_assert_int_eq(r.count, 7);
    ck_value(0, REPLY_ARRAY, 0, 3, NULL);
    ck_value(1, REPLY_INTEGER, 1, 7, NULL);
    ck_value(2, REPLY_ARRAY, 1, 2, NULL);
    ck_value(3, REPLY_TEXT, 2, 0, "ab");
    ck_value(4, REPLY_TEXT, 2, 0, "");
    ck_value(5, REPLY_ARRAY, 1, 1, NULL);
    ck_value(6, REPLY_INTEGER, 2, -1, NULL);
}

START_TEST(however_it_is_cut)
{
    size_t len = sizeof nested - 1;

    for (size_t cut = 1; cut < len; cut++) {
        reply_feed(&r, nested, cut);
        enum reply_result first = reply_next(&r);
        if (cut < len - 5) {
            ck_assert_int_eq(first, REPLY_MORE);
            ck_assert_uint_eq(r.unfinished, cut);
        } else {
            ck_assert_int_eq(first, REPLY_READY);
            ck_nested();
            ck_assert_int_eq(reply_next(&r), REPLY_MORE);
            ck_assert_uint_eq(r.unfinished, cut - (len - 5));
        }
        reply_feed(&r, nested + cut, len - cut);
        if (cut < len - 5) {
            ck_assert_int_eq(reply_next(&r), REPLY_READY);
            ck_nested();
        }
        ck_assert_int_eq(reply_next(&r), REPLY_READY);
        ck_value(0, REPLY_STATUS, 0, 0, "OK");
        ck_assert_int_eq(reply_next(&r), REPLY_MORE);
        ck_assert_uint_eq(r.unfinished, 0);
    }
}
END_TEST

START_TEST(texts_may_hold_anything)
{
    reply_feed(&r, "$4\r\n\0\r\n\xff\r\n", 10);
    ck_assert_int_eq(reply_next(&r), REPLY_READY);
    ck_assert_uint_eq(r.values[0].len, 4);
    ck_assert_int_eq(memcmp(reply_text(&r, r.values), "\0\r\n\xff", 5), 0);
}
END_TEST

static const struct {
    const char *bytes, *why;
} bad[] = {
    {"*4294967295\r\n", "no Redis protocol"},
    {"*2147483647\r\n", "too many elements"},
    {"*1281\r\n", "too many elements"},
    {"*-2\r\n", "no Redis protocol"},
    {"*1\r\n*1\r\n*1\r\n", "nested too deeply"},
    {"*2\r\n*1000\r\n", NULL}, /* good as far as it goes */
    {"$-2\r\n", "no Redis protocol"},
    {"$99999999999999999999\r\n", "no Redis protocol"},
    {":\r\n", "no Redis protocol"},
    {":1x\r\n", "no Redis protocol"},
    {"%1\r\n", "no Redis protocol"},
    {"_\r\n", "no Redis protocol"},
    {"hello\r\n", "no Redis protocol"},
    {"\r\n", "no Redis protocol"},
};

START_TEST(what_is_no_reply)
{
    enum reply_result result = feed(bad[_i].bytes);

    if (!bad[_i].why) {
        ck_assert_int_eq(result, REPLY_MORE);
        return;
    }
    ck_assert_int_eq(result, REPLY_BROKEN);
    ck_assert_ptr_nonnull(r.error);
#if HIREDIS_MAJOR == 0 /* later ones know more types, and other bounds */
    ck_assert_msg(strstr(r.error, bad[_i].why) != NULL, "%s", r.error);
#endif
    ck_assert_int_eq(feed(":1\r\n"), REPLY_BROKEN); /* for good */
    reply_start(&r, 100);
    ck_assert_int_eq(feed(":1\r\n"), REPLY_READY);
}
END_TEST

START_TEST(elements_are_bounded_in_all)
{
    ck_assert_int_eq(feed("*1000\r\n"), REPLY_MORE);
    ck_assert_int_eq(feed("*1000\r\n"), REPLY_MORE); /* announced in it, and not there yet */
    for (int i = 0; i < REPLY_VALUES_MAX - 2; i++)
        ck_assert_int_eq(feed(":1\r\n"), REPLY_MORE);
    ck_assert_int_eq(feed(":1\r\n"), REPLY_BROKEN);
    ck_assert_str_eq(r.error, "a reply has too many elements");
    ck_assert_int_le(r.cap, REPLY_VALUES_MAX);
}
END_TEST

START_TEST(bytes_are_bounded)
{
    static char lot[REPLY_FEED_MAX];
    size_t before, fed = 0;

    reply_start(&r, 100000);
    before = mallinfo2().uordblks;
    memset(lot, 'x', sizeof lot);
    ck_assert_int_eq(feed("$9000000000000000000\r\n"), REPLY_MORE);
    while (!r.error && fed < 1000000) {
        reply_feed(&r, lot, sizeof lot);
        fed += sizeof lot;
        reply_next(&r);
    }
    ck_assert_ptr_nonnull(r.error);
    ck_assert_uint_le(fed, 100000 + sizeof lot);
    ck_assert_uint_lt(mallinfo2().uordblks - before, 400000);
}
END_TEST

START_TEST(many_replies_stay_small)
{
    static char lot[REPLY_FEED_MAX];
    size_t n = 0;
    long got = 0;

    while (n + sizeof nested - 1 <= sizeof lot) {
        memcpy(lot + n, nested, sizeof nested - 1);
        n += sizeof nested - 1;
    }
    for (int i = 0; i < 200; i++) {
        reply_feed(&r, lot, n);
        while (reply_next(&r) == REPLY_READY)
            got++;
    }
    ck_assert_int_eq(got, (long)(n / (sizeof nested - 1)) * 2 * 200);
    ck_assert_int_le(r.cap, 64);
    ck_assert_uint_le(r.texts.cap, 256);
}
END_TEST

START_TEST(words_are_harmless)
{
    char out[16];

    ck_assert_str_eq(reply_words(out, sizeof out, "abc", 3), "abc");
    ck_assert_str_eq(reply_words(out, sizeof out, "a\r\n\x7f", 4), "a\\x0d\\x0a\\x7f");
    ck_assert_str_eq(reply_words(out, sizeof out, "\xc3\xa4", 2), "\\xc3\\xa4");
    ck_assert_str_eq(reply_words(out, sizeof out, "\0", 1), "\\x00");
    ck_assert_str_eq(reply_words(out, sizeof out, "0123456789abcdefgh", 18), "0123456789abcde");
    ck_assert_str_eq(reply_words(out, sizeof out, "0123456789ab\n\n", 14), "0123456789ab");
    ck_assert_str_eq(reply_words(out, sizeof out, "", 0), "");
    ck_assert_str_eq(reply_words(out, 1, "abc", 3), "");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("reply");
    TCase *c = tcase_create("reply");

    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, each_type);
    tcase_add_test(c, errors);
    tcase_add_test(c, however_it_is_cut);
    tcase_add_test(c, texts_may_hold_anything);
    tcase_add_loop_test(c, what_is_no_reply, 0, (int)(sizeof bad / sizeof bad[0]));
    tcase_add_test(c, elements_are_bounded_in_all);
    tcase_add_test(c, bytes_are_bounded);
    tcase_add_test(c, many_replies_stay_small);
    tcase_add_test(c, words_are_harmless);
    suite_add_tcase(s, c);
    return suite_run(s);
}
