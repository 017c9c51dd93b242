/*
 * Leads an exchange from its rounds, one a name, to its end, and sees afterwards to those masters
 * that answer late. All its items travel to a master in one call, which does all or none.
 *
 * Invariant: an exchange lives until it has ended and no answer to its first rounds is open.
 */
#include "dropin/exchange.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/util.h"
#include "dropin/exchange_private.h"
#include "lock/tickets.h"
#include "stats/stats.h"

/* Rounds of commit for one name: more are no race between brokers any more. */
enum { COMMITS_MAX = 8 };

/* Those that have not ended, of all brokers. */
static LIST_HEAD(, exchange) open_exchanges = LIST_HEAD_INITIALIZER(open_exchanges);

/* ---- its parts ---- */

static void begin_part(struct exchange *x, struct exchange_part *p,
                       const struct exchange_item *item)
{
    struct broker *b = x->broker;
    p->exchange = x;
    p->said = (struct exchange_said *)(x->parts + x->n) + (p - x->parts) * b->rounds.n;
    p->lock = item->lock;
    work_ref(p->lock);
    truth_copy(&p->guess, item->guess);
    p->guess_is_own = p->guess.op[0] && broker_has_op(b, p->guess.op);
    p->what = (uint8_t)item->what;
    p->wants_time = item->wants_time && item->what == EXCHANGE_LOOK;
    p->keeps_time = item->keeps_time;
    p->lease_ms = item->lease_ms;
    p->fence = item->guess->fence;
    p->text = truth_text_new(item->text, item->len);
    p->op_number = ++b->last_op;
    if (p->what == EXCHANGE_NEW || p->what == EXCHANGE_IN_PLACE)
        exchange_name_op(p);
    p->lock->n_changes += p->what != EXCHANGE_LOOK;
    p->n_changes = p->lock->n_changes;
}

static void end_part(struct exchange_part *p)
{
    struct broker *b = p->exchange->broker;
    for (int i = 0; i < b->rounds.n; i++)
        exchange_forget(&p->said[i]);
    truth_fini(&p->guess);
    truth_text_unref(p->text);
    work_unref(&b->work, p->lock);
}

static size_t exchange_size(const struct broker *b, int n)
{
    size_t said = (size_t)b->rounds.n * sizeof(struct exchange_said);
    return sizeof(struct exchange) + (size_t)n * (sizeof(struct exchange_part) + said);
}

static void free_exchange_if_over(struct exchange *x)
{
    if (!x->ended || x->n_rounds > 0)
        return;
    for (int i = 0; i < x->n; i++)
        end_part(&x->parts[i]);
    free(x->why);
    pool_put(x, exchange_size(x->broker, x->n));
}

/* ---- what follows a confirmation ---- */

/* The agreed master calls up the next in the line once it has answered, as release.c has it. */
static void call_up(struct exchange_part *p, int64_t now_ms)
{
    struct broker *b = p->exchange->broker;
    if (!p->calls_up)
        return;
    int agreed = rounds_agreed(&b->rounds, p->lock->name, p->lock->name_len, now_ms);
    if (agreed >= 0 && p->round && p->round->votes[agreed].open)
        return;
    p->calls_up = false;
    if (agreed >= 0 && p->said[agreed].kind == SAID_DONE && p->said[agreed].line > 0)
        tickets_call(b, p->lock, agreed, now_ms);
}

/* Sees to it that what a majority has confirmed stands on all masters. */
static void make_whole(struct exchange_part *p, int64_t now_ms)
{
    if (exchange_count_done(p) < p->exchange->broker->rounds.n)
        exchange_heal(p, now_ms);
    exchange_repair_note(p, now_ms);
}

/* Ends the first round of a part: all masters have answered that ever will. */
static void on_done(struct round *r, void *arg, int64_t now_ms)
{
    struct exchange_part *p = arg;
    struct exchange *x = p->exchange;
    (void)r;
    p->round = NULL;
    x->n_rounds--;
    call_up(p, now_ms);
    if (x->ended && x->confirmed)
        make_whole(p, now_ms);
    free_exchange_if_over(x);
}

