/*
 * A claim goes through its rounds on its own; its owner hears of the end and nothing else. After a
 * failure the undo goes to every master, also to those thought untouched, unless every one of them
 * has answered that it did nothing. An undo of a hand-over ends the old hold too: once it has been
 * sent its owner never holds again (safety R12). A failed take-over deletes nothing (R11).
 *
 * Source of the token rule: safety R4; of the validity: quorum.h.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim_private.h"
#include "lock/lock_share.h"
#include "lock/queue.h"
#include "lock/release.h"
#include "redis/args.h"
#include "stats/stats.h"

enum { ASKING, COMMITTING, GRANTED, REFUSED, STATES };

#define TO(s) (1u << (s))
static const struct sm_state states[STATES] = {
    [ASKING] = {"asking", TO(ASKING) | TO(COMMITTING) | TO(GRANTED) | TO(REFUSED)},
    [COMMITTING] = {"committing", TO(COMMITTING) | TO(GRANTED) | TO(REFUSED)},
    [GRANTED] = {"granted", 0},
    [REFUSED] = {"refused", 0},
};

/* Rounds of commit in one claim: more are no race between brokers any more. */
enum { COMMITS_MAX = 8 };
/* A claim asks for this many permits, one after the other, while others are quicker. */
enum { TRIES_MAX = 8 };

struct claim *claim_new(struct broker *b, struct lock *l, struct owner *owner, int64_t lease_ms,
                        claim_fn on_end, void *arg)
{
    struct claim *c = pool_get(sizeof *c);
    c->broker = b;
    c->lock = l;
    c->owner = owner_ref(owner);
    c->lease_ms = lease_ms;
    c->on_end = on_end;
    c->arg = arg;
    c->op = ++b->last_op;
    return c;
}

static void end(struct claim *c, enum claim_end how, int64_t now_ms)
{
    sm_move(states, &c->state, c->lock->name, how == CLAIM_GRANTED ? GRANTED : REFUSED);
    struct lock *l = c->lock;
    LIST_REMOVE(c, of_lock);
    l->queue->n_claims--;
    work_look(&c->broker->work, l);
    c->end = how;
    hist_add(&stats.acquire_us, (now_ms - c->sent_ms) * 1000);
    if (c->part.kind != LOCK_EXCLUSIVE &&
        !c->takeover) /* it is a hold now, or others may ask for it at once */
        share_asked(l, c->part);
    c->on_end(c, c->arg, now_ms);
    owner_unref(c->owner);
    free(c->reason);
    pool_put(c, sizeof *c);
}

static void undo_op(struct claim *c, uint64_t op, struct lock_part part,
                    const struct ticket_place *place, int64_t lease_ms,
                    struct lock_request *releaser, int64_t now_ms)
{
    char text[BROKER_OP_MAX + 1];
    broker_op_text(c->broker, op, text);
    struct release_what hold = {text, part, c->owner, lease_ms, RELEASE_ASKED};
    release_hold(c->broker, c->lock, &hold, place, releaser ? c->on_undone : NULL, releaser,
                 now_ms);
}

/* `waits`: where it was first for a moment it stays first in the line. `tells`: the release of what
 * was to be handed over tells the releaser how it ended. */
static void undo(struct claim *c, bool waits, bool tells, int64_t now_ms)
{
    if (c->takeover)
        return;
    const struct ticket_place front = {c->place.number, "front"};
    stats.acquire_undos++;
    undo_op(c, c->op, c->part, waits && c->place.where ? &front : NULL, c->lease_ms, NULL, now_ms);
    if (c->prev_op)
        undo_op(c, c->prev_op, c->prev_part, NULL, c->prev_lease_ms, tells ? c->releaser : NULL,
                now_ms);
    if (tells)
        c->releaser = NULL;
}

/* `why`: "NOQUORUM ...", heap, from now on the claim's. */
static void fail(struct claim *c, char *why, int64_t now_ms)
{
    c->reason = why;
    undo(c, true, false, now_ms);
    end(c, CLAIM_FAILED, now_ms);
}

static void fail_back(struct claim *c, int64_t token, int64_t now_ms)
{
    stats.fence_regressions++;
    log_error(c->lock->name,
              "the masters gave a token that is not above the last one token=%lld last=%lld",
              (long long)token, (long long)c->above);
    fail(c,
         util_format("NOQUORUM the masters gave token %lld, and %lld had been given before",
                     (long long)token, (long long)c->above),
         now_ms);
}

/* A take-over goes on with what is left, however little; it is renewed at once. */
static void grant(struct claim *c, struct round *r, int64_t token, int64_t now_ms)
{
    const struct lock *l = c->lock;
    int64_t lease_ms = c->takeover ? c->pttl_ms : c->lease_ms;
    int64_t left = quorum_validity_ms(lease_ms, c->sent_ms, now_ms, c->broker->conf.drift_ppm);
    int64_t least = c->broker->conf.min_validity_ms;
    least = least < c->lease_ms / 3 ? least : c->lease_ms / 3;
    if (now_ms - c->sent_ms > c->broker->conf.claim_timeout_ms) {
        /* a master that has begun a new life meanwhile may count others' holds by now (R14) */
        stats.acquires_late++;
        fail(c,
             util_format("NOQUORUM the masters took %lld ms, longer than claim_timeout",
                         (long long)(now_ms - c->sent_ms)),
             now_ms);
        return;
    }
    if (left < (c->takeover ? 1 : least)) {
        stats.acquires_late++;
        fail(c,
             util_format("NOQUORUM the masters took %lld ms, less than min_validity of the lease "
                         "would be left",
                         (long long)(now_ms - c->sent_ms)),
             now_ms);
        return;
    }
    /* the last check of token.h */
    if (!token_grant(&c->broker->granted, l->name, l->name_len, c->above, token)) {
        fail_back(c, token, now_ms);
        return;
    }
    c->token = token;
    c->deadline_ms = now_ms + left;
    c->round = r;
    c->missed |= round_has_missed(r);
    rounds_saw_token(&c->broker->rounds, token);
    end(c, CLAIM_GRANTED, now_ms);
}

