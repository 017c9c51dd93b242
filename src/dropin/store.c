/*
 * The keys by name, and the way from the words of a command to its function. Owns the values; what
 * they mean is known in store_<type>.c.
 *
 * Invariant: no collection is empty; the last element takes its key with it.
 */
#include "dropin/store_private.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

/* ---- replies ---- */

void store_reply_clear(struct store_reply *r)
{
    r->n_nodes = 0;
    buf_consume(&r->texts, buf_len(&r->texts));
}

void store_reply_fini(struct store_reply *r)
{
    free(r->nodes);
    buf_fini(&r->texts);
    memset(r, 0, sizeof *r);
}

const char *store_text(const struct store_reply *r, const struct store_node *node)
{
    return node->len ? buf_head(&r->texts) + node->at : "";
}

static struct store_node *store_add_node(struct store_reply *r, enum store_kind kind)
{
    if (r->n_nodes == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 16;
        r->nodes = util_realloc(r->nodes, (size_t)r->cap * sizeof *r->nodes);
    }
    struct store_node *node = &r->nodes[r->n_nodes++];
    *node = (struct store_node){.kind = (uint8_t)kind};
    return node;
}

void store_add_nil(struct store_reply *r)
{
    store_add_node(r, STORE_NIL);
}

void store_add_int(struct store_reply *r, int64_t n)
{
    store_add_node(r, STORE_INT)->n = n;
}

void store_add_array(struct store_reply *r, int64_t n)
{
    store_add_node(r, STORE_ARRAY)->n = n;
}

void store_add_map(struct store_reply *r, int64_t n)
{
    store_add_node(r, STORE_MAP)->n = n;
}

void store_add_text(struct store_reply *r, enum store_kind kind, const void *text, size_t len)
{
    struct store_node *node = store_add_node(r, kind);
    node->at = buf_len(&r->texts);
    node->len = len;
    buf_append(&r->texts, text, len);
}

static bool is_reply_line_end(char c)
{
    return c == '\r' || c == '\n';
}

void store_add_line(struct store_reply *r, enum store_kind kind, const char *text)
{
    size_t len = strlen(text);
    while (kind == STORE_ERROR && len && is_reply_line_end(text[len - 1]))
        len--;
    store_add_text(r, kind, text, len);
    char *line = buf_head(&r->texts) + buf_len(&r->texts) - len;
    for (size_t i = 0; i < len; i++) {
        if (is_reply_line_end(line[i]))
            line[i] = ' ';
    }
}

void store_add_error(struct store_reply *r, const char *text)
{
    store_add_line(r, STORE_ERROR, text);
}

/* Writes node i; returns the node behind all that belongs to it. */
static int write_node(const struct store_reply *r, int i, struct resp_writer *w)
{
    const struct store_node *node = &r->nodes[i++];
    switch ((enum store_kind)node->kind) {
    case STORE_NIL:
        resp_null(w);
        break;
    case STORE_STATUS:
    case STORE_ERROR:
        buf_append(w->out, node->kind == STORE_ERROR ? "-" : "+", 1);
        buf_append(w->out, store_text(r, node), node->len);
        buf_append(w->out, "\r\n", 2);
        break;
    case STORE_INT:
        resp_int(w, node->n);
        break;
    case STORE_BULK:
        resp_bulk(w, store_text(r, node), node->len);
        break;
    case STORE_ARRAY:
    case STORE_MAP:
        if (node->kind == STORE_MAP)
            resp_map(w, (size_t)node->n / 2);
        else
            resp_array(w, (size_t)node->n);
        for (int64_t left = node->n; left > 0; left--)
            i = write_node(r, i, w);
        break;
    }
    return i;
}

void store_reply_write(const struct store_reply *r, struct resp_writer *w)
{
    write_node(r, 0, w);
}

void store_ok(struct store_run *run)
{
    store_add_text(run->out, STORE_STATUS, "OK", 2);
}

void store_bulk(struct store_run *run, const void *text, size_t len)
{
    store_add_text(run->out, STORE_BULK, text, len);
}

void store_syntax_error(struct store_run *run)
{
    store_add_error(run->out, "ERR syntax error");
}

void store_double(struct store_run *run, double d)
{
    char text[64];
    int len = isinf(d) ? snprintf(text, sizeof text, d > 0 ? "inf" : "-inf")
                       : snprintf(text, sizeof text, "%.17g", d);
    store_bulk(run, text, (size_t)len);
}

/* ---- keys ---- */

struct store_bytes store_bytes_of(const struct resp_arg *arg)
{
    return (struct store_bytes){util_memdup(arg->ptr, arg->len), arg->len};
}

static void free_fields(struct store_key *k)
{
    struct store_field *f, *next;
    HASH_ITER(hh, k->fields, f, next)
    {
        HASH_DEL(k->fields, f); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
        free(f->value.ptr);
        free(f);
    }
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
        free(k->string.ptr);
        break;
    case STORE_HASH:
    case STORE_SET:
        free_fields(k);
        break;
    case STORE_LIST:
        for (size_t i = 0; i < k->list.n; i++)
            free(k->list.items[i].ptr);
        free(k->list.items);
        break;
    case STORE_ZSET:
        free_members(k);
        break;
    }
}

