/*
 * Takes requests and hands each to the flow that runs it: waiters (LOCK), handover (UNLOCK),
 * reentry and takeover (an owner and the hold that it has), multilock (several names), inspect
 * (questions). broker_work.c runs what follows, broker_turn.c has the turn of the loop.
 */
#include "lock/broker.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lock/broker_private.h"
#include "lock/defer.h"
#include "lock/finish.h"
#include "lock/grave.h"
#include "lock/hold.h"
#include "lock/inspect.h"
#include "lock/multilock.h"
#include "lock/queue.h"
#include "lock/reentry.h"
#include "lock/replant.h"
#include "lock/takeover.h"
#include "lock/waiters.h"
#include "stats/stats.h"

const char broker_draining[] = "DRAINING this broker is going down: ask another one";

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
        finish_error(b, r, "%s", broker_draining);
    } else if (b->paused && !r->wait_until_ms) {
        stats.acquires_paused++;
        finish_error(b, r,
                     "PAUSED no new locks are given until RESUME; '%s' was not taken (WAIT waits)",
                     l->name);
    } else if (broker_is_full(b) && !lock_first_hold(l)) {
        stats.acquires_limit++;
        finish_error(b, r,
                     "LIMIT this broker has %" PRIi64 " locks, no more are allowed (max_locks)",
                     broker_n_locks(b));
    } else if (s && s->n_holds + wanted > b->conf.max_locks_per_client) {
        stats.acquires_limit++;
        finish_error(b, r,
                     "LIMIT this connection has %" PRIu32
                     " locks, no more are allowed (max_locks_per_client)",
                     s->n_holds);
    } else if (r->wait_until_ms && n_waiters >= b->conf.max_waiters_per_lock) {
        stats.acquires_limit++;
        finish_error(b, r,
                     "LIMIT %" PRIu32 " requests wait for '%s', no more are allowed "
                     "(max_waiters_per_lock)",
                     n_waiters, l->name);
    } else if (r->wait_until_ms && b->n_waiters >= b->conf.max_waiters) {
        stats.acquires_limit++;
        finish_error(b, r,
                     "LIMIT %" PRIu32
                     " requests wait at this broker, no more are allowed (max_waiters)",
                     b->n_waiters);
    } else {
        return false;
    }
    return true;
}

