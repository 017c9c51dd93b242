#ifndef HOLDFAST_CMD_LOCK_H
#define HOLDFAST_CMD_LOCK_H
/*
 * lock: the commands about locks: words to a lock request, its result to a reply. Decides
 * nothing.
 */
#include "command/command.h"

extern const struct request_type cmd_lock_request_type; /* of every struct lock_request */

/* Each is a cmd_fn (command.h); which word leads to which stands in table.c. */
cmd_fn cmd_lock_acquire, cmd_lock_release, cmd_lock_acquire_many, cmd_lock_release_many,
    cmd_lock_renew, cmd_lock_holds, cmd_lock_owner, cmd_lock_info, cmd_lock_list, cmd_lock_scan,
    cmd_lock_count, cmd_lock_type, cmd_lock_force, cmd_lock_masters, cmd_lock_waiting;
#endif
