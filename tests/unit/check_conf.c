/* The configuration: types and bounds, files and their errors, masters, get, diff, and that the
 * manual and the sample name every option with its default. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/credential.h"
#include "base/log.h"
#include "conf/conf.h"
#include "conf/private.h"
#include "get_options.h"
#include "suite.h"

/* ---- what the reports leave behind ---- */

static char reported[8192];
static int errors, warnings;

static void reset_reports(void)
{
    reported[0] = '\0';
    errors = warnings = 0;
}

static void on_report(void *arg, bool is_warning, const char *text)
{
    size_t n = strlen(reported);

    (void)arg;
    ck_assert(strchr(text, '\n') == NULL);
    is_warning ? warnings++ : errors++;
    snprintf(reported + n, sizeof(reported) - n, "%s%s\n", is_warning ? "warning: " : "", text);
}

static int load(struct conf *conf, const char *text)
{
    reset_reports();
    conf_init(conf);
    return conf_load_bytes(conf, text, strlen(text), "x.ini", on_report, NULL);
}

/* The text is refused with exactly these lines. */
static void expect_errors(const char *text, const char *expected)
{
    struct conf conf;

    ck_assert_int_eq(load(&conf, text), -1);
    ck_assert_str_eq(reported, expected);
    conf_fini(&conf);
}

static void expect_refused(const char *name, const char *value, const char *expected)
{
    struct conf conf;
    struct conf_error err = {""};

    conf_init(&conf);
    ck_assert_int_eq(conf_set(&conf, name, value, &err), -1);
    ck_assert_str_eq(err.text, expected);
    conf_fini(&conf);
}

static void set_ok(struct conf *conf, const char *name, const char *value)
{
    struct conf_error err = {""};

    ck_assert_msg(conf_set(conf, name, value, &err) == 0, "%s = %s: %s", name, value, err.text);
}

struct got {
    char name[64], value[CONF_VALUE_MAX];
    int calls;
};

static void on_get(void *arg, const char *name, const char *value)
{
    struct got *got = arg;

    snprintf(got->name, sizeof(got->name), "%s", name);
    snprintf(got->value, sizeof(got->value), "%s", value);
    got->calls++;
}

static void expect_value(const struct conf *conf, const char *name, const char *expected)
{
    struct got got = {.calls = 0};

    ck_assert_uint_eq(get_options(conf, name, on_get, &got), 1);
    ck_assert_int_eq(got.calls, 1);
    ck_assert_str_eq(got.value, expected);
}

/* ---- table and types ---- */

START_TEST(table_is_sound)
{
    size_t count;
    const struct conf_option *opt = conf_options(&count);
    struct conf conf;

    conf_init(&conf);
    for (size_t i = 0; i < count; i++) {
        char value[CONF_VALUE_MAX], again[CONF_VALUE_MAX], name[128];

        snprintf(name, sizeof(name), "%s.%s", opt[i].section, opt[i].key);
        ck_assert(conf_option_find(opt[i].section, opt[i].key) == &opt[i]);
        ck_assert_msg(strlen(opt[i].key) < 48, "%s", name);
        conf_value_format(&conf, &opt[i], value);
        set_ok(&conf, name, value);
        conf_value_format(&conf, &opt[i], again);
        ck_assert_str_eq(value, again);
        ck_assert_msg(opt[i].min <= opt[i].max, "%s", name);
    }
    conf_fini(&conf);
}
END_TEST

START_TEST(defaults)
{
    struct conf conf;

    conf_init(&conf);
    ck_assert_int_eq(conf.lock.lease_ms, 30000);
    ck_assert_int_eq(conf.lock.max_lease_ms, 60000);
    ck_assert_int_eq(conf.lock.drift_ppm, 5000);
    ck_assert_int_eq(conf.quarantine_ms, CONF_QUARANTINE_AUTO);
    ck_assert_int_eq(conf.unix_socket_mode, 0660);
    ck_assert_int_eq(conf.log_level, LOG_LEVEL_INFO);
    ck_assert_int_eq(conf.client.max_request, 65536);
    ck_assert_uint_eq(conf.listen.count, 2);
    ck_assert_str_eq(conf.listen.v[1].host, "::1");
    ck_assert_int_eq(conf.listen.v[1].port, 5625);
    ck_assert_uint_eq(conf.master_count, 0);
    reset_reports();
    ck_assert_int_eq(conf_check(&conf, true, on_report, NULL), 0);
    ck_assert_str_eq(reported, "");
    conf_fini(&conf);
}
END_TEST

START_TEST(durations)
{
    struct conf conf;

    conf_init(&conf);
    set_ok(&conf, "holdfast.lease", "1500ms");
    ck_assert_int_eq(conf.lock.lease_ms, 1500);
    set_ok(&conf, "lease", "1h");
    ck_assert_int_eq(conf.lock.lease_ms, 3600000);
    set_ok(&conf, "idle_timeout", "0");
    ck_assert_int_eq(conf.client.idle_timeout_ms, 0);
    set_ok(&conf, "quarantine", "90s");
    expect_value(&conf, "quarantine", "1m30s");
    set_ok(&conf, "quarantine", "off");
    expect_value(&conf, "quarantine", "off");
    conf_fini(&conf);
    expect_refused("lease", "30x", "lease: '30x' is not a duration (try 30s, 500ms, 5m)");
    expect_refused("lease", "30", "lease: '30' is not a duration (try 30s, 500ms, 5m)");
    expect_refused("lease", "", "lease: '' is not a duration (try 30s, 500ms, 5m)");
    expect_refused("lease", "99ms", "lease: '99ms' is out of bounds (100ms to 1h)");
    expect_refused("lease", "3600001ms", "lease: '3600001ms' is out of bounds (100ms to 1h)");
    expect_refused("lease", "2h", "lease: '2h' is out of bounds (100ms to 1h)");
    expect_refused("quarantine", "on",
                   "quarantine: 'on' is not one of auto, off or a duration (try 30s, 500ms, 5m)");
}
END_TEST

START_TEST(ratios)
{
    static const struct {
        const char *text;
        int64_t ppm;
    } good[] = {{"0.5%", 5000}, {"0.005", 5000}, {"0", 0},       {"0%", 0},      {"10%", 100000},
                {"0.0001%", 1}, {".1", 100000},  {"1.%", 10000}, {"0.000001", 1}};
    static const char *const bad[] = {"",     "%",   ".",   "0.00001%", "0.0000001",
                                      "1..2", "-1%", "1 %", "x",        "99999999999999999999%"};
    struct conf conf;
    struct conf_error err;

    conf_init(&conf);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        char text[CONF_VALUE_MAX];

        set_ok(&conf, "drift", good[i].text);
        ck_assert_int_eq(conf.lock.drift_ppm, good[i].ppm);
        conf_value_format(&conf, conf_option_find(NULL, "drift"), text);
        set_ok(&conf, "drift", text);
        ck_assert_int_eq(conf.lock.drift_ppm, good[i].ppm);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(conf_set(&conf, "drift", bad[i], &err) == -1, "'%s'", bad[i]);
    conf_fini(&conf);
    expect_refused("drift", "11%", "drift: '11%' is out of bounds (0% to 10%)");
    expect_refused("drift", "half", "drift: 'half' is not a ratio (try 0.5% or 0.005)");
}
END_TEST

