/* stats: the histograms against a sorted list, INFO as redis-cli and client libraries read it, the
 * metrics by a strict reader of the Prometheus text format, and that each counter and each gauge of
 * the lists comes out in both. */
#include "stats/gauges.h"
#include "stats/recent.h"
#include "stats/stats.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "suite.h"

static struct stats_command commands[] = {{.name = "lock"}, {.name = "client|list"}, {.name = "x"}};

static struct stats_command *command_row(size_t i)
{
    return i < sizeof commands / sizeof commands[0] ? &commands[i] : NULL;
}

static struct hist request_us;
static const struct stats_master masters[] = {
    {.name = "a",
     .version = "8.0.2",
     .state = "active",
     .up = true,
     .requests_ok = 7,
     .clock_offset_ms = -1500,
     .request_us = &request_us},
    {.name = "b\"\\\n{} 1",
     .state = "quarantined",
     .quarantine_remaining_ms = 12345,
     .missing = "east,w\"",
     .signed_by = "north",
     .restarts = 2},
};

static struct stats_gauges gauges;
static struct buf out;

static void setup(void)
{
    stats_set_commands(command_row);
    stats_reset();
    gauges = (struct stats_gauges){.run_id = "abc",
                                   .os = "Linux",
                                   .uptime_ms = 90061000,
                                   .clients_connected = 5,
                                   .clients_waiting = 3,
                                   .memory_used = 1536,
                                   .memory_rss = 3072,
                                   .locks_held_exclusive = 11,
                                   .locks_held_shared = 2,
                                   .locks_names = 9,
                                   .lease_min_remaining_ms = 9500,
                                   .quorum_required = 2,
                                   .masters_len = 2};
    memcpy(gauges.masters, masters, sizeof masters);
    gauges.peers[0] = (struct stats_peer){
        .address = "east.example:5625", .state = "ready", .up = true, .heard_ms = 40};
    gauges.peers[1] =
        (struct stats_peer){.address = "w\"\n,:5625", .state = "silent", .heard_ms = -1};
    gauges.peers_len = 2;
}

static void teardown(void)
{
    buf_fini(&out);
}

static const char *info(const char *section)
{
    buf_consume(&out, buf_len(&out));
    stats_info(&out, section, &gauges);
    buf_append(&out, "", 1);
    return buf_head(&out);
}

static const char *metrics(void)
{
    buf_consume(&out, buf_len(&out));
    stats_metrics(&out, &gauges);
    buf_append(&out, "", 1);
    return buf_head(&out);
}

