/*
 * The arguments of a command in words, as a tree: recursive descent over the text of a table row.
 * The texts are ours and short, so nodes come from a fixed array and mistakes are asserted.
 */
#include "command/syntax.h"

#include <assert.h>
#include <string.h>

/* What stands at the place: one of "[]<>|", '.' for "...", 'a' for a word, 'A' for a token, 0 at
 * the end. */
struct lexer {
    const char *at; /* behind the lexeme */
    const char *ptr;
    size_t len;
    char kind;
};

static void lexer_next(struct lexer *lx)
{
    while (*lx->at == ' ')
        lx->at++;
    lx->ptr = lx->at;
    if (*lx->at == '\0') {
        lx->kind = '\0';
        lx->len = 0;
        return;
    }
    lx->len = strchr("[]<>|", *lx->at) != NULL ? 1 : strcspn(lx->at, " []<>|");
    lx->at += lx->len;
    if (lx->len == 3 && memcmp(lx->ptr, "...", 3) == 0)
        lx->kind = '.';
    else if (strchr("[]<>|", *lx->ptr) != NULL)
        lx->kind = *lx->ptr;
    else
        lx->kind = *lx->ptr >= 'A' && *lx->ptr <= 'Z' ? 'A' : 'a';
}

static int parse_choice(struct syntax *sx, struct lexer *lx, char end);

static int node_new(struct syntax *sx, enum syntax_type type)
{
    assert(sx->count < SYNTAX_NODES_MAX);
    sx->node[sx->count] = (struct syntax_node){.type = type, .child = -1, .next = -1};
    return sx->count++;
}

static int parse_word(struct syntax *sx, struct lexer *lx, enum syntax_type type)
{
    int n = node_new(sx, type);

    sx->node[n].name = lx->ptr;
    sx->node[n].name_len = lx->len;
    lexer_next(lx);
    return n;
}

static int parse_item(struct syntax *sx, struct lexer *lx)
{
    char kind = lx->kind;

    if (kind == '[' || kind == '<') {
        lexer_next(lx);
        int n = parse_choice(sx, lx, kind == '[' ? ']' : '>');
        sx->node[n].optional |= kind == '[';
        return n;
    }
    if (kind == 'a')
        return parse_word(sx, lx, SYNTAX_WORD);

    assert(kind == 'A');
    struct lexer token = *lx;
    lexer_next(lx);
    if (lx->kind != 'a' && lx->kind != '<') {
        *lx = token;
        return parse_word(sx, lx, SYNTAX_TOKEN);
    }
    int n = parse_item(sx, lx);
    sx->node[n].token = token.ptr;
    sx->node[n].token_len = token.len;
    return n;
}

/* `x [x ...]`: the second says only that the first may be repeated. */
static bool repeats(const struct syntax *sx, int n, int before)
{
    const struct syntax_node *a = &sx->node[n], *b = &sx->node[before];

    return a->multiple && a->type == SYNTAX_WORD && b->type == SYNTAX_WORD &&
           a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

/* Items up to '|', the end, or a closing bracket; -1 when there are none. */
static int parse_sequence(struct syntax *sx, struct lexer *lx)
{
    int first = -1, last = -1;

    while (lx->kind != '\0' && lx->kind != '|' && lx->kind != ']' && lx->kind != '>') {
        if (lx->kind == '.') {
            assert(last >= 0);
            sx->node[last].multiple = true;
            lexer_next(lx);
            continue;
        }
        int n = parse_item(sx, lx);
        if (last >= 0 && repeats(sx, n, last)) {
            sx->node[last].multiple = true;
            continue;
        }
        if (last < 0)
            first = n;
        else
            sx->node[last].next = n;
        last = n;
    }
    return first;
}

/* One node for a sequence inside a bracket. */
static int wrap(struct syntax *sx, int first)
{
    assert(first >= 0);
    if (sx->node[first].next < 0)
        return first;
    int n = node_new(sx, SYNTAX_BLOCK);
    sx->node[n].child = first;
    return n;
}

/* The inside of a bracket and its end. */
static int parse_choice(struct syntax *sx, struct lexer *lx, char end)
{
    int n = wrap(sx, parse_sequence(sx, lx));

    if (lx->kind == '|') {
        int last = n;
        n = node_new(sx, SYNTAX_ONEOF);
        sx->node[n].child = last;
        while (lx->kind == '|') {
            lexer_next(lx);
            int other = wrap(sx, parse_sequence(sx, lx));
            sx->node[last].next = other;
            last = other;
        }
    }
    assert(lx->kind == end);
    (void)end;
    lexer_next(lx);
    return n;
}

void cmd_syntax_parse(struct syntax *sx, const char *text)
{
    struct lexer lx = {.at = text};

    sx->count = 0;
    lexer_next(&lx);
    sx->first = parse_sequence(sx, &lx);
    assert(lx.kind == '\0');
}

size_t cmd_syntax_count(const struct syntax *sx, int node)
{
    size_t n = 0;

    for (; node >= 0; node = sx->node[node].next)
        n++;
    return n;
}
