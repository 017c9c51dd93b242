/*
 * What commands come and which took long: argv to monitor and slowlog, and back.
 */
#include "command/trace.h"

#include "base/util.h"
#include "command/monitor.h"
#include "command/slowlog.h"

enum { SLOWLOG_GET_DEFAULT = 10 };

void cmd_trace_monitor(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    if (monitor_join(s) == 0)
        cmd_reply_ok(s);
    else
        cmd_reply_error(s, "LIMIT %d connections have said MONITOR, no more may", MONITOR_MAX);
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
