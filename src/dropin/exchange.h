#pragma once
/*
 * exchange: one conditional operation on 1 to DROPIN_KEYS_MAX names, on all masters: if what stands
 * under each of the names is what was guessed, all of them are looked at, changed or ended; else
 * none is, and what really stands there is told.
 *
 *   exchange_start --> ASKED --a majority has done it, tokens differ--> COMMITTING --+
 *                        |     or it was taken from a master meanwhile               |
 *                        |  \--a majority has done it-------------------------------+--> CONFIRMED
 *                        |                                                          |    made good
 *                        |                                                          |    where it
 *                        +--enough is known of what stands there--> REFUSED, undone |    was missed
 *                        +--time-out, veto, too late--------------> FAILED, undone <+
 *
 * Why of one state at most one change is ever confirmed, whatever is late, twice or lost:
 *
 * - A master does it only where the very operation stands that was guessed, and each change is
 *   written under an operation of its own (lua/exchange.lua). Two changes of one state that both
 * had a majority would have been done both by one master: the second where the first stood, which
 * is another operation, or after the first was put back, and whoever puts back confirms nothing.
 * - What a majority of all masters says is the truth: the same operation, or free. There is no
 *   latest version that counts for the truth because one master has it: a change that only a
 *   minority made would then undo one that was confirmed on the others. Anything else is SPLIT.
 * - Put back is the old state exactly, under its old operation, and only where our own stands; an
 *   end of a group only where its tombstone is our own. A hold that was new is released by its
 *   operation, kept for masters that cannot be reached (undelivered.h). All that undoes is sent
 *   before on_end, also to a master that is silent, and so arrives before what is asked afterwards;
 *   it has a higher number of call than what it undoes, which finds its way shut when it arrives
 *   behind it (R2). What cannot be delivered is kept until its time is over (undelivered.h); until
 *   it arrives a change may stay: on a minority it is no truth, on a majority FAILED says so.
 * - An end of a single name that is neither confirmed nor certainly refused is not put back, as a
 *   majority may already have been seen to be free: it is pursued, as UNLOCK is, and FAILED.
 * - A confirmed change is made good where it was missed: over what was guessed, or over a version
 *   of the same hold (of the same birth) that is not later; where nothing stands it is planted
 *   (R3). Neither is a vote. Confirmed versions of a hold never have the same number, so none is
 *   lost by it. Not once this
 *   broker has asked for another change there (R7); those of other brokers leave a tombstone.
 * - Until it stands on all masters its broker looks at it again (exchange_repair.c). A look that is
 *   confirmed makes good what it finds missing, by the same messages; but where nothing stands only
 *   the broker that made the last change plants it: of an end of its own it leaves no tombstone.
 * - A copy of what created a hold that another broker has ended meets a tombstone, one of our own
 *   the number of a later call (R2). A master that has restarted has no vote (R5).
 */
#include <stdbool.h>
#include <stdint.h>

#include "dropin/truth.h"

struct broker;
struct lock;

enum { DROPIN_KEYS_MAX = 16 };

enum exchange_what { EXCHANGE_LOOK, EXCHANGE_END, EXCHANGE_IN_PLACE, EXCHANGE_NEW };

/* One name. */
struct exchange_item {
    /* ---- what the caller asks for ---- */
    struct lock *lock;         /* the exchange refers to it (work_ref) until its end */
    const struct truth *guess; /* FREE, DROPIN, or NATIVE (only to be looked at) */
    enum exchange_what what;
    const char *text; /* IN_PLACE, NEW: the new state */
    size_t len;
    int64_t lease_ms; /* IN_PLACE, NEW */
    bool keeps_time;  /* IN_PLACE: each master keeps the time to live that it has, of which
                       * lease_ms is what is known */
    bool wants_time;  /* LOOK: a majority must say the time to live anew */
    /* ---- what it is told: read in on_end ---- */
    struct truth truth; /* CONFIRMED: what stands there now; REFUSED: what a majority says */
};

enum exchange_end {
    EXCHANGE_CONFIRMED, /* all items are done, on a majority of the masters */
    EXCHANGE_REFUSED,   /* nothing is done: something else stands there */
    EXCHANGE_FAILED,    /* too few masters have answered, and it may be done; see `reason` */
};

/* `items`: the caller's. `reason`: of FAILED, "NOQUORUM ..."; else NULL. */
typedef void (*exchange_fn)(struct exchange_item *items, int n, enum exchange_end,
                            const char *reason, void *arg, int64_t now_ms);

/* Inside a flow of the broker (lock/work.h). `items` and what they point to live until on_end,
 * which runs once, in a flow, and never inside this call; their `truth` is initialised (by zeros,
 * or by an earlier exchange), and the caller's to end. No name comes twice. */
void exchange_start(struct broker *, struct exchange_item *items, int n, exchange_fn on_end,
                    void *arg, int64_t now_ms);
/* A master says that what this operation has put there was taken away: what is under way is
 * confirmed only if a majority says then that it stands there. */
void exchange_doubt(struct broker *, const char *op, size_t len);
/* Gives up what is still to be made whole. Before broker_fini(), and after it. */
void exchange_close(struct broker *);
