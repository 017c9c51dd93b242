#pragma once
/*
 * locktab: the locks that clients of this broker hold or wait for, by name.
 *
 * A chained table with a keyed hash (names come from strangers). It grows and shrinks a few buckets
 * at a time, so that no single request pays for a million locks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lock;

struct locktab {
    struct lock **buckets, **old; /* old: being emptied into buckets, or NULL */
    size_t mask, old_mask;        /* sizes less one; powers of two */
    size_t moved;                 /* buckets of old that are empty already */
    size_t count;
    bool scanning;
    struct lock *scan_next; /* behind the one that is being looked at; NULL: none */
};

/* A name and its hash, for who asks for it in several places. The bytes are lent. */
struct locktab_name {
    const char *text;
    size_t len;
    uint32_t hash;
};
struct locktab_name locktab_name(const char *name, size_t len);

void locktab_init(struct locktab *);
void locktab_fini(struct locktab *); /* must be empty */
/* Return the lock of this name; NULL: none. */
struct lock *locktab_find(struct locktab *, const char *name, size_t len);
struct lock *locktab_find_name(struct locktab *, const struct locktab_name *);
/* Return it, made when there is none. */
struct lock *locktab_get(struct locktab *, const char *name, size_t len);
struct lock *locktab_get_name(struct locktab *, const struct locktab_name *);
/* Frees the lock when it is idle (lock_is_idle); else nothing happens. */
void locktab_drop(struct locktab *, struct lock *);

/* Walks over the table in pieces, as SCAN does: calls `each` for the locks of one more bucket and
 * returns the cursor for the next call; 0: the walk is complete. What is there all the time is seen
 * at least once, also when the table is resized meanwhile. `each` may drop any lock and
 * make others. */
uint64_t locktab_scan(struct locktab *, uint64_t cursor, void (*each)(void *arg, struct lock *),
                      void *arg);
/* Returns the cursor behind this one in a table of mask + 1 buckets: the number in the bits of
 * `mask`, counted in the high bits first, so that a table may be resized between two calls. */
uint64_t locktab_next_cursor(uint64_t cursor, size_t mask);