static void run_lock(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = waiters_already_has(r->lock, r);
    bool is_valid = h && hold_is_valid(h, now_ms);
    char *error = waiters_not_permitted(r, r->lock);
    if (error)
        finish_error(b, r, "%s", error);
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

static void run_unlock(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = lock_hold_of(r->lock, r->owner);
    const struct hold *share = lock_share_of(r->lock, r->owner);
    r->other_op = share && share != h ? share->op : 0;
    if (h && hold_is_valid(h, now_ms)) {
        if (h->count > h->untold + 1) { /* what is being given back does not count */
            reentry_leave(b, h, r, now_ms);
            return;
        }
        stats.releases_client++;
        hold_note_releaser(h, r->by_session);
        broker_end_hold(b, h, r, now_ms);
    } else if (h) {
        broker_end_hold(b, h, NULL, now_ms); /* lost, and now it says itself that it is done */
        finish_as(b, r, RESULT_NOT_HELD);
    } else {
        takeover_begin(b, r->lock, r, now_ms);
    }
}

/* UNLOCK by the broker. What its hold has become since is seen to already: the owner may have
 * another one by now. */
static void run_give_back(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = r->hold.hold;
    if (!h || !hold_is_valid(h, now_ms)) {
        finish_as(b, r, RESULT_NOT_HELD);
    } else if (h->count > 1) {
        reentry_leave(b, h, r, now_ms);
    } else {
        stats.releases_client++;
        broker_end_hold(b, h, r, now_ms);
    }
}

static void run_renew(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = lock_hold_of(r->lock, r->owner);
    if (h && !hold_is_valid(h, now_ms))
        finish_as(b, r, RESULT_NOT_HELD);
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
    if (!r->goes_on || r->multilock || r->item)
        return false;
    const struct hold *h =
        r->verb == VERB_LOCK ? waiters_already_has(r->lock, r) : lock_hold_of(r->lock, r->owner);
    return h && h->busy;
}

void broker_run(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    if (r->has_turn) {
        r->has_turn = false;
        if (r->outside.on_turn)
            r->outside.on_turn(r->outside.arg, now_ms);
        else
            multilock_turn(r->multilock, now_ms);
        return;
    }
    if (is_of_nobody(r)) {
        stats.acquires_abandoned++;
        finish_as(b, r, RESULT_NOT_GRANTED);
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
        run_lock(b, r, now_ms);
        break;
    case VERB_UNLOCK:
        if (r->gives_back)
            run_give_back(b, r, now_ms);
        else
            run_unlock(b, r, now_ms);
        break;
    case VERB_RENEW:
        run_renew(b, r, now_ms);
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
            multilock_lock(r->multilock, now_ms);
        break;
    case VERB_MUNLOCK:
        multilock_unlock(r->multilock);
        break;
    }
}

void broker_submit(struct broker *b, struct lock_request *r, const struct resp_arg *names, int n,
                   int64_t now_ms)
{
    broker_begin(b, now_ms);
    r->lock = locktab_get(&b->locks, names[0].ptr, names[0].len);
    work_ref(r->lock); /* until it is finished */
    r->broker = b;
    r->by_session = r->base.session ? r->base.session->id : 0;
    r->number = ++b->last_request;
    r->base.arrived_us = now_ms * 1000;
    if (r->verb == VERB_MLOCK || r->verb == VERB_MUNLOCK)
        multilock_begin(b, r, names, n);
    broker_run(b, r, now_ms);
    broker_end(b, now_ms);
}

/* Does it stand in a queue? Else it goes its way, and is freed when it ends. */
static bool is_queued(const struct lock_request *r)
{
    bool is_lock = r->verb == VERB_LOCK || r->verb == VERB_MLOCK;
    assert(r->place != PLACE_READY && r->place != PLACE_FINISHED);
    return r->place == PLACE_WAITING || (r->place == PLACE_DEFERRED && is_lock);
}

void broker_leave(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    broker_begin(b, now_ms);
    if (r->place == PLACE_DEFERRED)
        defer_remove(r->lock, r);
    else
        waiters_leave(b, r, now_ms);
    finish_as(b, r, RESULT_NOT_GRANTED);
    queue_undefer(&b->work, r->lock);
    broker_end(b, now_ms);
}

void broker_abandon(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    if (r->multilock)
        multilock_leave_session(r->multilock);
    if (!is_queued(r))
        return;
    if (r->async && r->place == PLACE_WAITING && b->leaves_left-- <= 0) {
        broker_begin(b, now_ms);
        waiters_leave_later(b, r);
        broker_end(b, now_ms);
        return;
    }
    stats.acquires_abandoned++;
    broker_leave(b, r, now_ms);
}

void broker_cancel(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    stats.acquires_cancelled++;
    if (r->multilock)
        multilock_leave_session(r->multilock);
    if (is_queued(r))
        broker_leave(b, r, now_ms);
}

void broker_untold(struct broker *b, struct lock_request *r)
{
    if (r->multilock)
        multilock_give_back(r->multilock, b->now_ms);
    else if (r->hold.hold && !r->repeated)
        hold_give_back(b, r->hold.hold, r, b->now_ms);
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
    b->first_permit = util_fixed_hash(id, strlen(id));
    b->rng = seed | 1;
    for (int i = 0; i < ROUNDS_MASTERS_MAX; i++)
        b->ears[i].since_ms = INT64_MAX;
    locktab_init(&b->locks);
    work_init(&b->work);
    replant_init(b);
    grave_init(b);
    wheel_init(&b->due.first, now_ms);
    wheel_init(&b->due.usual, now_ms);
    LIST_INIT(&b->leaving);
    TAILQ_INIT(&b->leavers);
    b->leaves_left = BROKER_LEAVES_TURN;
    rounds_init(&b->rounds, conf->request_timeout_ms);
    broker_configure(b, conf);
}

static void forget_lock(void *arg, struct lock *l)
{
    struct broker *b = arg;
    struct hold *h;
    while ((h = lock_first_hold(l)))
        hold_end(b, h, HOLD_AFTER_NOTHING);
    defer_end(b, l);
}

/* Every round comes to its end, and what follows from it too. */
static void end_rounds(struct broker *b, int64_t now_ms)
{
    while (round_give_up(&b->rounds, now_ms)) {
        broker_deliver(b, INT_MAX, now_ms);
    }
    round_fini(&b->rounds, now_ms);
}

void broker_fini(struct broker *b, int64_t now_ms)
{
    uint64_t cursor = 0;
    broker_begin(b, now_ms);
    broker_end(b, now_ms); /* what no reply could say is given back */
    broker_let_leave(b, INT_MAX, now_ms);
    end_rounds(b, now_ms);
    replant_fini(b);
    grave_fini(b);
    while (b->locks.count > 0) {
        broker_begin(b, now_ms);
        cursor = locktab_scan(&b->locks, cursor, forget_lock, b);
        broker_end(b, now_ms);
    }
    locktab_fini(&b->locks);
}
