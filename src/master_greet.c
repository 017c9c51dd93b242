/*
 * Who a master is, whether it may be used, and how it is joined.
 *
 *   greet:  AUTH, SELECT, CLIENT..., INFO, CONFIG GET -> judge -> CLIENT KILL the old link, SCRIPT
 * LOAD all -> join greet_again (its data or scripts are gone):  INFO, CONFIG GET -> judge -> ...
 *
 * Knows the texts of Redis' answers to these; nothing about items. Does not trust INFO: each word
 * is bounded, and the run id goes into the text of scripts only when it is letters and digits.
 */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "master_private.h"

enum { OLDEST_MAJOR = 5 };

/* ---- asking ---- */

static void ask_words(struct master *m, enum master_ask_kind kind, const char *words)
{
    master_batch_add(m, kind);
    master_put_words(&m->out, words);
}

static void ask_identity(struct master *m)
{
    m->facts = (struct master_facts){0};
    ask_words(m, MASTER_ASK_INFO, "INFO");
    ask_words(m, MASTER_ASK_FSYNC, "CONFIG GET appendfsync");
}

static void ask_auth(struct master *m)
{
    master_batch_add(m, MASTER_ASK_AUTH);
    master_put_array(&m->out, m->user ? 3 : 2);
    master_put_text(&m->out, "AUTH", 4);
    if (m->user)
        master_put_text(&m->out, m->user, strlen(m->user));
    master_put_text(&m->out, m->password, strlen(m->password));
}

static void ask_setname(struct master *m)
{
    const char *name = m->setup.client_name ? m->setup.client_name : "holdfast";

    master_batch_add(m, MASTER_ASK_OPTIONAL);
    master_put_array(&m->out, 3);
    master_put_text(&m->out, "CLIENT", 6);
    master_put_text(&m->out, "SETNAME", 7);
    master_put_text(&m->out, name, strlen(name));
}

void master_greet(struct master *m)
{
    char words[64];

    if (m->password)
        ask_auth(m);
    if (m->db > 0) {
        snprintf(words, sizeof words, "SELECT %d", m->db);
        ask_words(m, MASTER_ASK_SELECT, words);
    }
    ask_setname(m);
    ask_words(m, MASTER_ASK_CLIENT_ID, "CLIENT ID");
    ask_words(m, MASTER_ASK_OPTIONAL, "CLIENT NO-EVICT on");
    ask_identity(m);
    master_flush(m, m->heard_ms);
}

void master_greet_again(struct master *m)
{
    master_move(m, MASTER_GREETING);
    ask_identity(m);
    master_flush(m, m->heard_ms);
}

void master_probe(struct master *m)
{
    ask_words(m, MASTER_ASK_TIME, "TIME");
    ask_words(m, MASTER_ASK_MARK, "HMGET holdfast:master run_id state");
    master_flush(m, m->heard_ms);
}

static void put_call(struct master *m, enum script script, int n_args)
{
    master_put_array(&m->out, 3 + n_args);
    buf_append(&m->out, m->head[script], (size_t)m->head_len[script]);
    master_put_int(&m->out, 0);
    master_put_text(&m->out, m->run_id, strlen(m->run_id));
}

/* For how long nothing that a master has forgotten may be held by anybody. */
static int64_t quarantine_ms(const struct master *m)
{
    const struct master_setup *s = &m->setup;

    if (s->quarantine_ms >= 0)
        return s->quarantine_ms;
    if (m->facts.aof && m->facts.fsync_always)
        return 0;
    return s->max_lease_ms + s->max_lease_ms * s->drift_ppm / 1000000 + 1000;
}

static void ask_join(struct master *m, enum master_ask_kind kind)
{
    const char *settings = m->setup.settings ? m->setup.settings : "";

    master_batch_add(m, kind);
    put_call(m, SCRIPT_JOIN, 3);
    master_put_int(&m->out, quarantine_ms(m));
    master_put_text(&m->out, settings, strlen(settings));
    master_flush(m, m->heard_ms);
}

void master_join(struct master *m)
{
    master_move(m, MASTER_JOINING);
    m->joined = true;
    ask_join(m, MASTER_ASK_JOIN);
}

/* Join says it too, and its repeat changes nothing. */
void master_ask_high(struct master *m)
{
    if (m->state == MASTER_ACTIVE || m->state == MASTER_QUARANTINE)
        ask_join(m, MASTER_ASK_HIGH);
}

void master_activate(struct master *m, int64_t base, bool force)
{
    assert(base >= 0);
    if (m->state != MASTER_QUARANTINE)
        return;
    master_batch_add(m, MASTER_ASK_ACTIVATE);
    put_call(m, SCRIPT_ACTIVATE, 3);
    master_put_int(&m->out, base);
    master_put_int(&m->out, force ? 1 : 0);
    master_flush(m, m->heard_ms);
}

