#pragma once
/*
 * Between the files of server: server.c (its parts, the loop), end.c (drain and end), masters.c
 * (the masters and readiness), reload.c (from the configuration to the parts), hooks.c (what
 * commands and clients ask of it), gauges.c (reads the gauges), http.c (what HTTP shows), page.c
 * (what the status page shows), tls.c (its files for TLS), fds.c (how many descriptors there may
 * be), files.c (what its user may read), names.c (the resolver), peers.c (the other brokers).
 */
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "client/client.h"
#include "conf/conf.h"
#include "lock/broker.h"
#include "redis/master.h"
#include "redis/quarantine.h"
#include "server/server.h"
#include "session/peers.h"

struct listeners;
struct peer_links;
struct dropin;
struct subscriber;
struct cmd_setting;
struct http;
struct http_search;
struct http_view;
struct stats_gauges;

enum server_phase { SERVER_RUNS, SERVER_DRAINS, SERVER_ENDS };

enum { SERVER_STATUS_MAX = 512 };

struct server {
    struct server_setup setup;
    struct conf conf; /* what is in force */
    struct event_base *base;
    struct evdns_base *dns;
    struct stat resolv_conf, hosts; /* as last read */
    struct event timer, on_term, on_int, on_hup;
    int timer_fd;
    int64_t timer_ms; /* when it is set to ring; INT64_MAX: it is not */

    char id[BROKER_ID_LEN + 1];
    char *brokers;  /* names of all brokers, with commas between; NULL: no list */
    char *settings; /* what all brokers in front of these masters must agree on */
    char client_name[BROKER_ID_LEN + 16];
    struct broker broker;
    struct dropin *dropin;
    struct quarantine quarantine;
    struct subscriber *subscribers[ROUNDS_MASTERS_MAX]; /* a listener for each master */
    struct cluster *cluster;                            /* NULL: the masters are none */
    struct listeners *listeners;
    struct ssl_ctx_st *tls;  /* for clients; NULL: none */
    int64_t tls_expiry_s;    /* when its first certificate ends, since 1970; 0: there is none */
    int64_t tls_look_ms;     /* when to say so again, if that is soon */
    struct clients *clients; /* NULL: gone already */
    struct http *http;       /* NULL: off */
    struct peers peers;      /* the other brokers */
    struct peer_links *peer_links;
    struct ssl_ctx_st *peers_tls; /* for those with tls://; NULL: none, or its files are not good */
    int64_t sent_away_ms;         /* since when another one is named */

    int64_t n_asks_sent; /* of broker.rounds.n_asks, those that have left */
    uint8_t phase;       /* enum server_phase */
    bool ready;          /* a majority of the masters can vote */
    int64_t start_ms, start_wall_ms, reload_wall_ms;
    int64_t accept_ms;   /* when the first clients are let in at the latest; INT64_MAX: they are */
    int64_t second_ms;   /* when the next round of what is done once a second is due */
    int64_t watchdog_ms; /* how often systemd is to be told; 0: never */
    int64_t watchdog_due_ms;
    int64_t drain_end_ms, drain_look_ms;
    int64_t drained_ms;             /* since when nobody holds anything; 0: not yet */
    char status[SERVER_STATUS_MAX]; /* as last told */

    char os[128], executable[256];
    int64_t open_fds, fds_counted_ms;
};

/* ---- server.c ---- */
/* One turn of the loop, which waits for events until due_ms at the most. */
void server_turn(struct server *, int64_t due_ms);
/* Lets clients in, from the first time on. */
void server_begin_to_accept(struct server *);

/* ---- names.c ---- */
struct evdns_base *server_make_dns(struct event_base *);
/* Reads the files of the resolver again if they have changed since the last call; without a
 * resolver it only notes what they are. */
void server_look_at_names(struct server *);

/* ---- end.c ---- */
/* Begins to stop; `now`: without waiting for the holders. */
void server_stop(struct server *, bool now);
void server_look_at_drain(struct server *, int64_t now_ms);
/* Closes all connections; their watched locks are left to lapse. */
void server_end_clients(struct server *);
/* Gives releases and undos that are under way the time to arrive. */
void server_send_owed(struct server *);
/* Tells the masters that nothing comes from this broker any more (safety R15); last of all. */
void server_leave(struct server *);

