/* buf: growable bytes between a reader and a writer, consumed at the head and appended at the tail.
 *
 * All zero is an empty buf that owns no memory. Growing is amortised and never fails (memory that
 * is out ends the process); the caller bounds the length before it appends. Pointers into a buf
 * hold until the next call that appends, reserves or trims. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <string.h>

struct buf {
    char *data;
    size_t start, end; /* the bytes are data[start..end) */
    size_t cap;
};

static inline size_t buf_len(const struct buf *b)
{
    return b->end - b->start;
}

/* Returns the first byte; may be NULL when the buf is empty. */
static inline char *buf_head(const struct buf *b)
{
    return b->data == NULL ? NULL : b->data + b->start;
}

char *buf_make_room(struct buf *b, size_t n); /* for buf_reserve() alone */

/* Makes room for at least n more bytes (in all: cap - end) and returns where they go. They count
 * only once they are committed. */
static inline char *buf_reserve(struct buf *b, size_t n)
{
    return b->data && b->cap - b->end >= n ? b->data + b->end : buf_make_room(b, n);
}

/* Counts n bytes that were written behind the end; at most as many as were reserved. */
static inline void buf_commit(struct buf *b, size_t n)
{
    assert(n <= b->cap - b->end);
    b->end += n;
}

/* Appends a copy of n bytes; p must not point into b. */
static inline void buf_append(struct buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    memcpy(buf_reserve(b, n), p, n);
    b->end += n;
}

static inline void buf_append_str(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

/* For what is not in the way of every lock: it takes some ten times as long as appending. */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Drops all bytes and keeps the memory. */
static inline void buf_clear(struct buf *b)
{
    b->start = b->end = 0;
}

/* Drops n <= buf_len bytes at the head. */
void buf_consume(struct buf *b, size_t n);

/* Gives the memory back when the buf is empty: idle connections should cost nothing. */
void buf_trim(struct buf *b);

/* Drops the bytes and the memory; the buf is empty and usable. */
void buf_fini(struct buf *b);
