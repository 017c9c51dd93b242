#pragma once
/* lostlog: the last locks that were lost, for the status page. The log names all of them. */
#include <stddef.h>
#include <stdint.h>

enum {
    LOSTLOG_LEN = 20,
    LOSTLOG_NAME = 128 /* bytes of a name that are kept */
};

struct lostlog_entry {
    int64_t at_ms; /* BOOTTIME, as everything in the middle */
    int64_t held_ms;
    int64_t token;
    uint64_t client;    /* id of the connection that held it; 0: it was gone by then */
    const char *reason; /* static text */
    size_t name_len;    /* of the whole name */
    char name[LOSTLOG_NAME];
};

/* Adds an entry, and drops the oldest of LOSTLOG_LEN. `at_ms` is now, `name` is copied. */
void lostlog_add(const struct lostlog_entry *, const char *name, size_t name_len);

size_t lostlog_count(void);
const struct lostlog_entry *lostlog_get(size_t i); /* 0: the newest; i < lostlog_count() */
