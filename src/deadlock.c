/*
 * The walk: the lock -> who holds it -> for what his connection waits -> who holds that ... until
 * it comes back to the one who asks, or ends with somebody who does not wait.
 */
#include "deadlock.h"

#include <inttypes.h>

#include "buf.h"
#include "lock.h"

/* Longer chains exist only where every link waits; no circle is this long in practice. */
enum { CHAIN_MAX = 64 };

/* The lock that this connection waits for; NULL: it does not wait. */
static const struct lock *waits_for(const struct session *s)
{
    const struct request *r;
    TAILQ_FOREACH(r, &s->requests, link)
    {
        const struct lock_request *waiter = (const struct lock_request *)r;
        if (r->parked)
            return waiter->wait_until_ms ? waiter->lock : NULL;
    }
    return NULL;
}

/* The connection that alone can release it; NULL: there is none, or there are several. */
static const struct session *sole_holder(const struct lock *l)
{
    const struct hold *h = lock_first_hold(l);
    return h && h->state != HOLD_LOST && !h->owner->shared ? h->session : NULL;
}

bool deadlock_find(const struct lock_request *r, const struct lock *wanted, struct buf *words)
{
    struct buf chain = {0};
    const struct lock *l = wanted;
    bool found = false;
    for (int i = 0; l && i < CHAIN_MAX; i++) {
        const struct session *s = sole_holder(l);
        if (s == r->base.session && s) {
            found = true;
            break;
        }
        if (!s)
            break;
        const struct lock *next = waits_for(s);
        if (next)
            buf_printf(&chain, "%s'%s' is held by connection %" PRIu64 ", which waits for '%s'",
                       i ? "; " : "", l->name, s->id, next->name);
        l = next;
    }
    if (found && buf_len(&chain) == 0)
        buf_printf(words, "'%s' is held by this very connection, under another owner",
                   wanted->name);
    else if (found)
        buf_printf(words, "%.*s, which this connection holds", (int)buf_len(&chain),
                   buf_head(&chain));
    buf_fini(&chain);
    return found;
}
