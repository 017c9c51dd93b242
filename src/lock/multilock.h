#pragma once
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
struct hold_ref;
struct lock;
struct lock_request;
struct multilock;

enum { MULTILOCK_NAMES_MAX = 64 };

/* The names of a request (copied); no name twice. Makes r->multilock, which ends with the request.
 */
void multilock_begin(struct broker *, struct lock_request *, const struct resp_arg *names, int n);
void multilock_free(struct multilock *); /* also NULL */

/* Takes it from its session, which has ended: no other request of that waits for this one. */
void multilock_leave_session(struct multilock *);
/* Lets what was said behind it go on: it is finished. */
void multilock_over(struct lock_request *);
/* Counts the end of a request for one of the names, made by the functions below. */
void multilock_one_over(struct lock_request *, int64_t now_ms);
/* True when an earlier request of the same session and owner that names this lock is under way. */
bool multilock_is_before(const struct lock *, const struct lock_request *);

/* Runs it, or runs it again after it was deferred. */
void multilock_lock(struct multilock *, int64_t now_ms);
void multilock_unlock(struct multilock *);
/* Runs it when it has waited and has its turn in the queue. */
void multilock_turn(struct multilock *, int64_t now_ms);

/* The holds that were granted, in the order of the names, for the reply. */
int multilock_count(const struct multilock *);
const struct hold_ref *multilock_hold(const struct multilock *, int i);
int64_t multilock_token(const struct multilock *, int i);
/* Gives back what it was granted. */
void multilock_give_back(struct multilock *, int64_t now_ms);
