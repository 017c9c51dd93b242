/* resp: what clients send and what they are answered: the Redis protocol, RESP2 and RESP3.
 *
 * Requests: `*N\r\n$len\r\nbytes\r\n...` ("multibulk") and lines ("inline", for nc and telnet), as
 * in https://redis.io/docs/latest/develop/reference/protocol-spec/. Bytes come from strangers: all
 * that they can make grow has a limit, and what does not follow the protocol to the letter is an
 * error. A request that is larger than the limits is dropped as it comes, none of it is kept, and
 * the stream goes on behind it; but not of strangers, and not beyond RESP_DROPPED_MAX. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* One argument: any bytes, not terminated by a NUL. */
struct resp_arg {
    const char *ptr;
    size_t len;
};

/* Copies arguments into one block of the heap, which begins with their array. */
struct resp_arg *resp_copy_args(const struct resp_arg *, int n);

/* Bounds of one request. They may be changed between two calls (reload, a client that has
 * authenticated); a request in the middle is then measured by the new ones from there on. */
struct resp_limits {
    size_t max_args;        /* arguments, the command's name counts */
    size_t max_arg_len;     /* bytes of one argument, unescaped */
    size_t max_request_len; /* bytes of a multibulk request as sent, headers and all */
    size_t max_inline_len;  /* bytes of an inline request without its line end */
    bool of_strangers;      /* those before authentication; else options, which errors name */
};

enum { RESP_DROPPED_MAX = 16 * 1024 * 1024 };

enum resp_result {
    RESP_MORE, /* no whole request yet: call again with the bytes that are not consumed, and more */
    RESP_REQUEST, /* argc and argv are set, consumed tells how many bytes were the request */
    RESP_REFUSED, /* one that is too large has ended: error is set, the stream goes on behind it */
    RESP_ERROR    /* error is set; the stream cannot be followed any further: answer and close */
};

/* Room for the arguments of the request at hand. One serves any number of parsers, as arguments
 * live only until the next resp_parse() with the same scratch: so an idle connection keeps none.
 * Grows to what the limits allow and no further. All zero is an empty one. */
struct resp_scratch {
    struct resp_arg *argv;
    size_t argv_cap;
    char *text; /* unescaped inline arguments */
    size_t text_cap;
    char error[96];
};

void resp_scratch_fini(struct resp_scratch *scratch);

/* One connection's place in its stream. The first three are the result, the rest is resp's own. */
struct resp_parser {
    struct resp_arg *argv; /* into data (multibulk) or into the scratch (inline), in this order */
    int argc;
    int args_want;     /* of the multibulk request at hand; -1: its header is still to come */
    const char *error; /* of RESP_ERROR, behind "ERR Protocol error: "; may quote any byte but NUL;
                          of RESP_REFUSED what is too large */
    const struct resp_limits *limits; /* the owner may point it to others */
    size_t pos;      /* everything before it has been checked: an offset into data */
    int64_t arg_len; /* of the argument that begins at pos; -1: its header is still to come */
    int args_got;
    int64_t too_large; /* the argument that made it too large has so many bytes; -1: it is not */
    size_t dropped;    /* bytes of a request that is too large, consumed by earlier calls */
};

/* Begins at the start of a stream; limits must outlive the parser. There is nothing to free. */
void resp_parser_init(struct resp_parser *parser, const struct resp_limits *limits);

/* Looks for one request at the start of data.
 * data must begin with the first byte that was not consumed (it may move in memory). *consumed is
 * set in each case; it is 0 with RESP_MORE unless the request is too large. argv is valid until the
 * next call with the same scratch and only while data is. A blank line, `*0` and `*-1` give
 * RESP_REQUEST with argc 0: skip it without an answer, as Redis does. The result does not depend on
 * how the bytes were cut into calls. Work over all calls for one request is linear in its length.
 * It never takes more than max_request_len + 32 bytes (or max_inline_len + 2) to come to a result.
 * After RESP_ERROR the same bytes give the same error again; the text of this and of RESP_REFUSED
 * lives in the scratch. */
enum resp_result resp_parse(struct resp_parser *parser, struct resp_scratch *scratch,
                            const char *data, size_t len, size_t *consumed);

/* ---- replies ---- */

struct resp_writer {
    struct buf *out;
    int proto; /* 2 or 3 */
};

/* Text that is quoted must not lie in the buffer that is written to.
 * Simple strings and errors: CR, LF and NUL become spaces, so that no text, whatever it quotes, can
 * split one reply into two. An error's text begins with its code: "ERR ...", "NOTHELD ...". */
void resp_simple(struct resp_writer *w, const char *text);
void resp_error(struct resp_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void resp_int(struct resp_writer *w, int64_t value);
void resp_bulk(struct resp_writer *w, const void *ptr, size_t len);
void resp_str(struct resp_writer *w, const char *text); /* a bulk string */
void resp_bool(struct resp_writer *w, bool value);      /* #t #f, in RESP2 :1 :0 */
void resp_double(struct resp_writer *w, double value);  /* in RESP2 a bulk string */
void resp_null(struct resp_writer *w);                  /* _, in RESP2 $-1 */
void resp_null_array(struct resp_writer *w);            /* _, in RESP2 *-1 */
/* Write a key of a map and its value. */
void resp_pair_int(struct resp_writer *w, const char *key, int64_t value);
void resp_pair_str(struct resp_writer *w, const char *key, const char *text);
/* Writes text of a format, which is three letters, "txt" or "mkd"; in RESP2 a bulk string. */
void resp_verbatim(struct resp_writer *w, const char *format, const void *ptr, size_t len);

/* Write headers: n elements (of a map: 2 * npairs) must follow. */
void resp_array(struct resp_writer *w, size_t n);
void resp_map(struct resp_writer *w, size_t npairs); /* in RESP2 an array of 2 * npairs */
void resp_set(struct resp_writer *w, size_t n);      /* in RESP2 an array */
void resp_push(struct resp_writer *w, size_t n);     /* in RESP2 an array */
