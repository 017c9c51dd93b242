/* The text of a state is read in one place (take_head, take_item), whoever has written it: any
 * bytes may come back from the masters. */
#include "dropin/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

static const char prefix[] = "drop-in ";

/* "drop-in s t ": the prefix, the kind, whether it has a time to live. */
enum { HEAD_LEN = sizeof prefix - 1 + 4, ITEM_DIGITS_MAX = 4 };

/* Words of one HSET: two of the command, then pairs. */
enum { HSET_WORDS = 2 + 2 * 32 };

/* ---- reading a text ---- */

struct cursor {
    const char *p, *end;
};

/* Takes the head: its kind, 's' or 'h', and whether there is a time to live. */
static bool take_head(struct cursor *c, char *kind, bool *has_time)
{
    const char *p = c->p;
    if (c->end - p < HEAD_LEN || memcmp(p, prefix, sizeof prefix - 1) != 0)
        return false;
    p += sizeof prefix - 1;
    if ((p[0] != 's' && p[0] != 'h') || p[1] != ' ' || (p[2] != 't' && p[2] != '-') || p[3] != ' ')
        return false;
    *kind = p[0];
    *has_time = p[2] == 't';
    c->p += HEAD_LEN;
    return true;
}

/* Takes "<len>:<bytes>". */
static bool take_item(struct cursor *c, struct resp_arg *item)
{
    const char *colon = memchr(c->p, ':', (size_t)(c->end - c->p));
    int64_t len;
    if (!colon || colon - c->p > ITEM_DIGITS_MAX ||
        util_parse_int(c->p, (size_t)(colon - c->p), 0, c->end - colon - 1, &len) != 0)
        return false;
    *item = (struct resp_arg){colon + 1, (size_t)len};
    c->p = colon + 1 + len;
    return true;
}

/* Takes a field and its value. */
static bool take_pair(struct cursor *c, struct resp_arg pair[2])
{
    return take_item(c, &pair[0]) && take_item(c, &pair[1]);
}

/* What is behind the head is a hash: pairs to the end, at least one. */
static bool is_hash(struct cursor c)
{
    struct resp_arg pair[2];
    int n = 0;
    while (c.p < c.end) {
        if (++n > STATE_FIELDS_MAX || !take_pair(&c, pair))
            return false;
    }
    return n > 0;
}

static struct cursor cursor_of(const char *text, size_t len)
{
    return len ? (struct cursor){text, text + len} : (struct cursor){"", ""};
}

/* ---- supposing ---- */

static struct resp_arg word(const char *text)
{
    return (struct resp_arg){text, strlen(text)};
}

static void suppose_string(struct keys *k, int i, struct cursor c)
{
    const struct resp_arg argv[] = {word("SET"), k->names[i], {c.p, (size_t)(c.end - c.p)}};
    keys_suppose(k, argv, 3, NULL);
}

static void suppose_hash(struct keys *k, int i, struct cursor c)
{
    struct resp_arg argv[HSET_WORDS] = {word("HSET"), k->names[i]};
    int argc = 2;
    while (c.p < c.end && take_pair(&c, &argv[argc])) {
        argc += 2;
        if (argc == HSET_WORDS || c.p == c.end) {
            keys_suppose(k, argv, argc, NULL);
            argc = 2;
        }
    }
}

static void suppose_time(struct keys *k, int i, int64_t at_ms)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, at_ms);
    const struct resp_arg argv[] = {word("PEXPIREAT"), k->names[i], word(text)};
    keys_suppose(k, argv, 3, NULL);
}

int state_suppose(struct keys *k, int i, const struct truth *t, int64_t ahead_ms)
{
    struct cursor c = cursor_of(buf_head(&t->text), buf_len(&t->text));
    bool has_time = true;
    char kind = 's';
    if (t->kind != TRUTH_DROPIN && t->kind != TRUTH_NATIVE)
        return 0;
    if (t->kind == TRUTH_DROPIN && !take_head(&c, &kind, &has_time))
        return -1;
    if (kind == 'h' && !is_hash(c))
        return -1;
    if (kind == 'h')
        suppose_hash(k, i, c);
    else
        suppose_string(k, i, c);
    if (has_time)
        suppose_time(k, i, t->expires_ms + ahead_ms);
    return 0;
}

