/* Hashes: values by field. Sets are kept as hashes without values. */
#include "dropin/store_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

static struct store_field *find_field(const struct store_key *k, const struct resp_arg *name)
{
    return k ? (struct store_field *)store_table_find(&k->fields, name) : NULL;
}

/* Sets a field; returns true when it was not there. */
static bool add_to_hash(struct store_key *k, const struct resp_arg *name,
                        const struct resp_arg *value)
{
    struct store_field *f = find_field(k, name);
    bool is_new = !f;
    if (is_new) {
        f = pool_get(sizeof *f + name->len);
        f->entry.name = memcpy(f->name, name->ptr, name->len);
        f->entry.len = name->len;
        store_table_add(&k->fields, &f->entry);
    }
    if (value) {
        store_bytes_fini(&f->value);
        f->value = store_bytes_of(value);
    }
    return is_new;
}

static bool drop_field(struct store_key *k, const struct resp_arg *name)
{
    struct store_field *f = find_field(k, name);
    if (f)
        store_field_drop(&k->fields, f);
    return f != NULL;
}

/* Removes the fields that are the words from the third on, and the key when none is left; replies
 * how many there were. */
static void drop_all(struct store_run *run, enum store_type type)
{
    bool wrong;
    int64_t n = 0;
    struct store_key *k = store_key_get(run, &run->argv[1], type, &wrong);
    if (wrong)
        return;
    for (int i = 2; k && i < run->argc; i++)
        n += drop_field(k, &run->argv[i]);
    if (k && n)
        store_wrote(run, &run->argv[1], true, k->fields.n == 0);
    if (k && k->fields.n == 0)
        store_key_drop(run->store, k);
    store_add_int(run->out, n);
}

static void count_fields(struct store_run *run, enum store_type type)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], type, &wrong);
    if (!wrong)
        store_add_int(run->out, k ? (int64_t)k->fields.n : 0);
}

static void has(struct store_run *run, enum store_type type)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], type, &wrong);
    if (!wrong)
        store_add_int(run->out, find_field(k, &run->argv[2]) != NULL);
}

static void list(struct store_run *run, enum store_type type, bool names, bool values)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], type, &wrong);
    if (wrong)
        return;
    int64_t n = k ? (int64_t)k->fields.n * (names + values) : 0;
    if (names && values)
        store_add_map(run->out, n);
    else
        store_add_array(run->out, n);
    for (const struct store_entry *e = k ? k->fields.first : NULL; e; e = e->next) {
        const struct store_field *f = (const struct store_field *)e;
        if (names)
            store_bulk(run, e->name, e->len);
        if (values)
            store_bulk(run, f->value.ptr, f->value.len);
    }
}

/* ---- hashes ---- */

static void set_fields(struct store_run *run, bool counts)
{
    int64_t n = 0;
    if (run->argc % 2 == 1) {
        store_add_error(run->out, counts ? "ERR wrong number of arguments for 'hset' command"
                                         : "ERR wrong number of arguments for 'hmset' command");
        return;
    }
    struct store_key *k = store_key_make(run, &run->argv[1], STORE_HASH);
    for (int i = 2; k && i < run->argc; i += 2)
        n += add_to_hash(k, &run->argv[i], &run->argv[i + 1]);
    if (k)
        store_wrote(run, &run->argv[1], true, false);
    if (k && counts)
        store_add_int(run->out, n);
    else if (k)
        store_ok(run);
}

static void hset(struct store_run *run)
{
    set_fields(run, true);
}

static void hmset(struct store_run *run)
{
    set_fields(run, false);
}

static void hsetnx(struct store_run *run)
{
    struct store_key *k = store_key_make(run, &run->argv[1], STORE_HASH);
    if (!k)
        return;
    bool is_new = !find_field(k, &run->argv[2]);
    if (is_new) {
        add_to_hash(k, &run->argv[2], &run->argv[3]);
        store_wrote(run, &run->argv[1], true, false);
    }
    store_add_int(run->out, is_new);
}

