#pragma once
/*
 * libraries: connections and commands by client library, as CLIENT SETINFO LIB-NAME says it, for
 * INFO and the metrics. Names come from strangers: there are at most LIBRARIES_MAX of them, each
 * made of characters that need no escape, without what some libraries put behind in brackets
 * ("go-redis(,go1.21)"). A library is known by its number, which never changes.
 */
#include <stddef.h>
#include <stdint.h>

enum {
    LIBRARIES_MAX = 32, /* names; beyond these all are LIBRARY_OTHER */
    LIBRARY_UNKNOWN = 0,
    LIBRARY_OTHER = LIBRARIES_MAX + 1,
    LIBRARY_NAME_MAX = 32
};

struct library {
    char name[LIBRARY_NAME_MAX + 1];
    int64_t connections; /* now */
    uint64_t commands;
};

/* Returns the number of this name, which may be new; LIBRARY_UNKNOWN for "". */
uint8_t library_find(const char *name, size_t len);

/* A connection is of the library `to` from now on; it was of `from`. -1: there was, or is, none. */
void library_move(int from, int to);
void library_count(uint8_t library); /* a command of it */

/* Returns the i-th one that has a connection or a command; NULL: there are no more. */
const struct library *library_row(size_t i);
/* Sets the counts of commands to 0 (CONFIG RESETSTAT). */
void libraries_reset(void);
