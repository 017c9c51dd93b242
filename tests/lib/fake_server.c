/*
 * A fake server: its life, its clock, and which script may run; join, suspend and activate as a
 * model. What is kept in it is in fake_keys.c and fake_line.c, the other scripts in fake_acquire.c
 * and fake_scripts.c.
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_private.h"
#include "log.h"
#include "sim_time.h"
#include "util.h"

enum fake_mutation fake_mutation;
const char *const fake_mutation_names[FAKE_MUTATIONS] = {
    [FAKE_AS_IT_SHOULD_BE] = "none",
    [FAKE_COMMIT_ANYWHERE] = "commit anywhere",
    [FAKE_COMMIT_LOWERS] = "commit lowers",
    [FAKE_NO_TOMBS] = "no tombstones",
    [FAKE_OLD_CALLS] = "copies of earlier calls run",
    [FAKE_NO_DEADLINE] = "no deadline",
    [FAKE_NO_QUARANTINE] = "no quarantine",
    [FAKE_RELEASE_ANY] = "release frees any hold",
    [FAKE_RENEW_CREATES] = "renew creates",
    [FAKE_PLANT_ANYWHERE] = "plant overwrites",
    [FAKE_REPEAT_COUNTS] = "a repeat counts",
    [FAKE_SEQ_IGNORED] = "sequence of counts ignored",
    [FAKE_NO_FLOOR] = "no floor for tokens",
    [FAKE_SCRIPTS_SURVIVE] = "scripts survive a restart",
    [FAKE_TAKEOVER_KEEPS_TOKEN] = "take-over keeps the token",
    [FAKE_LATE_COPIES] = "late copies of older operations count",
    [FAKE_JUMPS_UNSEEN] = "clocks that jump go unseen",
    [FAKE_SETTINGS_UNSEEN] = "scripts do not compare the settings",
    [FAKE_VETO_UNHEARD] = "a refusal for settings is no veto",
    [FAKE_READERS_UNSEEN] = "a writer does not see readers",
    [FAKE_WRITER_UNSEEN] = "a reader does not see a writer",
    [FAKE_PERMIT_TWICE] = "a permit given twice",
    [FAKE_GROUP_IN_PARTS] = "a group taken in parts",
    [FAKE_QUORUM_OF_CONNECTED] = "a majority of the connected",
    [FAKE_NO_COMMIT] = "no second round for the token",
    [FAKE_VALID_FROM_ANSWER] = "validity counted from the answer",
    [FAKE_TOLD_LATE] = "told when it is over",
    [FAKE_IDS_TWICE] = "operation ids used twice",
    [FAKE_NO_UNDO] = "nothing is undone",
    [FAKE_LIVES_FORGOTTEN] = "a run that comes back is the one it was",
};

/* ---- the server ---- */

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
    TAILQ_INIT(&s->locks);
    TAILQ_INIT(&s->tombs);
    TAILQ_INIT(&s->permits);
    TAILQ_INIT(&s->lines);
    TAILQ_INIT(&s->backlog);
    LIST_INIT(&s->conns);
    s->clock_us = INT64_C(1700000000000000) + sim_now_us();
    s->clock_at_us = sim_now_us();
    s->up = true;
    new_run_id(s);
}

void fake_server_flush(struct fake_server *s)
{
    struct fake_last *l;
    fake_lines_clear(s);
    fake_keys_clear(s);
    while ((l = LIST_FIRST(&s->mark.lasts))) {
        LIST_REMOVE(l, link);
        free(l);
    }
    memset(&s->mark, 0, sizeof s->mark);
}

void fake_server_fini(struct fake_server *s)
{
    assert(TAILQ_EMPTY(&s->backlog) && LIST_EMPTY(&s->conns));
    fake_server_flush(s);
}

void fake_server_rerun(struct fake_server *s, bool keep_data)
{
    if (!keep_data)
        fake_server_flush(s);
    s->restarts++;
    if (fake_mutation == FAKE_SCRIPTS_SURVIVE) {
        memcpy(s->mark.run_id, s->run_id, sizeof s->mark.run_id);
        s->mark.active = true;
        return;
    }
    new_run_id(s);
}

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

int64_t fake_server_high(const struct fake_server *s)
{
    int64_t high = s->mark.base;
    for (int i = 0; i < ITEM_BUCKETS; i++)
        high = s->mark.counters[i] > high ? s->mark.counters[i] : high;
    return high;
}

/* ---- the scripts without items ---- */

static void set_settings(struct fake_server *s, const char *settings, const char *digest)
{
    s->mark.base = fake_server_high(s);
    snprintf(s->mark.settings, sizeof s->mark.settings, "%s", settings);
    snprintf(s->mark.digest, sizeof s->mark.digest, "%s", digest);
}

static struct life *life_of(struct fake_server *s, const char *slot)
{
    int i = 0;
    while (s->mark.lives[i].slot[0] && strcmp(s->mark.lives[i].slot, slot) != 0)
        assert(++i < FAKE_LIVES);
    snprintf(s->mark.lives[i].slot, sizeof s->mark.lives[i].slot, "%s", slot);
    return &s->mark.lives[i].newest;
}

