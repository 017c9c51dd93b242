/* The two sides. What is asked of the real one goes through redis-server itself (EVAL), what a
 * person would see there through redis-cli's commands. */
#include "sides.h"

#include <assert.h>
#include <check.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_server.h"
#include "redis/script.h"
#include "redis_proc.h"
#include "script_args.h"
#include "sim_time.h"

enum { WORDS = SIDE_WORDS, TEXT = SIDE_TEXT, SIDE_HEAD = 3 /* deadline, call, broker */ };

static char call[24];             /* the number that the next ones have */
static char settings[SIDE_WORDS]; /* of the broker whose scripts come next */
static int mirror_db = SCRIPT_NO_MIRROR;
static bool in_partition;

struct side {
    const char *name;
    void (*begin)(void);
    void (*end)(void);
    const char *(*run_id)(void);
    int64_t (*time_ms)(void);
    void (*eval)(enum script script, int n_keys, char **keys, int n_args, char **args, char *out);
    void (*command)(char **words, int n, char *out);
};

static void add_word(char *out, const char *word)
{
    snprintf(out + strlen(out), TEXT - strlen(out), "%s%s",
             *out && out[strlen(out) - 1] != '[' ? " " : "", word);
}

static void add_number(char *out, long long n)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", n);
    add_word(out, text);
}

/* A text as one word: "_" for a blank, RUN for the id of this run, "-" for none at all. */
static void add_text(char *out, const char *text, const char *run_id)
{
    const char *run = strstr(text, run_id);
    char word[128];
    snprintf(word, sizeof word, "%.*s%s%s", (int)(run ? run - text : 0), text, run ? "RUN" : "",
             run ? run + strlen(run_id) : text);
    for (char *p = strchr(word, ' '); p; p = strchr(p, ' '))
        *p = '_';
    add_word(out, *word ? word : "-");
}

static void first_word(char *out, const char *error)
{
    snprintf(out, TEXT, "%.*s", (int)strcspn(error, " "), error);
}

/* ---- the real one ---- */

static struct redis_proc proc;
static redisContext *link_, *listener;
static char real_run_id[64];

static redisReply *ask(int argc, const char **argv)
{
    redisReply *r = redisCommandArgv(link_, argc, argv, NULL);
    ck_assert_msg(r != NULL, "no reply: %s", link_->errstr);
    return r;
}

/* Asks by these words; whatever comes back as words. */
static void real_words(char **w, int n, char *out)
{
    const char *argv[WORDS];
    for (int i = 0; i < n; i++)
        argv[i] = w[i];
    redisReply *r = ask(n, argv);
    for (size_t i = 0; i < (r->type == REDIS_REPLY_ARRAY ? r->elements : 1); i++) {
        const redisReply *e = r->type == REDIS_REPLY_ARRAY ? r->element[i] : r;
        if (e->type == REDIS_REPLY_INTEGER)
            add_number(out, e->integer);
        else
            add_text(out, e->str ? e->str : "", real_run_id);
    }
    freeReplyObject(r);
}

static const char *ask_text(const char *command)
{
    static char text[TEXT];
    redisReply *r = redisCommand(link_, command);
    ck_assert_ptr_nonnull(r);
    text[0] = '\0';
    if (r->type == REDIS_REPLY_INTEGER)
        add_number(text, r->integer);
    else if (r->str)
        snprintf(text, sizeof text, "%s", r->str);
    freeReplyObject(r);
    return text;
}

static void real_begin(void)
{
    const char *info;
    listener = NULL;
    redis_proc_start(&proc, NULL);
    link_ = redisConnectUnix(proc.path);
    ck_assert(link_ && !link_->err);
    redisReply *r = redisCommand(link_, "INFO server");
    ck_assert((info = strstr(r->str, "run_id:")) != NULL);
    snprintf(real_run_id, sizeof real_run_id, "%.40s", info + 7);
    freeReplyObject(r);
}

static void real_end(void)
{
    redisFree(link_);
    if (listener)
        redisFree(listener);
    redis_proc_fini(&proc);
}

static const char *real_run(void)
{
    return real_run_id;
}

