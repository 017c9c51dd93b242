#pragma once
/*
 * reply: what a Redis server says (RESP2), read by hiredis into memory that is used again.
 *
 * The server may be hostile: a header announces and allocates nothing, and each reply is bounded in
 * elements, depth and bytes. Whatever is beyond a bound, or no RESP2, ends the reader for good: it
 * says why, and the link is to be dropped.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/util.h"

struct redisReader;

enum {
    REPLY_VALUES_MAX = 1280, /* values in one reply, arrays and their elements */
    REPLY_DEPTH_MAX = 2,     /* an array, and arrays in it */
    REPLY_FEED_MAX = 16384,  /* bytes for one reply_feed() */
    REPLY_WORDS_MAX = 200    /* of an error text as people may see it */
};

enum reply_type { REPLY_NIL, REPLY_INTEGER, REPLY_TEXT, REPLY_STATUS, REPLY_ERROR, REPLY_ARRAY };

/* Values stand in the order of the wire: an array, then its elements, each followed by its own. */
struct reply_value {
    uint8_t type;     /* enum reply_type */
    uint8_t depth;    /* 0: the reply itself */
    int64_t integer;  /* REPLY_INTEGER: the number; REPLY_ARRAY: how many elements */
    size_t text, len; /* REPLY_TEXT, _STATUS, _ERROR: where in the texts; see reply_text() */
};

struct reply {
    struct redisReader *reader;
    struct reply_value *values;
    int count, cap;
    struct buf texts;  /* each text, with a NUL behind it */
    size_t unfinished; /* bytes that came and belong to no finished reply */
    size_t max_bytes;  /* of one reply */
    bool handed_out;   /* values are those of a finished reply */
    const char *error; /* why the reader has ended; NULL: it has not */
};

/* Begins for a new connection. One that is in use drops what it held and keeps its memory. */
void reply_start(struct reply *, size_t max_bytes);
/* Frees its memory; also of one that is all zero. */
void reply_fini(struct reply *);

enum reply_result { REPLY_MORE, REPLY_READY, REPLY_BROKEN };

/* Takes up to REPLY_FEED_MAX bytes. Then call reply_next() until it is not REPLY_READY. */
void reply_feed(struct reply *, const char *data, size_t len);

/* Reads the next reply. REPLY_READY: values[0] and what follows are one reply, until the next call
 * here. REPLY_BROKEN: `error` says why. */
enum reply_result reply_next(struct reply *);

/* Returns a text, with a NUL behind it that does not count. It may hold any bytes. */
static inline const char *reply_text(const struct reply *r, const struct reply_value *v)
{
    return buf_head(&r->texts) + v->text;
}

/* Returns true for a status or text with just these words. */
bool reply_is_text(const struct reply *, const struct reply_value *, const char *words);

/* Returns true for an error with this code, its first word. */
bool reply_is_error(const struct reply *, const struct reply_value *, const char *code);

/* Writes a text as people may see it: printable ASCII, anything else as \xNN, cut to the room.
 * Returns out. */
char *reply_words(char *out, size_t size, const char *text, size_t len);