START_TEST(other_types)
{
    struct conf conf;

    conf_init(&conf);
    set_ok(&conf, "limits.max_request", "1m");
    ck_assert_int_eq(conf.client.max_request, 1024 * 1024);
    expect_value(&conf, "limits.max_request", "1m");
    set_ok(&conf, "max_request", "5000");
    expect_value(&conf, "max_request", "5000");
    set_ok(&conf, "unix_socket_mode", "600");
    ck_assert_int_eq(conf.unix_socket_mode, 0600);
    expect_value(&conf, "unix_socket_mode", "0600");
    set_ok(&conf, "on_disconnect", "expire");
    ck_assert_int_eq(conf.lock.on_disconnect, CONF_DISCONNECT_EXPIRE);
    set_ok(&conf, "log_level", "trace");
    ck_assert_int_eq(conf.log_level, LOG_LEVEL_TRACE);
    conf_fini(&conf);
    expect_refused("max_clients", "0", "limits.max_clients: '0' is out of bounds (1 to 1000000)");
    expect_refused("http.listen", "x x",
                   "http.listen: 'x' is not an address (try 127.0.0.1:5625, [::1]:5625, *:5625, "
                   "tls://*:5626, proxy://127.0.0.1:5627 or unix:/run/holdfast/holdfast.sock)");
    expect_refused("max_clients", "99999999999999999999",
                   "limits.max_clients: '99999999999999999999' is not a whole number");
    expect_refused("max_request", "64q",
                   "limits.max_request: '64q' is not a size (try 512, 64k, 1m)");
    expect_refused("max_request", "1g", "limits.max_request: '1g' is out of bounds (4k to 64m)");
    expect_refused("unix_socket_mode", "0680", "unix_socket_mode: '0680' is not a mode (try 0660)");
    expect_refused("unix_socket_mode", "1777",
                   "unix_socket_mode: '1777' is out of bounds (0000 to 0777)");
    expect_refused("on_lost", "Notify", "on_lost: 'Notify' is not one of notify or close");
    expect_refused("on_disconnect", "0",
                   "on_disconnect: '0' is not one of auto, release or expire");
    expect_refused("lease", "3\x1b[31m\xff",
                   "lease: '3?[31m?' is not a duration (try 30s, 500ms, "
                   "5m)");
}
END_TEST

START_TEST(unknown_options)
{
    expect_refused("holdfast.leese", "1s", "leese: no such option (did you mean lease?)");
    expect_refused("limits.leese", "1s",
                   "leese: no such option (did you mean lease in section [holdfast]?)");
    expect_refused("max_client", "1", "max_client: no such option (did you mean max_clients?)");
    expect_refused("holdfast.max_clients", "1", "max_clients: belongs in section [limits]");
    expect_refused("dxyzt", "1", "dxyzt: no such option");
    expect_refused("colour", "red", "colour: no such option");
    expect_refused("", "", ": no such option");
    expect_refused(
        "limit.max_clients", "1",
        "unknown section 'limit' (known are holdfast, drop_in, http, limits, masters, tls, users)");
}
END_TEST

START_TEST(override)
{
    struct conf conf;
    struct conf_error err;

    conf_init(&conf);
    ck_assert_int_eq(conf_override(&conf, "holdfast.lease=3s", &err), 0);
    ck_assert_int_eq(conf.lock.lease_ms, 3000);
    ck_assert_int_eq(conf_override(&conf, "masters.a=redis://:p=q@h", &err), 0);
    ck_assert_str_eq(conf.masters[0].password, "p=q");
    ck_assert_int_eq(conf_override(&conf, "lease", &err), -1);
    ck_assert_str_eq(err.text, "-o 'lease': is not section.key=value");
    ck_assert_int_eq(conf_override(&conf, "holdfast.lease=3", &err), -1);
    ck_assert_str_eq(err.text, "-o lease: '3' is not a duration (try 30s, 500ms, 5m)");
    ck_assert_int_eq(conf.lock.lease_ms, 3000);
    conf_fini(&conf);
}
END_TEST

START_TEST(live)
{
    struct conf conf;
    struct conf_error err;

    conf_init(&conf);
    ck_assert_int_eq(conf_set_live(&conf, "lease", "5s", &err), 0);
    ck_assert_int_eq(conf_set_live(&conf, "limits.max_waiters", "5", &err), 0);
    ck_assert_int_eq(conf.lock.max_waiters, 5);
    ck_assert_int_eq(conf_set_live(&conf, "holdfast.listen", "*:1", &err), -1);
    ck_assert_str_eq(err.text, "listen: needs a restart: set it in the file");
    ck_assert_int_eq(conf_set_live(&conf, "masters.a", "redis://h", &err), -1);
    ck_assert_int_eq(conf_set_live(&conf, "nothing", "1", &err), -1);
    ck_assert_str_eq(err.text, "nothing: no such option");
    conf_fini(&conf);
}
END_TEST

/* ---- listen ---- */

START_TEST(listen_good)
{
    struct conf conf;

    conf_init(&conf);
    set_ok(&conf, "listen", "  *:0, [2001:db8::1]:65535\tunix:/run/h:1.sock,,127.0.0.1:5625 ");
    ck_assert_uint_eq(conf.listen.count, 4);
    ck_assert_str_eq(conf.listen.v[0].host, "*");
    ck_assert_int_eq(conf.listen.v[0].port, 0);
    ck_assert_str_eq(conf.listen.v[1].host, "2001:db8::1");
    ck_assert(conf.listen.v[2].is_unix);
    ck_assert_str_eq(conf.listen.v[2].host, "/run/h:1.sock");
    expect_value(&conf, "listen", "*:0 [2001:db8::1]:65535 unix:/run/h:1.sock 127.0.0.1:5625");
    conf_fini(&conf);
}
END_TEST

START_TEST(listen_off)
{
    struct conf conf, copy;
    struct conf_error err;

    conf_init(&conf);
    expect_value(&conf, "http.listen", "127.0.0.1:9625");
    ck_assert(conf_is_default(&conf, "http", "listen"));
    ck_assert(conf_set(&conf, "listen", "off", &err) != 0);
    ck_assert_uint_eq(conf.listen.count, 2);
    set_ok(&conf, "http.listen", "off");
    ck_assert(!conf_is_default(&conf, "http", "listen"));
    ck_assert(conf_is_default(&conf, "holdfast", "listen"));
    ck_assert_uint_eq(conf.http_listen.count, 0);
    conf_copy(&copy, &conf);
    expect_value(&copy, "http.listen", "off");
    set_ok(&copy, "http.listen", "[::1]:1 *:2");
    expect_value(&copy, "http.listen", "[::1]:1 *:2");
    ck_assert(conf_set(&copy, "http.listen", "", &err) != 0);
    conf_fini(&copy);
    conf_fini(&conf);
}
END_TEST

