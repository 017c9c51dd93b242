/*
 * The IDs of the LOCKs that a hold counts: a few for each, so that a client that repeats one whose
 * reply it has lost does not enter twice. They end with the hold.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/lock.h"

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
