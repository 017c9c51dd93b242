/*
 * Asks every master (peek.lua) and waits for all of them, or for the time-out: what each master
 * shows is part of the answer. A master in quarantine that shows no hold has not answered: it may
 * have forgotten.
 */
#include "lock/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/finish.h"
#include "lock/grave.h"
#include "lock/hold.h"
#include "lock/lock_info.h"
#include "lock/lock_share.h"
#include "lock/queue.h"
#include "lock/release.h"
#include "stats/stats.h"

enum { FORCED_TURN = 256 };

/* {n, then for each of the first holds: ...}, as in peek.lua */
enum {
    PEEK_PTTL,
    PEEK_OP,
    PEEK_OWNER,
    PEEK_TOKEN,
    PEEK_COUNT,
    PEEK_OF,
    PEEK_NUMBER,
    PEEK_PART,
    PEEK_FIELDS
};

/* Reads a part as lock_part_text() writes it; false: it is none. */
static bool parse_part(const struct master_value *v, struct lock_part *out)
{
    unsigned limit, slot;
    char text[32];
    *out = (struct lock_part){LOCK_EXCLUSIVE, 0, 0};
    if (v->len == 1 && v->text[0] == '-')
        return true;
    out->kind = LOCK_SHARED;
    if (v->len > 2 && memcmp(v->text, "r:", 2) == 0)
        return true;
    snprintf(text, sizeof text, "%.*s", (int)(v->len < 31 ? v->len : 31), v->text);
    if (sscanf(text, "s:%u:%u", &limit, &slot) != 2 || limit > LOCK_PERMITS_MAX || slot >= limit)
        return false;
    *out = (struct lock_part){LOCK_LIMIT, (uint16_t)limit, (uint16_t)slot};
    return true;
}

static void on_peek(struct round *round, int i, const struct master_answer *answer, int64_t now_ms)
{
    struct lock_request *r = round->arg;
    struct lock_info_master *m = &r->info->masters[i];
    const struct master_value *v = answer->nested, *end = v + answer->n_nested;
    m->answered = v != end || !round_may_forget(round, i, now_ms);
    if (!m->answered)
        round_set_aside(round, i);
    if (v == end)
        return;
    m->plain_ms = v->integer < 0 ? -v->integer : 0;
    m->n_holds = v->integer < 0 ? 0 : v->integer;
    for (v++; end - v >= PEEK_FIELDS && m->n_seen < LOCK_INFO_HOLDERS; v += PEEK_FIELDS) {
        size_t owner_len = v[PEEK_OWNER].len; /* of commands of Redis: cut */
        struct lock_info_seen seen = {.pttl_ms = v[PEEK_PTTL].integer,
                                      .token = v[PEEK_TOKEN].integer,
                                      .count = v[PEEK_COUNT].integer,
                                      .version = {v[PEEK_OF].integer, v[PEEK_NUMBER].integer}};
        if (!v[PEEK_OP].is_text || !v[PEEK_OWNER].is_text || !v[PEEK_PART].is_text ||
            owner_len == 0 || !parse_part(&v[PEEK_PART], &seen.part))
            continue;
        seen.op = util_memdup(v[PEEK_OP].text, v[PEEK_OP].len);
        seen.owner =
            owner_get(v[PEEK_OWNER].text, owner_len < LOCK_OWNER_MAX ? owner_len : LOCK_OWNER_MAX);
        lock_info_saw(r->info, i, &seen);
    }
}

/* Asks for the holds of this owner; NULL: of the first ones, whoever has them. */
static void peek(struct broker *b, struct lock_request *r, const struct owner *owner, round_fn fn,
                 int64_t now_ms)
{
    lock_info_free(r->info);
    r->info = lock_info_new(b->rounds.n);
    struct args *it = args_begin(r->lock->name, r->lock->name_len);
    args_text(it, owner ? owner->text : "", owner ? owner->len : 0);
    struct round *round = round_ask(&b->rounds, SCRIPT_PEEK, it, true, fn, r, now_ms);
    round->on_vote = on_peek;
}

/* Calls `fn` for each hold that a majority of masters has. */
static void each_hold(const struct lock_info *info,
                      void (*fn)(void *, const struct lock_info_seen *), void *arg)
{
    for (int i = 0; i < info->n_masters; i++) {
        const struct lock_info_master *m = &info->masters[i];
        for (int j = 0; j < m->n_seen; j++) {
            if (lock_info_is_first(info, i, j) && lock_info_is_held(info, m->seen[j].op))
                fn(arg, lock_info_latest(info, m->seen[j].op));
        }
    }
}