START_TEST(listen_bad)
{
    /* clang-format off */
    static const char *const bad[] = {
        "", "5625", "localhost:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:5625",
        "[::1]", "[::1:5", "[127.0.0.1]:5", "unix:relative", "unix:", "1.2.3:5", "[]:5",
        "*:1 *:1", "*:+1", "*:1 x", ":5", "[::1]x:5", "300.1.1.1:5"};
    /* clang-format on */
    char many[1024] = "", path[256] = "unix:/";
    struct conf conf;
    struct conf_error err;

    conf_init(&conf);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(conf_set(&conf, "listen", bad[i], &err) == -1, "'%s'", bad[i]);
    for (int i = 1; i <= CONF_LISTEN_MAX + 1; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), "*:%d ", i);
    ck_assert_int_eq(conf_set(&conf, "listen", many, &err), -1);
    ck_assert_str_eq(err.text, "listen: more than 16 addresses");
    memset(path + 6, 'x', 107);
    ck_assert_int_eq(conf_set(&conf, "listen", path, &err), -1);
    path[6 + 106] = '\0';
    ck_assert_int_eq(conf_set(&conf, "listen", path, &err), 0);
    set_ok(&conf, "listen", "127.0.0.1:7");
    ck_assert_int_eq(conf_set(&conf, "listen", "*:1 oops", &err), -1);
    expect_value(&conf, "listen", "127.0.0.1:7");
    conf_fini(&conf);
}
END_TEST

/* The longest list still fits into a value, and is read back. */
START_TEST(listen_longest)
{
    char text[CONF_VALUE_MAX] = "", again[CONF_VALUE_MAX];
    struct conf conf;

    conf_init(&conf);
    for (int i = 0; i < CONF_LISTEN_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sunix:/%0106d",
                 i > 0 ? " " : "", i);
    set_ok(&conf, "listen", text);
    conf_value_format(&conf, conf_option_find(NULL, "listen"), again);
    ck_assert_str_eq(text, again);
    conf_fini(&conf);
}
END_TEST

/* ---- masters ---- */

static void master_is(const char *url, const char *host, int port, const char *user,
                      const char *password, int db, const char *shown)
{
    struct conf conf;
    const struct conf_master *m;

    conf_init(&conf);
    set_ok(&conf, "masters.a", url);
    m = &conf.masters[0];
    ck_assert_uint_eq(conf.master_count, 1);
    ck_assert_str_eq(m->name, "a");
    ck_assert_str_eq(m->host, host);
    ck_assert_int_eq(m->port, port);
    ck_assert_int_eq(m->is_unix, port == 0);
    ck_assert_pstr_eq(m->user, user);
    ck_assert_pstr_eq(m->password, password);
    ck_assert_int_eq(m->db, db);
    expect_value(&conf, "masters.a", shown);
    conf_fini(&conf);
}

START_TEST(masters_good)
{
    master_is("redis://localhost", "localhost", 6379, NULL, NULL, 0, "redis://localhost:6379");
    master_is("redis://h:1/", "h", 1, NULL, NULL, 0, "redis://h:1");
    master_is("redis://h/15", "h", 6379, NULL, NULL, 15, "redis://h:6379/15");
    master_is("redis://[::1]:7000/2", "::1", 7000, NULL, NULL, 2, "redis://[::1]:7000/2");
    master_is("redis://[::1]", "::1", 6379, NULL, NULL, 0, "redis://[::1]:6379");
    master_is("redis://u:p@h:9", "h", 9, "u", "p", 0, "redis://u:***@h:9");
    master_is("redis://:p@h", "h", 6379, NULL, "p", 0, "redis://:***@h:6379");
    master_is("redis://a%40b:p%2F%25%3f:x@y@h", "h", 6379, "a@b", "p/%?:x@y", 0,
              "redis://a%40b:***@h:6379");
    master_is("unix:///run/r.sock", "/run/r.sock", 0, NULL, NULL, 0, "unix:///run/r.sock");
    master_is("unix://u:p@/run/r%20s?db=3", "/run/r s", 0, "u", "p", 3,
              "unix://u:***@/run/r%20s?db=3");
}
END_TEST

START_TEST(masters_bad)
{
    /* clang-format off */
    static const char *const bad[] = {
        "", "h:6379", "redis:/h", "http://h", "redis://", "redis://:1", "redis://h:0",
        "redis://h:65536", "redis://h:", "redis://h:x", "redis://h/x", "redis://h/-1",
        "redis://h?db=1", "redis://[::1", "redis://[h]:1", "redis://h i", "redis://u:%zz@h",
        "redis://%00@h", "redis://u%4@h", "redis://::1:6379", "unix://r.sock", "unix://",
        "unix:///r?x=1", "unix:///r?db=", "REDIS://h", "redis://[::1]x", "unix:///%0",
        "redis://h/99999999999"};
    /* clang-format on */
    struct conf conf;
    struct conf_error err;

    conf_init(&conf);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(conf_set(&conf, "masters.a", bad[i], &err) == -1, "'%s'", bad[i]);
        ck_assert_uint_eq(conf.master_count, 0);
    }
    ck_assert_int_eq(conf_set(&conf, "masters.a", "redis://bob:secret@h:x", &err), -1);
    ck_assert_str_eq(err.text, "a: the port must be 1 to 65535");
    ck_assert(strstr(err.text, "secret") == NULL);
    conf_fini(&conf);
    expect_refused("masters.A", "redis://h",
                   "A: a master's name is 1 to 32 of the bytes a-z 0-9 _ -");
    expect_refused("masters.", "redis://h",
                   ": a master's name is 1 to 32 of the bytes a-z 0-9 _ -");
    expect_refused("masters.a23456789012345678901234567890123", "redis://h",
                   "a23456789012345678901234567890123: a master's name is 1 to 32 of the bytes "
                   "a-z 0-9 _ -");
    expect_refused(
        "masters.a.port", "1",
        "a.port: a master has only .id, .password_file, .password_credential, .ca, .certificate, "
        ".key and .server_name, and one that is found by Sentinels .master and these with "
        ".sentinel_ in front");
    expect_refused("masters.a.password_file", "secret",
                   "a.password_file: must be an absolute path, or begin with %d/ for a "
                   "credential");
    expect_refused("masters.a.id", "a,b",
                   "a.id: must be 1 to 128 of the bytes A-Z a-z 0-9 . : / _ -");
    expect_refused("masters.a.password_credential", "../x",
                   "a.password_credential: must be the name of a systemd credential, without /");
}
END_TEST

