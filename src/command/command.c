/*
 * The way from the words of a request to the function that answers it, and what is counted on that
 * way.
 *
 * It does not know what any command does; the rows and their counts are index.c's.
 *
 * Every request is counted exactly once: `rejected` when no handler ran (unknown commands count in
 * no row), at once when its reply was immediate, or in cmd_written() when a request was left with
 * the session.
 */
#include "command/command.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/glob.h"
#include "command/command_private.h"
#include "command/monitor.h"
#include "command/slowlog.h"
#include "session/pubsub.h"
#include "stats/libraries.h"
#include "stats/stats.h"

enum {
    ERROR_MAX = 512, /* bytes of an error text */
    USUAL_ARGS = 12, /* words; nearly always each one more is a name to be dealt with */
    ARG_INSTRUCTIONS = 3000,
    USUAL_REPLY = 1024, /* bytes; each one more takes some time to be made, and to be sent */
    BYTE_INSTRUCTIONS = 30,
    GLOB_INSTRUCTIONS = 200,    /* to read a byte of a pattern */
    MONITOR_INSTRUCTIONS = 4000 /* for each who looks on */
};

static struct cmd_hooks hooks;
static int64_t charged; /* instructions of the request that runs, see cmd_charge() */

void cmd_init(const struct cmd_hooks *given)
{
    hooks = *given;
    cmd_index_init();
    stats_set_commands(cmd_stats);
}

void cmd_fini(void)
{
    stats_set_commands(NULL);
    slowlog_reset();
    cmd_refusals_reset();
    cmd_names_fini();
    cmd_index_fini();
}

const struct cmd_hooks *cmd_hooks(void)
{
    return &hooks;
}

bool cmd_must_wait(const struct session *s, const struct resp_arg *word)
{
    if (s->n_requests == 0)
        return false;
    const struct cmd *cmd = cmd_find(word);
    return cmd != NULL && (cmd->flags & CMD_BARRIER) != 0;
}

/* ---- replies ---- */

__attribute__((format(printf, 2, 0))) static const char *format_error(char *text, const char *fmt,
                                                                      va_list ap)
{
    vsnprintf(text, ERROR_MAX, fmt, ap);
    stats_error(text);
    return text;
}

struct resp_writer *cmd_reply(struct cmd_call *c)
{
    assert(!c->replied);
    c->w = session_reply(c->session);
    c->replied = true;
    return &c->w;
}

void cmd_reply_error(struct cmd_call *c, const char *fmt, ...)
{
    char text[ERROR_MAX];
    va_list ap;

    va_start(ap, fmt);
    resp_error(cmd_reply(c), "%s", format_error(text, fmt, ap));
    va_end(ap);
    c->failed = true;
}

void cmd_write_error(struct request *request, struct resp_writer *w, const char *fmt, ...)
{
    char text[ERROR_MAX];
    va_list ap;

    va_start(ap, fmt);
    resp_error(w, "%s", format_error(text, fmt, ap));
    va_end(ap);
    request->failed = true;
}

void cmd_reply_ok(struct cmd_call *c)
{
    resp_simple(cmd_reply(c), "OK");
}

void cmd_reply_int(struct cmd_call *c, int64_t value)
{
    resp_int(cmd_reply(c), value);
}

void cmd_reply_str(struct cmd_call *c, const char *text)
{
    resp_str(cmd_reply(c), text);
}

void cmd_reply_syntax(struct cmd_call *c)
{
    cmd_reply_error(c, "ERR syntax error");
}

bool cmd_number(struct cmd_call *c, const struct resp_arg *word, int64_t min, int64_t max,
                int64_t *out, const char *error)
{
    bool good = util_parse_int(word->ptr, word->len, min, max, out) == 0;

    if (!good)
        cmd_reply_error(c, "%s", error);
    return good;
}

void cmd_reply_elements(struct cmd_call *c, size_t n, const struct buf *elements)
{
    struct resp_writer *w = cmd_reply(c);

    resp_array(w, n);
    buf_append(w->out, buf_head(elements), buf_len(elements));
}

