#pragma once
/* cage: runs a client's script in an embedded Lua 5.1, as Redis 7.0 would, with the few functions
 * that scripts about locks use and with bounds on all that a script can spend.
 *
 * What a script may use:
 *   tonumber tostring (not of tables and functions) type ipairs pairs next unpack select pcall
 * error assert, string.format sub len byte char lower upper rep, table.insert remove concat getn,
 * all of math but random and randomseed, KEYS, ARGV, redis.call pcall error_reply status_reply
 * sha1hex, and redis.log, replicate_commands and setresp(2), which do nothing. No patterns, no
 * metatables (so no methods of texts, `("x"):rep(3)`, either), no compiling, no bytecode, no
 * coroutines. To read a global that there is not, and to write any, is an error, as in Redis.
 *
 * Bounds: CAGE_STEPS; CAGE_MEMORY bytes; CAGE_CALLS calls of Redis; a body of CAGE_BODY bytes and
 * CAGE_TOKENS words and signs. An instruction of Lua counts three steps, since it may write a
 * number as text, and one more for every 24 bytes of the longest text that is about, since it may
 * compare two of them or take them for numbers; 16 bytes of memory are a step; functions count by
 * the bytes and elements that they are given. So no run takes more than 20 million instructions of
 * the CPU (tests/cost/cage.py), and one about locks has room for 2,500 instructions of Lua.
 *
 * A bound that is reached, and a function of Redis that the cage does not have, *refuse* the
 * script: pcall does not catch that, since the script would then take a way that it never takes in
 * Redis. What a refused script has told the caller's function until then is the caller's to forget.
 *
 * Pure: asks the operating system for nothing but memory. One cage serves one thread, one run at a
 * time; nothing of a run is left to the next one. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dropin/store.h"
#include "net/resp.h"

enum {
    CAGE_STEPS = 10000,
    CAGE_MEMORY = 256 * 1024, /* what a run may allocate */
    CAGE_CALLS = 64,          /* redis.call and redis.pcall in one run */
    CAGE_BODY = 16 * 1024,
    CAGE_KEPT = 4 * 1024 * 1024, /* bytes of compiled bodies */
    CAGE_TOKENS = 2048,          /* of Lua; the time to compile them grows with their square */
    CAGE_WORDS = 256,            /* words of one call of Redis */
    CAGE_SHA1 = 40               /* characters of the name of a body */
};

struct cage;

/* Keeps the last `bodies_max` bodies compiled (at least one), within CAGE_KEPT bytes. */
struct cage *cage_new(int bodies_max);
void cage_free(struct cage *); /* also NULL */

struct cage_job {
    const char *body;
    size_t len;
    const char *sha1; /* of the body, as cage_sha1() makes it; NULL: it is computed */
    const struct resp_arg *keys, *args;
    int n_keys, n_args;
    /* redis.call: adds exactly one reply and returns 0. -1: the script is refused, and the text in
     * `why` (of `size` bytes) says for what, as the end of "the script ...". The words hold until
     * it returns. */
    int (*call)(void *arg, const struct resp_arg *argv, int argc, struct store_reply *out,
                char *why, size_t size);
    void *arg;
    long steps_max; /* fewer than CAGE_STEPS; 0: as many */
};

/* Runs a script. Returns 0 and adds one reply, which is an error when the script failed or is no
 * Lua: as Redis words it. Returns -1 when the script is refused; then `out` is empty, and
 * cage_refusal() says why. */
int cage_run(struct cage *, const struct cage_job *, struct store_reply *out);

/* Compiles a body, or sees that it has been, and keeps it. -1: it is no Lua or is refused, and the
 * error for a client has been added. */
int cage_check(struct cage *, const char *body, size_t len, struct store_reply *out);

/* Why the last script was refused: the end of "the script ...". Holds until the next run. */
const char *cage_refusal(const struct cage *);

/* How many steps the last run took: CAGE_STEPS at most. */
long cage_steps(const struct cage *);
/* Bytes that the cage has now. */
size_t cage_memory(const struct cage *);

/* The name of a body: the SHA-1 of its bytes in lower case, and a NUL. */
void cage_sha1(const char *body, size_t len, char out[CAGE_SHA1 + 1]);
/* For tables of bodies: that is a hash already, as text. */
static inline unsigned cage_sha1_hash(const char *sha1)
{
    uint64_t head;
    memcpy(&head, sha1, sizeof head);
    return (unsigned)(head * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}
