/*
 * The lists of what is to be done next. Invariants: a request is in a list here exactly while its
 * place says so; a kind's bit is set exactly while its list is not empty; a lock is in `locks`
 * exactly while its `todo` is not 0.
 */
#include "lock/work.h"

#include <assert.h>

void work_init(struct work *w)
{
    w->kinds = 0;
    TAILQ_INIT(&w->finished);
    TAILQ_INIT(&w->ready);
    STAILQ_INIT(&w->ended);
    STAILQ_INIT(&w->locks);
}

static void put_request(struct work *w, enum work_kind kind, struct lock_requests *list,
                        struct lock_request *r, enum lock_place place)
{
    assert(r->place == PLACE_NOWHERE);
    r->place = (uint8_t)place;
    TAILQ_INSERT_TAIL(list, r, queued);
    w->kinds |= 1U << kind;
}

static void note_empty(struct work *w, enum work_kind kind, bool is_empty)
{
    w->kinds &= ~((unsigned)is_empty << kind);
}

static struct lock_request *take_request(struct work *w, enum work_kind kind,
                                         struct lock_requests *list)
{
    struct lock_request *r = TAILQ_FIRST(list);
    TAILQ_REMOVE(list, r, queued);
    r->place = PLACE_NOWHERE;
    note_empty(w, kind, TAILQ_EMPTY(list));
    return r;
}

void work_ready(struct work *w, struct lock_request *r)
{
    put_request(w, WORK_READY, &w->ready, r, PLACE_READY);
}

void work_finished(struct work *w, struct lock_request *r)
{
    put_request(w, WORK_FINISHED, &w->finished, r, PLACE_FINISHED);
}

void work_ended(struct work *w, struct hold *h)
{
    STAILQ_INSERT_TAIL(&w->ended, h, ended);
    w->kinds |= 1U << WORK_ENDED;
}

void work_lock(struct work *w, struct lock *l, unsigned todo)
{
    if (!l->todo)
        STAILQ_INSERT_TAIL(&w->locks, l, work);
    w->kinds |= 1U << WORK_LOCK;
    l->todo |= (uint8_t)todo;
}

struct lock_request *work_take_finished(struct work *w)
{
    return take_request(w, WORK_FINISHED, &w->finished);
}

struct lock_request *work_take_ready(struct work *w)
{
    return take_request(w, WORK_READY, &w->ready);
}

struct hold *work_take_ended(struct work *w)
{
    struct hold *h = STAILQ_FIRST(&w->ended);
    STAILQ_REMOVE_HEAD(&w->ended, ended);
    note_empty(w, WORK_ENDED, STAILQ_EMPTY(&w->ended));
    return h;
}

struct lock *work_take_lock(struct work *w, unsigned *todo)
{
    struct lock *l = STAILQ_FIRST(&w->locks);
    STAILQ_REMOVE_HEAD(&w->locks, work);
    note_empty(w, WORK_LOCK, STAILQ_EMPTY(&w->locks));
    *todo = l->todo;
    l->todo = 0;
    return l;
}

void work_unref(struct work *w, struct lock *l)
{
    assert(l->refs > 0);
    if (--l->refs == 0)
        work_lock(w, l, WORK_LOOK);
}
