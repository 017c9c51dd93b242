#ifndef HOLDFAST_MONITOR_H
#define HOLDFAST_MONITOR_H
/*
 * monitor: the connections that said MONITOR, and the line that they get for each command.
 */
#include <stdbool.h>
#include <stdint.h>

#include "resp.h"
#include "util.h"

struct session;

/* Who watches at a time, and bytes of a line; what is longer is cut and ends in "...". */
enum { MONITOR_MAX = 16, MONITOR_LINE_MAX = 2048 };

/* Sets session->monitor and puts it on the list; idempotent, as is the end of it. -1: the list is
 * full. */
int monitor_join(struct session *) MUST_CHECK;
void monitor_leave(struct session *);

/* Does anybody watch? To be asked before monitor_feed(). */
extern uint32_t monitor_count;

/* Sends everybody who watches the line of one request, as Redis prints it. `secret`: all words but
 * the first are shown as (redacted). `peer` is the address of who sent it. */
void monitor_feed(const char *peer, int argc, const struct resp_arg *argv, bool secret,
                  int64_t wall_ms, int64_t now_ms);
#endif