START_TEST(masters_count_and_order)
{
    struct conf conf, copy;
    struct conf_error err;
    char name[32];

    conf_init(&conf);
    for (int i = CONF_MASTERS_MAX; i > 0; i--) {
        snprintf(name, sizeof(name), "masters.m%d", i);
        set_ok(&conf, name, "redis://h");
        if (i == 10) { /* a copy takes more */
            conf_copy(&copy, &conf);
            conf_fini(&conf);
            conf = copy;
        }
    }
    ck_assert_int_eq(conf_set(&conf, "masters.more", "redis://h", &err), -1);
    ck_assert_str_eq(err.text, "more: more than 15 masters");
    set_ok(&conf, "masters.m15", "redis://again");
    ck_assert_str_eq(conf.masters[0].host, "again");
    ck_assert_str_eq(conf.masters[14].name, "m1");
    conf_clear_masters(&conf);
    ck_assert_uint_eq(conf.master_count, 0);
    set_ok(&conf, "masters.z", "redis://h");
    conf_fini(&conf);
}
END_TEST

/* ---- files ---- */

START_TEST(file_good)
{
    struct conf conf;

    ck_assert_int_eq(load(&conf, "\xef\xbb\xbf# first\r\n"
                                 "[holdfast]  ; the broker\r\n"
                                 "lease = 9s ; short\r\n"
                                 "   on_lost: close\r\n"
                                 "\r\n"
                                 "[masters]\n"
                                 "b = redis://h1\n"
                                 "\ta = redis://:x@h2:7\n"
                                 "b.password_file = %d/b\n"
                                 "b.id = 10.0.0.1:6379/0\n"
                                 "[limits]\n"
                                 "max_clients=77"),
                     0);
    ck_assert_str_eq(reported, "");
    ck_assert_int_eq(conf.lock.lease_ms, 9000);
    ck_assert_int_eq(conf.lock.on_lost, CONF_LOST_CLOSE);
    ck_assert_int_eq(conf.client.max_clients, 77);
    ck_assert_uint_eq(conf.master_count, 2);
    ck_assert_str_eq(conf.masters[0].name, "b");
    ck_assert_str_eq(conf.masters[0].password_file, "%d/b");
    ck_assert_str_eq(conf.masters[0].id, "10.0.0.1:6379/0");
    ck_assert_ptr_null(conf.masters[1].id);
    ck_assert_str_eq(conf.masters[1].name, "a");
    ck_assert_int_eq(conf.masters[1].line[0], 8);
    ck_assert_str_eq(conf.path, "x.ini");
    conf_fini(&conf);
}
END_TEST

START_TEST(file_all_errors)
{
    expect_errors("lease = 1s\n"
                  "[holdfast]\n"
                  "lease = 30x\n"
                  "leese = 30s\n"
                  "max_clients = 4\n"
                  "just words\n"
                  "drift = 50%\n"
                  "max_lease = 5m\n"
                  "max_lease = 6m\n"
                  "[limit]\n"
                  "max_clients = 7\n"
                  "max_waiters = 7\n"
                  "[limits\n"
                  "[limits] max_clients = 5\n"
                  "max_arg_len = 4k\n"
                  "[masters]\n"
                  "a = redis://user:secret@h:99999\n"
                  "b = redis://h\n"
                  "b = redis://h\n",
                  "x.ini:1: a setting before the first [section]\n"
                  "x.ini:3: lease: '30x' is not a duration (try 30s, 500ms, 5m)\n"
                  "x.ini:4: leese: no such option (did you mean lease?)\n"
                  "x.ini:5: max_clients: belongs in section [limits]\n"
                  "x.ini:6: is neither key = value nor a [section] nor a # comment\n"
                  "x.ini:7: drift: '50%' is out of bounds (0% to 10%)\n"
                  "x.ini:9: max_lease: is set in line 8 already\n"
                  "x.ini:11: unknown section [limit] "
                  "(known are [holdfast], [drop_in], [http], [limits], [masters], [tls], [users])\n"
                  "x.ini:13: there is a [ without ]\n"
                  "x.ini:14: only a comment may follow a [section] in its line\n"
                  "x.ini:17: a: the port must be 1 to 65535\n"
                  "x.ini:19: b: is set in line 18 already\n");
}
END_TEST

START_TEST(file_last_line_and_empty)
{
    struct conf conf;

    expect_errors("[holdfast]\nlease",
                  "x.ini:2: is neither key = value nor a [section] nor a # comment\n");
    expect_errors("[holdfast]\n = 5s\n", "x.ini:2: : no such option\n");
    ck_assert_int_eq(load(&conf, ""), 0);
    conf_fini(&conf);
    ck_assert_int_eq(load(&conf, "\n\n;\n#\n"), 0);
    conf_fini(&conf);
}
END_TEST

START_TEST(file_long_lines)
{
    char text[16384];
    struct conf conf;

    /* inih's buffer is at least 200 bytes; the line after a long one has its own number. */
    snprintf(text, sizeof(text), "[holdfast]\n# %05000d\nlease = %05000d\ndrift = x\n", 1, 2);
    ck_assert_int_eq(load(&conf, text), -1);
    ck_assert_int_eq(errors, 3);
    ck_assert(strstr(reported, "x.ini:2: the line is longer than ") != NULL);
    ck_assert(strstr(reported, "x.ini:3: the line is longer than ") != NULL);
    ck_assert(strstr(reported, "x.ini:4: drift: ") != NULL);
    conf_fini(&conf);
    snprintf(text, sizeof(text), "[holdfast]\n#%0190d\nlease = 7s%*s\n", 1, 185, "");
    ck_assert_int_eq(load(&conf, text), 0);
    ck_assert_int_eq(conf.lock.lease_ms, 7000);
    conf_fini(&conf);
}
END_TEST

START_TEST(file_not_text)
{
    struct conf conf;
    char *large = util_alloc(CONF_FILE_MAX + 1);

    conf_init(&conf);
    reset_reports();
    ck_assert_int_eq(conf_load_bytes(&conf, "[holdfast]\0", 11, "x.ini", on_report, NULL), -1);
    ck_assert_str_eq(reported, "x.ini: holds a NUL byte, so it is not a text file\n");
    memset(large, '\n', CONF_FILE_MAX + 1);
    reset_reports();
    ck_assert_int_eq(conf_load_bytes(&conf, large, CONF_FILE_MAX, "x.ini", on_report, NULL), 0);
    ck_assert_int_eq(conf_load_bytes(&conf, large, CONF_FILE_MAX + 1, "x.ini", on_report, NULL),
                     -1);
    ck_assert_str_eq(reported, "x.ini: is larger than 1048576 bytes\n");
    memset(large, 'x', CONF_FILE_MAX);
    for (size_t i = 1; i < CONF_FILE_MAX; i += 2)
        large[i] = '\n';
    reset_reports();
    ck_assert_int_eq(conf_load_bytes(&conf, large, CONF_FILE_MAX, "x.ini", on_report, NULL), -1);
    ck_assert_int_eq(errors, 100);
    ck_assert(strstr(reported, "x.ini:100: too many errors, the rest is not shown\n") != NULL);
    free(large);
    conf_fini(&conf);
}
END_TEST

