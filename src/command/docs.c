/*
 * What the command table says of itself to client libraries and redis-cli. Everything is made from
 * the rows when it is asked for; nothing is kept.
 */
#include "command/handlers.h"

#include <string.h>

#include "base/glob.h"
#include "base/util.h"
#include "command/syntax.h"

/* ---- what follows from a row ---- */

static const char *group_of(const struct cmd *cmd)
{
    if ((cmd->flags & CMD_LOCK) != 0)
        return "lock";
    if ((cmd->flags & CMD_INSPECT) != 0)
        return "inspect";
    return (cmd->flags & CMD_ADMIN) != 0 ? "server" : "connection";
}

/* The first argument is the name of a lock: what Redis calls a key. */
static bool has_key(const struct cmd *cmd)
{
    return cmd_names(cmd) == CMD_NAMES_FIRST || cmd_names(cmd) == CMD_NAMES_REST;
}

static const char *full_name(const struct cmd *cmd)
{
    return cmd_full_name(cmd_index(cmd));
}

const struct cmd *cmd_docs_find(const struct resp_arg *word)
{
    const char *bar = memchr(word->ptr, '|', word->len);

    if (bar == NULL)
        return cmd_find(word);
    struct resp_arg top = {word->ptr, (size_t)(bar - word->ptr)};
    struct resp_arg sub = {bar + 1, word->len - top.len - 1};
    const struct cmd *cmd = cmd_find(&top);
    return cmd != NULL ? cmd_find_sub(cmd, &sub) : NULL;
}

size_t cmd_docs_count_subs(const struct cmd *cmd)
{
    size_t n = 0;

    while (cmd->subs != NULL && cmd->subs[n].name != NULL)
        n++;
    return n;
}

/* ---- COMMAND, COMMAND INFO ---- */

/* Shown when a row has any of the flags. */
struct word {
    unsigned any;
    const char *name;
};

/* Beside the flags of a row: names stand behind their number. */
#define MOVABLE (1u << 31)

static const struct word flag_words[] = {
    {CMD_LOCK | CMD_DROP_IN, "write"},
    {CMD_INSPECT, "readonly"},
    {CMD_ADMIN, "admin"},
    {CMD_ADMIN | CMD_CONNECTION, "noscript"},
    {CMD_CONNECTION, "loading"},
    {CMD_CONNECTION, "stale"},
    {CMD_LOCK | CMD_DROP_IN | CMD_INSPECT | CMD_CONNECTION, "fast"},
    {MOVABLE, "movablekeys"},
    {0, NULL},
};

static const struct word class_words[] = {
    {CMD_LOCK, "@lock"},   {CMD_DROP_IN, "@drop-in"},       {CMD_INSPECT, "@inspect"},
    {CMD_ADMIN, "@admin"}, {CMD_CONNECTION, "@connection"}, {0, NULL},
};

static void write_words(struct resp_writer *w, const struct word *words, unsigned flags)
{
    size_t n = 0;

    for (const struct word *word = words; word->name != NULL; word++)
        n += (word->any & flags) != 0;
    resp_set(w, n);
    for (const struct word *word = words; word->name != NULL; word++)
        if ((word->any & flags) != 0)
            resp_simple(w, word->name);
}

static void write_row_info(struct resp_writer *w, const struct cmd *cmd)
{
    enum cmd_names names = cmd_names(cmd);
    int key = has_key(cmd) ? 1 : 0, last = names == CMD_NAMES_REST ? -1 : key;
    bool movable = names == CMD_NAMES_COUNTED || names == CMD_NAMES_SCRIPT;

    resp_array(w, 10);
    resp_str(w, full_name(cmd));
    resp_int(w, cmd->arity);
    write_words(w, flag_words, cmd->flags | (movable ? MOVABLE : 0));
    resp_int(w, key); /* first, last and step of the keys */
    resp_int(w, last);
    resp_int(w, key);
    write_words(w, class_words, cmd->flags);
    resp_array(w, 0); /* tips */
    resp_array(w, 0); /* key specifications */
    resp_array(w, cmd_docs_count_subs(cmd));
    for (size_t i = 0; i < cmd_docs_count_subs(cmd); i++)
        write_row_info(w, &cmd->subs[i]);
}

