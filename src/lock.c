/*
 * The data of a lock and its moves. Invariants: a lock has a queue only while somebody waits or
 * something is under way; a hold in its list is HELD, JEOPARDY or LOST; ENDED ones are in no list.
 */
#include "lock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

#define TO(s) (1u << HOLD_##s)
const struct sm_state hold_states[HOLD_STATES] = {
    [HOLD_HELD] = {"held", TO(JEOPARDY) | TO(LOST) | TO(ENDED)},
    [HOLD_JEOPARDY] = {"jeopardy", TO(HELD) | TO(LOST) | TO(ENDED)},
    [HOLD_LOST] = {"lost", TO(ENDED)},
    [HOLD_ENDED] = {"ended", 0},
};

struct owner *owner_new(const char *text, size_t len)
{
    assert(len <= LOCK_OWNER_MAX);
    struct owner *o = util_alloc(sizeof *o + len + 1);
    o->refs = 1;
    o->len = (uint16_t)len;
    memcpy(o->text, text, len);
    return o;
}

struct owner *owner_ref(struct owner *o)
{
    o->refs++;
    return o;
}

void owner_unref(struct owner *o)
{
    if (o && --o->refs == 0)
        free(o);
}

bool owner_same(const struct owner *a, const struct owner *b)
{
    return a == b || (a->len == b->len && memcmp(a->text, b->text, a->len) == 0);
}

struct lock_queue *lock_queue_get(struct lock *l)
{
    if (!l->queue) {
        l->queue = util_alloc(sizeof *l->queue);
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
    free(r);
}
