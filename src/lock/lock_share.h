#pragma once
/*
 * lock_share: the readers of a lock, or its permits, as far as they are clients of this broker:
 * found by owner whatever their number, and which permits are known to be taken.
 *
 * A lock has a struct shares while somebody here has a share or asks for one; it is for readers or
 * for one number of permits.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"

/* How many clients of this broker have one, lost ones among them. */
uint32_t share_count(const struct lock *);
/* What the shares are of; false: there are none, and nobody asks for one. */
bool share_kind(const struct lock *, struct lock_part *);

/* A hold with a share begins, or ends. */
void share_add(struct lock *, struct hold *);
void share_remove(struct lock *, struct hold *);

/* Somebody asks for a share of this kind from now on; a permit that is not known to be taken is put
 * into `part`, from `start` on (any number). Only while no other kind is in use. False: every
 * permit is taken. */
bool share_ask(struct lock *, struct lock_part *, uint64_t start);
/* Would it be true now? */
bool share_is_free(const struct lock *, struct lock_part);
/* He asks for permit `slot` instead of part->slot. */
void share_ask_instead(struct lock *, struct lock_part *, uint16_t slot);
/* He asks no longer. */
void share_asked(struct lock *, struct lock_part);
