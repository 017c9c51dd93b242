/*
 * Who may ask the masters for a lock, by what this broker knows: its own holds of the lock and the
 * claims that are under way. It only looks: nothing is started, refused or changed here, and what
 * other brokers hold is not known.
 *
 * What it sees to: a lock has one claim under way, or several of readers, or several of permits of
 * one number, and never two of one owner; while a client of this broker has the lock in a way that
 * keeps a request out, nobody asks for that request.
 */
#include "lock/broker_state.h"
#include "lock/claim.h"
#include "lock/lock_share.h"
#include "lock/queue.h"
#include "lock/waiters_private.h"

bool waiters_same_question(struct lock_part asked, struct lock_part want)
{
    bool is_stronger = asked.kind == LOCK_SHARED && want.kind == LOCK_EXCLUSIVE;
    return is_stronger || (asked.kind == want.kind && asked.limit == want.limit);
}

bool waiters_owner_asks(const struct lock_queue *q, const struct owner *owner)
{
    const struct claim *c;
    LIST_FOREACH(c, &q->claims, of_lock) {
        if (owner_same(c->owner, owner))
            return true;
    }
    return false;
}

bool waiters_goes_along(const struct lock_queue *q, const struct lock_request *r)
{
    const struct claim *c = LIST_FIRST(&q->claims);
    if (!c)
        return true;
    return !waiters_owner_asks(q, r->owner) && q->n_claims < WAITERS_CLAIMS_MAX &&
           !q->takeover_waits && !c->takeover && c->part.kind != LOCK_EXCLUSIVE &&
           c->part.kind == r->want.kind && c->part.limit == r->want.limit;
}

bool waiters_may_own(const struct broker *b, const struct lock *l, const struct lock_request *r)
{
    bool is_alone = r->want.kind == LOCK_EXCLUSIVE ? lock_first_hold(l) : lock_exclusive(l);
    return !r->owner_asked && !b->paused && !is_alone && !lock_hold_of(l, r->owner);
}

void waiters_owner_was_asked(struct lock_queue *q, struct lock_request *r)
{
    q->n_to_ask -= !r->owner_asked;
    r->owner_asked = true;
}

enum waiters_admission waiters_holds_admit(const struct lock *l, const struct lock_request *r,
                                           struct lock_part *in_use)
{
    const struct lock_queue *q = l->queue;
    const struct hold *alone = lock_exclusive(l);
    bool is_lined = r->fair ? r->lined : q->lined;
    if (alone) {
        *in_use = alone->part;
        if (r->want.kind == LOCK_LIMIT)
            return WAITERS_WRONG_KIND;
        return r->want.kind == LOCK_SHARED && owner_same(alone->owner, r->owner)
                   ? WAITERS_MAY_ASK
                   : WAITERS_MUST_WAIT;
    }
    if (share_count(l) == 0 || !share_kind(l, in_use))
        return WAITERS_MAY_ASK;
    if (!lock_kinds_mix(*in_use, r->want))
        return WAITERS_WRONG_KIND;
    if (in_use->kind == LOCK_LIMIT)
        return share_count(l) < in_use->limit ? WAITERS_MAY_ASK : WAITERS_MUST_WAIT;
    if (r->want.kind == LOCK_SHARED || (share_count(l) == 1 && lock_share_of(l, r->owner)))
        return WAITERS_MAY_ASK;
    /* once, for the place in the line, and again when it was given up for a call: so that readers
     * at other brokers see that he waits */
    return r->wait_until_ms && !is_lined ? WAITERS_MAY_ASK : WAITERS_MUST_WAIT;
}

enum waiters_admission waiters_admits(struct lock *l, const struct lock_request *r,
                                      struct lock_part *in_use)
{
    struct lock_queue *q = queue_get(l);
    enum waiters_admission says = waiters_holds_admit(l, r, in_use);
    return says == WAITERS_MAY_ASK && !waiters_goes_along(q, r) ? WAITERS_MUST_WAIT : says;
}

struct hold *waiters_already_has(const struct lock *l, const struct lock_request *r)
{
    struct hold *h = lock_exclusive(l);
    if (r->unnamed)
        return lock_hold_of(l, r->owner); /* it is told so (HELD), whatever it asks for */
    if (r->want.kind == LOCK_EXCLUSIVE)
        return h && owner_same(h->owner, r->owner) ? h : NULL;
    h = lock_share_of(l, r->owner);
    return h && h->part.kind == r->want.kind && h->part.limit == r->want.limit ? h : NULL;
}
