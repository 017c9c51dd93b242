/* WATCH and EXEC. A name is watched from the moment that WATCH is made: an EXEC that comes right
 * behind it waits for its answer in the line of that name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "dropin/call_private.h"

struct dropin_watch *dropin_watch_new(void)
{
    struct dropin_watch *w = util_alloc(sizeof *w);
    w->refs = 1;
    return w;
}

void dropin_watch_drop(struct dropin_watch *w)
{
    if (!w || --w->refs > 0)
        return;
    for (int i = 0; i < w->n; i++) {
        free(w->names[i].text);
        truth_fini(&w->names[i].truth);
    }
    free(w);
}

static struct watched *find_watched(struct dropin_watch *w, const struct resp_arg *lock)
{
    for (int i = 0; i < w->n; i++) {
        const struct resp_arg *have = &w->names[i].lock;
        if (have->len == lock->len && memcmp(have->ptr, lock->ptr, lock->len) == 0)
            return &w->names[i];
    }
    return NULL;
}

/* Watches a name from now on; one that is watched already stays as it was seen first. False: they
 * are too many. */
static bool watch(struct dropin_watch *w, const struct resp_arg *name, const struct resp_arg *lock)
{
    if (find_watched(w, lock))
        return true;
    if (w->n == KEYS_MAX)
        return false;
    char *text = util_alloc(name->len + lock->len + 1);
    memcpy(text, name->ptr, name->len);
    memcpy(text + name->len, lock->ptr, lock->len);
    w->names[w->n++] = (struct watched){
        .text = text, .name = {text, name->len}, .lock = {text + name->len, lock->len}};
    return true;
}

/* ---- WATCH ---- */

struct dropin_call *dropin_call_watch(struct dropin *d, int db, struct dropin_watch *w,
                                      const struct resp_arg *names, int n)
{
    struct dropin_call *c = call_new(d);
    struct job *job = &c->job;
    c->watch = w;
    w->refs++;
    job_watch(job, db, names, n);
    for (int i = 0; i < job->n_names && !job->error[0]; i++) {
        if (!watch(w, &job->names[i], &job->locks[i]))
            job_too_many(job);
    }
    return c;
}

void call_watch_note(struct dropin_call *c)
{
    for (int i = 0; i < c->job.n_names; i++) {
        struct watched *one = find_watched(c->watch, &c->job.locks[i]);
        if (one && one->truth.kind == TRUTH_UNKNOWN)
            truth_copy(&one->truth, &c->slots[i].truth);
    }
}

/* ---- EXEC ---- */

void call_watch_join(struct dropin_call *c)
{
    struct job *job = &c->job;
    for (int i = 0; i < c->watch->n && !job->error[0]; i++) {
        const struct watched *w = &c->watch->names[i];
        int at = job_add_name(job, &w->name, &w->lock);
        if (at >= 0 && job->locks[at].len != w->lock.len)
            snprintf(job->error, sizeof job->error,
                     "ERR EXEC in another database than that of WATCH");
    }
    job_check_slots(job);
}

void call_watch_bind(struct dropin_call *c)
{
    for (int i = 0; i < c->job.n_names; i++)
        c->slots[i].watched = find_watched(c->watch, &c->job.locks[i]);
}

bool call_watch_guess(struct dropin_call *c, int64_t now_ms)
{
    for (int i = 0; i < c->job.n_names; i++) {
        const struct watched *w = c->slots[i].watched;
        if (!w)
            continue;
        bool is_over = w->truth.kind == TRUTH_DROPIN && w->truth.expires_ms <= now_ms;
        bool is_nameless = w->truth.kind != TRUTH_FREE && !w->truth.op[0]; /* unchanged? unknown */
        if (is_nameless || is_over)
            return false;
        truth_copy(&c->slots[i].truth, &w->truth);
    }
    return true;
}

bool call_watch_is_met(const struct dropin_call *c)
{
    for (int i = 0; i < c->job.n_names; i++) {
        const struct watched *w = c->slots[i].watched;
        const struct truth *t = &c->slots[i].truth;
        if (w && (w->truth.kind != t->kind || strcmp(w->truth.op, t->op) != 0))
            return false;
    }
    return true;
}
