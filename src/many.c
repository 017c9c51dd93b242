/*
 * An item is one name of a request. What is done for one name alone (entering again, giving back)
 * goes through a request of its own, without a session, on the road of every other one.
 *
 * Invariants: `pending` counts the claims and own requests that have not ended; the request is in
 * at most one queue, and in none while something is pending.
 */
#include "many.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker_state.h"
#include "claim.h"
#include "defer.h"
#include "keep.h"
#include "lock_share.h"
#include "pool.h"
#include "queue.h"
#include "stats.h"
#include "util.h"

struct item_of {
    struct many *many;
    struct lock *lock;     /* one use */
    struct hold *hold;     /* pinned: granted, or entered again; NULL: not (yet) */
    struct lock_part part; /* asked for now */
    bool asks, enters;     /* in this try: by a claim, or again */
    enum claim_end end;    /* of the claim */
    int64_t retry_ms;
};

struct many {
    struct broker *broker;
    struct lock_request *request;
    int n, pending;
    bool has_waited;
    char *error; /* the first one; NULL: none */
    struct item_of items[];
};

void many_begin(struct broker *b, struct lock_request *r, const struct resp_arg *names, int n)
{
    struct many *m = util_alloc(sizeof *m + (size_t)n * sizeof m->items[0]);
    m->broker = b;
    m->request = r;
    m->n = n;
    for (int i = 0; i < n; i++) {
        m->items[i].many = m;
        m->items[i].lock = locktab_get(&b->locks, names[i].ptr, names[i].len);
        broker_use(m->items[i].lock);
    }
    r->many = m;
}

void many_free(struct many *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n; i++) {
        if (m->items[i].hold)
            keep_unpin(m->items[i].hold);
        broker_put(m->broker, m->items[i].lock);
    }
    free(m->error);
    free(m);
}

int many_count(const struct many *m)
{
    return m->n;
}

struct hold *many_hold(const struct many *m, int i)
{
    return m->items[i].hold;
}

static void set_lock(struct broker *b, struct lock_request *r, struct lock *l)
{
    broker_use(l);
    if (r->lock)
        broker_put(b, r->lock);
    r->lock = l;
}

static void keep_error(struct many *m, const char *text)
{
    if (!m->error)
        m->error = util_strdup(text);
}

/* ---- requests for one of the names ---- */

static void on_one_over(struct request *);

static const struct request_type one_type = {NULL, NULL, on_one_over};

/* `item` hears of the end; NULL: nobody does. */
static void run_one(struct broker *b, struct lock *l, const struct lock_request *like,
                    enum lock_verb verb, struct item_of *item, int64_t now_ms)
{
    struct lock_request *r = pool_get(sizeof *r);
    r->base.type = &one_type;
    r->base.arrived_us = like->base.arrived_us;
    r->broker = b;
    r->owner = owner_ref(like->owner);
    r->verb = (uint8_t)verb;
    r->want = like->want;
    r->lease_ms = like->lease_ms;
    r->maxhold_ms = like->maxhold_ms;
    r->tell = like->tell;
    r->by_session = like->by_session;
    r->item = item;
    r->lock = l;
    broker_use(l);
    if (item)
        item->many->pending++;
    b->resubmit(b, r, now_ms);
}

static void claims_over(struct many *, int64_t now_ms);
static void unlocks_over(struct many *);

static void one_over(struct item_of *item, struct lock_request *r, int64_t now_ms)
{
    struct many *m = item->many;
    m->pending--;
    if (m->request->verb == VERB_MUNLOCK) {
        m->request->count += r->result == RESULT_COUNT && r->count == 1;
        if (r->result == RESULT_ERROR)
            keep_error(m, r->text);
        if (m->pending == 0)
            unlocks_over(m);
        return;
    }
    item->hold = r->told;
    r->told = NULL; /* its pin is ours now */
    item->end = item->hold ? CLAIM_GRANTED : CLAIM_BUSY;
    if (r->result == RESULT_ERROR)
        keep_error(m, r->text);
    if (m->pending == 0)
        claims_over(m, now_ms);
}

static void on_one_over(struct request *base)
{
    struct lock_request *r = (struct lock_request *)base;
    struct broker *b = r->broker;
    if (r->item)
        one_over(r->item, r, b->now_ms);
    if (r->told)
        keep_unpin(r->told);
    lock_request_free(r);
}

/* ---- the end of a try ---- */

static void finish_error(struct many *m)
{
    stats.acquires_no_quorum += strncmp(m->error, "NOQUORUM", 8) == 0;
    broker_finish_error(m->broker, m->request, "%s", m->error);
}