/* COMMAND INFO of all when there are no words. */
static void reply_info(struct cmd_call *c, int n, const struct resp_arg *words)
{
    int n_rows;
    const struct cmd *table = cmd_table(&n_rows);
    struct resp_writer *w = cmd_reply(c);

    resp_array(w, (size_t)(n > 0 ? n : n_rows));
    for (int i = 0; n == 0 && i < n_rows; i++)
        write_row_info(w, &table[i]);
    for (int i = 0; i < n; i++) {
        const struct cmd *cmd = cmd_docs_find(&words[i]);
        if (cmd != NULL)
            write_row_info(w, cmd);
        else
            resp_null_array(w);
    }
}

void cmd_docs_command(struct cmd_call *c)
{
    reply_info(c, 0, NULL);
}

void cmd_docs_info(struct cmd_call *c)
{
    reply_info(c, c->argc - 2, c->argv + 2);
}

void cmd_docs_count(struct cmd_call *c)
{
    int n_rows;

    (void)cmd_table(&n_rows);
    cmd_reply_int(c, n_rows);
}

/* ---- COMMAND LIST ---- */

struct filter {
    struct glob *pattern; /* at most one of these two; NULL: any */
    const struct resp_arg *category;
    bool nothing;
};

static bool filter_fits(const struct filter *f, const struct cmd *cmd)
{
    const char *name = full_name(cmd);

    if (f->pattern != NULL)
        return glob_match(f->pattern, name, strlen(name));
    if (f->category == NULL)
        return !f->nothing;
    for (const struct word *word = class_words; word->name != NULL; word++)
        if ((word->any & cmd->flags) != 0 && f->category->len == strlen(word->name + 1) &&
            memcmp(f->category->ptr, word->name + 1, f->category->len) == 0)
            return true;
    return false;
}

void cmd_docs_list(struct cmd_call *c)
{
    int n_rows;
    const struct cmd *table = cmd_table(&n_rows);
    struct filter f = {0};
    size_t n = 0;

    bool filtered = c->argc == 5 && cmd_word_is(&c->argv[2], "FILTERBY");
    if (filtered && cmd_word_is(&c->argv[3], "PATTERN")) {
        f.pattern = cmd_glob(c, &c->argv[4]);
        if (f.pattern == NULL)
            return;
    } else if (filtered && cmd_word_is(&c->argv[3], "ACLCAT")) {
        f.category = &c->argv[4];
    } else if (filtered && cmd_word_is(&c->argv[3], "MODULE")) {
        f.nothing = true;
    } else if (c->argc != 2) {
        cmd_reply_syntax(c);
        return;
    }
    for (int i = 0; i < n_rows; i++)
        n += filter_fits(&f, &table[i]);
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, n);
    for (int i = 0; i < n_rows; i++)
        if (filter_fits(&f, &table[i]))
            resp_str(w, full_name(&table[i]));
    glob_free(f.pattern);
}

/* ---- COMMAND GETKEYS ---- */

void cmd_docs_getkeys(struct cmd_call *c)
{
    const struct resp_arg *words = &c->argv[2];
    const struct cmd *cmd = cmd_find(&words[0]);
    int n = c->argc - 2, first;

    if (cmd == NULL) {
        cmd_reply_error(c, "ERR Invalid command specified");
        return;
    }
    if (cmd_names(cmd) == CMD_NAMES_NONE) {
        cmd_reply_error(c, "ERR The command has no key arguments");
        return;
    }
    if (!cmd_arity_fits(cmd, n)) {
        cmd_reply_error(c, "ERR Invalid number of arguments specified for command");
        return;
    }
    int end = cmd_find_names(cmd, n, words, &first);
    if (cmd_names(cmd) == CMD_NAMES_COUNTED &&
        util_parse_int(words[1].ptr, words[1].len, end - first, end - first, &(int64_t){0}) != 0) {
        cmd_reply_error(c, "ERR Invalid arguments specified for command");
        return;
    }
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, (size_t)(end - first));
    for (int i = first; i < end; i++)
        resp_bulk(w, words[i].ptr, words[i].len);
}

/* ---- COMMAND DOCS ---- */

static bool is_one_of(const struct syntax_node *node, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strlen(*words) == node->name_len && memcmp(*words, node->name, node->name_len) == 0)
            return true;
    return false;
}

