/* Judges the last run of a call: whether the masters have to be asked about it, and whether it may
 * take what it wants. */
#include "dropin/call_private.h"
#include "lock/broker_state.h"
#include "stats/stats.h"

static const char paused[] = "PAUSED no new locks are given until RESUME; nothing was taken";
static const char full[] =
    "LIMIT this broker has as many locks as are allowed (max_locks); nothing was taken";

/* Returns whether the run takes a lock for somebody who does not hold it. */
static bool takes_free_lock(const struct dropin_call *c)
{
    for (int i = 0; i < c->job.n_names; i++) {
        if (c->run.names[i].what == EXCHANGE_NEW)
            return true;
    }
    return false;
}

/* Returns whether one more lock would be held after the run. */
static bool adds_lock(const struct dropin_call *c)
{
    for (int i = 0; i < c->job.n_names; i++) {
        if (c->run.names[i].what == EXCHANGE_NEW && c->slots[i].truth.kind == TRUTH_FREE)
            return true;
    }
    return false;
}

const char *call_why_not_taken(const struct dropin_call *c)
{
    const struct broker *b = c->dropin->broker;
    if (!takes_free_lock(c))
        return NULL;
    if (broker_is_full(b) && adds_lock(c))
        return full;
    return b->draining ? call_closed : b->paused ? paused : NULL;
}

bool call_is_answered(const struct dropin_call *c)
{
    int n = 0;
    if (c->run.writes)
        return false;
    for (int i = 0; i < c->job.n_names; i++) {
        if (!c->run.names[i].touched)
            continue;
        if (!c->slots[i].is_told)
            return false;
        n++;
    }
    return n <= 1 || c->at_once;
}

bool call_is_unaskable(const struct dropin_call *c)
{
    for (int i = 0; i < c->job.n_names; i++) {
        const struct truth *t = &c->slots[i].truth;
        bool is_askable = t->kind == TRUTH_FREE || t->kind == TRUTH_DROPIN ||
                          (t->kind == TRUTH_NATIVE && t->op[0]);
        if (c->run.names[i].touched && !is_askable)
            return true;
    }
    return false;
}

bool call_is_refused_from_memory(struct dropin_call *c, int64_t now_ms)
{
    struct dropin *d = c->dropin;
    bool is_refused = !c->run.writes && !c->place && job_wants_free(&c->job) &&
                      c->run.reply.nodes[0].kind != STORE_ERROR &&
                      memory_is_sure(&d->memory, c->slots[0].seat.spot, now_ms);
    stats.drop_in_from_memory += is_refused;
    return is_refused;
}
