/*
 * What the masters are asked for a hold that there is: renewals, looks, and the hold where it is
 * missing (safety R3). Renewals go out a third of the lease after the last success; all that are
 * due in one turn of the loop travel in a few script calls (master_ask.c gathers them).
 *
 * Invariants: a hold's promise (deadline_ms) only ever comes from a majority that confirmed the
 * very same hold in one round, counted from before that round was sent. A planted key is no vote
 * (R3), but one that has stood in quarantine for long enough (R14). h->open is the last round about
 * the hold, until its last answer.
 */
#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/hold_private.h"
#include "lock/renew.h"
#include "redis/args.h"
#include "stats/stats.h"

enum { VERSION_MAX = 41 };

static void on_renewed(struct round *r, void *arg, int64_t now_ms);

/* Returns the lease to ask for: less than all of it when MAXHOLD ends earlier; 0 when that is over.
 */
static int64_t lease_to_ask_ms(const struct hold *h, int64_t now_ms)
{
    int64_t lease_ms = renew_lease_ms(now_ms, h->lease_ms, h->end_ms);
    return lease_ms > 0 ? lease_ms : 0; /* a negative one would delete it on the masters */
}

/* Writes "<token>.<number>": the version of its count, as the masters keep it (lua/hold.lua).
 * Returns the length; there is no NUL. */
static size_t put_version(char out[VERSION_MAX], const struct hold *h)
{
    char *p = util_put_digits(out, (uint64_t)h->token);
    *p++ = '.';
    p = util_put_digits(p, (uint64_t)h->seq);
    return (size_t)(p - out);
}

static void add_count_args(struct args *it, const char *op, const struct hold *h)
{
    char part[LOCK_PART_MAX + 1], what[BROKER_OP_MAX + sizeof part + VERSION_MAX + 40], *p;
    size_t part_len = lock_part_text(h->part, h->owner, part);
    p = util_put_digits(stpcpy(stpcpy(what, op), " count="), h->count);
    p = stpcpy(p, " seq=");
    p = stpcpy(p + put_version(p, h), " part=");
    memcpy(p, part, part_len); /* any bytes */
    args_text(it, what, (size_t)(p - what) + part_len);
}

/* What a RENEW has made shorter is written as it is. Else nothing becomes less: the broker that a
 * hold was taken over from may have told more than is known here (safety R18). */
static void add_lease(struct args *it, const struct hold *h, int64_t lease_ms)
{
    char text[24] = "=";
    if (h->shortened && lease_ms > 0) {
        args_text(it, text, (size_t)(util_put_digits(text + 1, (uint64_t)lease_ms) - text));
    } else {
        args_int(it, lease_ms);
    }
}

/* Returns until when a lease that begins now can be relied on. */
static int64_t promise_ms(const struct broker *b, int64_t lease_ms, int64_t now_ms)
{
    return now_ms + quorum_validity_ms(lease_ms, now_ms, now_ms, b->conf.drift_ppm);
}

/* Can what is planted be a vote for it by now (safety R14)? */
static bool takes_planted(const struct hold *h, int64_t now_ms)
{
    return h->deadline_ms - now_ms < h->lease_ms / 3;
}

struct round *hold_write(struct broker *b, struct hold *h, int64_t lease_ms, round_fn fn, void *arg,
                         int64_t now_ms)
{
    char op[BROKER_OP_MAX + 1];
    bool is_less = promise_ms(b, lease_ms, now_ms) < h->deadline_ms;
    broker_op_text(b, h->op, op);
    struct args *it = args_begin(h->lock->name, h->lock->name_len);
    if (h->part.kind == LOCK_EXCLUSIVE && !h->recounted)
        args_str(it, op);
    else
        add_count_args(it, op, h);
    add_lease(it, h, is_less ? 0 : lease_ms); /* see hold_use_lease() */
    it->renewal = fn == on_renewed; /* of the watchdog: what clients ask for waits in its order */
    struct round *r = round_ask(&b->rounds, SCRIPT_RENEW, it, false, fn, arg, now_ms);
    r->lease_ms = (uint32_t)lease_ms;
    r->takes_planted = takes_planted(h, now_ms);
    return r;
}

/* Sets when it is next renewed, after a success that was asked for at sent_ms: never again when its
 * MAXHOLD ends before the lease does. */
