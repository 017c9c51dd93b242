/* http: what strangers call their locks stays text in the status page, numbers are for people, and
 * the page is whole with nothing and with everything in it. */
#include "http/private.h"
#include "http/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "session/lostlog.h"
#include "stats/gauges.h"
#include "stats/stats.h"
#include "suite.h"

static struct buf out;

static void setup(void)
{
    stats_reset();
}

static void teardown(void)
{
    buf_fini(&out);
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
    http_escape(&out, in, len);
    ck_assert_str_eq(text(), expected);
}

#define ESCAPED(in, expected) expect_escaped("" in, sizeof(in) - 1, expected)

START_TEST(escape)
{
    ESCAPED("", "");
    ESCAPED("orders:1/2 x", "orders:1/2 x");
    ESCAPED("<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;");
    ESCAPED("\" onload=\"x", "&quot; onload=&quot;x");
    ESCAPED("&lt;", "&amp;lt;");
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
    ESCAPED("\xc3<b>", "\\xc3&lt;b&gt;");   /* must not swallow what follows */
    ESCAPED("\xf0\x9f\x94<", "\\xf0\\x9f\\x94&lt;");
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

/* Whatever comes in: printable, and nothing that HTML would take for its own. */
START_TEST(escape_anything)
{
    uint32_t rng = 12345;

    for (int round = 0; round < 20000; round++) {
        char in[24];
        size_t len = 0;
        for (; len < sizeof in && rng % 24 != len; len++, rng = rng * 1664525 + 1013904223)
            in[len] = (char)(rng >> 24);
        rng = rng * 1664525 + 1013904223;
        buf_fini(&out);
        http_escape(&out, in, len);
        for (const unsigned char *p = (const unsigned char *)text(); *p; p++) {
            if (*p < 0x20 || *p == 0x7f || strchr("<>\"'", *p) ||
                (*p == '&' && !strchr((const char *)p, ';')))
                ck_abort_msg("round %d: %s", round, buf_head(&out));
        }
    }
}
END_TEST

/* ---- numbers ---- */

static const char *ms(int64_t n)
{
    buf_fini(&out);
    http_put_ms(&out, n);
    return text();
}

static const char *us(int64_t n)
{
    buf_fini(&out);
    http_put_us(&out, n);
    return text();
}

static const char *count(uint64_t n)
{
    buf_fini(&out);
    http_put_count(&out, n);
    return text();
}

START_TEST(numbers)
{
    ck_assert_str_eq(us(0), "0&nbsp;\xc2\xb5s");
    ck_assert_str_eq(us(999), "999&nbsp;\xc2\xb5s");
    ck_assert_str_eq(us(1250), "1.2&nbsp;ms");
    ck_assert_str_eq(us(12000), "12&nbsp;ms");
    ck_assert_str_eq(us(3400000), "3.4&nbsp;s");
    ck_assert_str_eq(ms(999), "999&nbsp;ms");
    ck_assert_str_eq(ms(9500), "9.5&nbsp;s");
    ck_assert_str_eq(ms(59999), "59&nbsp;s");
    ck_assert_str_eq(ms(60000), "1&nbsp;min");
    ck_assert_str_eq(ms(192000), "3&nbsp;min 12&nbsp;s");
    ck_assert_str_eq(ms(7500000), "2&nbsp;h 5&nbsp;min");
    ck_assert_str_eq(ms(86400000), "1&nbsp;d");
    ck_assert_str_eq(ms(90061000), "1&nbsp;d 1&nbsp;h");
    ck_assert_str_eq(count(0), "0");
    ck_assert_str_eq(count(999), "999");
    ck_assert_str_eq(count(1000), "1&#8239;000");
    ck_assert_str_eq(count(1002003), "1&#8239;002&#8239;003");
    ck_assert_str_eq(count(UINT64_MAX),
                     "18&#8239;446&#8239;744&#8239;073&#8239;709&#8239;551&#8239;615");
}
END_TEST

/* ---- gaps ---- */

static void add_word(struct template_values *values, const void *arg, size_t i)
{
    const char *const *words = arg;

    buf_printf(template_value(values, "word"), "%s", words[i]);
}

static void expect_filled(const char *in, const char *expected)
{
    static const char *const words[] = {"a", "", "c"};
    const struct template_list lists[] = {{"words", 3, add_word}, {"none", 0, add_word}, {0}};
    struct template_values values = {0};

    buf_fini(&out);
    buf_printf(template_value(&values, "word"), "outer");
    template_value(&values, "empty");
    buf_printf(template_value(&values, "two words"), "{{word}}<b>");
    template_fill(&out, in, &values, lists, words);
    ck_assert_str_eq(text(), expected);
    buf_fini(&values.text);
}

START_TEST(gaps)
{
    expect_filled("", "");
    expect_filled("{ {x} }{{word}}{{nothing}}{{empty}}.", "{ {x} }outer.");
    expect_filled("{{two words}}", "{{word}}<b>"); /* a value is no template */
    expect_filled(
        "{{if word}}1{{end if word}}{{if empty}}2{{end if empty}}{{if nothing}}3{{end if nothing}}",
        "1");
    expect_filled("{{if not word}}1{{end if not word}}{{if not empty}}2{{end if not empty}}", "2");
    expect_filled("{{if words}}1{{end if words}}{{if none}}2{{end if none}}{{if not none}}3{{end "
                  "if not none}}",
                  "13");
    expect_filled(
        "{{each none}}x{{end each none}}{{each words}}-{{word}}{{end each words}}{{word}}",
        "-a--couter");
    expect_filled(
        "{{each words}}{{if word}}{{word}}{{two words}};{{end if word}}{{end each words}}",
        "a{{word}}<b>;c{{word}}<b>;");
}
END_TEST

/* ---- the page ---- */

static const char evil[] = "</main><script>alert(1)</script>\"'&";
static const char tame[] = "&lt;/main&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;";

static int count_of(const char *page, const char *word)
{
    int n = 0;

    for (; (page = strstr(page, word)); page += strlen(word))
        n++;
    return n;
}

/* Each tag is closed in its turn, each attribute quoted; text between has no stray "<". */
static void expect_well_formed(const char *page)
{
    char stack[64][16];
    int depth = 0;

    ck_assert_ptr_null(strstr(page, "{{")); /* a gap that was not filled */
    for (const char *at = strchr(page, '<'); at; at = strchr(at, '<')) {
        char name[16] = "";
        int len = 0;
        if (strncmp(at, "<!DOCTYPE html>", 15) == 0) {
            at++;
            continue;
        }
        bool closes = at[1] == '/';
        sscanf(at + 1 + closes, "%15[a-z0-9]%n", name, &len);
        ck_assert_msg(len > 0, "a stray <: %.60s", at);
        const char *end = at + 1 + closes + len;
        while (*end && *end != '>') {
            if (*end == '"')
                ck_assert_ptr_nonnull(end = strchr(end + 1, '"'));
            ck_assert_msg(*end != '<', "a < inside of a tag: %.60s", at);
            end++;
        }
        if (closes) {
            ck_assert_msg(depth > 0 && strcmp(stack[depth - 1], name) == 0, "%.60s closes %s", at,
                          depth > 0 ? stack[depth - 1] : "nothing");
            depth--;
        } else if (strcmp(name, "meta") != 0 && strcmp(name, "link") != 0 && end[-1] != '/') {
            ck_assert_int_lt(depth, 64);
            strcpy(stack[depth++], name);
        }
        at = end;
        if (!closes && (strcmp(name, "script") == 0 || strcmp(name, "style") == 0)) {
            at = strstr(at, strcmp(name, "script") == 0 ? "</script" : "</style");
            ck_assert_ptr_nonnull(at);
        }
    }
    ck_assert_int_eq(depth, 0);
}

static struct stats_gauges gauges;
static struct http_view view;

static const char *page(void)
{
    buf_fini(&out);
    view.gauges = &gauges;
    view.status = view.status ? view.status : "ready";
    view.id = "abc";
    http_page(&out, &view, "NoNcE");
    return text();
}

START_TEST(page_with_nothing)
{
    gauges = (struct stats_gauges){.lease_min_remaining_ms = -1, .ready = true};
    view = (struct http_view){.now_ms = 1};
    expect_well_formed(page());
    ck_assert_int_eq(count_of(page(), "nonce=\"NoNcE\""), 2);
    ck_assert_ptr_nonnull(strstr(page(), "Nobody waits"));
    ck_assert_ptr_nonnull(strstr(page(), "No connection holds"));
    ck_assert_ptr_nonnull(strstr(page(), "<title>Ready "));
    ck_assert_ptr_nonnull(strstr(page(), "name=\"viewport\""));
    ck_assert_int_eq(count_of(page(), " style="), 0); /* the policy would refuse it */
    ck_assert_int_eq(count_of(page(), "src="), 0);
    gauges.draining = true;
    ck_assert_ptr_nonnull(strstr(page(), "<title>Draining "));
    gauges.draining = gauges.ready = false;
    view.status = "not ready: 1 of 3 masters (<b>: down)";
    ck_assert_ptr_nonnull(strstr(page(), "<title>Not ready "));
    ck_assert_ptr_nonnull(strstr(page(), "(&lt;b&gt;: down)"));
}
END_TEST

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

START_TEST(page_with_everything_evil)
{
    gauges = (struct stats_gauges){.masters_len = 2, .quorum_available = 1, .ready = true};
    view = (struct http_view){.now_ms = 100000, .status = evil};
    gauges.masters[0] = (struct stats_master){
        .name = evil, .address = evil, .state = "active", .error = evil, .up = true};
    gauges.masters[1] =
        (struct stats_master){.name = evil, .address = evil, .state = "down", .error = evil};
    for (view.n_waits = 0; view.n_waits < HTTP_ROWS; view.n_waits++)
        view.waits[view.n_waits] = evil_row(evil, strlen(evil));
    for (view.n_holds = 0; view.n_holds < HTTP_ROWS; view.n_holds++)
        view.holds[view.n_holds] = evil_row(evil, strlen(evil));
    for (; view.n_samples < HTTP_SAMPLES; view.n_samples++)
        view.samples[view.n_samples] = (struct http_sample){.granted = UINT32_MAX, .held = 1};
    for (int i = 0; i < LOSTLOG_LEN + 5; i++) {
        const struct lostlog_entry e = {.at_ms = 200000, .token = i, .reason = "gone"};
        lostlog_add(&e, evil, strlen(evil));
    }
    expect_well_formed(page());
    ck_assert_int_eq(count_of(page(), evil), 0);
    ck_assert_int_eq(count_of(page(), "<script"), 1);
    /* 2 masters (the one that votes shows no error) and the status; rows have three each */
    ck_assert_int_eq(count_of(page(), tame), 1 + 2 + 3 + 3 * 2 * HTTP_ROWS + LOSTLOG_LEN);
}
END_TEST

/* Long names are cut between characters, and it shows. */
START_TEST(page_cuts_names)
{
    char name[512];

    gauges = (struct stats_gauges){.ready = true};
    view = (struct http_view){.n_waits = 1};
    memset(name, 'x', 95);
    memcpy(name + 95, "\xe6\x97\xa5tail", 7);
    view.waits[0] = evil_row(name, 102);
    ck_assert_ptr_nonnull(strstr(page(), "xx\xe2\x80\xa6</bdi>"));
    ck_assert_ptr_null(strstr(page(), "\\xe6"));
    ck_assert_ptr_null(strstr(page(), "tail"));
    view.waits[0].name_len = 95;
    ck_assert_ptr_nonnull(strstr(page(), "xx</bdi>"));
    memset(name, 0x80, sizeof name); /* no character anywhere */
    view.waits[0].name_len = sizeof name;
    expect_well_formed(page());
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
    tcase_add_test(t, escape_anything);
    tcase_add_test(t, numbers);
    tcase_add_test(t, gaps);
    tcase_add_test(t, page_with_nothing);
    tcase_add_test(t, page_with_everything_evil);
    tcase_add_test(t, page_cuts_names);
    tcase_add_test(t, lost_ring);
    suite_add_tcase(s, t);
    return suite_run(s);
}
