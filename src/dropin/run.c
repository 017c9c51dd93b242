/* A run: truths are supposed in the make-believe, the job runs over it, and what the make-believe
 * has noted is judged. Invariant: what a refused run has written is forgotten, what it has looked
 * at is not: the refusal itself may depend on that. */
#include "dropin/run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "dropin/cage.h"
#include "dropin/scripts.h"
#include "dropin/state.h"

/* Longer times are cut to this, more than 30 years: sums of two stay far from overflow. */
#define LEASE_MAX_MS (INT64_C(1) << 40)

/* What a truth that nobody knows shows of its time: who waits for it asks again soon. */
enum { OTHERS_LEFT_MS = 100 };

/* One run on its way. */
struct running {
    struct run_tools *tools;
    const struct job *job;
    const struct truth *const *truths;
    struct run *run;
    bool unknown[KEYS_MAX]; /* what stands there is nothing of holdfast's */
    bool has_guarded;       /* one of the locks was taken by LOCK */
    int64_t now_ms;
};

void run_fini(struct run *r)
{
    store_reply_fini(&r->reply);
    store_reply_fini(&r->published);
}

/* Forgets the last run. */
static void clear_run(struct run *r, int n_names)
{
    for (int i = 0; i < n_names; i++) {
        struct run_name *name = &r->names[i];
        name->touched = name->read_time = false;
        name->what = EXCHANGE_LOOK;
        name->lease_ms = 0;
        buf_clear(&name->text);
    }
    r->writes = false;
    store_reply_clear(&r->reply);
    store_reply_clear(&r->published);
}

/* ---- what is supposed ---- */

static void suppose_others(struct keys *k, int i, int64_t expires_ms, int64_t ahead_ms)
{
    static const char text[] = "drop-in s t somebody else";
    struct truth others = {.kind = TRUTH_DROPIN, .expires_ms = expires_ms};
    truth_set_text(&others, text, sizeof text - 1);
    (void)state_suppose(k, i, &others, ahead_ms);
    truth_fini(&others);
}

/* Supposes a lock that is held by LOCK without showing its owner. */
static int suppose_hidden(struct keys *k, int i, int64_t expires_ms, int64_t ahead_ms)
{
    static const char text[] = "held by LOCK";
    struct truth hidden = {.kind = TRUTH_NATIVE, .expires_ms = expires_ms};
    truth_set_text(&hidden, text, sizeof text - 1);
    int result = state_suppose(k, i, &hidden, ahead_ms);
    truth_fini(&hidden);
    return result;
}

static int suppose_truth(struct running *r, int i)
{
    const struct truth *t = r->truths[i];
    struct run_tools *tools = r->tools;
    return t->kind == TRUTH_NATIVE && r->job->hides_owners
               ? suppose_hidden(&tools->keys, i, t->expires_ms, tools->ahead_ms)
               : state_suppose(&tools->keys, i, t, tools->ahead_ms);
}

/* Returns whether commands of Redis must leave it alone: its holder has it by LOCK, or on the
 * masters themselves. */
static bool is_guarded(const struct truth *t)
{
    return t->kind == TRUTH_NATIVE || t->kind == TRUTH_PLAIN;
}

static void suppose_all(struct running *r)
{
    struct run_tools *t = r->tools;
    keys_begin(&t->keys, r->job->names, r->job->n_names, (r->now_ms + t->ahead_ms) * 1000);
    for (int i = 0; i < r->job->n_names; i++) {
        const struct truth *truth = r->truths[i];
        r->has_guarded = r->has_guarded || is_guarded(truth);
        if (truth->kind == TRUTH_SPLIT)
            suppose_others(&t->keys, i, r->now_ms + OTHERS_LEFT_MS, t->ahead_ms);
        else if (truth->kind == TRUTH_FOREIGN || suppose_truth(r, i) < 0)
            r->unknown[i] = true;
    }
}

/* ---- calls of commands ---- */

static bool run_word_is(const struct resp_arg *word, const char *text)
{
    return word->len == strlen(text) && strncasecmp(word->ptr, text, word->len) == 0;
}

/* Returns which of the job's names is guarded and this key; -1: none. */
static int find_guarded_name(const struct running *r, const struct resp_arg *key)
{
    for (int i = 0; i < r->job->n_names; i++) {
        const struct resp_arg *name = &r->job->names[i];
        if (is_guarded(r->truths[i]) && name->len == key->len &&
            memcmp(name->ptr, key->ptr, key->len) == 0)
            return i;
    }
    return -1;
}

