/*
 * What commands and clients ask of the server: the hooks of cmd, the life of a session, and the
 * gauges of INFO.
 *
 * Decides nothing but what becomes of the holds of a connection that ends: it passes on whether the
 * end was orderly.
 */
#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "client/listener.h"
#include "command/command.h"
#include "lock/lock.h"
#include "redis/master.h"
#include "redis/quorum.h"
#include "server/private.h"
#include "session/pubsub.h"
#include "stats/stats.h"

enum {
    OWNER_RANDOM = 26, /* characters of 5 bits: more than anybody can guess */
    FDS_COUNT_MS = 10000,
    HOLDS_LOOKED_AT = 100000
};

/* ---- sessions ---- */

static struct owner *make_owner(const struct server *s)
{
    char text[BROKER_ID_LEN + 1 + OWNER_RANDOM + 1];
    int len = snprintf(text, sizeof text, "%s/", s->id);

    util_random_id(text + len, OWNER_RANDOM);
    return owner_get(text, strlen(text));
}

static void on_start(void *arg, struct session *session, int64_t now_ms)
{
    (void)now_ms;
    session->owner = make_owner(arg);
}

static void end_holds(struct server *s, struct session *session, bool orderly, int64_t now_ms)
{
    broker_session_end(&s->broker, session, orderly, now_ms);
    owner_unref(session->owner);
    session->owner = NULL;
}

static void on_end(void *arg, struct session *session, enum client_end end, int64_t now_ms)
{
    end_holds(arg, session, client_end_is_orderly(end), now_ms);
}

const struct client_events server_client_events = {.on_start = on_start, .on_end = on_end};

static void reset_client(void *server, struct session *session, int64_t now_ms)
{
    end_holds(server, session, true, now_ms);
    session->owner = make_owner(server);
    session->owner_named = false;
}

/* ---- gauges ---- */

struct census {
    struct stats_gauges *g;
    int64_t now_ms, first_end_ms, looked_at;
};

static void count_client(struct session *session, void *arg)
{
    struct census *c = arg;
    const struct hold *h;

    c->g->clients_waiting += session_is_blocked(session);
    c->g->clients_pubsub += session->n_subscriptions > 0;
    c->g->memory_clients += (int64_t)(client_input_len(session) + client_output_len(session));
    LIST_FOREACH(h, &session->holds, of_session) {
        if (++c->looked_at > HOLDS_LOOKED_AT)
            return;
        if (h->deadline_ms < c->first_end_ms)
            c->first_end_ms = h->deadline_ms;
    }
}

static void gauge_clients(struct server *s, struct stats_gauges *g, int64_t now_ms)
{
    struct census c = {.g = g, .now_ms = now_ms, .first_end_ms = INT64_MAX};

    client_each(s->clients, count_client, &c);
    g->clients_connected = (int64_t)client_count(s->clients);
    g->clients_unauthenticated = (int64_t)client_count_strangers(s->clients);
    g->max_clients = server_max_clients(&s->conf);
    g->pubsub_channels = pubsub_count_channels();
    g->pubsub_patterns = pubsub_count_patterns();
    /* With so many locks to look at INFO would hold up everybody. */
    bool known = c.first_end_ms != INT64_MAX && c.looked_at <= HOLDS_LOOKED_AT;
    g->lease_min_remaining_ms = known ? c.first_end_ms - now_ms : -1;
}

static void gauge_pages(struct stats_gauges *g)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long long pages = 0, resident = 0;

    if (!file)
        return;
    if (fscanf(file, "%lld %lld", &pages, &resident) == 2) {
        g->memory_virtual = (int64_t)pages * sysconf(_SC_PAGESIZE);
        g->memory_rss = (int64_t)resident * sysconf(_SC_PAGESIZE);
    }
    fclose(file);
}

static int64_t count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int64_t n = 0;

    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 3; /* "." and ".." and the directory itself */
}

static void gauge_process(struct server *s, struct stats_gauges *g, int64_t now_ms)
{
    struct rusage usage;
    struct rlimit limit;

    gauge_pages(g);
    g->memory_virtual_max = -1;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        g->memory_virtual_max = (int64_t)limit.rlim_cur;
#ifdef HAVE_MALLINFO2
    struct mallinfo2 heap = mallinfo2();
    g->memory_used = (int64_t)(heap.uordblks + heap.hblkhd);
#endif
    if (g->memory_used == 0)
        g->memory_used = g->memory_rss;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        g->cpu_user_us = (int64_t)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
        g->cpu_system_us = (int64_t)usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec;
        g->memory_peak = (int64_t)usage.ru_maxrss * 1024;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        g->max_fds = limit.rlim_cur == RLIM_INFINITY ? INT64_MAX : (int64_t)limit.rlim_cur;
    if (s->open_fds == 0 || now_ms - s->fds_counted_ms >= FDS_COUNT_MS) {
        s->open_fds = count_fds();
        s->fds_counted_ms = now_ms;
    }
    g->open_fds = s->open_fds;
}

