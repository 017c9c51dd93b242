/*
 * A ring: entry number n stands in ring[n % LOSTLOG_LEN], and `added` is the number of the next.
 * Everything has its place from the start: a bad hour must not cost memory.
 */
#include "stats/lostlog.h"

#include <assert.h>
#include <string.h>

static struct lostlog_entry ring[LOSTLOG_LEN];
static uint64_t added;

void lostlog_add(const struct lostlog_entry *entry, const char *name, size_t name_len)
{
    struct lostlog_entry *e = &ring[added++ % LOSTLOG_LEN];

    *e = *entry;
    e->name_len = name_len;
    memcpy(e->name, name, name_len < LOSTLOG_NAME ? name_len : LOSTLOG_NAME);
}

size_t lostlog_count(void)
{
    return added < LOSTLOG_LEN ? (size_t)added : LOSTLOG_LEN;
}

const struct lostlog_entry *lostlog_get(size_t i)
{
    assert(i < lostlog_count());
    return &ring[(added - 1 - i) % LOSTLOG_LEN];
}