/* ---- commit rounds ---- */

static void on_commit(struct round *r, void *arg, int64_t now_ms);
static void ask_masters(struct claim *c, int64_t now_ms);

static void commit(struct claim *c, int64_t token, int64_t now_ms)
{
    sm_move(states, &c->state, c->lock->name, COMMITTING);
    c->commits++;
    c->token = token;
    c->doubted = false;
    stats.fence_writebacks++;
    round_ask(&c->broker->rounds, SCRIPT_COMMIT, claim_item_commit(c), false, on_commit, c, now_ms);
}

static void on_commit(struct round *r, void *arg, int64_t now_ms)
{
    struct claim *c = arg;
    int64_t larger = claim_largest_token(r);
    bool won = quorum_state(&r->quorum) == QUORUM_WON;
    if (won && !c->doubted)
        grant(c, r, c->token, now_ms);
    else if ((won || larger > c->token) && c->commits < COMMITS_MAX)
        commit(c, won ? c->token : larger, now_ms);
    else if (round_is_refused(r)) /* what a majority had given is there no more */
        fail(
            c,
            util_strdup("NOQUORUM others took it from a majority of masters before it was granted"),
            now_ms);
    else
        fail(c, round_no_quorum(r, now_ms), now_ms);
}

/* ---- the first round ---- */

/* The permit has gone to somebody else meanwhile, and another one is free. An operation is never
 * used again, so this is a new one. */
static void ask_for_another(struct claim *c, uint16_t slot, int64_t now_ms)
{
    share_ask_instead(c->lock, &c->part, slot);
    c->op = ++c->broker->last_op;
    c->prev_op = c->group = 0;
    ask_masters(c, now_ms);
}

static void refuse(struct claim *c, struct round *r, int64_t now_ms)
{
    struct claim_tally t = claim_count(r);
    int need = quorum_need(r->quorum.n);
    c->retry_ms = t.pttl_ms;
    c->split = t.taken > 0;
    if (r->quorum.vetoed || round_answered(r) < need || (c->takeover && !round_is_refused(r))) {
        fail(c, round_no_quorum(r, now_ms),
             now_ms); /* some may have it, and nobody knows what the others would say */
        return;
    }
    if (c->takeover) {
        end(c, CLAIM_NOBODY, now_ms);
        return;
    }
    bool is_permit = c->part.kind == LOCK_LIMIT;
    /* Does only the release of what was to be handed over say whether it was there? Of a permit a
     * refusal says nothing: the next one may have another permit. */
    bool tells = is_permit ? t.taken == 0 : t.busy + t.same_owner >= need;
    bool again = is_permit && t.other >= 0 && t.other < c->part.limit &&
                 t.busy + t.other_kind < need && ++c->tries < TRIES_MAX;
    if (t.taken > 0 || t.unsure > 0 || c->prev_op)
        undo(c, !again, again || tells, now_ms);
    if (again) {
        ask_for_another(c, (uint16_t)t.other, now_ms);
        return;
    }
    c->in_use = t.in_use;
    end(c,
        t.other_kind >= need   ? CLAIM_KIND
        : t.deadlock > 0       ? CLAIM_DEADLOCK
        : t.same_owner >= need ? CLAIM_SAME_OWNER
                               : CLAIM_BUSY,
        now_ms);
}

static void on_asked(struct round *r, void *arg, int64_t now_ms)
{
    struct claim *c = arg;
    if (!c->takeover)
        c->line = tickets_length(c->broker, c->lock, r, now_ms);
    if (quorum_state(&r->quorum) != QUORUM_WON) {
        refuse(c, r, now_ms);
        return;
    }
    if (c->takeover && !claim_inherit(c, r)) {
        end(c, CLAIM_NOBODY, now_ms);
        return;
    }
    c->missed = round_has_missed(r);
    if (quorum_agreed(&r->quorum) && !c->doubted)
        grant(c, r, quorum_token(&r->quorum), now_ms);
    else
        commit(c, quorum_token(&r->quorum), now_ms);
}

static void ask_masters(struct claim *c, int64_t now_ms)
{
    sm_move(states, &c->state, c->lock->name, ASKING);
    c->sent_ms = now_ms;
    c->above = token_highest(&c->broker->granted, c->lock->name, c->lock->name_len);
    c->count = c->takeover ? 0 : 1;
    struct args *it = claim_item_ask(c, now_ms);
    c->floor = it->floor;
    round_ask(&c->broker->rounds, c->takeover ? SCRIPT_TAKEOVER : SCRIPT_ACQUIRE, it, false,
              on_asked, c, now_ms);
}

void claim_doubt(struct claim *c)
{
    c->doubted = true;
}

void claim_start(struct claim *c, int64_t now_ms)
{
    struct lock_queue *q = queue_get(c->lock);
    LIST_INSERT_HEAD(&q->claims, c, of_lock);
    q->n_claims++;
    ask_masters(c, now_ms);
}