/* ---- masters.c ---- */
void server_start_masters(struct server *);
void server_configure_masters(struct server *);
void server_free_masters(struct server *);
/* Where there is a list of brokers, quarantines may end by roll call. */
void server_begin_roll_call(struct server *);
/* Ends quarantines (redis/quarantine), by what stands on the masters of what this broker remembers.
 */
void server_look_at_quarantines(struct server *, int64_t now_ms);
/* Returns why master i, which is in quarantine, does not have the signature of this broker; "": it
 * has, or there is no roll call. */
const char *server_unsigned_why(const struct server *, int i, int64_t now_ms);
/* While all masters have much to do for us, waits a moment for one of them to answer. What clients
 * say meanwhile would only queue up there; read later, it is read in larger lots, and takes fewer
 * turns, wake-ups and calls. */
void server_let_masters_answer(struct server *);
/* Logs whether a majority is there, and who is missing. */
void server_log_ready(struct server *, int64_t now_ms);
/* Updates whether a majority is there, and tells the log and systemd what has changed. */
void server_update_ready(struct server *, int64_t now_ms);
void server_update_status(struct server *, int64_t now_ms);

/* ---- peers.c ---- */
/* Takes the addresses of the configuration, and begins to ask the other brokers anew. */
void server_configure_peers(struct server *);
/* Reads the files for TLS to them again. */
void server_secure_peers(struct server *);
/* Judges where clients are to go, tells them if that has changed, and sends clients away. */
void server_judge_peers(struct server *, int64_t now_ms);
void server_free_peers(struct server *);

/* ---- fds.c ---- */
/* Raises the limit of descriptors as far as the configuration wants and the system lets it; says in
 * the log when that is not enough. */
void server_raise_fds(const struct conf *);
/* Returns max_clients, or fewer when the limit of descriptors does not leave room for them. */
int64_t server_max_clients(const struct conf *);

/* ---- reload.c ---- */
/* Returns the limits of the configuration, with no more clients than there are descriptors for. */
struct conf_client server_client_limits(const struct conf *);
/* Checks protected_mode, for sockets that systemd has passed too. -1: `error` says which address is
 * open. */
int server_check_exposure(const struct server *, char *error, size_t error_size) MUST_CHECK;
void server_set_log(const struct server *);
/* Reads the configuration again (SIGHUP). */
void server_reload(struct server *);
/* cmd_hooks.config_set */
const char *server_config_set(struct server *, const struct cmd_setting *, int n, char *error,
                              size_t error_size);

/* ---- hooks.c ---- */
/* Ties commands and clients to the server; the broker and the configuration are there. */
void server_init_commands(struct server *);
extern const struct client_events server_client_events;

/* ---- gauges.c ---- */
/* Reads the gauges. The clients are there. */
void server_gauges(struct server *, struct stats_gauges *out, int64_t now_ms);

/* ---- tls.c ---- */
/* Makes the context for clients that `conf` asks for, NULL without a certificate. Reads all files
 * for TLS, those of masters too. -1: `error` says which is not good. */
int server_load_tls(const struct server *, const struct conf *, struct ssl_ctx_st **out,
                    char *error, size_t error_size) MUST_CHECK;
/* Makes the context for asking peers, NULL when none is asked over TLS. -1: `error` says which file
 * is not good. */
int server_peers_tls_new(const struct conf *, struct ssl_ctx_st **out, char *error,
                         size_t error_size) MUST_CHECK;
/* Writes a warning to `out` if a certificate that ends then ends soon; false: it does not. */
bool server_tls_warns(const struct conf *, int64_t expiry_s, char *out, size_t size);
/* Logs once a day that the certificate ends soon. */
void server_look_at_certificate(struct server *, int64_t now_ms);
/* Puts it in the place of the one in force, for connections from now on. */
void server_use_tls(struct server *, struct ssl_ctx_st *);

/* ---- http.c ---- */
/* Opens http.listen. An address that nobody has asked for may be taken: then there is a warning and
 * no HTTP. -1: `error` says why. */
int server_open_http(struct server *, char *error, size_t error_size) MUST_CHECK;

/* ---- page.c ---- */
/* What the status page shows (http_hooks); `arg` is the server. */
void server_fill_page(void *arg, struct http_view *);
void server_search_page(void *arg, struct http_search *);
