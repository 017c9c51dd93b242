/* Spots are made for the first call about a lock; a lock with one is not idle (lock_is_idle). */
#include "dropin/spot.h"

#include "base/pool.h"
#include "lock/broker_state.h"
#include "lock/locktab.h"

struct spot *spot_find(struct broker *b, const struct locktab_name *name)
{
    const struct lock *l = locktab_find_name(&b->locks, name);
    return l ? l->spot : NULL;
}

struct spot *spot_get(struct broker *b, const struct locktab_name *name)
{
    struct lock *l = locktab_get_name(&b->locks, name);
    if (l->spot)
        return l->spot;
    struct spot *s = l->spot = pool_get(sizeof *s);
    s->lock = l;
    TAILQ_INIT(&s->seats);
    return s;
}

void spot_leave(struct broker *b, struct spot *s)
{
    if (s->is_known || !TAILQ_EMPTY(&s->seats))
        return;
    s->lock->spot = NULL;
    work_look(&b->work, s->lock);
    truth_fini(&s->truth);
    pool_put(s, sizeof *s);
}
