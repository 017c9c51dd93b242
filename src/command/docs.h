#ifndef HOLDFAST_CMD_DOCS_H
#define HOLDFAST_CMD_DOCS_H
/* cmd_docs: what the command table says of itself: COMMAND and HELP. Each is a cmd_fn. */
#include "command/command.h"

cmd_fn cmd_docs_command, cmd_docs_count, cmd_docs_docs, cmd_docs_getkeys, cmd_docs_info,
    cmd_docs_list, cmd_docs_help, cmd_docs_sub_help;

/* A row by its name, "lock", or its full name, "client|list"; NULL: none. */
const struct cmd *cmd_docs_find(const struct resp_arg *word);
size_t cmd_docs_count_subs(const struct cmd *);
#endif
