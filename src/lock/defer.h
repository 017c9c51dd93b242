#pragma once
/*
 * defer: requests of one owner, and of one connection, about a lock keep their order: one that
 * comes while an earlier one is under way waits, and goes again when that is over.
 */
#include <stdbool.h>

struct broker;
struct lock;
struct lock_request;

/* True when it must wait until another request is over. */
bool defer_needed(const struct lock *, const struct lock_request *);
void defer_request(struct lock *, struct lock_request *);
/* Takes it out of those who wait. */
void defer_remove(struct lock *, struct lock_request *);
/* Puts those who wait on the work list, in their order: something is over. For broker_work.c: flows
 * ask for it by WORK_UNDEFER. */
void defer_ready(struct broker *, struct lock *);
/* Ends those who wait, without doing anything for them: the broker ends, all connections have gone.
 */
void defer_end(struct broker *, struct lock *);
