/*
 * Who has entered a watched hold that belongs to another connection of his owner. The hold ends
 * with that one, whoever relies on it: so those who do are told (notify_lost).
 *
 * Invariants: a connection is a guest of a hold once at most, and never of one that belongs to it;
 * guests go with the hold or with their connection, whichever ends first.
 */
#include "base/pool.h"
#include "lock/hold.h"

static struct hold_guest *find_guest(const struct hold *h, uint64_t session_id)
{
    struct hold_guest *g;
    LIST_FOREACH(g, &h->guests, of_hold)
        if (g->session->id == session_id)
            return g;
    return NULL;
}

static void free_guest(struct hold_guest *g)
{
    LIST_REMOVE(g, of_hold);
    LIST_REMOVE(g, of_session);
    g->session->n_entered--;
    pool_put(g, sizeof *g);
}

void hold_entered(struct hold *h, const struct lock_request *r)
{
    struct session *s = r->base.session;
    if (!s || h->session == s || !h->watched)
        return;
    struct hold_guest *g = find_guest(h, s->id);
    if (!g) {
        g = pool_get(sizeof *g);
        g->hold = h;
        g->session = s;
        LIST_INSERT_HEAD(&h->guests, g, of_hold);
        LIST_INSERT_HEAD(&s->entered, g, of_session);
        s->n_entered++;
    }
    g->count++;
    g->tell |= r->tell;
}

void hold_left(struct hold *h, uint64_t session_id)
{
    struct hold_guest *g = find_guest(h, session_id);
    if (g && --g->count == 0)
        free_guest(g);
}

void hold_drop_guest(struct hold *h, const struct session *s)
{
    struct hold_guest *g = s ? find_guest(h, s->id) : NULL;
    if (g)
        free_guest(g);
}

void hold_drop_guests(struct hold *h)
{
    struct hold_guest *g;
    while ((g = LIST_FIRST(&h->guests)))
        free_guest(g);
}

void hold_guest_ends(struct session *s)
{
    struct hold_guest *g;
    while ((g = LIST_FIRST(&s->entered)))
        free_guest(g);
}
