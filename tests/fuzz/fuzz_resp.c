/* Any bytes as a client's stream. Besides not crashing:
 * - whole, cut in pieces and byte by byte they give the same requests and the same error;
 * - each request keeps the limits (what is larger is dropped as it comes), and written as a
 * multibulk request it is parsed to itself; one that came as such is these very bytes, as there is
 * one way only to write it;
 * - an error reply that quotes an argument is one line.
 * The last two are asked of the whole stream only: cut in pieces it gives the same requests. */
#include "net/resp.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct resp_limits narrow = {6, 24, 64, 32, false},
                                usual = {64, 16384, 65536, 65536, false},
                                wide = {1024, 1 << 20, 1 << 26, 1 << 20, false};

/* Empty before each input. One for all parsers, as in the broker, and as allocating is half of the
 * time here. */
static struct resp_scratch scratch, again_scratch;

static void require(bool ok)
{
    if (!ok)
        abort();
}

/* Appends the request in its canonical form; that is also what runs are compared by. */
static void note_request(struct buf *notes, const struct resp_arg *argv, int argc)
{
    struct resp_writer w = {notes, 2};

    resp_array(&w, (size_t)argc);
    for (int i = 0; i < argc; i++)
        resp_bulk(&w, argv[i].ptr, argv[i].len);
}

static void check_reparse(const char *bytes, size_t len, int argc)
{
    struct resp_parser parser;
    static struct buf again;
    size_t consumed;

    resp_parser_init(&parser, &wide);
    require(resp_parse(&parser, &again_scratch, bytes, len, &consumed) == RESP_REQUEST);
    require(consumed == len && parser.argc == argc);
    note_request(&again, parser.argv, parser.argc);
    require(buf_len(&again) == len && memcmp(buf_head(&again), bytes, len) == 0);
    buf_consume(&again, len);
}

static void check_error_is_a_line(const struct resp_arg *arg)
{
    static struct buf out;
    struct resp_writer w = {&out, 3};

    resp_error(&w, "ERR unknown command '%.*s'", (int)arg->len, arg->ptr);
    const char *text = buf_head(&out);
    size_t len = buf_len(&out);
    require(len > 2 && text[0] == '-' && text[len - 2] == '\r' && text[len - 1] == '\n');
    require(!memchr(text, '\n', len - 1) && !memchr(text, '\r', len - 2) && !memchr(text, 0, len));
    buf_consume(&out, len);
}

static void on_request(struct buf *notes, const struct resp_parser *parser, const char *bytes,
                       size_t consumed, bool whole)
{
    const struct resp_limits *limits = parser->limits;
    size_t before = buf_len(notes);

    require(consumed > 0 && (size_t)parser->argc <= limits->max_args);
    for (int i = 0; i < parser->argc; i++)
        require(parser->argv[i].len <= limits->max_arg_len);
    note_request(notes, parser->argv, parser->argc);
    if (bytes[0] != '*') {
        require(consumed <= limits->max_inline_len + 2);
    } else if (parser->argc > 0) {
        require(consumed <= limits->max_request_len && consumed == buf_len(notes) - before);
        require(memcmp(bytes, buf_head(notes) + before, consumed) == 0);
    }
    if (!whole)
        return;
    check_reparse(buf_head(notes) + before, buf_len(notes) - before, parser->argc);
    if (parser->argc > 0)
        check_error_is_a_line(&parser->argv[0]);
}

/* Feeds the stream, step bytes more at a time. */
static void run(const char *data, size_t size, size_t step, const struct resp_limits *limits,
                struct buf *notes)
{
    struct resp_parser parser;
    size_t at = 0, have = 0;
    enum resp_result result = RESP_MORE;

    resp_parser_init(&parser, limits);
    while (result != RESP_ERROR && (have < size || result != RESP_MORE)) {
        if (result == RESP_MORE)
            have = size - have < step ? size : have + step;
        size_t consumed;
        result = resp_parse(&parser, &scratch, data + at, have - at, &consumed);
        if (result == RESP_REQUEST)
            on_request(notes, &parser, data + at, consumed, step == size);
        if (result == RESP_REFUSED)
            buf_printf(notes, "-%s", parser.error);
        at += consumed;
    }
    if (result == RESP_ERROR)
        buf_printf(notes, "-%s", parser.error);
    else if (at < size)
        require(size - at <=
                (data[at] == '*' ? limits->max_request_len + 32 : limits->max_inline_len + 1));
}

static void check_cuts(const char *data, size_t size, const struct resp_limits *limits)
{
    static struct buf whole, cut;
    static const size_t steps[] = {1, 2, 7, 64};

    run(data, size, size, limits, &whole);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        run(data, size, steps[i], limits, &cut);
        require(buf_len(&whole) == buf_len(&cut));
        require(buf_len(&cut) == 0 || memcmp(buf_head(&whole), buf_head(&cut), buf_len(&cut)) == 0);
        buf_consume(&cut, buf_len(&cut));
    }
    buf_consume(&whole, buf_len(&whole));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_cuts((const char *)data, size, &narrow);
    check_cuts((const char *)data, size, &usual);
    resp_scratch_fini(&scratch);
    resp_scratch_fini(&again_scratch);
    return 0;
}
