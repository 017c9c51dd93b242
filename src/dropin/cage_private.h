#pragma once
/*
 * Between the files of cage: cage.c counts and refuses, cage_tokens.c measures a body,
 * cage_bodies.c compiles and keeps it, cage_tables.c makes tables that nobody writes,
 * cage_charges.c bills functions of Lua, cage_functions.c puts together what scripts see,
 * cage_redis.c has the table `redis`, cage_run.c the run.
 */
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "dropin/cage.h"

enum {
    CAGE_STEP_BYTES = 16, /* so many allocated bytes count as a step */
    CAGE_INSTRUCTION = 3, /* steps of one: it can write a number as text (10,000 of the CPU) */
    CAGE_LONG_TEXT = 24,  /* and one more for so many bytes of the longest text */
    CAGE_COMPILE = 1024 * 1024, /* bytes that compiling a body may take */
    CAGE_FUNCTIONS = 24,        /* room for the functions that are charged */
    CAGE_GARBAGE = 64 * 1024,   /* bytes that are not worth collecting */
    CAGE_PCALLS = 32            /* pcall within pcall */
};

struct cage_body {
    UT_hash_handle hh;
    char sha1[CAGE_SHA1 + 1];
    int ref;        /* its function in Lua's registry */
    size_t bytes;   /* that compiling it took */
    size_t longest; /* token: no text of its own is longer */
};

struct cage {
    lua_State *lua;
    struct cage_body *bodies; /* that which was used last stands last */
    int bodies_max;
    size_t bodies_bytes;
    int globals;                             /* the table of all globals in Lua's registry */
    lua_CFunction originals[CAGE_FUNCTIONS]; /* by row of cage_functions.c */

    size_t used, used_max; /* bytes; used_max: SIZE_MAX outside of runs */
    size_t allocated;      /* bytes that have not been charged yet */
    size_t taken;   /* bytes that have been allocated since the collector worked, freed or not */
    size_t longest; /* no text of this run has more bytes */
    size_t fresh;   /* the last thing that was done was to allocate this; else 0 */
    size_t longest_before; /* `longest` without it */
    bool texts_are_noted;  /* by the one who makes them: an allocation tells nothing of them */
    int hook_instructions; /* the hook is called after so many; 0: never */
    size_t table;          /* bytes of Lua's table of all texts */
    size_t collect_from;   /* from so many used bytes on, garbage is collected */

    /* of the run at hand */
    const struct cage_job *job;
    struct store_reply reply; /* of the call at hand */
    int64_t steps_left, steps_max;
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

/* Notes that the run has made a text of so many bytes. */
void cage_note_text(struct cage *, size_t len);

/* Begins to count: a run with a body whose texts are no longer than this, or the compiling of one.
 */
void cage_count(struct cage *, size_t longest);
void cage_count_compiling(struct cage *);
/* Ends the counting; frees some of what is no longer used. */
void cage_count_end(struct cage *);

/* Returns the compiled body; NULL: it is no Lua and the error has been added, or it is refused. */
const struct cage_body *cage_compile(struct cage *, const char *body, size_t len, const char *sha1,
                                     struct store_reply *out);
void cage_bodies_fini(struct cage *);

/* Counts the tokens of a body, never fewer than Lua sees, and the bytes of the longest one. */
int cage_tokens(const char *body, size_t len, size_t *longest);

/* Makes the globals of all scripts, in a new state. */
void cage_functions_open(struct cage *);
void cage_redis_open(lua_State *); /* pushes the table `redis`, unprotected */
/* Sets those functions of a library ("": globals) whose work grows with what they are given, in the
 * table on top; Lua's own stand in the one below. */
void cage_charges_open(struct cage *, const char *library);
/* Refuses more values than a call may give back, else charges them. */
void cage_charge_values(lua_State *, double n);
/* Checks that argument i is a table of the script's own: raises an error, or refuses. */
void cage_want_table(lua_State *, int i);
/* Replaces the table on top by one that looks the same but cannot be written. A field that it lacks
 * refuses the script when `library` has it in Redis. */
void cage_protect(lua_State *, const char *library);
/* Puts an empty table in place of the one on top: reads go to that one, writes are errors. */
void cage_hide(lua_State *);
/* Gives the value on top a metatable that has this function and nothing else. */
void cage_set_meta(lua_State *, const char *event, lua_CFunction);
/* Raises an error for a global that there is not, or refuses when Redis has it. An __index. */
int cage_on_missing_global(lua_State *);
/* Refuses when the table at i is a library, not the script's own. */
void cage_want_own(lua_State *, int i);
/* Sets KEYS and ARGV. */
void cage_set_words(lua_State *, const char *name, const struct resp_arg *words, int n);
