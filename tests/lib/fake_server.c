/*
 * A fake server: its life, its clock, EVALSHA, and what tests want to see and change of its keys.
 * One interpreter runs the scripts of all servers: each script is compiled once and gets the run
 * id, which is part of its text on a real server, as a global.
 */
#include "fake_server.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "script_host.h"
#include "sim_time.h"

enum { WORDS_MAX = 1024, KEY_MAX = 1024 };

static struct script_host *host;
static int compiled[SCRIPT_COUNT]; /* 0: not yet */

/* ---- scripts ---- */

static void end_host(void)
{
    script_host_free(host);
    host = NULL;
}

static void compile(enum script script)
{
    static const char run_id[] = "' .. THIS_RUN .. '", settings[] = "' .. THESE_SETTINGS .. '";
    const struct script_place place = {run_id, settings, SCRIPT_NO_MIRROR, false};
    char error[256];
    if (!host) {
        host = script_host_new();
        atexit(end_host);
    }
    if (!compiled[script]) {
        char *text = fake_mutate(script, script_text(script, &place));
        compiled[script] =
            script_host_load(host, text, script_get(script)->name, error, sizeof error);
        free(text);
        if (compiled[script] < 0)
            util_die("%s", error);
    }
}

/* ---- its clock ---- */

static int64_t time_us(const struct fake_server *s)
{
    int64_t passed_us = sim_now_us() - s->clock_at_us;
    return s->clock_us + passed_us + passed_us / 1000 * s->drift_ppm / 1000;
}

int64_t fake_server_time_ms(const struct fake_server *s)
{
    return time_us(s) / 1000;
}

void fake_server_jump(struct fake_server *s, int64_t ms)
{
    s->clock_us += ms * 1000;
}

void fake_server_set_drift(struct fake_server *s, int32_t ppm)
{
    s->clock_us = time_us(s);
    s->clock_at_us = sim_now_us();
    s->drift_ppm = ppm;
}

/* ---- commands of our own ---- */

/* Runs one command of so many words; its reply is used again by the next one. */
static const struct store_reply *run(struct fake_server *s, int n, ...)
{
    static struct store_reply reply;
    struct resp_arg words[8];
    va_list args;
    assert(n <= 8);
    va_start(args, n);
    for (int i = 0; i < n; i++) {
        words[i].ptr = va_arg(args, const char *);
        words[i].len = strlen(words[i].ptr);
    }
    va_end(args);
    s->store.now_us = time_us(s);
    store_reply_clear(&reply);
    store_call(&s->store, words, n, &reply);
    return &reply;
}

static int64_t number(const struct store_reply *r)
{
    return r->nodes[0].kind == STORE_INT ? r->nodes[0].n : 0;
}

/* Copies the text of a node; "": it has none. */
static void copy_text(const struct store_reply *r, int node, char *out, size_t size)
{
    const struct store_node *n = &r->nodes[node];
    snprintf(out, size, "%.*s", (int)n->len, store_text(r, n));
}

/* ---- the server ---- */

static int64_t on_publish(void *arg, const struct resp_arg *channel, const struct resp_arg *message)
{
    struct fake_server *s = arg;
    if (!s->publish)
        return 0;
    char *name = util_memdup(channel->ptr, channel->len);
    char *text = util_memdup(message->ptr, message->len);
    int n = s->publish(s, name, text);
    free(name);
    free(text);
    return n;
}

static void new_run_id(struct fake_server *s)
{
    for (int i = 0; i < FAKE_RUN_ID_LEN; i++)
        s->run_id[i] = "0123456789abcdef"[sim_random(16)];
    s->run_id[FAKE_RUN_ID_LEN] = '\0';
}

void fake_server_init(struct fake_server *s, const char *name)
{
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    store_init(&s->store);
    s->store.publish = on_publish;
    s->store.arg = s;
    TAILQ_INIT(&s->backlog);
    LIST_INIT(&s->conns);
    s->clock_us = INT64_C(1700000000000000) + sim_now_us();
    s->clock_at_us = sim_now_us();
    s->up = true;
    new_run_id(s);
}

void fake_server_fini(struct fake_server *s)
{
    assert(TAILQ_EMPTY(&s->backlog) && LIST_EMPTY(&s->conns));
    store_fini(&s->store);
}

void fake_server_flush(struct fake_server *s)
{
    store_flush(&s->store);
}

