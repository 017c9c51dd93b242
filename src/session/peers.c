/*
 * Which broker clients are sent to.
 *
 * Invariant: `named` is PEERS_SELF, or a peer that was up when that was last judged.
 */
#include "session/peers.h"

#include <string.h>

void peers_init(struct peers *p)
{
    *p = (struct peers){.named = PEERS_SELF};
}

bool peers_is_same(const struct peers_address *a, const struct peers_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

void peers_configure(struct peers *p, const struct peers_address *own,
                     const struct peers_address *others, int n)
{
    p->own = *own;
    p->n = 0;
    p->named = PEERS_SELF;
    for (int i = 0; i < n && p->n < PEERS_MAX; i++)
        if (!peers_is_same(own, &others[i]))
            p->v[p->n++] = (struct peer){.address = others[i]};
}

void peers_hear(struct peers *p, int i, enum peers_word word, int64_t now_ms)
{
    p->v[i].word = (uint8_t)word;
    p->v[i].heard_ms = now_ms;
    if (word != PEERS_GONE)
        p->v[i].spoke_ms = now_ms;
}

void peers_set_own(struct peers *p, enum peers_own state, int64_t now_ms)
{
    if (state == PEERS_LACKS_QUORUM && p->state != PEERS_LACKS_QUORUM)
        p->lacked_since_ms = now_ms;
    p->state = (uint8_t)state;
}

bool peers_is_well(const struct peers *p)
{
    return p->state == PEERS_GRANTS;
}

bool peers_speaks(const struct peers *p, int i, int64_t now_ms)
{
    const struct peer *one = &p->v[i];

    return one->word != PEERS_GONE && now_ms - one->heard_ms <= PEERS_WORD_MS;
}

static bool must_leave(const struct peers *p, int64_t now_ms)
{
    return p->state == PEERS_LEAVES ||
           (p->state == PEERS_LACKS_QUORUM && now_ms - p->lacked_since_ms > PEERS_PATIENCE_MS);
}

static int choose(const struct peers *p, int64_t now_ms)
{
    if (!must_leave(p, now_ms))
        return PEERS_SELF;
    if (p->named != PEERS_SELF && p->v[p->named].is_up) /* no detours among peers that are well */
        return p->named;
    for (int i = 0; i < p->n; i++)
        if (p->v[i].is_up)
            return i;
    return PEERS_SELF;
}

static const struct peers_address *address_of(const struct peers *p, int i)
{
    return i == PEERS_SELF ? &p->own : &p->v[i].address;
}

const struct peers_address *peers_named(const struct peers *p)
{
    const struct peers_address *a = address_of(p, p->named);

    return a->port ? a : NULL;
}

int peers_judge(struct peers *p, int64_t now_ms, struct peers_move out[PEERS_MOVES_MAX])
{
    bool has_fallen[PEERS_MAX];
    int old = p->named, n = 0;

    for (int i = 0; i < p->n; i++) {
        bool is_up = p->v[i].word == PEERS_WELL && peers_speaks(p, i, now_ms);
        has_fallen[i] = p->v[i].is_up && !is_up;
        p->v[i].is_up = is_up;
    }
    p->named = choose(p, now_ms);
    if (p->named != old)
        out[n++] = (struct peers_move){*address_of(p, old), *address_of(p, p->named)};
    for (int i = 0; i < p->n; i++)
        if (has_fallen[i] && i != old)
            out[n++] = (struct peers_move){p->v[i].address, *address_of(p, p->named)};
    return n;
}
