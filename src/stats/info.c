/* INFO: the text in Redis's layout, with the fields that redis-cli --stat, client libraries and
 * redis_exporter look for. Owns names and order; what holdfast does not have (replicas, eviction,
 * snapshots) has the value of a Redis that does not use it. Does not know where gauges come from.
 *
 * redis-cli finds a field by its first appearance in the text: so "used_memory" stands before
 * "used_memory_human", and "loading" before "async_loading". */
#include "stats/private.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "stats/libraries.h"
#include "stats/recent.h"

typedef void (*section_fn)(struct buf *out, const struct stats_gauges *g);

static void put_field_int(struct buf *out, const char *name, int64_t value)
{
    buf_printf(out, "%s:%lld\r\n", name, (long long)value);
}

static void put_field(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s:%s\r\n", name, value ? value : "");
}

static void put_memory(struct buf *out, const char *name, int64_t bytes)
{
    static const char units[] = "BKMGT";
    double value = (double)bytes;
    size_t unit = 0;

    put_field_int(out, name, bytes);
    for (; value >= 1024 && unit + 2 < sizeof units; unit++)
        value /= 1024;
    buf_printf(out, unit > 0 ? "%s_human:%.2f%c\r\n" : "%s_human:%.0f%c\r\n", name, value,
               units[unit]);
}

static void info_counters(struct buf *out, enum stats_section section)
{
    for (const struct stats_counter_row *row = stats_counter_rows; row->field; row++)
        if (row->section == section)
            buf_printf(out, "%s:%llu\r\n", row->field, (unsigned long long)stats_value(row));
}

static void section_server(struct buf *out, const struct stats_gauges *g)
{
    put_field(out, "redis_version", STATS_REDIS_VERSION);
    put_field(out, "holdfast_version", stats_version());
    put_field(out, "redis_mode", "standalone");
    put_field(out, "os", g->os);
    put_field_int(out, "arch_bits", (int64_t)sizeof(void *) * 8);
    put_field(out, "multiplexing_api", "libevent");
    put_field_int(out, "process_id", g->pid);
    put_field(out, "run_id", g->run_id);
    put_field_int(out, "tcp_port", g->tcp_port);
    put_field_int(out, "server_time_usec", g->now_wall_us);
    put_field_int(out, "uptime_in_seconds", g->uptime_ms / 1000);
    put_field_int(out, "uptime_in_days", g->uptime_ms / 86400000);
    put_field_int(out, "hz", 10);
    put_field(out, "executable", g->executable);
    put_field(out, "config_file", g->config_file);
}

static void section_clients(struct buf *out, const struct stats_gauges *g)
{
    put_field_int(out, "connected_clients", g->clients_connected);
    put_field_int(out, "cluster_connections", 0);
    put_field_int(out, "maxclients", g->max_clients);
    put_field_int(out, "blocked_clients", g->clients_waiting);
    put_field_int(out, "tracking_clients", 0);
    put_field_int(out, "clients_in_timeout_table", g->clients_waiting);
    put_field_int(out, "pubsub_clients", g->clients_pubsub);
    put_field_int(out, "unauthenticated_clients", g->clients_unauthenticated);
}

static void section_memory(struct buf *out, const struct stats_gauges *g)
{
    put_memory(out, "used_memory", g->memory_used);
    put_memory(out, "used_memory_rss", g->memory_rss);
    put_memory(out, "used_memory_peak", g->memory_peak);
    put_memory(out, "maxmemory", 0);
    put_field(out, "maxmemory_policy", "noeviction");
    buf_printf(out, "mem_fragmentation_ratio:%.2f\r\n",
               g->memory_used > 0 ? (double)g->memory_rss / (double)g->memory_used : 0);
    put_field_int(out, "mem_clients_normal", g->memory_clients);
    put_field_int(out, "mem_locks", g->memory_locks);
    put_field(out, "mem_allocator", "libc");
}

