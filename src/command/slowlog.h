#pragma once
/*
 * slowlog: the last requests that took long.
 *
 * Bounded in every direction: SLOWLOG_LEN entries of SLOWLOG_ARGS words of SLOWLOG_ARG_LEN bytes.
 */
#include <stdbool.h>
#include <stdint.h>

#include "net/resp.h"

enum {
    SLOWLOG_LEN = 128,
    SLOWLOG_THRESHOLD_US = 10000,
    SLOWLOG_ARGS = 8,      /* more are one word: "... (n more arguments)" */
    SLOWLOG_ARG_LEN = 128, /* longer ones are cut: "... (n more bytes)" */
};

struct slowlog_entry {
    int64_t id; /* from 0, never used again */
    int64_t wall_ms;
    int64_t duration_us;
    int argc;
    char *argv[SLOWLOG_ARGS]; /* text; NULs of the request are shown as '?' */
    char *peer, *name;        /* address and CLIENT SETNAME of who sent it, "" for none */
};

/* Adds one, drops the oldest when it is full. `secret`: all words but the first are redacted.
 * `name` may be NULL. */
void slowlog_add(int64_t wall_ms, int64_t duration_us, int argc, const struct resp_arg *argv,
                 bool secret, const char *peer, const char *name);

uint32_t slowlog_count(void);
const struct slowlog_entry *slowlog_get(uint32_t i); /* 0: the newest; i < slowlog_count() */
void slowlog_reset(void);                            /* frees everything; ids go on */