/* A file in a fresh directory; the caller removes both. */
static void write_file(char *path, size_t size, const char *text, mode_t mode)
{
    char dir[] = "/tmp/check_conf.XXXXXX";
    FILE *f;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, size, "%s/file", dir);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static void remove_file(char *path)
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
}

START_TEST(file_on_disk)
{
    char path[64];
    struct conf conf;

    write_file(path, sizeof(path), "[holdfast]\nlease = 4s\n", 0600);
    conf_init(&conf);
    reset_reports();
    ck_assert_int_eq(conf_load_file(&conf, path, on_report, NULL), 0);
    ck_assert_int_eq(conf.lock.lease_ms, 4000);
    ck_assert_str_eq(conf.path, path);
    remove_file(path);
    ck_assert_int_eq(conf_load_file(&conf, "/nowhere/x.ini", on_report, NULL), -1);
    ck_assert_str_eq(reported, "/nowhere/x.ini: cannot be read: No such file or directory\n");
    reset_reports();
    ck_assert_int_eq(conf_load_file(&conf, "/tmp", on_report, NULL), -1);
    ck_assert_str_eq(reported, "/tmp: cannot be read: Is a directory\n");
    conf_fini(&conf);
}
END_TEST

/* ---- secrets ---- */

static int read_secret(const char *option, const char *value, const char **password)
{
    static struct conf conf;
    char name[64];
    int rc;

    conf_fini(&conf);
    conf_init(&conf);
    reset_reports();
    set_ok(&conf, "masters.a", "redis://u@h");
    snprintf(name, sizeof(name), "masters.a.%s", option);
    set_ok(&conf, name, value);
    rc = conf_read_secrets(&conf, on_report, NULL);
    *password = conf.masters[0].password;
    if (rc == 0)
        expect_value(&conf, "masters.a", "redis://u:***@h:6379");
    return rc;
}

START_TEST(secrets)
{
    char path[64], dir[64];
    const char *password;

    write_file(path, sizeof(path), " s3cret \r\n", 0600);
    ck_assert_int_eq(read_secret("password_file", path, &password), 0);
    ck_assert_str_eq(password, " s3cret ");
    ck_assert_str_eq(reported, "");
    unsetenv("CREDENTIALS_DIRECTORY");
    ck_assert_int_eq(read_secret("password_credential", "file", &password), -1);
    ck_assert(strstr(reported, "CREDENTIALS_DIRECTORY is not set") != NULL);
    snprintf(dir, sizeof(dir), "%s", path);
    *strrchr(dir, '/') = '\0';
    setenv("CREDENTIALS_DIRECTORY", dir, 1);
    ck_assert_int_eq(read_secret("password_credential", "file", &password), 0);
    ck_assert_str_eq(password, " s3cret ");
    ck_assert_int_eq(read_secret("password_file", "%d/file", &password), 0);
    ck_assert_str_eq(password, " s3cret ");
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(read_secret("password_file", path, &password), 0);
    ck_assert_int_eq(warnings, 1);
    ck_assert_int_eq(read_secret("password_file", dir, &password), -1);
    ck_assert(strstr(reported, " is not a file\n") != NULL);
    remove_file(path);
    ck_assert_int_eq(read_secret("password_file", "/nowhere/p", &password), -1);
    ck_assert_str_eq(reported, "a.password_file: /nowhere/p cannot be read: No such file or "
                               "directory\n");
}
END_TEST

START_TEST(secrets_bad)
{
    static const char *const bad[] = {"", "\n", "one\ntwo\n"};
    char path[64], *large = util_alloc(5001);
    const char *password;
    struct conf conf;

    memset(large, 'x', 5000);
    for (size_t i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(path, sizeof(path), i < sizeof(bad) / sizeof(bad[0]) ? bad[i] : large, 0600);
        ck_assert_int_eq(read_secret("password_file", path, &password), -1);
        ck_assert_ptr_null(password);
        remove_file(path);
    }
    free(large);
    ck_assert_int_eq(load(&conf, "[masters]\na = redis://:p@h\na.password_file = /x\n"), 0);
    ck_assert_int_eq(conf_read_secrets(&conf, on_report, NULL), -1);
    ck_assert(strstr(reported, "a: has more than one password") != NULL);
    conf_fini(&conf);
}
END_TEST

/* ---- checks across options ---- */

static void expect_check(const char *text, int rc, const char *expected)
{
    struct conf conf;

    ck_assert_int_eq(load(&conf, text), 0);
    ck_assert_int_eq(conf_check(&conf, false, on_report, NULL), rc);
    ck_assert_str_eq(reported, expected);
    conf_fini(&conf);
}

#define ONE_MASTER "\n[masters]\na = redis://h\n"

START_TEST(cross_checks)
{
    expect_check(ONE_MASTER, 0, "");
    expect_check("[holdfast]\nlease=90s" ONE_MASTER, -1,
                 "x.ini:2: lease (1m30s) must not be longer than max_lease (1m)\n");
    expect_check("[holdfast]\nmax_lease=20s" ONE_MASTER, -1,
                 "x.ini:2: lease (30s) must not be longer than max_lease (20s)\n");
    expect_check("[holdfast]\nbrokers=a, broker" ONE_MASTER, 0, "");
    expect_check("[holdfast]\nname=c\nbrokers=a b" ONE_MASTER, -1,
                 "x.ini:2: name (c) must be one of those in brokers (a b)\n");
    expect_check("[holdfast]\nbrokers=a b" ONE_MASTER, -1,
                 "x.ini:2: name (broker) must be one of those in brokers (a b)\n");
    expect_check("[holdfast]\nmin_validity=10s" ONE_MASTER, -1,
                 "x.ini:2: min_validity (10s) must be shorter than a third of lease (30s)\n");
    expect_check("[holdfast]\nmin_validity=9999ms" ONE_MASTER, 0, "");
    expect_check("[limits]\n\noutput_buffer_soft=1m" ONE_MASTER, -1,
                 "x.ini:3: output_buffer_soft (1m) must not be larger than output_buffer_hard "
                 "(256k)\n");
    expect_check("[limits]\nmax_arg_len=128k" ONE_MASTER, -1,
                 "x.ini:2: max_arg_len (128k) must not be larger than max_request (64k)\n");
    expect_check("[holdfast]\nrequest_timeout=11s" ONE_MASTER, 0,
                 "warning: x.ini:2: request_timeout (11s) is longer than a third of lease (30s): "
                 "one slow answer can cost a watched lock\n");
    expect_check("[holdfast]\npause_limit=11s" ONE_MASTER, 0,
                 "warning: x.ini:2: pause_limit (11s) is longer than a third of lease (30s): "
                 "a pause that costs leases goes unnoticed\n");
    expect_check("[holdfast]\nquarantine=1m" ONE_MASTER, 0,
                 "warning: x.ini:2: quarantine (1m) is shorter than max_lease (1m) and its drift: "
                 "a master that restarts empty can let in a second holder\n");
    expect_check("[holdfast]\nquarantine=61s" ONE_MASTER, 0, "");
    expect_check("[holdfast]\nquarantine=off" ONE_MASTER, 0, "");
    expect_check("[holdfast]\nlisten=127.0.0.1:1 [::1]:1 unix:/x *:1\nprotected_mode=no" ONE_MASTER,
                 0,
                 "warning: x.ini:2: listen: * is open to other machines: whoever reaches it can "
                 "take and free locks\n");
    expect_check(
        "[holdfast]\nlisten=127.0.0.1:1 proxy://[::1]:1" ONE_MASTER, -1,
        "x.ini:2: listen: proxy://::1 is open to other machines, as the clients of a proxy "
        "come from anywhere: whoever reaches it can take and free locks (name some in "
        "section [users], or set protected_mode = no)\n");
}
END_TEST

