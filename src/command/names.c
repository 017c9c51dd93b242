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

static bool begins(const char *syntax, const char *with)
{
    return strncmp(syntax, with, strlen(with)) == 0;
}

enum cmd_names cmd_names(const struct cmd *cmd)
{
    const char *syntax = cmd->syntax;

    if ((cmd->flags & (CMD_LOCK | CMD_INSPECT)) == 0)
        return CMD_NAMES_NONE;
    if (begins(syntax, "numnames "))
        return CMD_NAMES_COUNTED;
    return begins(syntax, "name") && (syntax[4] == '\0' || syntax[4] == ' ') ? CMD_NAMES_FIRST
                                                                             : CMD_NAMES_NONE;
}

int cmd_find_names(const struct cmd *cmd, int argc, const struct resp_arg *argv, int *first)
{
    int64_t n;

    *first = 0;
    switch (cmd_names(cmd)) {
    case CMD_NAMES_COUNTED:
        *first = 2;
        if (argc < 2 || util_parse_int(argv[1].ptr, argv[1].len, 1, argc - 2, &n) != 0)
            return argc; /* the command will refuse the number; until then all are names */
        return 2 + (int)n;
    case CMD_NAMES_FIRST:
        *first = 1;
        return argc > 1 ? 2 : 1;
    case CMD_NAMES_NONE:
        break;
    }
    return 0;
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
