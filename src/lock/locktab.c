/*
 * The table of locks. While it is being resized both arrays are in use: each look-up first moves
 * two buckets of the old one, so the move is over long before the next one can be due.
 */
#include "lock/locktab.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/util.h"
#include "lock/lock.h"

enum { SIZE_MIN_ = 1024, MOVE_STEP = 2 };

void locktab_init(struct locktab *t)
{
    memset(t, 0, sizeof *t);
    t->mask = SIZE_MIN_ - 1;
    t->buckets = util_alloc((t->mask + 1) * sizeof *t->buckets);
}

void locktab_fini(struct locktab *t)
{
    assert(t->count == 0);
    free(t->buckets);
    free(t->old);
    memset(t, 0, sizeof *t);
}

static void move_some(struct locktab *t)
{
    for (int i = 0; t->old && !t->scanning && i < MOVE_STEP; i++) {
        struct lock *l, *next;
        for (l = t->old[t->moved]; l; l = next) {
            next = l->next;
            l->next = t->buckets[l->hash & t->mask];
            t->buckets[l->hash & t->mask] = l;
        }
        t->old[t->moved] = NULL;
        if (t->moved++ == t->old_mask) {
            free(t->old);
            t->old = NULL;
        }
    }
}

static void resize(struct locktab *t, size_t size)
{
    if (t->old || t->scanning || size < SIZE_MIN_)
        return;
    t->old = t->buckets;
    t->old_mask = t->mask;
    t->moved = 0;
    t->mask = size - 1;
    t->buckets = util_alloc(size * sizeof *t->buckets);
}

struct locktab_name locktab_name(const char *name, size_t len)
{
    return (struct locktab_name){name, len, (uint32_t)util_hash(name, len)};
}

/* Returns the pointer to this lock in its chain, or the end of the chain where it would stand. */
static struct lock **place(struct locktab *t, const char *name, size_t len, uint32_t hash)
{
    struct lock **at;
    if (t->old && (hash & t->old_mask) >= t->moved) {
        at = &t->old[hash & t->old_mask];
    } else {
        at = &t->buckets[hash & t->mask];
    }
    while (*at) {
        const struct lock *l = *at;
        if (l->hash == hash && l->name_len == len && memcmp(l->name, name, len) == 0)
            break;
        at = &(*at)->next;
    }
    return at;
}

struct lock *locktab_find(struct locktab *t, const char *name, size_t len)
{
    const struct locktab_name hashed = locktab_name(name, len);
    return locktab_find_name(t, &hashed);
}

struct lock *locktab_find_name(struct locktab *t, const struct locktab_name *name)
{
    move_some(t);
    return *place(t, name->text, name->len, name->hash);
}

struct lock *locktab_get(struct locktab *t, const char *name, size_t len)
{
    const struct locktab_name hashed = locktab_name(name, len);
    return locktab_get_name(t, &hashed);
}

struct lock *locktab_get_name(struct locktab *t, const struct locktab_name *name)
{
    assert(name->len > 0 && name->len <= LOCK_NAME_MAX);
    move_some(t);
    struct lock **at = place(t, name->text, name->len, name->hash);
    if (*at)
        return *at;
    struct lock *l = pool_get(offsetof(struct lock, name) + name->len + 1);
    l->hash = name->hash;
    l->name_len = (uint16_t)name->len;
    memcpy(l->name, name->text, name->len);
    LIST_INIT(&l->holds);
    *at = l;
    if (++t->count > t->mask)
        resize(t, (t->mask + 1) * 2);
    return l;
}

void locktab_drop(struct locktab *t, struct lock *l)
{
    if (!lock_is_idle(l))
        return;
    move_some(t);
    struct lock **at = place(t, l->name, l->name_len, l->hash);
    assert(*at == l);
    *at = l->next;
    if (t->scan_next == l)
        t->scan_next = l->next;
    pool_put(l, offsetof(struct lock, name) + l->name_len + 1);
    if (--t->count < t->mask / 8)
        resize(t, (t->mask + 1) / 2);
}

static void each_of(struct locktab *t, struct lock *chain, void (*each)(void *, struct lock *),
                    void *arg)
{
    t->scan_next = chain;
    while (t->scan_next) {
        struct lock *l = t->scan_next;
        t->scan_next = l->next;
        each(arg, l);
    }
}

static uint64_t reverse(uint64_t v)
{
    v = (v >> 1 & UINT64_C(0x5555555555555555)) | (v & UINT64_C(0x5555555555555555)) << 1;
    v = (v >> 2 & UINT64_C(0x3333333333333333)) | (v & UINT64_C(0x3333333333333333)) << 2;
    v = (v >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f)) | (v & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4;
    return __builtin_bswap64(v);
}

uint64_t locktab_next_cursor(uint64_t cursor, size_t mask)
{
    return reverse(reverse(cursor | ~(uint64_t)mask) + 1);
}

/* The cursor counts in the high bits first, so that a resize between two calls repeats some locks
 * but omits none. During one a bucket of the smaller array and all those of the larger one that
 * have its number in their low bits are one step. */
uint64_t locktab_scan(struct locktab *t, uint64_t cursor, void (*each)(void *, struct lock *),
                      void *arg)
{
    bool shrinks = t->old && t->old_mask > t->mask;
    struct lock **few = shrinks ? t->buckets : t->old; /* NULL: no resize */
    struct lock **many = shrinks ? t->old : t->buckets;
    size_t large = shrinks ? t->old_mask : t->mask;
    size_t small = !t->old ? t->mask : shrinks ? t->mask : t->old_mask;

    t->scanning = true; /* `each` may drop locks: the chains stay where they are meanwhile */
    if (few)
        each_of(t, few[cursor & small], each, arg);
    do {
        each_of(t, many[cursor & large], each, arg);
        cursor = locktab_next_cursor(cursor, large);
    } while (cursor & (small ^ large));
    t->scanning = false;
    return cursor;
}
