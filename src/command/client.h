#ifndef HOLDFAST_CMD_CLIENT_H
#define HOLDFAST_CMD_CLIENT_H
/* cmd_client: CLIENT: shows, names, ends and holds back connections. Each is a cmd_fn. */
#include "base/util.h"
#include "command/command.h"

void cmd_client_getname(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_id(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_info(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_kill(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_list(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_no_evict(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_no_touch(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_pause(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_reply(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_setinfo(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_setname(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_tell(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_tracking(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_client_unpause(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);

/* CLIENT SETNAME and HELLO SETNAME. -1: the name is not allowed, the error has been answered. */
int cmd_client_set_name(struct session *, const struct resp_arg *name) MUST_CHECK;

/* Once in each turn of the loop: goes on with CLIENT LIST of many. */
void cmd_client_turn(void);
/* True: there is something, the next turn is not to wait. */
bool cmd_client_waits(void);
#endif
