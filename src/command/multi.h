#ifndef HOLDFAST_CMD_MULTI_H
#define HOLDFAST_CMD_MULTI_H
/*
 * cmd_multi: MULTI, EXEC and DISCARD, as far as a client needs them to notice in order that there
 * are no transactions. Each is a cmd_fn.
 *
 * MULTI is answered OK, what follows it each by an error (cmd_dispatch), EXEC by EXECABORT: the
 * replies that every client knows from a transaction of Redis in which each command was wrong. With
 * an error to MULTI itself some clients leave the replies behind it unread, and others never send
 * EXEC.
 */
#include "command/command.h"

cmd_fn cmd_multi_multi, cmd_multi_exec, cmd_multi_discard;
#endif
