/*
 * Commands of Redis that are served on locks: words to a call of dropin/call, its result to a
 * reply. What a command does is decided there, by a run over what stands with the masters; here is
 * only what must not come that far.
 *
 * The call is given the words as the client said them and its database; rights, MONITOR and the
 * slow log have seen the names of locks (names.c).
 */
#include "dropin/call.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "command/command_private.h"
#include "command/handlers.h"
#include "conf/conf.h"
#include "dropin/cage.h"
#include "dropin/probe.h"
#include "session/user.h"
#include "stats/stats.h"

enum {
    NAME_INSTRUCTIONS = 20000,  /* of each name but the first: a guess, an item of the exchange */
    SCRIPT_INSTRUCTIONS = 8000, /* of a usual script, more than of a plain command or a short one */
    COMPILE_INSTRUCTIONS = 40000,
    SHA1_INSTRUCTIONS = 20, /* of a byte of a body */
    SHORT_STEPS = 128,      /* a compare-and-delete takes some 80 */
    USUAL_STEPS = 500,
    STEP_INSTRUCTIONS = 2000, /* of one step, when it is about long texts */
    CHECK_INSTRUCTIONS = 20000000
};

bool cmd_dropin_is_on(void)
{
    return cmd_hooks()->dropin != NULL && cmd_hooks()->conf->drop_in;
}

void cmd_hurry(struct session *s, int64_t now_ms)
{
    dropin_hurry(s, now_ms);
}

/* ---- replies ---- */

/* Counts the error that a reply is, if it is one. */
static void note_reply_error(struct request *request, const struct store_reply *reply)
{
    char text[64];

    if (reply == NULL || reply->nodes[0].kind != STORE_ERROR)
        return;
    const struct store_node *node = &reply->nodes[0];
    snprintf(text, sizeof(text), "%.*s", (int)(node->len < sizeof(text) ? node->len : sizeof(text)),
             store_text(reply, node));
    stats_error(text);
    request->failed = true;
}

static void write_call(struct request *request, struct resp_writer *w, int64_t now_ms)
{
    const struct dropin_call *call = dropin_call_of(request);

    (void)now_ms;
    note_reply_error(request, dropin_reply(call));
    dropin_call_write(call, w);
}

static void abandon(struct request *request, int64_t now_ms)
{
    (void)now_ms;
    dropin_call_abandon(dropin_call_of(request));
}

static void free_call(struct request *request)
{
    dropin_call_free(dropin_call_of(request));
}

static const struct request_type call_type = {
    .write = write_call, .abandon = abandon, .free = free_call};

void cmd_dropin_ask(struct cmd_call *c, struct dropin_call *call)
{
    struct request *request = dropin_request(call);

    request->type = &call_type;
    if (users_active() && !(c->session->user->allow & CONF_ALLOW_INSPECT))
        dropin_call_hide_owners(call);
    session_ask(c->session, request);
    int n_names = dropin_call_names(call);
    if (n_names > 1)
        cmd_charge((n_names - 1) * (int64_t)NAME_INSTRUCTIONS);
    dropin_submit(call, c->now_ms);
}

/* ---- plain commands ---- */

void cmd_dropin_command(struct cmd_call *c)
{
    int first, end = cmd_find_names(c->cmd, c->argc, c->argv, &first);
    const struct dropin_command command = {c->said, c->argc, first, end - first, 1};

    if (c->session->multi)
        cmd_multi_queue(c, &command);
    else
        cmd_dropin_ask(c, dropin_call_command(cmd_hooks()->dropin, c->session->db, &command));
}

/* Returns how many words an option of SET has; 0: it is none. */
static int set_option_words(const struct resp_arg *word)
{
    static const struct {
        const char *word;
        int n;
    } options[] = {{"GET", 1},  {"KEEPTTL", 1}, {"EX", 2},   {"PX", 2},
                   {"EXAT", 2}, {"PXAT", 2},    {"IFNE", 2}, {NULL, 0}};
    int i = 0;

    while (options[i].word != NULL && !cmd_word_is(word, options[i].word))
        i++;
    return options[i].n;
}

/* Returns whether a SET would put its value there whoever has the lock. One with a mistake would
 * not: it is answered as any. */
static bool overwrites(const struct cmd_call *c)
{
    for (int i = 3; i < c->argc;) {
        int n = set_option_words(&c->argv[i]);
        if (n == 0 || i + n > c->argc)
            return false;
        i += n;
    }
    return true;
}

void cmd_dropin_set(struct cmd_call *c)
{
    if (!overwrites(c)) {
        cmd_dropin_command(c);
        return;
    }
    cmd_multi_spoil(c->session);
    cmd_reply_error(c,
                    "ERR '%.*s' was not set: without NX a SET takes a lock from whoever holds it; "
                    "say SET name value NX PX ms to take it, XX or IFEQ value to change what is "
                    "held (holdfast keeps locks, not data)",
                    CMD_ARG(&c->argv[1]));
}

