/*
 * What may be known of one lock: who of the clients of this broker have it, and who wait for it, in
 * groups; and for which locks most wait.
 *
 * What a look costs is bounded, however many hold a lock or wait, and for however many locks.
 */
#include "lock/view.h"

#include <string.h>

#include "lock/broker_state.h"
#include "lock/lock_share.h"
#include "lock/queue.h"

/* Comparisons, of a queue or a client with another. */
enum { GROUPS_SEEN = 16, OF_ONE_LOCK = 4000, OF_ALL_LOCKS = 40000, OF_QUEUES = 100000 };

/* ---- groups ---- */

struct grouping {
    struct view_group seen[GROUPS_SEEN]; /* who comes when all are taken is in none */
    int n;
    int left; /* comparisons */
};

static const char *called(const struct session *s)
{
    return !s ? NULL : s->name ? s->name : s->lib_name;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns false when enough has been looked at. */
static bool group(struct grouping *g, const struct session *s, uint8_t kind)
{
    const char *client = called(s);
    int i = 0;

    while (i < g->n && (g->seen[i].kind != kind || !is_same_text(g->seen[i].client, client)))
        i++;
    if (i == g->n && g->n < GROUPS_SEEN)
        g->seen[g->n++] = (struct view_group){.client = client, .kind = kind};
    if (i < g->n)
        g->seen[i].n++;
    g->left -= i + 1;
    return g->left > 0;
}

/* Writes the largest; returns how many. */
static int largest(struct grouping *g, struct view_group out[VIEW_GROUPS])
{
    int n = 0;

    for (; n < VIEW_GROUPS && n < g->n; n++) {
        int best = n;
        for (int i = n + 1; i < g->n; i++)
            if (g->seen[i].n > g->seen[best].n)
                best = i;
        out[n] = g->seen[best];
        g->seen[best] = g->seen[n];
    }
    return n;
}

/* ---- one lock ---- */

/* Each returns how many of its comparisons are left. */
static int see_holders(const struct lock *l, int64_t now_ms, int most, struct view_lock *out)
{
    struct grouping g = {.n = 0, .left = most};
    const struct hold *h, *oldest = NULL;

    LIST_FOREACH(h, &l->holds, of_lock) {
        if (!oldest || h->since_ms < oldest->since_ms)
            oldest = h;
        if (!group(&g, h->session, h->part.kind))
            break;
    }
    out->n_holders = share_count(l) + (lock_exclusive(l) != NULL);
    out->n_holder_groups = largest(&g, out->holders);
    if (!oldest)
        return g.left;
    out->kind = oldest->part.kind;
    out->limit = oldest->part.limit;
    out->held_ms = now_ms - oldest->since_ms;
    out->left_ms = oldest->deadline_ms > now_ms ? oldest->deadline_ms - now_ms : 0;
    return g.left;
}

static int see_waiters(const struct lock_queue *q, int64_t now_ms, int most, struct view_lock *out)
{
    struct grouping g = {.n = 0, .left = most};
    const struct lock_request *r = TAILQ_FIRST(&q->waiters);

    out->n_waiters = q->n_waiters;
    out->waited_ms = r ? now_ms - r->base.arrived_us / 1000 : 0;
    while (r && group(&g, r->base.session, r->want.kind))
        r = TAILQ_NEXT(r, queued);
    out->n_waiter_groups = largest(&g, out->waiters);
    return g.left;
}

/* At most so many comparisons; returns how many there were. */
static int see(const struct lock *l, int64_t now_ms, int most, struct view_lock *out)
{
    int half = most / 2;

    *out = (struct view_lock){.name = l->name, .name_len = l->name_len};
    int left = see_holders(l, now_ms, half, out);
    left += l->queue ? see_waiters(l->queue, now_ms, half, out) : half;
    return 2 * half - left;
}

bool view_lock(struct broker *b, const char *name, size_t len, int64_t now_ms,
               struct view_lock *out)
{
    const struct lock *l = locktab_find(&b->locks, name, len);

    if (!l || (LIST_EMPTY(&l->holds) && !l->queue))
        return false;
    see(l, now_ms, OF_ONE_LOCK, out);
    return true;
}

/* ---- the most contended ---- */

/* More wait there, or as many, and longer. */
static bool is_before(const struct lock_queue *a, const struct lock_queue *b)
{
    if (a->n_waiters != b->n_waiters)
        return a->n_waiters > b->n_waiters;
    return TAILQ_FIRST(&a->waiters)->base.arrived_us < TAILQ_FIRST(&b->waiters)->base.arrived_us;
}

/* Adds a queue in its place; the last one may fall out. Returns how many others were looked at. */
static int insert(const struct lock_queue **v, int *n, int max, const struct lock_queue *q)
{
    int i;

    if (*n > 0 && *n == max && q->n_waiters <= v[*n - 1]->n_waiters)
        return 1; /* its age is not looked at */
    if (*n < max)
        (*n)++;
    for (i = *n - 1; i > 0 && v[i - 1] && is_before(q, v[i - 1]); i--)
        v[i] = v[i - 1];
    v[i] = q;
    return *n - i;
}

int view_contended(const struct broker *b, int64_t now_ms, struct view_lock *out, int max,
                   int *steps)
{
    const struct lock_queue *v[VIEW_CONTENDED_MAX] = {NULL}, *q;
    int n = 0, looked_at = 0;

    LIST_FOREACH(q, &b->waited, waited) {
        looked_at += TAILQ_EMPTY(&q->waiters)
                         ? 1
                         : insert(v, &n, max < VIEW_CONTENDED_MAX ? max : VIEW_CONTENDED_MAX, q);
        if (looked_at >= OF_QUEUES)
            break;
    }
    for (int i = 0; i < n; i++)
        looked_at += see(TAILQ_FIRST(&v[i]->waiters)->lock, now_ms, OF_ALL_LOCKS / n, &out[i]);
    *steps = looked_at;
    return n;
}
