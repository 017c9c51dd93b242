/*
 * Rounds: one question, the votes of all masters, one verdict. A round stands in `asked` until it
 * is decided, then in `decided` until round_deliver has delivered the verdict: so no verdict ever
 * runs inside round_ask or inside the answer of a master, and callers may do anything in theirs.
 *
 * Invariant: a round is freed when its verdict has been delivered and no answer is open any more.
 */
#include "redis/round.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pool.h"
#include "redis/undelivered.h"
#include "stats/stats.h"

/* What creates, or makes something last: the rest frees, or only looks. */
static bool is_vetoed(const struct rounds *b, enum script script)
{
    return script_get(script)->deadline && rounds_veto(b);
}

/* ---- votes ---- */

static bool is_yes(const struct round *r, const struct vote *v)
{
    return v->code == CODE_YES || script_get(r->script)->any_counts;
}

static size_t size_of(int n_votes)
{
    return sizeof(struct round) + (size_t)n_votes * sizeof(struct vote);
}

static void free_if_over(struct round *r, int64_t now_ms)
{
    if (!r->decided || r->queued || r->n_open > 0)
        return;
    if (r->on_done)
        r->on_done(r, r->arg, now_ms);
    pool_put(r, size_of(r->quorum.n));
}

static void decide(struct round *r)
{
    r->decided = true;
    r->queued = true;
    TAILQ_REMOVE(&r->rounds->asked, r, by_age);
    TAILQ_INSERT_TAIL(&r->rounds->decided[r->first], r, by_age);
}

bool round_is_refused(const struct round *r)
{
    int said_no = 0;
    for (int i = 0; i < r->quorum.n; i++)
        said_no += (r->quorum.no >> i & 1) && r->votes[i].state == VOTE_ANSWERED;
    return r->quorum.n - said_no < quorum_need(r->quorum.n);
}

static bool is_enough(const struct round *r)
{
    if (r->is_enough)
        return r->is_enough(r);
    return quorum_state(&r->quorum) == QUORUM_WON || round_is_refused(r);
}

/* Lost because they could not be asked is told when the others have answered too, so that the error
 * can say who did and who did not. */
static void decide_if_possible(struct round *r)
{
    bool nobody_voted = r->n_open == r->quorum.n;
    if (r->decided || nobody_voted)
        return;
    if (r->n_open == 0 || (!r->all && is_enough(r)))
        decide(r);
}

static void take_values(struct round *r, struct vote *v, const struct master_answer *answer)
{
    int width = script_get(r->script)->width;
    v->state = VOTE_ANSWERED;
    if (width > 0)
        v->code = (int8_t)answer->values[0];
    if (width > 1)
        v->value = answer->values[1];
    if (width > 2)
        v->extra = (int32_t)answer->values[2];
    if (width > 7) {
        v->pttl_ms = answer->values[3];
        v->version = (struct count_version){answer->values[4], answer->values[5]};
        v->left_ms = answer->values[6];
        v->share = (int32_t)answer->values[7];
    }
    if (script_has_token(r->script, v->code))
        rounds_saw_token(r->rounds, v->value);
}

/* A vote that says yes or no, and stands. */
static void count_vote(struct round *r, struct vote *v)
{
    if (is_yes(r, v))
        quorum_yes(&r->quorum, v->index, v->value);
    else
        quorum_no(&r->quorum, v->index);
}

/* Counts the votes again, as if this master had never answered. */
static void forget_vote(struct round *r, int i)
{
    const struct quorum said = r->quorum;
    struct vote *forgotten = &r->votes[i];
    if (forgotten->state != VOTE_ANSWERED || !script_get(r->script)->deadline)
        return;
    forgotten->state = VOTE_UNKNOWN;
    quorum_init(&r->quorum, said.n);
    if (said.vetoed)
        quorum_veto(&r->quorum);
    for (int j = 0; j < said.n; j++) {
        if (j != i && (said.yes >> j & 1))
            quorum_yes(&r->quorum, j, r->votes[j].value);
        else if (j == i || (said.no >> j & 1))
            quorum_no(&r->quorum, j);
    }
}

/* Somebody else has it on an active master: he may have a majority by what those in quarantine have
 * forgotten, so nothing planted there counts beside that. */
static void dispute(struct round *r)
{
    r->disputed = true;
    for (int i = 0; i < r->quorum.n; i++) {
        if (r->votes[i].code == RENEW_PLANTED)
            forget_vote(r, i);
    }
}

