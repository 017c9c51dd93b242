/*
 * A peek asks every master and waits for all of them, or for the time-out: what each one says is
 * the answer.
 */
#include "inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker_state.h"
#include "claim.h"
#include "keep.h"
#include "line.h"
#include "queue.h"
#include "stats.h"
#include "util.h"

/* {pttl, op, owner, token, count}, as in peek.lua */
enum { PEEK_PTTL, PEEK_OP, PEEK_OWNER, PEEK_TOKEN, PEEK_COUNT, PEEK_FIELDS };

static void on_peek(struct round *round, int i, const struct master_answer *answer, int64_t now_ms)
{
    struct lock_request *r = round->arg;
    struct lock_info_master *m = &r->info->masters[i];
    const struct master_value *v = answer->nested;
    (void)now_ms;
    m->answered = true;
    if (answer->n_nested != PEEK_FIELDS || !v[PEEK_OP].is_text || !v[PEEK_OWNER].is_text)
        return;
    m->held = true;
    m->pttl_ms = v[PEEK_PTTL].integer;
    m->op = util_memdup(v[PEEK_OP].text, v[PEEK_OP].len);
    m->owner = util_memdup(v[PEEK_OWNER].text, v[PEEK_OWNER].len);
    m->token = v[PEEK_TOKEN].integer;
    m->count = v[PEEK_COUNT].integer;
}

static void peek(struct broker *b, struct lock_request *r, round_fn fn, int64_t now_ms)
{
    int n = b->backend.n;
    r->info = util_alloc(sizeof *r->info + (size_t)n * sizeof r->info->masters[0]);
    r->info->n_masters = n;
    struct item *it = item_begin(r->lock->name, r->lock->name_len);
    struct round *round = backend_ask(&b->backend, SCRIPT_PEEK, it, true, fn, r, now_ms);
    round->on_vote = on_peek;
}

static bool no_majority(struct lock_request *r, struct round *round, int64_t now_ms)
{
    if (quorum_state(&round->quorum) == QUORUM_WON)
        return false;
    struct buf why = {0};
    round_describe(round, &why, now_ms);
    broker_finish_error(r->broker, r, "NOQUORUM %.*s", (int)buf_len(&why), buf_head(&why));
    buf_fini(&why);
    return true;
}

/* ---- HOLDS ---- */

static void on_holds(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    const struct lock_info *info = r->info;
    round_forget(round);
    if (no_majority(r, round, now_ms))
        return;
    for (int i = 0; i < info->n_masters; i++) {
        const struct lock_info_master *m = &info->masters[i];
        int same = 0;
        if (!m->held || strlen(m->owner) != r->owner->len ||
            memcmp(m->owner, r->owner->text, r->owner->len) != 0)
            continue;
        for (int j = 0; j < info->n_masters; j++)
            same += info->masters[j].held && strcmp(info->masters[j].op, m->op) == 0;
        if (same >= quorum_need(info->n_masters)) {
            broker_finish_count(r->broker, r, m->count);
            return;
        }
    }
    broker_finish_count(r->broker, r, 0);
}

void inspect_holds(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    const struct hold *h = lock_hold_of(r->lock, r->owner);
    if (h)
        broker_finish_count(b, r, keep_is_valid(h, now_ms) ? h->count : 0);
    else
        peek(b, r, on_holds, now_ms);
}

/* ---- LOCKINFO ---- */

static void add_local(struct lock_info *info, const struct lock *l, int64_t now_ms)
{
    const struct hold *h = lock_first_hold(l);
    const struct lock_request *r = l->queue ? TAILQ_FIRST(&l->queue->waiters) : NULL;
    if (h) {
        info->owner = owner_ref(h->owner);
        info->session_id = h->session ? h->session->id : 0;
        info->token = h->token;
        info->count = h->count;
        info->left_ms = h->deadline_ms > now_ms ? h->deadline_ms - now_ms : 0;
        info->since_ms = now_ms - h->since_ms;
        info->watched = h->watched;
    }
    info->n_waiters = l->queue ? l->queue->n_waiters : 0;
    for (; r && info->n_listed < LOCK_INFO_WAITERS; r = TAILQ_NEXT(r, queued)) {
        struct lock_info_waiter *w = &info->listed[info->n_listed++];
        w->owner = owner_ref(r->owner);
        w->session_id = r->base.session ? r->base.session->id : 0;
        w->waited_ms = now_ms - r->base.arrived_us / 1000;
        w->fair = r->fair;
    }
}

static const char *why_not(const struct round *round, int i, int64_t now_ms)
{
    struct backend *backend = round->backend;
    if (backend->closed) /* the master may be gone */
        return "this broker is going down";
    return round->votes[i].open ? "timeout" : master_reason(backend->masters[i], now_ms);
}

static void on_info(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    round_forget(round);
    for (int i = 0; i < r->info->n_masters; i++) {
        struct lock_info_master *m = &r->info->masters[i];
        char text[LOCK_OWNER_MAX + 128];
        if (!m->answered)
            snprintf(text, sizeof text, "no answer: %s", why_not(round, i, now_ms));
        else if (!m->held)
            snprintf(text, sizeof text, "free");
        else
            snprintf(text, sizeof text, "held by %s under token %" PRId64 ", %" PRId64 " ms left",
                     m->owner, m->token, m->pttl_ms);
        m->text = util_strdup(text);
    }
    add_local(r->info, r->lock, now_ms);
    broker_finish(r->broker, r, RESULT_INFO);
}

void inspect_info(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    peek(b, r, on_info, now_ms);
}

/* ---- FORCEUNLOCK ---- */

static void on_forced(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct lock *l = r->lock;
    struct broker *b = r->broker;
    r->failed |= quorum_state(&round->quorum) != QUORUM_WON;
    if (--r->pending > 0)
        return;
    broker_use(l);
    if (r->failed)
        broker_finish_error(b, r, "NOQUORUM too few masters have confirmed that '%s' is free",
                            l->name);
    else
        broker_finish_count(b, r, r->count);
    queue_run(b, l, now_ms);
    broker_put(b, l);
}

static bool seen_before(const struct lock_info *info, int i)
{
    for (int j = 0; j < i; j++) {
        if (info->masters[j].held && strcmp(info->masters[j].op, info->masters[i].op) == 0)
            return true;
    }
    return false;
}

static void on_force_peeked(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct lock *l = r->lock;
    struct broker *b = r->broker;
    struct hold *h;
    round_forget(round);
    if (no_majority(r, round, now_ms))
        return;
    broker_use(l);
    r->pending = 1; /* ours, until all have been started */
    while ((h = lock_first_hold(l))) {
        stats.releases_forced++;
        r->count = 1;
        h->deadline_ms = now_ms; /* by order, whatever its owner was told */
        if (h->state == HOLD_LOST)
            b->hold_over(b, h, now_ms);
        else
            keep_lose(b, h, LOST_FORCED, true, now_ms);
    }
    for (int i = 0; i < r->info->n_masters; i++) {
        const struct lock_info_master *m = &r->info->masters[i];
        if (!m->held || seen_before(r->info, i))
            continue;
        r->count = 1;
        r->pending++;
        line_release(b, l, m->op, NULL, b->conf.max_lease_ms, on_forced, r, now_ms);
    }
    if (--r->pending == 0)
        broker_finish_count(b, r, r->count);
    broker_put(b, l);
}

void inspect_force(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    peek(b, r, on_force_peeked, now_ms);
}
