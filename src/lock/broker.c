/*
 * Requests come in here and are handed to the flow that runs them: queue (LOCK, and what follows a
 * release), enter (an owner and the hold that it has), keep (a hold's own life), inspect
 * (questions). broker_turn.c has the turn of the loop and what takes several of them.
 */
#include "lock/broker.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "lock/broker_private.h"
#include "lock/defer.h"
#include "lock/handover.h"
#include "lock/hold.h"
#include "lock/inspect.h"
#include "lock/multilock.h"
#include "lock/reentry.h"
#include "lock/takeover.h"
#include "lock/waiters.h"
#include "stats/stats.h"

const char broker_draining[] = "DRAINING this broker is going down: ask another one";

/* ---- holds that are over ---- */

void broker_end_hold(struct broker *b, struct hold *h, struct lock_request *releaser,
                     bool is_lapsing, int64_t now_ms)
{
    struct lock *l = h->lock;
    struct owner *owner = owner_ref(h->owner);
    int64_t lease_ms = h->shortened ? b->conf.max_lease_ms : h->lease_ms;
    struct ended_hold passed = {h->op, lease_ms, h->part, owner};
    broker_use(l);
    notify_released(h, now_ms);
    hold_end(b, h);
    handover_pass_on(b, l, &passed, releaser, is_lapsing, now_ms);
    owner_unref(owner);
    broker_put(b, l);
}

/* keep says that its time is over, or that it is lost for good. */
static void hold_over(struct broker *b, struct hold *h, int64_t now_ms)
{
    struct lock *l = h->lock;
    /* a renewal may have come unseen, or what shortens it may have got lost */
    bool may_linger = h->state == HOLD_LOST || h->watched || h->shortened;
    /* Gone from a majority: some may hold it still, or under the operation of a take-over that
     * failed, and that keeps others out for as long as its owner was told. */
    bool is_early = h->state == HOLD_LOST && now_ms < h->deadline_ms && now_ms < h->end_ms;
    bool inherits = h->inherits && now_ms <= h->since_ms + b->conf.max_lease_ms;
    if (!is_early && !inherits) {
        stats.releases_expired += h->state != HOLD_LOST;
        broker_end_hold(b, h, NULL, !may_linger, now_ms);
        return;
    }
    broker_use(l); /* neither handed over nor released: it lapses on the masters by itself */
    hold_end(b, h);
    waiters_run(b, l, now_ms);
    broker_put(b, l);
}

/* ---- requests ---- */

/* Is no new lock to be given to this one at all? Then it has its error. */
static bool is_refused(struct broker *b, struct lock_request *r)
{
    const struct lock *l = r->lock;
    const struct session *s = r->base.session;
    uint32_t n_waiters = l->queue ? l->queue->n_waiters : 0;
    uint32_t wanted = r->multilock ? (uint32_t)multilock_count(r->multilock) : 1;
    if (b->draining) {
        stats.acquires_draining++;
        broker_finish_error(b, r, "%s", broker_draining);
    } else if (b->paused && !r->wait_until_ms) {
        stats.acquires_paused++;
        broker_finish_error(
            b, r, "PAUSED no new locks are given until RESUME; '%s' was not taken (WAIT waits)",
            l->name);
    } else if (b->conf.max_locks > 0 && b->n_holds >= b->conf.max_locks && !lock_first_hold(l)) {
        stats.acquires_limit++;
        broker_finish_error(
            b, r, "LIMIT this broker has %" PRIu32 " locks, no more are allowed (max_locks)",
            b->n_holds);
    } else if (s && s->n_holds + wanted > b->conf.max_locks_per_client) {
        stats.acquires_limit++;
        broker_finish_error(b, r,
                            "LIMIT this connection has %" PRIu32
                            " locks, no more are allowed (max_locks_per_client)",
                            s->n_holds);
    } else if (r->wait_until_ms && n_waiters >= b->conf.max_waiters_per_lock) {
        stats.acquires_limit++;
        broker_finish_error(b, r,
                            "LIMIT %" PRIu32 " requests wait for '%s', no more are allowed "
                            "(max_waiters_per_lock)",
                            n_waiters, l->name);
    } else if (r->wait_until_ms && b->n_waiters >= b->conf.max_waiters) {
        stats.acquires_limit++;
        broker_finish_error(b, r,
                            "LIMIT %" PRIu32
                            " requests wait at this broker, no more are allowed (max_waiters)",
                            b->n_waiters);
    } else {
        return false;
    }
    return true;
}

static void lock(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = waiters_already_has(r->lock, r);
    bool is_valid = h && hold_is_valid(h, now_ms);
    char *error = waiters_not_permitted(r, r->lock);
    if (error)
        broker_finish_error(b, r, "%s", error);
    else if (is_valid && hold_has_id(h, r->id))
        reentry_repeated(b, h, r);
    else if (is_valid && r->unnamed)
        waiters_held_error(b, r, r->lock);
    else if (is_valid)
        reentry_again(b, h, r, now_ms);
    else if (!is_refused(b, r))
        waiters_join(b, r->lock, r, now_ms);
    free(error);
}

static void unlock(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = lock_hold_of(r->lock, r->owner);
    if (h && hold_is_valid(h, now_ms)) {
        if (h->count > 1) {
            reentry_leave(b, h, r, now_ms);
            return;
        }
        stats.releases_client++;
        h->released_by = r->by_session;
        broker_end_hold(b, h, r, false, now_ms);
    } else if (h) {
        broker_end_hold(b, h, NULL, false,
                        now_ms); /* lost, and now it says itself that it is done */
        broker_finish(b, r, RESULT_NOT_HELD);
    } else {
        takeover_begin(b, r->lock, r, now_ms);
    }
}

