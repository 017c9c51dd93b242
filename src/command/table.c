/*
 * The commands: one row each, in the order of their names. Holds nothing but the rows.
 *
 * A new command is one row here, its function in the file of its topic, and its paragraph in
 * holdfast-protocol(7). The syntax is that of syntax.h; a first argument called "name" is the
 * name of a lock. What the summary says is shown by HELP, COMMAND DOCS and redis-cli.
 */
#include <stddef.h>

#include "command/handlers.h"
#include "lock/lock.h"

#define CMD_ROW(name, fn, arity, flags, summary, syntax)                                           \
    {                                                                                              \
        name, fn, arity, flags, summary, syntax, NULL, 0                                           \
    }
/* A request to the broker about locks. */
#define CMD_ROW_LOCK(name, verb, arity, flags, summary, syntax)                                    \
    {                                                                                              \
        name, cmd_lock_request, arity, flags, summary, syntax, NULL, verb                          \
    }
/* A command with sub-commands; `fn` answers it without one, NULL: an error does. */
#define CMD_ROW_SUBS(name, fn, arity, flags, summary, subs)                                        \
    {                                                                                              \
        name, fn, arity, flags, summary, "", subs, 0                                               \
    }
/* A command of Redis that is served on the locks that it names. */
#define CMD_ROW_KEY(name, arity, summary, syntax)                                                  \
    CMD_ROW(name, cmd_dropin_command, arity, CMD_DROP_IN | CMD_MULTI_OK, summary, syntax)
#define CMD_ROW_HELP(flags)                                                                        \
    CMD_ROW("HELP", cmd_docs_sub_help, 2, flags, "Lists the sub-commands.", "")
#define CMD_ROW_END                                                                                \
    {                                                                                              \
        NULL, NULL, 0, 0, NULL, NULL, NULL, 0                                                      \
    }

static const struct cmd acl_subs[] = {
    CMD_ROW("CAT", cmd_admin_acl_cat, -2, CMD_ADMIN,
            "Lists the classes of commands, or the commands of one.", "[category]"),
    CMD_ROW_HELP(CMD_ADMIN),
    CMD_ROW("LIST", cmd_admin_acl_list, 2, CMD_ADMIN, "Lists the users with what they may do.", ""),
    CMD_ROW("LOG", cmd_admin_acl_log, -2, CMD_ADMIN | CMD_ALL_NAMES,
            "Shows the last requests that were refused for want of rights.", "[count | RESET]"),
    CMD_ROW("USERS", cmd_admin_acl_users, 2, CMD_ADMIN, "Lists the names of the users.", ""),
    CMD_ROW("WHOAMI", cmd_admin_acl_whoami, 2, CMD_CONNECTION, "Shows the user of this connection.",
            ""),
    CMD_ROW_END};

static const struct cmd client_subs[] = {
    CMD_ROW("GETNAME", cmd_client_getname, 2, CMD_CONNECTION, "Shows the name of this connection.",
            ""),
    CMD_ROW_HELP(CMD_CONNECTION),
    CMD_ROW("ID", cmd_client_id, 2, CMD_CONNECTION, "Shows the number of this connection.", ""),
    CMD_ROW("INFO", cmd_client_info, 2, CMD_CONNECTION,
            "Shows what CLIENT LIST says of this connection.", ""),
    CMD_ROW("KILL", cmd_client_kill, -3, CMD_ADMIN, "Ends connections.",
            "<address | [ID client-id] [ADDR address] [LADDR address] [TYPE <NORMAL | MASTER | "
            "REPLICA | PUBSUB>]"
            " [USER username] [MAXAGE seconds] [SKIPME <YES | NO>]>"),
    CMD_ROW("LIST", cmd_client_list, -2, CMD_ADMIN, "Lists the connections.",
            "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]"),
    CMD_ROW("NO-EVICT", cmd_client_no_evict, 3, CMD_CONNECTION,
            "Accepted for Redis's sake: no client is ever evicted.", "<ON | OFF>"),
    CMD_ROW("NO-TOUCH", cmd_client_no_touch, 3, CMD_CONNECTION,
            "Accepted for Redis's sake: there are no keys to touch.", "<ON | OFF>"),
    CMD_ROW("PAUSE", cmd_client_pause, -3, CMD_ADMIN,
            "Holds back the lock commands of all clients.", "timeout-ms [WRITE | ALL]"),
    CMD_ROW("REPLY", cmd_client_reply, 3, CMD_CONNECTION,
            "Accepts ON; a lock that nobody is told of makes no sense.", "<ON | OFF | SKIP>"),
    CMD_ROW("SETINFO", cmd_client_setinfo, 4, CMD_CONNECTION,
            "Tells the client library's name or version.", "<LIB-NAME libname | LIB-VER libver>"),
    CMD_ROW("SETNAME", cmd_client_setname, 3, CMD_CONNECTION, "Names this connection.",
            "connection-name"),
    CMD_ROW("TELL", cmd_client_tell, 3, CMD_CONNECTION,
            "Asks for pushes about the locks that this connection takes from now on.",
            "<ON | OFF>"),
    CMD_ROW("TRACKING", cmd_client_tracking, -3, CMD_CONNECTION,
            "Accepts OFF: there are no keys to track.", "<ON | OFF>"),
    CMD_ROW("UNPAUSE", cmd_client_unpause, 2, CMD_ADMIN, "Ends CLIENT PAUSE.", ""),
    CMD_ROW_END};

