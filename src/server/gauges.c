/*
 * The gauges, read when somebody asks: each row of stats/gauges.h has its line here.
 *
 * Looks at connections and never at the table of locks, so that a question holds up nobody.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/listener.h"
#include "dropin/call.h"
#include "lock/view.h"
#include "redis/quorum.h"
#include "server/private.h"
#include "session/pubsub.h"
#include "stats/gauges.h"

enum { FDS_COUNT_MS = 10000, HOLDS_LOOKED_AT = 20000 };

struct census {
    struct stats_gauges *gauges;
    int64_t now_ms, looked_at;
};

static bool count_hold(void *arg, const struct view_hold *h)
{
    struct census *c = arg;
    int64_t *least = &c->gauges->lease_min_remaining_ms;

    if (*least < 0 || h->left_ms < *least)
        *least = h->left_ms;
    return ++c->looked_at <= HOLDS_LOOKED_AT;
}

static void count_client(struct session *session, void *arg)
{
    struct census *c = arg;
    struct stats_gauges *g = c->gauges;
    const struct request *waiting = NULL;

    for (int n = 0; n < 2 && (waiting = session_waiting(session, waiting)) != NULL; n++) {
        int64_t waited_ms = c->now_ms - waiting->arrived_us / 1000; /* the longest of its kind */
        if (waited_ms > g->longest_wait_ms)
            g->longest_wait_ms = waited_ms;
    }
    g->clients_waiting += session_is_blocked(session);
    g->clients_pubsub += session->n_subscriptions > 0;
    g->memory_clients += (int64_t)(client_input_len(session) + client_output_len(session));
    if (c->looked_at <= HOLDS_LOOKED_AT)
        view_holds(session, c->now_ms, count_hold, c);
}

static void gauge_clients(struct server *s, struct stats_gauges *g, int64_t now_ms)
{
    struct census c = {.gauges = g, .now_ms = now_ms};
    size_t n_strangers;

    g->lease_min_remaining_ms = g->longest_wait_ms = -1;
    client_each(s->clients, count_client, &c);
    if (c.looked_at > HOLDS_LOOKED_AT) /* INFO would hold up everybody */
        g->lease_min_remaining_ms = -1;
    g->clients_connected = (int64_t)client_count(s->clients, &n_strangers);
    g->clients_unauthenticated = (int64_t)n_strangers;
    g->max_clients = server_max_clients(&s->conf);
    g->pubsub_channels = pubsub_count_channels();
    g->pubsub_patterns = pubsub_count_patterns();
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

static int64_t limit_of(int resource)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) != 0)
        return -1;
    return limit.rlim_cur == RLIM_INFINITY ? INT64_MAX : (int64_t)limit.rlim_cur;
}

static void gauge_process(struct server *s, struct stats_gauges *g, int64_t now_ms)
{
    struct rusage usage;

    gauge_pages(g);
    g->memory_virtual_max = limit_of(RLIMIT_AS);
    g->max_fds = limit_of(RLIMIT_NOFILE);
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
    if (s->open_fds == 0 || now_ms - s->fds_counted_ms >= FDS_COUNT_MS) {
        s->open_fds = count_fds();
        s->fds_counted_ms = now_ms;
    }
    g->open_fds = s->open_fds;
}

static void gauge_locks(const struct broker *b, struct stats_gauges *g)
{
    struct view_levels levels = view_levels(b);

    g->locks_held_exclusive = levels.n_exclusive;
    g->locks_held_shared = levels.n_shared;
    g->locks_held_limited = levels.n_limited;
    g->locks_held_drop_in = levels.n_drop_in;
    g->locks_names = (int64_t)levels.n_names;
    g->waiters = levels.n_waiters;
    g->memory_locks = levels.memory_bytes;
}

static void gauge_dropin(const struct dropin *dropin, struct stats_gauges *g)
{
    struct dropin_figures figures = dropin_figures(dropin);

    g->drop_in_names = figures.n_names;
    g->drop_in_scripts = figures.n_scripts;
    g->drop_in_script_bytes = (int64_t)figures.script_bytes;
}

