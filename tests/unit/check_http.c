/* http: what strangers call their locks comes as text that people may be shown, and the JSON of the
 * status page is whole with nothing and with everything in it. */
#include "http/private.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "lock/lock.h"
#include "stats/gauges.h"
#include "stats/lostlog.h"
#include "stats/stats.h"
#include "suite.h"

static struct buf out;
static json_t *json; /* of the text in out */

static void setup(void)
{
    stats_reset();
}

static void teardown(void)
{
    buf_fini(&out);
    json_decref(json);
    json = NULL;
}

static const char *text(void)
{
    buf_append(&out, "", 1);
    return buf_head(&out);
}

/* ---- escaping ---- */

static void expect_escaped(const char *in, size_t len, const char *expected)
{
    buf_fini(&out);
    http_show(&out, in, len);
    ck_assert_str_eq(text(), expected);
}

#define ESCAPED(in, expected) expect_escaped("" in, sizeof(in) - 1, expected)

START_TEST(escape)
{
    ESCAPED("", "");
    ESCAPED("orders:1/2 x", "orders:1/2 x");
    ESCAPED("<script>\"'&lt;", "<script>\"'&lt;"); /* the page takes no HTML */
    ESCAPED("a\tb\x1b[31m\x7f\x01", "a\\x09b\\x1b[31m\\x7f\\x01");
    ESCAPED("\0", "\\x00");
    /* good UTF-8 of 2, 3 and 4 bytes */
    ESCAPED("\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x94\x92", "\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x94\x92");
}
END_TEST

START_TEST(hosts)
{
    static const char *const good[] = {"localhost",     "LocalHost:9625", "localhost.:1",
                                       "127.0.0.1",     "10.1.2.3:9625",  "[::1]",
                                       "[fe80::1]:9625"};
    static const char *const bad[] = {"evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.example",
                                      "[::1",
                                      "[evil]",
                                      "[]",
                                      "",
                                      ":9625",
                                      "127.1",
                                      "locks.example",
                                      "evil.locks.example"};
    static const char *const odd[] = {"[::1]evil",       "[::1]evil:80",    "[::1]:evil",
                                      "[::1].",          "[::1]]",          "localhost:80evil",
                                      "localhost:65536", "127.0.0.1:80:80", "127.0.0.1:-1",
                                      "127.0.0.1:80, x"};
    char name[256];

    ck_assert(http_host_fits(NULL, NULL));
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        ck_assert_msg(!http_host_fits(odd[i], "localhost"), "'%s'", odd[i]);
        ck_assert_msg(!http_host_fits(odd[i], "*"), "'%s'", odd[i]);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        ck_assert_msg(http_host_fits(good[i], NULL), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!http_host_fits(bad[i], NULL), "'%s'", bad[i]);
        ck_assert_msg(!http_host_fits(bad[i], "other, locks"), "'%s'", bad[i]);
        ck_assert(bad[i][0] == '[' || http_host_fits(bad[i], "other *"));
    }
    ck_assert(http_host_fits("locks.example:80", "other,Locks.Example last"));
    ck_assert(http_host_fits("last", "other,Locks.Example last"));
    ck_assert_int_eq(gethostname(name, sizeof name), 0);
    ck_assert(http_host_fits(name, NULL));
}
END_TEST

