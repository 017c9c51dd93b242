/*
 * A claim goes through its rounds on its own; its owner hears of the end and nothing else. After a
 * failure the undo goes to every master, also to those thought untouched, unless every one of them
 * has answered that it did nothing. An undo of a hand-over ends the old hold too: once it has been
 * sent its owner never holds again (safety R12). A failed take-over deletes nothing (R11).
 *
 * Source of the token rule: safety R4; of the validity: quorum.h.
 */
#include "claim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker_state.h"
#include "item.h"
#include "lock_share.h"
#include "log.h"
#include "pool.h"
#include "renew.h"
#include "stats.h"
#include "util.h"

enum { ASKING, COMMITTING, GRANTED, REFUSED, STATES };

#define TO(s) (1u << (s))
static const struct sm_state states[STATES] = {
    [ASKING] = {"asking", TO(ASKING) | TO(COMMITTING) | TO(GRANTED) | TO(REFUSED)},
    [COMMITTING] = {"committing", TO(COMMITTING) | TO(GRANTED) | TO(REFUSED)},
    [GRANTED] = {"granted", 0},
    [REFUSED] = {"refused", 0},
};

/* A token that rises this often in one claim is no race any more. */
enum { COMMITS_MAX = 8 };
/* So many permits are asked for, when others are quicker, before it counts as busy. */
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

static bool is_share(const struct claim *c)
{
    return c->part.kind != LOCK_EXCLUSIVE && !c->takeover;
}

static void end(struct claim *c, enum claim_end how, int64_t now_ms)
{
    sm_move(states, &c->state, c->lock->name, how == CLAIM_GRANTED ? GRANTED : REFUSED);
    struct broker *b = c->broker;
    struct lock *l = c->lock;
    broker_use(l);
    LIST_REMOVE(c, of_lock);
    l->queue->n_claims--;
    c->end = how;
    hist_add(&stats.acquire_us, (now_ms - c->sent_ms) * 1000);
    if (is_share(c)) /* it is a hold now, or others may ask for it at once */
        share_asked(l, c->part);
    c->on_end(c, c->arg, now_ms);
    owner_unref(c->owner);
    free(c->reason);
    pool_put(c, sizeof *c);
    broker_put(b, l);
}

static void undo_op(struct claim *c, uint64_t op, struct lock_part part,
                    const struct line_place *place, int64_t lease_ms, struct lock_request *releaser,
                    int64_t now_ms)
{
    char text[BROKER_OP_MAX + 1];
    broker_op_text(c->broker, op, text);
    struct line_hold hold = {text, part, c->owner, lease_ms};
    line_release(c->broker, c->lock, &hold, place, releaser ? c->on_undone : NULL, releaser,
                 now_ms);
}

/* `waits`: where it was first for a moment it stays first in the line. `tells`: the release of what
 * was to be handed over tells the releaser how it ended. */
static void undo(struct claim *c, bool waits, bool tells, int64_t now_ms)
{
    if (c->takeover)
        return;
    const struct line_place front = {c->place.number, "front"};
    stats.acquire_undos++;
    undo_op(c, c->op, c->part, waits && c->place.where ? &front : NULL, c->lease_ms, NULL, now_ms);
    if (c->prev_op)
        undo_op(c, c->prev_op, c->prev_part, NULL, c->prev_lease_ms, tells ? c->releaser : NULL,
                now_ms);
    if (tells)
        c->releaser = NULL;
}

static void fail(struct claim *c, struct buf *why, int64_t now_ms)
{
    c->reason = util_memdup(buf_head(why), buf_len(why));
    buf_fini(why);
    undo(c, true, false, now_ms);
    end(c, CLAIM_FAILED, now_ms);
}

static void fail_round(struct claim *c, struct round *r, int64_t now_ms)
{
    struct buf why = {0};
    buf_printf(&why, "NOQUORUM ");
    round_describe(r, &why, now_ms);
    fail(c, &why, now_ms);
}

static void fail_late(struct claim *c, int64_t now_ms)
{
    struct buf why = {0};
    buf_printf(&why, "NOQUORUM the masters took %lld ms, too little of the lease is left",
               (long long)(now_ms - c->sent_ms));
    stats.acquires_late++;
    fail(c, &why, now_ms);
}

/* Every counter of a majority was at the highest token granted before, or above, when this was
 * asked for; and the floor that was sent along is above all that this broker has seen. So it means
 * that the masters are no longer what they were. */
