#ifndef HOLDFAST_JSON_H
#define HOLDFAST_JSON_H
/*
 * json: writes one JSON text (RFC 8259) to a buf. Keys are NULL within arrays. Bytes that are no
 * UTF-8 come out as U+FFFD.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum { JSON_DEPTH_MAX = 8 };

/* All zero but `out` at the start. */
struct json {
    struct buf *out;
    char closers[JSON_DEPTH_MAX];
    int depth;
    bool comma; /* something stands before what comes next */
};

void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_close(struct json *j); /* ends the innermost object or array; after the last: a newline */

void json_text(struct json *j, const char *key, const char *text, size_t len);
void json_string(struct json *j, const char *key, const char *text);
void json_int(struct json *j, const char *key, int64_t n);
void json_double(struct json *j, const char *key, double n, int decimals);
void json_bool(struct json *j, const char *key, bool yes);
void json_null(struct json *j, const char *key);
#endif
