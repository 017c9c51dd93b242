/*
 * Patience: a call that was refused because its lock is held waits among LOCKs for a moment, and is
 * told of the refusal only when it has not got the lock by then. It waits as long as it is the only
 * request of its connection: the next one ends the wait, as clients that share a connection must
 * not be held up.
 *
 *   refused --call_wait--> CALL_QUEUES --its turn--> runs anew --takes it--> finished
 *                           ^   |                        |
 *                           +---|---------refused--------+
 *                               +--time over, hurried, abandoned--> finished: the last refusal
 *
 * At its turn it runs as if the lock were free, under the conditions of every call.
 */
#include "dropin/call_private.h"
#include "lock/broker.h"
#include "lock/queue.h"
#include "lock/waiters.h"

/* Returns whether the run would have taken the lock if it were free, and has done nothing as it is
 * not. */
static bool only_wants_lock(struct dropin_call *c, int64_t now_ms)
{
    struct dropin *d = c->dropin;
    static const struct truth nothing = {.kind = TRUTH_FREE};
    const struct truth *truths[] = {&nothing};
    if (c->run.writes || c->run.published.n_nodes > 0 || c->run.reply.nodes[0].kind == STORE_ERROR)
        return false;
    if (!c->job.script)
        return job_wants_free(&c->job);
    run_job(&d->tools, &c->job, truths, &d->what_if, now_ms);
    return d->what_if.names[0].what == EXCHANGE_NEW &&
           d->what_if.reply.nodes[0].kind != STORE_ERROR;
}

static bool may_wait(struct dropin_call *c, int64_t now_ms)
{
    const struct dropin *d = c->dropin;
    const struct broker *b = d->broker;
    const struct session *s = c->base.session;
    return d->patience_ms > 0 && s && !s->ended && s->n_requests == 1 && c->job.n_names == 1 &&
           !c->job.is_multi && !c->job.is_watch && !d->closed && !b->draining && !b->paused &&
           b->n_waiters < b->conf.max_waiters && only_wants_lock(c, now_ms);
}

static bool may_wait_on(const struct dropin_call *c, int64_t now_ms)
{
    return !c->is_hurried && c->base.session && !c->dropin->closed &&
           now_ms < c->place->wait_until_ms;
}

static void on_turn(void *call, int64_t now_ms)
{
    call_start_again(call, now_ms);
}

static void on_wait_over(void *call, int64_t now_ms)
{
    struct dropin_call *c = call;
    struct dropin *d = c->dropin;
    c->place = NULL;
    call_finish_run(c, now_ms);
    call_next(d, now_ms);
    call_tell_finished(d);
}

/* Returns for how long the lock is held, as far as that is known. */
static int64_t held_ms(const struct dropin_call *c, int64_t now_ms)
{
    const struct truth *t = &c->slots[0].truth;
    bool is_known = t->kind == TRUTH_DROPIN || t->kind == TRUTH_NATIVE;
    return is_known && t->expires_ms > now_ms ? t->expires_ms - now_ms : 0;
}

bool call_wait(struct dropin_call *c, int64_t now_ms)
{
    struct broker *b = c->dropin->broker;
    const struct locktab_name *name = &c->slots[0].name;
    const struct waiter_outside outside = {on_turn, on_wait_over, c};
    if (c->place ? !may_wait_on(c, now_ms) : !may_wait(c, now_ms))
        return false;
    call_leave_lines(c);
    c->state = CALL_QUEUES;
    if (c->place) {
        waiters_outside_again(b, c->place, held_ms(c, now_ms), now_ms);
        return true;
    }
    c->base.session->patient = true;
    c->base.waited = true;
    c->place = waiters_join_outside(b, locktab_get_name(&b->locks, name), &outside,
                                    now_ms + c->dropin->patience_ms, now_ms);
    return true;
}

void call_end_wait(struct dropin_call *c)
{
    if (c->base.session)
        c->base.session->patient = false;
    if (c->place)
        waiters_outside_end(c->dropin->broker, c->place, c->dropin->broker->now_ms);
    c->place = NULL;
}

void call_hurry(struct dropin_call *c, int64_t now_ms)
{
    struct dropin *d = c->dropin;
    c->is_hurried = true;
    if (c->state != CALL_QUEUES)
        return; /* it asks, and does not wait again */
    broker_begin(d->broker, now_ms);
    call_finish_run(c, now_ms);
    call_next(d, now_ms);
    broker_end(d->broker, now_ms);
    call_tell_finished(d);
}
