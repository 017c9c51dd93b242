/* Counters, histograms, and the two texts made of them: INFO (Redis's layout) and the Prometheus
 * text exposition format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/).
 *
 * A counter is one row below; add one and INFO, metrics and CONFIG RESETSTAT know it. Anybody may
 * write `stats.lost_gone++`. What is a level and not a count (clients connected, memory)
 * is a row of gauges.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hist.h"

struct buf;
struct stats_gauges;

/* X(field, metric, labels, help)
 * INFO shows it by the name of the field, in section Stats or in section Holdfast; the metric is
 * called holdfast_METRIC_total. Rows of one metric stand together; the help of its first row
 * counts. A field that ends in _usec is shown in seconds by the metrics. */
#define STATS_REDIS_COUNTERS(X)                                                                    \
    X(total_connections_received, "connections_received", "", "Connections accepted.")             \
    X(total_net_input_bytes, "net_input_bytes", "", "Bytes read from clients.")                    \
    X(total_net_output_bytes, "net_output_bytes", "", "Bytes written to clients.")                 \
    X(total_commands_processed, "commands_processed", "", "Requests answered, of whatever outcome.")
#define STATS_OWN_COUNTERS(X)                                                                      \
    X(rejected_max_clients, "connections_rejected", "reason=\"max_clients\"",                      \
      "Connections refused at once.")                                                              \
    X(rejected_per_address, "connections_rejected", "reason=\"per_address\"", "")                  \
    X(rejected_unauthenticated, "connections_rejected", "reason=\"unauthenticated\"", "")          \
    X(rejected_no_descriptor, "connections_rejected", "reason=\"no_descriptor\"", "")              \
    X(accept_paused_usec, "accept_paused_seconds", "",                                             \
      "Time in which no connection was accepted.")                                                 \
    X(disconnects_quit, "client_disconnects", "reason=\"quit\"", "Connections ended, by reason.")  \
    X(disconnects_closed, "client_disconnects", "reason=\"closed\"", "")                           \
    X(disconnects_reset, "client_disconnects", "reason=\"reset\"", "")                             \
    X(disconnects_timeout, "client_disconnects", "reason=\"timeout\"", "")                         \
    X(disconnects_error, "client_disconnects", "reason=\"error\"", "")                             \
    X(disconnects_idle, "client_disconnects", "reason=\"idle\"", "")                               \
    X(disconnects_auth_timeout, "client_disconnects", "reason=\"auth_timeout\"", "")               \
    X(disconnects_slow_request, "client_disconnects", "reason=\"slow_request\"", "")               \
    X(disconnects_protocol, "client_disconnects", "reason=\"protocol\"", "")                       \
    X(disconnects_tls, "client_disconnects", "reason=\"tls\"", "")                                 \
    X(disconnects_http, "client_disconnects", "reason=\"http\"", "")                               \
    X(disconnects_output_limit, "client_disconnects", "reason=\"output_limit\"", "")               \
    X(disconnects_killed, "client_disconnects", "reason=\"killed\"", "")                           \
    X(disconnects_lost, "client_disconnects", "reason=\"lost\"", "")                               \
    X(disconnects_shutdown, "client_disconnects", "reason=\"shutdown\"", "")                       \
    X(auth_failures_password, "auth_failures", "reason=\"password\"",                              \
      "Refused AUTH and commands.")                                                                \
    X(auth_failures_missing, "auth_failures", "reason=\"missing\"", "")                            \
    X(auth_failures_permission, "auth_failures", "reason=\"permission\"", "")                      \
    X(auth_failures_crowded, "auth_failures", "reason=\"crowded\"", "")                            \
    X(protocol_errors_resp, "protocol_errors", "kind=\"resp\"", "Input that is no request.")       \
    X(protocol_errors_http, "protocol_errors", "kind=\"http\"", "")                                \
    X(protocol_errors_tls, "protocol_errors", "kind=\"tls\"", "")                                  \
    X(protocol_errors_proxy, "protocol_errors", "kind=\"proxy\"", "")                              \
    X(acquires_granted, "lock_acquires", "outcome=\"granted\"", "Lock requests, by outcome.")      \
    X(acquires_reentered, "lock_acquires", "outcome=\"reentered\"", "")                            \
    X(acquires_repeated, "lock_acquires", "outcome=\"repeated\"", "")                              \
    X(acquires_busy, "lock_acquires", "outcome=\"busy\"", "")                                      \
    X(acquires_timeout, "lock_acquires", "outcome=\"timeout\"", "")                                \
    X(acquires_no_quorum, "lock_acquires", "outcome=\"no_quorum\"", "")                            \
    X(acquires_late, "lock_acquires", "outcome=\"late\"", "")                                      \
    X(acquires_draining, "lock_acquires", "outcome=\"draining\"", "")                              \
    X(acquires_paused, "lock_acquires", "outcome=\"paused\"", "")                                  \
    X(acquires_kind, "lock_acquires", "outcome=\"kind\"", "")                                      \
    X(acquires_held, "lock_acquires", "outcome=\"held\"", "")                                      \
    X(acquires_limit, "lock_acquires", "outcome=\"limit\"", "")                                    \
    X(acquires_deadlock, "lock_acquires", "outcome=\"deadlock\"", "")                              \
    X(acquires_abandoned, "lock_acquires", "outcome=\"abandoned\"", "")                            \
    X(acquires_cancelled, "lock_acquires", "outcome=\"cancelled\"", "")                            \
    X(acquire_undos, "lock_undos", "", "Acquires taken back from the masters.")                    \
    X(acquire_tries, "lock_acquire_tries", "",                                                     \
      "Questions put to the masters for a lock; per grant: 1 is best.")                            \
    X(handovers, "lock_handovers", "",                                                             \
      "Grants by hand-over from a client of this broker, in one script.")                          \
    X(yields, "lock_yields", "",                                                                   \
      "Releases in favour of another broker although clients of this one waited.")                 \
    X(wakeups, "lock_wakeups", "",                                                                 \
      "Times that this broker was called up for a lock released elsewhere.")                       \
    X(turns_passed, "lock_turns_passed", "", "Turns given back unused.")                           \
    X(retries, "lock_retries", "", "Locks asked for again without having been called up.")         \
    X(releases_client, "lock_releases", "reason=\"client\"", "Holds ended in order.")              \
    X(releases_disconnect, "lock_releases", "reason=\"disconnect\"", "")                           \
    X(releases_expired, "lock_releases", "reason=\"expired\"", "")                                 \
    X(releases_forced, "lock_releases", "reason=\"forced\"", "")                                   \
    X(lost_no_quorum, "locks_lost", "reason=\"no_quorum\"",                                        \
      "Holds that ended although somebody relied on them.")                                        \
    X(lost_max_hold, "locks_lost", "reason=\"max_hold\"", "")                                      \
    X(lost_gone, "locks_lost", "reason=\"gone\"", "")                                              \
    X(lost_moved, "locks_lost", "reason=\"moved\"", "")                                            \
    X(lost_left, "locks_lost", "reason=\"left\"", "")                                              \
    X(lost_forced, "locks_lost", "reason=\"forced\"", "")                                          \
    X(lost_pause, "locks_lost", "reason=\"pause\"", "")                                            \
    X(drop_in_calls, "drop_in_calls", "", "Commands and scripts of Redis that locks answered.")    \
    X(drop_in_runs, "drop_in_runs", "", "Runs for them; per call: 1 is best.")                     \
    X(drop_in_exchanges, "drop_in_exchanges", "",                                                  \
      "Questions put to the masters for them; per call: 1 is best.")                               \
    X(drop_in_from_memory, "drop_in_from_memory", "", "Those of them refused without asking.")     \
    X(drop_in_again, "drop_in_tryagain", "", "Those of them answered TRYAGAIN.")                   \
    X(drop_in_long, "drop_in_long_holds", "", "Locks that they took for longer than max_lease.")   \
    X(renewals_ok, "lease_renewals", "outcome=\"ok\"", "Renewals of one hold, by outcome.")        \
    X(renewals_failed, "lease_renewals", "outcome=\"failed\"", "")                                 \
    X(renewals_lost, "lease_renewals", "outcome=\"lost\"", "")                                     \
    X(renewal_batches, "lease_renewal_batches", "", "Script calls that carried renewals.")         \
    X(jeopardies, "lease_jeopardies", "", "Holds whose renewal failed while time was left.")       \
    X(heals_planted, "lock_heals", "outcome=\"planted\"",                                          \
      "Holds put on a master that had none; refused: it had one.")                                 \
    X(heals_refused, "lock_heals", "outcome=\"refused\"", "")                                      \
    X(fence_writebacks, "fence_writebacks", "",                                                    \
      "Grants that needed a commit round for the token.")                                          \
    X(fence_regressions, "fence_regressions", "",                                                  \
      "Tokens that were not above those granted before, and were refused. Must stay 0.")           \
    X(messages_sent, "messages", "", "Pushes and channel messages sent to clients.")               \
    X(messages_dropped, "messages_dropped", "",                                                    \
      "Channel messages that nobody was told, because too many waited.")                           \
    X(http_requests, "http_requests", "", "Requests to the HTTP listener.")                        \
    X(http_connections_cut, "http_connections_cut", "",                                            \
      "HTTP connections ended because they took long.")                                            \
    X(log_lines_dropped, "log_lines_dropped", "", "Lines of the log that nobody took in time.")    \
    X(pauses_detected, "pauses_detected", "", "Times that this process itself stood still.")       \
    X(config_reloads_ok, "config_reloads", "outcome=\"ok\"", "Configuration reloads.")             \
    X(config_reloads_failed, "config_reloads", "outcome=\"failed\"", "")