static void not_known_by_masters(struct lock_request *r, struct round *round, int64_t now_ms)
{
    char *why = round_no_quorum(round, now_ms);
    finish_error(r->broker, r, "%s", why);
    free(why);
}

/* ---- HOLDS ---- */

/* Tells whether `op` is the operation of this hold, and the hold within its promise. */
static bool is_own_operation(const struct lock_request *r, const struct hold *h, const char *op,
                             int64_t now_ms)
{
    char text[BROKER_OP_MAX + 1];
    if (!h || !hold_is_valid(h, now_ms))
        return false;
    broker_op_text(r->broker, h->op, text);
    return strcmp(op, text) == 0;
}

struct holds_sum {
    struct lock_request *request;
    int64_t now_ms;
};

/* Adds an entry count of the owner that is not of this broker's own operations. */
static void sum_elsewhere(void *arg, const struct lock_info_seen *seen)
{
    const struct holds_sum *sum = arg;
    struct lock_request *r = sum->request;
    if (owner_same(seen->owner, r->owner) &&
        !is_own_operation(r, lock_hold_of(r->lock, r->owner), seen->op, sum->now_ms) &&
        !is_own_operation(r, lock_share_of(r->lock, r->owner), seen->op, sum->now_ms))
        r->count += seen->count;
}

/* Adds what the broker has itself and the masters do not deny. Of its own operation it knows the
 * count better than they do: one that no majority confirmed is taken back, but may still stand
 * there. */
static void count_local(struct lock_request *r, struct hold *h, int64_t now_ms)
{
    char op[BROKER_OP_MAX + 1];
    if (!h || !hold_is_valid(h, now_ms))
        return;
    broker_op_text(r->broker, h->op, op);
    if (lock_info_may_hold(r->info, op))
        r->count += h->count;
    else
        hold_check(r->broker, h, now_ms);
}

/* True when the owner may hold the lock although no majority shows it: others have not answered. */
static bool owner_may_hold(const struct lock_info *info, const struct owner *owner)
{
    if (lock_info_may_hold(info, ""))
        return true;
    for (int i = 0; i < info->n_masters; i++) {
        const struct lock_info_master *m = &info->masters[i];
        for (int j = 0; j < m->n_seen; j++) {
            if (owner_same(m->seen[j].owner, owner) && lock_info_may_hold(info, m->seen[j].op))
                return true;
        }
    }
    return false;
}

static void on_holds(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct hold *h = lock_hold_of(r->lock, r->owner), *share = lock_share_of(r->lock, r->owner);
    round_forget(round);
    if (quorum_state(&round->quorum) != QUORUM_WON) {
        not_known_by_masters(r, round, now_ms);
        return;
    }
    each_hold(r->info, sum_elsewhere, &(struct holds_sum){r, now_ms});
    count_local(r, h, now_ms);
    if (share != h)
        count_local(r, share, now_ms);
    if (r->count == 0 && owner_may_hold(r->info, r->owner))
        not_known_by_masters(r, round, now_ms);
    else
        finish_count(r->broker, r, r->count);
}

static int64_t count_of(const struct hold *h, int64_t now_ms)
{
    return h && hold_is_valid(h, now_ms) ? h->count : 0;
}

/* May the owner have the lock in another way elsewhere? A reader may have it alone there, and who
 * has taken that over from there may have left his share. */
static bool may_have_more(const struct hold *h, const struct hold *share)
{
    return h == share ? h->part.kind == LOCK_SHARED : !share && h->inherits;
}

void inspect_holds(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    const struct hold *h = lock_hold_of(r->lock, r->owner);
    const struct hold *share = lock_share_of(r->lock, r->owner);
    if (h && !may_have_more(h, share) && hold_is_fresh(b, h, r, now_ms) &&
        (!share || hold_is_fresh(b, share, r, now_ms)))
        finish_count(b, r, count_of(h, now_ms) + (share != h ? count_of(share, now_ms) : 0));
    else
        peek(b, r, r->owner, on_holds, now_ms);
}

/* ---- LOCKINFO ---- */