static void section_persistence(struct buf *out, const struct stats_gauges *g)
{
    put_field_int(out, "loading", 0);
    put_field_int(out, "async_loading", 0);
    put_field_int(out, "rdb_changes_since_last_save", 0);
    put_field_int(out, "rdb_bgsave_in_progress", 0);
    put_field_int(out, "rdb_last_save_time", g->start_wall_ms / 1000);
    put_field(out, "rdb_last_bgsave_status", "ok");
    put_field_int(out, "rdb_last_bgsave_time_sec", -1);
    put_field_int(out, "rdb_current_bgsave_time_sec", -1);
    put_field_int(out, "aof_enabled", 0);
    put_field_int(out, "aof_rewrite_in_progress", 0);
    put_field_int(out, "aof_rewrite_scheduled", 0);
    put_field_int(out, "aof_last_rewrite_time_sec", -1);
    put_field_int(out, "aof_current_rewrite_time_sec", -1);
    put_field(out, "aof_last_bgrewrite_status", "ok");
    put_field(out, "aof_last_write_status", "ok");
}

static void section_stats(struct buf *out, const struct stats_gauges *g)
{
    info_counters(out, STATS_SECTION_STATS);
    buf_printf(out, "instantaneous_ops_per_sec:%.0f\r\n", stats_rates()->commands);
    buf_printf(out, "instantaneous_input_kbps:%.2f\r\n", stats_rates()->input_bytes / 1024);
    buf_printf(out, "instantaneous_output_kbps:%.2f\r\n", stats_rates()->output_bytes / 1024);
    put_field_int(out, "rejected_connections",
                  (int64_t)(stats.rejected_max_clients + stats.rejected_per_address +
                            stats.rejected_unauthenticated + stats.rejected_no_descriptor));
    put_field_int(out, "sync_full", 0);
    put_field_int(out, "sync_partial_ok", 0);
    put_field_int(out, "sync_partial_err", 0);
    put_field_int(out, "expired_keys", (int64_t)stats.releases_expired);
    put_field_int(out, "evicted_keys", 0);
    put_field_int(out, "keyspace_hits", 0);
    put_field_int(out, "keyspace_misses", 0);
    put_field_int(out, "pubsub_channels", g->pubsub_channels);
    put_field_int(out, "pubsub_patterns", g->pubsub_patterns);
    put_field_int(out, "latest_fork_usec", 0);
    put_field_int(out, "total_error_replies", (int64_t)stats_error_count());
    put_field_int(out, "acl_access_denied_auth", (int64_t)stats.auth_failures_password);
    put_field_int(out, "acl_access_denied_cmd", (int64_t)stats.auth_failures_permission);
}

/* As ROLE says it: who has named another broker is no master. */
static void section_replication(struct buf *out, const struct stats_gauges *g)
{
    const struct stats_peer *named = NULL;

    for (size_t i = 0; i < g->peers_len; i++)
        named = g->peers[i].named ? &g->peers[i] : named;
    put_field(out, "role", named ? "slave" : "master");
    if (named) {
        put_field(out, "master_host", named->host);
        put_field_int(out, "master_port", named->port);
        put_field(out, "master_link_status", "up");
    }
    put_field_int(out, "connected_slaves", 0);
    put_field(out, "master_failover_state", "no-failover");
    put_field(out, "master_replid", g->run_id);
    put_field_int(out, "master_repl_offset", 0);
    put_field_int(out, "second_repl_offset", -1);
    put_field_int(out, "repl_backlog_active", 0);
}

static void section_cpu(struct buf *out, const struct stats_gauges *g)
{
    buf_printf(out, "used_cpu_sys:%.6f\r\n", (double)g->cpu_system_us / 1e6);
    buf_printf(out, "used_cpu_user:%.6f\r\n", (double)g->cpu_user_us / 1e6);
    buf_printf(out, "used_cpu_sys_children:%.6f\r\n", 0.0);
    buf_printf(out, "used_cpu_user_children:%.6f\r\n", 0.0);
}