static int64_t real_time_ms(void)
{
    redisReply *r = redisCommand(link_, "TIME");
    int64_t ms = atoll(r->element[0]->str) * 1000 + atoll(r->element[1]->str) / 1000;
    freeReplyObject(r);
    return ms;
}

/* The items that a brief reply leaves out. */
static void add_brief(char *out, enum script script, const char *text, int n_items, int64_t asked)
{
    int64_t seconds = 0, us = 0, number = 0, above = 0;
    int n = sscanf(text, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &seconds, &us, &number,
                   &above);
    const struct script_row *row = script_get(script);
    ck_assert_msg(row->brief && n >= 3 && n <= (row->floors ? 4 : 3), "%s", text);
    ck_assert_int_eq(number, asked);
    for (int i = 0; i < n_items; i++) {
        for (int j = 0; j < row->width; j++)
            add_number(out, j == 1 ? above : j == 0);
        if (row->texts)
            add_word(out, "-");
    }
}

static void real_eval(enum script script, int n_keys, char **keys, int n_args, char **args,
                      char *out)
{
    const char *argv[WORDS + 4] = {"EVAL"};
    const struct script_place place = {real_run_id, settings, mirror_db, in_partition};
    char count[16], *text = script_text(script, &place);
    bool is_items = script < SCRIPT_JOIN;
    int argc = 3;
    snprintf(count, sizeof count, "%d", n_keys + in_partition);
    argv[1] = text;
    argv[2] = count;
    for (int i = 0; i < n_keys; i++)
        argv[argc++] = keys[i];
    if (in_partition)
        argv[argc++] = "holdfast:"; /* so that the keys are those of other tests */
    for (int i = 0; i < n_args; i++)
        argv[argc++] = args[i];
    redisReply *r = ask(argc, argv);
    free(text);
    if (r->type == REDIS_REPLY_ERROR) {
        first_word(out, r->str);
    } else if (r->type == REDIS_REPLY_STRING) {
        add_brief(out, script, r->str, n_keys, atoll(args[1]));
    } else {
        ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
        ck_assert_msg(!is_items || r->element[1]->integer == atoll(args[1]),
                      "the number of the call is not returned");
    }
    for (size_t i = is_items ? 2 : 1; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++) {
        const redisReply *e = r->element[i];
        if (e->type == REDIS_REPLY_INTEGER)
            add_number(out, e->integer);
        else if (e->type != REDIS_REPLY_ARRAY)
            add_text(out, e->str, real_run_id);
        if (e->type != REDIS_REPLY_ARRAY)
            continue;
        add_word(out, "[");
        for (size_t j = 0; j < e->elements; j++) {
            if (e->element[j]->type == REDIS_REPLY_INTEGER)
                add_number(out, e->element[j]->integer);
            else
                add_word(out, e->element[j]->str);
        }
        strcat(out, "]");
    }
    freeReplyObject(r);
}

static void real_state(const char *key, const char *part, char *out)
{
    char command[256], hold[200], op[64], token[24], count[24], seq[48];
    if (part)
        snprintf(hold, sizeof hold, "%s:%s", key, part);
    else
        snprintf(hold, sizeof hold, "%s", key);
    snprintf(command, sizeof command, "EXISTS %s", hold);
    bool is_there = strcmp(ask_text(command), "1") == 0;
    snprintf(command, sizeof command, "GET %s", hold);
    const char *text = ask_text(command), *owner = strstr(text, " owner=");
    if (!owner ||
        sscanf(text, "op=%63s token=%23s count=%23s seq=%47s", op, token, count, seq) != 4) {
        add_word(out, is_there ? "foreign" : "free");
        return;
    }
    add_word(out, owner + 7);
    add_word(out, op);
    add_word(out, token);
    add_word(out, count);
    add_word(out, seq);
}

static void real_line(const char *key, char *out)
{
    redisReply *r = redisCommand(link_, "LRANGE %s:line 0 -1", key);
    for (size_t i = 0; i < r->elements; i++)
        add_word(out, r->element[i]->str);
    freeReplyObject(r);
    r = redisCommand(link_, "ZRANGEBYSCORE %s:turn (%lld +inf", key, (long long)real_time_ms());
    for (size_t i = 0; i < r->elements; i++) {
        char turn[300];
        snprintf(turn, sizeof turn, "turn:%s", r->element[i]->str);
        add_word(out, turn);
    }
    freeReplyObject(r);
}

