#pragma once
/*
 * cmd_syntax: the arguments of a command in words, as a tree. COMMAND DOCS is made of it.
 *
 *     sequence     item item ...
 *     item         word | TOKEN | TOKEN word | TOKEN <choice> | [choice] | <choice>
 *     choice       sequence | sequence | ...
 *
 * Words are lower case, tokens upper case. `[x]` may be left out, `[x ...]` may also be repeated,
 * and `x [x ...]` stands for one or more of x.
 */
#include <stdbool.h>
#include <stddef.h>

enum { SYNTAX_NODES_MAX = 48 };

enum syntax_type { SYNTAX_WORD, SYNTAX_TOKEN, SYNTAX_ONEOF, SYNTAX_BLOCK };

struct syntax_node {
    enum syntax_type type;
    const char *name; /* into the text: the word, or the token; NULL for ONEOF and BLOCK */
    size_t name_len;
    const char *token; /* into the text: the token that goes before; NULL: none */
    size_t token_len;
    bool optional, multiple;
    int child; /* first of ONEOF and BLOCK; -1: none */
    int next;  /* beside this one; -1: the last */
};

struct syntax {
    struct syntax_node node[SYNTAX_NODES_MAX];
    int count;
    int first; /* -1: no arguments */
};

/* `text` is that of a row and must outlive the tree; one that is wrong is asserted. */
void cmd_syntax_parse(struct syntax *, const char *text);

/* Nodes from `node` on along next; 0 for -1. */
size_t cmd_syntax_count(const struct syntax *, int node);