#define STATS_COUNTERS(X) STATS_REDIS_COUNTERS(X) STATS_OWN_COUNTERS(X)

/* X(field, metric, help): each in microseconds, shown in seconds. */
#define STATS_HISTS(X)                                                                             \
    X(acquire_us, "holdfast_lock_acquire_duration_seconds",                                        \
      "From the first script sent to the verdict of an acquire.")                                  \
    X(wait_us, "holdfast_lock_wait_seconds", "Time that granted requests had to wait.")            \
    X(hold_us, "holdfast_lock_hold_seconds", "From grant to release or loss.")                     \
    X(renewal_lateness_us, "holdfast_lease_renewal_lateness_seconds",                              \
      "How much later than due a renewal was sent.")                                               \
    X(loop_lag_us, "holdfast_event_loop_lag_seconds", "How late a due timer ran.")

struct stats {
#define STATS_FIELD(field, metric, labels, help) uint64_t field;
    STATS_COUNTERS(STATS_FIELD)
#undef STATS_FIELD
#define STATS_FIELD(field, metric, help) struct hist field;
    STATS_HISTS(STATS_FIELD)
#undef STATS_FIELD
};

extern struct stats stats;

/* CONFIG RESETSTAT: counters, histograms, errors and the commands of the hook below back to 0. */
void stats_reset(void);

