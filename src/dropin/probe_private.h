#pragma once
/* Between the files of probe: probe.c supposes and runs, probe_text.c says what came of it. */
#include "base/buf.h"
#include "dropin/keys.h"
#include "dropin/store.h"

/* What stands under a key. */
struct probe_state {
    struct store_reply type, value, left; /* value: GET or HGETALL; left: PTTL */
};
void probe_state_look(struct probe_state *, struct keys *, int key);
void probe_state_fini(struct probe_state *);

/* Append for people: bytes without NULs; a reply; what a run has done, by the states of the keys
 * before it. */
void probe_say_bytes(struct buf *, const char *, size_t len);
void probe_say_reply(struct buf *, const struct store_reply *);
void probe_say_done(struct buf *, struct keys *, const struct probe_state *before);
