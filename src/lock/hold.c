/*
 * A hold from its grant to its end, and what is due for it. After its deadline it is never renewed
 * back to life (safety R7). What the masters are asked for it is in hold_renew.c.
 */
#include "lock/grave.h"
#include "lock/hold_private.h"

#include <assert.h>
#include <stddef.h>

#include "base/pool.h"
#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/renew.h"
#include "stats/stats.h"

static void on_hold_due(struct broker *b, struct due *due, int64_t now_ms);

bool hold_is_renewed(const struct hold *h)
{
    return h->watched && h->session && h->state != HOLD_LOST;
}

/* Returns from when on the hold is reported lost. With a MAXHOLD shorter than the lease only what
 * was granted counts. */
static int64_t lost_ms(const struct hold *h)
{
    int64_t granted_ms = h->deadline_ms - h->since_ms;
    return renew_lost_ms(h->deadline_ms, granted_ms < h->lease_ms ? granted_ms : h->lease_ms);
}

/* A holder that was told n ms counts them from up to a millisecond later than we do. */
static bool is_over(const struct hold *h, int64_t now_ms)
{
    return now_ms > h->deadline_ms;
}

void hold_schedule(struct broker *b, struct hold *h)
{
    int64_t due_ms = h->deadline_ms + 1;
    if (hold_is_renewed(h))
        due_ms = lost_ms(h);
    if (h->state != HOLD_LOST && h->renew_ms < due_ms)
        due_ms = h->renew_ms;
    if (hold_is_renewed(h))
        due_at_first(&b->due, &h->due, due_ms);
    else
        due_at(&b->due, &h->due, due_ms);
}

void hold_look_within(struct hold *h, int64_t wait_ms, int64_t now_ms)
{
    if (h->renew_ms > now_ms + wait_ms)
        h->renew_ms = now_ms + wait_ms;
}

/* Returns what is left of the lease: less than all of it when it was taken over. */
static int64_t time_left_ms(const struct hold *h, int64_t now_ms)
{
    int64_t left_ms = h->deadline_ms > now_ms ? h->deadline_ms - now_ms : 0;
    return h->inherits && left_ms < h->lease_ms ? left_ms : h->lease_ms;
}

static void join_session(struct broker *b, struct hold *h)
{
    LIST_INSERT_HEAD(&h->session->holds, h, of_session);
    h->session->n_holds++;
    b->n_renewed += hold_is_renewed(h);
}

struct hold *hold_start(struct broker *b, struct lock *l, const struct claim *c,
                        const struct lock_request *r, int64_t now_ms)
{
    struct hold *h = pool_get(sizeof *h);
    h->lock = l;
    h->owner = owner_ref(c->owner);
    h->part = c->part;
    h->session = r->verb == VERB_UNLOCK ? NULL : r->base.session; /* who leaves does not keep it */
    h->due.fn = on_hold_due;
    h->op = c->op;
    h->token = c->token;
    h->asked_before_ms = (uint32_t)(now_ms - c->sent_ms);
    h->since_ms = now_ms;
    h->seen_ms = c->sent_ms;
    h->inherits = c->takeover;
    h->recounted = c->takeover || c->token != c->floor;
    h->deadline_ms = c->deadline_ms;
    h->end_ms = c->takeover     ? c->end_ms /* that of the first LOCK, as with every re-entry */
                : r->maxhold_ms ? c->sent_ms + r->maxhold_ms
                                : INT64_MAX;
    if (h->deadline_ms > h->end_ms)
        h->deadline_ms = h->end_ms;
    h->lease_ms = (uint32_t)(r->lease_ms ? r->lease_ms : b->conf.lease_ms);
    h->count = (uint32_t)c->count;
    h->state = HOLD_HELD;
    h->watched = r->lease_ms == 0;
    h->tell = r->tell;
    h->renew_ms =
        c->lease_ms < h->lease_ms || !h->watched || !h->session
            ? INT64_MAX
            : renew_next_ms(now_ms, time_left_ms(h, now_ms), util_jitter(&b->rng, UINT32_MAX));
    if (c->missed)
        hold_look_within(h, HOLD_LOOK_MS, now_ms);
    hold_follow(h, c->round);
    lock_add_hold(l, h);
    if (h->session)
        join_session(b, h);
    if (c->takeover) /* the broker that had it may not know */
        grave_dig(b, l, h->part, h->owner, h->token - 1, now_ms);
    if (!c->takeover && !r->multilock)
        hold_add_id(h, r->id);
    b->n_holds++;
    b->n_held[h->part.kind]++;
    hold_schedule(b, h);
    notify_granted(h, now_ms);
    return h;
}

