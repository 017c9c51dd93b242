/*
 * A search in depth: what has been done so far and what stands under the names is one point of it;
 * no point is searched twice. It is given up when there are too many of them.
 */
#include "order.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STALE_MS = 1200, SLOW_MS = 20, SEEN = 1 << 19, POINTS_MAX = SEEN / 2 };

/* Who has a name: a client, or 0. */
struct was {
    int owner, count;
    int64_t sure_ms, gone_ms; /* its time is over somewhere in between */
};
struct place {
    struct was now, before;
    int64_t doubtful; /* 1 + the op of unknown outcome that has made it of `before`; 0: none */
};
struct point {
    struct place names[ORDER_NAMES];
};

static const struct order *judged;
static uint64_t done[ORDER_OPS / 64];
static uint64_t seen[SEEN];
static int n_seen, deepest, deepest_stuck;

static bool is_done(int i)
{
    return done[i / 64] >> (i % 64) & 1;
}

static void set_done(int i, bool is)
{
    done[i / 64] &= ~(UINT64_C(1) << (i % 64));
    done[i / 64] |= (uint64_t)is << (i % 64);
}

static uint64_t hash_of(const struct point *at)
{
    uint64_t h = 1469598103934665603u;
    uint64_t words[sizeof *at / 8];
    memcpy(words, at, sizeof words);
    for (size_t i = 0; i < sizeof words / 8; i++)
        h = (h ^ words[i] ^ h >> 31) * 1099511628211u;
    for (int i = 0; i < ORDER_OPS / 64; i++)
        h = (h ^ done[i] ^ h >> 31) * 1099511628211u;
    return h ? h : 1;
}

/* Notes that it has been here; false: it had. */
static bool note_point(const struct point *at)
{
    uint64_t h = hash_of(at), i = (h ^ h >> 29) % SEEN;
    for (; seen[i]; i = (i + 1) % SEEN) {
        if (seen[i] == h)
            return false;
    }
    if (++n_seen <= POINTS_MAX)
        seen[i] = h;
    return true;
}

static bool is_too_wide(void)
{
    return n_seen > POINTS_MAX;
}

/* ---- what one Redis would do ---- */

static void write_hold(const struct order_op *op, struct was *w, int count)
{
    *w = (struct was){op->client, count, op->sure_ms, op->gone_ms};
}

static bool is_native(const struct was *w)
{
    return w->count < 0;
}

static int run_take(const struct order_op *op, struct was *w)
{
    if (w->owner)
        return 0;
    write_hold(op, w, 0);
    return 1;
}

static int run_end(const struct order_op *op, struct was *w)
{
    bool mine = w->owner == op->client;
    if (mine)
        *w = (struct was){0};
    return mine;
}

static int run_extend(const struct order_op *op, struct was *w)
{
    bool mine = w->owner == op->client;
    if (mine)
        write_hold(op, w, 0);
    return mine;
}

static int run_enter(const struct order_op *op, struct was *w)
{
    if (is_native(w))
        return ORDER_WRONGTYPE;
    if (w->owner && w->owner != op->client)
        return -1;
    write_hold(op, w, w->count + 1);
    return w->count;
}

static int run_leave(const struct order_op *op, struct was *w)
{
    if (is_native(w))
        return ORDER_WRONGTYPE;
    if (w->owner != op->client)
        return -1;
    if (w->count > 1)
        write_hold(op, w, w->count - 1);
    else
        *w = (struct was){0};
    return w->count;
}

/* How often a native hold is entered history.c knows. */
static int run_lock(const struct order_op *op, struct was *w)
{
    if (w->owner && w->owner != op->client)
        return 0;
    write_hold(op, w, -1);
    return 1;
}

static int run_unlock(const struct order_op *op, struct was *w)
{
    if (w->owner != op->client)
        return -1;
    if (op->outcome == ORDER_KNOWN && op->result == 0)
        return 0;
    *w = (struct was){0};
    return 1;
}

static int run_take2(const struct order_op *op, struct place *names)
{
    if (names[0].now.owner || names[1].now.owner)
        return 0;
    write_hold(op, &names[0].now, 0);
    write_hold(op, &names[1].now, 0);
    return 1;
}

