/*
 * How the votes of one round are read: what a refusal says of whoever is in the way, and what a
 * majority says of the hold that a take-over goes on with. Arithmetic over votes: nothing is sent
 * here, nothing ends, and only claim_inherit() writes to the claim.
 */
#include <assert.h>

#include "lock/claim_private.h"
#include "lock/renew.h"
#include "redis/round.h"

/* ---- refusals ---- */

/* n permits; 0: one exclusive lock; -1: readers. */
static struct lock_part in_use(int64_t n)
{
    struct lock_part part = {LOCK_LIMIT, (uint16_t)n, 0};
    if (n <= 0 || n > LOCK_PERMITS_MAX)
        part = (struct lock_part){n < 0 ? LOCK_SHARED : LOCK_EXCLUSIVE, 0, 0};
    return part;
}

static void count_refusal(struct claim_tally *t, const struct vote *v)
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
        t->in_use = in_use(v->value);
}

struct claim_tally claim_count(const struct round *r)
{
    struct claim_tally t = {.other = -1};
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        if (v->open || v->state == VOTE_UNKNOWN) {
            t.unsure++;
        } else if (v->state == VOTE_ANSWERED) {
            t.taken += v->code == 1;
            count_refusal(&t, v);
        }
    }
    return t;
}

int64_t claim_largest_token(const struct round *r)
{
    int64_t largest = 0;
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        if (v->state == VOTE_ANSWERED && v->code == 2 && v->value > largest)
            largest = v->value;
    }
    return largest;
}

/* ---- take-over ---- */

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
 * majority has confirmed, or an attempt after that. */
static void inherit_hold(struct claim *c, const struct round *r)
{
    const struct vote *last = NULL;
    c->end_ms = INT64_MAX;
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        if (!(r->quorum.yes >> i & 1))
            continue;
        if (!last || count_version_is_later(v->version, last->version))
            last = v;
    }
    assert(last); /* a majority has said yes */
    if (last->left_ms)
        c->end_ms = c->sent_ms + last->left_ms;
    c->count = last->extra;
    c->pttl_ms = renew_lease_ms(c->sent_ms, majority_pttl_ms(r), c->end_ms);
}

/* Which part the owner had, as a majority says; false: they do not agree. */
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

bool claim_inherit(struct claim *c, const struct round *r)
{
    inherit_hold(c, r);
    return c->count != 0 && take_part(c, r);
}
