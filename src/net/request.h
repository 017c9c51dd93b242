#pragma once
/*
 * request: writes what a Redis server is asked: an array of bulk strings, at the tail of a buf.
 *
 *     request_array(out, 3);            *3
 *     request_words(...)                or this, for a command without blanks in its words
 *     request_text(out, "AUTH", 4);     $4 AUTH
 *
 * The caller writes as many strings behind request_array() as it has said there.
 */
#include <stddef.h>
#include <stdint.h>

struct buf;

void request_array(struct buf *, int64_t n);
void request_text(struct buf *, const char *text, size_t len);
void request_str(struct buf *, const char *text);
void request_int(struct buf *, int64_t n);
/* A whole request: the words of `words`, with one blank between them. */
void request_words(struct buf *, const char *words);
/* A whole request: these strings. */
void request_strings(struct buf *, int n, const char *const strings[]);
/* AUTH; user may be NULL. */
void request_auth(struct buf *, const char *user, const char *password);
/* A string of `len` bytes, which the caller writes where this points to, at once. */
char *request_room(struct buf *, size_t len);
