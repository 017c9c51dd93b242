/*
 * Refusals are from memory while a client of this broker holds the lock. That memory may be wrong:
 * its owner has taken it to another broker, or somebody has forced it. This broker hears of that
 * (broker_has_heard), and else asks the masters whether the hold is still there, before anybody is
 * refused for it.
 *
 * Invariants: a hold is asked about once at a time (hold->checked); whoever may be refused stays in
 * line until the answer is there.
 */
#include <stdlib.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/hold.h"
#include "lock/lock_share.h"
#include "lock/queue.h"
#include "lock/waiters_private.h"

/* True when all holds together keep the request out, as with permits; else each of them does. */
static bool takes_all(const struct lock *l, const struct lock_request *r)
{
    struct lock_part in_use;
    return !lock_exclusive(l) && share_kind(l, &in_use) && in_use.kind == LOCK_LIMIT &&
           lock_kinds_mix(in_use, r->want);
}

static bool keeps_out(const struct hold *h, const struct lock_request *r, bool all)
{
    return all || h->part.kind == LOCK_EXCLUSIVE || !owner_same(h->owner, r->owner) ||
           !lock_kinds_mix(h->part, r->want);
}

/* Is what is known of this hold good enough: now, or `later` too, as this broker would hear? */
static bool is_sure(const struct broker *b, const struct hold *h, const struct lock_request *r,
                    bool later, int64_t now_ms)
{
    return later ? h->state == HOLD_LOST || broker_has_heard(b, h->lock, h->seen_ms, now_ms)
                 : hold_is_fresh(b, h, r, now_ms);
}

/* Is what is known of the holds that keep this one out? */
static bool are_sure(const struct broker *b, const struct lock *l, const struct lock_request *r,
                     bool later, int64_t now_ms)
{
    bool all = takes_all(l, r), sure = true;
    const struct hold *h;
    LIST_FOREACH(h, &l->holds, of_lock) {
        if (!keeps_out(h, r, all))
            continue;
        sure = is_sure(b, h, r, later, now_ms);
        if (sure != all || h->part.kind == LOCK_EXCLUSIVE)
            return sure;
    }
    return sure;
}

bool waiters_doubts(const struct broker *b, const struct lock *l, const struct lock_request *r,
                    int64_t now_ms)
{
    return !are_sure(b, l, r, false, now_ms);
}

bool waiters_will_hear(const struct broker *b, const struct lock *l, const struct lock_request *r,
                       int64_t now_ms)
{
    return are_sure(b, l, r, true, now_ms);
}

/* Ends the tries, as nobody knows whether the hold is there, and asks again later; or only the
 * latter while the hold is being taken over. */
static void not_known(struct broker *b, struct lock *l, struct round *round, int64_t now_ms)
{
    char *why = round_no_quorum(round, now_ms);
    if (!round_is_refused(round))
        waiters_refuse_tries(b, l, NULL, why);
    free(why);
    if (waiters_first(l->queue))
        waiters_retry_later(b, l->queue, 0, now_ms);
}

/* A question whether a hold is still there; it may end before the answer. */
struct hold_check {
    struct hold_ref hold;
    struct lock *lock; /* one of its refs */
};

static struct hold_check *check_new(struct hold *h)
{
    struct hold_check *check = util_alloc(sizeof *check);
    h->checked = true;
    hold_ref_set(&check->hold, h);
    check->lock = h->lock;
    work_ref(h->lock);
    return check;
}

/* Does the answer say whether the hold is there? */
static bool judge_check(struct broker *b, struct hold *h, const struct round *round, int64_t now_ms)
{
    h->checked = false;
    if (quorum_state(&round->quorum) == QUORUM_WON) {
        hold_seen(h, round);
        return true;
    }
    if (!hold_is_refused(h, round) || h->busy || !hold_is_valid(h, now_ms))
        return false;
    hold_lose(b, h, hold_why_gone(round), true, now_ms);
    return true;
}

static void on_checked(struct round *round, void *arg, int64_t now_ms)
{
    struct hold_check *check = arg;
    struct broker *b = broker_of_round(round);
    struct lock *l = check->lock;
    bool is_known = !check->hold.hold || judge_check(b, check->hold.hold, round, now_ms);
    if (b->paused && l->queue)
        waiters_refuse_tries(b, l, NULL, NULL);
    else if (is_known)
        work_lock(&b->work, l, WORK_RUN); /* when a hold that has ended has been passed on */
    else if (l->queue)
        not_known(b, l, round, now_ms);
    queue_undefer(&b->work, l);
    hold_ref_clear(&check->hold);
    work_unref(&b->work, l);
    free(check);
}

void waiters_check(struct broker *b, struct lock *l, const struct lock_request *r, int64_t now_ms)
{
    bool all = takes_all(l, r);
    struct hold *h;
    LIST_FOREACH(h, &l->holds, of_lock) {
        if (!keeps_out(h, r, all) || hold_is_fresh(b, h, r, now_ms))
            continue;
        if (!h->checked)
            hold_write(b, h, 0, on_checked, check_new(h), now_ms);
        if (!all)
            return;
    }
}

void waiters_doubt(struct broker *b, struct lock *l, int64_t now_ms)
{
    if (l->queue && waiters_first(l->queue) && lock_first_hold(l) &&
        !wheel_armed(&l->queue->retry.entry))
        waiters_retry_later(b, l->queue, 0, now_ms);
}