void fake_server_rerun(struct fake_server *s, bool keep_data)
{
    if (!keep_data)
        fake_server_flush(s);
    s->restarts++;
    if (fake_mutation == FAKE_SCRIPTS_SURVIVE)
        run(s, 6, "HSET", "holdfast:master", "run_id", s->run_id, "state", "active");
    else
        new_run_id(s);
}

/* ---- what is in it ---- */

/* As no_brace() of src/redis/lua/shares.lua. */
static void hold_key(char out[KEY_MAX], const char *key, const char *part)
{
    size_t at = (size_t)snprintf(out, KEY_MAX, "%s%s", key, strcmp(part, "-") ? ":" : "");
    for (const char *p = strcmp(part, "-") ? part : ""; *p && at < KEY_MAX - 4; p++) {
        if (*p == '%' || *p == '}')
            at += (size_t)snprintf(out + at, KEY_MAX - at, "%%%02X", *p);
        else
            out[at++] = *p;
    }
    out[at] = '\0';
}

/* The hold that this text tells of; false: it is none. */
static bool parse_hold(const char *text, struct fake_lock *l)
{
    const char *owner = strstr(text, " owner=");
    int n = sscanf(text, "op=%63s token=%" SCNd64 " count=%" SCNd64 " seq=%127s", l->op, &l->token,
                   &l->count, l->seq);
    l->foreign = n != 4 || !owner;
    if (!l->foreign)
        snprintf(l->owner, sizeof l->owner, "%s", owner + 7);
    return !l->foreign;
}

const struct fake_lock *fake_server_find(struct fake_server *s, const char *key, const char *part)
{
    static struct fake_lock lock;
    char hold[KEY_MAX], text[2048];
    hold_key(hold, key, part);
    if (number(run(s, 2, "EXISTS", hold)) == 0)
        return NULL;
    memset(&lock, 0, sizeof lock);
    snprintf(lock.key, sizeof lock.key, "%s", hold);
    copy_text(run(s, 2, "GET", hold), 0, text, sizeof text);
    parse_hold(text, &lock);
    lock.left_ms = number(run(s, 2, "PTTL", hold));
    return &lock;
}

bool fake_server_is_gone(struct fake_server *s, const char *key, const char *op)
{
    char tomb[KEY_MAX];
    snprintf(tomb, sizeof tomb, "%s:gone:%s", key, op);
    return number(run(s, 2, "EXISTS", tomb)) == 1;
}

bool fake_server_lapse(struct fake_server *s, const char *key, const char *part)
{
    char hold[KEY_MAX], shares[KEY_MAX], before[24];
    hold_key(hold, key, part);
    snprintf(shares, sizeof shares, "%s:shares", key);
    snprintf(before, sizeof before, "%" PRId64, fake_server_time_ms(s) - 1);
    bool was_there = number(run(s, 2, "DEL", hold)) == 1;
    if (was_there && strcmp(part, "-") != 0)
        run(s, 5, "ZADD", shares, "XX", before, part);
    return was_there;
}

bool fake_server_prolong(struct fake_server *s, const char *key, int64_t ms)
{
    char left[24];
    snprintf(left, sizeof left, "%" PRId64, number(run(s, 2, "PTTL", key)) + ms);
    return number(run(s, 3, "PEXPIRE", key, left)) == 1;
}

void fake_server_set_hold(struct fake_server *s, const char *key, const char *op, const char *owner,
                          int64_t token, int64_t lease_ms)
{
    char text[256], left[24];
    snprintf(text, sizeof text,
             "op=%s token=%" PRId64 " count=1 seq=%" PRId64 " lease=%" PRId64
             " end=0 taken=0 owner=%s",
             op, token, token, lease_ms, owner);
    snprintf(left, sizeof left, "%" PRId64, lease_ms);
    run(s, 5, "SET", key, text, "PX", left);
}

void fake_server_set_foreign(struct fake_server *s, const char *key)
{
    run(s, 3, "SET", key, "text");
}

bool fake_server_is_active(struct fake_server *s)
{
    char run_id[64], state[16];
    const struct store_reply *r = run(s, 4, "HMGET", "holdfast:master", "run_id", "state");
    copy_text(r, 1, run_id, sizeof run_id);
    copy_text(r, 2, state, sizeof state);
    return strcmp(run_id, s->run_id) == 0 && strcmp(state, "active") == 0;
}