static void gauge_locks(const struct broker *b, struct stats_gauges *g)
{
    g->locks_held_exclusive = b->n_held[LOCK_EXCLUSIVE];
    g->locks_held_shared = b->n_held[LOCK_SHARED];
    g->locks_held_limited = b->n_held[LOCK_LIMIT];
    g->locks_names = (int64_t)b->locks.count;
    g->waiters = b->n_waiters;
    g->memory_locks =
        (int64_t)(b->locks.count * sizeof(struct lock) + b->n_holds * sizeof(struct hold) +
                  b->n_waiters * sizeof(struct lock_request));
}

static void gauge_masters(struct server *s, struct stats_gauges *g, struct stats_master *out,
                          int64_t now_ms)
{
    struct rounds *b = &s->broker.rounds;

    for (int i = 0; i < b->n; i++) {
        const struct master_status *m = master_status(b->masters[i], now_ms);
        bool votes = master_state_votes(m->state) && !m->stalled;
        g->quorum_available += votes;
        out[i] = (struct stats_master){
            .name = m->name,
            .state = master_status_name(m),
            .up = votes,
            .quarantine_remaining_ms = m->quarantine_left_ms,
            .clock_offset_ms = rounds_clock_offset_ms(b, m),
            .inflight = m->in_flight,
            .requests_ok = (uint64_t)m->answered,
            .requests_error = (uint64_t)m->rejected,
            .requests_timeout = (uint64_t)m->timeouts,
            .restarts = (uint64_t)m->restarts,
            .data_losses = (uint64_t)m->data_losses,
            .clock_jumps = (uint64_t)m->clock_jumps,
            .reconnects = (uint64_t)m->reconnects,
            .request_us = m->trip_us,
        };
    }
    g->quorum_required = quorum_need(b->n);
    g->masters = out;
    g->masters_len = (size_t)b->n;
}

/* The port of the first TCP address; 0: there is none. */
static int64_t tcp_port(const struct server *s)
{
    for (size_t i = 0; i < listener_count(s->listeners); i++) {
        const char *address = listener_addr(s->listeners, i), *colon = strrchr(address, ':');
        if (strncmp(address, "unix:", 5) != 0 && colon)
            return atoi(colon + 1);
    }
    return 0;
}

void server_gauges(struct server *s, struct stats_gauges *out, struct stats_master *masters,
                   int64_t now_ms)
{
    *out = (struct stats_gauges){
        .run_id = s->id,
        .os = s->os,
        .executable = s->executable,
        .config_file = s->conf.path,
        .pid = getpid(),
        .tcp_port = tcp_port(s),
        .now_wall_us = clock_wall_ms() * 1000,
        .start_wall_ms = s->start_wall_ms,
        .uptime_ms = now_ms - s->start_ms,
        .ready = s->ready && s->phase == SERVER_RUNS && !s->broker.paused,
        .draining = s->phase == SERVER_DRAINS,
        .paused = s->broker.paused,
        .config_reload_wall_ms = s->reload_wall_ms,
        .tls_expiry_s = s->tls_expiry_s,
    };

    gauge_clients(s, out, now_ms);
    gauge_process(s, out, now_ms);
    gauge_locks(&s->broker, out);
    gauge_masters(s, out, masters, now_ms);
}

static void info(void *server, struct buf *out, const char *sections)
{
    struct stats_master masters[CONF_MASTERS_MAX];
    struct stats_gauges g;

    server_gauges(server, &g, masters, clock_ms());
    stats_info(out, sections, &g);
}

/* ---- the other hooks ---- */

static void stop(void *server, bool now)
{
    server_stop(server, now);
}

static void each_client(void *server, void (*each)(struct session *, void *arg), void *arg)
{
    struct server *s = server;

    client_each(s->clients, each, arg);
}

static void kill_client(void *server, struct session *session, const char *reason)
{
    (void)server;
    client_kill(session, reason);
}

static void pause_clients(void *server, int64_t until_ms, unsigned classes)
{
    struct server *s = server;

    client_pause_all(s->clients, until_ms, classes);
}

static void pause_acquires(void *server, bool paused, int64_t now_ms)
{
    struct server *s = server;

    if (s->broker.paused != paused)
        log_info("server", "%s", paused ? "paused: no new locks are given" : "resumed");
    broker_pause(&s->broker, paused, now_ms);
    server_update_status(s, now_ms);
}

static const char *trust(void *server, const char *name, int64_t now_ms)
{
    struct server *s = server;

    return quarantine_trust(&s->quarantine, name, now_ms);
}

static const char *adopt(void *server, const char *name)
{
    struct rounds *b = &((struct server *)server)->broker.rounds;

    for (int i = 0; i < b->n; i++) {
        if (strcmp(master_name(b->masters[i]), name) == 0) {
            master_adopt(b->masters[i]);
            return NULL;
        }
    }
    return "there is none";
}

void server_init_commands(struct server *s)
{
    const struct cmd_hooks hooks = {
        .broker = &s->broker,
        .conf = &s->conf,
        .server = s,
        .info = info,
        .shutdown = stop,
        .each_client = each_client,
        .kill_client = kill_client,
        .reset_client = reset_client,
        .peer = client_peer,
        .local = client_local,
        .fd = client_fd,
        .input_len = client_input_len,
        .output_len = client_output_len,
        .pause = pause_clients,
        .pause_acquires = pause_acquires,
        .trust = trust,
        .adopt = adopt,
        .config_set = server_config_set,
    };

    cmd_init(&hooks);
}