/* Where clients reach the brokers. */
START_TEST(addresses)
{
    struct conf_address v[CONF_PEERS_MAX];
    const char *rest = " a,b\t";
    size_t len;

    ck_assert_int_eq(conf_addresses(NULL, v), 0);
    ck_assert_int_eq(conf_addresses("b.example:1, [::1]:65535", v), 2);
    ck_assert_str_eq(v[0].host, "b.example");
    ck_assert_int_eq(v[0].port, 1);
    ck_assert_str_eq(v[1].host, "::1");
    ck_assert_int_eq(v[1].port, 65535);
    ck_assert_int_eq(*conf_next_name(&rest, &len), 'a');
    ck_assert_int_eq(*conf_next_name(&rest, &len), 'b');
    ck_assert_ptr_null(conf_next_name(&rest, &len));
    ck_assert(conf_lists_name("a bc", "bc", 2));
    ck_assert(!conf_lists_name("a bc", "b", 1));
    ck_assert(!conf_lists_name(NULL, "b", 1));
    expect_check("[holdfast]\nannounce=a:1\npeers=a:1 b:1" ONE_MASTER, 0, "");
    expect_check("[holdfast]\nannounce=a:1\npeers=tls://a:1 tls://[::1]:1" ONE_MASTER, 0, "");
    expect_check("[holdfast]\nannounce=tls://a:1" ONE_MASTER, -1,
                 "x.ini:2: announce: is told to clients as it stands here, so without tls://\n");
    expect_check("[holdfast]\npeers=b:1" ONE_MASTER, -1,
                 "x.ini:2: peers: needs announce, this broker's own address as in the peers of the "
                 "others\n");
    expect_check("[holdfast]\nservice=none\nannounce=a:1\npeers=b:1" ONE_MASTER, -1,
                 "x.ini:4: peers: needs a service\n");
}
END_TEST

START_TEST(cross_checks_tls)
{
    expect_check("[holdfast]\nlisten=tls://127.0.0.1:1" ONE_MASTER, -1,
                 "x.ini:2: listen: tls:// needs a certificate in section [tls]\n");
    expect_check("[holdfast]\nlisten=tls://127.0.0.1:1\n[tls]\ncertificate=/x" ONE_MASTER, 0, "");
    expect_check("[tls]\nkey=/x" ONE_MASTER, -1, "x.ini:2: key: has no certificate\n");
    expect_check("[tls]\ncertificate=/x\nclient_certificates=optional" ONE_MASTER, -1,
                 "x.ini:3: client_certificates: needs a ca that signs them\n");
    expect_check("[holdfast]\nlisten=tls://*:1\n[tls]\ncertificate=/x\nca=/y\n"
                 "client_certificates=required" ONE_MASTER,
                 0, "");
    expect_check("[http]\nlisten=tls://127.0.0.1:1" ONE_MASTER, -1,
                 "x.ini:2: http.listen: there is no TLS for HTTP\n");
    expect_check("[masters]\na=redis://h\na.ca=/x\n", -1,
                 "x.ini:2: a: has options for TLS but no rediss:// address\n");
    expect_check("[masters]\na=rediss://h\na.key=/x\n", -1, "x.ini:2: a.key: has no certificate\n");
}
END_TEST

START_TEST(cross_checks_masters)
{
    expect_check("", -1,
                 "there is no master: section [masters] needs a line such as "
                 "a = redis://127.0.0.1:6379\n");
    expect_check("[masters]\na=redis://u@h\n", -1, "x.ini:2: a: has a user but no password\n");
    expect_check("[masters]\na.password_file=/x\n", -1,
                 "master a has no address (a = redis://host:port)\n");
    expect_check("[masters]\na=redis://h\na.id=x\nb=redis://h\nb.id=y\nc=redis://g\nc.id=x\n", -1,
                 "x.ini:4: b: has the same address as a\n"
                 "x.ini:6: c: has the same id as a\n");
    expect_check("[masters]\na=redis://h\nb=redis://g\nc=redis://h:6379/1\n", -1,
                 "x.ini:4: c: has the same address as a\n");
    expect_check("[masters]\na=redis://h\nb=redis://h:1\n", 0,
                 "warning: 2 masters survive the loss of 0, as 1 would: an odd number is "
                 "better\n");
}
END_TEST

/* ---- get, diff, copy ---- */

START_TEST(get)
{
    struct conf conf;
    struct got got = {.calls = 0};
    size_t count;

    conf_options(&count);
    ck_assert_int_eq(load(&conf, "[masters]\na = redis://u:secret@h\n"), 0);
    ck_assert_uint_eq(get_options(&conf, "*", on_get, &got), count + 1);
    ck_assert_str_eq(got.name, "masters.a");
    ck_assert_str_eq(got.value, "redis://u:***@h:6379");
    ck_assert_uint_eq(get_options(&conf, "lease", on_get, &got), 1);
    ck_assert_str_eq(got.name, "lease");
    ck_assert_str_eq(got.value, "30s");
    ck_assert_uint_eq(get_options(&conf, "holdfast.lease", on_get, &got), 1);
    ck_assert_uint_eq(get_options(&conf, "max_clients", on_get, &got), 1);
    ck_assert_str_eq(got.name, "limits.max_clients");
    ck_assert_uint_eq(get_options(&conf, "lea", on_get, &got), 0);
    conf_fini(&conf);
}
END_TEST

static void on_change(void *arg, const struct conf_change *change)
{
    size_t n = strlen(reported);

    (void)arg;
    snprintf(reported + n, sizeof(reported) - n, "%s: %s -> %s%s\n", change->name,
             change->old_value, change->new_value, change->needs_restart ? " restart" : "");
}

