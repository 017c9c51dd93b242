/* Compares what stood under the keys before a run with what stands there after it, in words. */
#include "dropin/probe_private.h"

#include <string.h>

static void text_of_ask(struct keys *k, int key, const char *command, struct store_reply *out)
{
    struct resp_arg words[] = {{command, strlen(command)}, k->names[key]};
    store_reply_clear(out);
    keys_suppose(k, words, 2, out);
}

static bool is_type(const struct probe_state *s, const char *type)
{
    return s->type.nodes[0].len == strlen(type) &&
           memcmp(store_text(&s->type, &s->type.nodes[0]), type, strlen(type)) == 0;
}

void probe_state_look(struct probe_state *s, struct keys *k, int key)
{
    text_of_ask(k, key, "TYPE", &s->type);
    text_of_ask(k, key, "PTTL", &s->left);
    store_reply_clear(&s->value);
    if (!is_type(s, "none"))
        text_of_ask(k, key, is_type(s, "hash") ? "HGETALL" : "GET", &s->value);
}

void probe_state_fini(struct probe_state *s)
{
    store_reply_fini(&s->type);
    store_reply_fini(&s->value);
    store_reply_fini(&s->left);
}

/* ---- replies ---- */

void probe_say_bytes(struct buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\0')
            buf_append(out, "\\x00", 4);
        else
            buf_append(out, text + i, 1);
    }
}

/* Says node i; returns the node behind all that belongs to it. */
static int say_node(struct buf *out, const struct store_reply *r, int i)
{
    const struct store_node *node = &r->nodes[i++];
    switch ((enum store_kind)node->kind) {
    case STORE_NIL:
        buf_append(out, "nil", 3);
        break;
    case STORE_INT:
        buf_printf(out, "%lld", (long long)node->n);
        break;
    case STORE_STATUS:
    case STORE_ERROR:
    case STORE_BULK:
        if (node->kind == STORE_BULK)
            buf_append(out, "'", 1);
        probe_say_bytes(out, store_text(r, node), node->len);
        if (node->kind == STORE_BULK)
            buf_append(out, "'", 1);
        break;
    case STORE_ARRAY:
    case STORE_MAP:
        buf_append(out, "[", 1);
        for (int64_t left = node->n; left > 0; left--) {
            i = say_node(out, r, i);
            if (left > 1)
                buf_append(out, ", ", 2);
        }
        buf_append(out, "]", 1);
        break;
    }
    return i;
}

void probe_say_reply(struct buf *out, const struct store_reply *r)
{
    say_node(out, r, 0);
}

/* ---- what was done ---- */

static bool same_text(const struct store_reply *a, int i, const struct store_reply *b, int j)
{
    return a->nodes[i].len == b->nodes[j].len &&
           memcmp(store_text(a, &a->nodes[i]), store_text(b, &b->nodes[j]), a->nodes[i].len) == 0;
}

/* The node of the value of a field; 0: there is none. */
static int text_of_value(const struct store_reply *pairs, const struct store_reply *of, int field)
{
    for (int i = 1; i + 1 < pairs->n_nodes; i += 2) {
        if (same_text(pairs, i, of, field))
            return i + 1;
    }
    return 0;
}

static void say_text(struct buf *out, const struct store_reply *r, int i)
{
    probe_say_bytes(out, store_text(r, &r->nodes[i]), r->nodes[i].len);
}

/* "field 'me' 1 to 2"; true: one of the fields is as before. */
static bool say_fields(struct buf *out, const struct store_reply *old,
                       const struct store_reply *new)
{
    bool is_kept = false;
    for (int i = 1; i + 1 < new->n_nodes; i += 2) {
        int was = text_of_value(old, new, i);
        is_kept = is_kept || was;
        if (was && same_text(old, was, new, i + 1))
            continue;
        buf_append(out, ", field ", 8);
        say_text(out, new, i);
        buf_append(out, " ", 1);
        if (was) {
            say_text(out, old, was);
            buf_append(out, " to ", 4);
        }
        say_text(out, new, i + 1);
    }
    for (int i = 1; i + 1 < old->n_nodes; i += 2) {
        if (text_of_value(new, old, i))
            continue;
        buf_append(out, ", without field ", 16);
        say_text(out, old, i);
    }
    return is_kept;
}

/* Names the lock operation that the change is, for people. */
static const char *name_change(const struct probe_state *old, const struct probe_state *new,
                               struct buf *details)
{
    bool was = !is_type(old, "none"), is = !is_type(new, "none");
    if (!was || !is)
        return is ? "takes" : was ? "frees" : "leaves nothing at";
    if (is_type(old, "hash") != is_type(new, "hash"))
        return "replaces the holder of";
    if (is_type(new, "hash"))
        return !say_fields(details, &old->value, &new->value) ? "replaces the holder of"
               : buf_len(details)                             ? "keeps"
                                                              : "renews";
    return same_text(&old->value, 0, &new->value, 0) ? "renews" : "replaces the holder of";
}

static void say_left(struct buf *out, const struct probe_state *s)
{
    if (s->left.nodes[0].n < 0)
        buf_append(out, " without a time to live", 23);
    else
        buf_printf(out, " for %lld ms", (long long)s->left.nodes[0].n);
}

static void say_key(struct buf *out, struct keys *k, int key, const struct probe_state *before)
{
    struct probe_state after = {0};
    struct buf details = {0};
    const struct keys_seen *seen = &k->seen[key];
    probe_state_look(&after, k, key);
    if (buf_len(out))
        buf_append(out, "; ", 2);
    if (!seen->wrote_value && !seen->wrote_time) {
        buf_printf(out, "looks at KEYS[%d]%s", key + 1, seen->read_time ? " and its time" : "");
    } else {
        const char *change = name_change(before, &after, &details);
        buf_printf(out, "%s KEYS[%d]", change, key + 1);
        if (buf_len(&details))
            buf_append(out, buf_head(&details), buf_len(&details));
        if (!is_type(&after, "none"))
            say_left(out, &after);
    }
    buf_fini(&details);
    probe_state_fini(&after);
}

void probe_say_done(struct buf *out, struct keys *k, const struct probe_state *before)
{
    int published = k->published.n_nodes / 2;
    for (int i = 0; i < k->n; i++) {
        if (k->seen[i].is_read || k->seen[i].wrote_value || k->seen[i].wrote_time)
            say_key(out, k, i, &before[i]);
    }
    if (published)
        buf_printf(out, "%spublishes %d message%s", buf_len(out) ? "; " : "", published,
                   published > 1 ? "s" : "");
    if (buf_len(out) == 0)
        buf_append(out, "nothing", 7);
}
