#ifndef HOLDFAST_CMD_ADMIN_H
#define HOLDFAST_CMD_ADMIN_H
/*
 * cmd_admin: what an administrator asks of the broker: INFO, CONFIG, ACL, MASTER, SHUTDOWN; and
 * CLUSTER. Each is a cmd_fn.
 */
#include "command/command.h"

void cmd_admin_info(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_config_get(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_config_set(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_config_resetstat(struct session *, int argc, const struct resp_arg *argv,
                                int64_t now_ms);
void cmd_admin_acl_cat(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_acl_log(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_acl_list(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_acl_users(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_acl_whoami(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_master(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_pause(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_resume(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_shutdown(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_admin_cluster(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
#endif