/* Runs DEL or UNLINK of those keys that are not guarded. */
static int delete_others(struct running *r, const struct store_command *command,
                         const struct resp_arg *argv, int argc, struct store_reply *out, char *why,
                         size_t size)
{
    struct resp_arg *words = util_alloc((size_t)argc * sizeof *words);
    int n = 0, result = 0;
    for (int i = 0; i < argc; i++) {
        int guarded = i > 0 ? find_guarded_name(r, &argv[i]) : -1;
        if (guarded >= 0)
            r->tools->keys.seen[guarded].is_read = true;
        else
            words[n++] = argv[i];
    }
    if (n > 1 || argc == 1)
        result = keys_run(&r->tools->keys, command, words, n, out, why, size);
    else
        store_add_int(out, 0);
    free(words);
    return result;
}

static void say_who_ends_it(const struct running *r, int i, char *why, size_t size)
{
    const struct truth *t = r->truths[i];
    const struct resp_arg *name = &r->job->names[i];
    int shown = (int)(name->len < 64 ? name->len : 64);
    struct resp_arg holder = {truth_bytes(t), truth_len(t)};
    if (t->kind == TRUTH_PLAIN) {
        snprintf(why, size,
                 "writes to '%.*s', which is held by a program that does not use holdfast: only "
                 "that program ends it",
                 shown, name->ptr);
        return;
    }
    if (r->job->hides_owners)
        holder = (struct resp_arg){"somebody", 8};
    else if (holder.len == 0)
        holder = (struct resp_arg){"readers or permits", 18};
    snprintf(why, size,
             "writes to '%.*s', which is held by LOCK, by %.*s: only UNLOCK and "
             "FORCEUNLOCK end that",
             shown, name->ptr, (int)holder.len, holder.ptr);
}

/* Refuses (-1, with the reason in `why`) a write to a lock that commands of Redis must not change.
 */
static int refuse_guarded_write(const struct running *r, char *why, size_t size)
{
    for (int i = 0; i < r->job->n_names; i++) {
        const struct truth *t = r->truths[i];
        const struct keys_seen *seen = &r->tools->keys.seen[i];
        if (!is_guarded(t) || (!seen->wrote_value && !seen->wrote_time))
            continue;
        say_who_ends_it(r, i, why, size);
        return -1;
    }
    return 0;
}

/* Returns whether a script's SELECT is of the database that it is in, which it may choose. */
static bool selects_own(const struct running *r, const struct resp_arg *argv, int argc)
{
    int64_t db;
    return argc == 2 && run_word_is(&argv[0], "SELECT") &&
           util_parse_int(argv[1].ptr, argv[1].len, 0, INT_MAX, &db) == 0 && db == r->job->db;
}

/* Runs a call of the script: struct cage_job's call. */
static int on_script_call(void *arg, const struct resp_arg *argv, int argc, struct store_reply *out,
                          char *why, size_t size)
{
    struct running *r = arg;
    const struct store_command *command = store_find(&argv[0]);
    int traits = command ? store_traits(command) : 0, result;
    if (r->job->read_only && (traits & STORE_WRITES)) {
        store_add_error(out, "ERR Write commands are not allowed from read-only scripts.");
        return 0;
    }
    if (!command && selects_own(r, argv, argc)) {
        store_add_text(out, STORE_STATUS, "OK", 2);
        return 0;
    }
    if (r->has_guarded && (traits & STORE_DELETES))
        result = delete_others(r, command, argv, argc, out, why, size);
    else
        result = keys_run(&r->tools->keys, command, argv, argc, out, why, size);
    return result < 0 || !r->has_guarded ? result : refuse_guarded_write(r, why, size);
}

/* ---- the run ---- */

/* Gives the error as its reply, and writes nothing. */
static void refuse_run(struct running *r, const char *why)
{
    char text[512];
    bool is_script = r->job->script != NULL;
    snprintf(text, sizeof text, "ERR the %s %s", is_script ? "script" : "command", why);
    clear_run(r->run, r->job->n_names);
    store_add_error(&r->run->reply, text);
}

static int run_client_script(struct running *r)
{
    const struct job *job = r->job;
    const struct cage_job cage_job = {.body = job->script->text,
                                      .len = job->script->len,
                                      .sha1 = job->script->sha1,
                                      .keys = job->keys,
                                      .n_keys = job->n_keys,
                                      .args = job->args,
                                      .n_args = job->n_args,
                                      .call = on_script_call,
                                      .arg = r};
    int result = cage_run(r->tools->cage, &cage_job, &r->run->reply);
    if (result < 0)
        refuse_run(r, cage_refusal(r->tools->cage));
    return result;
}

static int run_plain_commands(struct running *r)
{
    const struct job *job = r->job;
    char why[400];
    if (job->is_multi)
        store_add_array(&r->run->reply, job->n_commands);
    for (int i = 0; i < job->n_commands; i++) {
        const struct job_command *c = &job->commands[i];
        if (on_script_call(r, c->argv, c->argc, &r->run->reply, why, sizeof why) < 0) {
            refuse_run(r, why);
            return -1;
        }
    }
    return 0;
}

