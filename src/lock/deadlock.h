#pragma once
/*
 * deadlock: finds a circle of connections of this broker that wait for each other's locks.
 *
 * A connection that waits runs nothing else, so it waits for one lock at a time, and the search is
 * a walk along one chain. A hold counts only while nobody could release it: its owner has no name
 * and its connection waits, or it is the owner's own request that waits there, and no other
 * connection acts for him. A hold with a LEASE ends by itself.
 */
#include <stdbool.h>

struct buf;
struct lock;
struct lock_request;

/* True when this request would close a circle by waiting for the lock; the circle is then appended
 * in words. */
bool deadlock_find(const struct lock_request *, const struct lock *, struct buf *words);
