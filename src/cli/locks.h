#pragma once
/* locks: reads the locks of a broker, with LOCKINFO of each. */
#include <jansson.h>

#include "cli/ask.h"

struct locks_row {
    char *name;
    redisReply *info; /* the map of LOCKINFO; NULL: not asked for, or gone meanwhile */
};

struct locks {
    struct locks_row *v; /* by name */
    size_t n;
    bool more; /* there are more than max */
};

struct locks_wish {
    const char *glob;            /* of the names; NULL: all */
    size_t max;                  /* 0: no limit */
    bool details;                /* LOCKINFO of each */
    const redisReply *contended; /* of CONTENDED: these first; or NULL */
};

/* Reads the locks. -1: the broker refuses, then *error is its error, to be freed; or it does not
 * answer, then the link's error is set. */
int locks_get(struct locks *locks, struct link *link, const struct locks_wish *wish,
              redisReply **error) MUST_CHECK;
void locks_fini(struct locks *locks);

/* Returns the first holder in a reply to LOCKINFO; NULL: the lock is free. */
const redisReply *locks_holder(const redisReply *info);
/* Returns "held", "free", or "unknown": no holder is known, and so many masters do not say that it
 * is free that there may be one. */
const char *locks_state(const redisReply *info);
/* Counts the masters, and those of them that say what they have. */
void locks_count_masters(const redisReply *info, size_t *n, size_t *n_answered);
bool locks_is_silent(const redisReply *says);
/* Returns how many hold the lock, listed or not. */
int64_t locks_holding(const redisReply *info);
/* Writes "exclusive", "shared 12", "limit 3/5", or "-" when it is free; returns buf. */
enum { LOCKS_KIND_SIZE = 64 };
const char *locks_kind(char *buf, const redisReply *info);
/* Returns whether a holder holds through another broker, which alone knows since when. */
bool locks_is_elsewhere(const redisReply *holder);

/* Sets the members kind, limit and holding. */
void locks_add_kind(json_t *lock, const redisReply *info);
