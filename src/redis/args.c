/*
 * One item under construction, in memory that is used again. Key names of one lock share the hash
 * tag {name}, so that they fall into one slot of a cluster.
 */
#include "redis/args.h"

#include <string.h>

#include "base/util.h"
#include "redis/master.h"

static struct args one;

enum { LEN_MAX = 24 }; /* "$", 20 digits, CR LF */

/* "$", the digits, CR LF; returns what is behind. */
static char *put_len(char *to, size_t len)
{
    *to++ = '$';
    if (len < 10)
        *to++ = (char)('0' + len);
    else
        to = util_put_digits(to, len);
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static char *put_bytes(char *to, const void *bytes, size_t n)
{
    memcpy(to, bytes, n);
    return to + n;
}

struct args *args_begin(const char *name, size_t name_len)
{
    static const char prefix[] = "holdfast:{";
    buf_consume(&one.key, buf_len(&one.key));
    buf_consume(&one.args, buf_len(&one.args));
    one.floor = 0;
    one.bucket = -1;
    one.early = one.renewal = false;
    char *begin = buf_reserve(&one.key, LEN_MAX + sizeof prefix + name_len + 3);
    char *p = put_len(begin, sizeof prefix - 1 + name_len + 1);
    p = put_bytes(p, prefix, sizeof prefix - 1);
    p = put_bytes(p, name, name_len);
    p = put_bytes(p, "}\r\n", 3);
    buf_commit(&one.key, (size_t)(p - begin));
    return &one;
}

void args_text(struct args *it, const char *text, size_t len)
{
    char *begin = buf_reserve(&it->args, LEN_MAX + len + 2);
    char *p = put_len(begin, len);
    p = put_bytes(p, text, len);
    p = put_bytes(p, "\r\n", 2);
    buf_commit(&it->args, (size_t)(p - begin));
}

void args_str(struct args *it, const char *text)
{
    args_text(it, text, strlen(text));
}

void args_int(struct args *it, int64_t n)
{
    char text[24], *end = text + sizeof text;
    char *p = util_digits(end, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
    if (n < 0)
        *--p = '-';
    args_text(it, p, (size_t)(end - p));
}

void args_bytes(const struct args *it, struct master_item *out)
{
    out->key = buf_head(&it->key);
    out->key_len = buf_len(&it->key);
    out->args = buf_head(&it->args);
    out->args_len = buf_len(&it->args);
    out->floor = it->floor;
    out->bucket = it->bucket;
    out->early = it->early;
    out->renewal = it->renewal;
}

uint32_t args_hash(const char *text, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

int args_bucket(const char *name, size_t name_len)
{
    uint32_t h = args_hash(name, name_len);
    return (int)((h ^ (h >> 16)) % ARGS_BUCKETS);
}
