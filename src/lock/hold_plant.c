/*
 * What becomes of a round that a hold has won when everybody has answered it: the hold goes where
 * it is missing (safety R3).
 *
 * Invariant: h->open is the last round about the hold, until its last answer.
 */
#include <stddef.h>

#include "lock/broker_state.h"
#include "lock/hold_private.h"
#include "lock/tickets.h"

void hold_forget_open(struct hold *h)
{
    if (h->open)
        round_forget(h->open);
    h->open = NULL;
}

/* A planted hold is there for all the time that its holder has been told. */
static int64_t plant_lease_ms(const struct broker *b, const struct hold *h, int64_t now_ms)
{
    int64_t told_ms = quorum_lease_ms(h->deadline_ms - now_ms, b->conf.drift_ppm);
    int64_t lease_ms = hold_lease_ms(h, now_ms);
    return hold_is_renewed(h) && lease_ms > told_ms ? lease_ms : told_ms;
}

static void plant(struct broker *b, struct hold *h, int i, int64_t now_ms)
{
    char op[BROKER_OP_MAX + 1], counter[TOKEN_COUNTER_MAX + 1];
    char version[HOLD_VERSION_MAX];
    const struct lock *l = h->lock;
    broker_op_text(b, h->op, op);
    struct args *it = args_begin(l->name, l->name_len);
    args_str(it, op);
    args_text(it, h->owner->text, h->owner->len);
    args_int(it, h->token);
    args_int(it, h->count);
    args_text(it, version, hold_version_text(h, version));
    args_int(it, plant_lease_ms(b, h, now_ms));
    rounds_counter(&b->rounds, l->name, l->name_len, counter);
    args_str(it, counter);
    args_int(it, h->end_ms == INT64_MAX ? 0 : h->end_ms - now_ms);
    broker_add_part(it, h->part, h->owner);
    round_tell(&b->rounds, i, SCRIPT_PLANT, it, now_ms);
}

/* Everybody has answered a round that was won: the hold goes where it is missing. Where somebody
 * else was in the way of the claim, that is looked into again when he has had time to leave.
 * Where nobody could be asked it is looked into later. Masters in quarantine are not asked to vote,
 * but may be planted on. */
static void on_all_answered(struct round *r, void *arg, int64_t now_ms)
{
    struct hold *h = arg;
    struct broker *b = broker_of_round(r);
    h->open = NULL;
    if (b->rounds.closed || !hold_is_valid(h, now_ms) || hold_lease_ms(h, now_ms) <= 0)
        return;
    if (r->script != SCRIPT_RENEW && round_has_missed(r)) {
        hold_look_within(h, HOLD_LOOK_MS, now_ms);
        hold_schedule(b, h);
    } else if (!h->watched && round_answered(r) < r->quorum.n) {
        hold_look_within(h, h->lease_ms / 3,
                         now_ms); /* what is renewed gets there by its renewals */
        hold_schedule(b, h);
    }
    if (quorum_state(&r->quorum) != QUORUM_WON || (h->watched && !hold_is_renewed(h)))
        return;
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        bool missing =
            r->script == SCRIPT_RENEW && v->state == VOTE_ANSWERED && v->code == RENEW_MISSING;
        bool quarantined = v->state == VOTE_UNSENT &&
                           master_status(b->rounds.masters[i], now_ms)->state == MASTER_QUARANTINE;
        if (missing || quarantined)
            plant(b, h, i, now_ms);
    }
}

void hold_follow(struct hold *h, struct round *r)
{
    hold_forget_open(h);
    h->open = r;
    r->arg = h;
    r->on_done = on_all_answered;
}
