#ifndef HOLDFAST_CMD_CONN_H
#define HOLDFAST_CMD_CONN_H
/* cmd_conn: what a connection says about itself: HELLO, AUTH, PING, QUIT... Each is a cmd_fn. */
#include "command/command.h"

void cmd_conn_ping(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_conn_echo(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_conn_quit(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_conn_reset(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_conn_select(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_conn_hello(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_conn_auth(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_conn_time(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
#endif