START_TEST(diff)
{
    struct conf a, b;

    ck_assert_int_eq(load(&a, "[masters]\na = redis://:p@h\nb = redis://g\n"), 0);
    conf_copy(&b, &a);
    ck_assert_uint_eq(conf_diff(&a, &b, on_change, NULL), 0);
    set_ok(&b, "lease", "10s");
    set_ok(&b, "max_clients", "5");
    set_ok(&b, "listen", "*:1");
    set_ok(&b, "masters.a", "redis://:q@h");
    ck_assert_uint_eq(conf_diff(&a, &b, on_change, NULL), 4);
    ck_assert_str_eq(reported, "listen: 127.0.0.1:5625 [::1]:5625 -> *:1 restart\n"
                               "lease: 30s -> 10s\n"
                               "limits.max_clients: 10000 -> 5 restart\n"
                               "masters.a: redis://:***@h:6379 -> redis://:***@h:6379\n");
    reset_reports();
    conf_fini(&b);
    conf_copy(&b, &a);
    set_ok(&b, "masters.b", "redis://g/1");
    ck_assert_uint_eq(conf_diff(&a, &b, on_change, NULL), 1);
    ck_assert_str_eq(reported, "masters: a=redis://:***@h:6379 b=redis://g:6379 -> "
                               "a=redis://:***@h:6379 b=redis://g:6379/1 restart\n");
    conf_fini(&a);
    expect_value(&b, "masters.b", "redis://g:6379/1");
    conf_copy(&a, &b);
    set_ok(&a, "masters.b.id", "two");
    reset_reports();
    ck_assert_uint_eq(conf_diff(&b, &a, on_change, NULL), 1);
    ck_assert_str_eq(reported, "masters: a=redis://:***@h:6379 b=redis://g:6379/1 -> "
                               "a=redis://:***@h:6379 b=redis://g:6379/1 id=two restart\n");
    conf_fini(&b);
    conf_copy(&b, &a);
    ck_assert_uint_eq(conf_diff(&a, &b, on_change, NULL), 0);
    conf_fini(&a);
    conf_fini(&b);
}
END_TEST

/* Texts longer than any buffer of ours are cut, not overrun. */
START_TEST(long_values)
{
    char url[CONF_VALUE_MAX + 100], name[64];
    struct conf conf, other;
    struct conf_error err;
    struct got got = {.calls = 0};

    conf_init(&conf);
    for (int i = 0; i < CONF_MASTERS_MAX; i++) {
        snprintf(name, sizeof(name), "masters.m%d", i);
        snprintf(url, sizeof(url), "redis://%%ff%0*d:p@%0250d:65535/2147483647", 1700, 1, i);
        memset(url + 11, '@', 1600);
        set_ok(&conf, name, url);
    }
    ck_assert_uint_eq(get_options(&conf, "masters.*", on_get, &got), CONF_MASTERS_MAX);
    ck_assert_uint_lt(strlen(got.value), CONF_VALUE_MAX);
    conf_init(&other);
    ck_assert_uint_eq(conf_diff(&conf, &other, on_change, NULL), 1);
    memset(url, 'x', sizeof(url) - 1);
    url[sizeof(url) - 1] = '\0';
    ck_assert_int_eq(conf_set(&conf, "masters.a", url, &err), -1);
    ck_assert_str_eq(err.text, "a: the value is longer than 2047 bytes");
    ck_assert_int_eq(conf_set(&conf, url, "1", &err), -1);
    ck_assert_int_eq(conf_override(&conf, url, &err), -1);
    conf_fini(&other);
    conf_fini(&conf);
}
END_TEST

/* ---- TLS ---- */

START_TEST(tls_listens)
{
    struct conf conf;

    conf_init(&conf);
    set_ok(&conf, "listen", "127.0.0.1:1 tls://127.0.0.1:2 tls://[::1]:2 tls://*:3");
    expect_value(&conf, "listen", "127.0.0.1:1 tls://127.0.0.1:2 tls://[::1]:2 tls://*:3");
    ck_assert(!conf.listen.v[0].tls && conf.listen.v[1].tls && conf.listen.v[2].tls);
    set_ok(&conf, "listen", "127.0.0.1:0 tls://127.0.0.1:0");
    conf_fini(&conf);
    expect_refused("listen", "127.0.0.1:1 tls://127.0.0.1:1",
                   "listen: 'tls://127.0.0.1:1' is there twice");
    static const char *const bad[] = {"tls://",
                                      "tls://x:1",
                                      "tls://unix:/x",
                                      "unix:tls:///x",
                                      "tls://tls://127.0.0.1:1",
                                      "TLS://127.0.0.1:1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct conf_error err;

        conf_init(&conf);
        ck_assert_msg(conf_set(&conf, "listen", bad[i], &err) == -1, "'%s'", bad[i]);
        conf_fini(&conf);
    }
}
END_TEST

START_TEST(tls_paths)
{
    struct conf conf, copy;
    char out[16];

    conf_init(&conf);
    ck_assert_ptr_null(conf.tls_certificate);
    expect_value(&conf, "tls.certificate", "none");
    set_ok(&conf, "tls.certificate", "/etc/x.pem");
    set_ok(&conf, "tls.key", "%d/key");
    conf_copy(&copy, &conf);
    set_ok(&conf, "tls.certificate", "none");
    ck_assert_ptr_null(conf.tls_certificate);
    conf_fini(&conf);
    expect_value(&copy, "tls.certificate", "/etc/x.pem");
    expect_value(&copy, "tls.key", "%d/key");
    conf_fini(&copy);
    expect_refused("tls.ca", "x.pem",
                   "tls.ca: must be an absolute path, or begin with %d/ for a credential");
    expect_refused("tls.ca", "%d/",
                   "tls.ca: must be an absolute path, or begin with %d/ for a "
                   "credential");
    expect_refused("tls.ca", "/x\ny", "tls.ca: holds a control byte");
    expect_refused("tls.client_certificates", "yes",
                   "tls.client_certificates: 'yes' is not one of off, optional or required");
    setenv("CREDENTIALS_DIRECTORY", "/run/c", 1);
    ck_assert_ptr_null(credential_expand("%d/key", out, sizeof(out)));
    ck_assert_str_eq(out, "/run/c/key");
    ck_assert_ptr_nonnull(credential_expand("%d/much-too-long", out, sizeof(out)));
    ck_assert_ptr_null(credential_expand("/a", out, sizeof(out)));
    ck_assert_str_eq(out, "/a");
    unsetenv("CREDENTIALS_DIRECTORY");
    ck_assert_ptr_nonnull(credential_expand("%d/key", out, sizeof(out)));
}
END_TEST

