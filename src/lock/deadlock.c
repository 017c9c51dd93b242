/*
 * The walk: the lock -> who holds it -> for what his connection waits -> who holds that ... until
 * it comes back to the one who asks, or ends with somebody who does not wait.
 */
#include "lock/deadlock.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "lock/lock.h"
#include "session/user.h"

/* Holds that are looked at: longer searches find nothing in practice, and cost time. */
enum { STEPS_MAX = 64 };

/* Returns the request of this connection that waits for a lock; NULL: it does not wait. */
static const struct lock_request *waiter_of(const struct session *s)
{
    const struct request *r;
    TAILQ_FOREACH(r, &s->requests, link) {
        const struct lock_request *waiter = (const struct lock_request *)r;
        if (r->parked)
            return waiter->wait_until_ms ? waiter : NULL;
    }
    return NULL;
}

/* True when nobody can release this hold while its connection waits with this request. One with a
 * tag leaves the connection free for other owners. */
static bool is_stuck(const struct hold *h, const struct lock_request *waiter)
{
    bool unnamed = h->owner == h->session->owner && !h->session->owner_named;
    return (unnamed && !waiter->async) || owner_same(h->owner, waiter->owner);
}

/* Appends the name of a lock, or "another lock" when this user may not use it: the connections in a
 * circle may be of other users. */
static void put_name(struct buf *words, const struct lock *l, const struct user *u)
{
    char shown[UTF8_SHOWN_MAX];
    size_t n;

    if (u && !user_may_use(u, l->name, l->name_len)) {
        buf_printf(words, "another lock");
        return;
    }
    buf_append(words, "'", 1);
    for (size_t i = 0; i < l->name_len; buf_append(words, shown, n))
        i += utf8_show(l->name + i, l->name_len - i, shown, &n);
    buf_append(words, "'", 1);
}

/* A search. Words that a way has appended are taken back when it leads nowhere. */
struct walk {
    const struct session *start;
    const struct lock_request *asks;
    struct buf words;
    int steps;
};

static bool leads_back(struct walk *, const struct lock *);

/* True when this request of the holder waits for what leads back. */
static bool waits_for_start(struct walk *w, const struct lock *l, const struct lock_request *waiter)
{
    const struct session *s = waiter->base.session;
    const struct lock *next = waiter->lock;
    size_t before = buf_len(&w->words);
    if (before)
        buf_printf(&w->words, "; ");
    put_name(&w->words, l, w->start->user);
    buf_printf(&w->words, " is held by connection %" PRIu64 ", which waits for ", s->id);
    put_name(&w->words, next, w->start->user);
    if (leads_back(w, next))
        return true;
    w->words.end -= buf_len(&w->words) - before;
    return false;
}

/* True when this hold keeps its lock until `start` releases something. */
static bool holds_up(struct walk *w, const struct lock *l, const struct hold *h)
{
    const struct session *s = h->session;
    const struct lock_request *waiter;
    if (!s || !h->watched || h->state == HOLD_LOST || h->owner->shared)
        return false;
    if (s == w->start && is_stuck(h, w->asks))
        return true;
    waiter = s == w->start ? NULL : waiter_of(s);
    if (waiter && is_stuck(h, waiter) && waits_for_start(w, l, waiter))
        return true;
    LIST_FOREACH(waiter, &h->owner->waits, of_owner) {
        if (++w->steps > STEPS_MAX)
            return false;
        if (waiter->base.session == s && waiter->wait_until_ms && waits_for_start(w, l, waiter))
            return true;
    }
    return false;
}

/* True when a holder of this lock waits for `start`. Every holder has to release it, so one in the
 * circle is enough; of permits any one would do, and who has them all is not known here. */
static bool leads_back(struct walk *w, const struct lock *l)
{
    const struct hold *h;
    LIST_FOREACH(h, &l->holds, of_lock) {
        if (h->part.kind == LOCK_LIMIT || ++w->steps > STEPS_MAX)
            return false;
        if (holds_up(w, l, h))
            return true;
    }
    return false;
}

bool deadlock_find(const struct lock_request *r, const struct lock *wanted, struct buf *words)
{
    struct walk w = {.start = r->base.session, .asks = r};
    const struct hold *h;
    bool found = false;
    LIST_FOREACH(h, &wanted->holds, of_lock) {
        if (found || !w.start || h->part.kind == LOCK_LIMIT || ++w.steps > STEPS_MAX)
            break;
        found =
            !owner_same(h->owner, r->owner) && holds_up(&w, wanted, h); /* not by its own share */
    }
    if (found && buf_len(&w.words) == 0)
        buf_printf(words, "'%s' is held by this very connection, under another owner",
                   wanted->name);
    else if (found)
        buf_printf(words, "%.*s, which this connection holds", (int)buf_len(&w.words),
                   buf_head(&w.words));
    buf_fini(&w.words);
    return found;
}
