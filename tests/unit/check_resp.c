/* resp: one table of requests, each fed whole, byte by byte, cut in two at each place and with
 * another request behind it; limits; linear work; the exact bytes of the replies. */
#include "net/resp.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "suite.h"

static const struct resp_limits limits = {
    .max_args = 8, .max_arg_len = 64, .max_request_len = 200, .max_inline_len = 80};

/* want: the arguments, each in <>, bytes that are not printable as \xHH; or "error: ", or
 * "refused: ", and the text; or "more". */
struct request_case {
    const char *bytes;
    size_t len;
    const char *want;
};
#define CASE(bytes, want)                                                                          \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, want                                                             \
    }
#define X10 "xxxxxxxxxx"
#define X60 X10 X10 X10 X10 X10 X10

static const struct request_case requests[] = {
    CASE("", "more"),
    /* multibulk */
    CASE("*1\r\n$4\r\nPING\r\n", "<PING>"),
    CASE("*3\r\n$4\r\nLOCK\r\n$0\r\n\r\n$1\r\nx\r\n", "<LOCK><><x>"),
    CASE("*2\r\n$4\r\nECHO\r\n$4\r\n\r\n\0*\r\n", "<ECHO><\\x0d\\x0a\\x00*>"),
    CASE("*8\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n$1\r\n7\r\n$"
         "1\r\n8\r\n",
         "<1><2><3><4><5><6><7><8>"),
    CASE("*0\r\n", ""),
    CASE("*-1\r\n", ""),
    CASE("*-2147483647\r\n", ""),
    CASE("*", "more"),
    CASE("*-", "more"),
    CASE("*1", "more"),
    CASE("*1\r", "more"),
    CASE("*1\r\n", "more"),
    CASE("*1\r\n$4\r\nPIN", "more"),
    CASE("*1\r\n$4\r\nPING", "more"),
    CASE("*1\r\n$4\r\nPING\r", "more"),
    CASE("*2\r\n$4\r\nPING\r\n", "more"),
    CASE("*\r\n", "error: invalid multibulk length"),
    CASE("*-\r\n", "error: invalid multibulk length"),
    CASE("*-0\r\n", "error: invalid multibulk length"),
    CASE("*00\r\n", "error: invalid multibulk length"),
    CASE("*01\r\n$4\r\nPING\r\n", "error: invalid multibulk length"),
    CASE("*+1\r\n$4\r\nPING\r\n", "error: invalid multibulk length"),
    CASE("* 1\r\n$4\r\nPING\r\n", "error: invalid multibulk length"),
    CASE("*1 \r\n$4\r\nPING\r\n", "error: invalid multibulk length"),
    CASE("*1x\r\n", "error: invalid multibulk length"),
    CASE("*x\r\n", "error: invalid multibulk length"),
    CASE("*--1\r\n", "error: invalid multibulk length"),
    CASE("*1\n$4\nPING\n", "error: invalid multibulk length"),
    CASE("*1\rx", "error: invalid multibulk length"),
    CASE("*1\0\r\n", "error: invalid multibulk length"),
    CASE("*2147483648\r\n", "error: invalid multibulk length"),
    CASE("*4294967297\r\n", "error: invalid multibulk length"),
    CASE("*18446744073709551617\r\n", "error: invalid multibulk length"),
    CASE("*99999999999999999999999999999\r\n", "error: invalid multibulk length"),
    CASE("*1111111111111111111111111111111", "error: too big mbulk count string"),
    CASE("*111111111111111111111111111111", "more"),
    CASE("*9\r\n", "error: invalid multibulk length: 9 is over max_request_args 8"),
    CASE("*2147483647\r\n",
         "error: invalid multibulk length: 2147483647 is over max_request_args 8"),
    CASE("*1\r\n\r\n", "error: expected '$', got '\\x0d'"),
    CASE("*1\r\nPING\r\n", "error: expected '$', got 'P'"),
    CASE("*1\r\n\0", "error: expected '$', got '\\x00'"),
    CASE("*1\r\n\377", "error: expected '$', got '\\xff'"),
    CASE("*2\r\n$4\r\nPING\r\n*1\r\n", "error: expected '$', got '*'"),
    CASE("*1\r\n$-1\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$-2\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$04\r\nPING\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$4\nPING\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$4a\r\nPING\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$2147483648\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$4294967300\r\nPING\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$18446744073709551620\r\nPING\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$2222222222222222222222222222222", "error: too big bulk count string"),
    /* too large, and gone over to its end */
    CASE("*1\r\n$65\r\n", "more"),
    CASE("*1\r\n$65\r\n" X60 "12345\r\n",
         "refused: an argument of 65 bytes is over max_arg_len 64"),
    CASE("*3\r\n$4\r\nECHO\r\n$66\r\n" X60 "123\r\n\0\r\n$70\r\n" X60 X10 "\r\n",
         "refused: an argument of 66 bytes is over max_arg_len 64"),
    CASE("*2\r\n$65\r\n" X60 "12345\r\n$0\r\n\r\n",
         "refused: an argument of 65 bytes is over max_arg_len 64"),
    CASE("*2\r\n$65\r\n" X60 "12345\r\n$16777216\r\n",
         "error: too big request: over 16777216 bytes"),
    CASE("*1\r\n$16777216\r\n", "error: too big request: over 16777216 bytes"),
    CASE("*1\r\n$65\r\n" X60 "123456\r\n", "error: expected CR LF after 0 bytes of bulk"),
    CASE("*2\r\n$65\r\n" X60 "12345\r\nPING\r\n", "error: expected '$', got 'P'"),
    CASE("*2\r\n$65\r\n" X60 "12345\r\n$-1\r\n", "error: invalid bulk length"),
    CASE("*1\r\n$64\r\n" X60 "1234\r\n", "<" X60 "1234>"),
    CASE("*1\r\n$4\r\nPINGX\r\n", "error: expected CR LF after 4 bytes of bulk"),
    CASE("*1\r\n$4\r\nPING\n\n", "error: expected CR LF after 4 bytes of bulk"),
    /* 200 and 201 bytes: 4 + 67 + 67 = 138, then 5 + 55 + 2, 5 + 56 + 2 */
    CASE("*3\r\n$60\r\n" X60 "\r\n$60\r\n" X60 "\r\n$55\r\n" X10 X10 X10 X10 X10 "12345\r\n",
         "<" X60 "><" X60 "><" X10 X10 X10 X10 X10 "12345>"),
    CASE("*3\r\n$60\r\n" X60 "\r\n$60\r\n" X60 "\r\n$56\r\n" X10 X10 X10 X10 X10 "123456\r\n",
         "refused: it is over max_request 200"),
    /* inline */
    CASE("PING\r\n", "<PING>"),
    CASE("PING\n", "<PING>"),
    CASE("PING", "more"),
    CASE("PING\r", "more"),
    CASE("\r\n", ""),
    CASE("\n", ""),
    CASE("  \t \r\n", ""),
    CASE(" LOCK\t a   b \r\n", "<LOCK><a><b>"),
    CASE("a\rb\r\r\n", "<a><b>"),
    CASE("a\0b\n", "<a\\x00b>"),
    CASE("$4\r\n", "<$4>"),
    CASE("POST / HTTP/1.1\r\n", "<POST></><HTTP/1.1>"),
    CASE("1 2 3 4 5 6 7 8\n", "<1><2><3><4><5><6><7><8>"),
    CASE("1 2 3 4 5 6 7 8 9\n", "error: too many inline arguments: over max_request_args 8"),
    CASE("set \"a b\" ''\r\n", "<set><a b><>"),
    CASE("\"\\x00\\xfF\\x4a\"\n", "<\\x00\\xffJ>"),
    CASE("\"\\xzz\\x1\\x\"\n", "<xzzx1x>"),
    CASE("\"\\n\\r\\t\\b\\a\\\\\\\"\\q\"\n", "<\\x0a\\x0d\\x09\\x08\\x07\\\"q>"),
    CASE("'\\n\\x41 \\'\"'\n", "<\\n\\x41 '\">"),
    CASE("a\"b c\"\n", "<ab c>"),
    CASE("a'b c' d\n", "<ab c><d>"),
    CASE("\"a'b\" 'c\"d'\n", "<a'b><c\"d>"),
    CASE("\"a\"\t'b'\n", "<a><b>"),
    CASE("\"a\"b\n", "error: unbalanced quotes in request"),
    CASE("'a'b\n", "error: unbalanced quotes in request"),
    CASE("\"a\"\"b\"\n", "error: unbalanced quotes in request"),
    CASE("\"a\n", "error: unbalanced quotes in request"),
    CASE("'a\n", "error: unbalanced quotes in request"),
    CASE("a \"\n", "error: unbalanced quotes in request"),
    CASE("\"\\\n", "error: unbalanced quotes in request"),
    CASE("\"\\x4\n", "error: unbalanced quotes in request"),
    CASE("'\\'\n", "error: unbalanced quotes in request"),
    CASE("a " X60 "1234\n", "<a><" X60 "1234>"),
    CASE(X60 "12345\n", "refused: an argument of 65 bytes is over max_arg_len 64"),
    CASE("a \"" X60 "12345\" b\n", "refused: an argument of 65 bytes is over max_arg_len 64"),
    CASE("'" X60 "\\'\\'z'\n", "<" X60 "''z>"), /* what counts is unescaped */
    CASE(X60 " 123456789" X10 "\r\n", "<" X60 "><123456789" X10 ">"),
    CASE(X60 " 123456789" X10 "\n", "<" X60 "><123456789" X10 ">"),
    CASE(X60 X10 X10 "\r", "more"),
    CASE(X60 X10 X10 "1\n", "error: too big inline request: over max_inline 80"),
    CASE(X60 X10 X10 "1\r\n", "error: too big inline request: over max_inline 80"),
    CASE(X60 X10 X10 "1", "error: too big inline request: over max_inline 80"),
    CASE(X60 X10 X10 "\r1", "error: too big inline request: over max_inline 80"),
    CASE(X60 X10 X10 "12", "error: too big inline request: over max_inline 80"),
};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