static bool goes_back(struct claim *c, int64_t token)
{
    int64_t *granted = &c->broker->granted[item_bucket(c->lock->name, c->lock->name_len)];
    if (token <= c->above)
        return true;
    if (token > *granted)
        *granted = token;
    return false;
}

static void fail_back(struct claim *c, int64_t token, int64_t now_ms)
{
    struct buf why = {0};
    stats.fence_regressions++;
    log_error(c->lock->name,
              "the masters gave a token that is not above the last one token=%lld last=%lld",
              (long long)token, (long long)c->above);
    buf_printf(&why, "NOQUORUM the masters gave token %lld, and %lld had been given before",
               (long long)token, (long long)c->above);
    fail(c, &why, now_ms);
}

/* A take-over goes on with what is left, however little; it is renewed at once. */
static void grant(struct claim *c, struct round *r, int64_t token, int64_t now_ms)
{
    int64_t lease_ms = c->takeover ? c->pttl_ms : c->lease_ms;
    int64_t left = quorum_validity_ms(lease_ms, c->sent_ms, now_ms, c->broker->conf.drift_ppm);
    int64_t least = c->broker->conf.min_validity_ms;
    least = least < c->lease_ms / 3 ? least : c->lease_ms / 3;
    if (left < (c->takeover ? 1 : least)) {
        fail_late(c, now_ms);
        return;
    }
    if (goes_back(c, token)) {
        fail_back(c, token, now_ms);
        return;
    }
    if (!c->takeover)
        c->seq = token;
    c->token = token;
    c->deadline_ms = now_ms + left;
    c->round = r;
    c->missed |= round_has_missed(r);
    backend_saw_token(&c->broker->backend, token);
    end(c, CLAIM_GRANTED, now_ms);
}

/* ---- commit rounds ---- */

static void on_commit(struct round *r, void *arg, int64_t now_ms);
static void ask(struct claim *c, int64_t now_ms);

static void commit(struct claim *c, int64_t token, int64_t now_ms)
{
    char op[BROKER_OP_MAX + 1];
    sm_move(states, &c->state, c->lock->name, COMMITTING);
    c->commits++;
    c->token = token;
    stats.fence_writebacks++;
    broker_op_text(c->broker, c->op, op);
    struct item *it = item_begin(c->lock->name, c->lock->name_len);
    item_arg_str(it, op);
    item_arg_int(it, token);
    item_arg_int(it, item_bucket(c->lock->name, c->lock->name_len));
    line_add_part(it, c->part, c->owner);
    backend_ask(&c->broker->backend, SCRIPT_COMMIT, it, false, on_commit, c, now_ms);
}

static void on_commit(struct round *r, void *arg, int64_t now_ms)
{
    struct claim *c = arg;
    int64_t larger = 0;
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        if (v->state == VOTE_ANSWERED && v->code == 2 && v->value > larger)
            larger = v->value;
    }
    if (quorum_state(&r->quorum) == QUORUM_WON)
        grant(c, r, c->token, now_ms);
    else if (larger > c->token && c->commits < COMMITS_MAX)
        commit(c, larger, now_ms);
    else
        fail_round(c, r, now_ms);
}

/* ---- the first round ---- */

/* What a round that was not won says: is the lock held by somebody, or could nobody tell? */
struct tally {
    int busy, same_owner, nobody, unsure, taken;
    int other_kind, deadlock;
    int64_t pttl_ms; /* longest that stands in the way */
    int64_t in_use;  /* by those who say that it is another kind; see acquire.lua */
    int64_t other;   /* a permit that somebody knows to be free; -1: none */
};

static void count_refusal(struct tally *t, const struct vote *v)
{
    t->same_owner += v->code == 2;
    t->busy += v->code == 0 || v->code == -2 || v->code == -5;
    if ((v->code == 0 || v->code == 2) && v->value > t->pttl_ms)
        t->pttl_ms = v->value;
    if (v->code == 3)
        t->other = v->value;
    t->deadlock += v->code == -4;
    t->other_kind += v->code == -3;
    if (v->code == -3)
        t->in_use = v->value;
}

static struct tally count_votes(const struct round *r)
{
    struct tally t = {.other = -1};
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        if (v->open || v->state == VOTE_UNKNOWN) {
            t.unsure++;
        } else if (v->state == VOTE_ANSWERED) {
            t.taken += v->code == 1;
            t.nobody += r->script == SCRIPT_TAKEOVER && v->code == 0 && v->value == -2;
            count_refusal(&t, v);
        }
    }
    return t;
}

/* The permit has gone to somebody else meanwhile, and another one is free. An operation is never
 * used again, so this is a new one. */