/* A renewal by a master in quarantine (safety R14). Where what was planted is a vote, all the
 * others are heard first: one may dispute it. None where two servers serve as the same master, each
 * for some of the brokers (R16). */
static void count_renewal(struct round *r, struct vote *v, int64_t now_ms)
{
    switch ((enum renew_code)v->code) {
    case RENEW_PLANTED:
        if (r->takes_planted && !r->disputed &&
            !master_status(round_master(r, v->index), now_ms)->disputed) {
            r->all = true;
            quorum_yes(&r->quorum, v->index, 0);
            return;
        }
        break;
    case RENEW_EARLY:
    case RENEW_FORGOTTEN:
        break;
    case RENEW_OTHER:
    case RENEW_MOVED:
        dispute(r);
        count_vote(r, v);
        return;
    default:
        count_vote(r, v);
        return;
    }
    v->state = VOTE_UNSENT;
    quorum_no(&r->quorum, v->index);
}

static void on_answer(struct master_call *call, const struct master_answer *answer, int64_t now_ms)
{
    struct vote *v = (struct vote *)call;
    struct round *r = v->round;
    v->open = false;
    r->n_open--;
    if (answer->result == MASTER_ANSWERED) {
        take_values(r, v, answer);
        if (r->script == SCRIPT_RENEW && v->code != RENEW_HELD)
            count_renewal(r, v, now_ms);
        else
            count_vote(r, v);
    } else {
        v->state = answer->result == MASTER_REJECTED ? VOTE_UNSENT : VOTE_UNKNOWN;
        quorum_no(&r->quorum, v->index);
    }
    if (r->on_vote && v->state == VOTE_ANSWERED)
        r->on_vote(r, v->index, answer, now_ms);
    decide_if_possible(r);
    free_if_over(r, now_ms);
}

/* ---- asking ---- */

/* The master, one of all, that is number i of the item's group. */
static int master_of_item(const struct rounds *b, const struct args *item, int i)
{
    return item->partition * b->n + i;
}

static struct round *round_new(struct rounds *b, enum script script, const struct args *item,
                               round_fn on_verdict, void *arg, int64_t now_ms)
{
    struct round *r = pool_get(size_of(b->n));
    r->rounds = b;
    r->first_master = master_of_item(b, item, 0);
    r->script = script;
    r->sent_ms = now_ms;
    r->timeout_ms = now_ms + b->request_timeout_ms;
    r->on_verdict = on_verdict;
    r->arg = arg;
    quorum_init(&r->quorum, b->n);
    for (int i = 0; i < b->n; i++) {
        struct vote *v = &r->votes[i];
        v->round = r;
        v->index = (uint8_t)i;
        v->call.on_answer = on_answer;
    }
    b->n_asks++;
    TAILQ_INSERT_TAIL(&b->asked, r, by_age);
    return r;
}

struct round *round_ask(struct rounds *b, enum script script, const struct args *item, bool all,
                        round_fn on_verdict, void *arg, int64_t now_ms)
{
    struct round *r = round_new(b, script, item, on_verdict, arg, now_ms);
    struct master_item bytes;
    args_bytes(item, &bytes);
    r->first = item->renewal;
    r->all = all;
    bool may_ask = !b->closed && !is_vetoed(b, script);
    for (int i = 0; i < b->n; i++) {
        struct vote *v = &r->votes[i];
        if (may_ask && master_ask(round_master(r, i), script, &bytes, &v->call, now_ms) == 0) {
            v->open = true;
            r->n_open++;
        } else {
            v->state = VOTE_UNSENT;
            quorum_no(&r->quorum, i);
        }
    }
    decide_if_possible(r);
    return r;
}

void round_together(struct rounds *b, int first, enum script script, int n, int64_t now_ms)
{
    for (int i = first; i < first + b->n && !b->closed; i++)
        master_together(b->masters[i], script, n, now_ms);
}

/* A question whose answer nobody waits for. */
struct errand {
    struct master_call call; /* first */
    enum script script;
};

static void on_errand(struct master_call *call, const struct master_answer *answer, int64_t now_ms)
{
    const struct errand *e = (const struct errand *)call;
    bool answered = answer->result == MASTER_ANSWERED;
    (void)now_ms;
    if (e->script == SCRIPT_PLANT || e->script == SCRIPT_REPLANT) {
        bool planted = answered && answer->values[0] == PLANT_THERE;
        stats.heals_planted += planted;
        stats.heals_refused += !planted;
    }
    free(call);
}

