/*
 * CLIENT. Which connections a sub-command means is a struct client_filter, the same for LIST and
 * KILL.
 * It acts on connections through hooks and never knows a socket.
 */
#include "command/client.h"

#include <inttypes.h>
#include <string.h>

#include "command/client_private.h"
#include "session/user.h"

enum { PAUSE_MAX_MS = 24 * 60 * 60 * 1000 };

/* ---- switches ---- */

/* Sets a switch by ON or OFF, and answers. */
static void set_switch(struct session *s, bool *to, const struct resp_arg *word)
{
    if (!cmd_word_is(word, "ON") && !cmd_word_is(word, "OFF")) {
        cmd_reply_syntax(s);
        return;
    }
    *to = cmd_word_is(word, "ON");
    cmd_reply_ok(s);
}

void cmd_client_no_evict(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)now_ms;
    set_switch(s, &s->no_evict, &argv[2]);
}

void cmd_client_no_touch(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)now_ms;
    set_switch(s, &s->no_touch, &argv[2]);
}

void cmd_client_tell(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)now_ms;
    set_switch(s, &s->tell, &argv[2]);
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

static bool text_is(const struct resp_arg *arg, const char *text)
{
    return arg->len == strlen(text) && memcmp(arg->ptr, text, arg->len) == 0;
}

const char *cmd_client_user(const struct session *s)
{
    return s->user ? s->user->name : users_active() ? "" : "default";
}

static bool id_fits(const struct client_filter *f, uint64_t id)
{
    for (int i = 0; i < f->n_ids; i++)
        if ((uint64_t)f->ids[i] == id)
            return true;
    return f->n_ids == 0;
}

bool cmd_client_fits(const struct client_filter *f, struct session *s)
{
    enum client_type type = s->n_subscriptions > 0 ? CLIENT_TYPE_PUBSUB : CLIENT_TYPE_NORMAL;

    return s != f->skip && id_fits(f, s->id) && (f->type == CLIENT_TYPE_ANY || f->type == type) &&
           (f->address == NULL || text_is(f->address, cmd_hooks()->peer(s))) &&
           (f->local == NULL || text_is(f->local, cmd_hooks()->local(s))) &&
           (f->user == NULL || text_is(f->user, cmd_client_user(s))) &&
           f->now_ms - s->created_ms >= f->min_age_ms;
}

int cmd_client_type(struct session *s, const struct resp_arg *word, enum client_type *type)
{
    if (cmd_word_is(word, "NORMAL"))
        *type = CLIENT_TYPE_NORMAL;
    else if (cmd_word_is(word, "PUBSUB"))
        *type = CLIENT_TYPE_PUBSUB;
    else if (cmd_word_is(word, "MASTER") || cmd_word_is(word, "REPLICA") ||
             cmd_word_is(word, "SLAVE"))
        *type = CLIENT_TYPE_NOBODY;
    else {
        cmd_reply_error(s, "ERR Unknown client type '%.*s'", CMD_ARG(word));
        return -1;
    }
    return 0;
}

/* ---- KILL ---- */

enum { KILL_INSTRUCTIONS = 2000 }; /* each; and to look at one takes some 100 */

struct killing {
    struct client_filter filter;
    int64_t id;
    int64_t n;
};

static void on_kill(struct session *s, void *arg)
{
    struct killing *killing = arg;

    cmd_charge(100);
    if (!cmd_client_fits(&killing->filter, s))
        return;
    cmd_hooks()->kill_client(cmd_hooks()->server, s, "CLIENT KILL");
    killing->n++;
    cmd_charge(KILL_INSTRUCTIONS);
}

/* One pair of words of the new form; -1: an error was answered. */
static int parse_kill(struct session *s, const struct resp_arg *option,
                      const struct resp_arg *value, struct client_filter *f, int64_t *id)
{
    int64_t n;

    if (cmd_word_is(option, "ID")) {
        if (util_parse_int(value->ptr, value->len, 1, INT64_MAX, &n) != 0) {
            cmd_reply_error(s, "ERR client-id should be greater than 0");
            return -1;
        }
        *id = n;
        f->ids = id;
        f->n_ids = 1;
    } else if (cmd_word_is(option, "TYPE")) {
        return cmd_client_type(s, value, &f->type);
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
            if (parse_kill(s, &argv[i], &argv[i + 1], &killing.filter, &killing.id) != 0)
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