void hold_seen(struct hold *h, const struct round *r)
{
    if (r->sent_ms > h->seen_ms)
        h->seen_ms = r->sent_ms;
}

bool hold_is_fresh(const struct broker *b, const struct hold *h, const struct lock_request *r,
                   int64_t now_ms)
{
    return h->state == HOLD_LOST || broker_has_heard(b, h->lock, h->seen_ms, now_ms) ||
           (now_ms - h->seen_ms <= BROKER_MEMORY_MS && h->seen_ms >= r->base.arrived_us / 1000);
}

bool hold_is_valid(const struct hold *h, int64_t now_ms)
{
    return (h->state == HOLD_HELD || h->state == HOLD_JEOPARDY) && now_ms < h->deadline_ms;
}

void hold_free(struct hold *h)
{
    owner_unref(h->owner);
    hold_drop_ids(h);
    pool_put(h, sizeof *h);
}

static void leave_session(struct broker *b, struct hold *h)
{
    if (h->leaves) {
        LIST_REMOVE(h, of_session);
        h->leaves = false;
        h->lock->n_leaving--;
    }
    if (!h->session)
        return;
    b->n_renewed -= hold_is_renewed(h);
    LIST_REMOVE(h, of_session);
    h->session->n_holds--;
    h->session = NULL;
}

static void end_references(struct hold *h)
{
    struct hold_ref *ref;
    while ((ref = LIST_FIRST(&h->refs))) {
        LIST_REMOVE(ref, of_hold);
        ref->hold = NULL;
    }
}

void hold_note_releaser(struct hold *h, uint64_t session_id)
{
    struct hold_ref *ref;
    LIST_FOREACH(ref, &h->refs, of_hold)
        ref->released_by = session_id;
}

void hold_end(struct broker *b, struct hold *h, enum hold_after after)
{
    hist_add(&stats.hold_us, (b->now_ms - h->since_ms) * 1000);
    b->n_holds--;
    b->n_held[h->part.kind]--;
    b->n_jeopardy -= h->state == HOLD_JEOPARDY;
    leave_session(b, h);
    sm_move(hold_states, &h->state, h->lock->name, HOLD_ENDED);
    hold_forget_open(h); /* before the release is sent: safety R7 */
    due_cancel(&b->due, &h->due);
    lock_remove_hold(h->lock, h);
    end_references(h);
    hold_drop_guests(h);
    h->after = (uint8_t)after;
    work_ended(&b->work, h);
    work_look(&b->work, h->lock);
}

void hold_over(struct broker *b, struct hold *h, int64_t now_ms)
{
    /* a renewal may have come unseen, or what shortens it may have got lost */
    bool may_linger = h->state == HOLD_LOST || h->watched || h->shortened;
    /* Gone from a majority: some may hold it still, or under the operation of a take-over that
     * failed, and that keeps others out for as long as its owner was told. */
    bool is_early = h->state == HOLD_LOST && now_ms < h->deadline_ms && now_ms < h->end_ms;
    bool inherits = h->inherits && now_ms <= h->since_ms + b->conf.max_lease_ms;
    if (h->state != HOLD_LOST)
        hold_tell_guests(b, h, now_ms);
    if (inherits) /* who was told more is remembered by nobody: see replant.h */
        b->inherited_until_ms = now_ms + quorum_lease_ms(b->conf.max_lease_ms, b->conf.drift_ppm);
    if (is_early || inherits) {
        hold_end(b, h, HOLD_AFTER_RUN);
        return;
    }
    stats.releases_expired += h->state != HOLD_LOST;
    notify_released(h, now_ms);
    hold_end(b, h, may_linger ? HOLD_AFTER_PASS_ON : HOLD_AFTER_LAPSED);
}

