#ifndef HOLDFAST_CMD_ADMIN_H
#define HOLDFAST_CMD_ADMIN_H
/*
 * cmd_admin: what an administrator asks of the broker: INFO, CONFIG, ACL, MASTER, SHUTDOWN; and
 * CLUSTER. Each is a cmd_fn.
 */
#include "command/command.h"

cmd_fn cmd_admin_info, cmd_admin_config_get, cmd_admin_config_set, cmd_admin_config_resetstat,
    cmd_admin_acl_cat, cmd_admin_acl_log, cmd_admin_acl_list, cmd_admin_acl_users,
    cmd_admin_acl_whoami, cmd_admin_master, cmd_admin_pause, cmd_admin_shutdown, cmd_admin_cluster;
#endif