void round_tell(struct rounds *b, int i, enum script script, const struct args *item,
                int64_t now_ms)
{
    struct errand *e = util_alloc(sizeof *e);
    struct master_item bytes;
    args_bytes(item, &bytes);
    e->call.on_answer = on_errand;
    e->script = script;
    if (b->closed || is_vetoed(b, script) ||
        master_ask(b->masters[master_of_item(b, item, i)], script, &bytes, &e->call, now_ms) != 0)
        free(e);
}

void round_owe(struct rounds *b, int i, enum script script, const struct args *item,
               int64_t lease_ms, int64_t now_ms)
{
    struct errand *e = util_alloc(sizeof *e);
    e->call.on_answer = on_errand;
    e->script = script;
    undelivered_send(b->undelivered[master_of_item(b, item, i)], script, item, &e->call,
                     now_ms + lease_ms, now_ms);
}

void round_forget(struct round *r)
{
    r->on_verdict = r->on_done = NULL;
    r->on_vote = NULL;
    r->is_enough = NULL;
    r->arg = NULL;
}

struct round *round_release(struct rounds *b, const struct args *it, int64_t lease_ms, round_fn fn,
                            void *arg, int64_t now_ms)
{
    struct round *r = round_new(b, SCRIPT_RELEASE, it, fn, arg, now_ms);
    r->n_open = b->n;
    for (int i = 0; i < b->n; i++) {
        r->votes[i].open = true;
        /* answers once it has been delivered, or with MASTER_UNKNOWN when it never can be */
        undelivered_send(b->undelivered[r->first_master + i], SCRIPT_RELEASE, it, &r->votes[i].call,
                         now_ms + lease_ms, now_ms);
    }
    decide_if_possible(r);
    return r;
}

/* ---- a master that has forgotten what it said ---- */

void round_new_life(struct rounds *b, int i)
{
    struct round_list *const undelivered[] = {&b->asked, &b->decided[true], &b->decided[false]};
    struct round *r;
    for (size_t k = 0; k < sizeof undelivered / sizeof undelivered[0]; k++)
        TAILQ_FOREACH(r, undelivered[k], by_age)
            if (r->first_master == rounds_group(b, i))
                forget_vote(r, i - r->first_master);
}

/* ---- one turn ---- */

void round_deliver(struct rounds *b, bool of_renewal, int64_t now_ms)
{
    struct round_list *decided = &b->decided[of_renewal];
    struct round *r = TAILQ_FIRST(decided);

    TAILQ_REMOVE(decided, r, by_age);
    if (is_vetoed(b, r->script))
        quorum_veto(&r->quorum);
    if (r->on_verdict)
        r->on_verdict(r, r->arg, now_ms);
    r->queued = false;
    free_if_over(r, now_ms);
}

void round_expire(struct rounds *b, int64_t now_ms)
{
    struct round *r;
    while ((r = TAILQ_FIRST(&b->asked)) && r->timeout_ms <= now_ms)
        decide(r);
    for (int i = 0; i < b->n_all; i++)
        undelivered_expire(b->undelivered[i], now_ms);
}

bool round_give_up(struct rounds *b, int64_t now_ms)
{
    assert(b->closed);
    for (int i = 0; i < b->n_all; i++)
        undelivered_give_up(b->undelivered[i], now_ms);
    return round_has_verdict(b, true) || round_has_verdict(b, false) || !TAILQ_EMPTY(&b->asked);
}

void round_fini(struct rounds *b, int64_t now_ms)
{
    while (round_give_up(b, now_ms)) { /* a verdict may owe more */
        while (round_has_verdict(b, true))
            round_deliver(b, true, now_ms);
        while (round_has_verdict(b, false))
            round_deliver(b, false, now_ms);
    }
    for (int i = 0; i < b->n_all; i++)
        undelivered_free(b->undelivered[i]);
    b->n = b->n_all = 0;
}

int64_t round_next_ms(const struct rounds *b)
{
    if (round_has_verdict(b, true) || round_has_verdict(b, false))
        return 0;
    int64_t next = TAILQ_EMPTY(&b->asked) ? INT64_MAX : TAILQ_FIRST(&b->asked)->timeout_ms;
    for (int i = 0; i < b->n_all; i++) {
        int64_t expiry = undelivered_next_ms(b->undelivered[i]);
        next = expiry < next ? expiry : next;
    }
    return next;
}
