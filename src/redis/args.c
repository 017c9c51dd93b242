/*
 * One item under construction, in memory that is used again. Key names of one lock share the hash
 * tag {name}, so that they fall into one slot of a cluster.
 */
#include "redis/args.h"

#include <string.h>

#include "net/request.h"
#include "redis/master.h"

static struct args one;

struct args *args_begin(const char *name, size_t name_len)
{
    static const char prefix[] = "holdfast:{";
    buf_clear(&one.key);
    buf_clear(&one.args);
    one.floor = 0;
    one.bucket = -1;
    one.early = one.undoes = one.renewal = false;
    char *p = request_room(&one.key, sizeof prefix - 1 + name_len + 1);
    memcpy(p, prefix, sizeof prefix - 1);
    memcpy(p + sizeof prefix - 1, name, name_len);
    p[sizeof prefix - 1 + name_len] = '}';
    return &one;
}

void args_text(struct args *it, const char *text, size_t len)
{
    request_text(&it->args, text, len);
}

void args_str(struct args *it, const char *text)
{
    request_str(&it->args, text);
}

void args_int(struct args *it, int64_t n)
{
    request_int(&it->args, n);
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
    out->undoes = it->undoes;
    out->renewal = it->renewal;
}