static struct resp_scratch scratch;
static char text[8192];

static void say_bytes(const char *p, size_t len)
{
    size_t at = strlen(text);
    for (size_t i = 0; i < len; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               p[i] >= ' ' && p[i] <= '~' ? "%c" : "\\x%02x", (unsigned char)p[i]);
}

/* Feeds an exact copy, so that the address sanitizer sees each read outside. */
static enum resp_result feed(struct resp_parser *parser, const char *bytes, size_t len,
                             size_t *consumed)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    enum resp_result result = resp_parse(parser, &scratch, copy, len, consumed);

    text[0] = '\0';
    if (result == RESP_MORE)
        strcpy(text, "more");
    if (result == RESP_ERROR)
        snprintf(text, sizeof text, "error: %s", parser->error);
    if (result == RESP_REFUSED)
        snprintf(text, sizeof text, "refused: %s", parser->error);
    for (int i = 0; result == RESP_REQUEST && i < parser->argc; i++) {
        strcat(text, "<");
        say_bytes(parser->argv[i].ptr, parser->argv[i].len);
        strcat(text, ">");
    }
    free(copy);
    bool may_consume = result == RESP_REQUEST || result == RESP_REFUSED ||
                       (result == RESP_MORE && parser->too_large >= 0);
    ck_assert_msg(may_consume || *consumed == 0, "consumed without a request");
    return result;
}