static void confirmed_part(struct exchange_part *p, int64_t now_ms)
{
    p->calls_up = p->what == EXCHANGE_END && !broker_has_one_master(p->exchange->broker);
    call_up(p, now_ms);
    if (!p->round)
        make_whole(p, now_ms);
}

/* ---- the end ---- */

static void end_exchange(struct exchange *x, enum exchange_end how, const char *reason,
                         int64_t now_ms)
{
    struct exchange_item *items = x->items;
    LIST_REMOVE(x, open);
    x->ended = true;
    x->confirmed = how == EXCHANGE_CONFIRMED;
    x->items = NULL;
    for (int i = 0; i < x->n; i++) {
        if (x->confirmed)
            confirmed_part(&x->parts[i], now_ms);
        else
            exchange_undo(&x->parts[i], how == EXCHANGE_FAILED, now_ms);
    }
    x->on_end(items, x->n, how, reason, x->arg, now_ms);
    free_exchange_if_over(x);
}

/* Fails the exchange for the reason x->why. */
static void fail_exchange(struct exchange *x, int64_t now_ms)
{
    end_exchange(x, EXCHANGE_FAILED, x->why, now_ms);
}

static void refuse_exchange(struct exchange *x, int64_t now_ms)
{
    for (int i = 0; i < x->n; i++)
        exchange_judge(&x->parts[i], &x->items[i].truth);
    end_exchange(x, EXCHANGE_REFUSED, NULL, now_ms);
}

/* Returns the one whose time to live was nearly over when the masters had answered; NULL: none. */
static const struct exchange_part *late_part(const struct exchange *x, int64_t now_ms)
{
    enum { SHORT_MS = 100 };
    for (int i = 0; i < x->n; i++) {
        const struct exchange_part *p = &x->parts[i];
        int64_t most_ms = p->lease_ms >= SHORT_MS ? p->lease_ms - p->lease_ms / 3 : p->lease_ms;
        bool lasts = p->what == EXCHANGE_IN_PLACE || p->what == EXCHANGE_NEW;
        if (lasts && now_ms - x->sent_ms >= most_ms)
            return p;
    }
    return NULL;
}

/* The last check of token.h. Returns why a new hold must not be granted, heap; NULL: it may. */
static char *note_token(struct exchange_part *p)
{
    struct broker *b = p->exchange->broker;
    if (p->what != EXCHANGE_NEW)
        return NULL;
    rounds_saw_token(&b->rounds, p->fence);
    if (token_grant(&b->granted, p->lock->name, p->lock->name_len, p->above, p->fence))
        return NULL;
    stats.fence_regressions++;
    log_error(p->lock->name,
              "the masters gave a token that is not above the last one token=%lld last=%lld",
              (long long)p->fence, (long long)p->above);
    return util_format("NOQUORUM the masters gave token %lld, and %lld had been given before",
                       (long long)p->fence, (long long)p->above);
}

/* What is exchanged is held for a max_lease, as far as a quarantine knows, and a claim_timeout goes
 * by until it is confirmed (R14). */
static void note_exchange(struct broker *b, int64_t now_ms)
{
    int64_t most_ms = b->conf.max_lease_ms + b->conf.claim_timeout_ms;
    b->exchanges_until_ms = now_ms + quorum_lease_ms(most_ms, b->conf.drift_ppm);
}