static void plan_renewal(struct broker *b, struct hold *h, int64_t sent_ms)
{
    h->renew_ms = lease_to_ask_ms(h, sent_ms) < h->lease_ms || !h->watched
                      ? INT64_MAX
                      : renew_next_ms(sent_ms, h->lease_ms, util_jitter(&b->rng, UINT32_MAX));
}

void hold_confirmed(struct broker *b, struct hold *h, const struct round *r, int64_t now_ms)
{
    int64_t until_ms =
        now_ms + quorum_validity_ms(r->lease_ms, r->sent_ms, now_ms, b->conf.drift_ppm);
    if (until_ms > h->deadline_ms)
        h->deadline_ms = until_ms;
    hold_seen(h, r);
    if (r->lease_ms < lease_to_ask_ms(h, r->sent_ms)) {
        hold_schedule(b, h); /* confirmed for less than the lease: what is due for it stays due */
        return;
    }
    plan_renewal(b, h, r->sent_ms);
    if (h->state == HOLD_JEOPARDY) {
        b->n_jeopardy--;
        sm_move(hold_states, &h->state, h->lock->name, HOLD_HELD);
        notify_safe(h, now_ms);
    }
    hold_schedule(b, h);
}

enum lost_reason hold_why_gone(const struct round *r)
{
    for (int i = 0; i < r->quorum.n; i++) {
        if (r->votes[i].state == VOTE_ANSWERED && r->votes[i].code == RENEW_MOVED)
            return LOST_MOVED;
    }
    return LOST_GONE;
}

bool hold_is_refused(const struct hold *h, const struct round *r)
{
    return round_is_refused(r) && !h->torn;
}

static void not_renewed(struct broker *b, struct hold *h, int64_t now_ms)
{
    stats.renewals_failed++;
    h->renew_ms = renew_retry_ms(now_ms, h->deadline_ms, util_jitter(&b->rng, UINT32_MAX));
    if (h->state == HOLD_HELD) {
        b->n_jeopardy++;
        sm_move(hold_states, &h->state, h->lock->name, HOLD_JEOPARDY);
        notify_jeopardy(h, now_ms);
    }
    hold_schedule(b, h);
}

static void renewal_failed(struct broker *b, struct hold *h, const struct round *r, int64_t now_ms)
{
    if (hold_is_refused(h, r)) {
        stats.renewals_lost++;
        hold_lose(b, h, hold_why_gone(r), true, now_ms);
    } else {
        not_renewed(b, h, now_ms);
    }
}

static void on_renewed(struct round *r, void *arg, int64_t now_ms)
{
    struct hold *h = arg;
    struct broker *b = broker_of_round(r);
    if (h->busy || !hold_is_valid(h, now_ms)) {
        hold_schedule(b, h); /* being taken over, or too late: what is due decides */
        return;
    }
    if (quorum_state(&r->quorum) != QUORUM_WON) {
        renewal_failed(b, h, r, now_ms);
        return;
    }
    stats.renewals_ok++;
    hold_confirmed(b, h, r, now_ms);
    notify_renewed(h, now_ms);
}

void hold_renew(struct broker *b, struct hold *h, int64_t now_ms)
{
    if (lease_to_ask_ms(h, now_ms) <= 0) {
        h->renew_ms = INT64_MAX;
        return;
    }
    hist_add(&stats.renewal_lateness_us, (now_ms - h->renew_ms) * 1000);
    if (b->n_quarantined == b->rounds.n_all && !takes_planted(h, now_ms)) {
        not_renewed(b, h, now_ms); /* in vain, and the masters have all holds to plant just now */
        return;
    }
    h->renew_ms = now_ms + b->conf.request_timeout_ms + 1; /* the verdict sets a better one */
    hold_follow(h, hold_write(b, h, lease_to_ask_ms(h, now_ms), on_renewed, h, now_ms));
}

static void on_looked(struct round *r, void *arg, int64_t now_ms)
{
    struct hold *h = arg;
    struct broker *b = broker_of_round(r);
    if (h->busy || !hold_is_valid(h, now_ms))
        return;
    if (hold_is_refused(h, r))
        hold_lose(b, h, hold_why_gone(r), true, now_ms);
    else if (quorum_state(&r->quorum) == QUORUM_WON)
        hold_seen(h, r);
    else if (!hold_is_renewed(h))
        hold_look_again(b, h, now_ms);
}

