/*
 * The way from the words of a request to the function that answers it, and what is counted on that
 * way.
 *
 * It owns an index over cmd_table() by name (open addressing, built once, never changed), the full
 * name and the counts of each row. It does not know what any command does.
 *
 * Every request is counted exactly once: `rejected` when no handler ran (unknown commands count in
 * no row), at once when its reply was immediate, or in cmd_written() when a request was left with
 * the session.
 */
#include "command/command.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/glob.h"
#include "base/util.h"
#include "command/monitor.h"
#include "command/slowlog.h"
#include "command/spikes.h"
#include "session/pubsub.h"
#include "stats/stats.h"

_Static_assert((int)SLOWLOG_THRESHOLD_US == (int)LATENCY_THRESHOLD_US, "what is slow is an event");

enum {
    INDEX_SLOTS = 256, /* a power of two, more than twice the rows of the table */
    NAME_MAX_LEN = 32, /* of a command or a sub-command */
    RECENT = 16,       /* a power of two */
    ERROR_MAX = 512,   /* bytes of an error text */
    USUAL_ARGS = 12,   /* words; nearly always each one more is a name to be dealt with */
    ARG_INSTRUCTIONS = 3000,
    USUAL_REPLY = 1024, /* bytes; each one more takes some time to be made, and to be sent */
    BYTE_INSTRUCTIONS = 30,
    GLOB_INSTRUCTIONS = 200,    /* to read a byte of a pattern */
    MONITOR_INSTRUCTIONS = 4000 /* for each who looks on */
};

/* What belongs to one row, in the order of cmd_index(). */
struct row {
    const struct cmd *cmd;
    char full_name[2 * NAME_MAX_LEN + 2];
    struct stats_command counts;
};

static struct cmd_hooks hooks;
static struct row *rows;
static int n_rows, n_top;
static int first_sub[INDEX_SLOTS]; /* by row of the table: the row of its first sub-command */
static uint8_t slots[INDEX_SLOTS]; /* row + 1; 0: free */
static bool reply_failed;          /* the handler that runs has answered an error, */
static bool waits_for_login;       /* or nothing yet */
static int64_t charged;            /* instructions of the request that runs, see cmd_charge() */

static unsigned char to_upper(unsigned char c)
{
    return c >= 'a' && c <= 'z' ? (unsigned char)(c - ('a' - 'A')) : c;
}

static unsigned char to_lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + ('a' - 'A')) : c;
}

bool cmd_word_equals(const struct resp_arg *word, const char *upper)
{
    for (size_t i = 0; i < word->len; i++)
        if (upper[i] == '\0' || to_upper((unsigned char)word->ptr[i]) != (unsigned char)upper[i])
            return false;
    return upper[word->len] == '\0';
}

/* FNV-1a over the upper-cased bytes. The table is ours: nobody can choose names that collide in it.
 */
static unsigned hash_word(const char *ptr, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ to_upper((unsigned char)ptr[i])) * 16777619u;
    return (h ^ h >> 16) & (INDEX_SLOTS - 1);
}

/* ---- the index ---- */

static void index_add(const char *name, int row)
{
    unsigned slot = hash_word(name, strlen(name));

    while (slots[slot] != 0)
        slot = (slot + 1) & (INDEX_SLOTS - 1);
    slots[slot] = (uint8_t)(row + 1);
}

static void row_init(struct row *row, const struct cmd *parent, const struct cmd *cmd)
{
    int len = parent != NULL ? snprintf(row->full_name, sizeof(row->full_name), "%s|%s",
                                        parent->name, cmd->name)
                             : snprintf(row->full_name, sizeof(row->full_name), "%s", cmd->name);

    assert(len > 0 && (size_t)len < sizeof(row->full_name));
    assert(strlen(cmd->name) <= NAME_MAX_LEN);
    for (char *p = row->full_name; *p != '\0'; p++)
        *p = (char)to_lower((unsigned char)*p);
    row->cmd = cmd;
    row->counts.name = row->full_name;
}

void cmd_init(const struct cmd_hooks *given)
{
    const struct cmd *table = cmd_table(&n_top);
    int n = n_top;

    assert(n_top < INDEX_SLOTS / 2);
    hooks = *given;
    memset(slots, 0, sizeof(slots));
    for (int i = 0; i < n_top; i++)
        for (const struct cmd *sub = table[i].subs; sub != NULL && sub->name != NULL; sub++)
            n++;
    free(rows);
    rows = util_alloc((size_t)n * sizeof(*rows));
    n_rows = n;
    n = n_top;
    for (int i = 0; i < n_top; i++) {
        assert(i == 0 || strcmp(table[i - 1].name, table[i].name) < 0);
        row_init(&rows[i], NULL, &table[i]);
        index_add(table[i].name, i);
        first_sub[i] = n;
        for (const struct cmd *sub = table[i].subs; sub != NULL && sub->name != NULL; sub++)
            row_init(&rows[n++], &table[i], sub);
    }
    stats_set_commands(cmd_stats);
}

