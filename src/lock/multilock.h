#ifndef HOLDFAST_MULTILOCK_H
#define HOLDFAST_MULTILOCK_H
/*
 * multilock: several names at once, all or none (MLOCK), or given back (MUNLOCK).
 *
 *   MLOCK:  TRYING --all claims granted--> ENTERING what its owner has already --> granted
 *             ^  \---one was refused: the others are given back--> nil, an error, or
 *             |                                          WAITING in the queue of that one
 *             +--its turn there----------------------------+
 *
 * While it waits it holds nothing, so two of them never wait for each other, whatever the order of
 * their names. The items of one try travel in one script call, which takes all or none
 * (acquire.lua): with one master that is the whole truth, with several a majority of them decides
 * about each name. A hold that it was granted lives and ends for itself from then on.
 */
#include <stdbool.h>
#include <stdint.h>

#include "net/resp.h"

struct broker;
struct hold;
struct lock;
struct lock_request;
struct multilock;

enum { MULTILOCK_NAMES_MAX = 64 };

/* The names of a request (copied); no name twice. Makes r->multilock, which ends with the request.
 */
void multilock_begin(struct broker *, struct lock_request *, const struct resp_arg *names, int n);
void multilock_free(struct multilock *); /* also NULL */

/* Its session has ended: no other request of it waits for this one. */
void multilock_leave_session(struct multilock *);
/* It is about to be finished: what was said behind it goes on. */
void multilock_over(struct broker *, struct lock_request *);
/* Is an earlier request of the same session and owner under way that names this lock too? */
bool multilock_is_before(const struct lock *, const struct lock_request *);

/* Runs it, or runs it again after it was deferred. */
void multilock_lock(struct broker *, struct lock_request *, int64_t now_ms);
void multilock_unlock(struct broker *, struct lock_request *, int64_t now_ms);
/* It waits, and is the first whose turn it is there. */
void multilock_turn(struct broker *, struct lock_request *, int64_t now_ms);

/* The holds that were granted, in the order of the names, for the reply. */
int multilock_count(const struct multilock *);
struct hold *multilock_hold(const struct multilock *, int i);
/* The reply could not say that they are held. Takes it away from its request, which may be freed;
 * multilock_settle() gives them back. */
void multilock_untold(struct multilock *);
/* Gives back what no reply could say, once a turn. */
void multilock_settle(struct broker *, int64_t now_ms);
#endif