void hold_give_back(struct broker *b, struct hold *h, const struct lock_request *entered,
                    int64_t now_ms)
{
    if (!hold_is_valid(h, now_ms))
        return;
    hold_drop_id(h, entered->id);
    h->untold++;
    struct lock_request *r = broker_new_request(b, h->lock, entered, VERB_UNLOCK);
    r->base.arrived_us = now_ms * 1000;
    r->gives_back = true;
    hold_ref_set(&r->hold, h);
    work_ready(&b->work, r);
}

void hold_set_busy(struct hold *h, struct lock_request *r)
{
    assert(!h->busy);
    h->busy = true;
    hold_ref_set(&r->hold, h);
}

void hold_lose(struct broker *b, struct hold *h, enum lost_reason reason, bool at_once,
               int64_t now_ms)
{
    notify_lost(b, h, reason, now_ms);
    b->n_jeopardy -= h->state == HOLD_JEOPARDY;
    b->n_renewed -= hold_is_renewed(h);
    sm_move(hold_states, &h->state, h->lock->name, HOLD_LOST);
    if (at_once)
        hold_over(b, h, now_ms);
    else
        hold_schedule(b, h);
}

void hold_tell_guests(const struct broker *b, const struct hold *h, int64_t now_ms)
{
    if (!LIST_EMPTY(&h->guests))
        notify_lost(b, h, LOST_LEFT, now_ms);
}

void hold_moved(struct broker *b, struct hold *h, enum lost_reason reason, int64_t now_ms)
{
    if (h->state != HOLD_LOST)
        notify_lost(b, h, reason, now_ms);
    hold_end(b, h, HOLD_AFTER_NOTHING);
}

void hold_rejoin(struct broker *b, struct hold *h, const struct lock_request *r)
{
    if (!r->base.session || h->session == r->base.session)
        return;
    if (!h->session && h->watched)
        h->renew_ms = b->now_ms; /* nobody has renewed it since its connection went */
    leave_session(b, h);
    hold_drop_guest(h, r->base.session);
    h->session = r->base.session;
    h->tell = r->tell;
    join_session(b, h);
    hold_schedule(b, h);
}

void hold_orphan(struct broker *b, struct hold *h)
{
    leave_session(b, h);
    hold_forget_open(h);
    if (h->watched)
        h->renew_ms = INT64_MAX;
    hold_schedule(b, h);
}

void hold_leave(struct broker *b, struct hold *h)
{
    hold_orphan(b, h);
    h->leaves = true;
    h->lock->n_leaving++;
    LIST_INSERT_HEAD(&b->leaving, h, of_session);
}

/* ---- what is due ---- */

void hold_check(struct broker *b, struct hold *h, int64_t now_ms)
{
    if (h->renew_ms <= now_ms || !hold_is_valid(h, now_ms))
        return;
    h->renew_ms = now_ms;
    hold_schedule(b, h);
}

/* Why it is lost: `other`, unless no renewal is planned because its MAXHOLD ends before the next
 * lease would. */
static enum lost_reason why_over(const struct hold *h, int64_t now_ms, enum lost_reason other)
{
    return h->end_ms <= now_ms || h->renew_ms == INT64_MAX ? LOST_MAX_HOLD : other;
}

static void on_hold_due(struct broker *b, struct due *due, int64_t now_ms)
{
    struct hold *h = (struct hold *)((char *)due - offsetof(struct hold, due));
    if (is_over(h, now_ms)) {
        if (hold_is_renewed(h))
            hold_lose(b, h, why_over(h, now_ms, LOST_PAUSE), true, now_ms);
        else
            hold_over(b, h, now_ms);
        return;
    }
    if (hold_is_renewed(h)) {
        if (now_ms >= lost_ms(h)) {
            hold_lose(b, h, why_over(h, now_ms, LOST_NO_QUORUM), false, now_ms);
            return;
        }
        if (now_ms >= h->renew_ms)
            hold_renew(b, h, now_ms);
    } else if (h->state != HOLD_LOST && now_ms >= h->renew_ms) {
        hold_look(b, h, now_ms);
    }
    hold_schedule(b, h);
}
