/* The writers of replies. Owns the exact bytes of RESP2 and RESP3 and that a reply is one reply,
 * whatever text it carries; does not know who reads it. What RESP2 lacks becomes what Redis sends
 * there: a map is a flat array, a push an array, a double or a verbatim text a bulk string, a
 * boolean an integer. */
#include "net/resp.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"

/* "*" or the like, 20 characters of int64_t, CR LF. */
enum { NUMBER_MAX = 24 };

static void write_number(struct resp_writer *w, char type, int64_t value)
{
    char *begin = buf_reserve(w->out, NUMBER_MAX), *p = begin;

    *p++ = type;
    if (value < 0)
        *p++ = '-';
    p = util_put_digits(p, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    *p++ = '\r';
    *p++ = '\n';
    buf_commit(w->out, (size_t)(p - begin));
}

/* Writes a header of n elements: as `resp3` says in RESP3, as `resp2` in RESP2. */
static void write_header(struct resp_writer *w, char resp2, char resp3, size_t n)
{
    write_number(w, w->proto >= 3 ? resp3 : resp2, (int64_t)n);
}

/* Makes len bytes that were written behind the end of `out` part of it, as one line. */
static void commit_line(struct resp_writer *w, char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] == '\r' || p[i] == '\n' || p[i] == '\0')
            p[i] = ' ';
    p[len] = '\r';
    p[len + 1] = '\n';
    buf_commit(w->out, len + 2);
}

void resp_simple(struct resp_writer *w, const char *text)
{
    size_t len = strlen(text);
    char *p = buf_reserve(w->out, len + 3);

    p[0] = '+';
    memcpy(p + 1, text, len);
    commit_line(w, p, len + 1);
}

void resp_error(struct resp_writer *w, const char *fmt, ...)
{
    size_t room = 128; /* most errors */

    for (;;) {
        char *p = buf_reserve(w->out, room + 3);
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(p + 1, room, fmt, ap);
        va_end(ap);
        size_t len = n < 0 ? 0 : (size_t)n;
        if (len < room) {
            p[0] = '-';
            commit_line(w, p, len + 1);
            return;
        }
        room = len + 1;
    }
}

void resp_int(struct resp_writer *w, int64_t value)
{
    write_number(w, ':', value);
}

void resp_bulk(struct resp_writer *w, const void *ptr, size_t len)
{
    write_number(w, '$', (int64_t)len);
    buf_append(w->out, ptr, len);
    buf_append(w->out, "\r\n", 2);
}

void resp_str(struct resp_writer *w, const char *text)
{
    resp_bulk(w, text, strlen(text));
}

void resp_pair_int(struct resp_writer *w, const char *key, int64_t value)
{
    resp_str(w, key);
    resp_int(w, value);
}

void resp_pair_str(struct resp_writer *w, const char *key, const char *text)
{
    resp_str(w, key);
    resp_str(w, text);
}

void resp_bool(struct resp_writer *w, bool value)
{
    if (w->proto >= 3)
        buf_append(w->out, value ? "#t\r\n" : "#f\r\n", 4);
    else
        resp_int(w, value);
}

void resp_double(struct resp_writer *w, double value)
{
    char text[32];
    int len;

    if (isnan(value)) {
        len = snprintf(text, sizeof text, "nan"); /* the C library would add a sign to some */
    } else {
        len = snprintf(text, sizeof text, "%.15g", value);
        if (strtod(text, NULL) != value)
            len = snprintf(text, sizeof text, "%.17g", value);
    }
    if (w->proto < 3) {
        resp_bulk(w, text, (size_t)len);
        return;
    }
    buf_append(w->out, ",", 1);
    buf_append(w->out, text, (size_t)len);
    buf_append(w->out, "\r\n", 2);
}

void resp_null(struct resp_writer *w)
{
    if (w->proto >= 3)
        buf_append(w->out, "_\r\n", 3);
    else
        buf_append(w->out, "$-1\r\n", 5);
}

void resp_null_array(struct resp_writer *w)
{
    if (w->proto >= 3)
        buf_append(w->out, "_\r\n", 3);
    else
        buf_append(w->out, "*-1\r\n", 5);
}

void resp_verbatim(struct resp_writer *w, const char *format, const void *ptr, size_t len)
{
    if (w->proto < 3) {
        resp_bulk(w, ptr, len);
        return;
    }
    write_number(w, '=', (int64_t)len + 4);
    buf_append(w->out, format, 3);
    buf_append(w->out, ":", 1);
    buf_append(w->out, ptr, len);
    buf_append(w->out, "\r\n", 2);
}

void resp_array(struct resp_writer *w, size_t n)
{
    write_header(w, '*', '*', n);
}

void resp_map(struct resp_writer *w, size_t npairs)
{
    write_header(w, '*', '%', w->proto >= 3 ? npairs : npairs * 2);
}

void resp_set(struct resp_writer *w, size_t n)
{
    write_header(w, '*', '~', n);
}

void resp_push(struct resp_writer *w, size_t n)
{
    write_header(w, '*', '>', n);
}
