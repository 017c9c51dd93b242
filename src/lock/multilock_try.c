/*
 * A try of MLOCK: a claim for each name that its owner has not got, all of them in one script call;
 * in a Redis Cluster those of each partition, and what one of them got is given back where another
 * one refused.
 * When every claim has ended it is decided for all: granted, once the others have been entered
 * again, or given back, and then refused or waiting.
 *
 * Invariants: nothing is decided while `pending` is above 0; until it is, what was granted is busy.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/finish.h"
#include "lock/hold.h"
#include "lock/lock_share.h"
#include "lock/multilock_private.h"
#include "lock/queue.h"
#include "lock/waiters.h"
#include "stats/stats.h"

/* ---- the end of a try ---- */

/* It waits where it was refused. Whoever has waited before goes to the head there. */
static void wait_at(struct multilock *m, struct multilock_name *item, int64_t now_ms)
{
    struct lock_request *r = m->request;
    bool was_in_line = m->has_waited;
    m->has_waited = true;
    multilock_set_lock(m->broker, r, item->lock);
    waiters_wait(m->broker, item->lock, r, was_in_line, item->retry_ms, now_ms);
}

/* What it waits for there, for the end of its time: a majority, or who holds the lock. */
static void tell_queue(struct multilock *m, const struct multilock_name *item)
{
    queue_set_failure(&m->broker->failed, queue_get(item->lock), m->failure);
    m->failure = NULL;
}

static void refused(struct multilock *m, struct multilock_name *item, int64_t now_ms)
{
    struct lock_request *r = m->request;
    bool waits = item && r->wait_until_ms && r->base.session && r->wait_until_ms > now_ms;
    if (m->failure && !m->error && !waits) {
        m->error = m->failure;
        m->failure = NULL;
    }
    if (m->error) {
        multilock_finish_error(m);
    } else if (!waits) {
        finish_not_granted(m->broker, r);
    } else {
        tell_queue(m, item);
        wait_at(m, item, now_ms);
    }
}

/* The first that was in the way; NULL: none. */
static struct multilock_name *find_refused(struct multilock *m)
{
    for (int i = 0; i < m->n; i++) {
        if (!m->items[i].granted && m->items[i].end == CLAIM_BUSY && m->items[i].retry_ms > 0)
            return &m->items[i];
    }
    for (int i = 0; i < m->n; i++) {
        if (!m->items[i].granted && !m->items[i].enters)
            return &m->items[i];
    }
    return NULL;
}

/* Everything is granted that had to be asked for: what the owner had already is entered again. */
static void enter_others(struct multilock *m)
{
    for (int i = 0; i < m->n; i++) {
        struct multilock_name *item = &m->items[i];
        if (item->enters && !item->granted) {
            item->enters = false;
            multilock_run_one(item, VERB_LOCK);
        }
    }
}

/* What was granted or entered again counts from now on, or is about to be given back: until now
 * other requests of its owner had to wait, for nobody could tell them which. */
static void end_busy(struct multilock *m)
{
    for (int i = 0; i < m->n; i++) {
        if (m->items[i].hold.hold)
            m->items[i].hold.hold->busy = false;
    }
}

/* The new hold of one of the names. Returns until when it may be relied on. */
static int64_t use_hold(struct multilock_name *item, int64_t now_ms)
{
    struct multilock *m = item->multilock;
    struct hold *h = item->hold.hold;
    if (!h)
        return now_ms; /* it has ended: the reply will not say that it is held */
    if (!item->repeated) {
        hold_use_lease(m->broker, h, m->request, now_ms);
        hold_add_id(h, m->request->id);
        hold_entered(h, m->request);
    }
    return h->deadline_ms;
}

static void all_granted(struct multilock *m, int64_t now_ms)
{
    struct lock_request *r = m->request;
    end_busy(m);
    stats.acquires_granted++;
    r->base.granted = true;
    r->deadline_ms = INT64_MAX;
    for (int i = 0; i < m->n; i++) {
        int64_t until_ms = use_hold(&m->items[i], now_ms);
        if (until_ms < r->deadline_ms)
            r->deadline_ms = until_ms;
    }
    finish_as(m->broker, r, RESULT_MANY);
}

void multilock_claims_over(struct multilock *m, int64_t now_ms)
{
    struct lock_request *r = m->request;
    for (int i = 0; i < m->n && !m->error; i++)
        m->error = waiters_not_permitted(r, m->items[i].lock);
    struct multilock_name *item = m->error ? NULL : find_refused(m);
    bool enters = false, all = true;
    for (int i = 0; i < m->n; i++) {
        enters |= m->items[i].enters;
        all &= m->items[i].granted || m->items[i].enters;
    }
    if (all && enters && !m->error && r->base.session) {
        enter_others(m);
        return;
    }
    if (all && !m->error && r->base.session) {
        all_granted(m, now_ms);
    } else {
        end_busy(m);
        multilock_give_back(m, now_ms);
        refused(m, item, now_ms);
    }
    multilock_undefer(m);
}

/* ---- claims ---- */

