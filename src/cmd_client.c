/*
 * CLIENT. Which connections a sub-command means is a struct filter, the same for LIST and KILL.
 * It acts on connections through hooks and never knows a socket.
 */
#include "cmd_client.h"

#include <inttypes.h>
#include <string.h>

#include "pubsub.h"
#include "user.h"

enum { PAUSE_MAX_MS = 24 * 60 * 60 * 1000 };

/* ---- switches ---- */

/* 1 or 0, or -1 when an error was answered. */
static int parse_on_off(struct session *s, const struct resp_arg *word)
{
    if (cmd_word_is(word, "ON"))
        return 1;
    if (cmd_word_is(word, "OFF"))
        return 0;
    cmd_reply_syntax(s);
    return -1;
}

void cmd_client_no_evict(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    int on = parse_on_off(s, &argv[2]);

    (void)argc, (void)now_ms;
    if (on < 0)
        return;
    s->no_evict = on;
    cmd_reply_ok(s);
}

void cmd_client_no_touch(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    int on = parse_on_off(s, &argv[2]);

    (void)argc, (void)now_ms;
    if (on < 0)
        return;
    s->no_touch = on;
    cmd_reply_ok(s);
}

void cmd_client_tell(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    int on = parse_on_off(s, &argv[2]);

    (void)argc, (void)now_ms;
    if (on < 0)
        return;
    s->tell = on;
    cmd_reply_ok(s);
}

void cmd_client_reply(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)now_ms;
    if (cmd_word_is(&argv[2], "ON"))
        cmd_reply_ok(s);
    else if (cmd_word_is(&argv[2], "OFF") || cmd_word_is(&argv[2], "SKIP"))
        cmd_reply_error(
            s,
            "ERR CLIENT REPLY OFF and SKIP are not supported: a lock is only held by who was told");
    else
        cmd_reply_syntax(s);
}

void cmd_client_tracking(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)now_ms;
    if (cmd_word_is(&argv[2], "OFF"))
        cmd_reply_ok(s);
    else if (cmd_word_is(&argv[2], "ON"))
        cmd_reply_error(
            s, "ERR CLIENT TRACKING is not supported: holdfast has locks and no keys to track");
    else
        cmd_reply_syntax(s);
}

void cmd_client_pause(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    int64_t pause_ms;

    if (argc > 4)
        cmd_reply_syntax(s);
    else if (argc == 4 && !cmd_word_is(&argv[3], "WRITE") && !cmd_word_is(&argv[3], "ALL"))
        cmd_reply_error(s, "ERR CLIENT PAUSE mode must be WRITE or ALL");
    else if (util_parse_int(argv[2].ptr, argv[2].len, INT64_MIN, INT64_MAX, &pause_ms) != 0)
        cmd_reply_error(s, "ERR timeout is not an integer or out of range");
    else if (pause_ms < 0)
        cmd_reply_error(s, "ERR timeout is negative");
    else if (pause_ms > PAUSE_MAX_MS)
        cmd_reply_error(s, "ERR timeout is out of range: at most %d ms", PAUSE_MAX_MS);
    else {
        /* Redis's WRITE: what changes nothing goes on. */
        unsigned classes =
            argc == 4 && cmd_word_is(&argv[3], "WRITE") ? CMD_LOCK : CMD_LOCK | CMD_INSPECT;
        cmd_hooks()->pause(cmd_hooks()->server, now_ms + pause_ms, classes);
        cmd_reply_ok(s);
    }
}

void cmd_client_unpause(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    cmd_hooks()->pause(cmd_hooks()->server, 0, 0);
    cmd_reply_ok(s);
}

/* ---- which connections ---- */

enum client_type { TYPE_ANY, TYPE_NORMAL, TYPE_PUBSUB, TYPE_NOBODY };

struct filter {
    const struct resp_arg *ids; /* any of them; checked numbers */
    int n_ids;                  /* 0: whatever its number */
    enum client_type type;
    const struct resp_arg *address, *local, *user; /* NULL: any */
    int64_t min_age_ms;
    const struct session *skip; /* NULL: nobody */
    int64_t now_ms;
};

static bool text_is(const struct resp_arg *arg, const char *text)
{
    return arg->len == strlen(text) && memcmp(arg->ptr, text, arg->len) == 0;
}

static const char *user_name_of(const struct session *s)
{
    return s->user ? s->user->name : users_active() ? "" : "default";
}

