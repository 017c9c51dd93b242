/*
 * Who a master is, whether it may be used, and how it is joined.
 *
 *   greet:        AUTH, SELECT, CLIENT...; then as greet_again
 *   greet_again:  INFO -> what it does not tell -> judge -> CLIENT KILL the old link, SCRIPT LOAD
 * all -> join
 *
 * greet begins a link; greet_again is for when the data or scripts of the server are gone. Knows
 * the texts of Redis' answers to these; nothing about items. What INFO must say for a master to be
 * used is in master_judge.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/master_private.h"

void master_ask_words(struct master *m, master_reply_fn on_reply, const char *words)
{
    master_batch_add(m, on_reply);
    request_words(&m->out, words);
}

/* ---- errors ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Ends the link because the master answered `what` by an error: to DOWN for errors that pass by
 * themselves, to REFUSED for those that people have to put right. Returns 0. */
int master_give_up(struct master *m, const char *what)
{
    const struct reply_value *v = m->reply->values;
    const char *text = reply_text(m->reply, v);
    char words[REPLY_WORDS_MAX];

    m->status.errors++;
    reply_words(words, sizeof words, text, v->len);
    if (master_said_elsewhere(m)) {
        master_turned_away(m, words);
        return 0;
    }
    if (begins(text, "LOADING"))
        master_drop(m, "it is still loading its data");
    else if (begins(text, "BUSY") || begins(text, "MASTERDOWN") || begins(text, "NOSCRIPT"))
        master_drop(m, "%s failed: %s", what, words);
    else if (begins(text, "NOAUTH"))
        master_refuse(m, "it asks for a password: give it one in [masters] (%s)", words);
    else if (begins(text, "WRONGPASS") || begins(text, "ERR invalid password"))
        master_refuse(m, "it does not accept the password: set the right one in [masters] (%s)",
                      words);
    else if (begins(text, "NOPERM"))
        master_refuse(m, "its user may not use %s: holdfast.ini(5) lists what it needs (%s)", what,
                      words);
    else if (begins(text, "ERR unknown command"))
        master_refuse(m, "%s is disabled or renamed there, and brokers need it (%s)", what, words);
    else
        master_refuse(m, "%s failed: %s", what, words);
    return 0;
}

/* ---- scripts ---- */

static int on_load(struct master *m)
{
    const struct reply_value *v = m->reply->values;

    if (master_said_error(m))
        return master_give_up(m, "SCRIPT LOAD");
    if (v->type != REPLY_TEXT || v->len != MASTER_DIGEST_LEN ||
        strspn(reply_text(m->reply, v), "0123456789abcdef") != MASTER_DIGEST_LEN)
        return -1;
    m->head_len[m->asked_script] =
        snprintf(m->head[m->asked_script], MASTER_HEAD_MAX, "$7\r\nEVALSHA\r\n$%d\r\n%s\r\n",
                 MASTER_DIGEST_LEN, reply_text(m->reply, v));
    if (--m->loads_left == 0)
        master_join(m);
    return 0;
}

static void load_scripts(struct master *m)
{
    master_move(m, MASTER_LOADING);
    m->loads_left = SCRIPT_COUNT;
    settings_digest(m->setup.settings ? m->setup.settings : "", m->digest);
    const struct script_place place = {.run_id = m->run_id,
                                       .settings = m->digest,
                                       .mirror_db = m->setup.mirror ? m->db : SCRIPT_NO_MIRROR,
                                       .in_partition = m->at[0]};
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        char *text = script_text((enum script)i, &place);
        master_batch_add(m, on_load)->script = (uint8_t)i;
        request_strings(&m->out, 3, (const char *const[]){"SCRIPT", "LOAD", text});
        free(text);
    }
    master_flush(m, m->heard_ms);
}

/* ---- who it is ---- */

/* Takes the answer to a request that may fail; but not the errors by which Redis turns the whole
 * connection away. */
static int on_optional(struct master *m)
{
    const struct reply_value *v = m->reply->values;

    if (reply_is_error(m->reply, v, "DENIED") ||
        (master_said_error(m) && begins(reply_text(m->reply, v), "ERR max number of clients")))
        return master_give_up(m, "connecting");
    return 0;
}