static void load_scripts(struct master *m)
{
    master_move(m, MASTER_LOADING);
    m->loads_left = SCRIPT_COUNT;
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        char *text = script_text((enum script)i, m->run_id);
        master_batch_add(m, MASTER_ASK_LOAD)->script = (uint8_t)i;
        master_put_array(&m->out, 3);
        master_put_text(&m->out, "SCRIPT", 6);
        master_put_text(&m->out, "LOAD", 4);
        master_put_text(&m->out, text, strlen(text));
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
static int give_up(struct master *m, const char *what)
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

/* ---- INFO and CONFIG ---- */

static void copy_word(char *out, size_t size, const char *value, size_t len)
{
    if (len >= size)
        len = 0; /* no such thing has so long a name */
    memcpy(out, value, len);
    out[len] = 0;
}

static void take_fact(struct master_facts *f, const char *key, size_t key_len, const char *value,
                      size_t len)
{
    const struct {
        const char *key;
        char *word;
        size_t size;
        bool *flag;
    } known[] = {
        {"run_id", f->run_id, sizeof f->run_id, NULL},
        {"redis_version", f->version, sizeof f->version, NULL},
        {"role", f->role, sizeof f->role, NULL},
        {"maxmemory_policy", f->policy, sizeof f->policy, NULL},
        {"loading", NULL, 0, &f->loading},
        {"aof_enabled", NULL, 0, &f->aof},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].key) != key_len || memcmp(known[i].key, key, key_len) != 0)
            continue;
        if (known[i].flag)
            *known[i].flag = len == 1 && *value == '1';
        else
            copy_word(known[i].word, known[i].size, value, len);
    }
}

static void take_info(struct master_facts *f, const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        const char *next = eol ? eol + 1 : end, *stop = eol ? eol : end;
        const char *colon = memchr(text, ':', (size_t)(stop - text));
        if (stop > text && stop[-1] == '\r')
            stop--;
        if (colon && colon < stop)
            take_fact(f, text, (size_t)(colon - text), colon + 1, (size_t)(stop - colon - 1));
        text = next;
    }
}

static int on_info(struct master *m)
{
    const struct reply_value *v = m->reply.values;

    if (is_error(m))
        return give_up(m, "INFO");
    if (v->type != REPLY_TEXT)
        return -1;
    take_info(&m->facts, reply_text(&m->reply, v), v->len);
    return 0;
}

/* ---- the judgement (safety R6) ---- */

static bool is_plain(const char *word)
{
    for (const char *p = word; *p; p++)
        if (!isalnum((unsigned char)*p))
            return false;
    return *word != 0;
}

static bool is_refused(struct master *m)
{
    const struct master_facts *f = &m->facts;
    char words[REPLY_WORDS_MAX];

    if (!is_plain(f->run_id)) {
        master_refuse(m, "its INFO gives no usable run_id: is it a Redis server?");
        return true;
    }
    if (atoi(f->version) < OLDEST_MAJOR) {
        reply_words(words, sizeof words, f->version, strlen(f->version));
        master_refuse(m, "its version %s is too old: Redis %d or newer is needed", words,
                      OLDEST_MAJOR);
        return true;
    }
    if (strcmp(f->role, "master") != 0) {
        reply_words(words, sizeof words, f->role, strlen(f->role));
        master_refuse(m, "it is a %s and no master: name its master in [masters]", words);
        return true;
    }
    if (strcmp(f->policy, "noeviction") != 0) {
        reply_words(words, sizeof words, f->policy, strlen(f->policy));
        master_refuse(m, "it may evict locks (maxmemory-policy is %s): set it to noeviction",
                      words);
        return true;
    }
    const struct master *twin = master_twin(m, f->run_id);
    if (twin)
        master_refuse(m, "it is the same server as %s: each master must be one of its own",
                      twin->object);
    return twin != NULL;
}

static void kill_old_link(struct master *m)
{
    char words[64];

    snprintf(words, sizeof words, "CLIENT KILL ID %" PRId64, m->old_client_id);
    ask_words(m, MASTER_ASK_OPTIONAL, words);
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
    if (is_refused(m))
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
    }
    load_scripts(m);
}

static int on_fsync(struct master *m)
{
    const struct reply *r = &m->reply;

    /* Often forbidden: then nothing is known to be kept. */
    m->facts.fsync_always = r->values[0].type == REPLY_ARRAY && r->count == 3 &&
                            reply_is_text(r, &r->values[2], "always");
    judge(m);
    return 0;
}

/* ---- the other replies ---- */

static int on_status(struct master *m, const char *what)
{
    if (is_error(m))
        return give_up(m, what);
    return reply_is_text(&m->reply, m->reply.values, "OK") ? 0 : -1;
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
        return give_up(m, "SCRIPT LOAD");
    if (v->type != REPLY_TEXT || !is_digest(reply_text(&m->reply, v), v->len))
        return -1;
    m->head_len[script] =
        snprintf(m->head[script], sizeof m->head[script], "$7\r\nEVALSHA\r\n$%d\r\n%s\r\n",
                 MASTER_DIGEST_LEN, reply_text(&m->reply, v));
    if (--m->loads_left == 0)
        master_join(m);
    return 0;
}