static bool id_fits(const struct filter *f, uint64_t id)
{
    for (int i = 0; i < f->n_ids; i++) {
        int64_t n;
        if (util_parse_int(f->ids[i].ptr, f->ids[i].len, 1, INT64_MAX, &n) == 0 &&
            (uint64_t)n == id)
            return true;
    }
    return f->n_ids == 0;
}

static bool filter_fits(const struct filter *f, struct session *s)
{
    enum client_type type = s->n_subscriptions > 0 ? TYPE_PUBSUB : TYPE_NORMAL;

    return s != f->skip && id_fits(f, s->id) && (f->type == TYPE_ANY || f->type == type) &&
           (f->address == NULL || text_is(f->address, cmd_hooks()->peer(s))) &&
           (f->local == NULL || text_is(f->local, cmd_hooks()->local(s))) &&
           (f->user == NULL || text_is(f->user, user_name_of(s))) &&
           f->now_ms - s->created_ms >= f->min_age_ms;
}

static int parse_type(struct session *s, const struct resp_arg *word, enum client_type *type)
{
    if (cmd_word_is(word, "NORMAL"))
        *type = TYPE_NORMAL;
    else if (cmd_word_is(word, "PUBSUB"))
        *type = TYPE_PUBSUB;
    else if (cmd_word_is(word, "MASTER") || cmd_word_is(word, "REPLICA") ||
             cmd_word_is(word, "SLAVE"))
        *type = TYPE_NOBODY;
    else {
        cmd_reply_error(s, "ERR Unknown client type '%.*s'", CMD_ARG(word));
        return -1;
    }
    return 0;
}

/* ---- LIST, INFO ---- */

