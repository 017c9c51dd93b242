/*
 * A script that is run for the first time is tried over the states in which its keys can be found,
 * and the log says for what it would be refused: before that happens in the middle of the night.
 * One script after the other, some states at a time, so that no turn of the loop is long; only so
 * many wait, and those that come meanwhile are tried when they are run again.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "dropin/call_private.h"
#include "dropin/probe.h"
#include "lock/broker_state.h"

/* CHECKS_MAX scripts are checked at a time; after LOT_STEPS of the cage the next states wait for
 * the next millisecond. */
enum { CHECKS_MAX = 32, LOT_STEPS = 300 };

struct check {
    TAILQ_ENTRY(check) next;
    struct script_body *body; /* one reference */
    struct resp_arg *words;   /* a copy of its keys, then of its arguments */
    struct probe_walk *walk;
};

static void end_check(struct dropin *d, struct check *check)
{
    TAILQ_REMOVE(&d->checks, check, next);
    d->n_checks--;
    probe_walk_free(check->walk);
    script_body_unref(check->body);
    free(check->words);
    free(check);
}

static void log_check(const struct check *check, const struct probe_row *row, int64_t now_ms)
{
    static struct log_limit limit;
    if (log_limited(&limit, now_ms))
        log_warn("drop-in",
                 "script %s, run for the first time, is not served in each state of its locks "
                 "(SCRIPT CHECK, or `holdfast script FILE`, shows them). %s: %s",
                 check->body->sha1, row->state, row->does);
}

static void on_check_due(struct broker *b, struct due *due, int64_t now_ms)
{
    struct dropin *d = (struct dropin *)((char *)due - offsetof(struct dropin, check_due));
    struct check *check = TAILQ_FIRST(&d->checks);
    struct probe_row row;
    enum probe_step step;
    long steps = 0;
    do {
        step = probe_walk_step(check->walk, &row);
        steps += cage_steps(d->tools.cage);
    } while (step == PROBE_SERVED && steps < LOT_STEPS);
    if (step == PROBE_REFUSED)
        log_check(check, &row, now_ms);
    if (step != PROBE_SERVED)
        end_check(d, check);
    if (!TAILQ_EMPTY(&d->checks))
        due_at(&b->due, due, now_ms + 1);
}

void call_check_script(struct dropin *d, const struct job *job, int64_t now_ms)
{
    struct broker *b = d->broker;
    if (d->n_checks == CHECKS_MAX || job->n_names < job->n_keys)
        return;
    struct check *check = util_alloc(sizeof *check);
    check->body = job->script;
    check->body->refs++;
    check->body->is_checked = true;
    check->words = resp_copy_args(job->keys, job->n_keys + job->n_args);
    const struct probe_script script = {.body = job->script->text,
                                        .len = job->script->len,
                                        .keys = check->words,
                                        .args = check->words + job->n_keys,
                                        .n_keys = job->n_keys,
                                        .n_args = job->n_args};
    check->walk = probe_walk_new(d->tools.cage, &script);
    TAILQ_INSERT_TAIL(&d->checks, check, next);
    d->check_due.fn = on_check_due;
    if (d->n_checks++ == 0)
        due_at(&b->due, &d->check_due, now_ms + 1);
}

void call_end_checks(struct dropin *d)
{
    struct check *check, *next;
    due_cancel(&d->broker->due, &d->check_due);
    for (check = TAILQ_FIRST(&d->checks); check; check = next) {
        next = TAILQ_NEXT(check, next);
        end_check(d, check);
    }
}