static int64_t life_number(const char *life)
{
    return strtoll(life, NULL, 10);
}

static void begin_life(struct fake_server *s, struct life *own, const char *heard, const char *run)
{
    int64_t n = fake_max(life_number(own->text), life_number(heard)) + 1;
    snprintf(own->text, sizeof own->text, "%lld %s", (long long)n, run);
    snprintf(s->mark.run_id, sizeof s->mark.run_id, "%s", run);
}

/* run_id quarantine settings force digest promoted slot life ... */
static void join(struct fake_server *s, int n, char *const *a, struct fake_reply *r)
{
    int64_t quarantine_ms = fake_mutation == FAKE_NO_QUARANTINE ? 0 : atoll(a[1]);
    bool was_marked = s->mark.run_id[0] != '\0';
    bool believed = !was_marked || strcmp(s->mark.settings, a[2]) == 0 || strcmp(a[3], "1") == 0;
    const char *promoted = n > 5 ? a[5] : "", *heard = n > 7 && believed ? a[7] : "";
    struct life *own = life_of(s, n > 6 ? a[6] : "?");
    for (int i = 8; i + 1 < n && believed; i += 2)
        (void)life_take(life_of(s, a[i]), a[i + 1], strlen(a[i + 1]));
    bool ended = life_number(heard) >= life_number(own->text) && strcmp(heard, own->text) != 0 &&
                 fake_mutation != FAKE_LIVES_FORGOTTEN;
    bool was_replica =
        promoted[0] && strcmp(promoted, "-1") != 0 && strcmp(promoted, s->mark.promoted) != 0;
    if (strcmp(s->mark.run_id, a[0]) != 0 || ended || was_replica) {
        int64_t till_ms = r->time_ms + quarantine_ms;
        if (was_marked && !s->mark.active)
            till_ms = fake_max(till_ms, s->mark.until_ms);
        set_settings(s, a[2], a[4]);
        snprintf(s->mark.promoted, sizeof s->mark.promoted, "%s", promoted);
        s->mark.active = till_ms <= r->time_ms;
        s->mark.until_ms = till_ms;
        begin_life(s, own, heard, a[0]);
    } else if (strcmp(a[3], "1") == 0 && strcmp(s->mark.settings, a[2]) != 0) {
        set_settings(s, a[2], a[4]);
    }
    fake_add(r, 0, s->mark.active ? "active" : "quarantine");
    fake_add(r, s->mark.active ? 0 : fake_max(0, s->mark.until_ms - r->time_ms), NULL);
    fake_add(r, 0, s->mark.settings);
    fake_add(r, fake_server_high(s), NULL);
    for (int i = 6; i + 1 < n; i += 2)
        fake_add(r, 0, life_of(s, a[i])->text);
}

/* run_id quarantine */
static void suspend(struct fake_server *s, char *const *a, struct fake_reply *r)
{
    if (strcmp(s->mark.run_id, a[0]) != 0) {
        strcpy(r->error, "STRANGER this server has lost its data");
        return;
    }
    int64_t till_ms = r->time_ms + atoll(a[1]);
    s->mark.until_ms = s->mark.active ? till_ms : fake_max(till_ms, s->mark.until_ms);
    s->mark.active = false;
    fake_add(r, 0, "quarantine");
    fake_add(r, s->mark.until_ms - r->time_ms, NULL);
}

/* run_id base force digest */
static void activate(struct fake_server *s, char *const *a, struct fake_reply *r)
{
    if (strcmp(s->mark.run_id, a[0]) != 0) {
        strcpy(r->error, "STRANGER this server has lost its data");
        return;
    }
    if (strcmp(s->mark.digest, a[3]) != 0) {
        strcpy(r->error, "SETTINGS other settings than those of this broker are in force here");
        return;
    }
    int64_t left_ms = 0;
    if (!s->mark.active) {
        left_ms = strcmp(a[2], "1") == 0 ? 0 : fake_max(0, s->mark.until_ms - r->time_ms);
        s->mark.active = left_ms == 0;
        if (s->mark.active && fake_mutation != FAKE_NO_FLOOR)
            s->mark.base = fake_max(s->mark.base, atoll(a[1]));
    }
    fake_add(r, 0, s->mark.active ? "active" : "quarantine");
    fake_add(r, left_ms, NULL);
}

/* ---- EVALSHA ---- */

static const struct {
    void (*item)(struct fake_server *, const char *key, char *const *args, struct fake_reply *);
    void (*all)(struct fake_server *, int n_keys, char *const *keys, int n_args, char *const *args,
                struct fake_reply *); /* instead: looks at more than one item at a time */
    bool knows_run, votes; /* its text has run id and settings in it; refused in quarantine */
} scripts[SCRIPT_COUNT] = {
    [SCRIPT_ACQUIRE] = {NULL, fake_acquire, true, true},
    [SCRIPT_COMMIT] = {fake_commit, NULL, true, true},
    [SCRIPT_TAKEOVER] = {fake_takeover, NULL, true, true},
    [SCRIPT_RENEW] = {fake_renew, NULL, true, true},
    [SCRIPT_PLANT] = {fake_plant, NULL, true, false},
    [SCRIPT_RELEASE] = {fake_release, NULL, false, false},
    [SCRIPT_LINE] = {fake_line_script, NULL, false, false},
    [SCRIPT_PASS] = {fake_pass, NULL, false, false},
    [SCRIPT_PEEK] = {NULL, fake_peek, false, false},
};

