/* The text of a state is read in one place (take_head, take_item), whoever has written it: any
 * bytes may come back from the masters. */
#include "dropin/state.h"

#include <string.h>

#include "base/utf8.h"
#include "base/util.h"
#include "lock/lock.h"

static const char prefix[] = LOCK_DROP_IN;

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

/* Returns whether all behind the head is a hash: pairs to the end, at least one. */
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
    const struct resp_arg value = {c.p, (size_t)(c.end - c.p)};
    store_put_string(&k->store, &k->names[i], &value);
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

int state_suppose(struct keys *k, int i, const struct truth *t, int64_t ahead_ms)
{
    struct cursor c = cursor_of(truth_bytes(t), truth_len(t));
    bool has_time = true;
    char kind = 's';
    if (t->kind != TRUTH_DROPIN && t->kind != TRUTH_NATIVE && t->kind != TRUTH_PLAIN)
        return 0;
    if (t->kind != TRUTH_NATIVE && !take_head(&c, &kind, &has_time))
        return -1;
    if (kind == 'h' && !is_hash(c))
        return -1;
    if (kind == 'h')
        suppose_hash(k, i, c);
    else
        suppose_string(k, i, c);
    if (has_time)
        store_put_time(&k->store, &k->names[i], t->expires_ms + ahead_ms);
    return 0;
}

/* ---- writing ---- */

static void write_head(struct buf *out, char kind, bool has_time)
{
    char head[HEAD_LEN];
    memcpy(head, prefix, sizeof prefix - 1);
    memcpy(head + sizeof prefix - 1, (char[]){kind, ' ', has_time ? 't' : '-', ' '}, 4);
    buf_append(out, head, sizeof head);
}

static void write_item(struct buf *out, const char *bytes, size_t len)
{
    char digits[24], *end = util_put_digits(digits, len);
    *end++ = ':';
    buf_append(out, digits, (size_t)(end - digits));
    buf_append(out, bytes, len);
}

/* -1: too many fields. */
static int write_hash(struct keys *k, int i, struct buf *out)
{
    const struct resp_arg argv[] = {word("HGETALL"), k->names[i]};
    struct store_reply pairs = {0};
    keys_suppose(k, argv, 2, &pairs);
    int result = pairs.n_nodes - 1 > 2 * STATE_FIELDS_MAX ? -1 : 0;
    for (int j = 1; j < pairs.n_nodes && result == 0; j++)
        write_item(out, store_text(&pairs, &pairs.nodes[j]), pairs.nodes[j].len);
    store_reply_fini(&pairs);
    return result;
}

/* Appends the text of what stands under key i, however long. */
static int write_found(struct keys *k, int i, struct buf *out, struct state_found *found)
{
    struct store_seen seen = store_see(&k->store, &k->names[i]);
    if (!seen.is_there)
        return 0;
    if (!seen.is_string && !seen.is_hash)
        return -1;
    *found = (struct state_found){true, seen.expires_ms != INT64_MAX, seen.expires_ms};
    write_head(out, seen.is_hash ? 'h' : 's', found->has_time);
    if (seen.is_hash)
        return write_hash(k, i, out);
    buf_append(out, seen.ptr, seen.len);
    return 0;
}

int state_write(struct keys *k, int i, struct buf *out, struct state_found *found)
{
    size_t before = buf_len(out);
    *found = (struct state_found){0};
    int result = write_found(k, i, out, found);
    if (buf_len(out) - before > DROPIN_STATE_MAX)
        result = -1;
    if (result < 0)
        out->end -= buf_len(out) - before;
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

/* ---- for people ---- */

/* False: there was no room for all of it. */
static bool show_bytes(struct buf *out, size_t most, const char *p, size_t len)
{
    char shown[UTF8_SHOWN_MAX];
    size_t n;
    for (const char *end = p + len; p < end;) {
        if (buf_len(out) >= most)
            return false;
        p += utf8_show(p, (size_t)(end - p), shown, &n);
        buf_append(out, shown, n);
    }
    return true;
}

/* "field: value, field: value" */
static bool show_pairs(struct buf *out, size_t most, struct cursor c)
{
    struct resp_arg pair[2];
    bool is_whole = true;
    for (const char *first = c.p; c.p < c.end && is_whole;) {
        const char *before = c.p == first ? "" : ", ";
        is_whole = take_pair(&c, pair) && show_bytes(out, most, before, strlen(before)) &&
                   show_bytes(out, most, pair[0].ptr, pair[0].len) &&
                   show_bytes(out, most, ": ", 2) &&
                   show_bytes(out, most, pair[1].ptr, pair[1].len);
    }
    return is_whole;
}

void state_show(const char *text, size_t len, struct buf *out)
{
    struct cursor c = cursor_of(text, len);
    size_t most = buf_len(out) + STATE_SHOWN;
    bool has_time, is_whole;
    char kind = 's';
    (void)take_head(&c, &kind, &has_time); /* else all of it is shown */
    if (kind == 'h')
        is_whole = show_pairs(out, most, c);
    else
        is_whole = show_bytes(out, most, c.p, (size_t)(c.end - c.p));
    if (!is_whole)
        buf_printf(out, "\342\200\246");
}

bool state_is_hash(const char *text, size_t len)
{
    struct cursor c = cursor_of(text, len);
    bool has_time;
    char kind;
    return take_head(&c, &kind, &has_time) && kind == 'h';
}