/* ---- scripts ---- */

/* Reads word `at`, numkeys, and what follows; -1: an error was answered. */
static int read_named_script(struct cmd_call *c, int at, struct dropin_script *script)
{
    int n_words = c->argc - at - 1;
    int64_t n;

    if (!cmd_number(c, &c->said[at], INT64_MIN, INT64_MAX, &n,
                    "ERR value is not an integer or out of range"))
        return -1;
    if (n > n_words) {
        cmd_reply_error(c, "ERR Number of keys can't be greater than number of args");
        return -1;
    }
    if (n < 0) {
        cmd_reply_error(c, "ERR Number of keys can't be negative");
        return -1;
    }
    const char *name = c->cmd->name;
    *script = (struct dropin_script){.keys = &c->said[at + 1],
                                     .n_keys = (int)n,
                                     .args = &c->said[at + 1 + n],
                                     .n_args = n_words - (int)n,
                                     .read_only = name[strlen(name) - 1] == 'O'};
    return 0;
}

static void run_script(struct cmd_call *c, struct dropin_call *call)
{
    cmd_dropin_ask(c, call);
    long steps = dropin_steps(cmd_hooks()->dropin);
    if (steps > SHORT_STEPS)
        cmd_charge(SCRIPT_INSTRUCTIONS);
    if (steps > USUAL_STEPS)
        cmd_charge(steps * (int64_t)STEP_INSTRUCTIONS);
}

void cmd_dropin_eval(struct cmd_call *c)
{
    struct dropin_script script;

    if (read_named_script(c, 2, &script) == 0)
        run_script(c, dropin_call_eval(cmd_hooks()->dropin, c->session->db, &c->said[1], &script));
    cmd_charge(SHA1_INSTRUCTIONS * (int64_t)c->said[1].len);
}

void cmd_dropin_evalsha(struct cmd_call *c)
{
    struct dropin_script script;

    if (c->said[1].len != CAGE_SHA1)
        cmd_reply_error(c, "NOSCRIPT No matching script. Please use EVAL.");
    else if (read_named_script(c, 2, &script) == 0)
        run_script(c,
                   dropin_call_evalsha(cmd_hooks()->dropin, c->session->db, &c->said[1], &script));
}

void cmd_dropin_script_load(struct cmd_call *c)
{
    struct store_reply reply = {0};

    dropin_script_load(cmd_hooks()->dropin, &c->argv[2], &reply);
    store_reply_write(&reply, cmd_reply(c));
    c->failed = reply.nodes[0].kind == STORE_ERROR;
    store_reply_fini(&reply);
    cmd_charge(COMPILE_INSTRUCTIONS);
}

void cmd_dropin_script_exists(struct cmd_call *c)
{
    struct resp_writer *w = cmd_reply(c);

    resp_array(w, (size_t)c->argc - 2);
    for (int i = 2; i < c->argc; i++)
        resp_int(w, dropin_script_exists(cmd_hooks()->dropin, &c->argv[i]));
}

void cmd_dropin_script_flush(struct cmd_call *c)
{
    if (c->argc > 3 ||
        (c->argc == 3 && !cmd_word_is(&c->argv[2], "SYNC") && !cmd_word_is(&c->argv[2], "ASYNC"))) {
        cmd_reply_error(c, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    dropin_script_flush(cmd_hooks()->dropin);
    cmd_reply_ok(c);
}

struct table {
    struct buf rows;
    size_t n;
};

static void write_row(void *arg, const struct probe_row *row)
{
    struct table *table = arg;
    struct resp_writer w = {&table->rows, 2};

    resp_array(&w, 3);
    resp_str(&w, row->state);
    resp_str(&w, row->does);
    resp_str(&w, row->reply);
    table->n++;
}

void cmd_dropin_script_check(struct cmd_call *c)
{
    struct dropin_script script;
    struct table table = {.n = 0};
    struct store_reply error = {0};

    if (read_named_script(c, 3, &script) != 0)
        return;
    if (script.n_keys > KEYS_MAX || cmd_name_twice(script.keys, script.n_keys)) {
        cmd_reply_error(c, "ERR a script has at most %d keys, each of another name", KEYS_MAX);
        return;
    }
    dropin_script_check(cmd_hooks()->dropin, &c->said[2], &script, write_row, &table, &error);
    cmd_charge(CHECK_INSTRUCTIONS);
    if (error.n_nodes > 0) {
        store_reply_write(&error, cmd_reply(c));
        c->failed = true;
    } else {
        cmd_reply_elements(c, table.n, &table.rows);
    }
    store_reply_fini(&error);
    buf_fini(&table.rows);
}