static bool has_line(const char *text, const char *line)
{
    size_t len = strlen(line);
    for (const char *at = text; (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && (at[len] == '\r' || at[len] == '\n'))
            return true;
    return false;
}
#define ASSERT_LINE(text, line)                                                                    \
    ck_assert_msg(has_line(text, line), "no line '%s' in\n%.4000s", line, text)
#define ASSERT_NO_TEXT(text, part)                                                                 \
    ck_assert_msg(!strstr(text, part), "'%s' in\n%.4000s", part, text)

/* ---- histograms ---- */

static int compare_values(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

START_TEST(hist_quantiles)
{
    enum { N = 20000 };
    static int64_t values[N];
    static const double qs[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
    struct hist hist = {0};
    uint64_t random = 1;

    for (int i = 0; i < N; i++) { /* all magnitudes alike, up to 2^32 us */
        random = random * 6364136223846793005u + 1442695040888963407u;
        values[i] = 1 + (int64_t)((random >> 32) >> (i % 32));
        hist_add(&hist, values[i]);
    }
    qsort(values, N, sizeof values[0], compare_values);
    for (size_t i = 0; i < sizeof qs / sizeof qs[0]; i++) {
        int rank = (int)(qs[i] * N);
        int64_t is = values[rank > 0 ? rank - 1 : 0], said = hist_quantile(&hist, qs[i]);
        ck_assert_msg(said >= is && said <= is + is / HIST_SUBS, "q %g: %lld, said %lld", qs[i],
                      (long long)is, (long long)said);
    }
    ck_assert_uint_eq(hist.count, N);
    ck_assert_uint_eq(hist.max_us, (uint64_t)values[N - 1]);
}
END_TEST

START_TEST(hist_edges)
{
    struct hist hist = {0};

    ck_assert_int_eq(hist_quantile(&hist, 0.5), 0);
    hist_add(&hist, -5);
    hist_add(&hist, 0);
    ck_assert_int_eq(hist_quantile(&hist, 1), 0);
    ck_assert_uint_eq(hist.sum_us, 0);
    hist_add(&hist, 1);
    ck_assert_int_eq(hist_quantile(&hist, 1), 1);
    hist_add(&hist, INT64_MAX); /* counts as the longest */
    ck_assert_int_eq(hist_quantile(&hist, 1), INT64_C(1) << 32);
    ck_assert_uint_eq(hist.bucket[HIST_BUCKETS - 1], 1);
    hist_add(&hist, (INT64_C(1) << 32) + 1);
    ck_assert_uint_eq(hist.bucket[HIST_BUCKETS - 1], 2);
    ck_assert_uint_eq(hist.count, 5);
}
END_TEST

/* The le bounds are exact: one microsecond more is in the next. */
/* A histogram less what it was once is that of what came since. */
START_TEST(hist_of_what_came_since)
{
    struct hist hist = {0}, then;

    for (int i = 0; i < 1000; i++)
        hist_add(&hist, 1000000);
    then = hist;
    hist_subtract(&hist, &then);
    ck_assert_uint_eq(hist.count, 0);
    ck_assert_int_eq(hist_quantile(&hist, 1), 0);
    hist = then;
    for (int i = 0; i < 100; i++)
        hist_add(&hist, i < 99 ? 64 : 1024);
    hist_subtract(&hist, &then);
    ck_assert_uint_eq(hist.count, 100);
    ck_assert_uint_eq(hist.sum_us, 99 * 64 + 1024);
    ck_assert_int_eq(hist_quantile(&hist, 0.5), 64);
    ck_assert_int_eq(hist_quantile(&hist, 1), 1024);
}
END_TEST

static uint64_t recent_count(void)
{
    struct hist recent;

    recent_hist(1, &recent); /* wait_us */
    return recent.count;
}

/* One is added in each minute: of a long time the last minutes are seen. */
START_TEST(the_last_minutes)
{
    enum { COPIES = RECENT_MINUTES + 1 };
    const int64_t minute_ms = 60000;

    stats_reset();
    for (int64_t i = 1; i <= 20; i++) {
        stats_tick(i * minute_ms);
        hist_add(&stats.wait_us, 100);
        ck_assert_uint_eq(recent_count(), (uint64_t)(i < COPIES ? i : COPIES));
        stats_tick(i * minute_ms + 1000);
        ck_assert_uint_eq(recent_count(), (uint64_t)(i < COPIES ? i : COPIES));
    }
    stats_tick(100 * minute_ms);
    stats_reset();
    hist_add(&stats.wait_us, 100);
    ck_assert_uint_eq(recent_count(), 1);
}
END_TEST

START_TEST(hist_in_metrics)
{
    hist_add(&stats.wait_us, 1);
    hist_add(&stats.wait_us, 64);
    hist_add(&stats.wait_us, 65);
    hist_add(&stats.wait_us, 128);
    hist_add(&stats.wait_us, 129);
    hist_add(&stats.wait_us, 8388608);
    hist_add(&stats.wait_us, 8388609);
    hist_add(&stats.wait_us, INT64_C(4000000000));
    const char *text = metrics();
    ASSERT_LINE(text, "# TYPE holdfast_lock_wait_seconds histogram");
    ASSERT_LINE(text, "holdfast_lock_wait_seconds_bucket{le=\"6.4e-05\"} 2");
    ASSERT_LINE(text, "holdfast_lock_wait_seconds_bucket{le=\"0.000128\"} 4");
    ASSERT_LINE(text, "holdfast_lock_wait_seconds_bucket{le=\"0.000256\"} 5");
    ASSERT_LINE(text, "holdfast_lock_wait_seconds_bucket{le=\"4.194304\"} 5");
    ASSERT_LINE(text, "holdfast_lock_wait_seconds_bucket{le=\"8.388608\"} 6");
    ASSERT_LINE(text, "holdfast_lock_wait_seconds_bucket{le=\"2147.483648\"} 7");
    ASSERT_LINE(text, "holdfast_lock_wait_seconds_bucket{le=\"+Inf\"} 8");
    ASSERT_LINE(text, "holdfast_lock_wait_seconds_sum 4016.777604");
    ASSERT_LINE(text, "holdfast_lock_wait_seconds_count 8");
}
END_TEST

/* ---- INFO ---- */

/* As redis-cli does it: the first place where the name stands, then the number behind one byte. */
static long redis_cli_field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtol(at + strlen(name) + 1, NULL, 10) : LONG_MIN;
}

START_TEST(info_for_clients)
{
    stats.total_commands_processed = 123;
    stats.total_connections_received = 45;
    stats.rejected_no_descriptor = 2;
    stats.rejected_max_clients = 1;
    const char *text = info(NULL);

    ck_assert_int_eq(redis_cli_field(text, "db0:keys"), 9);
    ck_assert_int_eq(redis_cli_field(text, "used_memory"), 1536);
    ck_assert_int_eq(redis_cli_field(text, "connected_clients"), 5);
    ck_assert_int_eq(redis_cli_field(text, "blocked_clients"), 3);
    ck_assert_int_eq(redis_cli_field(text, "total_commands_processed"), 123);
    ck_assert_int_eq(redis_cli_field(text, "total_connections_received"), 45);
    ck_assert_int_eq(redis_cli_field(text, "bgsave_in_progress"), 0);
    ck_assert_int_eq(redis_cli_field(text, "aof_rewrite_in_progress"), 0);
    ck_assert_int_eq(redis_cli_field(text, "loading"), 0);

    ASSERT_LINE(text, "redis_version:8.4.0");
    ASSERT_LINE(text, "redis_mode:standalone");
    ASSERT_LINE(text, "role:master");
    ASSERT_LINE(text, "loading:0");
    ASSERT_LINE(text, "cluster_enabled:0");
    ASSERT_LINE(text, "run_id:abc");
    ASSERT_LINE(text, "uptime_in_seconds:90061");
    ASSERT_LINE(text, "uptime_in_days:1");
    ASSERT_LINE(text, "used_memory_human:1.50K");
    ASSERT_LINE(text, "maxmemory_human:0B");
    ASSERT_LINE(text, "mem_fragmentation_ratio:2.00");
    ASSERT_LINE(text, "rejected_connections:3");
    ASSERT_LINE(text, "db0:keys=9,expires=9,avg_ttl=0");
    ASSERT_LINE(text, "master0:name=a,state=active,up=1,quarantine_ms=0,inflight=0,restarts=0,"
                      "data_losses=0,clock_offset_ms=-1500,since_ms=0,version=8.0.2");
    ck_assert_ptr_nonnull(strstr(text, "master1:name=b\"\\_{} 1,state=quarantined,"));
    ASSERT_LINE(text, "peer0:address=east.example:5625,state=ready,heard_ms=40,named=0");
    ASSERT_LINE(text, "peer1:address=w\"__:5625,state=silent,heard_ms=-1,named=0");
    ck_assert_ptr_nonnull(strstr(text, "holdfast_version:"));
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        ck_assert_msg(at > text && at[-1] == '\r', "a line end that is no CR LF");

    gauges.locks_names = 0;
    ASSERT_NO_TEXT(info(NULL), "db0");
}
END_TEST

/* The headings of the text, in one line. */
static const char *headings(const char *section)
{
    static char line[512];
    const char *text = info(section);

    line[0] = '\0';
    for (const char *at = text; (at = strstr(at, "# ")); at++) {
        strncat(line, at + 2, strcspn(at + 2, "\r"));
        strcat(line, " ");
        ck_assert_msg(at == text || memcmp(at - 4, "\r\n\r\n", 4) == 0, "no blank line before");
    }
    return line;
}

START_TEST(info_sections)
{
    static const char usual[] =
        "Server Clients Memory Persistence Stats Replication CPU Errorstats "
        "Cluster Keyspace Holdfast ";
    static const char all[] =
        "Server Clients Memory Persistence Stats Replication CPU Commandstats "
        "Errorstats Latencystats Cluster Keyspace Holdfast ";
    ck_assert_str_eq(headings(NULL), usual);
    ck_assert_str_eq(headings(""), usual);
    ck_assert_str_eq(headings("default"), usual);
    ck_assert_str_eq(headings("ALL"), all);
    ck_assert_str_eq(headings("everything"), all);
    ck_assert_str_eq(headings("cpu"), "CPU ");
    ck_assert_str_eq(headings("sErVeR"), "Server ");
    ck_assert_str_eq(headings("keyspace memory,CPU cpu  memory"), "Memory CPU Keyspace ");
    ck_assert_str_eq(headings("default commandstats"),
                     "Server Clients Memory Persistence Stats Replication CPU Commandstats "
                     "Errorstats Cluster Keyspace Holdfast ");
    ck_assert_str_eq(info("nonsense"), "");
    ck_assert_str_eq(info("server2"), "");
    ck_assert_str_eq(info("serv"), "");
    ck_assert_str_eq(info(" ,"), "");
}
END_TEST

START_TEST(commands_lent)
{
    commands[0].ok = 9;
    commands[0].failed = 1;
    commands[0].rejected = 4;
    for (int i = 0; i < 10; i++)
        hist_add(&commands[0].duration_us, 50);
    commands[1].rejected = 1;

    const char *text = info("all");
    ASSERT_LINE(
        text, "cmdstat_lock:calls=10,usec=500,usec_per_call=50.00,rejected_calls=4,failed_calls=1");
    ASSERT_LINE(text, "cmdstat_client|list:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,"
                      "failed_calls=0");
    ASSERT_LINE(text, "latency_percentiles_usec_lock:p50=50,p99=50,p99.9=50");
    ASSERT_NO_TEXT(text, "cmdstat_x");

    text = metrics();
    ASSERT_LINE(text, "holdfast_commands_total{command=\"lock\",outcome=\"ok\"} 9");
    ASSERT_LINE(text, "holdfast_commands_total{command=\"lock\",outcome=\"failed\"} 1");
    ASSERT_LINE(text, "holdfast_commands_total{command=\"client|list\",outcome=\"rejected\"} 1");
    ASSERT_LINE(text,
                "holdfast_command_duration_seconds_bucket{command=\"lock\",le=\"6.4e-05\"} 10");
    ASSERT_LINE(text, "holdfast_command_duration_seconds_sum{command=\"lock\"} 0.000500");
    ASSERT_LINE(text, "holdfast_command_duration_seconds_count{command=\"lock\"} 10");

    stats_reset();
    ASSERT_NO_TEXT(info("all"), "cmdstat_");
    stats_set_commands(NULL);
    ASSERT_NO_TEXT(info("all"), "cmdstat_");
}
END_TEST

START_TEST(error_codes)
{
    stats_error("ERR unknown command 'x'");
    stats_error("-ERR syntax error");
    stats_error("NOTHELD");
    stats_error("NOTHELD2 looks alike");
    stats_error("NOTH looks alike");
    stats_error("bad\"code} here");
    stats_error("");
    stats_error(" ERR");
    stats_error("ERR: colon");
    stats_error("ABCDEFGHIJKLMNOPQRSTUVWXYZ too long");
    const char *text = info("errorstats");
    ASSERT_LINE(text, "errorstat_ERR:count=2");
    ASSERT_LINE(text, "errorstat_NOTHELD:count=1");
    ASSERT_LINE(text, "errorstat_NOTHELD2:count=1");
    ASSERT_LINE(text, "errorstat_NOTH:count=1");
    ASSERT_LINE(text, "errorstat_other:count=5");
    ASSERT_LINE(info("stats"), "total_error_replies:10");

    for (int i = 0; i < 100; i++) { /* 27 find a place beside the 4 */
        char code[16];
        snprintf(code, sizeof code, "E%d", i);
        stats_error(code);
        stats_error(code);
    }
    text = info("errorstats");
    ASSERT_LINE(text, "errorstat_E26:count=2");
    ASSERT_NO_TEXT(text, "E27");
    ASSERT_LINE(text, "errorstat_other:count=151");
    ASSERT_LINE(metrics(), "holdfast_errors_total{code=\"ERR\"} 2");

    stats_reset();
    ck_assert_str_eq(info("errorstats"), "# Errorstats\r\n");
    stats_error("NEW");
    ck_assert_str_eq(info("errorstats"), "# Errorstats\r\nerrorstat_NEW:count=1\r\n");
}
END_TEST

START_TEST(rates)
{
    stats.total_commands_processed = 1000;
    stats_tick(5000);
    ASSERT_LINE(info("stats"), "instantaneous_ops_per_sec:0"); /* nothing to compare with yet */
    stats.total_commands_processed += 300;
    stats.total_net_input_bytes += 4096;
    stats_tick(7000);
    ASSERT_LINE(info("stats"), "instantaneous_ops_per_sec:150");
    ASSERT_LINE(info("stats"), "instantaneous_input_kbps:2.00");
    stats_tick(7000);
    ASSERT_LINE(info("stats"), "instantaneous_ops_per_sec:150");
    stats_reset();
    stats.total_commands_processed = 10;
    stats_tick(8000);
    ASSERT_LINE(info("stats"), "instantaneous_ops_per_sec:10");
}
END_TEST

/* ---- the list ---- */

START_TEST(each_counter_is_shown)
{
    char line[256];
    uint64_t value = 1000;
    struct buf all_info = {0};

#define SET(field, metric, labels, help) stats.field = value++;
    STATS_COUNTERS(SET)
    stats_info(&all_info, "all", &gauges);
    buf_append(&all_info, "", 1);
    const char *metrics_text = metrics();
    value = 1000;
#define SEE(field, metric, labels, help)                                                           \
    snprintf(line, sizeof line, "%s:%llu", #field, (unsigned long long)value);                     \
    ASSERT_LINE(buf_head(&all_info), line);                                                        \
    if (strcmp(#field, "accept_paused_usec") == 0)                                                 \
        snprintf(line, sizeof line, "holdfast_%s_total %.6f", metric, (double)value / 1e6);        \
    else                                                                                           \
        snprintf(line, sizeof line,                                                                \
                 *labels ? "holdfast_%s_total{%s} %llu" : "holdfast_%s_total%s %llu", metric,      \
                 labels, (unsigned long long)value);                                               \
    ASSERT_LINE(metrics_text, line);                                                               \
    value++;
    STATS_COUNTERS(SEE)

    stats_reset();
#define GONE(field, metric, labels, help) ck_assert_uint_eq(stats.field, 0);
    STATS_COUNTERS(GONE)
    buf_fini(&all_info);
}
END_TEST

START_TEST(each_gauge_is_shown)
{
    char line[256];
    int64_t value = 1000;
    struct buf all_info = {0};

#define SET_GAUGE(field, unit, name, metric, labels, help) gauges.field = value++;
    STATS_GAUGES(SET_GAUGE)
    stats_info(&all_info, "holdfast", &gauges);
    buf_append(&all_info, "", 1);
    const char *metrics_text = metrics();
    value = 1000;
#define SEE_GAUGE(field, unit, name, metric, labels, help)                                         \
    if (*name) {                                                                                   \
        snprintf(line, sizeof line, "%s:%lld", name, (long long)value);                            \
        ASSERT_LINE(buf_head(&all_info), line);                                                    \
    }                                                                                              \
    if (STATS_UNIT_##unit == STATS_UNIT_MS)                                                        \
        snprintf(line, sizeof line, "%s %.6f", metric, (double)value / 1000);                      \
    else                                                                                           \
        snprintf(line, sizeof line, *labels ? "%s{%s} %lld" : "%s%s %lld", metric, labels,         \
                 (long long)value);                                                                \
    ASSERT_LINE(metrics_text, line);                                                               \
    value++;
    STATS_GAUGES(SEE_GAUGE)
    buf_fini(&all_info);
}
END_TEST

START_TEST(gauge_without_value)
{
    gauges.lease_min_remaining_ms = -1;
    gauges.max_fds = INT64_MAX;
    ASSERT_LINE(info("holdfast"), "lease_min_remaining_ms:-1");
    ASSERT_NO_TEXT(metrics(), "lease_min_remaining");
    ASSERT_LINE(metrics(), "process_max_fds +Inf");
}
END_TEST

/* ---- the Prometheus text, read strictly ---- */

enum { NAMES_MAX = 4096 };
static char *names[NAMES_MAX]; /* families and samples that were seen */
static size_t names_len;

static void note_once(const char *kind, const char *text, size_t len)
{
    char *name = malloc(strlen(kind) + len + 1);

    sprintf(name, "%s%.*s", kind, (int)len, text);
    for (size_t i = 0; i < names_len; i++)
        ck_assert_msg(strcmp(names[i], name) != 0, "twice: %s", name);
    ck_assert_uint_lt(names_len, NAMES_MAX);
    names[names_len++] = name;
}

/* From behind the "{" to behind the "}". */
static const char *skip_labels(const char *at)
{
    for (;;) {
        size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
        ck_assert_msg(len > 0 && at[len] == '=' && at[len + 1] == '"', "label at: %.60s", at);
        for (at += len + 2; *at != '"'; at++) {
            ck_assert_msg(*at && *at != '\n', "open label");
            if (*at == '\\') {
                at++;
                ck_assert_msg(*at == '\\' || *at == '"' || *at == 'n', "escape");
            }
        }
        at++;
        if (*at == '}')
            return at + 1;
        ck_assert_msg(*at == ',', "label end at: %.60s", at);
        at++;
    }
}

static bool is_suffix_of_hist(const char *at, size_t len)
{
    return (len == 7 && memcmp(at, "_bucket", 7) == 0) ||
           (len == 4 && memcmp(at, "_sum", 4) == 0) || (len == 6 && memcmp(at, "_count", 6) == 0);
}

/* One sample of the family; returns what is behind the line. */
static const char *read_sample(const char *at, const char *family, bool hist)
{
    size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz_"), flen = strlen(family);
    const char *end = at + len;
    char *number_end;

    ck_assert_msg(len >= flen && memcmp(at, family, flen) == 0, "%s has %.60s", family, at);
    ck_assert_msg(hist ? is_suffix_of_hist(at + flen, len - flen) : len == flen, "name: %.60s", at);
    if (*end == '{')
        end = skip_labels(end + 1);
    note_once("sample ", at, (size_t)(end - at));
    ck_assert_msg(*end == ' ', "no blank: %.80s", at);
    double value = strtod(end + 1, &number_end);
    ck_assert_msg(number_end > end + 1 && *number_end == '\n', "value: %.80s", at);
    ck_assert_msg(value >= 0 || strstr(family, "offset"), "negative: %.80s", at);
    return number_end + 1;
}

START_TEST(metrics_are_well_formed)
{
    size_t samples = 0;

    commands[0].ok = 1;
    hist_add(&commands[0].duration_us, 77);
    hist_add(&request_us, 1234);
    stats_error("ERR x");
    for (const char *at = metrics(); *at; samples++) {
        char family[128], type[16], again[128];
        int used = -1;
        if (*at != '#') {
            ck_abort_msg("no HELP before: %.80s", at);
            return;
        }
        sscanf(at, "# HELP %127[a-z_] %*[^\n]\n# TYPE %127[a-z_] %15[a-z]\n%n", family, again, type,
               &used);
        ck_assert_msg(used > 0, "heading: %.120s", at);
        ck_assert_str_eq(family, again);
        ck_assert_msg(!strncmp(family, "holdfast_", 9) || !strncmp(family, "process_", 8), "%s",
                      family);
        bool total = strlen(family) > 6 && strcmp(family + strlen(family) - 6, "_total") == 0;
        ck_assert_msg(total == (strcmp(type, "counter") == 0), "%s is a %s", family, type);
        note_once("family ", family, strlen(family));
        for (at += used; *at && *at != '#';)
            at = read_sample(at, family, strcmp(type, "histogram") == 0);
    }
    ck_assert_uint_gt(samples, 40);

    const char *text = metrics();
    ASSERT_LINE(text, "holdfast_backend_up{node=\"a\"} 1");
    ASSERT_LINE(text, "holdfast_backend_up{node=\"b\\\"\\\\\\n{} 1\"} 0");
    ASSERT_LINE(text, "holdfast_backend_state{node=\"a\",state=\"active\"} 1");
    ASSERT_LINE(text, "holdfast_backend_clock_offset_seconds{node=\"a\"} -1.500");
    static const char missing[] =
        "holdfast_backend_roll_call_missing{node=\"b\\\"\\\\\\n{} 1\",broker=";
    for (int i = 0; i < 3; i++) {
        char line[128];
        static const char *const rows[] = {"\"east\"} 1", "\"w\\\"\"} 1", "\"north\"} 0"};
        snprintf(line, sizeof line, "%s%s", missing, rows[i]);
        ASSERT_LINE(text, line);
    }
    ASSERT_LINE(text, "holdfast_backend_requests_total{node=\"a\",outcome=\"ok\"} 7");
    ASSERT_LINE(text, "holdfast_backend_request_duration_seconds_count{node=\"a\"} 1");
    ASSERT_LINE(text, "holdfast_locks_held{type=\"exclusive\"} 11");
    ASSERT_LINE(text, "holdfast_lease_min_remaining_seconds 9.500000");
    ASSERT_LINE(text, "holdfast_uptime_seconds 90061.000000");
    gauges.lease_min_remaining_ms = -1;
    ASSERT_NO_TEXT(metrics(), "holdfast_lease_min_remaining_seconds");
    while (names_len > 0)
        free(names[--names_len]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stats");
    TCase *t = tcase_create("stats");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, hist_quantiles);
    tcase_add_test(t, hist_edges);
    tcase_add_test(t, hist_of_what_came_since);
    tcase_add_test(t, the_last_minutes);
    tcase_add_test(t, hist_in_metrics);
    tcase_add_test(t, info_for_clients);
    tcase_add_test(t, info_sections);
    tcase_add_test(t, commands_lent);
    tcase_add_test(t, error_codes);
    tcase_add_test(t, rates);
    tcase_add_test(t, each_counter_is_shown);
    tcase_add_test(t, each_gauge_is_shown);
    tcase_add_test(t, gauge_without_value);
    tcase_add_test(t, metrics_are_well_formed);
    suite_add_tcase(s, t);
    return suite_run(s);
}