static void sleep_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&ts, NULL);
}

/* As if its lease had been as short as that. */
static void real_lapse(const char *key, const char *part)
{
    char command[256];
    bool is_share = strcmp(part, "-") != 0;
    snprintf(command, sizeof command, "PEXPIRE %s%s%s 1", key, is_share ? ":" : "",
             is_share ? part : "");
    bool was_there = strcmp(ask_text(command), "1") == 0;
    if (was_there && is_share) {
        snprintf(command, sizeof command, "ZADD %s:shares XX %lld %s", key,
                 (long long)real_time_ms(), part);
        ask_text(command);
    }
    sleep_ms(3);
}

static void real_command(char **w, int n, char *out)
{
    char command[256], key[128] = "";
    if (n > 1)
        snprintf(key, sizeof key, "holdfast:{%s}", w[1]);
    if (strcmp(w[0], "STATE") == 0) {
        real_state(key, n > 2 ? w[2] : NULL, out);
    } else if (strcmp(w[0], "REDIS") == 0) {
        real_words(w + 1, n - 1, out);
    } else if (strcmp(w[0], "LINE") == 0) {
        real_line(key, out);
    } else if (strcmp(w[0], "GONE") == 0) {
        snprintf(command, sizeof command, "EXISTS %s:gone:%s", key, w[2]);
        add_word(out, ask_text(command));
    } else if (strcmp(w[0], "SET") == 0) {
        snprintf(command, sizeof command, "SET %s text", key);
        ask_text(command);
    } else if (strcmp(w[0], "FLUSHALL") == 0) {
        ask_text("FLUSHALL");
    } else if (strcmp(w[0], "LAPSE") == 0) {
        real_lapse(key, w[2]);
    } else if (strcmp(w[0], "SLEEP") == 0) {
        sleep_ms(atol(w[1]));
    } else if (strcmp(w[0], "LISTEN") == 0) {
        if (!listener)
            listener = redisConnectUnix(proc.path);
        freeReplyObject(
            redisCommand(listener, "%sSUBSCRIBE holdfast:wake:%s", in_partition ? "S" : "", w[1]));
    } else {
        ck_abort_msg("no such step: %s", w[0]);
    }
}

/* ---- the model ---- */

static struct fake_server fake;
static char listens[8][64];
static int n_listens;

static int fake_publish(struct fake_server *s, const char *channel, const char *text)
{
    int n = 0;
    (void)s;
    (void)text;
    for (int i = 0; i < n_listens; i++)
        n += strcmp(listens[i], channel) == 0;
    return n;
}

static void fake_begin(void)
{
    sim_begin(1);
    fake_server_init(&fake, "fake");
    fake.publish = fake_publish;
    n_listens = 0;
}

static void fake_end(void)
{
    fake_server_fini(&fake);
    sim_end();
}

static const char *fake_run(void)
{
    return fake.run_id;
}

static int64_t fake_time_ms(void)
{
    return fake_server_time_ms(&fake);
}

static void add_value(char *out, const struct fake_value *v)
{
    if (v->is_text)
        add_word(out, v->text);
    else
        add_number(out, v->integer);
}

static void fake_eval(enum script script, int n_keys, char **keys, int n_args, char **args,
                      char *out)
{
    struct fake_reply r;
    int at = 0;
    fake_server_eval(&fake, script, fake.run_id, settings, n_keys, keys, n_args, args, &r);
    if (r.error[0])
        first_word(out, r.error);
    for (int i = 0; i < r.n_nested; i++) {
        add_word(out, "[");
        for (int j = 0; j < r.nested[i]; j++)
            add_value(out, &r.values[at++]);
        strcat(out, "]");
    }
    for (; at < r.n; at++) {
        if (r.values[at].is_text)
            add_text(out, r.values[at].text, fake.run_id);
        else
            add_number(out, r.values[at].integer);
    }
    fake_reply_fini(&r);
}

