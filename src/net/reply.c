/*
 * Reads the replies of a server through hiredis' reader, with our own bounds.
 *
 * Owns the reader of one connection, its values and their texts; does not know which reply is
 * expected. hiredis hands over each value as it is read and allocates for none (0.14 checks an
 * array's header against INT_MAX only and then asks create_array()), so the values go one behind
 * the other into one block, and texts into one buf: hiredis' own bytes do not outlive the reply.
 *
 * Invariants: count <= REPLY_VALUES_MAX; once `error` is set it stays, and nothing is read any
 * more.
 */
#include "net/reply.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS_KEEP = 64 * 1024, BYTES_KEEP = 4 * REPLY_FEED_MAX }; /* kept for the next reply */

/* Frees nothing when hiredis lets a reply go: the values live in a block of our own. */
static void free_nothing(void *object)
{
    (void)object;
}

/* Sets the reason and returns NULL, which makes hiredis give up. */
static void *refuse_reply(struct reply *r, const char *why)
{
    if (!r->error)
        r->error = why;
    return NULL;
}

static int depth_of(const redisReadTask *task)
{
    int depth = 0;
    for (const redisReadTask *t = task->parent; t; t = t->parent)
        depth++;
    return depth;
}

static struct reply_value *add_value(const redisReadTask *task, enum reply_type type)
{
    struct reply *r = task->privdata;
    if (r->count >= REPLY_VALUES_MAX)
        return refuse_reply(r, "a reply has too many elements");
    if (r->count == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 64;
        r->cap = r->cap < REPLY_VALUES_MAX ? r->cap : REPLY_VALUES_MAX;
        r->values = util_realloc(r->values, (size_t)r->cap * sizeof *r->values);
    }
    struct reply_value *v = &r->values[r->count++];
    *v = (struct reply_value){.type = (uint8_t)type, .depth = (uint8_t)depth_of(task)};
    return v;
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    struct reply *r = task->privdata;
    enum reply_type type;

    switch (task->type) {
    case REDIS_REPLY_STRING:
        type = REPLY_TEXT;
        break;
    case REDIS_REPLY_STATUS:
        type = REPLY_STATUS;
        break;
    case REDIS_REPLY_ERROR:
        type = REPLY_ERROR;
        break;
    default:
        return refuse_reply(r, "a reply is of a type that was not asked for");
    }
    struct reply_value *v = add_value(task, type);
    if (!v)
        return NULL;
    v->text = buf_len(&r->texts);
    v->len = len;
    buf_append(&r->texts, text, len);
    buf_append(&r->texts, "", 1);
    return r;
}

static void *create_integer(const redisReadTask *task, long long n)
{
    struct reply_value *v = add_value(task, REPLY_INTEGER);
    if (v)
        v->integer = n;
    return v ? task->privdata : NULL;
}

static void *create_nil(const redisReadTask *task)
{
    return add_value(task, REPLY_NIL) ? task->privdata : NULL;
}

static void *add_array(const redisReadTask *task, size_t n)
{
    struct reply *r = task->privdata;
    if (task->type != REDIS_REPLY_ARRAY)
        return refuse_reply(r, "a reply is of a type that was not asked for");
    if (n > REPLY_VALUES_MAX)
        return refuse_reply(r, "a reply has too many elements");
    if (depth_of(task) >= REPLY_DEPTH_MAX)
        return refuse_reply(r, "a reply is nested too deeply");
    struct reply_value *v = add_value(task, REPLY_ARRAY);
    if (v)
        v->integer = (int64_t)n;
    return v ? r : NULL;
}

#if HIREDIS_MAJOR >= 1
static void *create_array(const redisReadTask *task, size_t n)
{
    return add_array(task, n);
}

/* Ends the reader, as the next one does: these are types of RESP3, which we never ask for. */
static void *create_double(const redisReadTask *task, double value, char *text, size_t len)
{
    (void)value, (void)text, (void)len;
    return refuse_reply(task->privdata, "a reply is of a type that was not asked for");
}

static void *create_bool(const redisReadTask *task, int value)
{
    (void)value;
    return refuse_reply(task->privdata, "a reply is of a type that was not asked for");
}
#else
static void *create_array(const redisReadTask *task, int n)
{
    return add_array(task, (size_t)n);
}
#endif

static redisReplyObjectFunctions functions = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
    .createNil = create_nil,
    .freeObject = free_nothing,
#if HIREDIS_MAJOR >= 1
    .createDouble = create_double,
    .createBool = create_bool,
#endif
};

static void drop_values(struct reply *r)
{
    r->count = 0;
    r->handed_out = false;
    buf_consume(&r->texts, buf_len(&r->texts));
    if (r->texts.cap > TEXTS_KEEP)
        buf_trim(&r->texts);
}

void reply_start(struct reply *r, size_t max_bytes)
{
    if (r->reader)
        redisReaderFree(r->reader);
    r->reader = redisReaderCreateWithFunctions(&functions);
    if (!r->reader)
        util_die("out of memory");
    r->reader->privdata = r;
    r->reader->maxbuf = BYTES_KEEP;
    r->max_bytes = max_bytes;
    r->unfinished = 0;
    r->error = NULL;
    drop_values(r);
}

void reply_fini(struct reply *r)
{
    if (r->reader)
        redisReaderFree(r->reader);
    free(r->values);
    buf_fini(&r->texts);
    *r = (struct reply){0};
}

void reply_feed(struct reply *r, const char *data, size_t len)
{
    if (r->error)
        return;
    if (redisReaderFeed(r->reader, data, len) != REDIS_OK)
        util_die("out of memory");
    r->unfinished += len;
}

enum reply_result reply_next(struct reply *r)
{
    void *object = NULL;

    if (r->handed_out)
        drop_values(r);
    if (r->error)
        return REPLY_BROKEN;
    int status = redisReaderGetReply(r->reader, &object);
    if (status != REDIS_OK || r->error) {
        refuse_reply(r, "its bytes are no Redis protocol");
        return REPLY_BROKEN;
    }
    if (object) {
        r->unfinished = r->reader->len - r->reader->pos;
        r->handed_out = true;
        return REPLY_READY;
    }
    if (r->unfinished > r->max_bytes) {
        refuse_reply(r, "a reply is longer than max_master_reply");
        return REPLY_BROKEN;
    }
    return REPLY_MORE;
}

bool reply_is_text(const struct reply *r, const struct reply_value *v, const char *words)
{
    return (v->type == REPLY_TEXT || v->type == REPLY_STATUS) && v->len == strlen(words) &&
           memcmp(reply_text(r, v), words, v->len) == 0;
}

bool reply_is_error(const struct reply *r, const struct reply_value *v, const char *code)
{
    size_t len = strlen(code);
    const char *text = v->type == REPLY_ERROR ? reply_text(r, v) : "";

    return strncmp(text, code, len) == 0 && (text[len] == ' ' || text[len] == 0);
}

char *reply_words(char *out, size_t size, const char *text, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c < 0x7f) {
            if (n + 1 >= size)
                break;
            out[n++] = (char)c;
            continue;
        }
        if (n + 4 >= size)
            break;
        out[n++] = '\\';
        out[n++] = 'x';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    out[n] = 0;
    return out;
}
