/* The parser of what clients send. Owns where one connection stands in its stream; does not know
 * sockets, commands or what the arguments mean.
 *
 * How it stays linear and small. The parser remembers one offset, pos, up to which all has been
 * checked, and the length of the argument that begins there. A call goes on from there, so of an
 * incomplete request no byte is looked at twice but those of an unfinished header (HEADER_MAX), and
 * of an unfinished argument none at all. Where the arguments lie is noted in the scratch on the
 * way. The scratch is everybody's, so when a request took more than one call the notes are lost,
 * and its headers, all there and all checked, are walked once more. Two passes over a request at
 * most, then, and nothing to keep for a connection but struct resp_parser.
 *
 * Invariants: a verdict depends on the first bytes up to where it is found and never on where the
 * calls cut them. Memory grows with the arguments that came, not with the number a header claims.
 */
#include "net/resp.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* Type, count, CR: no count that we take is longer. */
enum { HEADER_MAX = 32 };

enum header { HEADER_OK, HEADER_MORE, HEADER_BAD, HEADER_LONG };

void resp_scratch_fini(struct resp_scratch *scratch)
{
    free(scratch->argv);
    free(scratch->text);
    memset(scratch, 0, sizeof *scratch);
}

static void scratch_put(struct resp_scratch *scratch, int i, const char *ptr, size_t len)
{
    if ((size_t)i == scratch->argv_cap) {
        scratch->argv_cap = scratch->argv_cap ? scratch->argv_cap * 2 : 16;
        scratch->argv = util_realloc(scratch->argv, scratch->argv_cap * sizeof *scratch->argv);
    }
    scratch->argv[i] = (struct resp_arg){ptr, len};
}

static char *scratch_text(struct resp_scratch *scratch, size_t len)
{
    if (len > scratch->text_cap || !scratch->text) {
        scratch->text_cap = len < 256 ? 256 : len;
        scratch->text = util_realloc(scratch->text, scratch->text_cap);
    }
    return scratch->text;
}

/* Goes to the start of a request. */
static void parser_rewind(struct resp_parser *parser)
{
    parser->pos = 0;
    parser->args_want = -1;
    parser->args_got = 0;
    parser->arg_len = -1;
    parser->too_large = -1;
    parser->dropped = 0;
}

void resp_parser_init(struct resp_parser *parser, const struct resp_limits *limits)
{
    *parser = (struct resp_parser){.limits = limits};
    parser_rewind(parser);
}

__attribute__((format(printf, 3, 4))) static enum resp_result
parser_fail(struct resp_parser *parser, struct resp_scratch *scratch, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(scratch->error, sizeof scratch->error, fmt, ap);
    va_end(ap);
    parser->error = scratch->error;
    return RESP_ERROR;
}

/* Names a limit in an error, with what has to stand before its value. */
#define LIMIT(limits, option)                                                                      \
    ((limits)->of_strangers ? "the limit before authentication, " : option " ")

/* ---- multibulk ---- */

/* Reads "<type>count\r\n" at p; the type has been looked at. As strict as Redis (no '+', no blank,
 * no leading zero, no "-0") and stricter about the line end: an LF alone or a CR alone is
 * HEADER_BAD. */
static inline enum header read_header(const char *p, size_t len, int64_t *count, size_t *used)
{
    /* Nearly all counts have one digit: this saves a third of the time. */
    if (len >= 4 && p[1] >= '0' && p[1] <= '9' && p[2] == '\r' && p[3] == '\n') {
        *count = p[1] - '0';
        *used = 4;
        return HEADER_OK;
    }

    size_t max = len < HEADER_MAX ? len : HEADER_MAX;
    size_t first = max > 1 && p[1] == '-' ? 2 : 1;
    size_t i = first;
    int64_t value = 0;

    for (; i < max && p[i] >= '0' && p[i] <= '9'; i++)
        if (value <= INT_MAX) /* stays above it from there on, and cannot overflow */
            value = value * 10 + (p[i] - '0');
    if (i >= max)
        return max == HEADER_MAX ? HEADER_LONG : HEADER_MORE;
    if (p[i] != '\r' || i == first || value > INT_MAX)
        return HEADER_BAD;
    if (p[first] == '0' && i > 2)
        return HEADER_BAD;
    if (i + 1 == len)
        return HEADER_MORE;
    if (p[i + 1] != '\n')
        return HEADER_BAD;
    *count = first == 2 ? -value : value;
    *used = i + 2;
    return HEADER_OK;
}

