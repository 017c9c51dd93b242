#ifndef HOLDFAST_CMD_CLIENT_H
#define HOLDFAST_CMD_CLIENT_H
/* cmd_client: CLIENT: shows, names, ends and holds back connections. Each is a cmd_fn. */
#include "base/util.h"
#include "command/command.h"

cmd_fn cmd_client_getname, cmd_client_id, cmd_client_info, cmd_client_kill, cmd_client_list,
    cmd_client_no_evict, cmd_client_no_touch, cmd_client_pause, cmd_client_reply,
    cmd_client_setinfo, cmd_client_setname, cmd_client_tell, cmd_client_tracking,
    cmd_client_unpause;

/* CLIENT SETNAME and HELLO SETNAME. -1: the name is not allowed, the error has been answered. */
int cmd_client_set_name(struct cmd_call *, const struct resp_arg *name) MUST_CHECK;

/* Once in each turn of the loop: goes on with CLIENT LIST of many. */
void cmd_client_turn(void);
/* True: there is something, the next turn is not to wait. */
bool cmd_client_waits(void);
#endif
