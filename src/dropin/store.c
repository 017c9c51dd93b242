/*
 * The keys by name, and the way from the words of a command to its function. Owns the values; what
 * they mean is known in store_<type>.c.
 *
 * Invariant: no collection is empty; the last element takes its key with it.
 */
#include "dropin/store_private.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/pool.h"
#include "base/util.h"

/* As many are looked through one by one: a script has a few keys, and a lock a few fields. */
enum { FEW = 16 };

/* ---- tables ---- */

struct store_entry *store_table_find(const struct store_table *t, const struct resp_arg *name)
{
    struct store_entry *e = t->first;
    if (t->by_name) {
        HASH_FIND(hh, t->by_name, name->ptr, name->len, e);
        return e;
    }
    while (e && (e->len != name->len || memcmp(e->name, name->ptr, name->len) != 0))
        e = e->next;
    return e;
}

static void index_entry(struct store_table *t, struct store_entry *e)
{
    HASH_ADD_KEYPTR(hh, t->by_name, e->name, e->len, e);
}

void store_table_add(struct store_table *t, struct store_entry *e)
{
    DL_APPEND(t->first, e);
    if (t->by_name)
        index_entry(t, e);
    else if (t->n == FEW)
        DL_FOREACH(t->first, e)
    index_entry(t, e);
    t->n++;
}

void store_table_drop(struct store_table *t, struct store_entry *e)
{
    if (t->by_name)
        HASH_DEL(t->by_name, e); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    DL_DELETE(t->first, e);
    t->n--;
}

/* ---- keys ---- */

struct store_bytes store_bytes_of(const struct resp_arg *arg)
{
    struct store_bytes b = {pool_get(arg->len), arg->len};
    if (arg->len)
        memcpy(b.ptr, arg->ptr, arg->len);
    return b;
}

void store_bytes_fini(struct store_bytes *b)
{
    pool_put(b->ptr, b->len);
}

void store_field_drop(struct store_table *t, struct store_field *f)
{
    store_table_drop(t, &f->entry);
    store_bytes_fini(&f->value);
    pool_put(f, sizeof *f + f->entry.len);
}

static void free_members(struct store_key *k)
{
    struct store_member *m, *next;
    HASH_ITER(hh, k->zset.members, m, next)
    {
        HASH_DEL(k->zset.members, m); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
        free(m);
    }
    free(k->zset.order);
}

void store_value_fini(struct store_key *k)
{
    switch ((enum store_type)k->type) {
    case STORE_STRING:
        store_bytes_fini(&k->string);
        break;
    case STORE_HASH:
    case STORE_SET:
        while (k->fields.first)
            store_field_drop(&k->fields, (struct store_field *)k->fields.first);
        break;
    case STORE_LIST:
        for (size_t i = 0; i < k->list.n; i++)
            store_bytes_fini(&k->list.items[i]);
        free(k->list.items);
        break;
    case STORE_ZSET:
        free_members(k);
        break;
    }
}

void store_key_drop(struct store *s, struct store_key *k)
{
    store_table_drop(&s->keys, &k->entry);
    store_value_fini(k);
    pool_put(k, sizeof *k + k->entry.len);
}

struct store_key *store_key_find(struct store_run *run, const struct resp_arg *name)
{
    struct store_key *k = (struct store_key *)store_table_find(&run->store->keys, name);
    if (k && run->now_ms > k->expires_ms) {
        store_key_drop(run->store, k);
        return NULL;
    }
    return k;
}

struct store_key *store_key_get(struct store_run *run, const struct resp_arg *name,
                                enum store_type type, bool *wrong)
{
    struct store_key *k = store_key_find(run, name);
    *wrong = k && k->type != type;
    if (*wrong)
        store_add_error(run->out,
                        "WRONGTYPE Operation against a key holding the wrong kind of value");
    return *wrong ? NULL : k;
}

struct store_key *store_key_make(struct store_run *run, const struct resp_arg *name,
                                 enum store_type type)
{
    bool wrong;
    struct store_key *k = store_key_get(run, name, type, &wrong);
    if (k || wrong)
        return k;
    k = pool_get(sizeof *k + name->len);
    k->type = (uint8_t)type;
    k->expires_ms = INT64_MAX;
    k->entry.name = memcpy(k->name, name->ptr, name->len);
    k->entry.len = name->len;
    store_table_add(&run->store->keys, &k->entry);
    return k;
}

void store_wrote(struct store_run *run, const struct resp_arg *name, bool value, bool time)
{
    if (run->store->wrote)
        run->store->wrote(run->store->arg, name, value, time);
}

/* ---- commands ---- */

static const struct store_command *const tables[] = {
    store_string_commands,
    store_key_commands,
    store_hash_commands,
    store_set_commands,
};

struct named {
    UT_hash_handle hh;
    const struct store_command *command;
};
static struct named *by_name; /* filled at the first call and kept */

enum { NAME_MAX_ = 24 };

