/* What commands come and which took long: argv to monitor and slowlog, and back. */
#include "command/handlers.h"

#include "base/util.h"
#include "command/monitor.h"
#include "command/slowlog.h"

enum { SLOWLOG_GET_DEFAULT = 10 };

void cmd_trace_monitor(struct cmd_call *c)
{
    if (monitor_join(c->session) == 0)
        cmd_reply_ok(c);
    else
        cmd_reply_error(c, "LIMIT %d connections have said MONITOR, no more may", MONITOR_MAX);
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

void cmd_trace_slowlog_get(struct cmd_call *c)
{
    int64_t n = SLOWLOG_GET_DEFAULT;

    if (c->argc > 3) {
        cmd_reply_error(c, "ERR wrong number of arguments for 'slowlog|get' command");
        return;
    }
    if (c->argc == 3 && !cmd_number(c, &c->argv[2], -1, INT32_MAX, &n,
                                    "ERR count should be greater than or equal to -1"))
        return;
    if (n < 0 || n > slowlog_count())
        n = slowlog_count();
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, (size_t)n);
    for (uint32_t i = 0; i < n; i++)
        write_entry(w, slowlog_get(i));
}

void cmd_trace_slowlog_len(struct cmd_call *c)
{
    cmd_reply_int(c, slowlog_count());
}

void cmd_trace_slowlog_reset(struct cmd_call *c)
{
    slowlog_reset();
    cmd_reply_ok(c);
}
