#pragma once
/* keys: a make-believe of Redis for one run of a script: nothing but the keys that the script
 * declares, in a state that is supposed, and a record of what the script looks at and writes.
 *
 * Commands that scripts about locks use are answered as Redis 7.0 answers them, errors included.
 * All others, and keys that were not declared, refuse the script (keys_call). Nothing is told to
 * anybody: what a script publishes is kept for the caller. Time stands still. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dropin/store.h"
#include "net/resp.h"

enum { KEYS_MAX = 16 };

/* What a script has done with one of its keys. */
struct keys_seen {
    bool is_read;     /* a command has named it */
    bool read_time;   /* one that answers by its time to live */
    bool wrote_value; /* also to what it was before */
    bool wrote_time;  /* also to what it was before; and by a removal */
    bool is_count;    /* what wrote its value last was INCR or one of its family */
};

struct keys {
    struct store store; /* the state, as it is now; only these keys */
    const struct resp_arg *names;
    int n;
    struct keys_seen seen[KEYS_MAX];
    bool read_clock;              /* TIME */
    bool is_counting;             /* the command at hand is INCR or one of its family */
    struct store_reply published; /* channel, message, channel, message... */
};

/* Begins with none of these keys being there, at this time. The names must outlive it; at most
 * KEYS_MAX. All zero is a keys that has begun never. */
void keys_begin(struct keys *, const struct resp_arg *names, int n, int64_t now_us);
void keys_fini(struct keys *);

/* Says a command to the state without a record: to suppose something, or to look at what came of
 * it. Adds one reply, or nothing when `out` is NULL. */
void keys_suppose(struct keys *, const struct resp_arg *argv, int argc, struct store_reply *out);

/* redis.call of a script; `keys` is a struct keys. As struct cage_job's call: -1 when the command
 * is none that is served, or names a key that was not declared, and `why` says which. */
int keys_call(void *keys, const struct resp_arg *argv, int argc, struct store_reply *out, char *why,
              size_t size);

/* The same for the command that store_find() has found by the first word; NULL: none. */
int keys_run(struct keys *, const struct store_command *, const struct resp_arg *argv, int argc,
             struct store_reply *out, char *why, size_t size);

/* After the run: -1 when it leaves something behind that is no lock, and `why` says what, as
 * keys_call() does: a number that was counted up and has no time to live. */
int keys_end(struct keys *, char *why, size_t size);

/* True when the script has written, or published. */
bool keys_wrote(const struct keys *);