/* Returns RESP_REQUEST for "go on", as does the next one. */
static enum resp_result read_multibulk_header(struct resp_parser *parser,
                                              struct resp_scratch *scratch, const char *data,
                                              size_t len)
{
    int64_t count = 0;
    size_t used = 0;

    switch (read_header(data, len, &count, &used)) {
    case HEADER_MORE:
        return RESP_MORE;
    case HEADER_BAD:
        return parser_fail(parser, scratch, "invalid multibulk length");
    case HEADER_LONG:
        return parser_fail(parser, scratch, "too big mbulk count string");
    case HEADER_OK:
        break;
    }
    if (count > 0 && (size_t)count > parser->limits->max_args)
        return parser_fail(parser, scratch, "invalid multibulk length: %lld is over %s%zu",
                           (long long)count, LIMIT(parser->limits, "max_request_args"),
                           parser->limits->max_args);
    parser->args_want = count > 0 ? (int)count : 0;
    parser->pos = used;
    return RESP_REQUEST;
}

/* What is too large of a stranger closes the connection. */
static enum resp_result fail_too_large(struct resp_parser *parser, struct resp_scratch *scratch,
                                       int64_t count)
{
    const struct resp_limits *limits = parser->limits;

    if ((size_t)count > limits->max_arg_len)
        return parser_fail(parser, scratch, "invalid bulk length: %lld is over %s%zu",
                           (long long)count, LIMIT(limits, "max_arg_len"), limits->max_arg_len);
    return parser_fail(parser, scratch, "too big request: over %s%zu", LIMIT(limits, "max_request"),
                       limits->max_request_len);
}

static enum resp_result refuse_too_large(struct resp_parser *parser, struct resp_scratch *scratch,
                                         int64_t count)
{
    const struct resp_limits *limits = parser->limits;

    if ((size_t)count > limits->max_arg_len)
        (void)parser_fail(parser, scratch, "an argument of %lld bytes is over max_arg_len %zu",
                          (long long)count, limits->max_arg_len);
    else
        (void)parser_fail(parser, scratch, "it is over max_request %zu", limits->max_request_len);
    return RESP_REFUSED;
}

static enum resp_result read_bulk_header(struct resp_parser *parser, struct resp_scratch *scratch,
                                         const char *p, size_t len)
{
    const struct resp_limits *limits = parser->limits;
    int64_t count = 0;
    size_t used = 0;

    if (len == 0)
        return RESP_MORE;
    if (p[0] != '$') {
        if (p[0] >= ' ' && p[0] <= '~')
            return parser_fail(parser, scratch, "expected '$', got '%c'", p[0]);
        return parser_fail(parser, scratch, "expected '$', got '\\x%02x'", (unsigned char)p[0]);
    }
    switch (read_header(p, len, &count, &used)) {
    case HEADER_MORE:
        return RESP_MORE;
    case HEADER_BAD:
        return parser_fail(parser, scratch, "invalid bulk length");
    case HEADER_LONG:
        return parser_fail(parser, scratch, "too big bulk count string");
    case HEADER_OK:
        break;
    }
    if (count < 0)
        return parser_fail(parser, scratch, "invalid bulk length");
    size_t end = parser->dropped + parser->pos + used + (size_t)count + 2;
    bool is_larger = (size_t)count > limits->max_arg_len || end > limits->max_request_len;
    if (is_larger && limits->of_strangers)
        return fail_too_large(parser, scratch, count);
    if (is_larger && parser->too_large < 0)
        parser->too_large = count;
    if (is_larger && end > RESP_DROPPED_MAX)
        return parser_fail(parser, scratch, "too big request: over %d bytes", RESP_DROPPED_MAX);
    parser->arg_len = count;
    parser->pos += used;
    return RESP_REQUEST;
}

