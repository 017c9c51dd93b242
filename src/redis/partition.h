#pragma once
/*
 * partition: the parts of the space of names that a Redis Cluster keeps each by itself.
 *
 * A Cluster spreads keys over 16384 slots, by the CRC16 of the first {tag} in a key or of the whole
 * key, and moves slots from node to node. One script has only keys of one slot. So the names are
 * divided into partitions, a number that is a power of two and never changes: partition p has the
 * names of the p-th range of slots, and all its keys stand in the slot in the middle of that range,
 * as they all have one tag. What a master is without a Cluster, a partition is with one.
 *
 *     holdfast:{tag}{name}    a lock, and what belongs to it behind that
 *     holdfast:{tag}:master   the mark of the partition
 *     holdfast:{name}, holdfast:master    without a Cluster
 */
#include <stddef.h>

enum { CLUSTER_SLOTS = 16384, PARTITIONS = 64, PARTITION_TAG_MAX = 8 };

/* Sets how many partitions there are in this process, before anything else here is called: 0, no
 * Cluster, which it is at first, or a power of two up to PARTITIONS. */
void partitions_use(int n);
/* Returns how many groups of masters there are: 1 without a Cluster. */
int partitions(void);
/* Returns the partition of a name; 0 without a Cluster. */
int partition_of(const char *name, size_t len);
/* Returns its tag; "" without a Cluster. */
const char *partition_tag(int partition);
/* Returns "holdfast:{tag}:", how its keys begin that are of no lock. No key has this name: where it
 * is among those of a call, a node that is giving the slot away, or has just got it, refuses the
 * call before it does anything (MOVED, ASK, TRYAGAIN). "" without a Cluster. */
const char *partition_at(int partition);
/* Returns how the key of a lock begins, with the brace before its name. */
struct partition_head {
    char text[sizeof "holdfast:{}{" + PARTITION_TAG_MAX];
    size_t len;
};
const struct partition_head *partition_head(int partition);
/* Returns the slot of its tag. */
int partition_slot(int partition);
/* Returns the slot of a key. */
int cluster_slot(const char *key, size_t len);
