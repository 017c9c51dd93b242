/*
 * CLIENT. Which connections a sub-command means is a struct client_filter, the same for LIST and
 * KILL.
 * It acts on connections through hooks and never knows a socket.
 */
#include "command/handlers.h"

#include <string.h>

#include "command/client_private.h"
#include "session/user.h"

enum { PAUSE_MAX_MS = 24 * 60 * 60 * 1000 };

/* ---- switches ---- */

/* Sets a switch by ON or OFF, and answers. */
static void set_switch(struct cmd_call *c, bool *to, const struct resp_arg *word)
{
    if (!cmd_word_is(word, "ON") && !cmd_word_is(word, "OFF")) {
        cmd_reply_syntax(c);
        return;
    }
    *to = cmd_word_is(word, "ON");
    cmd_reply_ok(c);
}

void cmd_client_no_evict(struct cmd_call *c)
{
    set_switch(c, &c->session->no_evict, &c->argv[2]);
}

void cmd_client_no_touch(struct cmd_call *c)
{
    set_switch(c, &c->session->no_touch, &c->argv[2]);
}

void cmd_client_tell(struct cmd_call *c)
{
    set_switch(c, &c->session->tell, &c->argv[2]);
}

void cmd_client_reply(struct cmd_call *c)
{
    if (cmd_word_is(&c->argv[2], "ON"))
        cmd_reply_ok(c);
    else if (cmd_word_is(&c->argv[2], "OFF") || cmd_word_is(&c->argv[2], "SKIP"))
        cmd_reply_error(
            c,
            "ERR CLIENT REPLY OFF and SKIP are not supported: a lock is only held by who was told");
    else
        cmd_reply_syntax(c);
}

void cmd_client_tracking(struct cmd_call *c)
{
    if (cmd_word_is(&c->argv[2], "OFF"))
        cmd_reply_ok(c);
    else if (cmd_word_is(&c->argv[2], "ON"))
        cmd_reply_error(
            c, "ERR CLIENT TRACKING is not supported: holdfast has locks and no keys to track");
    else
        cmd_reply_syntax(c);
}

void cmd_client_pause(struct cmd_call *c)
{
    int64_t pause_ms;

    if (c->argc > 4)
        cmd_reply_syntax(c);
    else if (c->argc == 4 && !cmd_word_is(&c->argv[3], "WRITE") && !cmd_word_is(&c->argv[3], "ALL"))
        cmd_reply_error(c, "ERR CLIENT PAUSE mode must be WRITE or ALL");
    else if (util_parse_int(c->argv[2].ptr, c->argv[2].len, INT64_MIN, INT64_MAX, &pause_ms) != 0)
        cmd_reply_error(c, "ERR timeout is not an integer or out of range");
    else if (pause_ms < 0)
        cmd_reply_error(c, "ERR timeout is negative");
    else if (pause_ms > PAUSE_MAX_MS)
        cmd_reply_error(c, "ERR timeout is out of range: at most %d ms", PAUSE_MAX_MS);
    else {
        /* Redis's WRITE: what changes nothing goes on. */
        unsigned classes = CMD_LOCK | CMD_DROP_IN |
                           (c->argc == 4 && cmd_word_is(&c->argv[3], "WRITE") ? 0 : CMD_INSPECT);
        cmd_hooks()->pause(cmd_hooks()->clients, c->now_ms + pause_ms, classes);
        cmd_reply_ok(c);
    }
}

void cmd_client_unpause(struct cmd_call *c)
{
    cmd_hooks()->pause(cmd_hooks()->clients, 0, 0);
    cmd_reply_ok(c);
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

int cmd_client_type(struct cmd_call *c, const struct resp_arg *word, enum client_type *type)
{
    if (cmd_word_is(word, "NORMAL"))
        *type = CLIENT_TYPE_NORMAL;
    else if (cmd_word_is(word, "PUBSUB"))
        *type = CLIENT_TYPE_PUBSUB;
    else if (cmd_word_is(word, "MASTER") || cmd_word_is(word, "REPLICA") ||
             cmd_word_is(word, "SLAVE"))
        *type = CLIENT_TYPE_NOBODY;
    else {
        cmd_reply_error(c, "ERR Unknown client type '%.*s'", CMD_ARG(word));
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
    cmd_hooks()->kill_client(s, "CLIENT KILL");
    killing->n++;
    cmd_charge(KILL_INSTRUCTIONS);
}

/* One pair of words of the new form; -1: an error was answered. */
static int parse_kill(struct cmd_call *c, const struct resp_arg *option,
                      const struct resp_arg *value, struct client_filter *f, int64_t *id)
{
    int64_t n;

    if (cmd_word_is(option, "ID")) {
        if (!cmd_number(c, value, 1, INT64_MAX, id, "ERR client-id should be greater than 0"))
            return -1;
        f->ids = id;
        f->n_ids = 1;
    } else if (cmd_word_is(option, "TYPE")) {
        return cmd_client_type(c, value, &f->type);
    } else if (cmd_word_is(option, "ADDR")) {
        f->address = value;
    } else if (cmd_word_is(option, "LADDR")) {
        f->local = value;
    } else if (cmd_word_is(option, "USER")) {
        f->user = value;
        if (users_active() ? user_find(value->ptr, value->len) == NULL
                           : !text_is(value, "default")) {
            cmd_reply_error(c, "ERR No such user '%.*s'", CMD_ARG(value));
            return -1;
        }
    } else if (cmd_word_is(option, "MAXAGE")) {
        if (!cmd_number(c, value, 1, INT64_MAX / 1000, &n,
                        "ERR maxage is not an integer or out of range"))
            return -1;
        f->min_age_ms = n * 1000;
    } else if (cmd_word_is(option, "SKIPME") && cmd_word_is(value, "YES")) {
        f->skip = c->session;
    } else if (cmd_word_is(option, "SKIPME") && cmd_word_is(value, "NO")) {
        f->skip = NULL;
    } else {
        cmd_reply_syntax(c);
        return -1;
    }
    return 0;
}

void cmd_client_kill(struct cmd_call *c)
{
    struct killing killing = {.filter = {.now_ms = c->now_ms}};
    bool by_address = c->argc == 3;

    if (by_address) {
        killing.filter.address = &c->argv[2];
    } else if (c->argc % 2 != 0) {
        cmd_reply_syntax(c);
        return;
    } else {
        killing.filter.skip = c->session;
        for (int i = 2; i < c->argc; i += 2)
            if (parse_kill(c, &c->argv[i], &c->argv[i + 1], &killing.filter, &killing.id) != 0)
                return;
    }
    cmd_hooks()->each_client(cmd_hooks()->clients, on_kill, &killing);
    if (!by_address)
        cmd_reply_int(c, killing.n);
    else if (killing.n == 0)
        cmd_reply_error(c, "ERR No such client");
    else
        cmd_reply_ok(c);
}