void store_key_drop(struct store *s, struct store_key *k)
{
    HASH_DEL(s->keys, k); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    store_value_fini(k);
    free(k);
}

struct store_key *store_key_find(struct store_run *run, const struct resp_arg *name)
{
    struct store_key *k;
    HASH_FIND(hh, run->store->keys, name->ptr, name->len, k);
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
    k = util_alloc(sizeof *k + name->len + 1);
    k->type = (uint8_t)type;
    k->expires_ms = INT64_MAX;
    k->len = name->len;
    memcpy(k->name, name->ptr, name->len);
    HASH_ADD_KEYPTR(hh, run->store->keys, k->name, k->len, k);
    return k;
}

void store_wrote(struct store_run *run, const struct resp_arg *name, bool value, bool time)
{
    if (run->store->wrote)
        run->store->wrote(run->store->arg, name, value, time);
}

/* ---- arguments ---- */

bool store_is(const struct resp_arg *arg, const char *word)
{
    return strlen(word) == arg->len && strncasecmp(arg->ptr, word, arg->len) == 0;
}

bool store_int(const struct resp_arg *arg, int64_t *out)
{
    return util_parse_int(arg->ptr, arg->len, INT64_MIN, INT64_MAX, out) == 0;
}

bool store_want_int(struct store_run *run, const struct resp_arg *arg, int64_t *out)
{
    if (store_int(arg, out))
        return true;
    store_add_error(run->out, "ERR value is not an integer or out of range");
    return false;
}

bool store_want_double(struct store_run *run, const struct resp_arg *arg, double *out)
{
    char text[128], *end;
    if (arg->len > 0 && arg->len < sizeof text && !strchr(" \t\n\v\f\r", arg->ptr[0])) {
        memcpy(text, arg->ptr, arg->len);
        text[arg->len] = '\0';
        *out = strtod(text, &end);
        if (end == text + arg->len && !isnan(*out))
            return true;
    }
    store_add_error(run->out, "ERR value is not a valid float");
    return false;
}

static bool invalid_time(struct store_run *run)
{
    char text[96], name[32];
    size_t len = run->argv[0].len < sizeof name ? run->argv[0].len : sizeof name - 1;
    for (size_t i = 0; i < len; i++)
        name[i] = (char)(run->argv[0].ptr[i] | 0x20);
    snprintf(text, sizeof text, "ERR invalid expire time in '%.*s' command", (int)len, name);
    store_add_error(run->out, text);
    return false;
}

bool store_want_time(struct store_run *run, const struct resp_arg *arg, int64_t unit_ms,
                     bool is_relative, bool may_be_past, int64_t *at_ms)
{
    int64_t n;
    if (!store_want_int(run, arg, &n))
        return false;
    if (!may_be_past && n <= 0)
        return invalid_time(run);
    if (n > INT64_MAX / unit_ms || n < INT64_MIN / unit_ms)
        return invalid_time(run);
    n *= unit_ms;
    if (is_relative && n > INT64_MAX - run->now_ms)
        return invalid_time(run);
    *at_ms = is_relative ? n + run->now_ms : n;
    return true;
}

bool store_range(int64_t n, int64_t *start, int64_t *stop)
{
    if (*start < 0)
        *start = *start + n < 0 ? 0 : *start + n;
    if (*stop < 0)
        *stop += n;
    if (*stop >= n)
        *stop = n - 1;
    return *start <= *stop && *start < n;
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

static void index_table(const struct store_command *table)
{
    struct named *n;
    HASH_FIND(hh, by_name, table->name, strlen(table->name), n);
    for (const struct store_command *c = table; !n && c->name; c++) {
        struct named *one = util_alloc(sizeof *one);
        one->command = c;
        HASH_ADD_KEYPTR(hh, by_name, c->name, strlen(c->name), one);
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

static const struct store_command *lookup(const struct resp_arg *word)
{
    char name[24];
    struct named *n;
    if (!by_name)
        index_commands();
    if (word->len >= sizeof name)
        return NULL;
    for (size_t i = 0; i < word->len; i++) {
        char c = word->ptr[i];
        name[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    HASH_FIND(hh, by_name, name, word->len, n);
    return n ? n->command : NULL;
}

void store_call(struct store *s, const struct resp_arg *argv, int argc, struct store_reply *out)
{
    struct store_run run = {s, argv, argc, s->now_us / 1000, out};
    const struct store_command *c = argc > 0 ? lookup(&argv[0]) : NULL;
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
    free(k->string.ptr);
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
    while (s->keys)
        store_key_drop(s, s->keys);
}

void store_fini(struct store *s)
{
    store_flush(s);
}

void store_sweep(struct store *s)
{
    struct store_key *k, *next;
    HASH_ITER(hh, s->keys, k, next)
    {
        if (s->now_us / 1000 > k->expires_ms)
            store_key_drop(s, k);
    }
}

void store_each(struct store *s, void (*each)(void *arg, const char *key, size_t len), void *arg)
{
    store_sweep(s);
    for (struct store_key *k = s->keys; k; k = k->hh.next)
        each(arg, k->name, k->len); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
}
