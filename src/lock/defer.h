#ifndef HOLDFAST_DEFER_H
#define HOLDFAST_DEFER_H
/*
 * defer: requests of one owner, and of one connection, about a lock keep their order: one that
 * comes while an earlier one is under way waits, and goes again when that is over.
 */
#include <stdbool.h>
#include <stdint.h>

struct broker;
struct lock;
struct lock_request;

/* Must it wait until another one is over? */
bool defer_needed(const struct lock *, const struct lock_request *);
void defer_request(struct lock *, struct lock_request *);
/* It waits no longer. */
void defer_remove(struct lock *, struct lock_request *);
/* Something is over: those who wait for it go again. Called by broker when a flow has asked for it
 * (WORK_UNDEFER). */
void defer_ready(struct broker *, struct lock *);
/* The broker ends, all connections have gone: those who wait are over, and nothing is done for
 * them. */
void defer_end(struct broker *, struct lock *);
#endif
