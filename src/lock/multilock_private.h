#pragma once
/*
 * What the files of multilock share: multilock.c is the request and what is done for one of its
 * names alone, multilock_try.c a try of all of them. A `struct multilock_name` (an item) is
 * one name of a request.
 *
 * Invariants: `pending` counts the claims and own requests that have not ended; the request is in
 * at most one queue, and in none while something is pending.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/claim.h"
#include "lock/lock.h"
#include "lock/multilock.h"

struct multilock_name {
    struct multilock *multilock;
    struct lock *lock;     /* one of its refs */
    struct hold_ref hold;  /* that was granted, or entered again */
    int64_t token;         /* of that */
    struct lock_part part; /* asked for now */
    bool granted;          /* or entered again; its hold may have ended since */
    bool asks, enters;     /* in this try: by a claim, or again */
    bool repeated;         /* it had been granted to a request with this ID: it was not entered */
    enum claim_end end;    /* of the claim */
    int64_t retry_ms;
};

struct multilock {
    struct broker *broker;
    struct lock_request *request;
    struct session *session; /* in whose list it is; NULL: in none */
    TAILQ_ENTRY(multilock) of_session;
    int n, pending;
    bool has_waited;
    char *error;   /* the first one; NULL: none */
    char *failure; /* why the masters could not be asked in this try: who waits tries again */
    struct multilock_name items[];
};

/* ---- multilock.c ---- */
/* Sets the name with which it waits, or is deferred. */
void multilock_set_lock(struct broker *, struct lock_request *, struct lock *);
/* Keeps the text (heap, its own from now on) as its error, if it has none yet. */
void multilock_keep_error(struct multilock *, char *text);
/* Finishes the request with that error. */
void multilock_finish_error(struct multilock *);
/* Defers it when an earlier request of its owner about one of the names is under way. */
bool multilock_is_deferred(struct multilock *);

/* Lets those go on that are deferred at its locks. */
void multilock_undefer(struct multilock *);
/* Notes the hold that a name was granted. */
void multilock_set_hold(struct multilock_name *item, struct hold *);
/* Puts a request for this name alone on the work list, like that for all of them but for the verb.
 * It counts as pending until its end. */
void multilock_run_one(struct multilock_name *item, enum lock_verb);

/* ---- multilock_try.c ---- */
/* Decides for all names: nothing is pending any more. */
void multilock_claims_over(struct multilock *, int64_t now_ms);