static void confirm(struct exchange *x, int64_t now_ms)
{
    const struct exchange_part *late = late_part(x, now_ms);
    if (now_ms - x->sent_ms > x->broker->conf.claim_timeout_ms) /* R14, as in claim.c */
        x->why = util_format("NOQUORUM the masters took %lld ms, longer than claim_timeout",
                             (long long)(now_ms - x->sent_ms));
    else if (late)
        x->why = util_format("NOQUORUM the masters took %lld ms of a time to live of %lld ms",
                             (long long)(now_ms - x->sent_ms), (long long)late->lease_ms);
    for (int i = 0; i < x->n && !x->why; i++)
        x->why = note_token(&x->parts[i]);
    if (x->why) {
        fail_exchange(x, now_ms);
        return;
    }
    for (int i = 0; i < x->n; i++) {
        exchange_result(&x->parts[i], &x->items[i].truth);
        if (x->parts[i].what == EXCHANGE_LOOK)
            x->parts[i].guess.expires_ms = x->items[i].truth.expires_ms;
    }
    end_exchange(x, EXCHANGE_CONFIRMED, NULL, now_ms);
}

/* ---- commit: the masters gave different tokens, or something was taken from it ---- */

static void on_fence_commit(struct round *r, void *arg, int64_t now_ms);

static void commit_fence(struct exchange_part *p, int64_t fence, int64_t now_ms)
{
    p->fence = fence;
    p->commits++;
    p->doubted = false;
    stats.fence_writebacks++;
    exchange_commit(p, on_fence_commit, now_ms);
}

static int64_t larger_token(const struct round *r)
{
    int64_t largest = 0;
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        if (v->state == VOTE_ANSWERED && v->code == COMMIT_LARGER && v->value > largest)
            largest = v->value;
    }
    return largest;
}

static void on_fence_commit(struct round *r, void *arg, int64_t now_ms)
{
    struct exchange_part *p = arg;
    struct exchange *x = p->exchange;
    int64_t larger = larger_token(r);
    bool won = quorum_state(&r->quorum) == QUORUM_WON;
    bool is_again = won ? p->doubted : larger > p->fence;
    if (is_again && p->commits < COMMITS_MAX) {
        commit_fence(p, won ? p->fence : larger, now_ms);
        return;
    }
    if (!won && !x->why && round_is_refused(r))
        x->why = util_strdup("NOQUORUM others took it from a majority of masters before it was "
                             "granted");
    else if (!won && !x->why)
        x->why = round_no_quorum(r, now_ms);
    if (--x->n_pending > 0)
        return;
    if (x->why)
        fail_exchange(x, now_ms);
    else
        confirm(x, now_ms);
}

/* ---- the first rounds ---- */

/* Has a majority to say that the hold stands there still, with this token? */
static bool must_be_committed(const struct exchange_part *p)
{
    bool stands = p->what == EXCHANGE_NEW || p->what == EXCHANGE_IN_PLACE;
    return (p->what == EXCHANGE_NEW && !p->agreed) || (stands && p->doubted);
}

static void settle_tokens(struct exchange *x, int64_t now_ms)
{
    for (int i = 0; i < x->n; i++)
        x->n_pending += must_be_committed(&x->parts[i]);
    if (x->n_pending == 0) {
        confirm(x, now_ms);
        return;
    }
    for (int i = 0; i < x->n; i++) {
        struct exchange_part *p = &x->parts[i];
        if (must_be_committed(p))
            commit_fence(p, p->fence, now_ms);
    }
}

/* Returns a name that some master has ended, though nothing says for certain that no majority has:
 * a majority may be free by now. NULL: there is none. */
static const struct exchange_part *half_ended(const struct exchange *x)
{
    int n = x->broker->rounds.n, sure = n - quorum_need(n) + 1;
    const struct exchange_part *ended = NULL;
    for (int i = 0; i < x->n; i++) {
        const struct exchange_part *p = &x->parts[i];
        if (exchange_count_held(p) >= sure)
            return NULL;
        if (p->what == EXCHANGE_END && exchange_count_done(p) > 0)
            ended = p;
    }
    return ended;
}