static void renew(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = lock_hold_of(r->lock, r->owner);
    if (h && !hold_is_valid(h, now_ms))
        broker_finish(b, r, RESULT_NOT_HELD);
    else if (h && (h->session == r->base.session || !h->watched))
        reentry_renew(b, h, r, now_ms);
    else
        takeover_begin(b, r->lock, r, now_ms);
}

/* Nobody waits any more for what it would get: its connection has gone, or is going, while it stood
 * behind another request. */
static bool is_of_nobody(const struct lock_request *r)
{
    const struct session *s = r->base.session;
    return (r->verb == VERB_LOCK || r->verb == VERB_MLOCK) && !r->item && !r->goes_on &&
           (!s || s->ended);
}

/* Is another request of its owner writing the hold that this one came for, and that it has been
 * taken back for meanwhile? */
static bool has_busy_hold(const struct lock_request *r)
{
    const struct hold *h =
        r->verb == VERB_LOCK ? waiters_already_has(r->lock, r) : lock_hold_of(r->lock, r->owner);
    return h && h->busy && r->goes_on && !r->multilock && !r->item;
}

static void run(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    if (is_of_nobody(r)) {
        stats.acquires_abandoned++;
        broker_finish(b, r, RESULT_NOT_GRANTED);
        return;
    }
    if (r->lock->n_leaving > 0)
        broker_release_left_of(b, r->lock, now_ms);
    if (has_busy_hold(r) || (!r->goes_on && !r->multilock &&
                             (defer_needed(r->lock, r) || multilock_is_before(r->lock, r)))) {
        defer_request(r->lock, r);
        return;
    }
    switch ((enum lock_verb)r->verb) {
    case VERB_LOCK:
        lock(b, r, now_ms);
        break;
    case VERB_UNLOCK:
        unlock(b, r, now_ms);
        break;
    case VERB_RENEW:
        renew(b, r, now_ms);
        break;
    case VERB_HOLDS:
        inspect_holds(b, r, now_ms);
        break;
    case VERB_INFO:
        inspect_info(b, r, now_ms);
        break;
    case VERB_FORCE:
        inspect_force(b, r, now_ms);
        break;
    case VERB_MLOCK:
        if (!is_refused(b, r))
            multilock_lock(b, r, now_ms);
        break;
    case VERB_MUNLOCK:
        multilock_unlock(b, r, now_ms);
        break;
    }
}

void broker_submit(struct broker *b, struct lock_request *r, const struct resp_arg *names, int n,
                   int64_t now_ms)
{
    struct lock *l = locktab_get(&b->locks, names[0].ptr, names[0].len);
    broker_use(l); /* the request's own use, until it is finished */
    broker_use(l); /* ours */
    r->lock = l;
    r->broker = b;
    r->by_session = r->base.session ? r->base.session->id : 0;
    r->number = ++b->last_request;
    b->now_ms = now_ms;
    if (r->verb == VERB_MLOCK || r->verb == VERB_MUNLOCK)
        multilock_begin(b, r, names, n);
    run(b, r, now_ms);
    broker_put(b, l);
}

void broker_abandon(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct lock *l = r->lock;
    if (r->multilock)
        multilock_leave_session(r->multilock);
    broker_use(l);
    if (r->waiting) {
        waiters_leave(b, r, now_ms);
    } else if (r->deferred && (r->verb == VERB_LOCK || r->verb == VERB_MLOCK)) {
        TAILQ_REMOVE(&l->queue->deferred, r, queued);
        r->deferred = false;
    } else {
        broker_put(b, l);
        return; /* it goes its way, and is freed when it ends */
    }
    stats.acquires_abandoned++;
    broker_finish(b, r, RESULT_NOT_GRANTED);
    defer_run(b, l, now_ms);
    broker_put(b, l);
}

/* ---- its life ---- */

void broker_configure(struct broker *b, const struct conf_lock *conf)
{
    b->conf = *conf;
    b->rounds.request_timeout_ms = conf->request_timeout_ms;
}

void broker_init(struct broker *b, const struct conf_lock *conf, const char *id, uint64_t seed,
                 int64_t now_ms)
{
    memset(b, 0, sizeof *b);
    assert(strlen(id) <= BROKER_ID_LEN);
    strcpy(b->id, id);
    b->first_permit = args_hash(id, strlen(id));
    b->rng = seed | 1;
    b->resubmit = run;
    b->hold_over = hold_over;
    b->multilock_over = multilock_over;
    b->multilock_turn = multilock_turn;
    for (int i = 0; i < QUORUM_MASTERS_MAX; i++)
        b->ears[i].since_ms = INT64_MAX;
    locktab_init(&b->locks);
    wheel_init(&b->first, now_ms);
    wheel_init(&b->wheel, now_ms);
    LIST_INIT(&b->leaving);
    b->leaves_left = BROKER_LEAVES_TURN;
    rounds_init(&b->rounds, conf->request_timeout_ms);
    broker_configure(b, conf);
}

static void forget_lock(void *arg, struct lock *l)
{
    struct broker *b = arg;
    struct hold *h;
    broker_use(l);
    while ((h = lock_first_hold(l)))
        hold_end(b, h);
    defer_end(b, l);
    broker_put(b, l);
}

void broker_fini(struct broker *b, int64_t now_ms)
{
    uint64_t cursor = 0;
    multilock_settle(b, now_ms);
    rounds_fini(&b->rounds, now_ms);
    while (b->locks.count > 0)
        cursor = locktab_scan(&b->locks, cursor, forget_lock, b);
    locktab_fini(&b->locks);
}