/* As in Redis, calls are those that ran; refused ones are counted beside them. */
static void section_commandstats(struct buf *out, const struct stats_gauges *g)
{
    const struct stats_command *c;

    (void)g;
    for (size_t i = 0; (c = stats_command_row(i)); i++) {
        uint64_t calls = c->ok + c->failed;
        uint64_t usec = c->duration_us.sum_us;
        if (calls + c->rejected == 0)
            continue;
        buf_printf(out,
                   "cmdstat_%s:calls=%llu,usec=%llu,usec_per_call=%.2f,rejected_calls=%llu,"
                   "failed_calls=%llu\r\n",
                   c->name, (unsigned long long)calls, (unsigned long long)usec,
                   calls > 0 ? (double)usec / (double)calls : 0, (unsigned long long)c->rejected,
                   (unsigned long long)c->failed);
    }
}

static void section_errorstats(struct buf *out, const struct stats_gauges *g)
{
    const struct stats_error_count *error;

    (void)g;
    for (size_t i = 0; (error = stats_error_row(i)); i++)
        if (error->count > 0)
            buf_printf(out, "errorstat_%s:count=%llu\r\n", error->code,
                       (unsigned long long)error->count);
}

static void put_percentiles(struct buf *out, const struct hist *hist)
{
    buf_printf(out, "p50=%lld,p99=%lld,p99.9=%lld", (long long)hist_quantile(hist, 0.5),
               (long long)hist_quantile(hist, 0.99), (long long)hist_quantile(hist, 0.999));
}

static void section_latencystats(struct buf *out, const struct stats_gauges *g)
{
    const struct stats_command *c;

    (void)g;
    for (size_t i = 0; (c = stats_command_row(i)); i++) {
        if (c->duration_us.count == 0)
            continue;
        buf_printf(out, "latency_percentiles_usec_%s:", c->name);
        put_percentiles(out, &c->duration_us);
        buf_append(out, "\r\n", 2);
    }
}

static void section_cluster(struct buf *out, const struct stats_gauges *g)
{
    (void)g;
    put_field_int(out, "cluster_enabled", 0);
}

static void section_keyspace(struct buf *out, const struct stats_gauges *g)
{
    long long n = g->locks_names + g->locks_held_drop_in; /* as DBSIZE and SCAN count them */

    if (n > 0)
        buf_printf(out, "db0:keys=%lld,expires=%lld,avg_ttl=0\r\n", n, n);
}

/* A name from the configuration must not look like the next field or line. */
static void put_unbroken(struct buf *out, const char *text)
{
    for (; *text; text++)
        buf_append(out, (unsigned char)*text < ' ' || *text == ',' ? "_" : text, 1);
}

static void info_masters(struct buf *out, const struct stats_gauges *g)
{
    for (size_t i = 0; i < g->masters_len; i++) {
        const struct stats_master *m = &g->masters[i];
        buf_printf(out, "master%zu:name=", i);
        put_unbroken(out, m->name);
        buf_printf(out,
                   ",state=%s,up=%d,quarantine_ms=%lld,inflight=%llu,restarts=%llu,"
                   "data_losses=%llu,clock_offset_ms=%lld,since_ms=%lld,version=",
                   m->state ? m->state : "", m->up, (long long)m->quarantine_remaining_ms,
                   (unsigned long long)m->inflight, (unsigned long long)m->restarts,
                   (unsigned long long)m->data_losses, (long long)m->clock_offset_ms,
                   (long long)m->since_ms);
        put_unbroken(out, m->version ? m->version : "");
        buf_append(out, "\r\n", 2);
    }
}

static void info_peers(struct buf *out, const struct stats_gauges *g)
{
    for (size_t i = 0; i < g->peers_len; i++) {
        const struct stats_peer *p = &g->peers[i];
        buf_printf(out, "peer%zu:address=", i);
        put_unbroken(out, p->address);
        buf_printf(out, ",state=%s,heard_ms=%lld,named=%d\r\n", p->state, (long long)p->heard_ms,
                   p->named);
    }
}

