#ifndef HOLDFAST_CMD_TRACE_H
#define HOLDFAST_CMD_TRACE_H
/* cmd_trace: what commands come and which took long: MONITOR, SLOWLOG. Each is a cmd_fn. */
#include "command/command.h"

void cmd_trace_monitor(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_trace_slowlog_get(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_trace_slowlog_len(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_trace_slowlog_reset(struct session *, int argc, const struct resp_arg *argv,
                             int64_t now_ms);
#endif
