#pragma once
/*
 * gauges: levels, beside the counters of stats.h. Nobody keeps them: whoever makes one of the two
 * texts has them read first, all at one time.
 *
 * A gauge is one row below and a line that reads it in server/gauges.c; INFO and metrics then know
 * it. Each is an int64_t; one that is negative is shown by INFO only, and INT64_MAX is "no limit".
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hist;

enum stats_unit {
    STATS_UNIT_ONE, /* a number, bytes, seconds, 0 or 1: shown as it is */
    STATS_UNIT_MS   /* shown in seconds by the metrics */
};

/* X(field, unit, INFO name, metric, labels, help)
 * Rows of one metric stand together; the help of its first row counts. The INFO name stands in the
 * section Holdfast; "": the gauge has its place in a section of Redis's (info.c), or none. */
#define STATS_GAUGES(X)                                                                            \
    X(ready, ONE, "ready", "holdfast_ready", "", "Listening, and a quorum is available.")          \
    X(draining, ONE, "draining", "holdfast_draining", "", "On the way out: no new locks.")         \
    X(paused, ONE, "paused", "holdfast_paused", "", "PAUSE was said: no new locks.")               \
    X(quorum_required, ONE, "quorum_required", "holdfast_quorum_required", "",                     \
      "Votes that a lock needs.")                                                                  \
    X(quorum_available, ONE, "quorum_available", "holdfast_quorum_available", "",                  \
      "Masters whose votes count now.")                                                            \
    X(roll_call, ONE, "roll_call", "holdfast_roll_call", "",                                       \
      "There is a list of brokers, whose signatures end a quarantine.")                            \
    X(roll_call_memory_left_ms, MS, "roll_call_memory_left_ms",                                    \
      "holdfast_roll_call_memory_left_seconds", "",                                                \
      "Until this broker could sign if a master came back empty; 0: at once.")                     \
    X(locks_names, ONE, "lock_names", "holdfast_lock_names", "",                                   \
      "Names with a holder or a waiter here.")                                                     \
    X(locks_held_exclusive, ONE, "", "holdfast_locks_held", "type=\"exclusive\"",                  \
      "Holds of this broker's clients.")                                                           \
    X(locks_held_shared, ONE, "locks_held_shared", "holdfast_locks_held", "type=\"shared\"", "")   \
    X(locks_held_limited, ONE, "locks_held_limited", "holdfast_locks_held", "type=\"limited\"",    \
      "")                                                                                          \
    X(locks_held_drop_in, ONE, "locks_held_drop_in", "holdfast_locks_held", "type=\"drop_in\"",    \
      "")                                                                                          \
    X(drop_in_names, ONE, "drop_in_names", "holdfast_drop_in_names", "",                           \
      "Locks that commands of Redis hold, here or elsewhere, and this broker remembers.")          \
    X(drop_in_scripts, ONE, "drop_in_scripts", "holdfast_drop_in_scripts", "",                     \
      "Scripts kept for EVALSHA.")                                                                 \
    X(drop_in_script_bytes, ONE, "drop_in_script_bytes", "holdfast_drop_in_script_bytes", "",      \
      "Their bytes.")                                                                              \
    X(waiters, ONE, "waiters", "holdfast_lock_waiters", "", "Requests that wait for a lock.")      \
    X(longest_wait_ms, MS, "longest_wait_ms", "holdfast_lock_longest_wait_seconds", "",            \
      "How long the request that has waited longest for a lock has waited.")                       \
    X(lease_min_remaining_ms, MS, "lease_min_remaining_ms",                                        \
      "holdfast_lease_min_remaining_seconds", "",                                                  \
      "Time left of the hold that is nearest to its end.")                                         \
    X(clients_connected, ONE, "", "holdfast_clients_connected", "", "Connections.")                \
    X(clients_waiting, ONE, "", "holdfast_clients_waiting", "",                                    \
      "Connections that wait for a lock.")                                                         \
    X(clients_unauthenticated, ONE, "", "holdfast_clients_unauthenticated", "",                    \
      "Connections that have yet to say AUTH.")                                                    \
    X(max_clients, ONE, "", "holdfast_clients_max", "", "Limit of connections.")                   \
    X(uptime_ms, MS, "", "holdfast_uptime_seconds", "", "Since the start.")                        \
    X(config_reload_wall_ms, MS, "", "holdfast_config_last_reload_success_timestamp_seconds", "",  \
      "When the configuration in force was read.")                                                 \
    X(tls_expiry_s, ONE, "", "holdfast_tls_certificate_expiry_timestamp_seconds", "",              \
      "When the certificate for clients, or one of its chain, ends.")                              \
    X(memory_used, ONE, "", "holdfast_memory_bytes", "kind=\"used\"",                              \
      "Memory, by what it is for.")                                                                \
    X(memory_clients, ONE, "", "holdfast_memory_bytes", "kind=\"clients\"", "")                    \
    X(memory_locks, ONE, "", "holdfast_memory_bytes", "kind=\"locks\"", "")                        \
    X(memory_rss, ONE, "", "process_resident_memory_bytes", "", "Resident memory.")                \
    X(memory_virtual, ONE, "", "process_virtual_memory_bytes", "", "Virtual memory.")              \
    X(memory_virtual_max, ONE, "", "process_virtual_memory_max_bytes", "",                         \
      "Limit of virtual memory.")                                                                  \
    X(start_wall_ms, MS, "", "process_start_time_seconds", "", "Start, in seconds since 1970.")    \
    X(open_fds, ONE, "", "process_open_fds", "", "Open file descriptors.")                         \
    X(max_fds, ONE, "", "process_max_fds", "", "Limit of file descriptors.")

