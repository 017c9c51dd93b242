#ifndef HOLDFAST_CMD_DOCS_H
#define HOLDFAST_CMD_DOCS_H
/* cmd_docs: what the command table says of itself: COMMAND and HELP. Each is a cmd_fn. */
#include "command/command.h"

void cmd_docs_command(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_docs_count(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_docs_docs(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_docs_getkeys(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_docs_info(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_docs_list(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_docs_help(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_docs_sub_help(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);

/* A row by its name, "lock", or its full name, "client|list"; NULL: none. */
const struct cmd *cmd_docs_find(const struct resp_arg *word);
size_t cmd_docs_count_subs(const struct cmd *);
#endif