START_TEST(request_whole)
{
    const struct request_case *c = &requests[_i];
    struct resp_parser parser;
    size_t consumed = 99;

    resp_parser_init(&parser, &limits);
    enum resp_result result = feed(&parser, c->bytes, c->len, &consumed);
    ck_assert_str_eq(text, c->want);
    if (result == RESP_REQUEST || result == RESP_REFUSED)
        ck_assert_uint_eq(consumed, c->len);
    if (result == RESP_ERROR) { /* says so again */
        feed(&parser, c->bytes, c->len, &consumed);
        ck_assert_str_eq(text, c->want);
    }
}
END_TEST

/* step 1: byte by byte; more: the first cut at step, then the rest. The other connection uses the
 * scratch in between. */
static void feed_in_steps(const struct request_case *c, size_t step, bool byte_by_byte)
{
    struct resp_parser parser, other;
    size_t consumed = 0, at = 0;
    enum resp_result result = RESP_MORE;

    resp_parser_init(&parser, &limits);
    resp_parser_init(&other, &limits);
    for (size_t len = step; result == RESP_MORE; len = byte_by_byte ? len + 1 : c->len) {
        result = feed(&parser, c->bytes + at, len - at, &consumed);
        at += consumed;
        if (result == RESP_REQUEST || result == RESP_REFUSED)
            ck_assert_uint_eq(at, len);
        if (result == RESP_MORE && parser.too_large >= 0) /* none of it is kept */
            ck_assert_uint_le(len - at, 32);
        if (result != RESP_MORE || len == c->len)
            break;
        size_t ignored;
        ck_assert_int_eq(
            resp_parse(&other, &scratch, "*2\r\n$1\r\na\r\n$2\r\nbb\r\n", 19, &ignored),
            RESP_REQUEST);
    }
    ck_assert_str_eq(text, c->want);
}