void cmd_charge(int64_t instructions)
{
    charged += instructions;
}

struct glob *cmd_glob(struct cmd_call *c, const struct resp_arg *word)
{
    struct glob *g = glob_new(word->ptr, word->len);

    cmd_charge(GLOB_INSTRUCTIONS * (int64_t)word->len);
    if (g == NULL)
        cmd_reply_error(c, "LIMIT a pattern has at most %d bytes, this one has %zu", GLOB_MAX,
                        word->len);
    return g;
}

/* ---- the way of one request ---- */

bool cmd_arity_fits(const struct cmd *cmd, int argc)
{
    return cmd->arity >= 0 ? argc == cmd->arity : argc >= -cmd->arity;
}

/* Returns the row that the words mean, and what belongs to it in the call; NULL when they were
 * answered by an error. */
static struct cmd_row *resolve(struct cmd_call *c)
{
    const struct cmd *cmd = cmd_find(&c->argv[0]);

    if (cmd == NULL ||
        ((cmd->flags & (CMD_DROP_IN | CMD_EITHER)) == CMD_DROP_IN && !cmd_dropin_is_on())) {
        cmd_reject_unknown(c);
        return NULL;
    }
    struct cmd_row *row = cmd_row_of(cmd, NULL);
    if (cmd->subs != NULL && c->argc > 1) {
        const struct cmd *sub = cmd_find_sub(cmd, &c->argv[1]);
        if (sub == NULL) {
            cmd_reject_unknown_sub(c, cmd->name, &c->argv[1]);
            row->counts.rejected++;
            return NULL;
        }
        row = cmd_row_of(cmd, sub);
    }
    c->cmd = row->cmd;
    c->full_name = row->full_name;
    return row;
}

static bool arity_allows(struct cmd_call *c)
{
    if (cmd_arity_fits(c->cmd, c->argc) && c->cmd->fn != NULL)
        return true;
    cmd_reply_error(c, "ERR wrong number of arguments for '%s' command", c->full_name);
    return false;
}

static bool pubsub_allows(struct cmd_call *c)
{
    if (c->session->n_subscriptions == 0 || c->session->proto != 2 ||
        (c->cmd->flags & CMD_PUBSUB_OK) != 0)
        return true;
    cmd_reply_error(
        c,
        "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
        "allowed in this context",
        c->full_name);
    return false;
}

static bool multi_allows(struct cmd_call *c)
{
    if (!c->session->multi || (c->cmd->flags & CMD_MULTI_OK) != 0)
        return true;
    cmd_multi_refuse(c);
    return false;
}

static void count(struct cmd_row *row, bool failed, int64_t duration_us)
{
    if (failed)
        row->counts.failed++;
    else
        row->counts.ok++;
    hist_add(&row->counts.duration_us, duration_us);
}

/* Notes in a request that is answered later what cmd_written() will want to know. */
static void note_command(struct request *request, const struct cmd_row *row,
                         const struct cmd_call *c, int64_t now_us)
{
    request->cmd = row->number;
    request->arrived_us = now_us;
    if (c->argc <= row->subject || (row->cmd->flags & CMD_SECRET) != 0)
        return;
    const struct resp_arg *subject = &c->argv[row->subject];
    size_t n = subject->len < sizeof(request->subject) ? subject->len : sizeof(request->subject);
    memcpy(request->subject, subject->ptr, n);
    request->subject_len = (uint8_t)n;
}

