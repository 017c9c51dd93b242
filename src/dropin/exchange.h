#ifndef HOLDFAST_EXCHANGE_H
#define HOLDFAST_EXCHANGE_H
/*
 * exchange: one conditional operation on 1 to DROPIN_KEYS_MAX names, on all masters: if what stands
 * under each of the names is what was guessed, all of them are looked at, changed or ended; else
 * none is, and what really stands there is told.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct broker;
struct lock;

enum { DROPIN_KEYS_MAX = 16, DROPIN_STATE_MAX = 4096, DROPIN_OP_MAX = 63 };

/* What is known to stand under a name. */
enum truth_kind {
    TRUTH_UNKNOWN,
    TRUTH_FREE,
    TRUTH_DROPIN,  /* text is a state (state.h) */
    TRUTH_NATIVE,  /* held by LOCK: text is the owner; "" for readers and permits */
    TRUTH_FOREIGN, /* something that is no hold stands there */
    TRUTH_SPLIT,   /* no majority agrees: somebody has it or is about to, and nobody knows who */
};

struct truth {
    uint8_t kind;               /* enum truth_kind */
    char op[DROPIN_OP_MAX + 1]; /* of whichever broker; "" unless DROPIN or NATIVE */
    int64_t token, number;      /* of its version */
    int64_t expires_ms;         /* by our clock (BOOTTIME): the least that a majority says */
    struct buf text;            /* any bytes */
};
void truth_copy(struct truth *to,
                const struct truth *from); /* `to` has been initialised, by zeros */
void truth_fini(struct truth *);

enum exchange_what { EXCHANGE_LOOK, EXCHANGE_END, EXCHANGE_IN_PLACE, EXCHANGE_NEW };

/* One name. */
struct exchange_item {
    /* ---- what the caller asks for ---- */
    struct lock *lock; /* the exchange refers to it (work_ref) until its end */
    const struct truth
        *guess; /* FREE, DROPIN, or NATIVE (only to be looked at); lives until on_end */
    enum exchange_what what;
    const char *text; /* IN_PLACE, NEW: the new state; lives until on_end */
    size_t len;
    int64_t lease_ms; /* IN_PLACE, NEW */
    bool wants_time;  /* LOOK: a majority must say the time to live anew */
    /* ---- what it is told: read in on_end ---- */
    struct truth truth; /* CONFIRMED: what stands there now; REFUSED: what a majority says */
};

enum exchange_end {
    EXCHANGE_CONFIRMED, /* all items are done, on a majority of the masters */
    EXCHANGE_REFUSED,   /* nothing is done: something else stands there */
    EXCHANGE_FAILED,    /* too few masters have answered; see `reason` */
};

/* `items`: the caller's. `reason`: of FAILED, "NOQUORUM ..."; else NULL. */
typedef void (*exchange_fn)(struct exchange_item *items, int n, enum exchange_end,
                            const char *reason, void *arg, int64_t now_ms);

/* Inside a flow of the broker (lock/work.h). `items` and what they point to live until on_end,
 * which runs once, in a flow, and never inside this call; their `truth` is initialised (by zeros,
 * or by an earlier exchange), and the caller's to end. No name comes twice. */
void exchange_start(struct broker *, struct exchange_item *items, int n, exchange_fn on_end,
                    void *arg, int64_t now_ms);
#endif
