/* What others may know of a broker. Changes nothing. */
#include "lock/view.h"

#include "lock/broker_state.h"
#include "lock/lock_share.h"
#include "lock/queue.h"

/* ---- levels ---- */

struct view_levels view_levels(const struct broker *b)
{
    return (struct view_levels){
        .n_exclusive = b->n_held[LOCK_EXCLUSIVE],
        .n_shared = b->n_held[LOCK_SHARED],
        .n_limited = b->n_held[LOCK_LIMIT],
        .n_holds = b->n_holds,
        .n_drop_in = b->n_drop_in,
        .n_relied_on = b->n_renewed,
        .n_jeopardy = b->n_jeopardy,
        .n_waiters = b->n_waiters,
        .n_names = b->locks.count - b->n_remembered,
        .memory_bytes =
            (int64_t)(b->locks.count * sizeof(struct lock) + b->n_holds * sizeof(struct hold) +
                      b->n_waiters * sizeof(struct lock_request)),
    };
}

bool view_is_paused(const struct broker *b)
{
    return b->paused;
}

bool view_is_draining(const struct broker *b)
{
    return b->draining;
}

bool view_is_asking(const struct broker *b)
{
    return !TAILQ_EMPTY(&b->rounds.asked) || b->sweeps;
}

bool view_is_done(const struct broker *b, int64_t now_ms)
{
    uint32_t in_flight = 0;

    for (int i = 0; i < b->rounds.n_all; i++)
        in_flight += master_status(b->rounds.masters[i], now_ms)->in_flight;
    return TAILQ_EMPTY(&b->rounds.asked) && TAILQ_EMPTY(&b->rounds.decided[false]) &&
           LIST_EMPTY(&b->leaving) && TAILQ_EMPTY(&b->leavers) && in_flight == 0;
}

int64_t view_min_lease_ms(const struct broker *b)
{
    return quorum_lease_ms(1, b->conf.drift_ppm);
}

int64_t view_max_lease_ms(const struct broker *b)
{
    return b->conf.max_lease_ms;
}

/* ---- locks ---- */

/* The others are only asked about. */
static bool is_used(const struct lock *l)
{
    return !LIST_EMPTY(&l->holds) || l->queue;
}

bool view_has_lock(struct broker *b, const char *name, size_t len)
{
    const struct lock *l = locktab_find(&b->locks, name, len);

    return l && is_used(l);
}

uint32_t view_n_waiters(struct broker *b, const char *name, size_t len)
{
    const struct lock *l = locktab_find(&b->locks, name, len);

    return l && l->queue ? l->queue->n_waiters : 0;
}

bool view_is_held_by(struct broker *b, const char *name, size_t len, const struct session *s,
                     const char *owner, size_t owner_len)
{
    const struct lock *l = locktab_find(&b->locks, name, len);

    if (!l || owner_len > LOCK_OWNER_MAX)
        return false;
    struct owner *o = owner ? owner_get(owner, owner_len) : owner_ref(s->owner);
    const struct hold *h = lock_hold_of(l, o), *share = lock_share_of(l, o);
    owner_unref(o);
    return (h && h->session == s) || (share && share->session == s);
}

struct scan {
    view_lock_fn each;
    void *arg;
};

static void scan_one(void *arg, struct lock *l)
{
    const struct scan *scan = arg;

    if (is_used(l))
        scan->each(scan->arg, l->name, l->name_len);
}

uint64_t view_scan(struct broker *b, uint64_t cursor, view_lock_fn each, void *arg)
{
    struct scan scan = {each, arg};

    return locktab_scan(&b->locks, cursor, scan_one, &scan);
}

/* ---- holds of a connection ---- */

void view_holds(const struct session *s, int64_t now_ms, view_hold_fn each, void *arg)
{
    const struct hold *h;

    LIST_FOREACH(h, &s->holds, of_session) {
        const struct view_hold seen = {
            .name = h->lock->name,
            .name_len = h->lock->name_len,
            .held_ms = now_ms - h->since_ms,
            .left_ms = h->deadline_ms > now_ms ? h->deadline_ms - now_ms : 0,
            .n_waiters = h->lock->queue ? h->lock->queue->n_waiters : 0,
            .n_holders = h->part.kind == LOCK_EXCLUSIVE ? 1 : share_count(h->lock),
            .in_jeopardy = h->state == HOLD_JEOPARDY,
        };
        if (!each(arg, &seen))
            return;
    }
}

/* ---- the masters ---- */

int view_n_masters(const struct broker *b)
{
    return b->rounds.n_all;
}

const char *view_master_name(const struct broker *b, int i)
{
    return master_name(b->rounds.masters[i]);
}

struct view_master view_master(const struct broker *b, int i, int64_t now_ms)
{
    struct master *m = b->rounds.masters[i];
    const struct master_status *status = master_status(m, now_ms);

    return (struct view_master){
        .status = status,
        .votes = master_state_votes(status->state) && !status->stalled,
        .since_ms = now_ms - status->since_ms,
        .clock_offset_ms = rounds_clock_offset_ms(&b->rounds, status),
    };
}

const char *view_master_sentinels(const struct broker *b, int i, int64_t now_ms)
{
    return master_sentinels(b->rounds.masters[i], now_ms);
}

const char *view_master_reason(const struct broker *b, int i, int64_t now_ms)
{
    return master_reason(b->rounds.masters[i], now_ms);
}

int view_n_voters(const struct broker *b, int64_t now_ms)
{
    int n = 0;

    for (int i = 0; i < b->rounds.n_all; i++)
        n += view_master(b, i, now_ms).votes;
    return n;
}

bool view_has_quorum(struct broker *b, int64_t now_ms)
{
    return rounds_has_quorum(&b->rounds, now_ms);
}

const char *view_veto(const struct broker *b)
{
    return rounds_veto(&b->rounds);
}
