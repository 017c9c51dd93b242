/* Replies, as trees in preorder: made, and written as Redis sends them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "dropin/store_private.h"

void store_reply_clear(struct store_reply *r)
{
    r->n_nodes = 0;
    buf_clear(&r->texts);
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
