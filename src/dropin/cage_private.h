#ifndef HOLDFAST_CAGE_PRIVATE_H
#define HOLDFAST_CAGE_PRIVATE_H
/*
 * Between the files of cage: cage.c counts and refuses, cage_bodies.c compiles and keeps,
 * cage_functions.c has what Lua offers, cage_redis.c the table `redis`, cage_run.c the run.
 */
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "dropin/cage.h"

enum {
    CAGE_STEP_BYTES = 16,       /* so many allocated bytes count as a step */
    CAGE_LONG_TEXT = 256,       /* an instruction counts one more for each such piece */
    CAGE_COMPILE = 1024 * 1024, /* bytes that compiling a body may take */
    CAGE_FUNCTIONS = 24,        /* room for the functions that are charged */
    CAGE_GARBAGE = 64 * 1024,   /* bytes that are not worth collecting */
    CAGE_PCALLS = 32            /* pcall within pcall */
};

struct cage_body {
    UT_hash_handle hh;
    char sha1[CAGE_SHA1 + 1];
    int ref;        /* its function in Lua's registry */
    size_t longest; /* allocation while it was compiled: no constant is longer */
};

struct cage {
    lua_State *lua;
    struct cage_body *bodies; /* that which was used last stands last */
    int bodies_max;
    lua_CFunction originals[CAGE_FUNCTIONS]; /* by row of cage_functions.c */

    size_t used, used_max; /* bytes; used_max: SIZE_MAX outside of runs */
    size_t allocated;      /* bytes that have not been charged yet */
    size_t taken;          /* bytes that have been allocated in this run, freed or not */
    size_t longest;        /* allocation of this run */
    size_t fresh;          /* the last thing that was done was to allocate this; else 0 */
    size_t longest_before; /* `longest` without it */
    size_t collect_from;   /* from so many used bytes on, garbage is collected */

    /* of the run at hand */
    const struct cage_job *job;
    struct store_reply reply; /* of the call at hand */
    int64_t steps_left;
    int calls_left, pcalls;
    bool is_refused;
    char refusal[192];
};

struct cage *cage_of(lua_State *);

/* Refuses the script and does not return. */
_Noreturn void cage_refuse(lua_State *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Goes on refusing a script that has been refused: pcall does not catch that. */
_Noreturn void cage_refuse_on(lua_State *);

/* Counts so many steps, and what has been allocated meanwhile. */
void cage_charge(lua_State *, int64_t steps);

/* Begins to count: at most so many bytes more. */
void cage_count(struct cage *, size_t bytes);
/* Ends the counting; frees some of what is no longer used. */
void cage_count_end(struct cage *);

/* The body, compiled; NULL: it is no Lua and the error has been added, or it is refused. */
const struct cage_body *cage_compile(struct cage *, const char *body, size_t len,
                                     struct store_reply *out);
void cage_bodies_fini(struct cage *);

/* Makes the globals of all scripts, in a new state. */
void cage_functions_open(struct cage *);
void cage_redis_open(lua_State *); /* pushes the table `redis`, unprotected */
/* Replaces the table on top by one that looks the same but cannot be written. A field that it lacks
 * refuses the script when `library` has it in Redis. */
void cage_protect(lua_State *, const char *library);
/* The table at i can be written: it is the script's own. Else refuses. */
void cage_want_own(lua_State *, int i);
/* Sets KEYS and ARGV. */
void cage_set_words(lua_State *, const char *name, const struct resp_arg *words, int n);
#endif
