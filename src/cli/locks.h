#ifndef HOLDFAST_LOCKS_H
#define HOLDFAST_LOCKS_H
/*
 * locks: the locks of a broker with what LOCKINFO says of each.
 */
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

/* Names that match the glob (NULL: all), at most max (0: no limit); with details, LOCKINFO of each.
 * 0, or -1 when the broker does not answer or refuses: then *error (if any) is its error, to be
 * freed, and the link's error is set otherwise. */
int locks_get(struct locks *locks, struct ask *a, const char *glob, size_t max, bool details,
              redisReply **error) MUST_CHECK;
void locks_fini(struct locks *locks);

/* Of a LOCKINFO: its first holder, NULL when it is free. */
const redisReply *locks_holder(const redisReply *info);
/* "held", "free", or "unknown": no holder is known, and fewer masters answer than would know. */
const char *locks_state(const redisReply *info);
/* How many masters there are, and how many of them say what they have. */
void locks_count_masters(const redisReply *info, size_t *n, size_t *n_answered);
bool locks_is_silent(const redisReply *says);
/* How many hold it, listed or not. */
int64_t locks_holding(const redisReply *info);
/* "exclusive", "shared 12", "limit 3/5", "-" when it is free; returns buf, which needs 64 bytes. */
enum { LOCKS_KIND_SIZE = 64 };
const char *locks_kind(char *buf, const redisReply *info);
/* That it is held through another broker, which alone knows since when. */
bool locks_is_elsewhere(const redisReply *holder);

struct json;
/* The members kind, limit and holding. */
void locks_put_kind(struct json *j, const redisReply *info);
#endif