static void ask_for_another(struct claim *c, uint16_t slot, int64_t now_ms)
{
    share_ask_instead(c->lock, &c->part, slot);
    c->op = ++c->broker->last_op;
    c->prev_op = c->group = 0;
    ask(c, now_ms);
}

/* n permits; 0: one exclusive lock; -1: readers. */
static struct lock_part in_use(int64_t n)
{
    struct lock_part part = {LOCK_LIMIT, (uint16_t)n, 0};
    if (n <= 0 || n > LOCK_PERMITS_MAX)
        part = (struct lock_part){n < 0 ? LOCK_SHARED : LOCK_EXCLUSIVE, 0, 0};
    return part;
}

static void refuse(struct claim *c, struct round *r, int64_t now_ms)
{
    struct tally t = count_votes(r);
    int need = quorum_need(r->quorum.n);
    c->retry_ms = t.pttl_ms;
    c->split = t.taken > 0;
    /* of a permit it says nothing: the next one may have another permit */
    c->foreign = c->part.kind != LOCK_LIMIT && t.busy + t.same_owner >= need;
    if (round_answered(r) < need || (c->takeover && !round_is_refused(r))) {
        fail_round(c, r, now_ms); /* some may have it, and nobody knows what the others would say */
        return;
    }
    if (c->takeover) {
        end(c, CLAIM_NOBODY, now_ms);
        return;
    }
    bool again = c->part.kind == LOCK_LIMIT && t.other >= 0 && t.other < c->part.limit &&
                 t.busy + t.other_kind < need && ++c->tries < TRIES_MAX;
    if (t.taken > 0 || t.unsure > 0 || c->prev_op)
        undo(c, !again, again || (c->part.kind == LOCK_LIMIT && t.taken == 0), now_ms);
    if (again) {
        ask_for_another(c, (uint16_t)t.other, now_ms);
        return;
    }
    c->in_use = in_use(t.in_use);
    end(c,
        t.other_kind >= need   ? CLAIM_KIND
        : t.deadlock > 0       ? CLAIM_DEADLOCK
        : t.same_owner >= need ? CLAIM_SAME_OWNER
                               : CLAIM_BUSY,
        now_ms);
}

/* For how long a majority has it, when these have it for so long. */
static int64_t majority_pttl_ms(const struct round *r)
{
    int64_t longest[QUORUM_MASTERS_MAX] = {0};
    int n = 0;
    for (int i = 0; i < r->quorum.n; i++) {
        if (!(r->quorum.yes >> i & 1))
            continue;
        int at = n++;
        for (; at > 0 && longest[at - 1] < r->votes[i].pttl_ms; at--)
            longest[at] = longest[at - 1];
        longest[at] = r->votes[i].pttl_ms;
    }
    return longest[quorum_need(r->quorum.n) - 1];
}

/* A take-over keeps count and MAXHOLD. Masters may differ in the count: one may not have heard of
 * the last change, or may still have an older hold of the same owner. The latest version is what a
 * majority has confirmed, or an attempt after that. Attempts that none of these masters has seen
 * end below the version from which the new holder goes on. */
static void inherit(struct claim *c, const struct round *r)
{
    enum { UNSEEN_MAX = 1024 };
    const struct vote *last = NULL;
    c->end_ms = INT64_MAX;
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        if (!(r->quorum.yes >> i & 1))
            continue;
        if (!last || v->seq > last->seq)
            last = v;
    }
    assert(last); /* a majority has said yes */
    if (last->left_ms)
        c->end_ms = c->sent_ms + last->left_ms;
    c->count = last->extra;
    c->seq = last->seq + UNSEEN_MAX;
    c->pttl_ms = renew_lease_ms(c->sent_ms, majority_pttl_ms(r), c->end_ms);
}

/* What the owner had, as a majority says; false: they do not agree. */
static bool take_part(struct claim *c, const struct round *r)
{
    for (int i = 0; i < r->quorum.n; i++) {
        int32_t share = r->votes[i].share;
        int same = 0;
        for (int j = 0; j < r->quorum.n; j++)
            same += (r->quorum.yes >> j & 1) && r->votes[j].share == share;
        if (!(r->quorum.yes >> i & 1) || same < quorum_need(r->quorum.n))
            continue;
        c->part = (struct lock_part){share ? LOCK_SHARED : LOCK_EXCLUSIVE, 0, 0};
        if (share > 1)
            c->part = (struct lock_part){LOCK_LIMIT, (uint16_t)(share >> 16), (uint16_t)share};
        return share <= 1 || (c->part.limit <= LOCK_PERMITS_MAX && c->part.slot < c->part.limit);
    }
    return false;
}

