/*
 * Which words of a request are names of locks, and the names of other databases.
 *
 * Where they stand follows from the syntax of a row: behind the number that counts them, all words
 * from the first on, or the first one alone. There is one set of locks: what a connection that has
 * selected database n calls `x` is the lock `dbn:x`, for everybody and everywhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "command/command.h"

static inline bool begins(const char *syntax, const char *with)
{
    return *syntax == *with && strncmp(syntax, with, strlen(with)) == 0;
}

static inline bool is_first(const char *syntax, const char *word)
{
    size_t len = strlen(word);

    return begins(syntax, word) && (syntax[len] == '\0' || syntax[len] == ' ');
}

enum cmd_names cmd_names(const struct cmd *cmd)
{
    const char *syntax = cmd->syntax;

    if ((cmd->flags & (CMD_LOCK | CMD_DROP_IN | CMD_INSPECT)) == 0)
        return CMD_NAMES_NONE;
    if (is_first(syntax, "numnames"))
        return CMD_NAMES_COUNTED;
    if (begins(syntax, "script numkeys") || begins(syntax, "sha1 numkeys"))
        return CMD_NAMES_SCRIPT;
    if (begins(syntax, "key [key"))
        return CMD_NAMES_REST;
    return is_first(syntax, "name") || is_first(syntax, "key") ? CMD_NAMES_FIRST : CMD_NAMES_NONE;
}

/* Word `at` is the number of names behind it, `least` or more. */
static int end_of_counted(int at, int least, int argc, const struct resp_arg *argv)
{
    int64_t n;

    if (argc <= at || util_parse_int(argv[at].ptr, argv[at].len, least, argc - at - 1, &n) != 0)
        return argc; /* the command will refuse the number; until then all are names */
    return at + 1 + (int)n;
}

int cmd_find_names(const struct cmd *cmd, int argc, const struct resp_arg *argv, int *first)
{
    *first = 1;
    switch (cmd_names(cmd)) {
    case CMD_NAMES_COUNTED:
        *first = 2;
        return end_of_counted(1, 1, argc, argv);
    case CMD_NAMES_SCRIPT:
        *first = 3;
        return end_of_counted(2, 0, argc, argv);
    case CMD_NAMES_FIRST:
        return argc > 1 ? 2 : 1;
    case CMD_NAMES_REST:
        return argc;
    case CMD_NAMES_NONE:
        break;
    }
    *first = 0;
    return 0;
}

const struct resp_arg *cmd_name_twice(const struct resp_arg *names, int n)
{
    for (int i = 1; i < n; i++) {
        for (int j = 0; j < i; j++) {
            if (names[i].len == names[j].len &&
                memcmp(names[i].ptr, names[j].ptr, names[i].len) == 0)
                return &names[i];
        }
    }
    return NULL;
}

/* ---- databases ---- */

static struct resp_arg *words;
static int words_cap;
static struct buf names;

static void take_words(struct cmd_call *c)
{
    if (c->argc > words_cap) {
        words_cap = c->argc;
        words = util_realloc(words, (size_t)words_cap * sizeof(words[0]));
    }
    memcpy(words, c->argv, (size_t)c->argc * sizeof(words[0]));
    c->argv = words;
}

void cmd_name_database(struct cmd_call *c)
{
    char prefix[8];
    int first, end = cmd_find_names(c->cmd, c->argc, c->argv, &first);
    size_t prefix_len = (size_t)snprintf(prefix, sizeof(prefix), "db%d:", c->session->db);

    if (end <= first)
        return;
    take_words(c);
    buf_consume(&names, buf_len(&names));
    for (int i = first; i < end; i++) {
        buf_append(&names, prefix, prefix_len);
        buf_append(&names, words[i].ptr, words[i].len);
        words[i].len += prefix_len;
    }
    const char *name = buf_head(&names); /* nothing is appended any more: it stays where it is */
    for (int i = first; i < end; i++) {
        words[i].ptr = name;
        name += words[i].len;
    }
}

void cmd_names_fini(void)
{
    free(words);
    words = NULL;
    words_cap = 0;
    buf_fini(&names);
}