static int run_end2(const struct order_op *op, struct place *names)
{
    int first = run_end(op, &names[0].now);
    return first + 2 * run_end(op, &names[1].now);
}

static int run(const struct order_op *op, struct point *at)
{
    struct was *w = &at->names[op->name].now;
    switch (op->verb) {
    case ORDER_TAKE:
        return run_take(op, w);
    case ORDER_GET:
        return w->owner;
    case ORDER_END:
        return run_end(op, w);
    case ORDER_EXTEND:
        return run_extend(op, w);
    case ORDER_TAKE2:
        return run_take2(op, at->names);
    case ORDER_GET2:
        return at->names[0].now.owner + 16 * at->names[1].now.owner;
    case ORDER_END2:
        return run_end2(op, at->names);
    case ORDER_ENTER:
        return run_enter(op, w);
    case ORDER_LEAVE:
        return run_leave(op, w);
    case ORDER_LOCK:
        return run_lock(op, w);
    case ORDER_UNLOCK:
        return run_unlock(op, w);
    case ORDER_FORCE:
        *w = (struct was){0};
        return 0;
    }
    return 0;
}

/* ---- one step ---- */

bool order_is_pair(const struct order_op *op)
{
    return op->verb == ORDER_TAKE2 || op->verb == ORDER_GET2 || op->verb == ORDER_END2;
}

bool order_only_looks(const struct order_op *op)
{
    return op->verb == ORDER_GET || op->verb == ORDER_GET2;
}

bool order_ends(const struct order_op *op)
{
    return op->verb == ORDER_END || op->verb == ORDER_END2 || op->verb == ORDER_LEAVE ||
           op->verb == ORDER_UNLOCK || op->verb == ORDER_FORCE;
}

static bool uses(const struct order_op *op, int name)
{
    return order_is_pair(op) || op->name == name;
}

static bool shares_name(const struct order_op *a, const struct order_op *b)
{
    bool shares = false;
    for (int k = 0; k < ORDER_NAMES; k++)
        shares = shares || (uses(a, k) && uses(b, k));
    return shares;
}

static bool is_refused_try(const struct order_op *op)
{
    bool takes = op->verb == ORDER_TAKE || op->verb == ORDER_TAKE2;
    return (takes && op->result == 0) || (op->verb == ORDER_ENTER && op->result == -1);
}

/* On a minority: what has failed, or was refused by masters that were split or slow. */
static bool leaves_something(const struct order_op *op)
{
    bool is_slow = op->end_ms - op->begin_ms >= SLOW_MS;
    return op->outcome != ORDER_KNOWN || (is_refused_try(op) && is_slow);
}

/* Was somebody else's request under way, may it have left something on a minority, or was a hold
 * nearly over? Then the masters may be split, and what is split counts as somebody else's. */
static bool may_be_split(const struct order_op *op, const struct point *at)
{
    for (int k = 0; k < ORDER_NAMES; k++) {
        const struct was *w = &at->names[k].now;
        if (uses(op, k) && w->owner && w->sure_ms <= op->end_ms)
            return true;
    }
    for (int i = 0; i < judged->n; i++) {
        const struct order_op *its = &judged->ops[i];
        int64_t gone_ms = leaves_something(its) ? its->left_ms : its->end_ms;
        if (its != op && !order_only_looks(its) && shares_name(its, op) &&
            its->begin_ms <= op->end_ms && gone_ms >= op->begin_ms)
            return true;
    }
    return false;
}

/* Its broker takes a hold for over a moment before the masters do. */
static bool is_over_for_broker(const struct order_op *op, const struct point *at)
{
    const struct was *w = &at->names[op->name].now;
    return op->verb == ORDER_UNLOCK && op->result < 0 && w->sure_ms <= op->end_ms;
}

/* May it be answered so, although it would be answered otherwise? Nothing is done then. */
static bool may_be_refused(const struct order_op *op, const struct point *at)
{
    return is_over_for_broker(op, at) || (is_refused_try(op) && may_be_split(op, at));
}

