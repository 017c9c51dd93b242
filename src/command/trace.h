#ifndef HOLDFAST_CMD_TRACE_H
#define HOLDFAST_CMD_TRACE_H
/* cmd_trace: what commands come and which took long: MONITOR, SLOWLOG. Each is a cmd_fn. */
#include "command/command.h"

cmd_fn cmd_trace_monitor, cmd_trace_slowlog_get, cmd_trace_slowlog_len, cmd_trace_slowlog_reset;
#endif
