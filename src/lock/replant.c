/* What this broker knows of the lives of its masters, and what follows from a new one: see
 * replant.h. */
#include "lock/replant.h"

#include <string.h>

#include "lock/broker_state.h"

static bool is_joined(enum master_state state)
{
    return state == MASTER_ACTIVE || state == MASTER_QUARANTINE;
}

static void begin_life(struct broker *b, int i, const char *life)
{
    struct broker_replant *r = &b->replants[i];
    round_new_life(&b->rounds, i);
    strcpy(r->life.text, life);
}

static void look(struct broker *b, int i, int64_t now_ms)
{
    const struct master_status *s = master_status(b->rounds.masters[i], now_ms);
    struct broker_replant *r = &b->replants[i];
    b->n_quarantined -= r->quarantined;
    r->quarantined = s->state == MASTER_QUARANTINE;
    b->n_quarantined += r->quarantined;
    if (is_joined(s->state) && strcmp(s->life, r->life.text) != 0)
        begin_life(b, i, s->life);
}

void replant_on_state(struct broker *b, int i, int64_t now_ms)
{
    look(b, i, now_ms);
}

/* A server that loses its data in quarantine goes on in another life and in the same state. */
void replant_turn(struct broker *b, int64_t now_ms)
{
    for (int i = 0; b->n_quarantined > 0 && i < b->rounds.n; i++) {
        if (b->replants[i].quarantined)
            look(b, i, now_ms);
    }
}

int64_t replant_next_ms(const struct broker *b)
{
    (void)b;
    return INT64_MAX;
}

bool replant_is_done(const struct broker *b, int i, int64_t now_ms)
{
    (void)b, (void)i, (void)now_ms;
    return false;
}

int64_t replant_left(const struct broker *b, int i)
{
    (void)b, (void)i;
    return 0;
}
