#pragma once
/*
 * order: is there an order in which one Redis would have answered the same? Each request takes
 * effect at one moment between its beginning and its end, on all of its names at once; one that
 * ended by an error may have had its effect or not, and may have had it for a while. Native
 * requests (LOCK, UNLOCK, FORCEUNLOCK) take their place in the same order.
 *
 * A try to take something may also be refused by masters that are split, because of somebody whose
 * request was under way or has failed: what is split counts as somebody else's. A refusal from
 * memory may be as old as that (safety R19).
 */
#include <stdbool.h>
#include <stdint.h>

enum { ORDER_OPS = 512, ORDER_NAMES = 2 };

enum order_verb {
    ORDER_TAKE,   /* SET NX PX: 1, or 0 */
    ORDER_GET,    /* who has it; 0: nobody */
    ORDER_END,    /* compare and delete: 1, or 0 */
    ORDER_EXTEND, /* compare and PEXPIRE: 1, or 0 */
    ORDER_TAKE2,  /* both names, if both are free: 1, or 0 */
    ORDER_GET2,   /* who has the first + 16 * who has the second */
    ORDER_END2,   /* 1 for the first + 2 for the second, as far as they were its own */
    ORDER_ENTER,  /* a field of a hash: how often it is entered; -1: somebody else's */
    ORDER_LEAVE,  /* how often it still is; -1: not its own */
    ORDER_LOCK,   /* 1: granted; what is refused is NOT_DONE */
    ORDER_UNLOCK, /* 1: released; 0: entered once less; -1: not its own */
    ORDER_FORCE   /* always UNKNOWN: it may end what is there */
};
enum { ORDER_WRONGTYPE = -2 }; /* answer: a hash was expected, and a string is there */

enum order_outcome { ORDER_RUNNING, ORDER_KNOWN, ORDER_UNKNOWN, ORDER_NOT_DONE };

/* One request. Times are in ms, of the world. */
struct order_op {
    enum order_verb verb;
    enum order_outcome outcome;
    int client, broker; /* client: 1 to 15 */
    int name;           /* of verbs that have one */
    int64_t begin_ms, end_ms, lease_ms;
    int64_t sure_ms, gone_ms; /* what it took, or extended, stands until sure_ms at least (unless it
                               * is ended), and until gone_ms at most */
    int64_t latest_ms;        /* UNKNOWN: when it may still have an effect */
    int64_t left_ms;          /* until when it may have left something on a minority */
    int result;
    int heard; /* how often its message was heard */
    char text[80];
};

/* What a verb is: of both names; changes nothing; may leave the lock free. */
bool order_is_pair(const struct order_op *);
bool order_only_looks(const struct order_op *);
bool order_ends(const struct order_op *);

struct order {
    struct order_op ops[ORDER_OPS];
    int n;
};

enum order_end { ORDER_FOUND, ORDER_NONE, ORDER_TOO_WIDE };

/* NONE: *stuck is the first request, by its end, that the longest order found has no place for. */
enum order_end order_search(const struct order *, int *stuck);
/* To stderr. */
void order_print(const struct order *);
