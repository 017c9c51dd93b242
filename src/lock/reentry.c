/*
 * Each of these is one write to the masters, and the count of the hold is what the last write that
 * a majority confirmed says: a failed one is taken back, here and by a second write.
 */
#include "lock/reentry.h"

#include <assert.h>
#include <stdlib.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/finish.h"
#include "lock/hold.h"
#include "lock/queue.h"
#include "lock/renew.h"
#include "stats/stats.h"

static void set_count(struct hold *h, uint32_t count)
{
    h->count = count;
    h->seq++;
    h->recounted = true;
}

/* By how much the request changes the count. */
static int step_of(const struct lock_request *r)
{
    return r->verb == VERB_LOCK ? 1 : r->verb == VERB_UNLOCK ? -1 : 0;
}

/* `why`: "NOQUORUM ...". `as_before`: a majority has the count of before. */
static void no_quorum(struct broker *b, struct lock_request *r, const struct hold *h,
                      const char *why, bool as_before, int64_t now_ms)
{
    const char *name = r->lock->name;
    if (r->verb == VERB_RENEW) /* it may have got through to some */
        finish_error(b, r,
                     "%s; '%s' is held for %lld ms more, and is not known to be "
                     "renewed",
                     why, name, (long long)(h->deadline_ms - now_ms));
    else if (as_before)
        finish_error(b, r, "%s; '%s' is still entered as often as before", why, name);
    else
        finish_error(b, r, "%s; '%s' is still held, HOLDS tells how often it is entered", why,
                     name);
}

/* A majority of masters has not got this hold. */
static void gone(struct broker *b, struct hold *h, struct lock_request *r,
                 const struct round *round, int64_t now_ms)
{
    enum lost_reason why = hold_why_gone(round);
    if (h->state == HOLD_HELD || h->state == HOLD_JEOPARDY)
        hold_lose(b, h, why, true, now_ms);
    /* of a connection that has gone nothing would end its wait */
    bool asks_anew = r->verb == VERB_LOCK && !r->goes_on && !r->item && r->base.session;
    bool takes_over = r->verb != VERB_LOCK && why == LOST_MOVED && !r->goes_on;
    if (asks_anew || takes_over) /* as somebody who does not hold it here */
        work_ready(&b->work, r);
    else
        finish_as(b, r, r->verb == VERB_LOCK ? RESULT_NOT_GRANTED : RESULT_NOT_HELD);
}

static void left(struct hold *h, const struct lock_request *r)
{
    hold_left(h, r->by_session);
    h->untold -= r->gives_back;
}

/* A majority has it now. */
static void written(struct broker *b, struct hold *h, struct lock_request *r, struct round *round,
                    int64_t now_ms)
{
    hold_seen(h, round);
    if (r->verb == VERB_UNLOCK) {
        left(h, r);
        return;
    }
    hold_confirmed(b, h, round, now_ms);
    hold_follow(h, round);
    if (r->item) /* of several names none is granted yet */
        return;
    hold_use_lease(b, h, r, now_ms);
    hold_add_id(h, r->id);
    if (r->verb == VERB_LOCK)
        hold_entered(h, r);
}

/* `why`: what the first round said when this one takes back what that one wrote; NULL: it is the
 * first. */
static void conclude(struct round *round, struct lock_request *r, const char *why, int64_t now_ms)
{
    struct broker *b = r->broker;
    struct hold *h = r->hold.hold;
    bool won = quorum_state(&round->quorum) == QUORUM_WON;
    bool ended = !h || !hold_is_valid(h, now_ms);
    if (won && !ended && !why)
        written(b, h, r, round, now_ms);
    if (r->hold.hold) /* it may have ended meanwhile */
        r->hold.hold->busy = false;
    hold_ref_clear(&r->hold);
    queue_undefer(&b->work, r->lock);
    if (ended)
        finish_as(b, r, r->verb == VERB_LOCK ? RESULT_NOT_GRANTED : RESULT_NOT_HELD);
    else if (hold_is_refused(h, round))
        gone(b, h, r, round, now_ms);
    else if (why)
        no_quorum(b, r, h, why, won, now_ms);
    else if (r->verb == VERB_UNLOCK)
        finish_count(b, r, 0);
    else
        finish_granted(b, r, h);
}

static void on_failed(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct hold *h = r->hold.hold;
    char *why = r->text;
    r->text = NULL;
    if (quorum_state(&round->quorum) != QUORUM_WON && step_of(r) && h && hold_is_valid(h, now_ms))
        hold_look_again(r->broker, h, now_ms);
    conclude(round, r, why, now_ms);
    free(why);
}

static void on_written(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct hold *h = r->hold.hold;
    if (quorum_state(&round->quorum) == QUORUM_WON || !h || hold_is_refused(h, round) ||
        !hold_is_valid(h, now_ms)) {
        conclude(round, r, NULL, now_ms);
        return;
    }
    if (r->gives_back) { /* nobody is told that it failed: the masters hear of it later */
        left(h, r);
        hold_look_again(r->broker, h, now_ms);
        conclude(round, r, NULL, now_ms);
        return;
    }
    r->text = round_is_refused(round)
                  ? util_strdup("NOQUORUM a take-over that failed has left it on too few masters")
                  : round_no_quorum(round, now_ms);
    if (!step_of(r)) {
        on_failed(round, r, now_ms);
        return;
    }
    /* Some may have got it. Who asks the masters, or takes the hold over, goes by the latest
     * version of the count that a majority shows: so the old count goes there under a later one,
     * before the answer says that it counts. */
    set_count(h, h->count - (uint32_t)step_of(r));
    hold_write(r->broker, h, 0, on_failed, r, now_ms);
}

/* Asks the masters for the lease that the request names, else for that of the hold. */
static void write_lease(struct broker *b, struct hold *h, struct lock_request *r, int64_t now_ms)
{
    int64_t lease_ms = r->lease_ms ? r->lease_ms : h->lease_ms;
    lease_ms = renew_lease_ms(now_ms, lease_ms, h->end_ms);
    hold_write(b, h, lease_ms > 0 ? lease_ms : 0, on_written, r, now_ms);
}

void reentry_again(struct broker *b, struct hold *h, struct lock_request *r, int64_t now_ms)
{
    stats.acquires_reentered++;
    hold_set_busy(h, r);
    set_count(h, h->count + 1);
    write_lease(b, h, r, now_ms);
}

void reentry_repeated(struct broker *b, struct hold *h, struct lock_request *r)
{
    stats.acquires_repeated++;
    r->repeated = true;
    hold_rejoin(b, h, r);
    finish_granted(b, r, h);
}

void reentry_leave(struct broker *b, struct hold *h, struct lock_request *r, int64_t now_ms)
{
    assert(h->count > 1);
    hold_set_busy(h, r);
    set_count(h, h->count - 1);
    hold_write(b, h, 0, on_written, r, now_ms);
}

void reentry_renew(struct broker *b, struct hold *h, struct lock_request *r, int64_t now_ms)
{
    hold_set_busy(h, r);
    write_lease(b, h, r, now_ms);
}