void many_give_back(struct many *m, int64_t now_ms)
{
    for (int i = 0; i < m->n; i++) {
        struct item_of *item = &m->items[i];
        if (!item->hold)
            continue;
        struct hold *h = item->hold;
        item->hold = NULL;
        if (keep_is_valid(h, now_ms))
            run_one(m->broker, item->lock, m->request, VERB_UNLOCK, NULL, now_ms);
        keep_unpin(h);
    }
}

/* It waits where it was refused. Whoever has waited before goes to the head there. */
static void wait_at(struct many *m, struct item_of *item, int64_t now_ms)
{
    struct lock_request *r = m->request;
    bool was_in_line = m->has_waited;
    m->has_waited = true;
    set_lock(m->broker, r, item->lock);
    queue_wait(m->broker, item->lock, r, was_in_line, item->retry_ms, now_ms);
}

static void refused(struct many *m, struct item_of *item, int64_t now_ms)
{
    struct lock_request *r = m->request;
    if (m->error) {
        finish_error(m);
    } else if (!item || !r->wait_until_ms || !r->base.session || r->wait_until_ms <= now_ms) {
        if (r->wait_until_ms)
            stats.acquires_timeout++;
        else
            stats.acquires_busy++;
        broker_finish(m->broker, r, RESULT_NOT_GRANTED);
    } else {
        wait_at(m, item, now_ms);
    }
}

/* The first that was in the way; NULL: none. */
static struct item_of *find_refused(struct many *m)
{
    for (int i = 0; i < m->n; i++) {
        if (!m->items[i].hold && m->items[i].end == CLAIM_BUSY && m->items[i].retry_ms > 0)
            return &m->items[i];
    }
    for (int i = 0; i < m->n; i++) {
        if (!m->items[i].hold && !m->items[i].enters)
            return &m->items[i];
    }
    return NULL;
}

/* Everything is granted that had to be asked for: what the owner had already is entered again. */
static void enter_others(struct many *m, int64_t now_ms)
{
    m->pending++;
    for (int i = 0; i < m->n; i++) {
        struct item_of *item = &m->items[i];
        if (item->enters && !item->hold) {
            item->enters = false;
            run_one(m->broker, item->lock, m->request, VERB_LOCK, item, now_ms);
        }
    }
    if (--m->pending == 0)
        claims_over(m, now_ms);
}

/* What was granted counts from now on, or is about to be given back: until now other requests of
 * its owner had to wait, for nobody could tell them which. */
static void settle(struct many *m)
{
    for (int i = 0; i < m->n; i++) {
        if (m->items[i].hold && m->items[i].asks)
            m->items[i].hold->busy = false;
    }
}

/* The names' locks, each used once more: the request may be gone, with all that is in it, before
 * those who wait for its end have gone on. */
static int use_locks(const struct many *m, struct lock *locks[MANY_NAMES_MAX])
{
    for (int i = 0; i < m->n; i++) {
        locks[i] = m->items[i].lock;
        broker_use(locks[i]);
    }
    return m->n;
}

static void run_deferred(struct broker *b, struct lock *const locks[], int n, int64_t now_ms)
{
    for (int i = 0; i < n; i++) {
        defer_run(b, locks[i], now_ms);
        broker_put(b, locks[i]);
    }
}

static void all_granted(struct many *m)
{
    struct lock_request *r = m->request;
    settle(m);
    stats.acquires_granted++;
    r->base.granted = true;
    r->deadline_ms = INT64_MAX;
    for (int i = 0; i < m->n; i++) {
        if (m->items[i].hold->deadline_ms < r->deadline_ms)
            r->deadline_ms = m->items[i].hold->deadline_ms;
    }
    broker_finish(m->broker, r, RESULT_MANY);
}

static void claims_over(struct many *m, int64_t now_ms)
{
    struct lock_request *r = m->request;
    struct item_of *item = m->error ? NULL : find_refused(m);
    bool enters = false, all = true;
    for (int i = 0; i < m->n; i++) {
        enters |= m->items[i].enters;
        all &= m->items[i].hold != NULL || m->items[i].enters;
    }
    if (all && enters && !m->error && r->base.session) {
        enter_others(m, now_ms);
        return;
    }
    struct broker *b = m->broker;
    struct lock *locks[MANY_NAMES_MAX];
    int n = use_locks(m, locks);
    if (all && !m->error && r->base.session) {
        all_granted(m);
    } else {
        settle(m);
        many_give_back(m, now_ms);
        refused(m, item, now_ms);
    }
    run_deferred(b, locks, n, now_ms);
}

/* ---- claims ---- */