static void fake_command(char **w, int n, char *out)
{
    char key[128] = "";
    if (n > 1)
        snprintf(key, sizeof key, "holdfast:{%s}", w[1]);
    if (strcmp(w[0], "STATE") == 0) {
        const struct fake_lock *l = fake_server_find(&fake, key, n > 2 ? w[2] : "-");
        if (!l || l->foreign)
            add_word(out, l ? "foreign" : "free");
        else
            snprintf(out, TEXT, "%s %s %lld %lld %s", l->owner, l->op, (long long)l->token,
                     (long long)l->count, l->seq);
    } else if (strcmp(w[0], "LINE") == 0) {
        snprintf(out, TEXT, "%s", fake_server_line(&fake, key));
    } else if (strcmp(w[0], "GONE") == 0) {
        add_number(out, fake_server_is_gone(&fake, key, w[2]));
    } else if (strcmp(w[0], "SET") == 0) {
        fake_server_set_foreign(&fake, key);
    } else if (strcmp(w[0], "FLUSHALL") == 0) {
        fake_server_flush(&fake);
    } else if (strcmp(w[0], "LAPSE") == 0) {
        fake_server_lapse(&fake, key, w[2]);
    } else if (strcmp(w[0], "SLEEP") == 0) {
        sim_run_until(sim_now_us() + atol(w[1]) * 1000);
    } else if (strcmp(w[0], "LISTEN") == 0) {
        snprintf(listens[n_listens++], sizeof listens[0], "holdfast:wake:%s", w[1]);
    } else {
        ck_abort_msg("no such step: %s", w[0]);
    }
}

static const struct side real_side = {"redis",      real_begin, real_end,    real_run,
                                      real_time_ms, real_eval,  real_command};
static const struct side model_side = {"model",      fake_begin, fake_end,    fake_run,
                                       fake_time_ms, fake_eval,  fake_command};
const struct side *const sides[SIDES] = {&real_side, &model_side};

const char *side_name(const struct side *s)
{
    return s->name;
}

void side_by_hand(const char *command)
{
    ask_text(command);
}

void side_partition(bool on)
{
    in_partition = on;
}

void side_mirror(bool on)
{
    mirror_db = on ? 0 : SCRIPT_NO_MIRROR;
}

void side_begin(const struct side *s)
{
    strcpy(call, "77");
    strcpy(settings, "s");
    s->begin();
}

void side_end(const struct side *s)
{
    s->end();
}

/* ---- steps ---- */

int side_split(char *text, char *words[SIDE_WORDS])
{
    int n = 0;
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) {
        assert(n < WORDS);
        words[n++] = w;
    }
    return n;
}

static int script_by_name(const char *name)
{
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        if (strcmp(script_get((enum script)i)->name, name) == 0)
            return i;
    }
    return -1;
}

/* In the words of script_args.h. */
static void acquire(const struct side *s, int n_keys, char **keys, char **args, char *out)
{
    static struct acquire_args items[8];
    char *wire[SIDE_HEAD + 2 + 8 * ACQUIRE_ARGS + 1] = {args[0], args[1], args[2]};
    char floors[2][24], counters[8 * 25] = "", told[TEXT] = "", *words[WORDS];
    int n_wire = SIDE_HEAD;
    for (int i = 0; i < n_keys; i++) {
        acquire_args(&items[i], args + SIDE_HEAD + i * ACQUIRE_WORDS);
        memcpy(wire + n_wire, items[i].list, sizeof items[i].list);
        n_wire += ACQUIRE_ARGS;
        snprintf(counters + strlen(counters), sizeof counters - strlen(counters), "%s%s",
                 i ? " " : "", items[i].counter);
    }
    snprintf(floors[0], sizeof floors[0], "%lld", (long long)items[0].floor_value);
    snprintf(floors[1], sizeof floors[1], "%lld", (long long)items[n_keys - 1].floor_value);
    wire[n_wire++] = floors[0];
    wire[n_wire++] = floors[1];
    if (strspn(counters, "base ") < strlen(counters)) /* with `base` alone there need be none */
        wire[n_wire++] = counters;
    s->eval(SCRIPT_ACQUIRE, n_keys, keys, n_wire, wire, told);
    int n = side_split(told, words);
    for (int i = 0; i < n; i++) {
        if (i % 3 == 1 && strcmp(words[i - 1], "1") == 0)
            add_number(out, atoll(words[i]) + items[i / 3].floor_value);
        else
            add_word(out, words[i]);
    }
}

