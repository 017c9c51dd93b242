#pragma once
/*
 * nodes: what a node of a Redis Cluster says of the others (CLUSTER NODES): who has slots, where it
 * is, and which partitions (partition.h) it keeps. Pure.
 *
 * A partition is with the node that has the slot of its tag. While that slot moves it is still with
 * the node that gives it away.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/naming.h"
#include "redis/partition.h"

enum { NODES_MAX = 64, NODES_ID_LEN = 40 };
_Static_assert(PARTITIONS <= 64, "partitions of a node are the bits of a number");

struct node {
    char id[NODES_ID_LEN + 1];
    struct naming_address address; /* port 0: the one that was asked does not know it */
    bool is_guess;       /* it was told without a host: that is the one at which it was asked */
    uint64_t partitions; /* bit p: it keeps partition p */
    bool has_slots;      /* it is a master, and one of those that elect */
};

/* The masters that have slots, and the node that has said so, whatever that is. */
struct nodes {
    int n, myself;
    struct node v[NODES_MAX];
};

/* Reads the text of the node that was asked at this address: it may not know its own. Returns 0, or
 * -1 when it is no such text or has more masters than NODES_MAX: `why` says so in words. */
int nodes_read(struct nodes *, const char *text, size_t len, const struct naming_address *asked,
               const char **why);