int64_t fake_server_counter(struct fake_server *s, const char *field)
{
    char text[32];
    copy_text(run(s, 3, "HGET", "holdfast:master", field), 0, text, sizeof text);
    return atoll(text);
}

void fake_server_set_counter(struct fake_server *s, const char *field, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    run(s, 4, "HSET", "holdfast:master", field, text);
}

int64_t fake_server_high(struct fake_server *s)
{
    const struct store_reply *r = run(s, 2, "HGETALL", "holdfast:master");
    int64_t high = 0;
    for (int i = 1; i + 1 < r->n_nodes; i += 2) {
        char field[64], value[64];
        copy_text(r, i, field, sizeof field);
        copy_text(r, i + 1, value, sizeof value);
        bool counts = strcmp(field, "base") == 0 || strspn(field, "0123456789") == strlen(field);
        if (counts && atoll(value) > high)
            high = atoll(value);
    }
    return high;
}

struct count {
    struct fake_server *server;
    int n;
    struct fake_lock *first;
};

static void count_hold(void *arg, const char *key, size_t len)
{
    struct count *c = arg;
    struct fake_lock l = {0};
    char name[KEY_MAX], text[2048];
    snprintf(name, sizeof name, "%.*s", (int)len, key);
    copy_text(run(c->server, 2, "GET", name), 0, text, sizeof text);
    if (!parse_hold(text, &l))
        return;
    snprintf(l.key, sizeof l.key, "%s", name);
    if (c->n++ == 0 && c->first)
        *c->first = l;
}

int fake_server_count_locks(struct fake_server *s, struct fake_lock *first)
{
    struct count c = {s, 0, first};
    s->store.now_us = time_us(s);
    store_each(&s->store, count_hold, &c);
    return c.n;
}

/* Adds the texts of an array to `out`, each behind `mark`. */
static void add_texts(const struct store_reply *r, const char *mark, char *out, size_t size)
{
    for (int i = 1; i < r->n_nodes; i++) {
        char text[128];
        copy_text(r, i, text, sizeof text);
        snprintf(out + strlen(out), size - strlen(out), "%s%s%s", *out ? " " : "", mark, text);
    }
}

const char *fake_server_line(struct fake_server *s, const char *key)
{
    static char text[512];
    char name[KEY_MAX], after[24];
    text[0] = '\0';
    snprintf(name, sizeof name, "%s:line", key);
    add_texts(run(s, 4, "LRANGE", name, "0", "-1"), "", text, sizeof text);
    snprintf(name, sizeof name, "%s:turn", key);
    snprintf(after, sizeof after, "(%" PRId64, fake_server_time_ms(s));
    add_texts(run(s, 4, "ZRANGEBYSCORE", name, after, "+inf"), "turn:", text, sizeof text);
    return text;
}

/* ---- EVALSHA ---- */

static void add(struct fake_reply *r, int64_t integer, char *text)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 8;
        r->values = util_realloc(r->values, (size_t)r->cap * sizeof *r->values);
    }
    r->values[r->n++] = (struct fake_value){text != NULL, integer, text};
}

void fake_reply_fini(struct fake_reply *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->values[i].text);
    free(r->values);
    free(r->nested);
}

/* The items that a brief reply leaves out (script.h). */
static void take_brief(enum script script, const char *text, int n_items, struct fake_reply *r)
{
    int64_t seconds = 0, us = 0, above = 0;
    int n = sscanf(text, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &seconds, &us, &r->call,
                   &above);
    const struct script_row *row = script_get(script);
    assert(row->brief && n >= 3);
    for (int i = 0; i < n_items; i++) {
        for (int j = 0; j < row->width; j++)
            add(r, j == 1 ? above : j == 0, NULL);
        if (row->texts)
            add(r, 0, util_strdup(""));
    }
}

static void take_node(const struct store_reply *told, int i, struct fake_reply *r)
{
    const struct store_node *node = &told->nodes[i];
    if (node->kind == STORE_INT)
        add(r, node->n, NULL);
    else
        add(r, 0, util_memdup(store_text(told, node), node->len));
}

/* {time, call, ...} of a script with items, {time, ...} of another one. */
static void take_array(const struct store_reply *told, bool has_items, struct fake_reply *r)
{
    int i = 2; /* behind the array and the time */
    if (has_items)
        r->call = told->nodes[i++].n;
    while (i < told->n_nodes) {
        const struct store_node *node = &told->nodes[i++];
        if (node->kind != STORE_ARRAY) {
            take_node(told, i - 1, r);
            continue;
        }
        r->nested = util_realloc(r->nested, (size_t)(r->n_nested + 1) * sizeof *r->nested);
        r->nested[r->n_nested++] = (int)node->n;
        for (int64_t j = 0; j < node->n; j++)
            take_node(told, i++, r);
    }
}

