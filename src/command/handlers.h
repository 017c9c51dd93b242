#pragma once
/*
 * handlers: the functions that answer commands, by the file where they are. Each is a cmd_fn; which
 * word leads to which stands in table.c.
 */
#include "base/util.h"
#include "command/command.h"

struct dropin_call;
struct dropin_command;

/* lock.c, lock_list.c: words to a lock request, its result to a reply; what is known of locks. */
cmd_fn cmd_lock_request, cmd_lock_owner, cmd_lock_list, cmd_lock_scan, cmd_lock_count,
    cmd_lock_type, cmd_lock_masters, cmd_lock_waiting, cmd_lock_contended, cmd_lock_jeopardy;
extern const struct request_type cmd_lock_request_type; /* of every struct lock_request */
struct lock_request;
/* Returns until when the reply to a granted LOCK or MLOCK may be relied on; not later than now: it
 * is true no more. */
int64_t cmd_lock_promised_ms(const struct lock_request *);

/* async.c: LOCK and MLOCK with a tag. */
cmd_fn cmd_async_cancel;
/* Asks for the n names, and answers QUEUED, or an error for what is wrong with the tag. */
void cmd_async_ask(struct cmd_call *, struct lock_request *, const struct resp_arg *tag,
                   const struct resp_arg *names, int n);
/* Tells what has become of it (request_type.push). */
void cmd_async_push(struct session *, const struct async *, struct request *, struct resp_writer *,
                    int64_t now_ms);

/* admin.c, admin_config.c, admin_acl.c: what an administrator asks of the broker. */
cmd_fn cmd_admin_info, cmd_admin_config_get, cmd_admin_config_set, cmd_admin_config_resetstat,
    cmd_admin_acl_cat, cmd_admin_acl_log, cmd_admin_acl_list, cmd_admin_acl_users,
    cmd_admin_acl_whoami, cmd_admin_master, cmd_admin_pause, cmd_admin_shutdown, cmd_admin_cluster;

/* find.c: which broker clients are to use, as Sentinels are asked. */
cmd_fn cmd_find_address, cmd_find_master, cmd_find_masters, cmd_find_quorum, cmd_find_replicas,
    cmd_find_role, cmd_find_sentinels;

/* client.c, client_list.c, client_name.c: shows, names, ends and holds back connections. */
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

/* conn.c: what a connection says about itself. */
cmd_fn cmd_conn_ping, cmd_conn_echo, cmd_conn_quit, cmd_conn_reset, cmd_conn_select, cmd_conn_hello,
    cmd_conn_auth, cmd_conn_time;

/* dropin.c: commands of Redis that are served on locks. */
cmd_fn cmd_dropin_command, cmd_dropin_set, cmd_dropin_eval, cmd_dropin_evalsha,
    cmd_dropin_script_load, cmd_dropin_script_exists, cmd_dropin_script_check,
    cmd_dropin_script_flush;
/* Gives a call to the session and runs it. */
void cmd_dropin_ask(struct cmd_call *, struct dropin_call *);

/* multi.c: several of them in one step. */
cmd_fn cmd_multi_multi, cmd_multi_exec, cmd_multi_discard, cmd_multi_watch, cmd_multi_unwatch;
/* Keeps a command until EXEC. */
void cmd_multi_queue(struct cmd_call *, const struct dropin_command *);

/* pubsub.c: SUBSCRIBE and its family. */
cmd_fn cmd_pubsub_subscribe, cmd_pubsub_unsubscribe, cmd_pubsub_channels, cmd_pubsub_numsub,
    cmd_pubsub_numpat, cmd_pubsub_publish;

/* trace.c, latency.c: what commands come, and which took long. */
cmd_fn cmd_trace_monitor, cmd_trace_slowlog_get, cmd_trace_slowlog_len, cmd_trace_slowlog_reset,
    cmd_latency_histogram, cmd_latency_latest;

/* docs.c, docs_help.c: what the command table says of itself. */
cmd_fn cmd_docs_command, cmd_docs_count, cmd_docs_docs, cmd_docs_getkeys, cmd_docs_info,
    cmd_docs_list, cmd_docs_help, cmd_docs_sub_help;
/* A row by its name, "lock", or its full name, "client|list"; NULL: none. */
const struct cmd *cmd_docs_find(const struct resp_arg *word);
size_t cmd_docs_count_subs(const struct cmd *);