START_TEST(request_byte_by_byte)
{
    feed_in_steps(&requests[_i], 0, true);
}
END_TEST

START_TEST(request_cut_in_two)
{
    for (size_t cut = 0; cut <= requests[_i].len; cut++)
        feed_in_steps(&requests[_i], cut, false);
}
END_TEST

/* What comes behind a request changes nothing, and is the next request. */
START_TEST(request_pipelined)
{
    const struct request_case *c = &requests[_i];
    struct resp_parser parser;
    char bytes[512];
    size_t consumed = 0;

    resp_parser_init(&parser, &limits);
    if (feed(&parser, c->bytes, c->len, &consumed) == RESP_MORE)
        return;
    resp_parser_init(&parser, &limits);
    memcpy(bytes, c->bytes, c->len);
    memcpy(bytes + c->len, "*1\r\n$4\r\nNEXT\r\n", 14);
    enum resp_result result = feed(&parser, bytes, c->len + 14, &consumed);
    ck_assert_str_eq(text, c->want);
    if (result != RESP_REQUEST && result != RESP_REFUSED)
        return;
    ck_assert_uint_eq(consumed, c->len);
    feed(&parser, bytes + consumed, 14, &consumed);
    ck_assert_str_eq(text, "<NEXT>");
}
END_TEST

START_TEST(size_of_an_idle_connection)
{
    ck_assert_uint_le(sizeof(struct resp_parser), 96);
}
END_TEST

/* A header that claims much takes no memory. */
START_TEST(claims_take_no_memory)
{
    static const struct resp_limits wide = {INT_MAX, INT_MAX, (size_t)INT_MAX * 2, 65536, false};
    struct resp_parser parser;
    struct resp_scratch own = {0};
    size_t consumed;
    static const char bytes[] = "*2147483647\r\n$1\r\na\r\n$2147483647\r\nabc";

    resp_parser_init(&parser, &wide);
    ck_assert_int_eq(resp_parse(&parser, &own, bytes, sizeof bytes - 1, &consumed), RESP_MORE);
    ck_assert_uint_le(own.argv_cap, 16);
    ck_assert_uint_eq(own.text_cap, 0);
    resp_scratch_fini(&own);
}
END_TEST

/* Many arguments grow the array; it is shared, so a second parser finds it grown. */
START_TEST(many_arguments)
{
    static const struct resp_limits wide = {5000, 64, 65536, 65536, false};
    struct resp_parser parser;
    struct buf bytes = {0};
    size_t consumed = 0;

    buf_printf(&bytes, "*5000\r\n");
    for (int i = 0; i < 5000; i++)
        buf_printf(&bytes, "$4\r\n%04d\r\n", i);
    for (int round = 0; round < 2; round++) {
        resp_parser_init(&parser, &wide);
        if (round == 1) /* resumed at the last byte */
            ck_assert_int_eq(
                resp_parse(&parser, &scratch, buf_head(&bytes), buf_len(&bytes) - 1, &consumed),
                RESP_MORE);
        ck_assert_int_eq(
            resp_parse(&parser, &scratch, buf_head(&bytes), buf_len(&bytes), &consumed),
            RESP_REQUEST);
        ck_assert_uint_eq(consumed, buf_len(&bytes));
        ck_assert_int_eq(parser.argc, 5000);
        for (int i = 0; i < 5000; i++)
            ck_assert_int_eq(atoi(parser.argv[i].ptr), i);
    }
    buf_fini(&bytes);
}
END_TEST

/* Byte by byte through a request of 6 MB with a million arguments, and through a line of 6 MB: with
 * any rescanning this takes hours, and check's time-out ends it. */
