#pragma once
/*
 * shards: which node of a Redis Cluster keeps each partition (partition.h), as a majority of its
 * masters say, and until when that counts (safety R17). Pure: it is told the time.
 *
 * It is naming.h with two differences. Who has a word is not configured: it is the masters that
 * have slots, those that elect when one of them fails. And each of them has its own knowledge of
 * who these are, which may be older than what the others know. So a word counts only together with
 * so many others that name the same node that they are a majority of the masters that the one who
 * says it knows. Each word counts for `timeout_ms` from the moment when it was asked for.
 *
 * Nodes may tell the address of one differently: it has several, or one that is not known to it
 * (NAT), or it has moved. The one that it tells itself counts. Else that of who has told first, as
 * long as he tells it, and while he is silent for the timeout: so it does not change at each word.
 *
 * Two nodes for one partition can have such a majority each while the Cluster changes its masters
 * faster than these hear of it. Then none is named.
 */
#include <stddef.h>
#include <stdint.h>

#include "redis/nodes.h"

/* A node that was told of, and the last word of its own. */
struct shards_node {
    char id[NODES_ID_LEN + 1]; /* "": nobody */
    struct naming_address address;
    char teller[NODES_ID_LEN + 1]; /* of that address */
    int64_t address_ms;            /* when he last told it */
    int64_t told_ms;               /* when it was last told of, or asked */
    int64_t asked_ms;              /* when its word was asked for; 0: it has none that counts */
    uint64_t masters;              /* bit i: node i is a master that has slots */
    int8_t keepers[PARTITIONS];    /* the node that keeps this partition; -1: none does */
};

/* Who keeps a partition. */
struct shards_named {
    int node;         /* -1: nobody is named */
    int64_t until_ms; /* it counts before this time */
};

struct shards {
    int64_t timeout_ms;
    struct shards_node nodes[NODES_MAX];
    struct shards_named named[PARTITIONS];
};

void shards_init(struct shards *, int64_t timeout_ms);
/* Takes what a node has said. Returns the partitions that have another node now, or had none for a
 * moment, or have none any more: bit p. What has grown too old is gone, too. */
uint64_t shards_take(struct shards *, const struct nodes *, int64_t asked_ms, int64_t now_ms);
/* Time has passed. Returns the partitions that have nobody any more, or another node. */
uint64_t shards_pass(struct shards *, int64_t now_ms);
/* Returns the node that keeps this partition, until named[p].until_ms; NULL: nobody is named. */
const struct shards_node *shards_keeper(const struct shards *, int partition);
/* Writes for people how many partitions each node keeps. Returns the length. */
size_t shards_words(const struct shards *, char *out, size_t size);
