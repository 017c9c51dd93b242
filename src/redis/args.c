/*
 * One item under construction, in memory that is used again. Key names of one lock share the hash
 * tag, so that they fall into one slot of a cluster.
 */
#include "redis/args.h"

#include <string.h>

#include "net/request.h"
#include "redis/master.h"
#include "redis/partition.h"

static const char prefix[] = "holdfast:";
static struct args one;

struct args *args_begin(const char *name, size_t name_len)
{
    int partition = partition_of(name, name_len);
    const struct partition_head *head = partition_head(partition);

    buf_clear(&one.key);
    buf_clear(&one.args);
    one.partition = partition;
    one.floor = 0;
    one.bucket = -1;
    one.early = one.undoes = one.renewal = false;
    char *p = request_room(&one.key, head->len + name_len + 1);
    memcpy(p, head->text, head->len);
    memcpy(p + head->len, name, name_len);
    p[head->len + name_len] = '}';
    return &one;
}

bool args_name_of_key(const char *key, size_t key_len, const char **name, size_t *name_len)
{
    size_t head = sizeof prefix; /* with the brace */

    if (key_len < head + 1 || memcmp(key, prefix, head - 1) != 0)
        return false;
    if (*partition_at(0)) { /* behind the tag */
        const char *close = memchr(key, '}', key_len);
        if (!close)
            return false;
        head = (size_t)(close - key) + 2;
    }
    if (key_len < head + 1 || key[head - 1] != '{')
        return false;
    *name = key + head;
    *name_len = key_len - head - 1;
    return true;
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
