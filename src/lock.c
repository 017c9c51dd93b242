/*
 * The data of a lock and its moves. Invariants: a lock has a queue only while somebody waits or
 * something is under way; a hold in its list is HELD, JEOPARDY or LOST; ENDED ones are in no list.
 */
#include "lock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "util.h"

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

struct lock_queue *lock_queue_get(struct lock *l)
{
    if (!l->queue) {
        l->queue = pool_get(sizeof *l->queue);
        TAILQ_INIT(&l->queue->waiters);
        TAILQ_INIT(&l->queue->deferred);
    }
    return l->queue;
}

bool lock_is_idle(const struct lock *l)
{
    return LIST_EMPTY(&l->holds) && !l->queue && l->refs == 0;
}

struct hold *lock_hold_of(const struct lock *l, const struct owner *owner)
{
    struct hold *h;
    LIST_FOREACH(h, &l->holds, of_lock)
    {
        if (owner_same(h->owner, owner))
            return h;
    }
    return NULL;
}

struct hold *lock_first_hold(const struct lock *l)
{
    return LIST_FIRST(&l->holds);
}

static void info_free(struct lock_info *info)
{
    if (!info)
        return;
    owner_unref(info->owner);
    for (int i = 0; i < info->n_listed; i++)
        owner_unref(info->listed[i].owner);
    for (int i = 0; i < info->n_masters; i++) {
        free(info->masters[i].text);
        free(info->masters[i].op);
        free(info->masters[i].owner);
    }
    free(info);
}

void lock_request_free(struct lock_request *r)
{
    assert(!r->waiting && !r->deferred && !r->lock && !r->hold);
    owner_unref(r->owner);
    info_free(r->info);
    free(r->text);
    pool_put(r, sizeof *r);
}
