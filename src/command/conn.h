#ifndef HOLDFAST_CMD_CONN_H
#define HOLDFAST_CMD_CONN_H
/* cmd_conn: what a connection says about itself: HELLO, AUTH, PING, QUIT... Each is a cmd_fn. */
#include "command/command.h"

cmd_fn cmd_conn_ping, cmd_conn_echo, cmd_conn_quit, cmd_conn_reset, cmd_conn_select, cmd_conn_hello,
    cmd_conn_auth, cmd_conn_time;
#endif
