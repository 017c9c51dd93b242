#pragma once
/*
 * handover: passes a lock on when a hold of it has ended.
 *
 *   a hold ends --+--> next waiter: one script ends it and gives him the lock (hand-over)
 *                 +--> nobody here whom it fits, or others have waited long enough, or FAIR:
 *                      release, which calls up the next one in the line between brokers
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/waiters.h"

/* Gives the lock of a hold that has ended to the next waiter, or releases it on the masters.
 * `releaser`: the UNLOCK that ended it, finished when a majority has confirmed; NULL: none.
 * `is_lapsing`: its time to live is over, so there is nothing to release. */
void handover_pass_on(struct broker *, struct lock *, const struct ended_hold *,
                      struct lock_request *releaser, bool is_lapsing, int64_t now_ms);

/* Runs an UNLOCK again, or answers it: no master had the hold that it gives back. Its owner may
 * have taken it to another broker, and then it is taken back from there, unless the owner has asked
 * for more since. */
void handover_not_there(struct broker *, struct lock_request *);
/* Answers an UNLOCK that too few masters have confirmed. `why`: "NOQUORUM ...". */
void handover_not_confirmed(struct broker *, struct lock_request *, const char *why);