static void trace(const struct fake_server *s, enum script script, int n_keys, char *const *keys,
                  int n_args, char *const *args, const struct fake_reply *r)
{
    int width = script_get(script)->args, head = SCRIPT_HEAD;
    for (int i = 0; i < n_keys; i++) {
        char text[512] = "";
        for (int j = head + i * width; j < head + (i + 1) * width && j < n_args; j++)
            snprintf(text + strlen(text), sizeof text - strlen(text), " %s", args[j]);
        int at = i * (script_get(script)->width + script_get(script)->texts);
        long long code = !r->error[0] && at < r->n ? (long long)r->values[at].integer : -99;
        log_trace(s->name, "%s %s%s = %lld %s", script_get(script)->name, keys[i], text, code,
                  r->error);
    }
}

static void run_script(struct fake_server *s, enum script script, int n_keys, char *const *keys,
                       int n_args, char *const *args, struct fake_reply *r)
{
    static struct store_reply told;
    static struct resp_arg words[WORDS_MAX];
    assert(n_keys + n_args <= WORDS_MAX);
    for (int i = 0; i < n_keys + n_args; i++) {
        words[i].ptr = i < n_keys ? keys[i] : args[i - n_keys];
        words[i].len = strlen(words[i].ptr);
    }
    s->store.now_us = time_us(s);
    store_reply_clear(&told);
    script_host_run(host, compiled[script], &s->store, words, n_keys, words + n_keys, n_args,
                    &told);
    char text[128];
    copy_text(&told, 0, text, sizeof text);
    if (told.nodes[0].kind == STORE_ERROR)
        snprintf(r->error, sizeof r->error, "%s", text);
    else if (told.nodes[0].kind == STORE_BULK)
        take_brief(script, text, n_keys, r);
    else
        take_array(&told, script < SCRIPT_JOIN, r);
}

void fake_server_eval(struct fake_server *s, enum script script, const char *run_id,
                      const char *settings, int n_keys, char *const *keys, int n_args,
                      char *const *args, struct fake_reply *r)
{
    memset(r, 0, sizeof *r);
    r->time_ms = fake_server_time_ms(s);
    s->evals++;
    compile(script);
    script_host_set(host, "THIS_RUN", run_id);
    script_host_set(host, "THESE_SETTINGS", settings);
    if (strcmp(s->run_id, run_id) != 0)
        strcpy(r->error, "NOSCRIPT No matching script. Please use EVAL.");
    else if (s->refuses && script < SCRIPT_JOIN)
        snprintf(r->error, sizeof r->error, "%s", s->refuses);
    else
        run_script(s, script, n_keys, keys, n_args, args, r);
    /* a script that failed by itself is a mistake, of the script or of the store */
    if (strncmp(r->error, "ERR ", 4) == 0)
        util_die("%s: %s", script_get(script)->name, r->error);
    if (log_enabled(LOG_LEVEL_TRACE))
        trace(s, script, n_keys, keys, n_args, args, r);
}

/* ---- HMGET ---- */

static void add_field(struct fake_server *s, const char *field, struct fake_reply *r)
{
    char text[512];
    copy_text(run(s, 3, "HGET", "holdfast:master", field), 0, text, sizeof text);
    add(r, 0, util_strdup(text));
}

void fake_server_look(struct fake_server *s, const char *run_id, int n_slots, char *const *slots,
                      struct fake_reply *r)
{
    char marked[FAKE_RUN_ID_LEN + 1], field[64];
    memset(r, 0, sizeof *r);
    r->time_ms = fake_server_time_ms(s);
    copy_text(run(s, 3, "HGET", "holdfast:master", "run_id"), 0, marked, sizeof marked);
    if (strcmp(marked, run_id) != 0) {
        strcpy(r->error, "STRANGER another mark");
        return;
    }
    add_field(s, "state", r);
    add(r, 0, NULL);
    add_field(s, "settings", r);
    add(r, 0, NULL);
    for (int i = 0; i < n_slots; i++) {
        snprintf(field, sizeof field, "life:%s", slots[i]);
        add_field(s, field, r);
    }
}
