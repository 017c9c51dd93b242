/*
 * Bytes of requests. put_string() is the one place that knows how a string is written; it is in the
 * way of every lock, so it asks the buf for room once.
 */
#include "net/request.h"

#include <string.h>

#include "base/buf.h"
#include "base/util.h"

enum { HEAD_MAX = 24 }; /* "*" or "$", 20 digits, CR LF */

/* "*" or "$", the digits, CR LF; returns what is behind. */
static char *put_head(char *to, char type, size_t n)
{
    *to++ = type;
    to = util_put_digits(to, n);
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

void request_array(struct buf *out, int64_t n)
{
    char *begin = buf_reserve(out, HEAD_MAX);
    buf_commit(out, (size_t)(put_head(begin, '*', (size_t)n) - begin));
}

/* All of a string but its bytes; returns where they go. */
static inline char *put_string(struct buf *out, size_t len)
{
    char *begin = buf_reserve(out, HEAD_MAX + len + 2);
    char *room = put_head(begin, '$', len);
    room[len] = '\r';
    room[len + 1] = '\n';
    buf_commit(out, (size_t)(room + len + 2 - begin));
    return room;
}

char *request_room(struct buf *out, size_t len)
{
    return put_string(out, len);
}

void request_text(struct buf *out, const char *text, size_t len)
{
    memcpy(put_string(out, len), text, len);
}

void request_str(struct buf *out, const char *text)
{
    request_text(out, text, strlen(text));
}

void request_int(struct buf *out, int64_t n)
{
    char text[24], *end = text + sizeof text;
    char *p = util_digits(end, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
    if (n < 0)
        *--p = '-';
    request_text(out, p, (size_t)(end - p));
}

void request_words(struct buf *out, const char *words)
{
    int n = 1;
    for (const char *p = words; *p; p++)
        n += *p == ' ';
    request_array(out, n);
    for (const char *p = words; n > 0; n--) {
        size_t len = strcspn(p, " ");
        request_text(out, p, len);
        p += len + 1;
    }
}

void request_strings(struct buf *out, int n, const char *const strings[])
{
    request_array(out, n);
    for (int i = 0; i < n; i++)
        request_str(out, strings[i]);
}

void request_auth(struct buf *out, const char *user, const char *password)
{
    request_strings(out, user ? 3 : 2,
                    (const char *const[]){"AUTH", user ? user : password, password});
}
