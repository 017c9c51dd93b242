/* Growable bytes.
 *
 * Owns one block per buf, or none; one of the smallest size comes from the pool, as most texts of
 * a request fit into it. Does not know what the bytes are, nor any bound on them.
 * Invariants: start <= end <= cap; data is NULL exactly when cap is 0; an empty buf starts at 0.
 * Bytes are moved only when at least as many were consumed or appended since the last move, so
 * each is moved a constant number of times on average. */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/util.h"

#define SMALLEST 256 /* bytes of the first block: most commands and replies fit */

static void free_block(struct buf *b)
{
    if (b->cap == SMALLEST)
        pool_put(b->data, SMALLEST);
    else
        free(b->data);
}

static void grow(struct buf *b, size_t n)
{
    size_t len = buf_len(b);
    if (n > SIZE_MAX / 4 - len)
        util_die("out of memory: cannot get %zu more bytes", n);
    size_t cap = b->cap * 2;
    if (cap < len + n)
        cap = len + n;
    if (cap < SMALLEST)
        cap = SMALLEST;
    if (b->start == 0 && b->cap > SMALLEST) {
        b->data = util_realloc(b->data, cap);
    } else {
        char *data = cap == SMALLEST ? pool_get(cap) : util_realloc(NULL, cap);
        if (b->data)
            memcpy(data, b->data + b->start, len);
        free_block(b);
        b->data = data;
    }
    b->start = 0;
    b->end = len;
    b->cap = cap;
}

char *buf_make_room(struct buf *b, size_t n)
{
    size_t len = buf_len(b);
    if (b->data != NULL && len <= b->start && b->cap - len >= n) {
        memcpy(b->data, b->data + b->start, len); /* no overlap: len <= start */
        b->start = 0;
        b->end = len;
    } else {
        grow(b, n);
    }
    return b->data + b->end;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t room = b->cap - b->end;
    int n = vsnprintf(room > 0 ? b->data + b->end : NULL, room, fmt, ap);
    assert(n >= 0);
    if ((size_t)n >= room)
        vsnprintf(buf_reserve(b, (size_t)n + 1), (size_t)n + 1, fmt, again);
    b->end += (size_t)n;
    va_end(again);
    va_end(ap);
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= buf_len(b));
    b->start += n;
    if (b->start == b->end)
        b->start = b->end = 0;
}

void buf_trim(struct buf *b)
{
    if (b->start == b->end)
        buf_fini(b);
}

void buf_fini(struct buf *b)
{
    free_block(b);
    *b = (struct buf){0};
}
