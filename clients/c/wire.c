/*
 * The types that RESP3 has more are written as those of RESP2 that are read in the same way. All
 * but texts of a given length are lines, so the structure of a reply need not be known.
 */
#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { LINE_MAX_BYTES = 64 * 1024, ELEMENTS_MAX = 4096 };
#define BULK_MAX (INT64_C(64) * 1024 * 1024)

static int feed(struct wire *w, const char *text, size_t n)
{
    return redisReaderFeed(w->reader, text, n) == REDIS_OK ? 0 : -1;
}

static int feed_number(struct wire *w, const char *type, int64_t number)
{
    char text[40];
    int n = snprintf(text, sizeof text, "%s%" PRId64 "\r\n", type, number);
    return feed(w, text, (size_t)n);
}

static int feed_line(struct wire *w, char *line, size_t n)
{
    int64_t number = n > 1 ? strtoll(line + 1, NULL, 10) : 0;
    if (strchr("*%~>", line[0]) && (number < -1 || number > ELEMENTS_MAX))
        return -1;
    switch (line[0]) {
    case '$':
    case '=':
        if (number < -1 || number > BULK_MAX)
            return -1;
        w->bulk_left = number < 0 ? 0 : number + 2;
        return feed_number(w, "$", number);
    case '%':
        return feed_number(w, "*", 2 * number);
    case '~':
        return feed_number(w, "*", number);
    case '>':
        return feed_number(w, "*", number + 1) != 0 ? -1 : feed(w, "+>\r\n", 4);
    case '#':
        return feed_number(w, ":", line[1] == 't');
    case '_':
        return feed(w, "$-1\r\n", 5);
    case ',':
    case '(':
        line[0] = '+';
        break;
    default: /* as it is; what is no type at all the reader refuses */
        break;
    }
    return feed(w, line, n) != 0 ? -1 : feed(w, "\r\n", 2);
}

static int feed_text(struct wire *w, struct evbuffer *in)
{
    size_t n = evbuffer_get_contiguous_space(in);
    if ((int64_t)n > w->bulk_left)
        n = (size_t)w->bulk_left;
    if (feed(w, (const char *)evbuffer_pullup(in, (ev_ssize_t)n), n) != 0)
        return -1;
    w->bulk_left -= (int64_t)n;
    return evbuffer_drain(in, n);
}

static bool has_line(struct evbuffer *in)
{
    return evbuffer_search_eol(in, NULL, NULL, EVBUFFER_EOL_CRLF_STRICT).pos >= 0;
}

int wire_feed(struct wire *w, struct evbuffer *in)
{
    while (evbuffer_get_length(in) > 0) {
        if (w->bulk_left > 0) {
            if (feed_text(w, in) != 0)
                return -1;
            continue;
        }
        size_t n = 0;
        char *line = evbuffer_readln(in, &n, EVBUFFER_EOL_CRLF_STRICT);
        if (!line) /* not whole yet; or there is no memory for it */
            return evbuffer_get_length(in) > LINE_MAX_BYTES || has_line(in) ? -1 : 0;
        int bad = n == 0 ? -1 : feed_line(w, line, n);
        free(line);
        if (bad)
            return -1;
    }
    return 0;
}