/* A hold as op/seq/owner; the word has "_" for its blanks. */
static void add_hold(char *out, const char *word)
{
    char op[64], seq[128], text[300];
    const char *owner = strstr(word, "_owner=");
    if (owner && sscanf(word, "op=%63[^_]_token=%*[^_]_count=%*[^_]_seq=%127[^_]", op, seq) == 2)
        snprintf(text, sizeof text, "%s/%s/%s", op, seq, owner + 7);
    else
        snprintf(text, sizeof text, "%s", word);
    add_word(out, text);
}

/* In the words of exchange_args(). */
static void exchange(const struct side *s, int n_keys, char **keys, char **args, char *out)
{
    static struct exchange_args items[8];
    char *wire[SIDE_HEAD + 2 + 8 * EXCHANGE_ARGS + 1] = {args[0], args[1], args[2]};
    char floors[2][24], counters[8 * 25] = "", told[TEXT] = "", *words[WORDS];
    int n_wire = SIDE_HEAD;
    bool takes_token = false;
    for (int i = 0; i < n_keys; i++) {
        exchange_args(&items[i], args + SIDE_HEAD + i * EXCHANGE_WORDS, s->time_ms());
        memcpy(wire + n_wire, items[i].list, sizeof items[i].list);
        n_wire += EXCHANGE_ARGS;
        takes_token |= items[i].takes_token;
        snprintf(counters + strlen(counters), sizeof counters - strlen(counters), "%s%s",
                 i ? " " : "", items[i].counter);
    }
    snprintf(floors[0], sizeof floors[0], "%lld", (long long)items[0].floor_value);
    snprintf(floors[1], sizeof floors[1], "%lld", (long long)items[n_keys - 1].floor_value);
    bool has_counters = strspn(counters, "base ") < strlen(counters);
    if (takes_token || has_counters) {
        wire[n_wire++] = floors[0];
        wire[n_wire++] = floors[1];
    }
    if (has_counters)
        wire[n_wire++] = counters;
    s->eval(SCRIPT_EXCHANGE, n_keys, keys, n_wire, wire, told);
    int n = side_split(told, words);
    for (int i = 0; i < n; i++) {
        if (i % 4 == 3)
            add_hold(out, words[i]);
        else
            add_word(out, words[i]);
    }
}

/* In the words of release_arg(). */
static void release(const struct side *s, int n_keys, char **keys, char **args, char *out)
{
    static char items[8][RELEASE_ARG];
    char *wire[SIDE_HEAD + 8] = {args[0], args[1], args[2]};
    for (int i = 0; i < n_keys; i++)
        wire[SIDE_HEAD + i] = release_arg(items[i], args + SIDE_HEAD + i * RELEASE_WORDS);
    s->eval(SCRIPT_RELEASE, n_keys, keys, SIDE_HEAD + n_keys, wire, out);
}

/* In the words of renew_args(). */
static void renew(const struct side *s, int n_keys, char **keys, char **args, char *out)
{
    static char items[8][RENEW_ARG];
    char *wire[SIDE_HEAD + 8 * RENEW_ARGS] = {args[0], args[1], args[2]};
    for (int i = 0; i < n_keys; i++)
        renew_args(items[i], wire + SIDE_HEAD + i * RENEW_ARGS, args + SIDE_HEAD + i * RENEW_WORDS);
    s->eval(SCRIPT_RENEW, n_keys, keys, SIDE_HEAD + n_keys * RENEW_ARGS, wire, out);
}

/* What join gets of settings that are their own digest. */
static int add_digest(char **args, int n)
{
    static char not_forced[] = "0";
    if (n == 3)
        args[n++] = not_forced;
    for (int i = n; i > 4; i--)
        args[i] = args[i - 1];
    args[4] = args[2];
    return n + 1;
}

/* The digest of a roll call stands behind the life. */
static int add_fourth_digest(char **args, int n)
{
    for (int i = n; i > 3; i--)
        args[i] = args[i - 1];
    args[3] = settings;
    return n + 1;
}

