#pragma once
/*
 * state: what Redis would have under a key, as the text that stands with the masters in the place
 * of a hold's owner:
 *
 *   drop-in s t <bytes>                           a string with a time to live
 *   drop-in s - <bytes>                           one without
 *   drop-in h t <len>:<field><len>:<value>...     a hash, fields in the order in which they came
 *
 * at most DROPIN_STATE_MAX bytes and STATE_FIELDS_MAX fields in all. When it ends is not part of
 * it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "dropin/exchange.h"
#include "dropin/keys.h"

enum { STATE_FIELDS_MAX = 128 };

/* Supposes that this truth stands under key i of a make-believe that has begun: a state as what it
 * means, a hold of LOCK as a string, its owner; nothing for all others. `ahead_ms`: how far the
 * clock of the make-believe is ahead of that of the truth. -1: the text is no state; nothing is
 * supposed. */
int state_suppose(struct keys *, int i, const struct truth *, int64_t ahead_ms);

/* What stands under a key after a run. */
struct state_found {
    bool is_there;
    bool has_time;
    int64_t expires_ms; /* by the clock of the make-believe; only with has_time */
};
/* Finds what stands under key i, and appends it as a state; nothing when nothing is there. -1: it
 * is no string and no hash, or beyond the bounds; then `*out` is as before. */
int state_write(struct keys *, int i, struct buf *out, struct state_found *);

/* True when a change from one state to the other is one of the same hold: a string keeps its bytes,
 * a hash at least one of its fields. Else the lock goes to another holder. Texts that are no states
 * are not the same hold. */
bool state_is_kept(const char *old, size_t old_len, const char *new, size_t new_len);

/* Appends what people may be shown of a state, which may be cut short: the value of a string, or
 * "field: value, ..." of a hash, as utf8.h shows bytes; some STATE_SHOWN bytes of it. */
enum { STATE_SHOWN = 80 };
void state_show(const char *text, size_t len, struct buf *out);
/* Says whether a state, which may be cut short, is a hash. */
bool state_is_hash(const char *text, size_t len);