static void note_name_refusal(struct multilock_name *item, const struct claim *c)
{
    struct multilock *m = item->multilock;
    char is[64];
    item->retry_ms = c->retry_ms;
    if (c->end == CLAIM_FAILED) {
        free(m->failure);
        m->failure = util_strdup(c->reason);
    } else if (c->end == CLAIM_KIND) {
        stats.acquires_kind++;
        multilock_keep_error(m, util_format("KIND '%s' is held as %s", c->lock->name,
                                            lock_part_words(c->in_use, is, sizeof is)));
    } else if (c->end == CLAIM_DEADLOCK) {
        multilock_keep_error(m, verdict_deadlock(c->lock));
    } else if (c->end == CLAIM_SAME_OWNER) {
        multilock_keep_error(m, util_format("ERR '%s' is held by this owner through another "
                                            "broker; RENEW brings it here",
                                            c->lock->name));
    }
}

static void on_claim_end(struct claim *c, void *arg, int64_t now_ms)
{
    struct multilock_name *item = arg;
    struct multilock *m = item->multilock;
    struct broker *b = m->broker;
    struct lock *l = c->lock;
    item->end = c->end;
    if (c->end == CLAIM_GRANTED) {
        multilock_set_hold(item, hold_start(b, l, c, m->request, now_ms));
    } else {
        note_name_refusal(item, c);
        verdict_note_ticket(l, c);
    }
    if (--m->pending == 0)
        multilock_claims_over(m, now_ms);
    work_lock(&b->work, l, WORK_RUN | WORK_UNDEFER);
}

static void forget_asked(struct multilock *m, int upto)
{
    for (int i = 0; i < upto; i++) {
        if (m->items[i].asks && m->items[i].part.kind != LOCK_EXCLUSIVE)
            share_asked(m->items[i].lock, m->items[i].part);
    }
}

/* What is to be done for each name. False: it was refused, from memory. */
static bool plan(struct multilock *m, int64_t now_ms)
{
    struct lock_request *r = m->request;
    for (int i = 0; i < m->n; i++) {
        struct multilock_name *item = &m->items[i];
        const struct hold *own = waiters_already_has(item->lock, r);
        struct lock_part in_use;
        item->part = r->want;
        item->repeated = false;
        item->retry_ms = 0;
        item->end = CLAIM_BUSY;
        item->enters = own && hold_is_valid(own, now_ms);
        item->asks = !item->enters;
        if (item->enters && r->unnamed && !hold_has_id(own, r->id)) {
            forget_asked(m, i);
            waiters_held_error(m->broker, r, item->lock);
            return false;
        }
        if (item->enters)
            continue;
        enum waiters_admission admission = waiters_admits(item->lock, r, &in_use);
        if (admission == WAITERS_MAY_ASK &&
            (r->want.kind == LOCK_EXCLUSIVE ||
             share_ask(item->lock, &item->part, m->broker->first_permit)))
            continue;
        item->asks = false;
        forget_asked(m, i);
        if (waiters_doubts(m->broker, item->lock, r, now_ms) && r->base.session) {
            wait_at(m, item, now_ms); /* also a try, until the masters have said */
            return false;
        }
        if (admission == WAITERS_WRONG_KIND) {
            waiters_kind_error(m->broker, r, item->lock, in_use);
            return false;
        }
        refused(m, item, now_ms);
        return false;
    }
    return true;
}

static int first_master_of(const struct multilock_name *item)
{
    const struct lock *l = item->lock;
    return rounds_first(&item->multilock->broker->rounds, l->name, l->name_len);
}

/* Lets what each group of masters is asked for travel in one call, which gets all of that or none.
 * Sets how many names these are, by its first master. */
static void go_together(struct multilock *m, int counts[ROUNDS_MASTERS_MAX], int64_t now_ms)
{
    struct rounds *b = &m->broker->rounds;
    memset(counts, 0, ROUNDS_MASTERS_MAX * sizeof counts[0]);
    for (int i = 0; i < m->n; i++)
        counts[first_master_of(&m->items[i])] += m->items[i].asks;
    for (int first = 0; first < b->n_all; first += b->n)
        if (counts[first] > 0)
            round_together(b, first, SCRIPT_ACQUIRE, counts[first], now_ms);
}

void multilock_turn(struct multilock *m, int64_t now_ms)
{
    struct lock_request *r = m->request;
    struct broker *b = m->broker;
    uint64_t group = b->last_op + 1;
    int counts[ROUNDS_MASTERS_MAX];
    if (!plan(m, now_ms)) { /* it is over, or waits elsewhere: for others this one may be free */
        multilock_undefer(m);
        return;
    }
    go_together(m, counts, now_ms);
    m->pending++;
    for (int i = 0; i < m->n; i++) {
        struct multilock_name *item = &m->items[i];
        if (!item->asks)
            continue;
        struct claim *c = waiters_new_claim(b, item->lock, r, item->part, on_claim_end, item);
        c->group = group;
        c->group_size = counts[first_master_of(item)];
        m->pending++;
        claim_start(c, now_ms);
    }
    if (--m->pending == 0)
        multilock_claims_over(m, now_ms);
}

void multilock_lock(struct multilock *m, int64_t now_ms)
{
    if (!multilock_is_deferred(m))
        multilock_turn(m, now_ms);
}
