#ifndef HOLDFAST_MANY_PRIVATE_H
#define HOLDFAST_MANY_PRIVATE_H
/*
 * What the files of many share: many.c is the request, many_try.c a try of all its names,
 * many_one.c what is done for one of them alone. A `struct many_name` (an item) is one name of a
 * request.
 *
 * Invariants: `pending` counts the claims and own requests that have not ended; the request is in
 * at most one queue, and in none while something is pending.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/claim.h"
#include "lock/lock.h"
#include "lock/many.h"

struct many_name {
    struct many *many;
    struct lock *lock;     /* one use */
    struct hold *hold;     /* pinned: granted, or entered again; NULL: not (yet) */
    struct lock_part part; /* asked for now */
    bool asks, enters;     /* in this try: by a claim, or again */
    bool repeated;         /* it had been granted to a request with this ID: it was not entered */
    enum claim_end end;    /* of the claim */
    int64_t retry_ms;
};

struct many {
    struct broker *broker;
    struct lock_request *request; /* NULL: untold, its reply has left */
    struct session *session;      /* in whose list it is; NULL: in none */
    TAILQ_ENTRY(many) of_session;
    struct many *next;   /* broker->untold */
    uint64_t by_session; /* as in its request */
    struct owner *id;    /* likewise; one reference, or NULL */
    int n, pending;
    bool has_waited;
    char *error; /* the first one; NULL: none */
    struct many_name items[];
};

/* ---- many.c ---- */
/* The name with which it waits, or is deferred. */
void many_set_lock(struct broker *, struct lock_request *, struct lock *);
/* The text is copied; only the first one counts. */
void many_keep_error(struct many *, const char *text);
/* Answers with it. The request may be gone afterwards, and all that is in it. */
void many_finish_error(struct many *);
/* An earlier request of this owner about one of the names is under way: it goes again then. */
bool many_is_deferred(struct many *);

/* ---- many_one.c ---- */
/* Releases what it was granted. */
void many_give_back(struct many *, int64_t now_ms);
/* A request for this name alone, like that for all of them but for the verb. The item hears of the
 * end and counts as pending until then. */
void many_run_one(struct many_name *item, enum lock_verb, int64_t now_ms);

/* ---- many_try.c ---- */
/* Nothing is pending any more. The request may be gone afterwards, and all that is in it. */
void many_claims_over(struct many *, int64_t now_ms);
#endif