static void info_libraries(struct buf *out)
{
    const struct library *l;

    for (size_t i = 0; (l = library_row(i)); i++)
        buf_printf(out, "library%zu:name=%s,connections=%lld,commands=%llu\r\n", i, l->name,
                   (long long)l->connections, (unsigned long long)l->commands);
}

static void put_hist(struct buf *out, const char *name, const char *suffix, const struct hist *hist)
{
    buf_printf(out, "%s%s:count=%llu,", name, suffix, (unsigned long long)hist->count);
    put_percentiles(out, hist);
    buf_printf(out, ",max=%llu\r\n", (unsigned long long)hist->max_us);
}

static void section_holdfast(struct buf *out, const struct stats_gauges *g)
{
    for (const struct stats_gauge_row *row = stats_gauge_rows; row->field; row++)
        if (*row->name)
            put_field_int(out, row->name, stats_gauge(g, row));
    put_field_int(out, "locks_held",
                  g->locks_held_exclusive + g->locks_held_shared + g->locks_held_limited +
                      g->locks_held_drop_in);
    put_field_int(out, "masters", (int64_t)g->masters_len);
    info_masters(out, g);
    info_peers(out, g);
    info_libraries(out);
    info_counters(out, STATS_SECTION_HOLDFAST);
    for (size_t i = 0; stats_hist_rows[i].field; i++) {
        struct hist recent;
        recent_hist(i, &recent);
        put_hist(out, stats_hist_rows[i].field, "", stats_hist(&stats_hist_rows[i]));
        put_hist(out, stats_hist_rows[i].field, "_recent", &recent);
    }
}

static const struct {
    const char *name;
    section_fn write;
    bool by_default;
} sections[STATS_SECTIONS] = {
    [STATS_SECTION_SERVER] = {"Server", section_server, true},
    [STATS_SECTION_CLIENTS] = {"Clients", section_clients, true},
    [STATS_SECTION_MEMORY] = {"Memory", section_memory, true},
    [STATS_SECTION_PERSISTENCE] = {"Persistence", section_persistence, true},
    [STATS_SECTION_STATS] = {"Stats", section_stats, true},
    [STATS_SECTION_REPLICATION] = {"Replication", section_replication, true},
    [STATS_SECTION_CPU] = {"CPU", section_cpu, true},
    [STATS_SECTION_COMMANDSTATS] = {"Commandstats", section_commandstats, false},
    [STATS_SECTION_ERRORSTATS] = {"Errorstats", section_errorstats, true},
    [STATS_SECTION_LATENCYSTATS] = {"Latencystats", section_latencystats, false},
    [STATS_SECTION_CLUSTER] = {"Cluster", section_cluster, true},
    [STATS_SECTION_KEYSPACE] = {"Keyspace", section_keyspace, true},
    [STATS_SECTION_HOLDFAST] = {"Holdfast", section_holdfast, true},
};

static bool word_is(const char *word, size_t len, const char *name)
{
    return strlen(name) == len && strncasecmp(word, name, len) == 0;
}

/* The sections that one word names, as bits. */
static uint32_t sections_of(const char *word, size_t len)
{
    bool all = word_is(word, len, "all") || word_is(word, len, "everything");
    bool usual = word_is(word, len, "default");
    uint32_t bits = 0;

    for (int i = 0; i < STATS_SECTIONS; i++)
        if (all || (usual && sections[i].by_default) || word_is(word, len, sections[i].name))
            bits |= UINT32_C(1) << i;
    return bits;
}

void stats_info(struct buf *out, const char *section, const struct stats_gauges *gauges)
{
    const char *word = section && *section ? section : "default";
    uint32_t bits = 0;
    bool first = true;

    while (*word) {
        size_t len = strcspn(word, " ,");
        bits |= sections_of(word, len);
        word += len;
        word += strspn(word, " ,");
    }
    for (int i = 0; i < STATS_SECTIONS; i++) {
        if (!(bits & UINT32_C(1) << i))
            continue;
        buf_printf(out, "%s# %s\r\n", first ? "" : "\r\n", sections[i].name);
        sections[i].write(out, gauges);
        first = false;
    }
}
