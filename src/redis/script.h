#pragma once
/*
 * script: the table of Lua scripts, made from src/redis/lua at build time. The first comment of
 * each script says what it does, what it takes and what it replies; nothing else does.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "redis/codes.h"

enum script {
#define SCRIPT(id, ...) SCRIPT_##id,
#include "redis/script_rows.h"
    SCRIPT_COUNT
};

enum { SCRIPT_WIDTH_MAX = 8, SCRIPT_NO_MIRROR = -1 };
enum { SCRIPT_HEAD = 3 }; /* arguments before those of the items: deadline, call, broker */

struct script_row {
    const char *name;
    const char *text;
    const char *mirror_text;    /* for brokers that mirror (R23) */
    int items_max;              /* items in one call; 0: takes no items (join, activate, suspend) */
    int args;                   /* arguments an item */
    int width;                  /* integers an item in the reply; 0: an array an item */
    int32_t code_min, code_max; /* bounds of the first of these integers */
    bool deadline;              /* refuses to run late */
    bool any_counts;            /* each answer is a vote for, whatever its code */
    bool gives_token;           /* with CODE_YES the second integer is a token */
    bool floors;                /* floors and counters stand behind its items: see acquire.lua */
    bool texts;                 /* a text stands behind the integers of each item in the reply */
    /* May answer in brief when each item is 1 and the rest zeros: a text of the server's time in s
     * and us and the number of the call; with `floors` and of one number more, the second of each
     * item. */
    bool brief;
};

extern const struct script_row script_rows[SCRIPT_COUNT];

static inline const struct script_row *script_get(enum script script)
{
    assert(script < SCRIPT_COUNT);
    return &script_rows[script];
}

/* Tells whether the second integer of an answer that has this code is a token. */
static inline bool script_has_token(enum script script, int64_t code)
{
    return script_get(script)->gives_token &&
           (code == CODE_YES || (script == SCRIPT_COMMIT && code == COMMIT_LARGER));
}

/* Tells whether it is for masters in quarantine too: what plants, renews (safety R14), ends, or
 * only looks. */
static inline bool script_runs_in_quarantine(enum script script)
{
    return script == SCRIPT_PLANT || script == SCRIPT_REPLANT || script == SCRIPT_RENEW ||
           !script_get(script)->deadline;
}

/* What the text of a script depends on. */
struct script_place {
    const char *run_id;   /* of the server that it is loaded on (safety R5): in another run of the
                           * server the text has another digest, and the script cannot run */
    const char *settings; /* digest of the broker's (R6), which the script compares with the digest
                           * of those in force */
    int mirror_db;        /* the database that holds are in, for a broker that mirrors; else
                           * SCRIPT_NO_MIRROR */
    bool in_partition;    /* the last of KEYS is partition_at() of a partition (partition.h), behind
                           * the    items, and names the keys that these share */
};

/* Returns the text to load there. Heap, the caller frees it. */
char *script_text(enum script, const struct script_place *);