static struct stats_master stats_of_master(const struct view_master *seen)
{
    const struct master_status *m = seen->status;

    return (struct stats_master){
        .name = m->name,
        .address = m->address,
        .state = master_status_name(m),
        .error = m->error,
        .up = seen->votes,
        .since_ms = seen->since_ms,
        .version = m->version,
        .quarantine_remaining_ms = m->quarantine_left_ms,
        .missing = m->roll_missing,
        .signed_by = m->roll_signed,
        .clock_offset_ms = seen->clock_offset_ms,
        .latency_us = m->latency_us,
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

static void gauge_masters(const struct server *s, struct stats_gauges *g, int64_t now_ms)
{
    const struct broker *b = &s->broker;
    int n = view_n_masters(b);

    _Static_assert((int)STATS_MASTERS_MAX == (int)ROUNDS_MASTERS_MAX, "room for all masters");
    for (int i = 0; i < n; i++) {
        struct view_master seen = view_master(b, i, now_ms);
        g->quorum_available += seen.votes;
        g->masters[i] = stats_of_master(&seen);
        g->masters[i].unsigned_why = server_unsigned_why(s, i, now_ms);
    }
    g->quorum_required = quorum_need(b->rounds.n) * partitions();
    g->masters_len = (size_t)n;
    g->roll_call = rollcall_is_on(&s->quarantine.roll);
    if (g->roll_call)
        g->roll_call_memory_left_ms = rollcall_memory_left_ms(&s->quarantine.roll, now_ms);
}

/* Fills in the other brokers; their addresses as text live until the next call. */
static void gauge_peers(const struct server *s, struct stats_gauges *g, int64_t now_ms)
{
    static char texts[PEERS_MAX][PEERS_HOST_MAX + 16];
    const struct peers *peers = &s->peers;

    _Static_assert((int)STATS_PEERS_MAX == (int)PEERS_MAX, "room for all peers");
    for (int i = 0; i < peers->n; i++) {
        const struct peer *p = &peers->v[i];
        bool is_v6 = strchr(p->address.host, ':') != NULL, speaks = peers_speaks(peers, i, now_ms);
        snprintf(texts[i], sizeof texts[i], is_v6 ? "[%s]:%d" : "%s:%d", p->address.host,
                 p->address.port);
        g->peers[i] = (struct stats_peer){.address = texts[i],
                                          .state = !speaks                 ? "silent"
                                                   : p->word == PEERS_WELL ? "ready"
                                                                           : "not ready",
                                          .up = speaks && p->word == PEERS_WELL,
                                          .named = peers->named == i,
                                          .heard_ms = p->spoke_ms ? now_ms - p->spoke_ms : -1,
                                          .host = p->address.host,
                                          .port = p->address.port};
    }
    g->peers_len = (size_t)peers->n;
}

/* Returns the port of the first TCP address; 0: there is none. */
static int64_t tcp_port(const struct server *s)
{
    for (size_t i = 0; i < listener_count(s->listeners); i++) {
        const char *address = listener_addr(s->listeners, i), *colon = strrchr(address, ':');
        if (strncmp(address, "unix:", 5) != 0 && colon)
            return atoi(colon + 1);
    }
    return 0;
}

void server_gauges(struct server *s, struct stats_gauges *out, int64_t now_ms)
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
        .ready = s->ready && s->phase == SERVER_RUNS && !view_is_paused(&s->broker),
        .draining = s->phase == SERVER_DRAINS,
        .paused = view_is_paused(&s->broker),
        .config_reload_wall_ms = s->reload_wall_ms,
        .tls_expiry_s = s->tls_expiry_s > 0 ? s->tls_expiry_s : -1,
    };

    gauge_clients(s, out, now_ms);
    gauge_process(s, out, now_ms);
    gauge_locks(&s->broker, out);
    gauge_dropin(s->dropin, out);
    gauge_masters(s, out, now_ms);
    gauge_peers(s, out, now_ms);
}