static void list_holder(struct lock_info *info, const struct lock_info_holder *holder,
                        struct lock_part part)
{
    if (!info->held || part.kind == LOCK_EXCLUSIVE)
        info->part = part;
    info->held = true;
    info->n_holders++;
    if (info->n_listed == LOCK_INFO_HOLDERS)
        return;
    info->listed[info->n_listed] = *holder;
    owner_ref(info->listed[info->n_listed++].owner);
}

static void list_local(struct lock_info *info, const struct lock *l, int64_t now_ms)
{
    const struct hold *h;
    LIST_FOREACH(h, &l->holds, of_lock) { /* of thousands only those that are listed */
        if (info->n_listed == LOCK_INFO_HOLDERS)
            break;
        struct lock_info_holder holder = {
            .owner = h->owner,
            .here = true,
            .watched = h->watched,
            .session_id = h->session ? h->session->id : 0,
            .token = h->token,
            .count = h->count,
            .left_ms = h->deadline_ms > now_ms ? h->deadline_ms - now_ms : 0,
            .since_ms = now_ms - h->since_ms,
        };
        list_holder(info, &holder, h->part);
    }
    info->n_holders = share_count(l) + (lock_exclusive(l) ? 1 : 0);
}

/* For add_elsewhere(). The holds of clients of this broker have been listed by list_local(). */
struct others {
    struct lock_info *info;
    const struct lock *lock;
};

static void add_elsewhere(void *arg, const struct lock_info_seen *seen)
{
    struct others *others = arg;
    const struct hold *alone = lock_exclusive(others->lock);
    bool is_here = seen->part.kind == LOCK_EXCLUSIVE
                       ? alone && owner_same(alone->owner, seen->owner)
                       : lock_share_of(others->lock, seen->owner) != NULL;
    struct lock_info_holder holder = {
        .owner = seen->owner, .token = seen->token, .count = seen->count, .left_ms = seen->pttl_ms};
    if (!is_here)
        list_holder(others->info, &holder, seen->part);
}

static void add_waiters(struct lock_info *info, const struct lock *l, int64_t now_ms)
{
    const struct lock_request *r = l->queue ? TAILQ_FIRST(&l->queue->waiters) : NULL;
    info->n_waiters = l->queue ? l->queue->n_waiters : 0;
    for (; r && info->n_waiters_listed < LOCK_INFO_WAITERS; r = TAILQ_NEXT(r, queued)) {
        struct lock_info_waiter *w = &info->waiters[info->n_waiters_listed++];
        w->owner = owner_ref(r->owner);
        w->session_id = r->base.session ? r->base.session->id : 0;
        w->waited_ms = now_ms - r->base.arrived_us / 1000;
        w->want = r->want;
        w->fair = r->fair;
    }
}

static const char *why_not(const struct round *round, int i, int64_t now_ms)
{
    if (round->rounds->closed) /* the master may be gone */
        return "this broker is going down";
    return round->votes[i].open ? "timeout" : master_reason(round_master(round, i), now_ms);
}

/* Lists it if a majority of masters shows its plain key. */
static void list_plain(struct lock_info *info)
{
    int64_t least_ms = INT64_MAX;
    int n = 0;
    for (int i = 0; i < info->n_masters; i++) {
        int64_t ms = info->masters[i].plain_ms;
        n += ms > 0;
        least_ms = ms > 0 && ms < least_ms ? ms : least_ms;
    }
    if (info->held || n < quorum_need(info->n_masters))
        return;
    struct owner *owner = owner_get(LOCK_INFO_PLAIN, sizeof LOCK_INFO_PLAIN - 1);
    struct lock_info_holder holder = {.owner = owner, .count = 1, .left_ms = least_ms};
    list_holder(info, &holder, (struct lock_part){LOCK_EXCLUSIVE, 0, 0});
    owner_unref(owner);
}

static void on_info_peeked(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct lock_info *info = r->info;
    struct others others = {info, r->lock};
    int64_t most = 0;
    round_forget(round);
    for (int i = 0; i < info->n_masters; i++) {
        struct lock_info_master *m = &info->masters[i];
        char text[128];
        snprintf(text, sizeof text, "no answer: %s", m->answered ? "" : why_not(round, i, now_ms));
        m->text = m->answered ? lock_info_describe(m) : util_strdup(text);
        most = m->n_holds > most ? m->n_holds : most;
    }
    info->name = util_memdup(r->lock->name, r->lock->name_len);
    info->name_len = r->lock->name_len;
    list_local(info, r->lock, now_ms);
    each_hold(info, add_elsewhere, &others);
    list_plain(info);
    if (info->held && most > info->n_holders) /* more than a master lists */
        info->n_holders = most;
    add_waiters(info, r->lock, now_ms);
    finish_as(r->broker, r, RESULT_INFO);
}