static void run_row(struct cmd_call *c, struct cmd_row *row, int64_t now_us)
{
    struct session *s = c->session;
    uint32_t n_before = s->n_requests;
    size_t reply_before = buf_len(s->out) + buf_len(&s->held);

    c->cmd->fn(c);
    if (c->waits_for_login)
        return;
    if (c->asked) {
        note_command(c->asked, row, c, now_us);
        session_queued(s, c->asked);
        return;
    }
    if (s->n_requests > n_before) {
        note_command(TAILQ_LAST(&s->requests, request_list), row, c, now_us);
        return;
    }
    size_t reply_len = buf_len(s->out) + buf_len(&s->held) - reply_before;
    if (reply_len > USUAL_REPLY)
        cmd_charge((int64_t)(reply_len - USUAL_REPLY) * BYTE_INSTRUCTIONS);
    int64_t duration_us = clock_us() - now_us;
    count(row, c->failed, duration_us);
    if (duration_us < SLOWLOG_THRESHOLD_US)
        return;
    slowlog_add(clock_wall_ms(), duration_us, c->argc, c->argv, (row->cmd->flags & CMD_SECRET) != 0,
                hooks.peer(s), s->name);
}

static void feed_monitors(const struct cmd_call *c)
{
    const struct monitor_request request = {.peer = hooks.peer(c->session),
                                            .argc = c->argc,
                                            .argv = c->argv,
                                            .secret = (c->cmd->flags & CMD_SECRET) != 0,
                                            .wall_ms = clock_wall_ms(),
                                            .view = cmd_view,
                                            .of_view = c->cmd};

    monitor_feed(&request, c->now_ms);
    cmd_charge(monitor_count * (int64_t)MONITOR_INSTRUCTIONS);
}

/* `again`: its verdict on a password has come. */
static void run_call(struct cmd_call *c, bool again, int64_t now_us)
{
    struct cmd_row *row = resolve(c);

    if (row == NULL) {
        cmd_multi_spoil(c->session);
        return;
    }
    if (c->session->db != 0)
        cmd_name_database(c);
    if (!arity_allows(c) || !pubsub_allows(c) || !multi_allows(c) || !cmd_permits(c)) {
        row->counts.rejected++;
        cmd_multi_spoil(c->session);
        return;
    }
    c->session->last_cmd = row->number;
    if (monitor_count > 0 && !again && (c->cmd->flags & (CMD_ADMIN | CMD_LOCK)) != CMD_ADMIN)
        feed_monitors(c);
    run_row(c, row, now_us);
}

bool cmd_dispatch(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms,
                  int64_t now_us)
{
    struct cmd_call c = {.session = s, .argc = argc, .argv = argv, .said = argv, .now_ms = now_ms};
    bool again = s->login != NULL;

    assert(argc > 0);
    if (!again) {
        stats.total_commands_processed++;
        library_count(s->library);
    }
    charged = argc > USUAL_ARGS ? (argc - USUAL_ARGS) * ARG_INSTRUCTIONS : 0;
    run_call(&c, again, now_us);
    if (c.replied)
        session_reply_end(s);
    return !c.waits_for_login;
}

void cmd_refuse_request(struct session *s, const char *why)
{
    struct cmd_call c = {.session = s};

    stats.total_commands_processed++;
    library_count(s->library);
    cmd_multi_spoil(s);
    cmd_reply_error(&c, "LIMIT the request was not run: %s", why);
    session_reply_end(s);
}

int cmd_cost(void)
{
    return charged > 0 ? 1 + (int)(charged / CMD_INSTRUCTIONS) : 1;
}

void cmd_written(struct request *request)
{
    struct cmd_row *row = cmd_row(request->cmd);
    int64_t duration_us = clock_us() - request->arrived_us;

    count(row, request->failed, duration_us);
    if (request->granted)
        hist_add(&stats.wait_us, duration_us);
    if (duration_us < SLOWLOG_THRESHOLD_US || request->waited)
        return;
    struct resp_arg argv[2] = {{row->cmd->name, strlen(row->cmd->name)},
                               {request->subject, request->subject_len}};
    struct session *s = request->session;
    slowlog_add(clock_wall_ms(), duration_us, request->subject_len > 0 ? 2 : 1, argv, false,
                s != NULL ? hooks.peer(s) : "", s != NULL ? s->name : NULL);
}

void cmd_session_end(struct session *s)
{
    pubsub_leave(s);
    monitor_leave(s);
    cmd_multi_end(s);
}