void cmd_fini(void)
{
    stats_set_commands(NULL);
    slowlog_reset();
    for (int event = 0; event < LATENCY_EVENTS; event++)
        latency_reset((enum latency_event)event);
    cmd_refusals_reset();
    free(rows);
    rows = NULL;
    n_rows = n_top = 0;
    memset(slots, 0, sizeof(slots));
}

const struct cmd_hooks *cmd_hooks(void)
{
    return &hooks;
}

const struct cmd *cmd_find(const struct resp_arg *word)
{
    /* Found last, by length and first letter: most requests are like some before. */
    static struct {
        const struct cmd *cmd;
        size_t len;
    } recent[RECENT];

    if (word->len == 0 || word->len > NAME_MAX_LEN)
        return NULL;
    unsigned at = ((unsigned)word->len * 5 + (unsigned char)word->ptr[0]) & (RECENT - 1);
    if (word->len == recent[at].len && memcmp(word->ptr, recent[at].cmd->name, word->len) == 0)
        return recent[at].cmd;
    for (unsigned slot = hash_word(word->ptr, word->len); slots[slot] != 0;
         slot = (slot + 1) & (INDEX_SLOTS - 1)) {
        const struct cmd *cmd = rows[slots[slot] - 1].cmd;
        if (!cmd_word_is(word, cmd->name))
            continue;
        recent[at].cmd = cmd;
        recent[at].len = word->len;
        return cmd;
    }
    return NULL;
}

const struct cmd *cmd_find_sub(const struct cmd *cmd, const struct resp_arg *word)
{
    for (const struct cmd *sub = cmd->subs; sub != NULL && sub->name != NULL; sub++)
        if (cmd_word_is(word, sub->name))
            return sub;
    return NULL;
}

int cmd_index(const struct cmd *cmd)
{
    const struct cmd *table = cmd_table(&(int){0});

    if (cmd >= table && cmd < table + n_top)
        return (int)(cmd - table);
    for (int i = n_top; i < n_rows; i++)
        if (rows[i].cmd == cmd)
            return i;
    assert(!"a command of the table");
    return 0;
}

const char *cmd_full_name(int index)
{
    return index >= 0 && index < n_rows ? rows[index].full_name : "";
}