void inspect_info(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    peek(b, r, NULL, on_info_peeked, now_ms);
}

/* ---- FORCEUNLOCK ---- */

static void on_force_peeked(struct round *round, void *arg, int64_t now_ms);

/* True when a master has more holds than it shows at a time. */
static bool has_more(const struct lock_info *info)
{
    for (int i = 0; i < info->n_masters; i++) {
        if (info->masters[i].n_holds > info->masters[i].n_seen && info->masters[i].n_seen > 0)
            return true;
    }
    return false;
}

/* Returns the next hold from `h` on that FORCEUNLOCK is to end; NULL: none. Those who got the lock
 * by it keep it. */
static struct hold *next_to_force(const struct lock_request *r, struct hold *h)
{
    while (h && h->token >= r->force.below)
        h = LIST_NEXT(h, of_lock);
    return h;
}

static void forced(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct lock *l = r->lock;
    if (r->force.failed)
        finish_error(b, r, "NOQUORUM too few masters have confirmed that '%s' is free", l->name);
    else if (has_more(r->info) || next_to_force(r, lock_first_hold(l)))
        peek(b, r, NULL, on_force_peeked, now_ms);
    else
        finish_count(b, r, r->count);
    work_lock(&b->work, l, WORK_RUN);
}

static void on_forced(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    r->force.failed |= quorum_state(&round->quorum) != QUORUM_WON;
    if (--r->force.pending == 0)
        forced(r->broker, r, now_ms);
}

/* Ends holds of clients of this broker, as many as one turn has time for; the others follow when
 * the masters have answered again. */
static void lose_local(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    struct hold *h = next_to_force(r, lock_first_hold(r->lock)), *next;
    for (int n = 0; n < FORCED_TURN && h; n++, h = next) {
        next = next_to_force(r, LIST_NEXT(h, of_lock));
        stats.releases_forced++;
        r->count = 1;
        h->deadline_ms = now_ms; /* by order, whatever its owner was told */
        if (h->state == HOLD_LOST)
            hold_over(b, h, now_ms);
        else
            hold_lose(b, h, LOST_FORCED, true, now_ms);
    }
}

static void on_force_peeked(struct round *round, void *arg, int64_t now_ms)
{
    struct lock_request *r = arg;
    struct broker *b = r->broker;
    round_forget(round);
    if (quorum_state(&round->quorum) != QUORUM_WON) {
        not_known_by_masters(r, round, now_ms);
        return;
    }
    if (!r->force.below)
        r->force.below = rounds_floor(&b->rounds, now_ms);
    lose_local(b, r, now_ms);
    r->force.peeked = r->goes_on = true;
    work_ready(&b->work, r); /* when those have been passed on */
}

/* Releases what the masters have shown. */
static void release_seen(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    r->force.peeked = false;
    r->force.pending = 1; /* ours, until all have been started */
    for (int i = 0; i < r->info->n_masters; i++) {
        const struct lock_info_master *m = &r->info->masters[i];
        for (int j = 0; j < m->n_seen; j++) {
            const struct lock_info_seen *seen = &m->seen[j];
            struct release_what hold = {seen->op, seen->part, seen->owner, b->conf.max_lease_ms,
                                        RELEASE_FOREIGN};
            if (!lock_info_is_first(r->info, i, j))
                continue;
            r->count = 1;
            r->force.pending++;
            grave_dig(b, r->lock, seen->part, seen->owner,
                      lock_info_highest_token(r->info, seen->op), now_ms);
            release_hold(b, r->lock, &hold, NULL, on_forced, r, now_ms);
        }
    }
    if (--r->force.pending == 0)
        forced(b, r, now_ms);
}

void inspect_force(struct broker *b, struct lock_request *r, int64_t now_ms)
{
    if (r->force.peeked)
        release_seen(b, r, now_ms);
    else
        peek(b, r, NULL, on_force_peeked, now_ms);
}
