/* Any bytes as what a master says. Besides not crashing:
 * - whole, cut in pieces and byte by byte they give the same replies, and end at the same place;
 * - each reply keeps the bounds, and its arrays hold as many values as they say;
 * - an error text as people see it is printable. */
#include "net/reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 40000 };

static void require(bool ok)
{
    if (!ok)
        abort();
}

/* How many values there are in v[0], itself too. */
static int64_t extent(const struct reply *r, int at, int depth)
{
    require(at < r->count && r->values[at].depth == depth && depth <= REPLY_DEPTH_MAX);
    if (r->values[at].type != REPLY_ARRAY)
        return 1;
    int64_t n = 1;
    require(r->values[at].integer >= 0);
    for (int64_t i = 0; i < r->values[at].integer; i++)
        n += extent(r, at + (int)n, depth + 1);
    return n;
}

/* Looks at a reply, and appends what it says. */
static void note(struct buf *b, const struct reply *r)
{
    char words[REPLY_WORDS_MAX];

    require(r->count >= 1 && r->count <= REPLY_VALUES_MAX && extent(r, 0, 0) == r->count);
    for (int i = 0; i < r->count; i++) {
        const struct reply_value *v = &r->values[i];
        buf_append(b, &v->type, 1);
        buf_append(b, &v->integer, sizeof v->integer);
        if (v->type != REPLY_TEXT && v->type != REPLY_STATUS && v->type != REPLY_ERROR)
            continue;
        buf_append(b, &v->len, sizeof v->len);
        buf_append(b, reply_text(r, v), v->len);
        require(reply_text(r, v)[v->len] == 0);
        for (const char *p = reply_words(words, sizeof words, reply_text(r, v), v->len); *p; p++)
            require(*p >= 0x20 && *p < 0x7f);
        reply_is_error(r, v, "LATE");
        reply_is_text(r, v, "OK");
    }
}

static void run(struct buf *said, const uint8_t *data, size_t size, size_t piece)
{
    struct reply r = {0};
    enum reply_result result = REPLY_MORE;

    reply_start(&r, BYTES_MAX);
    for (size_t at = 0, n; at < size && result != REPLY_BROKEN; at += n) {
        n = size - at < piece ? size - at : piece;
        reply_feed(&r, (const char *)data + at, n);
        while ((result = reply_next(&r)) == REPLY_READY)
            note(said, &r);
        require(r.unfinished <= BYTES_MAX || result == REPLY_BROKEN);
    }
    require((r.error != NULL) == (result == REPLY_BROKEN));
    buf_append(said, r.error ? "E" : "-", 1);
    reply_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 2, 7, 64};
    struct buf whole = {0}, cut = {0};

    if (size > REPLY_FEED_MAX)
        size = REPLY_FEED_MAX;
    run(&whole, data, size, REPLY_FEED_MAX);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        run(&cut, data, size, pieces[i]);
        require(buf_len(&cut) == buf_len(&whole) &&
                memcmp(buf_head(&cut), buf_head(&whole), buf_len(&cut)) == 0);
        buf_consume(&cut, buf_len(&cut));
    }
    buf_fini(&whole);
    buf_fini(&cut);
    return 0;
}