/* ---- what came of it ---- */

static int64_t bounded(int64_t lease_ms)
{
    return lease_ms < 1 ? 1 : lease_ms > LEASE_MAX_MS ? LEASE_MAX_MS : lease_ms;
}

/* Returns for how long what was found is to stand with the masters, in ms. */
static int64_t lease_of(const struct running *r, int i, const struct state_found *found)
{
    bool is_anew = r->truths[i]->kind != TRUTH_DROPIN || r->tools->keys.seen[i].wrote_time;
    if (found->has_time)
        return bounded(found->expires_ms - r->tools->ahead_ms - r->now_ms);
    return bounded(is_anew ? r->tools->max_hold_ms : r->truths[i]->expires_ms - r->now_ms);
}

/* Judges a name that was written. -1: what would stand there cannot be kept. */
static int judge_write(struct running *r, int i)
{
    const struct truth *t = r->truths[i];
    struct run_name *name = &r->run->names[i];
    struct state_found found;
    bool was_there = t->kind == TRUTH_DROPIN;
    if (state_write(&r->tools->keys, i, &name->text, &found) < 0)
        return -1;
    if (!found.is_there) {
        name->what = was_there ? EXCHANGE_END : EXCHANGE_LOOK;
        return 0;
    }
    bool is_kept = was_there && state_is_kept(truth_bytes(t), truth_len(t), buf_head(&name->text),
                                              buf_len(&name->text));
    name->what = is_kept ? EXCHANGE_IN_PLACE : EXCHANGE_NEW;
    name->keeps_time = is_kept && !r->tools->keys.seen[i].wrote_time;
    name->lease_ms = lease_of(r, i, &found);
    return 0;
}

static void refuse_value(struct running *r, int i)
{
    const struct resp_arg *name = &r->job->names[i];
    char why[192];
    snprintf(why, sizeof why,
             "writes more to '%.*s' than a lock can keep: %d bytes or %d fields in all",
             (int)(name->len < 64 ? name->len : 64), name->ptr, DROPIN_STATE_MAX, STATE_FIELDS_MAX);
    refuse_run(r, why);
}

/* Judges what was written. False: the run has been refused. */
static bool judge_writes(struct running *r)
{
    char why[256];
    if (keys_end(&r->tools->keys, why, sizeof why) < 0) {
        refuse_run(r, why);
        return false;
    }
    for (int i = 0; i < r->job->n_names; i++) {
        const struct keys_seen *seen = &r->tools->keys.seen[i];
        if (!seen->wrote_value && !seen->wrote_time)
            continue;
        if (judge_write(r, i) < 0) {
            refuse_value(r, i);
            return false;
        }
        r->run->writes = r->run->writes || r->run->names[i].what != EXCHANGE_LOOK;
    }
    return true;
}

/* Notes what was looked at. */
static void note_looks(struct running *r)
{
    for (int i = 0; i < r->job->n_names; i++) {
        const struct keys_seen *seen = &r->tools->keys.seen[i];
        struct run_name *name = &r->run->names[i];
        name->touched = r->job->is_watch || seen->is_read || seen->wrote_value || seen->wrote_time;
        name->read_time = seen->read_time;
    }
}

/* Refuses a run that has touched a name under which something else than a lock stands. */
static void refuse_unknown(struct running *r)
{
    for (int i = 0; i < r->job->n_names; i++) {
        const struct resp_arg *name = &r->job->names[i];
        char why[192];
        if (!r->unknown[i] || !r->run->names[i].touched)
            continue;
        snprintf(why, sizeof why, "asks for '%.*s': what the masters have there is no lock",
                 (int)(name->len < 64 ? name->len : 64), name->ptr);
        refuse_run(r, why);
        note_looks(r);
        return;
    }
}

void run_job(struct run_tools *t, const struct job *job, const struct truth *const truths[],
             struct run *run, int64_t now_ms)
{
    struct running r = {.tools = t, .job = job, .truths = truths, .run = run, .now_ms = now_ms};
    int result = 0;
    clear_run(run, job->n_names);
    suppose_all(&r);
    if (job->is_watch)
        store_add_text(&run->reply, STORE_STATUS, "OK", 2);
    else
        result = job->script ? run_client_script(&r) : run_plain_commands(&r);
    if (result == 0 && judge_writes(&r)) {
        struct store_reply none = run->published;
        run->published = t->keys.published;
        t->keys.published = none;
    }
    note_looks(&r);
    refuse_unknown(&r);
}