/* Counts an error reply by its code, the first word of text ("-" or not before it): Errorstats and
 * holdfast_errors_total{code}. A code is letters, digits, '_' (any other text: "other"); the
 * first 31 different ones are kept apart, the rest is "other" too. */
void stats_error(const char *text);
/* How many, of all codes. */
uint64_t stats_error_count(void);

/* About once a second: what "per second" in INFO means is the last such interval. */
void stats_tick(int64_t now_ms);

/* The command table keeps its own counts, one of these in each row, and lends them for the two
 * texts and for the reset. calls = ok + failed + rejected. */
struct stats_command {
    const char *name;        /* lower case; subcommands as "client|list" */
    uint64_t ok;             /* answered, nil and 0 too */
    uint64_t failed;         /* answered by an error after it began */
    uint64_t rejected;       /* refused before it began: arity, permission, draining */
    struct hist duration_us; /* request read to reply made; a wait counts */
};
/* Row i of the table, NULL after the last. No function: no commands shown. */
typedef struct stats_command *(*stats_command_fn)(size_t i);
void stats_set_commands(stats_command_fn row);

/* Appends INFO text. section: names separated by spaces or commas, any case; NULL or "": "default"
 * (all but Commandstats and Latencystats); "all" and "everything" give all. An unknown name gives
 * nothing. A section comes once, in the fixed order, however often it is named. */
void stats_info(struct buf *out, const char *section, const struct stats_gauges *gauges);

/* Appends the Prometheus text. */
void stats_metrics(struct buf *out, const struct stats_gauges *gauges);

/* Version of this program, and the one of Redis that INFO and HELLO claim for clients that look. */
#define STATS_REDIS_VERSION "8.4.0"
const char *stats_version(void);