static void on_asked(struct round *r, void *arg, int64_t now_ms)
{
    struct claim *c = arg;
    if (!c->takeover)
        c->line = line_length(c->broker, c->lock, r, now_ms);
    if (quorum_state(&r->quorum) != QUORUM_WON) {
        refuse(c, r, now_ms);
        return;
    }
    if (c->takeover) {
        inherit(c, r);
        if (c->count == 0 ||
            !take_part(c, r)) { /* a majority had tries of our own that came late */
            end(c, CLAIM_NOBODY, now_ms);
            return;
        }
    }
    c->missed = round_has_missed(r);
    if (quorum_agreed(&r->quorum))
        grant(c, r, quorum_token(&r->quorum), now_ms);
    else
        commit(c, quorum_token(&r->quorum), now_ms);
}

static const char *const kind_words[LOCK_KINDS] = {"x", "s", "n"};

/* The last argument of acquire.lua: nearly always there is nothing to say. */
static void add_more(const struct claim *c, struct item *it, int64_t now_ms)
{
    char prev[BROKER_OP_MAX + 1] = "-", mode[16], all[BROKER_OP_MAX + 32] = "-";
    char more[sizeof prev + sizeof(struct line_words) + sizeof mode + sizeof all + 128];
    struct line_words line;
    if (c->part.kind == LOCK_EXCLUSIVE && !c->prev_op && !c->place.where && !c->maxhold_ms &&
        !c->group) {
        item_arg_str(it, "-");
        return;
    }
    snprintf(mode, sizeof mode, "%s", kind_words[c->part.kind]);
    if (c->part.kind == LOCK_LIMIT)
        snprintf(mode, sizeof mode, "%u:%u", (unsigned)c->part.limit, (unsigned)c->part.slot);
    if (c->prev_op)
        broker_op_text(c->broker, c->prev_op, prev);
    if (c->group)
        snprintf(all, sizeof all, "%s.%" PRIu64 "/%d", c->broker->id, c->group, c->group_size);
    line_words(c->broker, c->lock, &c->place, &line, now_ms);
    snprintf(more, sizeof more, "%s,%" PRId64 ",%s,%s,%s,%" PRId64 ",%s,%s", prev,
             c->prev_op ? broker_tomb_ms(c->broker) : 0, line.ticket, line.place, line.judge,
             c->maxhold_ms, mode, all);
    item_arg_str(it, more);
}

static void add_acquire(const struct claim *c, struct item *it, const char *op, int64_t now_ms)
{
    item_arg_str(it, op);
    item_arg(it, c->owner->text, c->owner->len);
    item_arg_int(it, c->lease_ms);
    item_arg_int(it, backend_floor(&c->broker->backend, now_ms));
    item_arg_int(it, item_bucket(c->lock->name, c->lock->name_len));
    add_more(c, it, now_ms);
}

static void add_takeover(const struct claim *c, struct item *it, const char *op, int64_t now_ms)
{
    item_arg_str(it, op);
    item_arg_int(it, broker_tomb_ms(c->broker));
    item_arg(it, c->owner->text, c->owner->len);
    item_arg_int(it, backend_floor(&c->broker->backend, now_ms));
    item_arg_int(it, item_bucket(c->lock->name, c->lock->name_len));
    item_arg_str(it, c->has_hold ? "hold" : "none");
    item_arg_str(it, c->any ? "?" : kind_words[c->part.kind]);
}

static void ask(struct claim *c, int64_t now_ms)
{
    char op[BROKER_OP_MAX + 1];
    sm_move(states, &c->state, c->lock->name, ASKING);
    c->sent_ms = now_ms;
    c->above = c->broker->granted[item_bucket(c->lock->name, c->lock->name_len)];
    c->count = c->takeover ? 0 : 1;
    broker_op_text(c->broker, c->op, op);
    struct item *it = item_begin(c->lock->name, c->lock->name_len);
    if (c->takeover)
        add_takeover(c, it, op, now_ms);
    else
        add_acquire(c, it, op, now_ms);
    backend_ask(&c->broker->backend, c->takeover ? SCRIPT_TAKEOVER : SCRIPT_ACQUIRE, it, false,
                on_asked, c, now_ms);
}

void claim_start(struct claim *c, int64_t now_ms)
{
    struct lock_queue *q = lock_queue_get(c->lock);
    LIST_INSERT_HEAD(&q->claims, c, of_lock);
    q->n_claims++;
    ask(c, now_ms);
}
