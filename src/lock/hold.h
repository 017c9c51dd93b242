#pragma once
/*
 * hold: the life of a hold from grant to end: renewals, planting where it is missing (safety R3),
 * jeopardy, loss, lapse.
 *
 * One `due` for each hold, computed anew from all its duties by one function: the next renewal, the
 * moment from which it must be reported lost, its deadline.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "lock/notify.h"
#include "redis/round.h"

struct broker;
struct claim;

/* Makes the hold that this claim was granted, for this request (its session, MAXHOLD, TELL). It
 * follows the claim's round. One that an UNLOCK has taken over, to leave it once of several times,
 * belongs to no session: it lasts for what its holder was told, until he says RENEW. */
struct hold *hold_start(struct broker *, struct lock *, const struct claim *,
                        const struct lock_request *, int64_t now_ms);

/* True when the owner may still act on it. */
bool hold_is_valid(const struct hold *, int64_t now_ms);

/* Takes the hold out of its lock and its session: ENDED. Sends nothing to the masters. References
 * to it (struct hold_ref) become NULL; the object lives until the flow has returned and what
 * follows (enum hold_after) has been done. */
void hold_end(struct broker *, struct hold *, enum hold_after);
/* Frees an ENDED hold; for broker_work.c. */
void hold_free(struct hold *);
/* Notes whose UNLOCK is about to end the hold: replies under way to that session stay true. */
void hold_note_releaser(struct hold *, uint64_t session_id);
/* Ends a hold whose time is over, or that is lost for good; the lock is passed on unless masters
 * may still have the hold for as long as its holder was told. */
void hold_over(struct broker *, struct hold *, int64_t now_ms);

/* Marks the hold as being written by this request: later ones of its owner wait (defer.h). */
void hold_set_busy(struct hold *, struct lock_request *);

/* Its owner is told that it cannot be kept. `at_once`: others may hold already, so it ends here and
 * now; else it stays until its deadline, so that nobody else gets it before. */
void hold_lose(struct broker *, struct hold *, enum lost_reason, bool at_once, int64_t now_ms);

/* It ends with the connection to which it belonged: others who have entered it are told. */
void hold_tell_guests(const struct broker *, const struct hold *, int64_t now_ms);

/* Somebody else has it now (its owner elsewhere, or a stranger): its holder is told, and it ends.
 */
void hold_moved(struct broker *, struct hold *, enum lost_reason, int64_t now_ms);

/* Writes lease, count and its version to the masters (renew.lua). lease_ms 0: the time to live
 * stays; it also does when that is less than what its holder has been told. */
struct round *hold_write(struct broker *, struct hold *, int64_t lease_ms, round_fn, void *arg,
                         int64_t now_ms);
/* A majority has the hold by this round, whose verdict is being delivered: when the last answer is
 * in, it is planted where it is missing (safety R3). The round belongs to the hold from now on. */
void hold_follow(struct hold *, struct round *);
/* A majority has confirmed this round of hold_write(lease_ms > 0): the promise is longer now. */
void hold_confirmed(struct broker *, struct hold *, const struct round *, int64_t now_ms);
/* Gives the hold the lease that this request names, if any; its owner has been granted it. Only
 * RENEW makes it less than was told: who enters a lock again cuts nothing of what he was told
 * before, which the reply might tell too late. A shorter lease counts here at once, and the masters
 * hear of it now and not before: so a request that fails has cut nothing, here or there. The holder
 * is told, with TELL, when this is another connection's request. */
void hold_use_lease(struct broker *, struct hold *, const struct lock_request *, int64_t now_ms);
/* Writes the hold to the masters again soon: a majority is not known to have it as it is here. */
void hold_look_again(struct broker *, struct hold *, int64_t now_ms);
/* Notes that this round has found the hold on a majority of masters. */
void hold_seen(struct hold *, const struct round *);
/* True when what is known of the hold is good enough to refuse this request: this broker would have
 * heard of anybody who took it away, or it was seen since the request came and within the last
 * second. True for a lost one. */
bool hold_is_fresh(const struct broker *, const struct hold *, const struct lock_request *,
                   int64_t now_ms);
/* Returns whether a majority of masters has refused a write, so that the hold is lost. Never of a
 * hold that a take-over of this broker has torn: what its holder was told still stands on some of
 * them, and would be taken for a try that was given up if its owner asked anew (R2). It ends by its
 * time, unless a take-over succeeds. */
bool hold_is_refused(const struct hold *, const struct round *);
/* Says why a majority of masters has refused a write: the owner has taken the hold elsewhere, or it
 * is gone. */
enum lost_reason hold_why_gone(const struct round *);

/* Asks the masters now whether the hold is there: somebody says that it was taken elsewhere. */
void hold_check(struct broker *, struct hold *, int64_t now_ms);

/* Gives the hold to the connection of this request, under the same token: the LOCK that it was
 * granted for is repeated. */
void hold_rejoin(struct broker *, struct hold *, const struct lock_request *);

/* The connection of this request has entered the hold: it is told of its end, unless the hold is
 * its own. */
void hold_entered(struct hold *, const struct lock_request *);
/* It has given it back once. */
void hold_left(struct hold *, uint64_t session_id);
/* This request has entered the hold, or was granted it, and its owner is told of neither: it is
 * left once, as by an UNLOCK. Until then the entry counts for no UNLOCK and no reply any more
 * (hold->untold). Nothing is done for a hold that ends meanwhile. */
void hold_give_back(struct broker *, struct hold *, const struct lock_request *entered,
                    int64_t now_ms);
/* It, or everybody who has entered the hold, is told no more. NULL: does nothing. */
void hold_drop_guest(struct hold *, const struct session *);
void hold_drop_guests(struct hold *);
/* The connection ends: what it has entered is another one's. */
void hold_guest_ends(struct session *);

/* Renews it no longer: its connection has gone, without an order to release. */
void hold_orphan(struct broker *, struct hold *);
/* Likewise, and puts it onto broker->leaving, to be released. */
void hold_leave(struct broker *, struct hold *);
