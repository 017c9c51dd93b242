#pragma once
/*
 * notify: tells the holder who asked for it (TELL; RESP3 push), the channels `lost` and
 * `lock:<name>`, and the log what becomes of a hold. Owners are never told to others: an owner's id
 * is what proves that a hold is his.
 *
 *   push      ["renewed", name, token, validity]
 *             ["jeopardy", name, token, validity]
 *             ["safe", name, token, validity]
 *             ["lost", name, token, reason]
 *   lost      "<name> <token> <reason>"
 *   lock:x    "granted <token>", "released <token>", "lost <token> <reason>"
 */
#include <stdint.h>

struct broker;
struct hold;

enum lost_reason {
    LOST_NO_QUORUM, /* it could not be renewed in time */
    LOST_GONE,      /* a majority of masters does not have it any more */
    LOST_MOVED,     /* its owner has taken it back on another connection or broker */
    LOST_LEFT,      /* its connection has ended; told to others who have entered it */
    LOST_MAX_HOLD,
    LOST_FORCED, /* FORCEUNLOCK */
    LOST_PAUSE,  /* this process stood still for longer than the lease */
    LOST_REASONS
};

void notify_granted(const struct hold *, int64_t now_ms);
void notify_released(const struct hold *, int64_t now_ms);
void notify_renewed(const struct hold *, int64_t now_ms);
void notify_jeopardy(const struct hold *, int64_t now_ms);
void notify_safe(const struct hold *, int64_t now_ms);
/* Also tells other connections that have entered it, counts it, and ends all these connections
 * where `on_lost = close`. LOST_LEFT: tells and ends only the others. */
void notify_lost(const struct broker *, const struct hold *, enum lost_reason, int64_t now_ms);