static void note_refusal(struct item_of *item, const struct claim *c)
{
    struct many *m = item->many;
    char is[64], text[LOCK_NAME_MAX + 128];
    item->retry_ms = c->retry_ms;
    if (c->end == CLAIM_FAILED) {
        keep_error(m, c->reason);
    } else if (c->end == CLAIM_KIND) {
        stats.acquires_kind++;
        snprintf(text, sizeof text, "KIND '%s' is held as %s", c->lock->name,
                 lock_part_words(c->in_use, is, sizeof is));
        keep_error(m, text);
    } else if (c->end == CLAIM_DEADLOCK) {
        stats.acquires_deadlock++;
        snprintf(text, sizeof text,
                 "DEADLOCK '%s' is read by you and by another one who waits already to have it "
                 "alone; release your share first",
                 c->lock->name);
        keep_error(m, text);
    } else if (c->end == CLAIM_SAME_OWNER) {
        snprintf(text, sizeof text,
                 "ERR '%s' is held by this owner through another broker; RENEW brings it here",
                 c->lock->name);
        keep_error(m, text);
    }
}

static void on_claim_end(struct claim *c, void *arg, int64_t now_ms)
{
    struct item_of *item = arg;
    struct many *m = item->many;
    struct broker *b = m->broker;
    struct lock *l = c->lock;
    item->end = c->end;
    if (c->end == CLAIM_GRANTED) {
        item->hold = keep_start(b, l, c, m->request, now_ms);
        keep_pin(item->hold);
        item->hold->busy = true; /* see settle() */
    } else {
        note_refusal(item, c);
        queue_note_ticket(l, c);
    }
    broker_use(l);
    if (--m->pending == 0)
        claims_over(m, now_ms);
    queue_run(b, l, now_ms);
    defer_run(b, l, now_ms);
    broker_put(b, l);
}

static void forget_asked(struct many *m, int upto)
{
    for (int i = 0; i < upto; i++) {
        if (m->items[i].asks && m->items[i].part.kind != LOCK_EXCLUSIVE)
            share_asked(m->items[i].lock, m->items[i].part);
    }
}

/* What is to be done for each name. False: it was refused, from memory. */
static bool plan(struct many *m, int64_t now_ms)
{
    struct lock_request *r = m->request;
    for (int i = 0; i < m->n; i++) {
        struct item_of *item = &m->items[i];
        const struct hold *own = queue_already_has(item->lock, r);
        struct lock_part in_use;
        item->part = r->want;
        item->retry_ms = 0;
        item->end = CLAIM_BUSY;
        item->enters = own && keep_is_valid(own, now_ms);
        item->asks = !item->enters;
        if (item->enters)
            continue;
        enum queue_admission admission = queue_admits(item->lock, r, &in_use);
        if (admission == QUEUE_MAY_ASK &&
            (r->want.kind == LOCK_EXCLUSIVE || share_ask(item->lock, &item->part, 0)))
            continue;
        item->asks = false;
        forget_asked(m, i);
        if (admission == QUEUE_WRONG_KIND) {
            queue_kind_error(m->broker, r, item->lock, in_use);
            return false;
        }
        refused(m, item, now_ms);
        return false;
    }
    return true;
}

static void try_all(struct many *m, int64_t now_ms)
{
    struct lock_request *r = m->request;
    struct broker *b = m->broker;
    uint64_t group = b->last_op + 1;
    int n = 0;
    if (!plan(m, now_ms))
        return;
    for (int i = 0; i < m->n; i++)
        n += m->items[i].asks;
    backend_together(&b->backend, SCRIPT_ACQUIRE, n, now_ms);
    m->pending++;
    for (int i = 0; i < m->n; i++) {
        struct item_of *item = &m->items[i];
        if (!item->asks)
            continue;
        struct claim *c = queue_new_claim(b, item->lock, r, item->part, on_claim_end, item);
        c->group = group;
        c->group_size = n;
        m->pending++;
        claim_start(c, now_ms);
    }
    if (--m->pending == 0)
        claims_over(m, now_ms);
}

/* An earlier request of this owner about one of the names is under way: it goes again then. */
static bool is_deferred(struct many *m)
{
    for (int i = 0; i < m->n; i++) {
        if (defer_needed(m->items[i].lock, m->request)) {
            set_lock(m->broker, m->request, m->items[i].lock);
            defer_request(m->items[i].lock, m->request);
            return true;
        }
    }
    return false;
}

void many_lock(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    (void)b;
    if (!is_deferred(r->many))
        try_all(r->many, now_ms);
}

void many_turn(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    (void)b;
    try_all(r->many, now_ms);
}

/* ---- MUNLOCK ---- */

static void unlocks_over(struct many *m)
{
    if (m->error)
        finish_error(m);
    else
        broker_finish_count(m->broker, m->request, m->request->count);
}

void many_unlock(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct many *m = r->many;
    if (is_deferred(m))
        return;
    m->pending++;
    for (int i = 0; i < m->n; i++)
        run_one(b, m->items[i].lock, r, VERB_UNLOCK, &m->items[i], now_ms);
    if (--m->pending == 0)
        unlocks_over(m);
}