enum {
    STATS_MASTERS_MAX = 64,
    STATS_PEERS_MAX = 15,
    STATS_BROKER_MAX = 64 /* bytes of its name */
};

/* One master as texts and status page show it; all but the name may be 0. */
struct stats_master {
    const char *name, *address;
    const char *state;   /* of its state machine: "active", "quarantined", ... */
    const char *error;   /* the last one, or why it does not vote */
    bool up;             /* connected and its votes count */
    int64_t since_ms;    /* it has been so (up) for so long */
    const char *version; /* of the server; "": not known yet */
    int64_t quarantine_remaining_ms;
    /* Of its quarantine: brokers that have not signed, and that have, with commas between; why this
     * one has not, or why there is no roll call. */
    const char *missing, *signed_by, *unsigned_why;
    int64_t clock_offset_ms;
    int64_t latency_us;
    uint64_t inflight; /* requests sent and not answered */
    uint64_t requests_ok, requests_error, requests_timeout;
    uint64_t restarts, data_losses, clock_jumps, reconnects;
    const struct hist *request_us; /* NULL: none kept */
};

/* Another broker, as it has said of itself. */
struct stats_peer {
    const char *address; /* as in the configuration, without tls:// */
    const char *state;   /* "ready", "not ready", "silent" */
    bool up;             /* it is ready */
    bool named;          /* clients are sent there */
    int64_t heard_ms;    /* so long ago it has answered; -1: never */
    const char *host;
    int port;
};

/* The rest are facts that INFO alone tells, in Redis's sections. */
struct stats_gauges {
#define STATS_FIELD(field, unit, name, metric, labels, help) int64_t field;
    STATS_GAUGES(STATS_FIELD)
#undef STATS_FIELD
    const char *run_id; /* 40 characters in Redis; any text here */
    const char *os;     /* as `uname -srm` */
    const char *executable, *config_file;
    int64_t pid;
    int64_t tcp_port;
    int64_t now_wall_us;    /* wall clock */
    int64_t clients_pubsub; /* with a subscription */
    int64_t pubsub_channels, pubsub_patterns;
    int64_t memory_peak;                /* bytes */
    int64_t cpu_user_us, cpu_system_us; /* of the process; the metrics show their sum */
    struct stats_master masters[STATS_MASTERS_MAX];
    size_t masters_len;
    struct stats_peer peers[STATS_PEERS_MAX];
    size_t peers_len;
};
