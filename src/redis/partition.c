/*
 * Slots and tags. The tag of a partition is the smallest number, in digits, whose slot is the one
 * that is wanted: so every broker of every version finds the same one.
 */
#include "redis/partition.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WITHOUT                                                                                    \
    {                                                                                              \
        .heads[0] = { "holdfast:{", sizeof "holdfast:{" - 1 }                                      \
    } /* a Cluster */

static struct space {
    int n, shift; /* slot >> shift: its partition */
    char tags[PARTITIONS][PARTITION_TAG_MAX + 1];
    char at[PARTITIONS][sizeof "holdfast:{}:" + PARTITION_TAG_MAX];
    struct partition_head heads[PARTITIONS];
} space = WITHOUT;

/* CRC-16/XMODEM, as the specification of Redis Cluster has it: polynomial 0x1021, from 0 on. */
static uint16_t crc16(const char *bytes, size_t len)
{
    static uint16_t table[256];
    uint16_t crc = 0;

    if (!table[1]) {
        for (unsigned i = 0; i < 256; i++) {
            unsigned value = i << 8;
            for (int bit = 0; bit < 8; bit++)
                value = value & 0x8000 ? value << 1 ^ 0x1021 : value << 1;
            table[i] = (uint16_t)value;
        }
    }
    for (size_t i = 0; i < len; i++)
        crc = (uint16_t)(crc << 8 ^ table[crc >> 8 ^ (unsigned char)bytes[i]]);
    return crc;
}

int cluster_slot(const char *key, size_t len)
{
    const char *open = memchr(key, '{', len);
    const char *close = open ? memchr(open, '}', len - (size_t)(open - key)) : NULL;

    if (close && close > open + 1) {
        key = open + 1;
        len = (size_t)(close - key);
    }
    return crc16(key, len) & (CLUSTER_SLOTS - 1);
}

void partitions_use(int n)
{
    int left = n;

    assert(n >= 0 && n <= PARTITIONS && (n & (n - 1)) == 0);
    space = (struct space)WITHOUT;
    space.n = n;
    if (n == 0)
        return;
    while (CLUSTER_SLOTS >> space.shift > n)
        space.shift++;
    for (unsigned i = 0; left > 0; i++) {
        char tag[PARTITION_TAG_MAX + 1];
        int slot = cluster_slot(tag, (size_t)snprintf(tag, sizeof tag, "%u", i));
        int p = slot >> space.shift;
        if (slot != partition_slot(p) || space.tags[p][0])
            continue;
        strcpy(space.tags[p], tag);
        snprintf(space.at[p], sizeof space.at[p], "holdfast:{%s}:", tag);
        struct partition_head *head = &space.heads[p];
        head->len = (size_t)snprintf(head->text, sizeof head->text, "holdfast:{%s}{", tag);
        left--;
    }
}

int partitions(void)
{
    return space.n ? space.n : 1;
}

int partition_of(const char *name, size_t len)
{
    return space.n ? cluster_slot(name, len) >> space.shift : 0;
}

const char *partition_tag(int partition)
{
    assert(partition >= 0 && partition < partitions());
    return space.tags[partition];
}

const char *partition_at(int partition)
{
    assert(partition >= 0 && partition < partitions());
    return space.at[partition];
}

const struct partition_head *partition_head(int partition)
{
    assert(partition >= 0 && partition < partitions());
    return &space.heads[partition];
}

int partition_slot(int partition)
{
    return (partition << space.shift) + (1 << space.shift) / 2;
}
