/*
 * The turn of the loop, and what may be too much for one: the releases and the requests with a tag
 * of a connection that has gone, and going through all locks to drain or to go on after a pause.
 *
 *     connection gone --> released now, or broker->leaving --> some in each turn
 *                     --> taken out of their queues now, or broker->leavers --> likewise
 *     DRAINING, RESUME --> sweep: some buckets of the table in each turn
 *
 * Renewals come before everything else, in the wheel that they have to themselves.
 */
#include <limits.h>

#include "lock/broker.h"
#include "lock/broker_private.h"
#include "lock/hold.h"
#include "lock/replant.h"
#include "lock/waiters.h"
#include "stats/stats.h"

/* What one turn does of each kind at most, so that no client can make it last: some 2 ms each.
 * Releases of connections that have gone; what is due, renewals and the rest; verdicts, those of
 * renewals aside: each may give a lock and ask for the next; and steps of going through all locks,
 * of some 100 instructions. */
enum { RENEWALS_TURN = 2000, DUE_TURN = 1000, VERDICTS_TURN = 1024, ASKED_HOLDS = 64 };
enum { SWEEP_TURN = 40000, SWEEP_QUEUE = 60, SWEEP_WAITER = 30 };

/* ---- sessions ---- */

static bool release_at_end(const struct broker *b, bool orderly)
{
    switch (b->conf.on_disconnect) {
    case CONF_DISCONNECT_RELEASE:
        return true;
    case CONF_DISCONNECT_EXPIRE:
        return false;
    default:
        return orderly;
    }
}

static void release_left(struct broker *b, struct hold *h, int64_t now_ms)
{
    stats.releases_disconnect++;
    b->leaves_left--;
    hold_tell_guests(b, h, now_ms);
    broker_end_hold(b, h, NULL, now_ms);
}

void broker_session_end(struct broker *b, struct session *s, bool orderly, int64_t now_ms)
{
    struct hold *h;
    bool release = release_at_end(b, orderly);
    broker_begin(b, now_ms);
    hold_guest_ends(s);
    while ((h = LIST_FIRST(&s->holds))) {
        if (!release || !h->watched || h->state == HOLD_LOST)
            hold_orphan(b, h);
        else if (b->leaves_left > 0)
            release_left(b, h, now_ms);
        else
            hold_leave(b, h);
    }
    broker_end(b, now_ms);
    owner_unref(s->acted_for);
    s->acted_for = NULL;
}

int broker_let_leave(struct broker *b, int most, int64_t now_ms)
{
    struct request *r;
    int n = 0;
    for (; n < most && (r = TAILQ_FIRST(&b->leavers)); n++) {
        stats.acquires_abandoned++;
        broker_leave(b, (struct lock_request *)r, now_ms);
    }
    return n;
}

static void release_some_left(struct broker *b, int64_t now_ms)
{
    struct hold *h;
    b->leaves_left = BROKER_LEAVES_TURN;
    b->leaves_left -= broker_let_leave(b, BROKER_LEAVES_TURN, now_ms);
    while (b->leaves_left > 0 && (h = LIST_FIRST(&b->leaving))) {
        broker_begin(b, now_ms);
        release_left(b, h, now_ms);
        broker_end(b, now_ms);
    }
}

/* Among the first holds of a lock: it may have many readers. */
static struct hold *first_that_leaves(const struct lock *l)
{
    struct hold *h;
    int n = 0;
    if (l->n_leaving == 0)
        return NULL;
    LIST_FOREACH(h, &l->holds, of_lock)
        if (h->leaves || ++n == ASKED_HOLDS)
            return h->leaves ? h : NULL;
    return NULL;
}

/* Somebody asks for this lock: what is to be released of it is released now. */
void broker_release_left_of(struct broker *b, struct lock *l, int64_t now_ms)
{
    struct hold *h;
    for (int n = 0; n < ASKED_HOLDS && (h = first_that_leaves(l)); n++)
        release_left(b, h, now_ms);
}

/* ---- all locks ---- */

/* What draining, or going on after a pause, means for one lock. */
static void sweep_lock(void *arg, struct lock *l)
{
    struct broker *b = arg;
    b->sweep_left--;
    if (!l->queue)
        return;
    if (b->sweep_left <= 0) {
        b->sweep_again = true;
    } else if (b->draining) {
        int n = waiters_turn_away(b, l, broker_draining, b->sweep_left / SWEEP_WAITER + 1);
        stats.acquires_draining += (uint64_t)n;
        b->sweep_left -= n * SWEEP_WAITER;
        b->sweep_again |= b->sweep_left <= 0;
    } else {
        b->sweep_left -= SWEEP_QUEUE;
        work_lock(&b->work, l, WORK_RUN);
    }
}

