/*
 * The data of a lock and its moves. Invariants: a lock has a queue only while somebody waits or
 * something is under way; a hold in its list is HELD, JEOPARDY or LOST; ENDED ones are in no list.
 */
#include "lock/lock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/util.h"
#include "lock/lock_info.h"
#include "lock/lock_share.h"

#define TO(s) (1u << HOLD_##s)
const struct sm_state hold_states[HOLD_STATES] = {
    [HOLD_HELD] = {"held", TO(JEOPARDY) | TO(LOST) | TO(ENDED)},
    [HOLD_JEOPARDY] = {"jeopardy", TO(HELD) | TO(LOST) | TO(ENDED)},
    [HOLD_LOST] = {"lost", TO(ENDED)},
    [HOLD_ENDED] = {"ended", 0},
};

static struct owner *owners; /* by text */

struct owner *owner_get(const char *text, size_t len)
{
    struct owner *o;
    unsigned hash = (unsigned)util_hash(text, len);
    assert(len > 0 && len <= LOCK_OWNER_MAX);
    HASH_FIND_BYHASHVALUE(hh, owners, text, len, hash, o);
    if (o)
        return owner_ref(o);
    o = pool_get(sizeof *o + len + 1);
    o->refs = 1;
    o->len = (uint16_t)len;
    memcpy(o->text, text, len);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, owners, o->text, len, hash, o);
    return o;
}

struct owner *owner_ref(struct owner *o)
{
    o->refs++;
    return o;
}

void owner_unref(struct owner *o)
{
    if (!o || --o->refs > 0)
        return;
    HASH_DEL(owners, o); /* NOLINT(clang-analyzer-core.NullDereference): it is in the table */
    pool_put(o, sizeof *o + o->len + 1);
}

void owner_used(struct owner *o, uint64_t session_id)
{
    if (!o->session_id)
        o->session_id = session_id;
    else if (o->session_id != session_id)
        o->shared = true;
}

bool lock_is_idle(const struct lock *l)
{
    return LIST_EMPTY(&l->holds) && !l->queue && !l->shares && !l->spot && l->refs == 0;
}

void lock_add_hold(struct lock *l, struct hold *h)
{
    struct hold *alone = lock_exclusive(l);
    if (h->part.kind != LOCK_EXCLUSIVE)
        share_add(l, h);
    if (alone && h->part.kind != LOCK_EXCLUSIVE)
        LIST_INSERT_AFTER(alone, h, of_lock);
    else
        LIST_INSERT_HEAD(&l->holds, h, of_lock);
}

void lock_remove_hold(struct lock *l, struct hold *h)
{
    LIST_REMOVE(h, of_lock);
    if (h->part.kind != LOCK_EXCLUSIVE)
        share_remove(l, h);
}

/* There may be a second exclusive one, lost, beside the first. */
struct hold *lock_hold_of(const struct lock *l, const struct owner *owner)
{
    struct hold *h;
    LIST_FOREACH(h, &l->holds, of_lock) {
        if (h->part.kind != LOCK_EXCLUSIVE)
            break;
        if (owner_same(h->owner, owner))
            return h;
    }
    return lock_share_of(l, owner);
}

/* ---- parts ---- */

size_t lock_part_text(struct lock_part part, const struct owner *owner, char out[LOCK_PART_MAX + 1])
{
    char *p;
    switch ((enum lock_kind)part.kind) {
    case LOCK_SHARED:
        memcpy(out, "r:", 2);
        memcpy(out + 2, owner->text, owner->len + 1u);
        return 2 + (size_t)owner->len;
    case LOCK_LIMIT:
        p = stpcpy(util_put_digits(stpcpy(out, "s:"), part.limit), ":");
        p = util_put_digits(p, part.slot);
        *p = '\0';
        return (size_t)(p - out);
    default:
        strcpy(out, "-");
        return 1;
    }
}

bool lock_kinds_mix(struct lock_part a, struct lock_part b)
{
    return (a.kind == LOCK_LIMIT) == (b.kind == LOCK_LIMIT) && a.limit == b.limit;
}

const char *lock_kind_name(uint8_t kind)
{
    static const char *const names[LOCK_KINDS] = {
        [LOCK_EXCLUSIVE] = "exclusive", [LOCK_SHARED] = "shared", [LOCK_LIMIT] = "limit"};
    return names[kind];
}

const char *lock_part_words(struct lock_part part, char *out, size_t size)
{
    static const char *const words[LOCK_KINDS] = {
        [LOCK_EXCLUSIVE] = "an exclusive lock", [LOCK_SHARED] = "a shared lock"};
    if (part.kind != LOCK_LIMIT)
        return words[part.kind];
    snprintf(out, size, "a lock with %u permit%s", (unsigned)part.limit,
             part.limit == 1 ? "" : "s");
    return out;
}

/* ---- IDs: a few for each hold; they end with it ---- */

struct hold_ids {
    int n, next; /* next: the oldest one, when all places are taken */
    struct owner *v[HOLD_IDS_MAX];
};

void hold_add_id(struct hold *h, struct owner *id)
{
    if (!id || hold_has_id(h, id))
        return;
    if (!h->ids)
        h->ids = util_alloc(sizeof *h->ids);
    struct hold_ids *ids = h->ids;
    if (ids->n < HOLD_IDS_MAX) {
        ids->v[ids->n++] = owner_ref(id);
        return;
    }
    owner_unref(ids->v[ids->next]);
    ids->v[ids->next] = owner_ref(id);
    ids->next = (ids->next + 1) % HOLD_IDS_MAX;
}

static int find_hold_id(const struct hold *h, const struct owner *id)
{
    for (int i = 0; id && h->ids && i < h->ids->n; i++) {
        if (owner_same(h->ids->v[i], id))
            return i;
    }
    return -1;
}

bool hold_has_id(const struct hold *h, const struct owner *id)
{
    return find_hold_id(h, id) >= 0;
}

void hold_drop_id(struct hold *h, const struct owner *id)
{
    int i = find_hold_id(h, id);
    if (i < 0)
        return;
    struct hold_ids *ids = h->ids;
    owner_unref(ids->v[i]);
    ids->n--;
    memmove(&ids->v[i], &ids->v[i + 1], (size_t)(ids->n - i) * sizeof ids->v[0]);
    ids->next = 0; /* which one is the oldest counts for little */
}

void hold_drop_ids(struct hold *h)
{
    if (!h->ids)
        return;
    for (int i = 0; i < h->ids->n; i++)
        owner_unref(h->ids->v[i]);
    free(h->ids);
    h->ids = NULL;
}

void lock_request_free(struct lock_request *r)
{
    assert(r->place == PLACE_NOWHERE && !r->lock);
    hold_ref_clear(&r->hold);
    owner_unref(r->owner);
    owner_unref(r->id);
    if (r->info)
        lock_info_free(r->info);
    free(r->text);
    pool_put(r, sizeof *r);
}