/* Writes the name in capitals; returns its hash. Its length is below NAME_MAX_. */
static unsigned take_name(const char *word, size_t len, char name[NAME_MAX_])
{
    unsigned hash = (unsigned)len;
    for (size_t i = 0; i < len; i++) {
        char c = word[i];
        name[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        hash = hash * 33 + (unsigned char)name[i];
    }
    return hash;
}

static struct named *find_named(const char *word, size_t len)
{
    char name[NAME_MAX_];
    struct named *n;
    unsigned hash = take_name(word, len, name);
    HASH_FIND_BYHASHVALUE(hh, by_name, name, len, hash, n);
    return n;
}

static void index_table(const struct store_command *table)
{
    char name[NAME_MAX_];
    if (find_named(table->name, strlen(table->name)))
        return;
    for (const struct store_command *c = table; c->name; c++) {
        struct named *one = util_alloc(sizeof *one);
        size_t len = strlen(c->name);
        unsigned hash = take_name(c->name, len, name);
        one->command = c;
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, by_name, c->name, len, hash, one);
    }
}

static void index_commands(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        index_table(tables[i]);
}

void store_learn(const struct store_command *table)
{
    if (!by_name)
        index_commands();
    index_table(table);
}

/* The commands that were found last, by the words as they were said. */
static struct {
    const struct store_command *command; /* NULL: none yet */
    size_t len;
    char word[NAME_MAX_];
} recent[16];

const struct store_command *store_find(const struct resp_arg *word)
{
    enum { RECENT = sizeof recent / sizeof recent[0] };
    if (word->len == 0 || word->len >= NAME_MAX_)
        return NULL;
    size_t at = (word->len * 5 + (unsigned char)word->ptr[0]) % RECENT;
    if (recent[at].command && recent[at].len == word->len &&
        memcmp(recent[at].word, word->ptr, word->len) == 0)
        return recent[at].command;
    if (!by_name)
        index_commands();
    const struct named *n = find_named(word->ptr, word->len);
    if (!n)
        return NULL;
    recent[at].command = n->command;
    recent[at].len = word->len;
    memcpy(recent[at].word, word->ptr, word->len);
    return n->command;
}

int store_traits(const struct store_command *c)
{
    return c->traits;
}

void store_call(struct store *s, const struct resp_arg *argv, int argc, struct store_reply *out)
{
    store_run(s, argc > 0 ? store_find(&argv[0]) : NULL, argv, argc, out);
}

void store_run(struct store *s, const struct store_command *c, const struct resp_arg *argv,
               int argc, struct store_reply *out)
{
    struct store_run run = {s, argv, argc, s->now_us / 1000, out};
    if (!c)
        store_add_error(out, "ERR Unknown Redis command called from script");
    else if (c->arity > 0 ? argc != c->arity : argc < -c->arity)
        store_add_error(out, "ERR Wrong number of args calling Redis command from script");
    else
        c->fn(&run);
}

/* ---- without words ---- */

struct store_seen store_see(struct store *s, const struct resp_arg *name)
{
    struct store_run run = {.store = s, .now_ms = s->now_us / 1000};
    const struct store_key *k = store_key_find(&run, name);
    struct store_seen seen = {.is_there = k != NULL};
    if (!k)
        return seen;
    seen.is_string = k->type == STORE_STRING;
    seen.is_hash = k->type == STORE_HASH;
    seen.expires_ms = k->expires_ms;
    if (seen.is_string) {
        seen.ptr = k->string.ptr;
        seen.len = k->string.len;
    }
    return seen;
}

void store_put_string(struct store *s, const struct resp_arg *name, const struct resp_arg *value)
{
    struct store_run run = {.store = s, .now_ms = s->now_us / 1000};
    struct store_key *k = store_key_make(&run, name, STORE_STRING);
    store_bytes_fini(&k->string);
    k->string = store_bytes_of(value);
}

void store_put_time(struct store *s, const struct resp_arg *name, int64_t expires_ms)
{
    struct store_run run = {.store = s, .now_ms = s->now_us / 1000};
    struct store_key *k = store_key_find(&run, name);
    if (k)
        k->expires_ms = expires_ms;
}

/* ---- the whole ---- */

void store_init(struct store *s)
{
    memset(s, 0, sizeof *s);
}

void store_flush(struct store *s)
{
    while (s->keys.first)
        store_key_drop(s, (struct store_key *)s->keys.first);
}

void store_fini(struct store *s)
{
    store_flush(s);
}

void store_sweep(struct store *s)
{
    struct store_entry *e, *next;
    DL_FOREACH_SAFE(s->keys.first, e, next)
    {
        struct store_key *k = (struct store_key *)e;
        if (s->now_us / 1000 > k->expires_ms)
            store_key_drop(s, k);
    }
}

void store_each(struct store *s, void (*each)(void *arg, const char *key, size_t len), void *arg)
{
    store_sweep(s);
    for (const struct store_entry *e = s->keys.first; e; e = e->next)
        each(arg, e->name, e->len);
}
