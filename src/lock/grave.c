/* A list in the order of their ends, bounded: where it is full the oldest one is forgotten, and
 * until its time would have been over this broker does not say that it remembers everything. */
#include "lock/grave.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "redis/args.h"

enum { GRAVES_MAX = 10000 };

struct grave {
    STAILQ_ENTRY(grave) link;
    struct owner *owner; /* one reference: of a reader's share */
    struct lock_part part;
    int64_t token, until_ms;
    size_t name_len;
    char name[];
};

void grave_init(struct broker *b)
{
    STAILQ_INIT(&b->graves);
}

static void free_first(struct broker *b)
{
    struct grave *g = STAILQ_FIRST(&b->graves);
    STAILQ_REMOVE_HEAD(&b->graves, link);
    b->n_graves--;
    owner_unref(g->owner);
    free(g);
}

void grave_fini(struct broker *b)
{
    while (!STAILQ_EMPTY(&b->graves))
        free_first(b);
}

static void forget_old(struct broker *b, int64_t now_ms)
{
    const struct grave *g;
    while ((g = STAILQ_FIRST(&b->graves)) && (g->until_ms <= now_ms || b->n_graves > GRAVES_MAX)) {
        if (g->until_ms > now_ms && g->until_ms > b->graves_lost_until_ms)
            b->graves_lost_until_ms = g->until_ms;
        free_first(b);
    }
}

/* The item of replant.lua that has no operation; to master i, if it is of the name's group. */
static void send_grave(struct broker *b, int i, const struct grave *g, int64_t now_ms)
{
    char counter[TOKEN_COUNTER_MAX + 1];
    int first = rounds_first(&b->rounds, g->name, g->name_len);
    if (rounds_group(&b->rounds, i) != first)
        return;
    struct args *it = args_begin(g->name, g->name_len);
    args_str(it, "-");
    args_str(it, "-");
    args_int(it, g->token);
    args_int(it, 0);
    args_int(it, 0);
    args_int(it, 0);
    rounds_counter(&b->rounds, g->name, g->name_len, counter);
    args_str(it, counter);
    args_int(it, 0);
    broker_add_part(it, g->part, g->owner);
    round_owe(&b->rounds, i - first, SCRIPT_REPLANT, it, g->until_ms - now_ms, now_ms);
}

void grave_dig(struct broker *b, const struct lock *l, struct lock_part part,
               const struct owner *owner, int64_t token, int64_t now_ms)
{
    struct grave *g = util_alloc(sizeof *g + l->name_len);
    g->part = part;
    g->owner = owner_get(owner->text, owner->len);
    g->token = token;
    g->until_ms = now_ms + quorum_lease_ms(b->conf.max_lease_ms, b->conf.drift_ppm);
    g->name_len = l->name_len;
    memcpy(g->name, l->name, l->name_len);
    STAILQ_INSERT_TAIL(&b->graves, g, link);
    b->n_graves++;
    for (int i = 0; b->n_quarantined > 0 && i < b->rounds.n_all; i++) {
        if (b->replants[i].quarantined)
            send_grave(b, i, g, now_ms);
    }
    forget_old(b, now_ms);
}

void grave_tell(struct broker *b, int i, int64_t now_ms)
{
    const struct grave *g;
    forget_old(b, now_ms);
    STAILQ_FOREACH(g, &b->graves, link)
    send_grave(b, i, g, now_ms);
}

bool grave_has_all(const struct broker *b, int64_t now_ms)
{
    return now_ms >= b->graves_lost_until_ms;
}
