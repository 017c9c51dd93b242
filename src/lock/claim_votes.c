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

/* What ACQUIRE_OTHER_KIND has with it. */
static struct lock_part in_use(int64_t n)
{
    if (n <= IN_USE_SHARED)
        return (struct lock_part){LOCK_SHARED, 0, 0};
    if (n == IN_USE_EXCLUSIVE || n > LOCK_PERMITS_MAX)
        return (struct lock_part){LOCK_EXCLUSIVE, 0, 0};
    return (struct lock_part){LOCK_LIMIT, (uint16_t)n, 0};
}

static void stands_for(struct claim_tally *t, int64_t ms)
{
    if (ms > t->pttl_ms)
        t->pttl_ms = ms;
}

/* A take-over has three of these codes. */
_Static_assert((int)TAKEOVER_TAKEN == ACQUIRE_TAKEN && (int)TAKEOVER_NOT_OWN == ACQUIRE_HELD &&
                   (int)TAKEOVER_GONE == ACQUIRE_GONE,
               "counted as those of acquire.lua");
static void count_code(struct claim_tally *t, const struct vote *v)
{
    switch ((enum acquire_code)v->code) {
    case ACQUIRE_TAKEN:
        t->taken++;
        break;
    case ACQUIRE_HELD:
        t->busy++;
        stands_for(t, v->value);
        break;
    case ACQUIRE_SAME_OWNER:
        t->same_owner++;
        stands_for(t, v->value);
        break;
    case ACQUIRE_FOREIGN:
    case ACQUIRE_ALL_NEEDED:
        t->busy++;
        break;
    case ACQUIRE_OTHER_PERMIT:
        t->other = v->value;
        break;
    case ACQUIRE_OTHER_KIND:
        t->other_kind++;
        t->in_use = in_use(v->value);
        break;
    case ACQUIRE_DEADLOCK:
        t->deadlock++;
        break;
    case ACQUIRE_GONE:
        break;
    }
}

struct claim_tally claim_count(const struct round *r)
{
    struct claim_tally t = {.other = -1};
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        if (v->open || v->state == VOTE_UNKNOWN) {
            t.unsure++;
        } else if (v->state == VOTE_ANSWERED) {
            count_code(&t, v);
        }
    }
    return t;
}

int64_t claim_largest_token(const struct round *r)
{
    int64_t largest = 0;
    for (int i = 0; i < r->quorum.n; i++) {
        const struct vote *v = &r->votes[i];
        if (v->state == VOTE_ANSWERED && v->code == COMMIT_LARGER && v->value > largest)
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

/* From enum share_code; false: there is no such part. */
static bool part_of_share(int32_t share, struct lock_part *out)
{
    *out = (struct lock_part){share == SHARE_READER ? LOCK_SHARED : LOCK_EXCLUSIVE, 0, 0};
    if (share < SHARE_PERMIT)
        return share == SHARE_WHOLE || share == SHARE_READER;
    *out = (struct lock_part){LOCK_LIMIT, (uint16_t)(share / SHARE_PERMIT),
                              (uint16_t)(share % SHARE_PERMIT)};
    return out->limit <= LOCK_PERMITS_MAX && out->slot < out->limit;
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
        return part_of_share(share, &c->part);
    }
    return false;
}

bool claim_inherit(struct claim *c, const struct round *r)
{
    inherit_hold(c, r);
    return c->count != 0 && take_part(c, r);
}
