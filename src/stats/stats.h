/* Counters, histograms, and the two texts made of them: INFO (Redis's layout) and the Prometheus
 * text exposition format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/).
 *
 * A counter is one row below; add one and INFO, metrics and CONFIG RESETSTAT know it. Anybody may
 * write `stats.lost_gone++`. What is a level and not a count (clients connected, memory)
 * is a row of gauges.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hist.h"

struct buf;
struct stats_gauges;

/* X(field, metric, labels, help)
 * INFO shows it by the name of the field, in section Stats or in section Holdfast. Rows of one
 * metric stand together; the help of its first row counts. A field that ends in _usec is shown in
 * seconds by the metrics. */
#define STATS_REDIS_COUNTERS(X)                                                                    \
    X(total_connections_received, "holdfast_connections_received_total", "",                       \
      "Connections accepted.")                                                                     \
    X(total_net_input_bytes, "holdfast_net_input_bytes_total", "", "Bytes read from clients.")     \
    X(total_net_output_bytes, "holdfast_net_output_bytes_total", "", "Bytes written to clients.")  \
    X(total_commands_processed, "holdfast_commands_processed_total", "",                           \
      "Requests answered, of whatever outcome.")
#define STATS_OWN_COUNTERS(X)                                                                      \
    X(rejected_max_clients, "holdfast_connections_rejected_total", "reason=\"max_clients\"",       \
      "Connections refused at once.")                                                              \
    X(rejected_per_address, "holdfast_connections_rejected_total", "reason=\"per_address\"", "")   \
    X(rejected_unauthenticated, "holdfast_connections_rejected_total",                             \
      "reason=\"unauthenticated\"", "")                                                            \
    X(rejected_no_descriptor, "holdfast_connections_rejected_total", "reason=\"no_descriptor\"",   \
      "")                                                                                          \
    X(accept_paused_usec, "holdfast_accept_paused_seconds_total", "",                              \
      "Time in which no connection was accepted.")                                                 \
    X(disconnects_quit, "holdfast_client_disconnects_total", "reason=\"quit\"",                    \
      "Connections ended, by reason.")                                                             \
    X(disconnects_closed, "holdfast_client_disconnects_total", "reason=\"closed\"", "")            \
    X(disconnects_reset, "holdfast_client_disconnects_total", "reason=\"reset\"", "")              \
    X(disconnects_timeout, "holdfast_client_disconnects_total", "reason=\"timeout\"", "")          \
    X(disconnects_error, "holdfast_client_disconnects_total", "reason=\"error\"", "")              \
    X(disconnects_idle, "holdfast_client_disconnects_total", "reason=\"idle\"", "")                \
    X(disconnects_auth_timeout, "holdfast_client_disconnects_total", "reason=\"auth_timeout\"",    \
      "")                                                                                          \
    X(disconnects_slow_request, "holdfast_client_disconnects_total", "reason=\"slow_request\"",    \
      "")                                                                                          \
    X(disconnects_protocol, "holdfast_client_disconnects_total", "reason=\"protocol\"", "")        \
    X(disconnects_tls, "holdfast_client_disconnects_total", "reason=\"tls\"", "")                  \
    X(disconnects_http, "holdfast_client_disconnects_total", "reason=\"http\"", "")                \
    X(disconnects_output_limit, "holdfast_client_disconnects_total", "reason=\"output_limit\"",    \
      "")                                                                                          \
    X(disconnects_killed, "holdfast_client_disconnects_total", "reason=\"killed\"", "")            \
    X(disconnects_lost, "holdfast_client_disconnects_total", "reason=\"lost\"", "")                \
    X(disconnects_shutdown, "holdfast_client_disconnects_total", "reason=\"shutdown\"", "")        \
    X(auth_failures_password, "holdfast_auth_failures_total", "reason=\"password\"",               \
      "Refused AUTH and commands.")                                                                \
    X(auth_failures_missing, "holdfast_auth_failures_total", "reason=\"missing\"", "")             \
    X(auth_failures_permission, "holdfast_auth_failures_total", "reason=\"permission\"", "")       \
    X(auth_failures_crowded, "holdfast_auth_failures_total", "reason=\"crowded\"", "")             \
    X(protocol_errors_resp, "holdfast_protocol_errors_total", "kind=\"resp\"",                     \
      "Input that is no request.")                                                                 \
    X(protocol_errors_http, "holdfast_protocol_errors_total", "kind=\"http\"", "")                 \
    X(protocol_errors_tls, "holdfast_protocol_errors_total", "kind=\"tls\"", "")                   \
    X(protocol_errors_proxy, "holdfast_protocol_errors_total", "kind=\"proxy\"", "")               \
    X(acquires_granted, "holdfast_lock_acquires_total", "outcome=\"granted\"",                     \
      "Lock requests, by outcome.")                                                                \
    X(acquires_reentered, "holdfast_lock_acquires_total", "outcome=\"reentered\"", "")             \
    X(acquires_repeated, "holdfast_lock_acquires_total", "outcome=\"repeated\"", "")               \
    X(acquires_busy, "holdfast_lock_acquires_total", "outcome=\"busy\"", "")                       \
    X(acquires_timeout, "holdfast_lock_acquires_total", "outcome=\"timeout\"", "")                 \
    X(acquires_no_quorum, "holdfast_lock_acquires_total", "outcome=\"no_quorum\"", "")             \
    X(acquires_late, "holdfast_lock_acquires_total", "outcome=\"late\"", "")                       \
    X(acquires_draining, "holdfast_lock_acquires_total", "outcome=\"draining\"", "")               \
    X(acquires_paused, "holdfast_lock_acquires_total", "outcome=\"paused\"", "")                   \
    X(acquires_kind, "holdfast_lock_acquires_total", "outcome=\"kind\"", "")                       \
    X(acquires_held, "holdfast_lock_acquires_total", "outcome=\"held\"", "")                       \
    X(acquires_limit, "holdfast_lock_acquires_total", "outcome=\"limit\"", "")                     \
    X(acquires_deadlock, "holdfast_lock_acquires_total", "outcome=\"deadlock\"", "")               \
    X(acquires_abandoned, "holdfast_lock_acquires_total", "outcome=\"abandoned\"", "")             \
    X(acquire_undos, "holdfast_lock_undos_total", "", "Acquires taken back from the masters.")     \
    X(acquire_tries, "holdfast_lock_acquire_tries_total", "",                                      \
      "Questions put to the masters for a lock; per grant: 1 is best.")                            \
    X(handovers, "holdfast_lock_handovers_total", "",                                              \
      "Grants by hand-over from a client of this broker, in one script.")                          \
    X(yields, "holdfast_lock_yields_total", "",                                                    \
      "Releases in favour of another broker although clients of this one waited.")                 \
    X(wakeups, "holdfast_lock_wakeups_total", "",                                                  \
      "Times that this broker was called up for a lock released elsewhere.")                       \
    X(turns_passed, "holdfast_lock_turns_passed_total", "", "Turns given back unused.")            \
    X(retries, "holdfast_lock_retries_total", "",                                                  \
      "Locks asked for again without having been called up.")                                      \
    X(releases_client, "holdfast_lock_releases_total", "reason=\"client\"",                        \
      "Holds ended in order.")                                                                     \
    X(releases_disconnect, "holdfast_lock_releases_total", "reason=\"disconnect\"", "")            \
    X(releases_expired, "holdfast_lock_releases_total", "reason=\"expired\"", "")                  \
    X(releases_forced, "holdfast_lock_releases_total", "reason=\"forced\"", "")                    \
    X(lost_no_quorum, "holdfast_locks_lost_total", "reason=\"no_quorum\"",                         \
      "Holds that ended although somebody relied on them.")                                        \
    X(lost_max_hold, "holdfast_locks_lost_total", "reason=\"max_hold\"", "")                       \
    X(lost_gone, "holdfast_locks_lost_total", "reason=\"gone\"", "")                               \
    X(lost_moved, "holdfast_locks_lost_total", "reason=\"moved\"", "")                             \
    X(lost_forced, "holdfast_locks_lost_total", "reason=\"forced\"", "")                           \
    X(lost_pause, "holdfast_locks_lost_total", "reason=\"pause\"", "")                             \
    X(renewals_ok, "holdfast_lease_renewals_total", "outcome=\"ok\"",                              \
      "Renewals of one hold, by outcome.")                                                         \
    X(renewals_failed, "holdfast_lease_renewals_total", "outcome=\"failed\"", "")                  \
    X(renewals_lost, "holdfast_lease_renewals_total", "outcome=\"lost\"", "")                      \
    X(renewal_batches, "holdfast_lease_renewal_batches_total", "",                                 \
      "Script calls that carried renewals.")                                                       \
    X(jeopardies, "holdfast_lease_jeopardies_total", "",                                           \
      "Holds whose renewal failed while time was left.")                                           \
    X(heals_planted, "holdfast_lock_heals_total", "outcome=\"planted\"",                           \
      "Holds put on a master that had none; refused: it had one.")                                 \
    X(heals_refused, "holdfast_lock_heals_total", "outcome=\"refused\"", "")                       \
    X(fence_writebacks, "holdfast_fence_writebacks_total", "",                                     \
      "Grants that needed a commit round for the token.")                                          \
    X(fence_regressions, "holdfast_fence_regressions_total", "",                                   \
      "Tokens that were not above those granted before, and were refused. Must stay 0.")           \
    X(messages_sent, "holdfast_messages_total", "",                                                \
      "Pushes and channel messages sent to clients.")                                              \
    X(messages_dropped, "holdfast_messages_dropped_total", "",                                     \
      "Channel messages that nobody was told, because too many waited.")                           \
    X(http_requests, "holdfast_http_requests_total", "", "Requests to the HTTP listener.")         \
    X(http_connections_cut, "holdfast_http_connections_cut_total", "",                             \
      "HTTP connections ended because they took long.")                                            \
    X(log_lines_dropped, "holdfast_log_lines_dropped_total", "",                                   \
      "Lines of the log that nobody took in time.")                                                \
    X(pauses_detected, "holdfast_pauses_detected_total", "",                                       \
      "Times that this process itself stood still.")                                               \
    X(config_reloads_ok, "holdfast_config_reloads_total", "outcome=\"ok\"",                        \
      "Configuration reloads.")                                                                    \
    X(config_reloads_failed, "holdfast_config_reloads_total", "outcome=\"failed\"", "")
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
