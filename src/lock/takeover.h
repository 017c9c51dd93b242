#pragma once
/* takeover: an owner takes a hold of its own back from another connection or broker. */
#include <stdint.h>

struct broker;
struct lock;
struct lock_request;

/* RENEW or UNLOCK of a hold that is elsewhere, at another broker or on another connection:
 * take-over in place, under a new operation and a new token (safety R11). RENEW ends with that;
 * UNLOCK goes on with the hold. */
void takeover_begin(struct broker *, struct lock *, struct lock_request *, int64_t now_ms);
