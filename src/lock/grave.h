#pragma once
/*
 * grave: what has been ended for another broker, which may not know and plant it on a master that
 * begins a new life (replant.h): holds that an owner has taken over to this broker, or that
 * FORCEUNLOCK has ended here. A grave is the part of a lock and a token: what had it under that
 * token, or one before, is over. It lasts as long as anybody may have been told that he holds it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"

struct broker;

void grave_init(struct broker *);
void grave_fini(struct broker *);
/* Digs a grave, and tells the masters that are in quarantine. */
void grave_dig(struct broker *, const struct lock *, struct lock_part, const struct owner *,
               int64_t token, int64_t now_ms);
/* Tells master i, which has begun a new life, of all graves. */
void grave_tell(struct broker *, int i, int64_t now_ms);
/* Tells whether all that must be remembered is: there were not too many graves. */
bool grave_has_all(const struct broker *, int64_t now_ms);
