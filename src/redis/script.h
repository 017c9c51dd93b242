#ifndef HOLDFAST_SCRIPT_H
#define HOLDFAST_SCRIPT_H
/*
 * script: the table of Lua scripts, made from src/redis/lua at build time. What each one does, its
 * arguments and its replies stand in its first comment, nowhere else.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

enum script {
    SCRIPT_ACQUIRE,
    SCRIPT_COMMIT,
    SCRIPT_TAKEOVER,
    SCRIPT_RENEW,
    SCRIPT_PLANT,
    SCRIPT_RELEASE,
    SCRIPT_LINE,
    SCRIPT_PASS,
    SCRIPT_PEEK,
    SCRIPT_JOIN,
    SCRIPT_ACTIVATE,
    SCRIPT_SUSPEND,
    SCRIPT_COUNT
};

enum { SCRIPT_WIDTH_MAX = 8 };

struct script_row {
    const char *name;
    const char *text;
    int head;      /* arguments before those of the items: deadline, call, broker, and its own */
    int args;      /* arguments an item; 0: no items (join, activate, suspend) */
    int width;     /* integers an item in the reply; 0: an array an item */
    bool deadline; /* refuses to run late */
    /* May answer in brief when each item is 1 and the rest zeros: a text of the server's time in s
     * and us and the number of the call; acquire: and of one number more, the second of each item.
     */
    bool brief;
};

extern const struct script_row script_rows[SCRIPT_COUNT];

static inline const struct script_row *script_get(enum script script)
{
    assert(script < SCRIPT_COUNT);
    return &script_rows[script];
}

/* The text to load on the master with this run_id (safety R5): in another run of the server it has
 * another digest and cannot run. `settings`: the digest of the broker's (R6), which it compares
 * with that of those in force. Heap, the caller frees it. */
char *script_text(enum script, const char *run_id, const char *settings);
#endif