/* last:<broker>; made when it is not there. */
static int64_t *last_call(struct fake_server *s, const char *broker)
{
    struct fake_last *l;
    LIST_FOREACH(l, &s->mark.lasts, link) {
        if (strcmp(l->broker, broker) == 0)
            return &l->call;
    }
    l = util_alloc(sizeof *l);
    snprintf(l->broker, sizeof l->broker, "%s", broker);
    LIST_INSERT_HEAD(&s->mark.lasts, l, link);
    return &l->call;
}

/* head: deadline, call, broker; what else is in the head of acquire.lua is read there */
static const char *refusal(struct fake_server *s, enum script script, const char *run_id,
                           const char *settings, char *const *head, int64_t now_ms)
{
    const char *deadline = head[0];
    if (script_get(script)->deadline && deadline[0] && now_ms > atoll(deadline) &&
        fake_mutation != FAKE_NO_DEADLINE)
        return "LATE the request came after its deadline";
    if (scripts[script].knows_run && strcmp(s->mark.run_id, run_id) != 0)
        return "STRANGER this server has lost its data";
    if (scripts[script].knows_run && strcmp(s->mark.digest, settings) != 0 &&
        fake_mutation != FAKE_SETTINGS_UNSEEN)
        return "SETTINGS other settings than those of this broker are in force here";
    if (scripts[script].knows_run && atoll(head[1]) < *last_call(s, head[2]) &&
        fake_mutation != FAKE_OLD_CALLS)
        return "REPEATED a later call of this broker has come before";
    if (scripts[script].votes && !s->mark.active)
        return "QUARANTINE this server may not vote yet";
    return NULL;
}

static void trace(const struct fake_server *s, enum script script, int n_keys, char *const *keys,
                  int n_args, char *const *args, const struct fake_reply *r)
{
    int width = script_get(script)->args, head = script_get(script)->head;
    for (int i = 0; i < n_keys; i++) {
        char text[512] = "";
        for (int j = head + i * width; j < head + (i + 1) * width && j < n_args; j++)
            snprintf(text + strlen(text), sizeof text - strlen(text), " %s", args[j]);
        int at = i * script_get(script)->width;
        long long code = !r->error[0] && at < r->n ? (long long)r->values[at].integer : -99;
        log_trace(s->name, "%s %s%s = %lld %s", script_get(script)->name, keys[i], text, code,
                  r->error);
    }
}

void fake_server_eval(struct fake_server *s, enum script script, const char *run_id,
                      const char *settings, int n_keys, char *const *keys, int n_args,
                      char *const *args, struct fake_reply *r)
{
    memset(r, 0, sizeof *r);
    r->time_ms = fake_server_time_ms(s);
    s->evals++;
    if (strcmp(s->run_id, run_id) != 0) {
        strcpy(r->error, "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    if (s->refuses && script < SCRIPT_JOIN) {
        snprintf(r->error, sizeof r->error, "%s", s->refuses);
        return;
    }
    if (script == SCRIPT_JOIN) {
        join(s, n_args, args, r);
        return;
    }
    if (script == SCRIPT_SUSPEND) {
        suspend(s, args, r);
        return;
    }
    if (script == SCRIPT_ACTIVATE) {
        activate(s, args, r);
        return;
    }
    const char *no = refusal(s, script, run_id, settings, args, r->time_ms);
    if (no) {
        snprintf(r->error, sizeof r->error, "%s", no);
        if (log_enabled(LOG_LEVEL_TRACE))
            trace(s, script, n_keys, keys, n_args, args, r);
        return;
    }
    int width = script_get(script)->args, head = script_get(script)->head;
    int more = script == SCRIPT_ACQUIRE && n_args > head + n_keys * width; /* counters */
    assert(n_args == head + n_keys * width + more);
    r->call = atoll(args[1]);
    if (script == SCRIPT_ACQUIRE || script == SCRIPT_RELEASE) {
        int64_t *last = last_call(s, args[2]);
        *last = fake_max(*last, r->call);
    }
    if (scripts[script].all)
        scripts[script].all(s, n_keys, keys, n_args - FAKE_HEAD, args + FAKE_HEAD, r);
    for (int i = 0; i < n_keys && scripts[script].item; i++)
        scripts[script].item(s, keys[i], args + head + i * width, r);
    if (log_enabled(LOG_LEVEL_TRACE))
        trace(s, script, n_keys, keys, n_args, args, r);
}

void fake_reply_fini(struct fake_reply *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->values[i].text);
    free(r->values);
    free(r->nested);
}