static void reply_value(struct store_run *run, const struct store_field *f)
{
    if (f)
        store_bulk(run, f->value.ptr, f->value.len);
    else
        store_add_nil(run->out);
}

static void hget(struct store_run *run)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_HASH, &wrong);
    if (!wrong)
        reply_value(run, find_field(k, &run->argv[2]));
}

static void hmget(struct store_run *run)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_HASH, &wrong);
    if (wrong)
        return;
    store_add_array(run->out, run->argc - 2);
    for (int i = 2; i < run->argc; i++)
        reply_value(run, find_field(k, &run->argv[i]));
}

static void hgetall(struct store_run *run)
{
    list(run, STORE_HASH, true, true);
}

static void hkeys(struct store_run *run)
{
    list(run, STORE_HASH, true, false);
}

static void hvals(struct store_run *run)
{
    list(run, STORE_HASH, false, true);
}

static void hdel(struct store_run *run)
{
    drop_all(run, STORE_HASH);
}

static void hexists(struct store_run *run)
{
    has(run, STORE_HASH);
}

static void hlen(struct store_run *run)
{
    count_fields(run, STORE_HASH);
}

static void hstrlen(struct store_run *run)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_HASH, &wrong);
    const struct store_field *f = find_field(k, &run->argv[2]);
    if (!wrong)
        store_add_int(run->out, f ? (int64_t)f->value.len : 0);
}

static void hincrby(struct store_run *run)
{
    int64_t n = 0, by;
    bool wrong;
    if (!store_want_int(run, &run->argv[3], &by))
        return;
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_HASH, &wrong);
    const struct store_field *f = find_field(k, &run->argv[2]);
    if (wrong)
        return;
    if (f && !store_int(&(struct resp_arg){f->value.ptr, f->value.len}, &n)) {
        store_add_error(run->out, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(n, by, &n)) {
        store_add_error(run->out, "ERR increment or decrement would overflow");
        return;
    }
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, n);
    k = store_key_make(run, &run->argv[1], STORE_HASH);
    add_to_hash(k, &run->argv[2], &(struct resp_arg){text, (size_t)len});
    store_wrote(run, &run->argv[1], true, false);
    store_add_int(run->out, n);
}

const struct store_command store_hash_commands[] = {
    {"HDEL", -3, STORE_CHANGE, hdel},      {"HEXISTS", 3, STORE_LOOK, hexists},
    {"HGET", 3, STORE_LOOK, hget},         {"HGETALL", 2, STORE_LOOK, hgetall},
    {"HINCRBY", 4, STORE_CHANGE, hincrby}, {"HKEYS", 2, STORE_LOOK, hkeys},
    {"HLEN", 2, STORE_LOOK, hlen},         {"HMGET", -3, STORE_LOOK, hmget},
    {"HMSET", -4, STORE_CHANGE, hmset},    {"HSET", -4, STORE_CHANGE, hset},
    {"HSETNX", 4, STORE_CHANGE, hsetnx},   {"HSTRLEN", 3, STORE_LOOK, hstrlen},
    {"HVALS", 2, STORE_LOOK, hvals},       {NULL, 0, 0, NULL},
};

/* ---- sets ---- */

static void sadd(struct store_run *run)
{
    int64_t n = 0;
    struct store_key *k = store_key_make(run, &run->argv[1], STORE_SET);
    for (int i = 2; k && i < run->argc; i++)
        n += add_to_hash(k, &run->argv[i], NULL);
    if (k)
        store_add_int(run->out, n);
}

static void srem(struct store_run *run)
{
    drop_all(run, STORE_SET);
}

static void sismember(struct store_run *run)
{
    has(run, STORE_SET);
}

static void scard(struct store_run *run)
{
    count_fields(run, STORE_SET);
}

static void smembers(struct store_run *run)
{
    list(run, STORE_SET, true, false);
}

const struct store_command store_set_commands[] = {
    {"SADD", -3, 0, sadd},        {"SCARD", 2, 0, scard}, {"SISMEMBER", 3, 0, sismember},
    {"SMEMBERS", 2, 0, smembers}, {"SREM", -3, 0, srem},  {NULL, 0, 0, NULL},
};