START_TEST(tls_masters)
{
    struct conf conf, other;

    conf_init(&conf);
    set_ok(&conf, "masters.a", "rediss://u:p@h:1/2");
    set_ok(&conf, "masters.a.ca", "/ca.pem");
    set_ok(&conf, "masters.a.certificate", "%d/cert");
    set_ok(&conf, "masters.a.key", "/key.pem");
    set_ok(&conf, "masters.a.server_name", "redis-a.example");
    expect_value(&conf, "masters.a", "rediss://u:***@h:1/2");
    ck_assert(conf.masters[0].tls);
    conf_copy(&other, &conf);
    ck_assert_uint_eq(conf_diff(&conf, &other, on_change, NULL), 0);
    set_ok(&other, "masters.a.server_name", "::1");
    ck_assert_uint_eq(conf_diff(&conf, &other, on_change, NULL), 1);
    ck_assert_str_eq(other.masters[0].server_name, "::1");
    ck_assert_str_eq(conf.masters[0].certificate, "%d/cert");
    conf_fini(&other);
    conf_fini(&conf);
    expect_refused("masters.a.ca", "ca.pem",
                   "a.ca: must be an absolute path, or begin with %d/ for a credential");
    expect_refused("masters.a.server_name", "",
                   "a.server_name: must be the name or the address in the server's certificate");
    expect_refused("masters.a.server_name", "a b",
                   "a.server_name: must be the name or the address in the server's certificate");
}
END_TEST

/* ---- manual and sample ---- */

static char *read_source(const char *file)
{
    const char *top = getenv("top_srcdir");
    char path[1024];
    struct conf_error err = {""};
    size_t len;
    char *text;

    snprintf(path, sizeof(path), "%s/%s", top != NULL ? top : ".", file);
    text = conf_read_file(path, CONF_FILE_MAX, &len, &err);
    ck_assert_msg(text != NULL, "%s: %s", path, err.text);
    return text;
}

/* Where the line stands on its own in text, or NULL. */
static const char *find_line(const char *text, const char *line)
{
    size_t len = strlen(line);

    for (const char *at = text; (at = strstr(at, line)) != NULL; at++) {
        if ((at == text || at[-1] == '\n') && (at[len] == '\n' || at[len] == '\0'))
            return at;
    }
    return NULL;
}

/* "30s", "100ms to 1h": as the manual's line has them. */
static void option_facts(const struct conf_option *opt, char *out, size_t size)
{
    char min[CONF_VALUE_MAX], max[CONF_VALUE_MAX], names[256] = "";
    bool numeric = opt->type != CONF_ENUM && opt->type != CONF_LISTEN && opt->type != CONF_PATH &&
                   opt->type != CONF_HOSTS && opt->type != CONF_NAMES &&
                   opt->type != CONF_ADDRESSES;
    struct conf conf;

    conf_init(&conf);
    if (numeric) {
        memcpy((char *)&conf + opt->offset, &opt->min, sizeof(opt->min));
        conf_value_format(&conf, opt, min);
        memcpy((char *)&conf + opt->offset, &opt->max, sizeof(opt->max));
        conf_value_format(&conf, opt, max);
    }
    for (const struct conf_name *n = opt->names; n != NULL && n->name != NULL; n++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
                 n == opt->names ? "" : ", ", n->name);
    snprintf(out, size, "Type: %s", conf_type_name(opt->type));
    if (opt->names != NULL)
        snprintf(out + strlen(out), size - strlen(out), " (%s)", names);
    if (numeric)
        snprintf(out + strlen(out), size - strlen(out), ", %.40s to %.40s", min, max);
    snprintf(out + strlen(out), size - strlen(out), ".");
    conf_fini(&conf);
}

START_TEST(manual_has_every_option)
{
    char *text = read_source("man/holdfast.ini.5");
    size_t count;
    const struct conf_option *opt = conf_options(&count);

    for (size_t i = 0; i < count; i++) {
        char entry[4096], facts[2048];

        option_facts(&opt[i], facts, sizeof(facts));
        snprintf(entry, sizeof(entry), ".It Ic %s\n%s\nDefault: %s.\n%s", opt[i].key, facts,
                 opt[i].def, opt[i].is_live ? "Reloadable." : "Needs a restart.");
        ck_assert_msg(find_line(text, entry) != NULL, "missing in the manual:\n%s", entry);
    }
    free(text);
}
END_TEST

START_TEST(sample_has_every_option)
{
    char *text = read_source("etc/holdfast.ini");
    size_t count;
    const struct conf_option *opt = conf_options(&count);
    struct conf conf;

    ck_assert_msg(load(&conf, text) == 0, "%s", reported);
    ck_assert_int_eq(conf_check(&conf, false, on_report, NULL), 0);
    ck_assert_str_eq(reported, "");
    for (size_t i = 0; i < count; i++) {
        char line[256], section[64];
        const char *at, *own;

        snprintf(line, sizeof(line), "#%s = %s", opt[i].key, opt[i].def);
        snprintf(section, sizeof(section), "[%s]", opt[i].section);
        at = find_line(text, line);
        if (at == NULL)
            at = find_line(text, line + 1);
        ck_assert_msg(at != NULL, "missing in the sample: %s", line);
        own = find_line(text, section);
        ck_assert_msg(own != NULL && own < at, "not in its section: %s", line);
        own = strstr(own, "\n[");
        ck_assert_msg(own == NULL || own > at, "not in its section: %s", line);
    }
    conf_fini(&conf);
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conf");
    TCase *t = tcase_create("types");

    tcase_add_test(t, table_is_sound);
    tcase_add_test(t, defaults);
    tcase_add_test(t, durations);
    tcase_add_test(t, ratios);
    tcase_add_test(t, other_types);
    tcase_add_test(t, unknown_options);
    tcase_add_test(t, override);
    tcase_add_test(t, live);
    tcase_add_test(t, listen_good);
    tcase_add_test(t, listen_off);
    tcase_add_test(t, listen_bad);
    tcase_add_test(t, listen_longest);
    suite_add_tcase(s, t);

    t = tcase_create("masters");
    tcase_add_test(t, masters_good);
    tcase_add_test(t, masters_bad);
    tcase_add_test(t, masters_count_and_order);
    tcase_add_test(t, secrets);
    tcase_add_test(t, secrets_bad);
    tcase_add_test(t, tls_listens);
    tcase_add_test(t, tls_paths);
    tcase_add_test(t, tls_masters);
    suite_add_tcase(s, t);

    t = tcase_create("files");
    tcase_add_test(t, file_good);
    tcase_add_test(t, file_all_errors);
    tcase_add_test(t, file_last_line_and_empty);
    tcase_add_test(t, file_long_lines);
    tcase_add_test(t, file_not_text);
    tcase_add_test(t, file_on_disk);
    suite_add_tcase(s, t);

    t = tcase_create("whole");
    tcase_add_test(t, cross_checks);
    tcase_add_test(t, addresses);
    tcase_add_test(t, cross_checks_tls);
    tcase_add_test(t, cross_checks_masters);
    tcase_add_test(t, get);
    tcase_add_test(t, diff);
    tcase_add_test(t, long_values);
    tcase_add_test(t, manual_has_every_option);
    tcase_add_test(t, sample_has_every_option);
    suite_add_tcase(s, t);
    return suite_run(s);
}