/* Goes over what there is of an argument of a request that is too large. */
static void drop_argument(struct resp_parser *parser, size_t len)
{
    size_t n = len - parser->pos;

    if (n > (size_t)parser->arg_len)
        n = (size_t)parser->arg_len;
    parser->pos += n;
    parser->arg_len -= (int64_t)n;
}

/* Reads on from pos to the end of the request. `note`: puts the arguments into the scratch. */
static enum resp_result parse_multibulk(struct resp_parser *parser, struct resp_scratch *scratch,
                                        const char *data, size_t len, bool note)
{
    enum resp_result result;

    if (parser->args_want < 0) {
        result = read_multibulk_header(parser, scratch, data, len);
        if (result != RESP_REQUEST)
            return result;
    }
    while (parser->args_got < parser->args_want) {
        if (parser->arg_len < 0) {
            result = read_bulk_header(parser, scratch, data + parser->pos, len - parser->pos);
            if (result != RESP_REQUEST)
                return result;
        }
        if (parser->too_large >= 0)
            drop_argument(parser, len);
        const char *arg = data + parser->pos;
        size_t arg_len = (size_t)parser->arg_len;
        if (len - parser->pos < arg_len + 2)
            return RESP_MORE;
        if (arg[arg_len] != '\r' || arg[arg_len + 1] != '\n')
            return parser_fail(parser, scratch, "expected CR LF after %zu bytes of bulk", arg_len);
        if (note)
            scratch_put(scratch, parser->args_got, arg, arg_len);
        parser->args_got++;
        parser->arg_len = -1;
        parser->pos += arg_len + 2;
    }
    return RESP_REQUEST;
}

/* ---- inline ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static char escaped_char(char c)
{
    static const char letters[] = "nrtba", meant[] = "\n\r\t\b\a";
    const char *at = c ? strchr(letters, c) : NULL;

    return at ? meant[at - letters] : c;
}

/* Reads a closing quote, which ends the argument: a blank or the end of the line must follow.
 * Returns what is behind it; NULL when s is at no such quote. */
static const char *close_quote(const char *s, const char *end)
{
    if (s == end || (s + 1 < end && !is_blank(s[1])))
        return NULL;
    return s + 1;
}

/* Reads from s and writes to *out, as do the next two: there is room, as nothing grows by being
 * unescaped. Returns where it stopped; NULL for unbalanced quotes. */
static const char *read_double_quoted(const char *s, const char *end, char **out)
{
    for (; s < end && *s != '"'; s++) {
        if (*s != '\\' || s + 1 == end) {
            *(*out)++ = *s;
            continue;
        }
        s++;
        if (*s == 'x' && end - s > 2 && util_hex_digit(s[1]) >= 0 && util_hex_digit(s[2]) >= 0) {
            *(*out)++ = (char)(util_hex_digit(s[1]) * 16 + util_hex_digit(s[2]));
            s += 2;
        } else {
            *(*out)++ = escaped_char(*s);
        }
    }
    return close_quote(s, end);
}

static const char *read_single_quoted(const char *s, const char *end, char **out)
{
    for (; s < end && *s != '\''; s++) {
        if (*s == '\\' && s + 1 < end && s[1] == '\'')
            s++;
        *(*out)++ = *s;
    }
    return close_quote(s, end);
}

static const char *read_inline_arg(const char *s, const char *end, char **out)
{
    while (s < end && !is_blank(*s)) {
        if (*s == '"')
            return read_double_quoted(s + 1, end, out);
        if (*s == '\'')
            return read_single_quoted(s + 1, end, out);
        *(*out)++ = *s++;
    }
    return s;
}