static void judge_votes(struct exchange *x, int64_t now_ms)
{
    bool won = true;
    for (int i = 0; i < x->n; i++)
        won = won && x->parts[i].won;
    const struct exchange_part *ended = won ? NULL : half_ended(x);
    if (ended && !x->why)
        x->why = util_format("NOQUORUM the masters do not agree on who holds '%s', it may have "
                             "been released",
                             ended->lock->name);
    if (won)
        settle_tokens(x, now_ms);
    else if (x->why)
        fail_exchange(x, now_ms);
    else
        refuse_exchange(x, now_ms);
}

/* Returns whether a majority may have done it, for all that is known (safety R21); never of a
 * look. */
static bool may_be_confirmed(const struct exchange_part *p)
{
    return p->what != EXCHANGE_LOOK &&
           exchange_count_may_have_done(p) >= quorum_need(p->exchange->broker->rounds.n);
}

static void on_exchange_asked(struct round *r, void *arg, int64_t now_ms)
{
    struct exchange_part *p = arg;
    struct exchange *x = p->exchange;
    p->won = quorum_state(&r->quorum) == QUORUM_WON;
    p->agreed = quorum_agreed(&r->quorum);
    if (p->what == EXCHANGE_NEW)
        p->fence = quorum_token(&r->quorum);
    for (int i = 0; i < r->quorum.n; i++)
        p->said[i].is_unasked = r->votes[i].state == VOTE_UNSENT;
    bool is_unknown =
        r->quorum.vetoed || round_answered(r) < quorum_need(r->quorum.n) || may_be_confirmed(p);
    if (!p->won && is_unknown && !x->why)
        x->why = round_no_quorum(r, now_ms);
    if (--x->n_pending == 0)
        judge_votes(x, now_ms);
}

static void on_vote(struct round *r, int i, const struct master_answer *answer, int64_t now_ms)
{
    struct exchange_part *p = r->arg;
    exchange_note(p, i, answer);
    call_up(p, now_ms);
}

static bool has_enough_votes(const struct round *r)
{
    return quorum_state(&r->quorum) == QUORUM_WON ||
           (round_is_refused(r) && exchange_is_known(r->arg));
}

void exchange_doubt(struct broker *b, const char *op, size_t len)
{
    struct exchange *x;
    LIST_FOREACH(x, &open_exchanges, open) {
        for (int i = 0; i < x->n && x->broker == b; i++) {
            struct exchange_part *p = &x->parts[i];
            p->doubted = p->doubted || (strlen(p->op) == len && memcmp(p->op, op, len) == 0);
        }
    }
}

void exchange_start(struct broker *b, struct exchange_item *items, int n, exchange_fn on_end,
                    void *arg, int64_t now_ms)
{
    struct exchange *x = pool_get(exchange_size(b, n));
    assert(n > 0 && n <= DROPIN_KEYS_MAX);
    x->broker = b;
    x->items = items;
    x->on_end = on_end;
    x->arg = arg;
    x->n = x->n_pending = x->n_rounds = n;
    x->number = b->last_op + 1;
    x->sent_ms = now_ms;
    LIST_INSERT_HEAD(&open_exchanges, x, open);
    note_exchange(b, now_ms);
    for (int i = 0; i < n; i++) {
        assert(items[i].guess->kind != TRUTH_NATIVE || items[i].what == EXCHANGE_LOOK);
        begin_part(x, &x->parts[i], &items[i]);
        (void)rounds_resend(&b->rounds, items[i].lock->name, items[i].lock->name_len, now_ms);
    }
    if (n > 1) /* all of one partition: see job_check_slots() */
        round_together(&b->rounds,
                       rounds_first(&b->rounds, items[0].lock->name, items[0].lock->name_len),
                       SCRIPT_EXCHANGE, n, now_ms);
    for (int i = 0; i < n; i++) {
        struct round *r = exchange_ask(&x->parts[i], on_exchange_asked, now_ms);
        x->parts[i].round = r;
        r->on_vote = on_vote;
        r->on_done = on_done;
        r->is_enough = has_enough_votes;
    }
}
