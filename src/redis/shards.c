/* The words of the nodes of one Cluster. There are few of them: each is set beside all others. */
#include "redis/shards.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "redis/quorum.h"

#define BIT(i) (UINT64_C(1) << (i))

static int count_bits(uint64_t set)
{
    return __builtin_popcountll(set);
}

void shards_init(struct shards *s, int64_t timeout_ms)
{
    memset(s, 0, sizeof *s);
    s->timeout_ms = timeout_ms;
    for (int p = 0; p < PARTITIONS; p++)
        s->named[p].node = -1;
}

/* ---- words ---- */

static bool counts(const struct shards *s, int i, int64_t now_ms)
{
    return s->nodes[i].asked_ms > 0 && s->nodes[i].asked_ms + s->timeout_ms > now_ms;
}

/* Returns a majority of masters among those of `words`, each by what it knows itself; none: there
 * is no such. */
static uint64_t majority_of(const struct shards *s, uint64_t words)
{
    bool is_smaller = true;

    while (is_smaller && words) {
        is_smaller = false;
        for (int i = 0; i < NODES_MAX; i++) {
            uint64_t masters = s->nodes[i].masters;
            bool stays = (masters & BIT(i)) &&
                         count_bits(words & masters) >= quorum_need(count_bits(masters));
            if (!(words & BIT(i)) || stays)
                continue;
            words &= ~BIT(i);
            is_smaller = true;
        }
    }
    return words;
}

/* Returns those whose word names this keeper, asked for at since_ms or later. */
static uint64_t who_names(const struct shards *s, int partition, int keeper, int64_t since_ms)
{
    uint64_t words = 0;

    for (int i = 0; i < NODES_MAX; i++)
        if (s->nodes[i].asked_ms >= since_ms && s->nodes[i].keepers[partition] == keeper)
            words |= BIT(i);
    return words;
}

/* Returns until when a majority names this keeper, by the oldest word that it needs; 0: none
 * does. */
static int64_t kept_until_ms(const struct shards *s, int partition, int keeper, int64_t now_ms)
{
    int64_t since_ms = 0;

    for (int i = 0; i < NODES_MAX; i++) {
        int64_t asked_ms = s->nodes[i].asked_ms;
        if (counts(s, i, now_ms) && asked_ms > since_ms &&
            s->nodes[i].keepers[partition] == keeper &&
            majority_of(s, who_names(s, partition, keeper, asked_ms)))
            since_ms = asked_ms;
    }
    return since_ms ? since_ms + s->timeout_ms : 0;
}

static struct shards_named judge_partition(const struct shards *s, int partition, int64_t now_ms)
{
    struct shards_named named = {.node = -1};
    uint64_t seen = 0;

    for (int i = 0; i < NODES_MAX; i++) {
        int keeper = counts(s, i, now_ms) ? s->nodes[i].keepers[partition] : -1;
        if (keeper < 0 || (seen & BIT(keeper)))
            continue;
        seen |= BIT(keeper);
        int64_t until_ms = kept_until_ms(s, partition, keeper, now_ms);
        if (!until_ms)
            continue;
        if (named.node >= 0)
            return (struct shards_named){.node = -1};
        named = (struct shards_named){keeper, until_ms};
    }
    return named;
}

static uint64_t judge_shards(struct shards *s, int64_t now_ms)
{
    uint64_t changed = 0;

    for (int p = 0; p < partitions(); p++) {
        struct shards_named before = s->named[p];
        s->named[p] = judge_partition(s, p, now_ms);
        if (s->named[p].node != before.node)
            changed |= BIT(p);
    }
    return changed;
}

/* ---- nodes ---- */

static int find_node(const struct shards *s, const char *id)
{
    for (int i = 0; i < NODES_MAX; i++)
        if (strcmp(s->nodes[i].id, id) == 0)
            return i;
    return -1;
}