static const char *type_of(const struct syntax_node *node, bool is_key)
{
    static const char *const integers[] = {"ms",    "timeout-ms", "n",        "count", "client-id",
                                           "index", "seconds",    "protover", NULL};
    static const char *const patterns[] = {"pattern", "glob", NULL};

    switch (node->type) {
    case SYNTAX_TOKEN:
        return "pure-token";
    case SYNTAX_ONEOF:
        return "oneof";
    case SYNTAX_BLOCK:
        return "block";
    case SYNTAX_WORD:
        break;
    }
    if (is_key)
        return "key";
    if (is_one_of(node, integers))
        return "integer";
    return is_one_of(node, patterns) ? "pattern" : "string";
}

/* A choice or a block has no word of its own: it is called after its token or its kind. */
static void write_name(struct resp_writer *w, const struct syntax_node *node)
{
    char name[32];
    const char *from = node->name != NULL ? node->name : node->token;
    size_t len = node->name != NULL ? node->name_len : node->token_len;

    if (from == NULL) {
        resp_str(w, node->type == SYNTAX_ONEOF ? "choice" : "group");
        return;
    }
    if (len > sizeof(name))
        len = sizeof(name);
    for (size_t i = 0; i < len; i++)
        name[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] + ('a' - 'A')) : from[i];
    resp_bulk(w, name, len);
}

static void write_arguments(struct resp_writer *w, const struct syntax *sx, int first,
                            bool first_is_key);

static void write_argument(struct resp_writer *w, const struct syntax *sx,
                           const struct syntax_node *node, bool is_key)
{
    bool is_token = node->type == SYNTAX_TOKEN, has_token = is_token || node->token != NULL;
    size_t n_flags = (size_t)node->optional + (size_t)node->multiple;

    resp_map(w, 2 + (size_t)is_key + has_token + (n_flags > 0) + (node->child >= 0));
    resp_str(w, "name");
    write_name(w, node);
    resp_pair_str(w, "type", type_of(node, is_key));
    if (is_key) {
        resp_pair_int(w, "key_spec_index", 0);
    }
    if (has_token) {
        resp_str(w, "token");
        resp_bulk(w, is_token ? node->name : node->token,
                  is_token ? node->name_len : node->token_len);
    }
    if (n_flags > 0) {
        resp_str(w, "flags");
        resp_set(w, n_flags);
        if (node->optional)
            resp_simple(w, "optional");
        if (node->multiple)
            resp_simple(w, "multiple");
    }
    if (node->child >= 0) {
        resp_str(w, "arguments");
        write_arguments(w, sx, node->child, false);
    }
}

/* The node and those beside it. Goes as deep as the brackets of a row. */
static void write_arguments(struct resp_writer *w, const struct syntax *sx, int first,
                            bool first_is_key)
{
    resp_array(w, cmd_syntax_count(sx, first));
    for (int i = first; i >= 0; i = sx->node[i].next)
        write_argument(w, sx, &sx->node[i], first_is_key && i == first);
}

static void write_docs(struct resp_writer *w, const struct cmd *cmd)
{
    struct syntax sx;
    size_t n_subs = cmd_docs_count_subs(cmd);

    cmd_syntax_parse(&sx, cmd->syntax);
    resp_str(w, full_name(cmd));
    resp_map(w, 3 + (size_t)(sx.first >= 0) + (n_subs > 0));
    resp_pair_str(w, "summary", cmd->summary);
    resp_pair_str(w, "since", "0.1.0");
    resp_pair_str(w, "group", group_of(cmd));
    if (sx.first >= 0) {
        resp_str(w, "arguments");
        write_arguments(w, &sx, sx.first, has_key(cmd));
    }
    if (n_subs > 0) {
        resp_str(w, "subcommands");
        resp_map(w, n_subs);
        for (size_t i = 0; i < n_subs; i++)
            write_docs(w, &cmd->subs[i]);
    }
}

void cmd_docs_docs(struct cmd_call *c)
{
    int n_rows;
    const struct cmd *table = cmd_table(&n_rows), *cmd;
    size_t n = 0;

    for (int i = 2; i < c->argc; i++)
        n += cmd_docs_find(&c->argv[i]) != NULL;
    struct resp_writer *w = cmd_reply(c);
    resp_map(w, c->argc > 2 ? n : (size_t)n_rows);
    for (int i = 0; c->argc == 2 && i < n_rows; i++)
        write_docs(w, &table[i]);
    for (int i = 2; i < c->argc; i++)
        if ((cmd = cmd_docs_find(&c->argv[i])) != NULL)
            write_docs(w, cmd);
}
