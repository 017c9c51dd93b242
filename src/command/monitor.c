/*
 * The connections that said MONITOR. A list of pointers: there are few of them, and none most of
 * the time. The line of a request is made once and sent to each; what makes a watcher too slow is
 * the client edge's bound on its output.
 */
#include "command/monitor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "session/session.h"

static struct session **watchers;
uint32_t monitor_count;

int monitor_join(struct session *s)
{
    if (s->monitor)
        return 0;
    if (monitor_count == MONITOR_MAX)
        return -1;
    s->monitor = true;
    watchers = util_realloc(watchers, (monitor_count + 1) * sizeof(struct session *));
    watchers[monitor_count++] = s;
    return 0;
}

void monitor_leave(struct session *s)
{
    uint32_t i = 0;

    if (!s->monitor)
        return;
    s->monitor = false;
    while (watchers[i] != s)
        i++;
    watchers[i] = watchers[--monitor_count];
    if (monitor_count == 0) {
        free(watchers);
        watchers = NULL;
    }
}

/* One word in quotes, everything but plain ASCII escaped: as Redis prints it. */
static void append_quoted(struct buf *line, const struct resp_arg *word)
{
    static const char named[] = "\n\r\t\a\b\"\\", letter[] = "nrtab\"\\";

    buf_append(line, " \"", 2);
    for (size_t i = 0; i < word->len && buf_len(line) < MONITOR_LINE_MAX; i++) {
        unsigned char c = (unsigned char)word->ptr[i];
        const char *hit = c != 0 ? strchr(named, c) : NULL;
        if (hit != NULL)
            buf_printf(line, "\\%c", letter[hit - named]);
        else if (c < ' ' || c > '~')
            buf_printf(line, "\\x%02x", c);
        else
            buf_append(line, &word->ptr[i], 1);
    }
    buf_append(line, "\"", 1);
}

static void make_line(struct buf *line, const struct monitor_request *r, bool redacted)
{
    static const struct resp_arg instead = {"(redacted)", 10};

    buf_printf(line, "%" PRId64 ".%03d000 [0 %s]", r->wall_ms / 1000, (int)(r->wall_ms % 1000),
               r->peer);
    for (int i = 0; i < r->argc && buf_len(line) < MONITOR_LINE_MAX; i++)
        append_quoted(line, redacted && i > 0 ? &instead : &r->argv[i]);
    if (buf_len(line) >= MONITOR_LINE_MAX)
        buf_append(line, "...", 3);
    buf_append(line, "", 1);
}

void monitor_feed(const struct monitor_request *r, int64_t now_ms)
{
    struct buf lines[MONITOR_SHOWN + 1] = {{0}};

    for (uint32_t i = 0; i < monitor_count; i++) {
        const struct user *user = watchers[i]->user;
        enum monitor_view view = user && r->view ? r->view(user, r) : MONITOR_SHOWN;
        struct buf *line = &lines[view];
        if (view == MONITOR_HIDDEN)
            continue;
        if (buf_len(line) == 0)
            make_line(line, r, r->secret || view == MONITOR_REDACTED);
        struct resp_writer w = session_push(watchers[i], now_ms);
        resp_simple(&w, buf_head(line));
        session_push_end(watchers[i]);
    }
    buf_fini(&lines[MONITOR_REDACTED]);
    buf_fini(&lines[MONITOR_SHOWN]);
}
