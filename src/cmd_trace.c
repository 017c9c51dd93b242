/*
 * What commands come and how long they take: argv to monitor, slowlog and the counts of the rows,
 * and back. Latency events, as Redis records them, are not kept: INFO and the metrics have the
 * histograms.
 */
#include "cmd_trace.h"

#include <string.h>

#include "monitor.h"
#include "slowlog.h"
#include "stats_private.h"
#include "util.h"

enum { SLOWLOG_GET_DEFAULT = 10, HIST_EXPONENTS = 32 };

void cmd_trace_monitor(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    cmd_reply_ok(s);
    monitor_join(s);
}

/* ---- SLOWLOG ---- */

static void write_entry(struct resp_writer *w, const struct slowlog_entry *e)
{
    resp_array(w, 6);
    resp_int(w, e->id);
    resp_int(w, e->wall_ms / 1000);
    resp_int(w, e->duration_us);
    resp_array(w, (size_t)e->argc);
    for (int i = 0; i < e->argc; i++)
        resp_str(w, e->argv[i]);
    resp_str(w, e->peer);
    resp_str(w, e->name);
}

void cmd_trace_slowlog_get(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    int64_t n = SLOWLOG_GET_DEFAULT;

    (void)now_ms;
    if (argc > 3) {
        cmd_reply_error(s, "ERR wrong number of arguments for 'slowlog|get' command");
        return;
    }
    if (argc == 3 && util_parse_int(argv[2].ptr, argv[2].len, -1, INT32_MAX, &n) != 0) {
        cmd_reply_error(s, "ERR count should be greater than or equal to -1");
        return;
    }
    if (n < 0 || n > slowlog_count())
        n = slowlog_count();
    struct resp_writer w = session_reply(s);
    resp_array(&w, (size_t)n);
    for (uint32_t i = 0; i < n; i++)
        write_entry(&w, slowlog_get(i));
    session_reply_end(s);
}

void cmd_trace_slowlog_len(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    cmd_reply_int(s, slowlog_count());
}

void cmd_trace_slowlog_reset(struct session *s, int argc, const struct resp_arg *argv,
                             int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    slowlog_reset();
    cmd_reply_ok(s);
}

/* ---- LATENCY ---- */

/* Is the row meant by one of the words: by its full name, or as a sub-command of the named one? */
static bool is_meant(const char *full_name, int n, const struct resp_arg *words)
{
    size_t len = strlen(full_name), top_len = strcspn(full_name, "|");

    for (int i = 0; i < n; i++) {
        if (words[i].len != len && words[i].len != top_len)
            continue;
        size_t k = 0;
        while (k < words[i].len && (words[i].ptr[k] | 0x20) == (full_name[k] | 0x20))
            k++;
        if (k == words[i].len)
            return true;
    }
    return n == 0;
}

/* Cumulative counts by powers of two, without those that add nothing. */
static void write_histogram(struct resp_writer *w, const struct stats_command *command)
{
    uint64_t counts[HIST_EXPONENTS + 1], before = 0;
    size_t n = 0;

    for (unsigned i = 0; i <= HIST_EXPONENTS; i++) {
        counts[i] = hist_count_to(&command->duration_us, i);
        n += counts[i] != before;
        before = counts[i];
    }
    resp_str(w, command->name);
    resp_map(w, 2);
    resp_str(w, "calls");
    resp_int(w, (int64_t)command->duration_us.count);
    resp_str(w, "histogram_usec");
    resp_map(w, n);
    before = 0;
    for (unsigned i = 0; i <= HIST_EXPONENTS; i++) {
        if (counts[i] == before)
            continue;
        resp_int(w, INT64_C(1) << i);
        resp_int(w, (int64_t)counts[i]);
        before = counts[i];
    }
}

void cmd_trace_latency_histogram(struct session *s, int argc, const struct resp_arg *argv,
                                 int64_t now_ms)
{
    struct buf text = {0};
    struct resp_writer to_text = {&text, s->proto};
    struct stats_command *command;
    size_t n = 0;

    (void)now_ms;
    for (size_t i = 0; (command = cmd_stats(i)) != NULL; i++) {
        if (command->duration_us.count == 0 || !is_meant(command->name, argc - 2, argv + 2))
            continue;
        write_histogram(&to_text, command);
        n++;
    }
    struct resp_writer w = session_reply(s);
    resp_map(&w, n);
    if (n > 0)
        buf_append(w.out, buf_head(&text), buf_len(&text));
    session_reply_end(s);
    buf_fini(&text);
}

void cmd_trace_latency_none(struct session *s, int argc, const struct resp_arg *argv,
                            int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    struct resp_writer w = session_reply(s);

    resp_array(&w, 0);
    session_reply_end(s);
}

void cmd_trace_latency_reset(struct session *s, int argc, const struct resp_arg *argv,
                             int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    cmd_reply_int(s, 0);
}