/* Where join and activate say that it stands. */
static int take_state(struct master *m, const struct reply_value *state, int64_t left_ms,
                      int64_t now_us)
{
    if (reply_is_text(&m->reply, state, "active")) {
        master_move(m, MASTER_ACTIVE);
        return 0;
    }
    if (!reply_is_text(&m->reply, state, "quarantine") || left_ms < 0)
        return -1;
    m->quarantine_end_ms = now_us / 1000 + left_ms;
    if (m->state != MASTER_QUARANTINE)
        master_move(m, MASTER_QUARANTINE);
    return 0;
}

static bool is_row(const struct reply *r, const char *types)
{
    if (r->values[0].type != REPLY_ARRAY || r->count != 1 + (int)strlen(types))
        return false;
    for (int i = 0; types[i]; i++)
        if (r->values[1 + i].type != (types[i] == 'i' ? REPLY_INTEGER : REPLY_TEXT))
            return false;
    return true;
}

static void take_high(struct master *m, int64_t high, int64_t sent_us)
{
    if (high > m->status.high)
        m->status.high = high;
    m->status.high_asked_ms = sent_us / 1000;
}

static int on_high(struct master *m, int64_t sent_us)
{
    const struct reply *r = &m->reply;

    if (m->state != MASTER_ACTIVE && m->state != MASTER_QUARANTINE)
        return 0;
    if (is_error(m)) {
        master_greet_again(m);
        return 0;
    }
    if (!is_row(r, "ititi"))
        return -1;
    if (reply_is_text(r, &r->values[2], "active") != (m->state == MASTER_ACTIVE))
        master_join(m); /* emptied, or activated by another broker: not the answer to the question */
    else
        take_high(m, r->values[5].integer, sent_us);
    return 0;
}

static int on_join(struct master *m, int64_t sent_us, int64_t now_us)
{
    const struct reply *r = &m->reply;
    const char *ours = m->setup.settings ? m->setup.settings : "";
    char theirs[REPLY_WORDS_MAX];

    if (m->state != MASTER_JOINING)
        return 0; /* overtaken by greet_again */
    if (is_error(m))
        return give_up(m, "join");
    if (!is_row(r, "ititi"))
        return -1;
    if (!reply_is_text(r, &r->values[4], ours)) {
        reply_words(theirs, sizeof theirs, reply_text(r, &r->values[4]), r->values[4].len);
        master_refuse(m, "brokers disagree: this one has \"%s\", those before it have \"%s\"", ours,
                      theirs);
        return 0;
    }
    master_clock_take(m, r->values[1].integer, sent_us, now_us);
    take_high(m, r->values[5].integer, sent_us);
    m->status.data_losses += m->stranger;
    m->stranger = false;
    return take_state(m, &r->values[2], r->values[3].integer, now_us);
}

static int on_activate(struct master *m, int64_t now_us)
{
    const struct reply *r = &m->reply;

    if (m->state != MASTER_QUARANTINE)
        return 0;
    if (is_error(m)) {
        m->stranger = begins(reply_text(r, r->values), "STRANGER");
        m->status.errors++;
        master_greet_again(m);
        return 0;
    }
    return is_row(r, "iti") ? take_state(m, &r->values[2], r->values[3].integer, now_us) : -1;
}

static int on_time(struct master *m, int64_t sent_us, int64_t now_us)
{
    const struct reply *r = &m->reply;
    int64_t s, us;

    if (is_error(m))
        return 0;
    if (!is_row(r, "tt") ||
        util_parse_int(reply_text(r, &r->values[1]), r->values[1].len, 1, INT32_MAX * 16LL, &s) !=
            0 ||
        util_parse_int(reply_text(r, &r->values[2]), r->values[2].len, 0, 999999, &us) != 0)
        return -1;
    master_clock_take(m, s * 1000 + us / 1000, sent_us, now_us);
    return 0;
}

/* Another broker may have ended the quarantine, or somebody emptied the server. */
static int on_mark(struct master *m)
{
    const struct reply *r = &m->reply;

    if (m->state != MASTER_ACTIVE && m->state != MASTER_QUARANTINE)
        return 0;
    if (is_error(m) || r->values[0].type != REPLY_ARRAY || r->count != 3) {
        master_greet_again(m);
        return 0;
    }
    if (!reply_is_text(r, &r->values[1], m->run_id)) {
        m->stranger = true;
        master_greet_again(m);
    } else if (reply_is_text(r, &r->values[2], "active") != (m->state == MASTER_ACTIVE)) {
        master_join(m);
    }
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
    case MASTER_ASK_FSYNC:
        return on_fsync(m);
    case MASTER_ASK_LOAD:
        return on_load(m, b->script);
    case MASTER_ASK_JOIN:
        return on_join(m, b->sent_us, now_us);
    case MASTER_ASK_HIGH:
        return on_high(m, b->sent_us);
    case MASTER_ASK_ACTIVATE:
        return on_activate(m, now_us);
    case MASTER_ASK_TIME:
        return on_time(m, b->sent_us, now_us);
    case MASTER_ASK_MARK:
        return on_mark(m);
    case MASTER_ASK_OPTIONAL:
    case MASTER_ASK_ITEMS:
    case MASTER_ASK_KINDS:
        break;
    }
    return 0;
}