static const struct cmd command_subs[] = {
    CMD_ROW("COUNT", cmd_docs_count, 2, CMD_CONNECTION, "Counts the commands.", ""),
    CMD_ROW("DOCS", cmd_docs_docs, -2, CMD_CONNECTION, "Documents commands.", "[command-name ...]"),
    CMD_ROW("GETKEYS", cmd_docs_getkeys, -3, CMD_CONNECTION, "Shows the lock names in a command.",
            "command [arg ...]"),
    CMD_ROW_HELP(CMD_CONNECTION),
    CMD_ROW("INFO", cmd_docs_info, -2, CMD_CONNECTION, "Describes commands for client libraries.",
            "[command-name ...]"),
    CMD_ROW("LIST", cmd_docs_list, -2, CMD_CONNECTION, "Lists the names of the commands.",
            "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]"),
    CMD_ROW_END};

static const struct cmd config_subs[] = {
    CMD_ROW("GET", cmd_admin_config_get, -3, CMD_ADMIN, "Shows options.", "pattern [pattern ...]"),
    CMD_ROW_HELP(CMD_ADMIN),
    CMD_ROW("RESETSTAT", cmd_admin_config_resetstat, 2, CMD_ADMIN, "Sets every count of INFO to 0.",
            ""),
    CMD_ROW("SET", cmd_admin_config_set, -4, CMD_ADMIN,
            "Changes options until the next start or reload.", "[option value ...]"),
    CMD_ROW_END};

static const struct cmd latency_subs[] = {CMD_ROW_HELP(CMD_ADMIN),
                                          CMD_ROW("HISTOGRAM", cmd_latency_histogram, -2, CMD_ADMIN,
                                                  "Shows how long commands took.", "[command ...]"),
                                          CMD_ROW("LATEST", cmd_latency_latest, 2, CMD_ADMIN,
                                                  "Is empty: SLOWLOG shows what took long.", ""),
                                          CMD_ROW_END};

static const struct cmd pubsub_subs[] = {
    CMD_ROW("CHANNELS", cmd_pubsub_channels, -2, CMD_CONNECTION | CMD_ALL_NAMES,
            "Lists channels that somebody listens to.", "[pattern]"),
    CMD_ROW_HELP(CMD_CONNECTION),
    CMD_ROW("NUMPAT", cmd_pubsub_numpat, 2, CMD_CONNECTION, "Counts the patterns.", ""),
    CMD_ROW("NUMSUB", cmd_pubsub_numsub, -2, CMD_CONNECTION | CMD_CHANNELS,
            "Counts the listeners of channels.", "[channel ...]"),
    CMD_ROW_END};

static const struct cmd script_subs[] = {
    CMD_ROW("CHECK", cmd_dropin_script_check, -4, CMD_DROP_IN,
            "Shows what a script would do in each state of its locks; does nothing.",
            "script-sha1 numkeys [key ...] [arg ...]"),
    CMD_ROW("EXISTS", cmd_dropin_script_exists, -3, CMD_DROP_IN,
            "Says which of these scripts are kept.", "sha1 [sha1 ...]"),
    CMD_ROW("FLUSH", cmd_dropin_script_flush, -2, CMD_DROP_IN, "Forgets all scripts.",
            "[ASYNC | SYNC]"),
    CMD_ROW_HELP(CMD_DROP_IN),
    CMD_ROW("LOAD", cmd_dropin_script_load, 3, CMD_DROP_IN, "Keeps a script and answers its SHA-1.",
            "script"),
    CMD_ROW_END};