void hold_look(struct broker *b, struct hold *h, int64_t now_ms)
{
    h->renew_ms = INT64_MAX;
    hold_follow(h, hold_write(b, h, 0, on_looked, h, now_ms));
}

void hold_look_again(struct broker *b, struct hold *h, int64_t now_ms)
{
    hold_look_within(
        h, renew_retry_ms(now_ms, h->deadline_ms, util_jitter(&b->rng, UINT32_MAX)) - now_ms,
        now_ms);
    hold_schedule(b, h);
}

void hold_use_lease(struct broker *b, struct hold *h, const struct lock_request *r, int64_t now_ms)
{
    if (!r->lease_ms)
        return;
    bool is_less = promise_ms(b, r->lease_ms, now_ms) < h->deadline_ms;
    if (is_less && r->verb != VERB_RENEW)
        return; /* who entered it first relies on what he was told */
    if (h->lease_ms != r->lease_ms) {
        h->lease_ms = (uint32_t)r->lease_ms;
        plan_renewal(b, h, now_ms);
    }
    int64_t until_ms = promise_ms(b, lease_to_ask_ms(h, now_ms), now_ms);
    if (until_ms < h->deadline_ms) {
        h->deadline_ms = until_ms > now_ms ? until_ms : now_ms + 1;
        h->shortened = true;
        h->seq++; /* a new version, which may shorten */
        h->recounted = true;
        hold_follow(h, hold_write(b, h, lease_to_ask_ms(h, now_ms), on_looked, h, now_ms));
        if (h->tell && h->session != r->base.session)
            notify_renewed(h, now_ms);
    }
    hold_schedule(b, h);
}

/* ---- where it is missing ---- */

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
    int64_t lease_ms = lease_to_ask_ms(h, now_ms);
    if (h->inherits) { /* the broker that had it may have told more */
        int64_t most_ms = h->since_ms + b->conf.max_lease_ms - now_ms;
        told_ms = most_ms > told_ms ? most_ms : told_ms;
    }
    return hold_is_renewed(h) && lease_ms > told_ms ? lease_ms : told_ms;
}

struct args *hold_plant_args(struct broker *b, const struct hold *h, int64_t now_ms)
{
    char op[BROKER_OP_MAX + 1], counter[TOKEN_COUNTER_MAX + 1];
    char version[VERSION_MAX];
    const struct lock *l = h->lock;
    broker_op_text(b, h->op, op);
    struct args *it = args_begin(l->name, l->name_len);
    args_str(it, op);
    args_text(it, h->owner->text, h->owner->len);
    args_int(it, h->token);
    args_int(it, h->count);
    args_text(it, version, put_version(version, h));
    args_int(it, plant_lease_ms(b, h, now_ms));
    rounds_counter(&b->rounds, l->name, l->name_len, counter);
    args_str(it, counter);
    args_int(it, h->end_ms == INT64_MAX ? 0 : h->end_ms > now_ms ? h->end_ms - now_ms : 1);
    broker_add_part(it, h->part, h->owner);
    return it;
}

/* Tells whether a master in quarantine lacks the hold, as far as this round can say. */
static bool is_forgotten(const struct round *r, int i, int64_t now_ms)
{
    const struct vote *v = &r->votes[i];
    bool is_planted =
        r->script == SCRIPT_RENEW && (v->code == RENEW_EARLY || v->code == RENEW_PLANTED);
    return v->state == VOTE_UNSENT && !is_planted &&
           master_status(round_master(r, i), now_ms)->state == MASTER_QUARANTINE;
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
    if (b->rounds.closed || !hold_is_valid(h, now_ms) || lease_to_ask_ms(h, now_ms) <= 0)
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
        bool forgotten = is_forgotten(r, i, now_ms);
        enum script script = forgotten && b->replants[r->first_master + i].state != REPLANT_IDLE
                                 ? SCRIPT_REPLANT
                                 : SCRIPT_PLANT;
        if (missing || forgotten)
            round_tell(&b->rounds, i, script, hold_plant_args(b, h, now_ms), now_ms);
    }
}

void hold_follow(struct hold *h, struct round *r)
{
    hold_forget_open(h);
    h->open = r;
    r->arg = h;
    r->on_done = on_all_answered;
}
