#pragma once
/*
 * claim: gets one hold under a new operation: by acquire, by hand-over from a hold of our own
 * (acquire with `prev`), or by take-over of the owner's own hold. Agrees on the token, computes the
 * validity, and leaves nothing behind when it fails.
 *
 *   ASKING --majority with one token-------------------------------------> GRANTED
 *    | | \---majority, different tokens,
 *    | |     or others are said to have
 *    | |     taken it----------------------> COMMITTING --majority has it--> GRANTED
 *    | |                                     |  \--a larger one was seen, or others are said to
 *    | |                                     |     have taken it: COMMITTING again
 *    | +--another permit is free: ASKING     |
 *    +--no majority, time-out, too late------+---------------------------> REFUSED, and undone
 *                                                                          on all masters
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "lock/tickets.h"

struct claim;

enum claim_end {
    CLAIM_GRANTED,    /* token, deadline_ms, count */
    CLAIM_BUSY,       /* somebody else holds it; retry_ms says for how long */
    CLAIM_SAME_OWNER, /* the same owner holds it under another operation, at another broker */
    CLAIM_NOBODY,     /* take-over: this owner does not hold it */
    CLAIM_KIND,       /* it is in use as another kind: in_use */
    CLAIM_DEADLOCK,   /* a reader who wants it alone, as another reader does */
    CLAIM_FAILED,     /* no majority answered in time, or too little time was left: reason */
};

typedef void (*claim_fn)(struct claim *, void *arg, int64_t now_ms);

struct claim {
    /* ---- what the caller asks for: set before claim_start() ---- */
    struct broker *broker;
    struct lock *lock;            /* lives at least until on_end, as it is in its queue */
    struct owner *owner;          /* one reference, the claim's */
    struct lock_request *request; /* that it is for; NULL: that has left */
    struct lock_request
        *releaser;      /* the UNLOCK whose hold it hands over; NULL: none, or answered */
    round_fn on_undone; /* of the release of that hold when it is not granted; with the releaser */
    claim_fn on_end;    /* once, never inside claim_start(); the claim is freed after it returns */
    void *arg;
    struct ticket_place place; /* where its ticket is to stand if it is refused */
    uint64_t prev_op;          /* hand-over: operation of the hold that ends; 0: none */
    int64_t prev_lease_ms;
    int64_t lease_ms;
    int64_t maxhold_ms; /* 0: none */
    uint64_t group; /* all claims with this number are granted or none, on each master; 0: alone */
    int group_size;
    struct lock_part part;      /* what is asked for; a permit may change, see claim_new() */
    struct lock_part prev_part; /* a permit is handed over as the one it is */
    bool takeover, any;         /* any: of whatever the owner has; then `part` is a result */
    bool has_hold;              /* take-over: this broker has the hold itself */
    /* ---- what the claim answers: read in on_end ---- */
    enum claim_end end;
    bool split;  /* not granted: some masters had it free */
    bool missed; /* CLAIM_GRANTED: a master that answered has not got it */
    uint64_t op;
    int64_t sent_ms; /* before the first request */
    int64_t floor;   /* acquire: the token asked for */
    int64_t token, deadline_ms, count;
    int64_t pttl_ms;         /* take-over: time to live that a majority has at least */
    int64_t end_ms;          /* take-over: when its MAXHOLD ends; INT64_MAX: never */
    int64_t line;            /* tickets in the line now */
    int64_t retry_ms;        /* CLAIM_BUSY: time to live of what is in the way */
    struct round *round;     /* CLAIM_GRANTED: the one that granted it; see hold.h */
    char *reason;            /* CLAIM_FAILED: "NOQUORUM ..."; heap, the claim's */
    struct lock_part in_use; /* CLAIM_KIND */
    /* ---- the claim's own ---- */
    LIST_ENTRY(claim) of_lock; /* in queue->claims from claim_start() until on_end is called */
    int64_t above;             /* highest token granted here for the bucket when it was asked */
    uint8_t state;             /* ASKING, COMMITTING, GRANTED, REFUSED */
    uint8_t commits;           /* rounds of commit so far */
    uint8_t tries;             /* permits asked for so far */
    bool doubted;              /* claim_doubt(), since the last round of commit was sent */
};

/* Makes a claim. A share that is asked for, not by take-over, has been noted with share_ask(); the
 * claim takes it off the notes when it ends. When a permit turns out to be taken, the claim asks
 * for others. */
struct claim *claim_new(struct broker *, struct lock *, struct owner *, int64_t lease_ms, claim_fn,
                        void *arg);
void claim_start(struct claim *, int64_t now_ms);
/* Notes that others are said to have taken away what a master had given to this claim: it is
 * granted only when a majority then confirms that it still has it. */
void claim_doubt(struct claim *);
