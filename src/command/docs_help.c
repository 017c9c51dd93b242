/*
 * What the command table says of itself to people: HELP, and HELP behind a command with
 * sub-commands.
 */
#include "command/handlers.h"

#include <stdio.h>

static void write_line(struct resp_writer *w, const char *before, const struct cmd *cmd,
                       const char *after)
{
    char line[512];

    snprintf(line, sizeof(line), "%s%s%s%s%s%s", before, cmd->name,
             cmd->syntax[0] != '\0' ? " " : "", cmd->syntax, after[0] != '\0' ? " - " : "", after);
    resp_simple(w, line);
}

/* The sub-commands of one command, two lines each, as Redis shows them. */
static void reply_sub_help(struct cmd_call *c, const struct cmd *cmd)
{
    char text[512];
    struct resp_writer *w = cmd_reply(c);
    size_t n = cmd_docs_count_subs(cmd);

    resp_array(w, 1 + 2 * n);
    snprintf(text, sizeof(text),
             "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", cmd->name);
    resp_simple(w, text);
    for (size_t i = 0; i < n; i++) {
        write_line(w, "", &cmd->subs[i], "");
        snprintf(text, sizeof(text), "    %s", cmd->subs[i].summary);
        resp_simple(w, text);
    }
}

void cmd_docs_sub_help(struct cmd_call *c)
{
    reply_sub_help(c, cmd_find(&c->argv[0]));
}

static void reply_help_of(struct cmd_call *c, const struct resp_arg *word)
{
    const struct cmd *cmd = cmd_docs_find(word);

    if (cmd == NULL) {
        cmd_reply_error(c, "ERR no such command '%.*s': see COMMAND LIST", CMD_ARG(word));
        return;
    }
    if (cmd->subs != NULL) {
        reply_sub_help(c, cmd);
        return;
    }
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, 2);
    write_line(w, "", cmd, "");
    resp_simple(w, cmd->summary);
}

void cmd_docs_help(struct cmd_call *c)
{
    static const char head[] = "Locks, kept in Redis by holdfast. Times are milliseconds.";
    static const char foot[] = "HELP command says more of one; COMMAND LIST names them all.";
    int n_rows;
    const struct cmd *table = cmd_table(&n_rows);
    size_t n = 0;

    if (c->argc > 1) {
        reply_help_of(c, &c->argv[1]);
        return;
    }
    for (int i = 0; i < n_rows; i++)
        n += (table[i].flags & (CMD_LOCK | CMD_INSPECT)) != 0;
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, n + 2);
    resp_simple(w, head);
    for (int i = 0; i < n_rows; i++)
        if ((table[i].flags & (CMD_LOCK | CMD_INSPECT)) != 0)
            write_line(w, "  ", &table[i], table[i].summary);
    resp_simple(w, foot);
}
