#pragma once
/*
 * naming: which server the Sentinels of a master name, and until when that counts (safety R17).
 * Pure: it is told the time.
 *
 *   NONE --a majority names A--> A --a majority names B--> B
 *     ^                          |                         |
 *     +--------------------------+-------------------------+
 *       no majority names it any more: some name another one, or their words are too old
 *
 * Each Sentinel has one word, its last. It counts for `timeout_ms` from the moment when the
 * question was sent: later the Sentinel may name another server, and whoever hears that takes that
 * one. So who hears no Sentinels stops to use a server `timeout_ms` after a majority could have
 * begun to name another, at the latest: every two majorities have a Sentinel in common, whose word
 * for the one was asked for before it named the other. Of all Sentinels that are configured,
 * whether they answer or not.
 */
#include <stdbool.h>
#include <stdint.h>

enum { NAMING_SENTINELS_MAX = 15, NAMING_HOST_MAX = 253 };

struct naming_address {
    char host[NAMING_HOST_MAX + 1];
    int port; /* 0: no server */
};

struct naming_word {
    struct naming_address address;
    int64_t asked_ms; /* when the question was sent that it answers */
};

struct naming {
    int n; /* Sentinels, all that are configured */
    int64_t timeout_ms;
    struct naming_word words[NAMING_SENTINELS_MAX];
    struct naming_address named; /* by a majority */
    int64_t until_ms;            /* it counts before this time; 0: none is named */
};

void naming_init(struct naming *, int n, int64_t timeout_ms);
/* Takes the word of Sentinel i: this address, or with port 0 no server. Returns true when `named`
 * has changed. */
bool naming_take(struct naming *, int i, const struct naming_address *, int64_t asked_ms,
                 int64_t now_ms);
/* Time has passed. Returns true when nobody is named any more. */
bool naming_pass(struct naming *, int64_t now_ms);
bool naming_is_same(const struct naming_address *, const struct naming_address *);
