/*
 * Who a master is, whether it may be used, and how it is joined.
 *
 *   greet:        AUTH, SELECT, CLIENT...; then as greet_again
 *   greet_again:  INFO -> judge -> CLIENT KILL the old link, SCRIPT LOAD all -> join
 *
 * greet begins a link; greet_again is for when the data or scripts of the server are gone. Knows
 * the texts of Redis' answers to these; nothing about items. What INFO must say for a master to be
 * used is in master_judge.c.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/master_private.h"

/* ---- asking ---- */

void master_ask_words(struct master *m, enum master_ask_kind kind, const char *words)
{
    master_batch_add(m, kind);
    request_words(&m->out, words);
}

static void ask_identity(struct master *m)
{
    m->facts = (struct master_facts){0};
    master_ask_words(m, MASTER_ASK_INFO, "INFO");
}

static void ask_auth(struct master *m)
{
    master_batch_add(m, MASTER_ASK_AUTH);
    request_array(&m->out, m->user ? 3 : 2);
    request_text(&m->out, "AUTH", 4);
    if (m->user)
        request_str(&m->out, m->user);
    request_str(&m->out, m->password);
}

static void ask_setname(struct master *m)
{
    const char *name = m->setup.client_name ? m->setup.client_name : "holdfast";

    master_batch_add(m, MASTER_ASK_OPTIONAL);
    request_array(&m->out, 3);
    request_text(&m->out, "CLIENT", 6);
    request_text(&m->out, "SETNAME", 7);
    request_str(&m->out, name);
}

void master_greet(struct master *m)
{
    char words[64];

    if (m->password)
        ask_auth(m);
    if (m->db > 0) {
        snprintf(words, sizeof words, "SELECT %d", m->db);
        master_ask_words(m, MASTER_ASK_SELECT, words);
    }
    ask_setname(m);
    master_ask_words(m, MASTER_ASK_CLIENT_ID, "CLIENT ID");
    master_ask_words(m, MASTER_ASK_OPTIONAL, "CLIENT NO-EVICT on");
    ask_identity(m);
    master_flush(m, m->heard_ms);
}

void master_greet_again(struct master *m)
{
    master_move(m, MASTER_GREETING);
    ask_identity(m);
    master_flush(m, m->heard_ms);
}

static void load_scripts(struct master *m)
{
    master_move(m, MASTER_LOADING);
    m->loads_left = SCRIPT_COUNT;
    settings_digest(m->setup.settings ? m->setup.settings : "", m->digest);
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        char *text = script_text((enum script)i, m->run_id, m->digest);
        master_batch_add(m, MASTER_ASK_LOAD)->script = (uint8_t)i;
        request_array(&m->out, 3);
        request_text(&m->out, "SCRIPT", 6);
        request_text(&m->out, "LOAD", 4);
        request_str(&m->out, text);
        free(text);
    }
    master_flush(m, m->heard_ms);
}

/* ---- errors ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* It answered `what` by an error. What passes by itself only ends the link, the rest is for people.
 */
int master_give_up(struct master *m, const char *what)
{
    const struct reply_value *v = m->reply.values;
    const char *text = reply_text(&m->reply, v);
    char words[REPLY_WORDS_MAX];

    m->status.errors++;
    reply_words(words, sizeof words, text, v->len);
    if (begins(text, "LOADING"))
        master_drop(m, "it is still loading its data");
    else if (begins(text, "BUSY") || begins(text, "MASTERDOWN") || begins(text, "NOSCRIPT"))
        master_drop(m, "%s failed: %s", what, words);
    else if (begins(text, "NOAUTH"))
        master_refuse(m, "it asks for a password: give it one in [masters] (%s)", words);
    else if (begins(text, "WRONGPASS") || begins(text, "ERR invalid password"))
        master_refuse(m, "it does not accept the password: set the right one in [masters] (%s)",
                      words);
    else
        master_refuse(m, "%s failed: %s", what, words);
    return 0;
}

static bool is_error(const struct master *m)
{
    return m->reply.values[0].type == REPLY_ERROR;
}

/* ---- who it is ---- */

static void kill_old_link(struct master *m)
{
    char words[64];

    snprintf(words, sizeof words, "CLIENT KILL ID %" PRId64, m->old_client_id);
    master_ask_words(m, MASTER_ASK_OPTIONAL, words);
    m->old_client_id = 0;
}