static void append_flags(struct buf *text, const struct session *s)
{
    char flags[8];
    size_t n = 0;

    if (s->monitor)
        flags[n++] = 'O';
    if (s->n_subscriptions > 0)
        flags[n++] = 'P';
    if (session_is_blocked(s))
        flags[n++] = 'b';
    if (s->closing)
        flags[n++] = 'c';
    if (s->multi)
        flags[n++] = 'x';
    if (s->no_evict)
        flags[n++] = 'e';
    if (s->no_touch)
        flags[n++] = 'T';
    if (n == 0)
        flags[n++] = 'N';
    buf_append(text, flags, n);
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* Redis's fields, with what there is none of at 0, and ours behind them. */
static void append_line(struct buf *text, struct session *s, int64_t now_ms)
{
    const struct cmd_hooks *hooks = cmd_hooks();
    size_t out_len = hooks->output_len(s);

    buf_printf(text, "id=%" PRIu64 " addr=%s laddr=%s fd=%d name=%s", s->id, hooks->peer(s),
               hooks->local(s), hooks->fd(s), or_empty(s->name));
    buf_printf(text, " age=%" PRId64 " idle=%" PRId64 " flags=", (now_ms - s->created_ms) / 1000,
               (now_ms - s->last_ms) / 1000);
    append_flags(text, s);
    buf_printf(text, " db=0 sub=%" PRIu32 " psub=%" PRIu32 " ssub=0 multi=%d",
               pubsub_count_session(s, false), pubsub_count_session(s, true), s->multi ? 0 : -1);
    buf_printf(text,
               " qbuf=%zu qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=%zu oll=0 omem=%zu "
               "tot-mem=%zu",
               hooks->input_len(s), out_len, out_len,
               sizeof(*s) + hooks->input_len(s) + out_len + s->held_len);
    buf_printf(text, " events=%s cmd=%s user=%s redir=-1 resp=%d lib-name=%s lib-ver=%s",
               out_len > 0 ? "rw" : "r", s->n_commands > 0 ? cmd_full_name(s->last_cmd) : "NULL",
               user_name_of(s), s->proto, or_empty(s->lib_name), or_empty(s->lib_ver));
    buf_printf(
        text, " tot-cmds=%" PRId64 " locks=%" PRIu32 " in-flight=%" PRIu32 " waiting=%" PRIu32 "\n",
        s->n_commands, s->n_holds, s->n_requests, s->n_parked);
}

struct listing {
    struct buf text;
    struct filter filter;
};

static void on_list(struct session *s, void *arg)
{
    struct listing *listing = arg;

    if (filter_fits(&listing->filter, s))
        append_line(&listing->text, s, listing->filter.now_ms);
}

static void reply_listing(struct session *s, struct listing *listing)
{
    struct resp_writer w = session_reply(s);

    resp_verbatim(&w, "txt", buf_head(&listing->text), buf_len(&listing->text));
    session_reply_end(s);
    buf_fini(&listing->text);
}

static int check_ids(struct session *s, int n, const struct resp_arg *ids)
{
    for (int i = 0; i < n; i++) {
        int64_t id;
        if (util_parse_int(ids[i].ptr, ids[i].len, INT64_MIN, INT64_MAX, &id) != 0) {
            cmd_reply_error(s, "ERR Invalid client ID");
            return -1;
        }
    }
    return 0;
}

void cmd_client_list(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct listing listing = {.filter = {.now_ms = now_ms}};

    if (argc == 4 && cmd_word_is(&argv[2], "TYPE")) {
        if (parse_type(s, &argv[3], &listing.filter.type) != 0)
            return;
    } else if (argc > 3 && cmd_word_is(&argv[2], "ID")) {
        if (check_ids(s, argc - 3, argv + 3) != 0)
            return;
        listing.filter.ids = argv + 3;
        listing.filter.n_ids = argc - 3;
    } else if (argc != 2) {
        cmd_reply_syntax(s);
        return;
    }
    cmd_hooks()->each_client(cmd_hooks()->server, on_list, &listing);
    reply_listing(s, &listing);
}

void cmd_client_info(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct listing listing = {.filter = {.now_ms = now_ms}};

    (void)argc, (void)argv;
    append_line(&listing.text, s, now_ms);
    reply_listing(s, &listing);
}

/* ---- KILL ---- */

struct killing {
    struct filter filter;
    int64_t n;
};

static void on_kill(struct session *s, void *arg)
{
    struct killing *killing = arg;

    if (!filter_fits(&killing->filter, s))
        return;
    cmd_hooks()->kill_client(cmd_hooks()->server, s, "CLIENT KILL");
    killing->n++;
}

/* One pair of words of the new form; -1: an error was answered. */
static int parse_kill(struct session *s, const struct resp_arg *option,
                      const struct resp_arg *value, struct filter *f)
{
    int64_t n;

    if (cmd_word_is(option, "ID")) {
        if (util_parse_int(value->ptr, value->len, 1, INT64_MAX, &n) != 0) {
            cmd_reply_error(s, "ERR client-id should be greater than 0");
            return -1;
        }
        f->ids = value;
        f->n_ids = 1;
    } else if (cmd_word_is(option, "TYPE")) {
        return parse_type(s, value, &f->type);
    } else if (cmd_word_is(option, "ADDR")) {
        f->address = value;
    } else if (cmd_word_is(option, "LADDR")) {
        f->local = value;
    } else if (cmd_word_is(option, "USER")) {
        f->user = value;
        if (users_active() ? user_find(value->ptr, value->len) == NULL
                           : !text_is(value, "default")) {
            cmd_reply_error(s, "ERR No such user '%.*s'", CMD_ARG(value));
            return -1;
        }
    } else if (cmd_word_is(option, "MAXAGE")) {
        if (util_parse_int(value->ptr, value->len, 1, INT64_MAX / 1000, &n) != 0) {
            cmd_reply_error(s, "ERR maxage is not an integer or out of range");
            return -1;
        }
        f->min_age_ms = n * 1000;
    } else if (cmd_word_is(option, "SKIPME") && cmd_word_is(value, "YES")) {
        f->skip = s;
    } else if (cmd_word_is(option, "SKIPME") && cmd_word_is(value, "NO")) {
        f->skip = NULL;
    } else {
        cmd_reply_syntax(s);
        return -1;
    }
    return 0;
}

void cmd_client_kill(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct killing killing = {.filter = {.now_ms = now_ms}};
    bool by_address = argc == 3;

    if (by_address) {
        killing.filter.address = &argv[2];
    } else if (argc % 2 != 0) {
        cmd_reply_syntax(s);
        return;
    } else {
        killing.filter.skip = s;
        for (int i = 2; i < argc; i += 2)
            if (parse_kill(s, &argv[i], &argv[i + 1], &killing.filter) != 0)
                return;
    }
    cmd_hooks()->each_client(cmd_hooks()->server, on_kill, &killing);
    if (!by_address)
        cmd_reply_int(s, killing.n);
    else if (killing.n == 0)
        cmd_reply_error(s, "ERR No such client");
    else
        cmd_reply_ok(s);
}