START_TEST(linear_work)
{
    static const struct resp_limits wide = {1000000, 7000000, 7000000, 7000000, false};
    struct resp_parser parser;
    struct buf bytes = {0};
    size_t consumed = 0;

    buf_printf(&bytes, "*1000000\r\n");
    for (int i = 0; i < 1000000; i++)
        buf_append(&bytes, "$0\r\n\r\n", 6);
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            memset(buf_head(&bytes), 'a', buf_len(&bytes) - 1);
            buf_head(&bytes)[buf_len(&bytes) - 1] = '\n';
        }
        resp_parser_init(&parser, &wide);
        for (size_t len = 0; len < buf_len(&bytes); len++)
            if (resp_parse(&parser, &scratch, buf_head(&bytes), len, &consumed) != RESP_MORE)
                ck_abort_msg("a result at %zu", len);
        ck_assert_int_eq(
            resp_parse(&parser, &scratch, buf_head(&bytes), buf_len(&bytes), &consumed),
            RESP_REQUEST);
        ck_assert_int_eq(parser.argc, round == 0 ? 1000000 : 1);
    }
    buf_fini(&bytes);
}
END_TEST

/* Stricter limits in the middle of a request (a reload) measure what is still to come. */
START_TEST(limits_change)
{
    static const struct resp_limits strict = {
        .max_args = 8, .max_arg_len = 2, .max_request_len = 200, .max_inline_len = 80};
    static const char bytes[] = "*2\r\n$4\r\nPING\r\n$4\r\nPING\r\n";
    struct resp_parser parser;
    size_t consumed;

    resp_parser_init(&parser, &limits);
    feed(&parser, bytes, 14, &consumed);
    ck_assert_str_eq(text, "more");
    parser.limits = &strict;
    feed(&parser, bytes, sizeof bytes - 1, &consumed);
    ck_assert_str_eq(text, "refused: an argument of 4 bytes is over max_arg_len 2");
}
END_TEST