/* Takes the time out of the record that roll.lua has answered, behind its last "_". */
static void hide_time(char *out)
{
    char *record = strchr(out, ' ');
    record = record ? strchr(record + 1, ' ') : NULL;
    char *end = record ? strchr(record + 1, ' ') : NULL, *time = end;
    while (time > record && *time != '_')
        time--;
    if (time > record)
        memmove(time, end, strlen(end) + 1);
}

/* script names deadline args... */
static void run_script(const struct side *s, enum script script, char **w, int n, char *out)
{
    char keys[8][128], *key_list[8], *args[WORDS], deadline[24] = "";
    static char broker[] = "b", empty[] = "";
    int n_keys = 0, n_args = 0;
    bool is_items = script < SCRIPT_JOIN;
    if (strcmp(w[2], "late") == 0 || strcmp(w[2], "soon") == 0)
        snprintf(deadline, sizeof deadline, "%lld",
                 (long long)s->time_ms() + (w[2][0] == 'l' ? -1000 : 1000));
    for (char *name = strtok(w[1], ","); is_items && name; name = strtok(NULL, ",")) {
        snprintf(keys[n_keys], sizeof keys[0], "holdfast:{%s}", name);
        key_list[n_keys] = keys[n_keys];
        n_keys++;
    }
    if (is_items) {
        args[n_args++] = script_get(script)->deadline ? deadline : empty;
        args[n_args++] = call;
        args[n_args++] = broker;
    }
    char run_id[64], texts[WORDS][128];
    snprintf(run_id, sizeof run_id, "%s", s->run_id());
    for (int i = 3; i < n; i++) {
        const char *run = strstr(w[i], "RUN");
        for (char *p = w[i]; strncmp(w[i], "drop-in", 7) == 0 && (p = strchr(p, '_'));)
            *p = ' ';
        args[n_args] = w[i];
        if (run) {
            snprintf(texts[i], sizeof texts[i], "%.*s%s%s", (int)(run - w[i]), w[i], run_id,
                     run + 3);
            args[n_args] = texts[i];
        }
        n_args++;
    }
    int lives = script == SCRIPT_JOIN ? 5 : script == SCRIPT_ROLL ? 0 : n_args;
    for (int i = lives; i < n_args; i++) {
        for (char *p = strchr(args[i], '_'); p; p = strchr(p, '_'))
            *p = ' ';
    }
    for (int i = 0; (script == SCRIPT_JOIN || script == SCRIPT_PEEK) && i < n_args; i++)
        args[i] = strcmp(args[i], "-") == 0 ? empty : args[i];
    if (script == SCRIPT_JOIN)
        n_args = add_digest(args, n_args);
    else if (script == SCRIPT_ACTIVATE || script == SCRIPT_ROLL)
        n_args = add_fourth_digest(args, n_args);
    if (script == SCRIPT_ACQUIRE)
        acquire(s, n_keys, key_list, args, out);
    else if (script == SCRIPT_EXCHANGE)
        exchange(s, n_keys, key_list, args, out);
    else if (script == SCRIPT_RELEASE)
        release(s, n_keys, key_list, args, out);
    else if (script == SCRIPT_RENEW)
        renew(s, n_keys, key_list, args, out);
    else
        s->eval(script, n_keys, key_list, n_args, args, out);
    if (script == SCRIPT_ROLL)
        hide_time(out);
}

void side_step(const struct side *s, const char *line, char out[SIDE_TEXT])
{
    char text[TEXT], *w[WORDS];
    const char *arrow = strstr(line, " ->");
    snprintf(text, sizeof text, "%.*s", (int)(arrow ? (size_t)(arrow - line) : strlen(line)), line);
    int n = side_split(text, w), script = script_by_name(w[0]);
    *out = '\0';
    if (script >= 0)
        run_script(s, (enum script)script, w, n, out);
    else if (strcmp(w[0], "CALL") == 0)
        snprintf(call, sizeof call, "%s", w[1]);
    else if (strcmp(w[0], "SETTINGS") == 0)
        snprintf(settings, sizeof settings, "%s", w[1]);
    else
        s->command(w, n, out);
}