static const struct cmd sentinel_subs[] = {
    CMD_ROW("CKQUORUM", cmd_find_quorum, 3, CMD_CONNECTION | CMD_ANYBODY,
            "Says whether this broker can grant locks.", "service"),
    CMD_ROW(
        "GET-MASTER-ADDR-BY-NAME", cmd_find_address, 3, CMD_CONNECTION,
        "Answers host and port of the broker to use: this one, or another while this one cannot "
        "grant.",
        "service"),
    CMD_ROW_HELP(CMD_CONNECTION),
    CMD_ROW("MASTER", cmd_find_master, 3, CMD_CONNECTION,
            "Shows the broker to use, as a Sentinel shows a master.", "service"),
    CMD_ROW("MASTERS", cmd_find_masters, 2, CMD_CONNECTION, "Does so for each name of the service.",
            ""),
    CMD_ROW("REPLICAS", cmd_find_replicas, 3, CMD_CONNECTION, "Is empty: a broker has no replicas.",
            "service"),
    CMD_ROW("SENTINELS", cmd_find_sentinels, 3, CMD_CONNECTION, "Lists the other brokers.",
            "service"),
    CMD_ROW("SLAVES", cmd_find_replicas, 3, CMD_CONNECTION, "REPLICAS.", "service"),
    CMD_ROW_END};

static const struct cmd slowlog_subs[] = {
    CMD_ROW("GET", cmd_trace_slowlog_get, -2, CMD_ADMIN | CMD_ALL_NAMES,
            "Shows the last requests that were slow.", "[count]"),
    CMD_ROW_HELP(CMD_ADMIN),
    CMD_ROW("LEN", cmd_trace_slowlog_len, 2, CMD_ADMIN, "Counts the entries.", ""),
    CMD_ROW("RESET", cmd_trace_slowlog_reset, 2, CMD_ADMIN, "Forgets the entries.", ""),
    CMD_ROW_END};