static enum resp_result split_line(struct resp_parser *parser, struct resp_scratch *scratch,
                                   const char *s, const char *end)
{
    const struct resp_limits *limits = parser->limits;
    char *out = scratch_text(scratch, (size_t)(end - s));

    while (s < end) {
        if (is_blank(*s)) {
            s++;
            continue;
        }
        if ((size_t)parser->args_got >= limits->max_args)
            return parser_fail(parser, scratch, "too many inline arguments: over %s%zu",
                               LIMIT(limits, "max_request_args"), limits->max_args);
        char *arg = out;
        s = read_inline_arg(s, end, &out);
        if (!s)
            return parser_fail(parser, scratch, "unbalanced quotes in request");
        size_t arg_len = (size_t)(out - arg);
        if (arg_len > limits->max_arg_len)
            return limits->of_strangers
                       ? parser_fail(parser, scratch,
                                     "invalid inline argument: %zu bytes are over %s%zu", arg_len,
                                     LIMIT(limits, "max_arg_len"), limits->max_arg_len)
                       : refuse_too_large(parser, scratch, (int64_t)arg_len);
        scratch_put(scratch, parser->args_got++, arg, arg_len);
    }
    return RESP_REQUEST;
}

/* Reads a line. While it is not whole, pos is how far there is no LF; after RESP_REQUEST it is
 * behind the line. */
static enum resp_result parse_inline(struct resp_parser *parser, struct resp_scratch *scratch,
                                     const char *data, size_t len)
{
    size_t max = parser->limits->max_inline_len;
    size_t scan = len < max + 2 ? len : max + 2;
    const char *lf = NULL;

    if (parser->pos < scan)
        lf = memchr(data + parser->pos, '\n', scan - parser->pos);
    /* One byte above the limit can only be the CR of a line that just fits. */
    if (!lf && (scan <= max || (scan == max + 1 && data[max] == '\r'))) {
        parser->pos = scan;
        return RESP_MORE;
    }
    const char *end = lf && lf > data && lf[-1] == '\r' ? lf - 1 : lf;
    if (!lf || (size_t)(end - data) > max)
        return parser_fail(parser, scratch, "too big inline request: over %s%zu",
                           LIMIT(parser->limits, "max_inline"), max);
    parser->args_got = 0;
    enum resp_result result = split_line(parser, scratch, data, end);
    if (result != RESP_ERROR)
        parser->pos = (size_t)(lf - data) + 1;
    return result;
}

/* ---- both ---- */

enum resp_result resp_parse(struct resp_parser *parser, struct resp_scratch *scratch,
                            const char *data, size_t len, size_t *consumed)
{
    enum resp_result result;

    assert(parser->pos <= len);
    *consumed = 0;
    parser->argv = NULL;
    parser->argc = 0;
    parser->error = NULL;
    if (len == 0)
        return RESP_MORE;

    if (data[0] != '*' && parser->too_large < 0) {
        result = parse_inline(parser, scratch, data, len);
    } else {
        bool resumed = parser->pos > 0;
        result = parse_multibulk(parser, scratch, data, len, !resumed);
        if (result == RESP_REQUEST && resumed && parser->too_large < 0) {
            parser_rewind(parser);
            result = parse_multibulk(parser, scratch, data, len, true);
        }
        if (result == RESP_REQUEST && parser->too_large >= 0)
            result = refuse_too_large(parser, scratch, parser->too_large);
    }
    if (result == RESP_MORE && parser->too_large >= 0) {
        *consumed = parser->pos;
        parser->dropped += parser->pos;
        parser->pos = 0;
    }
    if (result == RESP_REFUSED) {
        *consumed = parser->pos;
        parser_rewind(parser);
    }
    if (result == RESP_REQUEST) {
        *consumed = parser->pos;
        parser->argv = scratch->argv;
        parser->argc = parser->args_got;
        parser_rewind(parser);
    }
    return result;
}

struct resp_arg *resp_copy_args(const struct resp_arg *from, int n)
{
    size_t bytes = (size_t)n * sizeof *from;

    for (int i = 0; i < n; i++)
        bytes += from[i].len;
    struct resp_arg *copies = util_alloc(bytes > 0 ? bytes : 1);
    char *to = (char *)(copies + n);
    for (int i = 0; i < n; i++) {
        if (from[i].len > 0)
            memcpy(to, from[i].ptr, from[i].len);
        copies[i] = (struct resp_arg){to, from[i].len};
        to += from[i].len;
    }
    return copies;
}
