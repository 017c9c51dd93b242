/*
 * Invariant: what is in `out` becomes a JSON text by closing what is open.
 */
#include "cli/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

/* Appends a character as \uXXXX, in UTF-16. */
static void put_escaped(struct json *j, uint32_t c)
{
    if (c < 0x10000)
        buf_printf(j->out, "\\u%04x", (unsigned)c);
    else
        buf_printf(j->out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                   (unsigned)(0xdc00 | (c & 0x3ff)));
}

static void put_quoted(struct json *j, const char *text, size_t len)
{
    static const char plain[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    buf_append(j->out, "\"", 1);
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        uint32_t number;
        size_t n = utf8_read(text + i, len - i, &number);
        const char *known = NULL;
        for (const char *p = plain; *p && !known; p += 2)
            known = (unsigned char)*p == c ? p : NULL;
        if (n == 0)
            buf_append(j->out, "\\ufffd", 6);
        else if (known)
            buf_printf(j->out, "\\%c", known[1]);
        else if (!utf8_is_plain(number))
            put_escaped(j, number);
        else
            buf_append(j->out, text + i, n);
        i += n ? n : 1;
    }
    buf_append(j->out, "\"", 1);
}

static void begin_value(struct json *j, const char *key)
{
    if (j->comma)
        buf_append(j->out, ", ", 2);
    if (key) {
        put_quoted(j, key, strlen(key));
        buf_append(j->out, ": ", 2);
    }
    j->comma = true;
}

static void open_nested(struct json *j, const char *key, const char *opener, char closer)
{
    assert(j->depth < JSON_DEPTH_MAX);
    begin_value(j, key);
    buf_append(j->out, opener, 1);
    j->closers[j->depth++] = closer;
    j->comma = false;
}

void json_object(struct json *j, const char *key)
{
    open_nested(j, key, "{", '}');
}

void json_array(struct json *j, const char *key)
{
    open_nested(j, key, "[", ']');
}

void json_close(struct json *j)
{
    assert(j->depth > 0);
    buf_append(j->out, &j->closers[--j->depth], 1);
    j->comma = true;
    if (j->depth == 0)
        buf_append(j->out, "\n", 1);
}

void json_text(struct json *j, const char *key, const char *text, size_t len)
{
    begin_value(j, key);
    put_quoted(j, text, len);
}

void json_string(struct json *j, const char *key, const char *text)
{
    json_text(j, key, text, strlen(text));
}

void json_int(struct json *j, const char *key, int64_t n)
{
    begin_value(j, key);
    buf_printf(j->out, "%" PRId64, n);
}

void json_double(struct json *j, const char *key, double n, int decimals)
{
    begin_value(j, key);
    buf_printf(j->out, "%.*f", decimals, n);
}

void json_bool(struct json *j, const char *key, bool yes)
{
    begin_value(j, key);
    buf_printf(j->out, "%s", yes ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
    begin_value(j, key);
    buf_append(j->out, "null", 4);
}