/* Forgets nodes of which nobody has told for so long that no word about them counts. */
static void forget_nodes(struct shards *s, int64_t now_ms)
{
    for (int i = 0; i < NODES_MAX; i++) {
        struct shards_node *n = &s->nodes[i];
        if (n->id[0] && n->told_ms + s->timeout_ms <= now_ms && !counts(s, i, now_ms))
            memset(n, 0, sizeof *n);
    }
}

/* Takes the address that `teller` tells, if it counts more than the one that is known. */
static void note_address(const struct shards *s, struct shards_node *n, const struct node *told,
                         const char *teller, int64_t now_ms)
{
    bool counts_more = !n->address.port || n->address_ms + s->timeout_ms <= now_ms ||
                       (strcmp(teller, n->id) == 0 && !told->is_guess);
    bool goes_on = strcmp(teller, n->teller) == 0 &&
                   (!told->is_guess || naming_is_same(&n->address, &told->address));

    if (!told->address.port || (!counts_more && !goes_on))
        return;
    n->address = told->address;
    memcpy(n->teller, teller, sizeof n->teller);
    n->address_ms = now_ms;
}

/* Notes a node and where it is; -1: there are too many. */
static int note_node(struct shards *s, const struct node *told, const char *teller, int64_t now_ms)
{
    int i = find_node(s, told->id);

    if (i < 0 && (i = find_node(s, "")) < 0)
        return -1;
    struct shards_node *n = &s->nodes[i];
    memcpy(n->id, told->id, sizeof n->id);
    n->told_ms = now_ms;
    note_address(s, n, told, teller, now_ms);
    return i;
}

uint64_t shards_take(struct shards *s, const struct nodes *said, int64_t asked_ms, int64_t now_ms)
{
    struct shards_node word = {.asked_ms = asked_ms};
    uint64_t changed = judge_shards(s, now_ms); /* before another node gets the place of one */
    int myself = -1;

    assert(asked_ms > 0 && said->myself >= 0);
    forget_nodes(s, now_ms);
    memset(word.keepers, -1, sizeof word.keepers);
    for (int k = 0; k < said->n; k++) {
        const struct node *told = &said->v[k];
        int i = note_node(s, told, said->v[said->myself].id, now_ms);
        if (k == said->myself)
            myself = i;
        if (i < 0) { /* it is a master that nobody can ask: then there is no majority without it */
            word.asked_ms = 0;
            continue;
        }
        word.masters |= told->has_slots ? BIT(i) : 0;
        for (int p = 0; p < partitions(); p++)
            if (told->partitions >> p & 1)
                word.keepers[p] = (int8_t)i;
    }
    if (myself >= 0) {
        struct shards_node *n = &s->nodes[myself];
        n->asked_ms = word.asked_ms;
        n->masters = word.masters;
        memcpy(n->keepers, word.keepers, sizeof n->keepers);
    }
    return changed | judge_shards(s, now_ms);
}

uint64_t shards_pass(struct shards *s, int64_t now_ms)
{
    return judge_shards(s, now_ms);
}

const struct shards_node *shards_keeper(const struct shards *s, int partition)
{
    int i = s->named[partition].node;

    return i < 0 ? NULL : &s->nodes[i];
}

size_t shards_words(const struct shards *s, char *out, size_t size)
{
    int count[NODES_MAX] = {0}, nobody = 0;
    size_t len = 0;

    for (int p = 0; p < partitions(); p++) {
        int node = s->named[p].node;
        nobody += node < 0;
        if (node >= 0)
            count[node]++;
    }
    for (int i = 0; i < NODES_MAX && len + 1 < size; i++) {
        const struct naming_address *at = &s->nodes[i].address;
        if (count[i] > 0)
            len += (size_t)snprintf(out + len, size - len, "%s:%d keeps %d, ", at->host, at->port,
                                    count[i]);
    }
    if (len + 1 < size)
        len += (size_t)snprintf(out + len, size - len, "no majority names a keeper of %d", nobody);
    return len < size ? len : size - 1;
}
