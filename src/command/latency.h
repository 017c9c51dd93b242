#ifndef HOLDFAST_CMD_LATENCY_H
#define HOLDFAST_CMD_LATENCY_H
/* cmd_latency: LATENCY and its sub-commands; see command/table.c. */
#include "command/command.h"

void cmd_latency_histogram(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_latency_latest(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
#endif
