/*
 * Replies, looked at as a strict client would: where one ends and the next one begins, without any
 * of the code that has written them. It does not know what they mean.
 *
 * No byte from `end` on is read.
 */
#include "resp_value.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16 };

/* What is behind the line at p; NULL: there is none. */
static const char *line_end(const char *p, const char *end)
{
    const char *lf = memchr(p, '\n', (size_t)(end - p));

    if (!lf || lf == p || lf[-1] != '\r' || memchr(p, '\r', (size_t)(lf - 1 - p)) ||
        memchr(p, '\0', (size_t)(lf - p)))
        return NULL;
    return lf + 1;
}

static const char *bulk_end(const char *p, const char *end, long n)
{
    return n + 2 <= end - p && p[n] == '\r' && p[n + 1] == '\n' ? p + n + 2 : NULL;
}

static const char *value_end(const char *p, const char *end, int depth)
{
    const char *next = line_end(p, end);

    if (!next || depth == DEPTH_MAX)
        return NULL;
    long n = strtol(p + 1, NULL, 10);
    switch (*p) {
    case '+':
    case '-':
    case ':':
    case '_':
    case ',':
    case '#':
        return next;
    case '$':
    case '=':
        return n < 0 ? next : bulk_end(next, end, n);
    case '*':
    case '%':
    case '>':
    case '~':
        for (long left = *p == '%' ? 2 * n : n; next && left > 0; left--)
            next = value_end(next, end, depth + 1);
        return next;
    default:
        return NULL;
    }
}

const char *resp_value_end(const char *p, const char *end)
{
    return value_end(p, end, 0);
}
