/*
 * The connections that said MONITOR. A list of pointers: there are few of them, and none most of
 * the time. The line of a request is made once and sent to each; what makes a watcher too slow is
 * the client edge's bound on its output.
 */
#include "monitor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "session.h"
#include "util.h"

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

void monitor_feed(const char *peer, int argc, const struct resp_arg *argv, bool secret,
                  int64_t wall_ms, int64_t now_ms)
{
    static const struct resp_arg redacted = {"(redacted)", 10};
    struct buf line = {0};

    buf_printf(&line, "%" PRId64 ".%03d000 [0 %s]", wall_ms / 1000, (int)(wall_ms % 1000), peer);
    for (int i = 0; i < argc && buf_len(&line) < MONITOR_LINE_MAX; i++)
        append_quoted(&line, secret && i > 0 ? &redacted : &argv[i]);
    if (buf_len(&line) >= MONITOR_LINE_MAX)
        buf_append(&line, "...", 3);
    buf_append(&line, "", 1);
    for (uint32_t i = 0; i < monitor_count; i++) {
        struct resp_writer w = session_push(watchers[i], now_ms);
        resp_simple(&w, buf_head(&line));
        session_push_end(watchers[i]);
    }
    buf_fini(&line);
}