/* What may be put back later: a hold that an op of unknown outcome has written, or an end of
 * several. One that ends a single hold goes on instead (safety R22). */
static void note_change(struct place *p, const struct was *before, int i)
{
    const struct order_op *op = &judged->ops[i];
    bool is_unknown = op->outcome == ORDER_UNKNOWN && (p->now.owner || op->verb == ORDER_END2);
    p->before = is_unknown ? *before : (struct was){0};
    p->doubtful = is_unknown ? i + 1 : 0;
}

static bool search(struct point at);

static bool search_behind(int i, const struct point *after)
{
    set_done(i, true);
    bool ok = search(*after);
    set_done(i, false);
    return ok;
}

/* Does it: what it makes of `at`. */
enum effect { NO_FIT, NO_EFFECT, CHANGES };
static enum effect perform(int i, const struct point *at, struct point *after)
{
    const struct order_op *op = &judged->ops[i];
    enum effect effect = NO_EFFECT;
    *after = *at;
    if (run(op, after) != op->result && op->outcome == ORDER_KNOWN) {
        *after = *at;
        return may_be_refused(op, at) ? NO_EFFECT : NO_FIT;
    }
    for (int k = 0; k < ORDER_NAMES; k++) {
        if (memcmp(&after->names[k].now, &at->names[k].now, sizeof at->names[k].now) == 0)
            continue;
        note_change(&after->names[k], &at->names[k].now, i);
        effect = CHANGES;
    }
    return effect;
}

static bool try_op(int i, const struct point *at)
{
    struct point after;
    enum effect effect = perform(i, at, &after), least = NO_EFFECT;
    if (judged->ops[i].outcome == ORDER_UNKNOWN)
        least = CHANGES;
    return effect >= least && search_behind(i, &after);
}

/* ---- the search ---- */

/* What the requests that are done, and those that are not, say of the time. */
struct moment {
    int64_t last_begin_ms;  /* of those done: it is later than that */
    int64_t first_end_ms;   /* of those not done: it is earlier than that */
    int first;              /* the one of these */
    int64_t last_chance_ms; /* of the one of UNKNOWN outcome that can have its effect no later */
    int n_done;
};

static int64_t earliest_ms(const struct order_op *op)
{
    bool is_from_memory = op->verb == ORDER_TAKE && op->result == 0;
    return is_from_memory ? op->begin_ms - STALE_MS : op->begin_ms;
}

static struct moment see_moment(void)
{
    struct moment m = {.last_begin_ms = INT64_MIN, .first_end_ms = INT64_MAX, .first = -1};
    for (int i = 0; i < judged->n; i++) {
        const struct order_op *op = &judged->ops[i];
        if (is_done(i)) {
            m.n_done++;
            if (earliest_ms(op) > m.last_begin_ms)
                m.last_begin_ms = earliest_ms(op);
        } else if (op->outcome == ORDER_KNOWN && op->end_ms < m.first_end_ms) {
            m.first_end_ms = op->end_ms;
            m.first = i;
        }
    }
    m.last_chance_ms = INT64_MAX;
    for (int i = 0; i < judged->n; i++) {
        const struct order_op *op = &judged->ops[i];
        if (op->outcome == ORDER_UNKNOWN && !is_done(i) && op->latest_ms >= m.last_begin_ms &&
            op->latest_ms < m.last_chance_ms)
            m.last_chance_ms = op->latest_ms;
    }
    return m;
}

static bool is_possible_now(int i, const struct moment *m)
{
    return !is_done(i) && earliest_ms(&judged->ops[i]) <= m->first_end_ms;
}

/* Returns one that fits here and changes nothing: wherever else it fits, it does so here as well.
 * -1: there is none. */