static const struct cmd table[] = {
    CMD_ROW_SUBS("ACL", NULL, -2, CMD_ADMIN, "Shows users and what they may do.", acl_subs),
    CMD_ROW("AUTH", cmd_conn_auth, -2, CMD_CONNECTION | CMD_SECRET | CMD_ANYBODY,
            "Proves who the client is.", "[username] password"),
    CMD_ROW("CANCEL", cmd_async_cancel, 2, CMD_CONNECTION,
            "Ends the wait of a LOCK ASYNC of this connection; answers 1, or 0 when it has ended.",
            "tag"),
    CMD_ROW_SUBS("CLIENT", NULL, -2, CMD_CONNECTION, "Shows and manages connections.", client_subs),
    CMD_ROW("CLUSTER", cmd_admin_cluster, -2, CMD_CONNECTION,
            "Always an error: this is no cluster.", "subcommand [arg ...]"),
    CMD_ROW_SUBS("COMMAND", cmd_docs_command, -1, CMD_CONNECTION, "Describes the commands.",
                 command_subs),
    CMD_ROW_SUBS("CONFIG", NULL, -2, CMD_ADMIN, "Shows and changes options.", config_subs),
    CMD_ROW("CONTENDED", cmd_lock_contended, -1, CMD_INSPECT | CMD_ALL_NAMES,
            "Lists the locks for which most requests wait here, and who waits.", "[COUNT n]"),
    CMD_ROW("DBSIZE", cmd_lock_count, 1, CMD_INSPECT,
            "Counts the locks that clients of this broker hold or wait for.", ""),
    CMD_ROW_KEY(
        "DEL", -2,
        "Frees locks that commands of Redis have taken, whoever holds them; answers how many.",
        "key [key ...]"),
    CMD_ROW_KEY("DELEX", -2, "Frees such a lock on a condition on its value.",
                "key [<IFEQ value | IFNE value>]"),
    CMD_ROW_KEY("DELIFEQ", 3, "Frees such a lock if this is its value.", "key value"),
    CMD_ROW("DISCARD", cmd_multi_discard, 1, CMD_CONNECTION | CMD_MULTI_OK,
            "Ends MULTI and runs nothing.", ""),
    CMD_ROW("ECHO", cmd_conn_echo, 2, CMD_CONNECTION, "Answers the same text.", "message"),
    CMD_ROW("EVAL", cmd_dropin_eval, -3, CMD_DROP_IN, "Runs a script about locks.",
            "script numkeys [key ...] [arg ...]"),
    CMD_ROW("EVAL_RO", cmd_dropin_eval, -3, CMD_DROP_IN, "Runs a script that only looks at locks.",
            "script numkeys [key ...] [arg ...]"),
    CMD_ROW("EVALSHA", cmd_dropin_evalsha, -3, CMD_DROP_IN,
            "Runs a script about locks by its SHA-1.", "sha1 numkeys [key ...] [arg ...]"),
    CMD_ROW("EVALSHA_RO", cmd_dropin_evalsha, -3, CMD_DROP_IN,
            "Runs a script that only looks at locks, by its SHA-1.",
            "sha1 numkeys [key ...] [arg ...]"),
    CMD_ROW("EXEC", cmd_multi_exec, 1, CMD_CONNECTION | CMD_BARRIER | CMD_MULTI_OK,
            "Runs what was said since MULTI, in one step.", ""),
    CMD_ROW_KEY("EXISTS", -2, "Counts those of these locks that are held.", "key [key ...]"),
    CMD_ROW_KEY("EXPIRE", -3, "Holds a lock from now on for so many seconds.",
                "key seconds [NX | XX | GT | LT]"),
    CMD_ROW_KEY("EXPIREAT", -3, "Holds a lock until a time in seconds.",
                "key unix-time-seconds [NX | XX | GT | LT]"),
    CMD_ROW_KEY("EXPIRETIME", 2, "Answers until when a lock is held, in seconds.", "key"),
    CMD_ROW_LOCK("FORCEUNLOCK", VERB_FORCE, 2, CMD_LOCK | CMD_ADMIN,
                 "Frees a lock whoever holds it, and tells the holder.", "name"),
    CMD_ROW_KEY("GET", 2, "Answers the value of a lock: who has it.", "key"),
    CMD_ROW_KEY("GETDEL", 2, "Answers the value of a lock and frees it.", "key"),
    CMD_ROW_KEY("GETEX", -2, "Answers the value of a lock and sets how long it is held.",
                "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT "
                "unix-time-milliseconds | PERSIST]"),
    CMD_ROW("HELLO", cmd_conn_hello, -1,
            CMD_CONNECTION | CMD_BARRIER | CMD_SECRET | CMD_ANYBODY | CMD_MULTI_OK,
            "Chooses the version of the protocol.",
            "[protover [AUTH username password] [SETNAME clientname]]"),
    CMD_ROW("HELP", cmd_docs_help, -1, CMD_CONNECTION, "Says what the lock commands do.",
            "[command]"),
    CMD_ROW_KEY("HEXISTS", 3, "Says whether the hash of a lock has a field.", "key field"),
    CMD_ROW_KEY("HGET", 3, "Answers a field of the hash of a lock.", "key field"),
    CMD_ROW_KEY("HGETALL", 2, "Answers the hash of a lock, which scripts have made.", "key"),
    CMD_ROW_KEY("HKEYS", 2, "Answers the fields of the hash of a lock.", "key"),
    CMD_ROW_KEY("HLEN", 2, "Counts the fields of the hash of a lock.", "key"),
    CMD_ROW_KEY("HMGET", -3, "Answers several fields of the hash of a lock.",
                "key field [field ...]"),
    CMD_ROW_LOCK("HOLDS", VERB_HOLDS, -2, CMD_INSPECT, "Says how often this owner holds a lock.",
                 "name [OWNER id]"),
    CMD_ROW_KEY("HVALS", 2, "Answers the values of the hash of a lock.", "key"),
    CMD_ROW("INFO", cmd_admin_info, -1, CMD_INSPECT, "Shows figures of the broker.",
            "[section ...]"),
    CMD_ROW("JEOPARDY", cmd_lock_jeopardy, -1, CMD_INSPECT | CMD_ALL_NAMES,
            "Lists the locks of clients here whose last renewal has failed.", "[COUNT n]"),
    CMD_ROW_SUBS("LATENCY", NULL, -2, CMD_ADMIN, "Shows how long commands take.", latency_subs),
    CMD_ROW_LOCK(
        "LOCK", VERB_LOCK, -2, CMD_LOCK,
        "Takes a lock; answers its fencing token and for how many ms it is valid, or nil.",
        "name [OWNER id] [WAIT ms] [LEASE ms] [MAXHOLD ms] [SHARED | LIMIT n] [TELL] [FAIR] "
        "[ID text] [ASYNC tag]"),
    CMD_ROW_LOCK("LOCKINFO", VERB_INFO, 2, CMD_INSPECT,
                 "Shows who holds a lock and who waits for it.", "name"),
    CMD_ROW("LOCKS", cmd_lock_list, -1, CMD_INSPECT,
            "Lists the locks that clients of this broker hold or wait for.",
            "[CURSOR c] [MATCH glob] [COUNT n]"),
    CMD_ROW(
        "MASTER", cmd_admin_master, 3, CMD_ADMIN,
        "Ends the quarantine of a master by hand, or puts this broker's settings in force on it.",
        "name <TRUST | ADOPT>"),
    CMD_ROW("MASTERS", cmd_lock_masters, 1, CMD_INSPECT, "Shows the Redis masters and how they do.",
            ""),
    CMD_ROW_LOCK(
        "MLOCK", VERB_MLOCK, -3, CMD_LOCK,
        "Takes several locks, all or none; answers their tokens and for how many ms they are "
        "valid.",
        "numnames name [name ...] [OWNER id] [WAIT ms] [LEASE ms] [MAXHOLD ms] "
        "[SHARED | LIMIT n] [TELL] [ID text] [ASYNC tag]"),
    CMD_ROW("MONITOR", cmd_trace_monitor, 1, CMD_ADMIN | CMD_BARRIER,
            "Shows every command as it comes.", ""),
    CMD_ROW("MULTI", cmd_multi_multi, 1, CMD_CONNECTION | CMD_MULTI_OK,
            "Keeps commands of Redis on locks until EXEC or DISCARD.", ""),
    CMD_ROW_LOCK("MUNLOCK", VERB_MUNLOCK, -3, CMD_LOCK | CMD_RELEASE,
                 "Releases several locks; answers how many were held and are free now.",
                 "numnames name [name ...] [OWNER id]"),
    CMD_ROW("OWNER", cmd_lock_owner, -1, CMD_LOCK,
            "Sets or shows the default owner of this connection.", "[id]"),
    CMD_ROW("PAUSE", cmd_admin_pause, 1, CMD_ADMIN,
            "Gives no new locks until RESUME; those that are held stay.", ""),
    CMD_ROW_KEY("PERSIST", 2, "Takes the time from a lock: it is held for max_hold of [drop_in].",
                "key"),
    CMD_ROW_KEY("PEXPIRE", -3, "Holds a lock from now on for so many milliseconds.",
                "key milliseconds [NX | XX | GT | LT]"),
    CMD_ROW_KEY("PEXPIREAT", -3, "Holds a lock until a time in milliseconds.",
                "key unix-time-milliseconds [NX | XX | GT | LT]"),
    CMD_ROW_KEY("PEXPIRETIME", 2, "Answers until when a lock is held, in milliseconds.", "key"),
    CMD_ROW("PING", cmd_conn_ping, -1, CMD_CONNECTION | CMD_PUBSUB_OK,
            "Answers PONG, or the same text.", "[message]"),
    CMD_ROW("PSUBSCRIBE", cmd_pubsub_subscribe, -2,
            CMD_CONNECTION | CMD_BARRIER | CMD_PUBSUB_OK | CMD_CHANNELS,
            "Listens to channels by pattern.", "pattern [pattern ...]"),
    CMD_ROW_KEY("PTTL", 2, "Answers for how many milliseconds a lock is held.", "key"),
    CMD_ROW("PUBLISH", cmd_pubsub_publish, 3, CMD_DROP_IN | CMD_MULTI_OK | CMD_CHANNELS,
            "Sends a message to all who listen, at all brokers.", "channel message"),
    CMD_ROW_SUBS("PUBSUB", NULL, -2, CMD_CONNECTION, "Shows who listens.", pubsub_subs),
    CMD_ROW("PUNSUBSCRIBE", cmd_pubsub_unsubscribe, -1, CMD_CONNECTION | CMD_PUBSUB_OK,
            "Stops listening by pattern.", "[pattern ...]"),
    CMD_ROW("QUIT", cmd_conn_quit, -1,
            CMD_CONNECTION | CMD_BARRIER | CMD_PUBSUB_OK | CMD_ANYBODY | CMD_MULTI_OK,
            "Ends the connection; its watched locks are released.", ""),
    CMD_ROW_LOCK("RENEW", VERB_RENEW, -2, CMD_LOCK,
                 "Renews a lock and moves its watchdog to this connection; answers as LOCK.",
                 "name [OWNER id] [LEASE ms]"),
    CMD_ROW("RESET", cmd_conn_reset, 1,
            CMD_CONNECTION | CMD_BARRIER | CMD_PUBSUB_OK | CMD_ANYBODY | CMD_MULTI_OK,
            "Makes the connection as new; its watched locks are released.", ""),
    CMD_ROW("RESUME", cmd_admin_pause, 1, CMD_ADMIN, "Ends PAUSE.", ""),
    CMD_ROW("ROLE", cmd_find_role, 1, CMD_CONNECTION,
            "Answers master, or slave and where to go while this broker cannot grant.", ""),
    CMD_ROW("SCAN", cmd_lock_scan, -2, CMD_INSPECT, "LOCKS, as tools of Redis ask for it.",
            "cursor [MATCH pattern] [COUNT count] [TYPE type]"),
    CMD_ROW_SUBS("SCRIPT", NULL, -2, CMD_DROP_IN, "Keeps scripts for EVALSHA.", script_subs),
    CMD_ROW("SELECT", cmd_conn_select, 2, CMD_CONNECTION,
            "Chooses a database: the names of another one than 0 are other names.", "index"),
    CMD_ROW_SUBS("SENTINEL", NULL, -2, CMD_CONNECTION, "Says which broker to use.", sentinel_subs),
    CMD_ROW("SET", cmd_dropin_set, -3, CMD_DROP_IN | CMD_MULTI_OK,
            "Takes a lock (NX), or changes one that is held (XX, IFEQ).",
            "key value [NX | XX | IFEQ value] [GET] [EX seconds | PX milliseconds | EXAT "
            "unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]"),
    CMD_ROW_KEY("SETNX", 3, "Takes a lock for max_hold of [drop_in]; answers 1 or 0.", "key value"),
    CMD_ROW("SHUTDOWN", cmd_admin_shutdown, -1, CMD_ADMIN,
            "Drains and stops the broker; locks stay.", "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]"),
    CMD_ROW_SUBS("SLOWLOG", NULL, -2, CMD_ADMIN, "Shows slow requests.", slowlog_subs),
    CMD_ROW_KEY("STRLEN", 2, "Answers how long the value of a lock is.", "key"),
    CMD_ROW("SUBSCRIBE", cmd_pubsub_subscribe, -2,
            CMD_CONNECTION | CMD_BARRIER | CMD_PUBSUB_OK | CMD_CHANNELS,
            "Listens to channels: \"lost\", \"lock:<name>\", those of PUBLISH.",
            "channel [channel ...]"),
    CMD_ROW("TIME", cmd_conn_time, 1, CMD_CONNECTION, "Shows the wall clock of the broker.", ""),
    CMD_ROW_KEY("TTL", 2, "Answers for how many seconds a lock is held.", "key"),
    CMD_ROW("TYPE", cmd_lock_type, 2, CMD_INSPECT | CMD_DROP_IN | CMD_EITHER,
            "Answers lock for what clients of this broker hold or wait for by LOCK, else as Redis.",
            "name"),
    CMD_ROW_KEY("UNLINK", -2, "DEL.", "key [key ...]"),
    CMD_ROW_LOCK(
        "UNLOCK", VERB_UNLOCK, -2, CMD_LOCK | CMD_RELEASE,
        "Gives a lock back; answers 1, or 0 when it is still held because it was taken again.",
        "name [OWNER id]"),
    CMD_ROW("UNSUBSCRIBE", cmd_pubsub_unsubscribe, -1, CMD_CONNECTION | CMD_PUBSUB_OK,
            "Stops listening to channels.", "[channel ...]"),
    CMD_ROW("UNWATCH", cmd_multi_unwatch, 1, CMD_DROP_IN, "Forgets the locks that are watched.",
            ""),
    CMD_ROW("WAITING", cmd_lock_waiting, -1, CMD_INSPECT | CMD_ALL_NAMES,
            "Lists the requests that wait for a lock here, the longest wait first.", "[COUNT n]"),
    CMD_ROW("WATCH", cmd_multi_watch, -2, CMD_DROP_IN | CMD_MULTI_OK,
            "Lets EXEC run nothing when one of these locks is no longer as it is now.",
            "key [key ...]"),
    CMD_ROW_END};
const struct cmd *cmd_table(int *count)
{
    *count = (int)(sizeof(table) / sizeof(table[0])) - 1;
    return table;
}