/* Decides by the facts of INFO how to go on: not at all, or by joining the master. */
static void judge(struct master *m)
{
    const struct master_facts *f = &m->facts;
    char words[64];

    if (f->loading) {
        master_drop(m, "it is still loading its data");
        return;
    }
    if (master_judge(m) != 0)
        return;
    master_note_unchecked(m);
    if (strcmp(m->run_id, f->run_id) == 0) {
        /* Keeps requests that are still in the buffers of the old link from being run. */
        if (m->old_client_id > 0 && m->old_client_id != m->link->client_id) {
            snprintf(words, sizeof words, "CLIENT KILL ID %" PRId64, m->old_client_id);
            master_ask_words(m, on_optional, words);
        }
    } else {
        if (*m->run_id) {
            m->status.restarts++;
            log_warn(m->object, "restarted run_id=%s", f->run_id);
        }
        strcpy(m->run_id, f->run_id);
        m->stranger = false;
        m->clock.known = false;
        m->suspend_owed_ms = 0;
    }
    m->old_client_id = 0;
    if (m->setup.on_look)
        master_look(m);
    else
        load_scripts(m);
}

int master_take_facts(struct master *m)
{
    m->judged_ms = m->heard_ms;
    judge(m);
    return 0;
}

/* CONFIG is often forbidden: then the policy is not known. */
static int on_policy(struct master *m)
{
    const struct reply *r = m->reply;
    struct master_facts *f = &m->facts;

    if (r->values[0].type == REPLY_ARRAY && r->count == 3 && r->values[2].type == REPLY_TEXT &&
        r->values[2].len < sizeof f->policy)
        strcpy(f->policy, reply_text(r, &r->values[2]));
    return *f->run_id ? master_take_facts(m) : 0;
}

static int on_info(struct master *m)
{
    const struct reply_value *v = m->reply->values;
    const struct master_facts *f = &m->facts;

    if (master_said_error(m))
        return master_give_up(m, "INFO");
    if (v->type != REPLY_TEXT)
        return -1;
    master_take_info(&m->facts, reply_text(m->reply, v), v->len);
    if (*f->policy && *f->run_id)
        return master_take_facts(m);
    if (!*f->policy)
        master_ask_words(m, on_policy, "CONFIG GET maxmemory-policy");
    if (!*f->run_id)
        master_find_run(m);
    master_flush(m, m->heard_ms);
    return 0;
}

static int on_part(struct master *m)
{
    return master_said_error(m) ? master_give_up(m, "EXISTS") : 0;
}

/* A node of a Cluster says by any key of the partition whether it serves that: then it is turned
 * away before it has sent all scripts. */
static void ask_identity(struct master *m)
{
    m->facts = (struct master_facts){0};
    if (m->setup.cluster) {
        master_batch_add(m, on_part);
        request_strings(&m->out, 2, (const char *const[]){"EXISTS", m->at});
    }
    master_ask_words(m, on_info, "INFO");
}

/* ---- greeting ---- */

static int on_status(struct master *m, const char *what)
{
    if (master_said_error(m))
        return master_give_up(m, what);
    return reply_is_text(m->reply, m->reply->values, "OK") ? 0 : -1;
}

static int on_auth(struct master *m)
{
    return on_status(m, "AUTH");
}

static int on_select(struct master *m)
{
    return on_status(m, "SELECT");
}

static int on_client_id(struct master *m)
{
    const struct reply_value *v = m->reply->values;

    m->link->client_id = v->type == REPLY_INTEGER ? v->integer : 0;
    return 0;
}

void master_greet(struct master *m)
{
    const char *name = m->setup.client_name ? m->setup.client_name : "holdfast";
    char words[64];

    if (m->link->greeted) {      /* by another master that the server keeps */
        if (!m->link->client_id) /* which may leave before it is told: CLIENT KILL needs it */
            master_ask_words(m, on_client_id, "CLIENT ID");
        ask_identity(m);
        master_flush(m, m->heard_ms);
        return;
    }
    m->link->greeted = true;
    if (m->password) {
        master_batch_add(m, on_auth);
        request_auth(&m->out, m->user, m->password);
    }
    if (m->db > 0) {
        snprintf(words, sizeof words, "SELECT %d", m->db);
        master_ask_words(m, on_select, words);
    }
    master_batch_add(m, on_optional);
    request_strings(&m->out, 3, (const char *const[]){"CLIENT", "SETNAME", name});
    master_ask_words(m, on_client_id, "CLIENT ID");
    master_ask_words(m, on_optional, "CLIENT NO-EVICT on");
    ask_identity(m);
    master_flush(m, m->heard_ms);
}

void master_greet_again(struct master *m)
{
    master_move(m, MASTER_GREETING);
    ask_identity(m);
    master_flush(m, m->heard_ms);
}
