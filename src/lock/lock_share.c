/*
 * Owners are found by a hash table of small entries, which only locks with shares pay for. A permit
 * may be asked for twice at the same time (share_ask_instead), so each has a count.
 *
 * Invariant: taken[i] is how many holds and claims there are for permit i.
 */
#include "lock/lock_share.h"

#include <assert.h>
#include <stdlib.h>

#include "base/util.h"

struct share {
    UT_hash_handle hh;
    const struct owner *owner; /* key */
    struct hold *hold;
};

struct shares {
    struct lock_part part; /* without its slot */
    uint32_t n_held, n_asked;
    struct share *by_owner;
    uint16_t taken[]; /* LOCK_LIMIT: one a permit */
};

static struct shares *get(struct lock *l, struct lock_part part)
{
    struct shares *s = l->shares;
    if (!s) {
        s = l->shares = util_alloc(sizeof *s + part.limit * sizeof s->taken[0]);
        s->part = part;
        s->part.slot = 0;
    }
    return s;
}

/* The count of this permit; NULL: it is none. A take-over may bring a share of another kind than
 * the one that is known here, which is then lost and will be found out. */
static uint16_t *taken(struct shares *s, struct lock_part part)
{
    bool is_one = part.kind == LOCK_LIMIT && part.limit == s->part.limit;
    return is_one ? &s->taken[part.slot] : NULL;
}

static void drop_if_unused(struct lock *l)
{
    if (l->shares->n_held > 0 || l->shares->n_asked > 0)
        return;
    free(l->shares);
    l->shares = NULL;
}

uint32_t share_count(const struct lock *l)
{
    return l->shares ? l->shares->n_held : 0;
}

bool share_kind(const struct lock *l, struct lock_part *part)
{
    if (l->shares)
        *part = l->shares->part;
    return l->shares != NULL;
}

static struct share *find_share(const struct lock *l, const struct owner *owner)
{
    struct share *found = NULL;
    if (l->shares)
        HASH_FIND_PTR(l->shares->by_owner, &owner, found);
    return found;
}

struct hold *lock_share_of(const struct lock *l, const struct owner *owner)
{
    const struct share *share = find_share(l, owner);
    return share ? share->hold : NULL;
}

/* A lost one may still be there when its owner has a new one: the new one counts. */
void share_add(struct lock *l, struct hold *h)
{
    struct shares *s = get(l, h->part);
    struct share *share = find_share(l, h->owner);
    if (!share) {
        share = util_alloc(sizeof *share);
        share->owner = h->owner;
        HASH_ADD_PTR(s->by_owner, owner, share);
    }
    share->hold = h;
    s->n_held++;
    if (taken(s, h->part))
        ++*taken(s, h->part);
}

void share_remove(struct lock *l, struct hold *h)
{
    struct shares *s = l->shares;
    struct share *share = find_share(l, h->owner);
    if (share && share->hold == h) {
        HASH_DEL(s->by_owner, share);
        free(share);
    }
    s->n_held--;
    if (taken(s, h->part))
        --*taken(s, h->part);
    drop_if_unused(l);
}

/* The first permit from `start` on that is not known to be taken; -1: there is none. */
static int find_permit(const struct shares *s, unsigned n, uint64_t start)
{
    for (unsigned i = 0; i < n; i++) {
        if (s->taken[(start + i) % n] == 0)
            return (int)((start + i) % n);
    }
    return -1;
}

bool share_is_free(const struct lock *l, struct lock_part part)
{
    return part.kind != LOCK_LIMIT || !l->shares || find_permit(l->shares, part.limit, 0) >= 0;
}

bool share_ask(struct lock *l, struct lock_part *part, uint64_t start)
{
    struct shares *s = get(l, *part);
    assert(s->part.kind == part->kind && s->part.limit == part->limit);
    if (part->kind == LOCK_LIMIT) {
        int slot = find_permit(s, part->limit, start);
        if (slot < 0) {
            drop_if_unused(l);
            return false;
        }
        part->slot = (uint16_t)slot;
        s->taken[slot]++;
    }
    s->n_asked++;
    return true;
}

void share_ask_instead(struct lock *l, struct lock_part *part, uint16_t slot)
{
    assert(slot < part->limit);
    l->shares->taken[part->slot]--;
    l->shares->taken[slot]++;
    part->slot = slot;
}

void share_asked(struct lock *l, struct lock_part part)
{
    if (part.kind == LOCK_LIMIT)
        l->shares->taken[part.slot]--;
    l->shares->n_asked--;
    drop_if_unused(l);
}