/* Goes on with the next locks, as far as the steps of one turn go. */
static void sweep_some(struct broker *b, int64_t now_ms)
{
    b->sweep_left = SWEEP_TURN;
    while (b->sweeps && b->sweep_left-- > 0) {
        b->sweep_again = false;
        broker_begin(b, now_ms);
        uint64_t next = locktab_scan(&b->locks, b->sweep_cursor, sweep_lock, b);
        broker_end(b, now_ms);
        if (b->sweep_again) /* something was left over in this bucket */
            break;
        b->sweep_cursor = next;
        b->sweeps = next != 0;
    }
}

/* From the next turn on. */
static void sweep(struct broker *b)
{
    b->sweeps = true;
    b->sweep_cursor = 0;
}

void broker_drain(struct broker *b)
{
    b->draining = true;
    sweep(b);
}

void broker_pause(struct broker *b, bool paused, int64_t now_ms)
{
    b->now_ms = now_ms;
    b->paused = paused;
    if (!paused)
        sweep(b);
}

/* ---- the turn ---- */

/* Runs what is due, at most n of them; false: there may be more. */
static bool run_due(struct broker *b, struct wheel *w, int n, int64_t now_ms)
{
    struct wheel_entry *entry;
    while (n-- > 0) {
        if (!(entry = wheel_expire(w, now_ms)))
            return true;
        struct due *due = (struct due *)entry;
        broker_begin(b, now_ms);
        due->fn(b, due, now_ms);
        broker_end(b, now_ms);
    }
    return false;
}

static bool deliver_verdict(struct broker *b, bool of_renewal, int64_t now_ms)
{
    if (!round_has_verdict(&b->rounds, of_renewal))
        return false;
    broker_begin(b, now_ms);
    round_deliver(&b->rounds, of_renewal, now_ms);
    broker_end(b, now_ms);
    return true;
}

void broker_deliver(struct broker *b, int most, int64_t now_ms)
{
    while (deliver_verdict(b, true, now_ms)) {
    }
    while (most-- > 0 && deliver_verdict(b, false, now_ms)) {
    }
}

void broker_turn(struct broker *b, int64_t now_ms)
{
    b->now_ms = now_ms;
    if (!work_is_done(&b->work)) { /* replies, and answers of the masters, have left it */
        broker_begin(b, now_ms);
        broker_end(b, now_ms);
    }
    (void)run_due(b, &b->due.first, RENEWALS_TURN, now_ms);
    (void)run_due(b, &b->due.usual, DUE_TURN, now_ms);
    release_some_left(b, now_ms);
    sweep_some(b, now_ms);
    if (replant_has_turn(b)) {
        broker_begin(b, now_ms);
        replant_turn(b, now_ms);
        broker_end(b, now_ms);
    }
    round_expire(&b->rounds, now_ms);
    broker_deliver(b, VERDICTS_TURN, now_ms);
    rounds_send(&b->rounds, now_ms);
}

void broker_masters_back(struct broker *b, int64_t now_ms)
{
    waiters_masters_back(b, now_ms);
}

int64_t broker_next_ms(const struct broker *b)
{
    int64_t next_ms = round_next_ms(&b->rounds);
    int64_t first_ms = wheel_next_ms(&b->due.first), usual_ms = wheel_next_ms(&b->due.usual);
    if (!work_is_done(&b->work) || b->sweeps || !LIST_EMPTY(&b->leaving) ||
        !TAILQ_EMPTY(&b->leavers))
        return 0;
    int64_t plant_ms = replant_next_ms(b);
    next_ms = first_ms < next_ms ? first_ms : next_ms;
    next_ms = plant_ms < next_ms ? plant_ms : next_ms;
    return usual_ms < next_ms ? usual_ms : next_ms;
}

void broker_check_promises(struct broker *b, int64_t now_ms)
{
    b->now_ms = now_ms;
    stats.pauses_detected++;
    (void)run_due(b, &b->due.first, INT_MAX, now_ms);
    (void)run_due(b, &b->due.usual, INT_MAX, now_ms);
}