/* It has said all that we want to know. */
static void judge(struct master *m)
{
    const struct master_facts *f = &m->facts;

    if (f->loading) {
        master_drop(m, "it is still loading its data");
        return;
    }
    if (!master_judge(m))
        return;
    if (strcmp(m->run_id, f->run_id) == 0) {
        /* What still stands in the buffers of the old link must not run any more. */
        if (m->old_client_id > 0)
            kill_old_link(m);
    } else {
        if (*m->run_id) {
            m->status.restarts++;
            log_warn(m->object, "restarted run_id=%s", f->run_id);
        }
        strcpy(m->run_id, f->run_id);
        m->old_client_id = 0;
        m->stranger = false;
        m->clock.known = false;
        m->suspend_owed_ms = 0;
    }
    if (m->setup.on_look)
        master_look(m);
    else
        load_scripts(m);
}

static int on_info(struct master *m)
{
    const struct reply_value *v = m->reply.values;

    if (is_error(m))
        return master_give_up(m, "INFO");
    if (v->type != REPLY_TEXT)
        return -1;
    master_take_info(&m->facts, reply_text(&m->reply, v), v->len);
    m->judged_ms = m->heard_ms;
    judge(m);
    return 0;
}

/* ---- the other replies ---- */

static int on_status(struct master *m, const char *what)
{
    if (is_error(m))
        return master_give_up(m, what);
    return reply_is_text(&m->reply, m->reply.values, "OK") ? 0 : -1;
}

/* What we can do without may fail; but this is how Redis turns a whole connection away. */
static int on_optional(struct master *m)
{
    const struct reply_value *v = m->reply.values;

    if (reply_is_error(&m->reply, v, "DENIED") ||
        (is_error(m) && begins(reply_text(&m->reply, v), "ERR max number of clients")))
        return master_give_up(m, "connecting");
    return 0;
}

static int on_client_id(struct master *m)
{
    const struct reply_value *v = m->reply.values;

    m->client_id = v->type == REPLY_INTEGER ? v->integer : 0;
    return 0;
}

static bool is_digest(const char *text, size_t len)
{
    return len == MASTER_DIGEST_LEN && strspn(text, "0123456789abcdef") == MASTER_DIGEST_LEN;
}

static int on_load(struct master *m, enum script script)
{
    const struct reply_value *v = m->reply.values;

    if (is_error(m))
        return master_give_up(m, "SCRIPT LOAD");
    if (v->type != REPLY_TEXT || !is_digest(reply_text(&m->reply, v), v->len))
        return -1;
    m->head_len[script] =
        snprintf(m->head[script], sizeof m->head[script], "$7\r\nEVALSHA\r\n$%d\r\n%s\r\n",
                 MASTER_DIGEST_LEN, reply_text(&m->reply, v));
    if (--m->loads_left == 0)
        master_join(m);
    return 0;
}

int master_greet_reply(struct master *m, const struct master_batch *b, int64_t now_us)
{
    switch ((enum master_ask_kind)b->kind) {
    case MASTER_ASK_AUTH:
        return on_status(m, "AUTH");
    case MASTER_ASK_SELECT:
        return on_status(m, "SELECT");
    case MASTER_ASK_CLIENT_ID:
        return on_client_id(m);
    case MASTER_ASK_INFO:
        return on_info(m);
    case MASTER_ASK_REVIEW:
        return master_on_review(m);
    case MASTER_ASK_LOAD:
        return on_load(m, b->script);
    case MASTER_ASK_JOIN:
        return master_on_join(m, b->sent_us, now_us);
    case MASTER_ASK_HIGH:
        return master_on_high(m, b->sent_us);
    case MASTER_ASK_ACTIVATE:
        return master_on_activate(m, now_us);
    case MASTER_ASK_SUSPEND:
        return master_on_suspend(m, now_us);
    case MASTER_ASK_TIME:
        return master_on_time(m, b->sent_us, now_us);
    case MASTER_ASK_MARK:
        return master_on_mark(m);
    case MASTER_ASK_OPTIONAL:
        return on_optional(m);
    case MASTER_ASK_LOOK_FSYNC:
    case MASTER_ASK_LOOK_MARK:
    case MASTER_ASK_LOOK_SCRIPTS:
    case MASTER_ASK_LOOK_CHANNELS:
    case MASTER_ASK_LOOK_TIME:
        return master_on_look(m, b, now_us);
    case MASTER_ASK_ITEMS:
    case MASTER_ASK_KINDS:
        break;
    }
    return 0;
}
