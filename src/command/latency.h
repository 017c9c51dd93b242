#ifndef HOLDFAST_CMD_LATENCY_H
#define HOLDFAST_CMD_LATENCY_H
/* cmd_latency: LATENCY and its sub-commands; see command/table.c. */
#include "command/command.h"

cmd_fn cmd_latency_histogram, cmd_latency_latest;
#endif