/* Before authentication there is no option that could be set: none is named. */
START_TEST(limits_of_strangers)
{
    static const struct resp_limits strangers = {.max_args = 2,
                                                 .max_arg_len = 8,
                                                 .max_request_len = 20,
                                                 .max_inline_len = 10,
                                                 .of_strangers = true};
    static const char *const cases[][2] = {
        {"*2147483647\r\n", "error: invalid multibulk length: 2147483647 is over the limit before "
                            "authentication, 2"},
        {"*1\r\n$2147483647\r\n", "error: invalid bulk length: 2147483647 is over the limit before "
                                  "authentication, 8"},
        {"*2\r\n$8\r\n12345678\r\n$8\r\n",
         "error: too big request: over the limit before authentication, 20"},
        {"1 2 3\n", "error: too many inline arguments: over the limit before authentication, 2"},
        {"123456789\n",
         "error: invalid inline argument: 9 bytes are over the limit before authentication, 8"},
        {"1234567890 \n", "error: too big inline request: over the limit before authentication, "
                          "10"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct resp_parser parser;
        size_t consumed;
        resp_parser_init(&parser, &strangers);
        feed(&parser, cases[i][0], strlen(cases[i][0]), &consumed);
        ck_assert_str_eq(text, cases[i][1]);
    }
}
END_TEST

/* ---- writers ---- */

static struct buf out;
static struct resp_writer w2 = {&out, 2}, w3 = {&out, 3};

static void check_out(const char *want)
{
    text[0] = '\0';
    say_bytes(buf_head(&out), buf_len(&out));
    ck_assert_str_eq(text, want);
    buf_fini(&out);
}

#define CRLF "\\x0d\\x0a"
/* The same call to both protocols. */
#define BOTH(call2, call3, want2, want3)                                                           \
    do {                                                                                           \
        call2;                                                                                     \
        check_out(want2);                                                                          \
        call3;                                                                                     \
        check_out(want3);                                                                          \
    } while (0)
#define WRITES(fn, want2, want3, ...) BOTH(fn(&w2, __VA_ARGS__), fn(&w3, __VA_ARGS__), want2, want3)

START_TEST(writer_scalars)
{
    WRITES(resp_simple, "+OK" CRLF, "+OK" CRLF, "OK");
    WRITES(resp_int, ":0" CRLF, ":0" CRLF, 0);
    WRITES(resp_int, ":-7" CRLF, ":-7" CRLF, -7);
    WRITES(resp_int, ":10" CRLF, ":10" CRLF, 10);
    WRITES(resp_int, ":9223372036854775807" CRLF, ":9223372036854775807" CRLF, INT64_MAX);
    WRITES(resp_int, ":-9223372036854775808" CRLF, ":-9223372036854775808" CRLF, INT64_MIN);
    WRITES(resp_bulk, "$3" CRLF "a\\x0ab" CRLF, "$3" CRLF "a\\x0ab" CRLF, "a\nb", 3);
    WRITES(resp_bulk, "$0" CRLF CRLF, "$0" CRLF CRLF, "", 0);
    WRITES(resp_str, "$5" CRLF "hello" CRLF, "$5" CRLF "hello" CRLF, "hello");
    WRITES(resp_bool, ":1" CRLF, "#t" CRLF, true);
    WRITES(resp_bool, ":0" CRLF, "#f" CRLF, false);
    WRITES(resp_verbatim, "$4" CRLF "a: b" CRLF, "=8" CRLF "txt:a: b" CRLF, "txt", "a: b", 4);
    BOTH(resp_null(&w2), resp_null(&w3), "$-1" CRLF, "_" CRLF);
    BOTH(resp_null_array(&w2), resp_null_array(&w3), "*-1" CRLF, "_" CRLF);
}
END_TEST

START_TEST(writer_doubles)
{
    WRITES(resp_double, "$3" CRLF "1.5" CRLF, ",1.5" CRLF, 1.5);
    WRITES(resp_double, "$1" CRLF "0" CRLF, ",0" CRLF, 0.0);
    WRITES(resp_double, "$3" CRLF "0.1" CRLF, ",0.1" CRLF, 0.1);
    WRITES(resp_double, "$19" CRLF "0.33333333333333331" CRLF, ",0.33333333333333331" CRLF,
           1.0 / 3);
    WRITES(resp_double, "$3" CRLF "inf" CRLF, ",inf" CRLF, (double)INFINITY);
    WRITES(resp_double, "$4" CRLF "-inf" CRLF, ",-inf" CRLF, (double)-INFINITY);
    WRITES(resp_double, "$3" CRLF "nan" CRLF, ",nan" CRLF, (double)-NAN);
}
END_TEST

START_TEST(writer_aggregates)
{
    WRITES(resp_array, "*0" CRLF, "*0" CRLF, 0);
    WRITES(resp_array, "*12" CRLF, "*12" CRLF, 12);
    WRITES(resp_map, "*6" CRLF, "%3" CRLF, 3);
    WRITES(resp_set, "*3" CRLF, "~3" CRLF, 3);
    WRITES(resp_push, "*4" CRLF, ">4" CRLF, 4);
}
END_TEST

/* No text makes two replies of one. */
START_TEST(writer_never_splits)
{
    char name[700];

    resp_error(&w2, "ERR unknown command '%s'", "a\r\n+OK\r\nb");
    check_out("-ERR unknown command 'a  +OK  b'" CRLF);
    resp_error(&w2, "ERR got %c%c%c.", '\0', '\n', '\r');
    check_out("-ERR got    ." CRLF);
    resp_simple(&w3, "a\r\n:1\r\n");
    check_out("+a  :1  " CRLF);
    resp_error(&w2, "%s", "");
    check_out("-" CRLF);

    /* around the size that is tried first, and far above it */
    for (size_t len = 120; len < sizeof name; len++) {
        char want[800];
        memset(name, 'n', len);
        name[len] = '\0';
        name[len / 2] = '\n';
        snprintf(want, sizeof want, "-%s" CRLF, name);
        want[1 + len / 2] = ' ';
        resp_error(&w2, "%s", name);
        check_out(want);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("resp");
    TCase *parse = tcase_create("parse"), *linear = tcase_create("linear"),
          *write = tcase_create("write");

    tcase_add_loop_test(parse, request_whole, 0, REQUESTS);
    tcase_add_loop_test(parse, request_byte_by_byte, 0, REQUESTS);
    tcase_add_loop_test(parse, request_cut_in_two, 0, REQUESTS);
    tcase_add_loop_test(parse, request_pipelined, 0, REQUESTS);
    tcase_add_test(parse, size_of_an_idle_connection);
    tcase_add_test(parse, claims_take_no_memory);
    tcase_add_test(parse, many_arguments);
    tcase_add_test(parse, limits_change);
    tcase_add_test(parse, limits_of_strangers);
    tcase_set_timeout(linear, 60);
    tcase_add_test(linear, linear_work);
    tcase_add_test(write, writer_scalars);
    tcase_add_test(write, writer_doubles);
    tcase_add_test(write, writer_aggregates);
    tcase_add_test(write, writer_never_splits);
    suite_add_tcase(s, parse);
    suite_add_tcase(s, linear);
    suite_add_tcase(s, write);
    return suite_run(s);
}