static int find_look(const struct point *at, const struct moment *m)
{
    int64_t most_ms = m->last_begin_ms > m->last_chance_ms ? m->last_begin_ms : m->last_chance_ms;
    for (int i = 0; i < judged->n; i++) {
        const struct order_op *op = &judged->ops[i];
        struct point after;
        bool lasts =
            op->outcome == ORDER_KNOWN && is_possible_now(i, m) && earliest_ms(op) <= most_ms;
        for (int k = 0; lasts && k < ORDER_NAMES; k++)
            lasts =
                !uses(op, k) || !at->names[k].now.owner || op->begin_ms <= at->names[k].now.gone_ms;
        if (lasts && perform(i, at, &after) == NO_EFFECT)
            return i;
    }
    return -1;
}

/* The names whose time is over when this one is done: each subset that is possible is tried. */
static bool try_over(int i, const struct point *at, const struct moment *m)
{
    const struct order_op *op = &judged->ops[i];
    int64_t end_ms = op->outcome == ORDER_KNOWN ? op->end_ms : m->first_end_ms;
    for (int over = 0; over < 1 << ORDER_NAMES; over++) {
        struct point before = *at;
        bool can = true;
        for (int k = 0; k < ORDER_NAMES; k++) {
            const struct was *w = &at->names[k].now;
            bool is_over = over >> k & 1, has = uses(op, k) && w->owner;
            can =
                can && (is_over ? has && end_ms >= w->sure_ms : !has || op->begin_ms <= w->gone_ms);
            if (is_over)
                before.names[k] = (struct place){.doubtful = 0};
        }
        if (can && try_op(i, &before))
            return true;
    }
    return false;
}

static bool try_ops(enum order_outcome outcome, const struct point *at, const struct moment *m)
{
    for (int i = 0; i < judged->n; i++) {
        const struct order_op *op = &judged->ops[i];
        bool is_late = outcome == ORDER_UNKNOWN && op->latest_ms < m->last_begin_ms;
        if (op->outcome == outcome && is_possible_now(i, m) && !is_late && try_over(i, at, m))
            return true;
    }
    return false;
}

/* What is in doubt is put back. It may be seen again: doc/rules.md, limits. */
static bool try_put_back(const struct point *at)
{
    for (int k = 0; k < ORDER_NAMES; k++) {
        struct point back = *at;
        int i = (int)at->names[k].doubtful - 1;
        if (i < 0)
            continue;
        back.names[k] = (struct place){.now = at->names[k].before};
        bool was_done = is_done(i);
        set_done(i, false);
        bool ok = search(back);
        set_done(i, was_done);
        if (ok)
            return true;
    }
    return false;
}

static bool search(struct point at)
{
    if (!note_point(&at))
        return false;
    struct moment m = see_moment();
    if (is_too_wide() || m.first < 0)
        return true;
    if (m.n_done > deepest) {
        deepest = m.n_done;
        deepest_stuck = m.first;
    }
    int look = find_look(&at, &m);
    if (look >= 0)
        return search_behind(look, &at);
    return try_ops(ORDER_KNOWN, &at, &m) || try_ops(ORDER_UNKNOWN, &at, &m) || try_put_back(&at);
}

enum order_end order_search(const struct order *o, int *stuck)
{
    struct point nothing;
    memset(&nothing, 0, sizeof nothing);
    memset(seen, 0, sizeof seen);
    memset(done, 0, sizeof done);
    n_seen = deepest = deepest_stuck = 0;
    judged = o;
    bool ok = search(nothing);
    *stuck = deepest_stuck;
    return !ok ? ORDER_NONE : is_too_wide() ? ORDER_TOO_WIDE : ORDER_FOUND;
}

void order_print(const struct order *o)
{
    static const char *const verbs[] = {"TAKE", "GET",   "END",   "EXTEND", "TAKE2",  "GET2",
                                        "END2", "ENTER", "LEAVE", "LOCK",   "UNLOCK", "FORCE"};
    for (int i = 0; i < o->n; i++) {
        const struct order_op *op = &o->ops[i];
        fprintf(stderr,
                "%3d %6" PRId64 " to %6" PRId64 " client %d broker %d %-6s of %d lease %" PRId64
                " -> %s\n",
                i, op->begin_ms, op->end_ms, op->client, op->broker, verbs[op->verb], op->name,
                op->lease_ms, op->text);
    }
}
