/*
 * One item under construction, in memory that is used again. Key names of one lock share the hash
 * tag {name}, so that they fall into one slot of a cluster.
 */
#include "item.h"

#include <string.h>

#include "master.h"

static struct item one;

static void put_len(struct buf *b, size_t len)
{
    char text[24];
    char *end = text + sizeof text, *p = end;
    *--p = '\n';
    *--p = '\r';
    do {
        *--p = (char)('0' + len % 10);
        len /= 10;
    } while (len);
    *--p = '$';
    buf_append(b, p, (size_t)(end - p));
}

struct item *item_begin(const char *name, size_t name_len)
{
    static const char prefix[] = "holdfast:{";
    buf_consume(&one.key, buf_len(&one.key));
    buf_consume(&one.args, buf_len(&one.args));
    put_len(&one.key, sizeof prefix - 1 + name_len + 1);
    buf_append(&one.key, prefix, sizeof prefix - 1);
    buf_append(&one.key, name, name_len);
    buf_append(&one.key, "}\r\n", 3);
    return &one;
}

void item_arg(struct item *it, const char *text, size_t len)
{
    put_len(&it->args, len);
    buf_append(&it->args, text, len);
    buf_append(&it->args, "\r\n", 2);
}

void item_arg_str(struct item *it, const char *text)
{
    item_arg(it, text, strlen(text));
}

void item_arg_int(struct item *it, int64_t n)
{
    char text[24];
    char *end = text + sizeof text, *p = end;
    uint64_t u = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do {
        *--p = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (n < 0)
        *--p = '-';
    item_arg(it, p, (size_t)(end - p));
}

void item_bytes(const struct item *it, struct master_item *out)
{
    out->key = buf_head(&it->key);
    out->key_len = buf_len(&it->key);
    out->args = buf_head(&it->args);
    out->args_len = buf_len(&it->args);
}

uint32_t item_hash(const char *text, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

int item_bucket(const char *name, size_t name_len)
{
    uint32_t h = item_hash(name, name_len);
    return (int)((h ^ (h >> 16)) % ITEM_BUCKETS);
}