/* ---- writing ---- */

/* Asks the make-believe about key i. */
static void ask(struct keys *k, int i, const char *command, struct store_reply *out)
{
    const struct resp_arg argv[] = {word(command), k->names[i]};
    store_reply_clear(out);
    keys_suppose(k, argv, 2, out);
}

static bool is_type(const struct store_reply *r, const char *name)
{
    return r->nodes[0].len == strlen(name) &&
           memcmp(store_text(r, &r->nodes[0]), name, strlen(name)) == 0;
}

static void write_string(struct buf *out, const struct store_reply *value)
{
    buf_append(out, store_text(value, &value->nodes[0]), value->nodes[0].len);
}

static void write_hash(struct buf *out, const struct store_reply *pairs)
{
    for (int i = 1; i < pairs->n_nodes; i++) {
        const struct store_node *node = &pairs->nodes[i];
        buf_printf(out, "%zu:", node->len);
        buf_append(out, store_text(pairs, node), node->len);
    }
}

static void find_time(struct keys *k, int i, struct store_reply *reply, struct state_found *found)
{
    ask(k, i, "PEXPIRETIME", reply);
    found->expires_ms = reply->nodes[0].n;
    found->has_time = found->expires_ms >= 0;
}

/* Appends the text of what is there, of whatever length. -1: it is of another type. */
static int write_found(struct keys *k, int i, struct store_reply *reply, struct buf *out,
                       struct state_found *found)
{
    ask(k, i, "TYPE", reply);
    if (is_type(reply, "none"))
        return 0;
    bool is_hash = is_type(reply, "hash");
    if (!is_hash && !is_type(reply, "string"))
        return -1;
    found->is_there = true;
    find_time(k, i, reply, found);
    buf_printf(out, "%s%c %c ", prefix, is_hash ? 'h' : 's', found->has_time ? 't' : '-');
    ask(k, i, is_hash ? "HGETALL" : "GET", reply);
    if (is_hash && reply->nodes[0].n > 2 * STATE_FIELDS_MAX)
        return -1;
    if (is_hash)
        write_hash(out, reply);
    else
        write_string(out, reply);
    return 0;
}

int state_write(struct keys *k, int i, struct buf *out, struct state_found *found)
{
    struct store_reply reply = {0};
    size_t before = buf_len(out);
    *found = (struct state_found){0};
    int result = write_found(k, i, &reply, out, found);
    if (buf_len(out) - before > DROPIN_STATE_MAX)
        result = -1;
    if (result < 0)
        out->end -= buf_len(out) - before;
    store_reply_fini(&reply);
    return result;
}

/* ---- comparing ---- */

static bool same_bytes(const struct resp_arg *a, const struct resp_arg *b)
{
    return a->len == b->len && memcmp(a->ptr, b->ptr, a->len) == 0;
}

static bool has_field(struct cursor c, const struct resp_arg *field)
{
    struct resp_arg pair[2];
    while (c.p < c.end && take_pair(&c, pair)) {
        if (same_bytes(&pair[0], field))
            return true;
    }
    return false;
}

static bool shares_a_field(struct cursor a, struct cursor b)
{
    struct resp_arg pair[2];
    while (a.p < a.end && take_pair(&a, pair)) {
        if (has_field(b, &pair[0]))
            return true;
    }
    return false;
}

bool state_is_kept(const char *old, size_t old_len, const char *new, size_t new_len)
{
    struct cursor a = cursor_of(old, old_len), b = cursor_of(new, new_len);
    bool has_time[2];
    char kind[2];
    if (!take_head(&a, &kind[0], &has_time[0]) || !take_head(&b, &kind[1], &has_time[1]) ||
        kind[0] != kind[1])
        return false;
    if (kind[0] == 'h')
        return is_hash(a) && is_hash(b) && shares_a_field(a, b);
    const struct resp_arg values[] = {{a.p, (size_t)(a.end - a.p)}, {b.p, (size_t)(b.end - b.p)}};
    return same_bytes(&values[0], &values[1]);
}