START_TEST(escape_bad_utf8)
{
    ESCAPED("\xff\xfe", "\\xff\\xfe");
    ESCAPED("a\x80z", "a\\x80z");
    ESCAPED("\xc3", "\\xc3");               /* cut off */
    expect_escaped("\xc3\xa9", 1, "\\xc3"); /* nothing is read behind the end */
    ESCAPED("\xe6\x97", "\\xe6\\x97");      /* cut off */
    ESCAPED("\xc3<b>", "\\xc3<b>");         /* must not swallow what follows */
    ESCAPED("\xf0\x9f\x94<", "\\xf0\\x9f\\x94<");
    ESCAPED("\xc0\xbc", "\\xc0\\xbc");                   /* "<" in two bytes */
    ESCAPED("\xe0\x80\xbc", "\\xe0\\x80\\xbc");          /* in three */
    ESCAPED("\xf0\x80\x80\xbc", "\\xf0\\x80\\x80\\xbc"); /* in four */
    ESCAPED("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* a surrogate */
    ESCAPED("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above 10ffff */
    ESCAPED("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
}
END_TEST

/* What is not seen, or makes a name look like another. */
START_TEST(escape_invisible)
{
    ESCAPED("a\xe2\x80\xae"
            "b",
            "a\\xe2\\x80\\xaeb");                        /* right to left from here */
    ESCAPED("\xe2\x81\xa6", "\\xe2\\x81\\xa6");          /* isolate */
    ESCAPED("\xe2\x80\x8b", "\\xe2\\x80\\x8b");          /* no width */
    ESCAPED("\xe2\x80\xa8", "\\xe2\\x80\\xa8");          /* line separator */
    ESCAPED("\xc2\x85\xc2\xa0", "\\xc2\\x85\\xc2\\xa0"); /* next line; a blank that is none */
    ESCAPED("\xef\xbb\xbf", "\\xef\\xbb\\xbf");          /* byte order mark */
    ESCAPED("\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"); /* a tag */
}
END_TEST

/* Whatever comes in: UTF-8, and printable. */
START_TEST(escape_anything)
{
    uint32_t rng = 12345;

    for (int round = 0; round < 5000; round++) {
        char in[24];
        size_t len = 0;
        for (; len < sizeof in && rng % 24 != len; len++, rng = rng * 1664525 + 1013904223)
            in[len] = (char)(rng >> 24);
        rng = rng * 1664525 + 1013904223;
        buf_fini(&out);
        http_show(&out, in, len);
        json_t *good = json_string(text()); /* NULL: no UTF-8 */
        ck_assert_msg(good != NULL, "round %d: %s", round, buf_head(&out));
        json_decref(good);
        for (const unsigned char *p = (const unsigned char *)text(); *p; p++)
            ck_assert_msg(*p >= 0x20 && *p != 0x7f, "round %d: %s", round, buf_head(&out));
    }
}
END_TEST

/* ---- the JSON of the page ---- */

static struct stats_gauges gauges;
static struct http_view view;

static void make_status(void)
{
    buf_fini(&out);
    json_decref(json);
    view.gauges = &gauges;
    view.status = view.status ? view.status : "ready";
    view.id = "abc";
    http_status(&out, &view);
    json = json_loadb(buf_head(&out), buf_len(&out), JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(json);
}

/* Returns what "holds.0.lock" names. */
static json_t *at(const char *path)
{
    json_t *value = json;
    char words[64], *rest = words, *word;

    snprintf(words, sizeof words, "%s", path);
    while ((word = strsep(&rest, "."))) {
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(word))
                                     : json_object_get(value, word);
        ck_assert_msg(value != NULL, "there is no %s in %s", path, text());
    }
    return value;
}

static void expect_text(const char *path, const char *expected)
{
    ck_assert_str_eq(json_string_value(at(path)), expected);
}

static void expect_number(const char *path, int64_t expected)
{
    ck_assert(json_is_integer(at(path)));
    ck_assert_int_eq(json_integer_value(at(path)), expected);
}

static void expect_length(const char *path, size_t expected)
{
    ck_assert(json_is_array(at(path)));
    ck_assert_uint_eq(json_array_size(at(path)), expected);
}

START_TEST(status_with_nothing)
{
    gauges = (struct stats_gauges){.lease_min_remaining_ms = -1, .ready = true};
    view = (struct http_view){.now_ms = 1};
    make_status();
    expect_text("state", "Ready");
    expect_text("id", "abc");
    expect_text("notice", "");
    expect_number("lease_min_remaining_ms", -1);
    expect_length("masters", 0);
    expect_length("waits", 0);
    expect_length("holds", 0);
    expect_length("curves.held", 0);
    expect_length("times.wait_us.ever", 0);
    expect_length("times.wait_us.recent", 0);
    expect_length("contended", 0);
    expect_length("in_jeopardy", 0);
    expect_length("peers", 0);
    expect_number("lost.gone", 0);
    gauges.paused = true;
    make_status();
    expect_text("state", "Paused");
    gauges.draining = true;
    make_status();
    expect_text("state", "Draining");
    gauges.draining = gauges.paused = gauges.ready = false;
    view.status = "not ready: 1 of 3 masters (<b>: down)";
    make_status();
    expect_text("state", "Not ready");
    expect_text("status", "not ready: 1 of 3 masters (<b>: down)");
}
END_TEST

static const char evil[] = "</main><script>\"'&\\\xe2\x80\xae\x1b\xff";
static const char tame[] = "</main><script>\"'&\\\\xe2\\x80\\xae\\x1b\\xff";

static struct http_row evil_row(const char *name, size_t len)
{
    return (struct http_row){.name = name,
                             .name_len = len,
                             .client = 7,
                             .peer = evil,
                             .client_name = evil,
                             .since_ms = 5000,
                             .left_ms = 2000,
                             .waiters = 3};
}

static struct view_lock evil_lock(void)
{
    return (struct view_lock){.name = evil,
                              .name_len = strlen(evil),
                              .n_waiters = 9,
                              .waiters = {{.client = NULL, .kind = LOCK_EXCLUSIVE, .n = 2},
                                          {.client = evil, .kind = LOCK_SHARED, .n = 7}},
                              .n_waiter_groups = 2};
}

static void expect_tame(const char *list, size_t i, const char *key)
{
    char path[64];

    snprintf(path, sizeof path, "%s.%zu.%s", list, i, key);
    expect_text(path, tame);
}

static void serve_evil(void)
{
    gauges = (struct stats_gauges){.masters_len = 2, .quorum_available = 1, .ready = true};
    view = (struct http_view){.now_ms = 100000, .status = evil, .notice = evil};
    gauges.masters[0] = (struct stats_master){.name = evil,
                                              .address = evil,
                                              .state = "active",
                                              .error = evil,
                                              .up = true,
                                              .missing = evil,
                                              .signed_by = evil,
                                              .unsigned_why = evil};
    gauges.masters[1] = (struct stats_master){.name = evil,
                                              .address = evil,
                                              .state = "down",
                                              .error = evil,
                                              .missing = evil,
                                              .signed_by = evil,
                                              .unsigned_why = evil};
    gauges.masters[0].version = evil;
    gauges.peers[0] = (struct stats_peer){.address = evil, .state = "silent", .heard_ms = -1};
    gauges.peers_len = 1;
}

static void lock_evil(void)
{
    view.contended[0] = evil_lock();
    view.n_contended = 1;
    view.in_jeopardy[0] = evil_row(evil, strlen(evil));
    view.n_in_jeopardy = 1;
    for (view.n_waits = 0; view.n_waits < HTTP_ROWS; view.n_waits++)
        view.waits[view.n_waits] = evil_row(evil, strlen(evil));
    for (view.n_holds = 0; view.n_holds < HTTP_ROWS; view.n_holds++)
        view.holds[view.n_holds] = evil_row(evil, strlen(evil));
    for (; view.n_samples < HTTP_SAMPLES; view.n_samples++)
        view.samples[view.n_samples] = (struct http_sample){.granted = UINT32_MAX, .held = 1};
    for (int i = 0; i < LOSTLOG_LEN + 5; i++) {
        const struct lostlog_entry e = {
            .at_ms = 98000, .held_ms = 7, .token = INT64_MAX - i, .reason = "gone"};
        lostlog_add(&e, evil, strlen(evil));
    }
    hist_add(&stats.wait_us, 3);
}

static void expect_tame_servers(void)
{
    expect_text("status", tame);
    expect_text("notice", tame);
    for (size_t i = 0; i < 2; i++) {
        expect_tame("masters", i, "name");
        expect_tame("masters", i, "address");
        expect_tame("masters", i, "error");
        expect_tame("masters", i, "missing");
        expect_tame("masters", i, "signed");
        expect_tame("masters", i, "unsigned_why");
    }
    expect_tame("masters", 0, "version");
    expect_tame("peers", 0, "address");
    expect_number("peers.0.heard_ms", -1);
}

static void expect_tame_locks(void)
{
    expect_tame("contended", 0, "lock");
    expect_tame("contended.0.waiters", 1, "client");
    expect_text("contended.0.waiters.0.client", "");
    expect_text("contended.0.waiters.1.kind", "shared");
    expect_number("contended.0.waiters.1.n", 7);
    expect_length("contended.0.holders", 0);
    expect_tame("in_jeopardy", 0, "lock");
    expect_length("waits", HTTP_ROWS);
    expect_length("holds", HTTP_ROWS);
    for (size_t i = 0; i < HTTP_ROWS; i++) {
        expect_tame("waits", i, "lock");
        expect_tame("holds", i, "client_name");
        expect_tame("holds", i, "address");
    }
}

static void expect_exact_numbers(void)
{
    expect_number("holds.9.since_ms", 5000);
    expect_number("holds.9.left_ms", 2000);
    expect_number("holds.9.waiting", 3);
    expect_number("holds.9.client", 7);
    expect_length("losses", LOSTLOG_LEN);
    expect_tame("losses", LOSTLOG_LEN - 1, "lock");
    expect_text("losses.0.token", "9223372036854775783"); /* exact, of which a double is not */
    expect_text("losses.0.reason", "gone");
    expect_number("losses.0.ago_ms", 2000);
    expect_number("losses.0.held_ms", 7);
    expect_length("curves.granted", HTTP_SAMPLES);
    expect_number("curves.granted.59", UINT32_MAX);
    expect_number("curves.held.0", 1);
    expect_length("times.wait_us.ever", 3);
    expect_number("times.wait_us.ever.2", 3);
    expect_number("times.wait_us.recent.2", 3);
}

START_TEST(status_with_everything_evil)
{
    serve_evil();
    lock_evil();
    make_status();
    expect_tame_servers();
    expect_tame_locks();
    expect_exact_numbers();
}
END_TEST

START_TEST(found_with_everything_evil)
{
    struct http_search search = {.cursor = UINT64_MAX, .n_locks = 1, .n_drop_in = 1};

    search.locks[0] = evil_lock();
    search.drop_in[0] = evil_row(evil, strlen(evil));
    search.drop_in[0].library = evil;
    search.drop_in[0].state = "s";
    http_found(&out, &search);
    json = json_loadb(buf_head(&out), buf_len(&out), JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(json);
    expect_text("cursor", "18446744073709551615");
    expect_tame("locks", 0, "lock");
    expect_number("locks.0.waiting", 9);
    expect_tame("drop_in", 0, "lock");
    expect_tame("drop_in", 0, "library");
}
END_TEST

/* Long names are cut between characters, and it shows. */
START_TEST(status_cuts_names)
{
    char name[512], expected[512];

    gauges = (struct stats_gauges){.ready = true};
    view = (struct http_view){.n_waits = 1};
    memset(name, 'x', 95);
    memcpy(name + 95, "\xe6\x97\xa5tail", 7);
    snprintf(expected, sizeof expected, "%.95s\xe2\x80\xa6", name);
    view.waits[0] = evil_row(name, 102);
    make_status();
    expect_text("waits.0.lock", expected);
    view.waits[0].name_len = 95;
    expected[95] = '\0';
    make_status();
    expect_text("waits.0.lock", expected);
    memset(name, 0x80, sizeof name); /* no character anywhere */
    view.waits[0].name_len = sizeof name;
    make_status();
    ck_assert_uint_eq(json_string_length(at("waits.0.lock")), 93 * strlen("\\x80") + 3);
}
END_TEST

/* ---- the locks lost ---- */

START_TEST(lost_ring)
{
    struct lostlog_entry e = {.reason = "gone"};
    char name[600];

    ck_assert_uint_eq(lostlog_count(), 0);
    for (int i = 0; i < 3 * LOSTLOG_LEN + 1; i++) {
        e.token = i;
        int len = snprintf(name, sizeof name, "lock-%d", i);
        lostlog_add(&e, name, (size_t)len);
        ck_assert_int_eq(lostlog_get(0)->token, i);
        ck_assert_int_eq(memcmp(lostlog_get(0)->name, name, (size_t)len), 0);
    }
    ck_assert_uint_eq(lostlog_count(), LOSTLOG_LEN);
    ck_assert_int_eq(lostlog_get(LOSTLOG_LEN - 1)->token, 3 * LOSTLOG_LEN + 1 - LOSTLOG_LEN);
    memset(name, 'y', sizeof name);
    lostlog_add(&e, name, 512);
    ck_assert_uint_eq(lostlog_get(0)->name_len, 512);
    ck_assert_int_eq(lostlog_get(0)->name[LOSTLOG_NAME - 1], 'y');
}
END_TEST

int main(void)
{
    Suite *s = suite_create("http");
    TCase *t = tcase_create("http");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, escape);
    tcase_add_test(t, escape_bad_utf8);
    tcase_add_test(t, hosts);
    tcase_add_test(t, escape_invisible);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, escape_anything);
    tcase_add_test(t, status_with_nothing);
    tcase_add_test(t, status_with_everything_evil);
    tcase_add_test(t, found_with_everything_evil);
    tcase_add_test(t, status_cuts_names);
    tcase_add_test(t, lost_ring);
    suite_add_tcase(s, t);
    return suite_run(s);
}