struct stats_command *cmd_stats(size_t index)
{
    return index < (size_t)n_rows ? &rows[index].counts : NULL;
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

void cmd_reply_error(struct session *s, const char *fmt, ...)
{
    char text[ERROR_MAX];
    struct resp_writer w = session_reply(s);
    va_list ap;

    va_start(ap, fmt);
    resp_error(&w, "%s", format_error(text, fmt, ap));
    va_end(ap);
    session_reply_end(s);
    reply_failed = true;
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

void cmd_reply_ok(struct session *s)
{
    struct resp_writer w = session_reply(s);

    resp_simple(&w, "OK");
    session_reply_end(s);
}

void cmd_wait_for_login(void)
{
    waits_for_login = true;
}

void cmd_reply_int(struct session *s, int64_t value)
{
    struct resp_writer w = session_reply(s);

    resp_int(&w, value);
    session_reply_end(s);
}

void cmd_reply_syntax(struct session *s)
{
    cmd_reply_error(s, "ERR syntax error");
}

void cmd_charge(int64_t instructions)
{
    charged += instructions;
}

struct glob *cmd_glob(struct session *s, const struct resp_arg *word)
{
    struct glob *g = glob_new(word->ptr, word->len);

    cmd_charge(GLOB_INSTRUCTIONS * (int64_t)word->len);
    if (g == NULL)
        cmd_reply_error(s, "LIMIT a pattern has at most %d bytes, this one has %zu", GLOB_MAX,
                        word->len);
    return g;
}

/* ---- the way of one request ---- */

static bool arity_fits(const struct cmd *cmd, int argc)
{
    return cmd->arity >= 0 ? argc == cmd->arity : argc >= -cmd->arity;
}

/* The row that the words mean, or -1 when they were answered by an error. */
static int resolve(struct session *s, int argc, const struct resp_arg *argv)
{
    const struct cmd *cmd = cmd_find(&argv[0]);

    if (cmd == NULL) {
        cmd_reject_unknown(s, argc, argv);
        return -1;
    }
    int row = (int)(cmd - rows[0].cmd);
    if (cmd->subs != NULL && argc > 1) {
        const struct cmd *sub = cmd_find_sub(cmd, &argv[1]);
        if (sub == NULL) {
            cmd_reject_unknown_sub(s, cmd->name, &argv[1]);
            rows[row].counts.rejected++;
            return -1;
        }
        row = first_sub[row] + (int)(sub - cmd->subs);
        cmd = sub;
    }
    if (arity_fits(cmd, argc) && cmd->fn != NULL)
        return row;
    cmd_reply_error(s, "ERR wrong number of arguments for '%s' command", rows[row].full_name);
    rows[row].counts.rejected++;
    return -1;
}

static bool pubsub_allows(struct session *s, struct row *row)
{
    if (s->n_subscriptions == 0 || s->proto != 2 || (row->cmd->flags & CMD_PUBSUB_OK) != 0)
        return true;
    cmd_reply_error(
        s,
        "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
        "allowed in this context",
        row->full_name);
    row->counts.rejected++;
    return false;
}

/* Nothing is queued, as nothing would be run: each is refused in its place, so that the replies
 * stay in step with what the client has sent. */
static bool multi_allows(struct session *s, struct row *row)
{
    if (!s->multi || (row->cmd->flags & CMD_MULTI_OK) != 0)
        return true;
    cmd_reply_error(s,
                    "NOMULTI '%s' was not run: there are no transactions here; send it without "
                    "MULTI (a pipeline without a transaction), or MLOCK for several locks at once",
                    row->full_name);
    row->counts.rejected++;
    return false;
}

static void count(struct row *row, bool failed, int64_t duration_us)
{
    if (failed)
        row->counts.failed++;
    else
        row->counts.ok++;
    hist_add(&row->counts.duration_us, duration_us);
}

/* The request is answered later: what cmd_written() will want to know. */
static void remember(struct request *request, int row, int64_t now_us, int argc,
                     const struct resp_arg *argv)
{
    request->cmd = (uint16_t)row;
    request->arrived_us = now_us;
    if (argc < 2 || (rows[row].cmd->flags & CMD_SECRET) != 0)
        return;
    size_t n = argv[1].len < sizeof(request->subject) ? argv[1].len : sizeof(request->subject);
    memcpy(request->subject, argv[1].ptr, n);
    request->subject_len = (uint8_t)n;
}

static void run(struct session *s, struct row *row, int argc, const struct resp_arg *argv,
                int64_t now_ms, int64_t now_us)
{
    uint32_t n_before = s->n_requests;
    size_t held_before = s->held_len;
    bool secret = (row->cmd->flags & CMD_SECRET) != 0;

    size_t reply_before = buf_len(s->out) + s->held_len;
    reply_failed = false;
    row->cmd->fn(s, argc, argv, now_ms);
    if (waits_for_login)
        return;
    if (s->n_requests > n_before && s->held_len == held_before) {
        remember(TAILQ_LAST(&s->requests, request_list), (int)(row - rows), now_us, argc, argv);
        return;
    }
    size_t reply_len = buf_len(s->out) + s->held_len - reply_before;
    if (reply_len > USUAL_REPLY)
        cmd_charge((int64_t)(reply_len - USUAL_REPLY) * BYTE_INSTRUCTIONS);
    int64_t duration_us = clock_us() - now_us;
    count(row, reply_failed, duration_us);
    if (duration_us < SLOWLOG_THRESHOLD_US)
        return;
    latency_add(LATENCY_COMMAND, duration_us, clock_wall_ms());
    slowlog_add(clock_wall_ms(), duration_us, argc, argv, secret, hooks.peer(s), s->name);
}

static void feed_monitors(struct session *s, const struct cmd *cmd, int argc,
                          const struct resp_arg *argv, int64_t now_ms)
{
    const struct monitor_request request = {.peer = hooks.peer(s),
                                            .argc = argc,
                                            .argv = argv,
                                            .secret = (cmd->flags & CMD_SECRET) != 0,
                                            .wall_ms = clock_wall_ms(),
                                            .view = cmd_view,
                                            .of_view = cmd};

    monitor_feed(&request, now_ms);
    cmd_charge(monitor_count * (int64_t)MONITOR_INSTRUCTIONS);
}

bool cmd_dispatch(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms,
                  int64_t now_us)
{
    bool again = s->login != NULL;

    assert(argc > 0);
    stats.commands_processed += !again;
    charged = argc > USUAL_ARGS ? (argc - USUAL_ARGS) * ARG_INSTRUCTIONS : 0;

    int index = resolve(s, argc, argv);
    if (index < 0 || !pubsub_allows(s, &rows[index]) || !multi_allows(s, &rows[index]))
        return true;
    struct row *row = &rows[index];
    if (!cmd_permits(s, row->cmd, row->full_name, argc, argv)) {
        row->counts.rejected++;
        return true;
    }
    s->last_cmd = (uint16_t)index;
    if (monitor_count > 0 && !again && (row->cmd->flags & (CMD_ADMIN | CMD_LOCK)) != CMD_ADMIN)
        feed_monitors(s, row->cmd, argc, argv, now_ms);
    waits_for_login = false;
    run(s, row, argc, argv, now_ms, now_us);
    return !waits_for_login;
}

int cmd_cost(void)
{
    return charged > 0 ? 1 + (int)(charged / CMD_INSTRUCTIONS) : 1;
}

void cmd_written(struct request *request)
{
    struct row *row = &rows[request->cmd];
    int64_t duration_us = clock_us() - request->arrived_us;

    count(row, request->failed, duration_us);
    if (request->granted)
        hist_add(&stats.wait_us, duration_us);
    if (duration_us < SLOWLOG_THRESHOLD_US || request->waited)
        return;
    latency_add(LATENCY_COMMAND, duration_us, clock_wall_ms());
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
}
