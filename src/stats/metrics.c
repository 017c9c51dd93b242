/* The metrics in Prometheus's text format. Owns names, types, labels and units: seconds and bytes,
 * counters end in _total, and no name of a lock or of an owner is ever a label, as there is no end
 * to them. A metric's HELP and TYPE come once, before all its samples. */
#include "stats/private.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "stats/libraries.h"

/* Powers of two of a microsecond, which are ends of buckets in struct hist: 64 us to 36 minutes. */
static const unsigned le_exponents[] = {6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                        17, 18, 19, 20, 21, 22, 23, 25, 27, 29, 31};

static void put_help(struct buf *out, const char *metric, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

/* labels: what stands between the braces, "" for none. */
static void put_series(struct buf *out, const char *metric, const char *suffix, const char *labels)
{
    bool has = *labels;

    buf_printf(out, "%s%s%s%s%s ", metric, suffix, has ? "{" : "", labels, has ? "}" : "");
}

static void put_sample(struct buf *out, const char *metric, const char *labels, int64_t value)
{
    put_series(out, metric, "", labels);
    buf_printf(out, "%lld\n", (long long)value);
}

static void put_sample_us(struct buf *out, const char *metric, const char *labels, int64_t us)
{
    put_series(out, metric, "", labels);
    buf_printf(out, "%.6f\n", (double)us / 1e6);
}

static void metrics_hist(struct buf *out, const char *metric, const char *labels,
                         const struct hist *hist)
{
    const char *comma = *labels ? "," : "";

    for (size_t i = 0; i < sizeof le_exponents / sizeof le_exponents[0]; i++)
        buf_printf(out, "%s_bucket{%s%sle=\"%.10g\"} %llu\n", metric, labels, comma,
                   (double)(UINT64_C(1) << le_exponents[i]) / 1e6,
                   (unsigned long long)hist_count_to(hist, le_exponents[i]));
    buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", metric, labels, comma,
               (unsigned long long)hist->count);
    put_series(out, metric, "_sum", labels);
    buf_printf(out, "%.6f\n", (double)hist->sum_us / 1e6);
    put_series(out, metric, "_count", labels);
    buf_printf(out, "%llu\n", (unsigned long long)hist->count);
}

/* ---- from the list of counters ---- */

static void metrics_counters(struct buf *out)
{
    const char *previous = "";

    for (const struct stats_counter_row *row = stats_counter_rows; row->field; row++) {
        if (strcmp(row->metric, previous) != 0)
            put_help(out, row->metric, "counter", row->help);
        previous = row->metric;
        int64_t value = (int64_t)stats_value(row);
        size_t len = strlen(row->field);
        if (len > 5 && strcmp(row->field + len - 5, "_usec") == 0)
            put_sample_us(out, row->metric, row->labels, value);
        else
            put_sample(out, row->metric, row->labels, value);
    }
}

static void metrics_errors(struct buf *out)
{
    static const char metric[] = "holdfast_errors_total";
    const struct stats_error_count *error;

    put_help(out, metric, "counter", "Error replies, by their code.");
    for (size_t i = 0; (error = stats_error_row(i)); i++)
        buf_printf(out, "%s{code=\"%s\"} %llu\n", metric, error->code,
                   (unsigned long long)error->count);
}

static void metrics_libraries(struct buf *out)
{
    static const char connections[] = "holdfast_library_connections";
    static const char commands[] = "holdfast_library_commands_total";
    const struct library *l;

    put_help(out, connections, "gauge", "Connections, by client library.");
    for (size_t i = 0; (l = library_row(i)); i++)
        buf_printf(out, "%s{library=\"%s\"} %lld\n", connections, l->name,
                   (long long)l->connections);
    put_help(out, commands, "counter", "Requests, by client library.");
    for (size_t i = 0; (l = library_row(i)); i++)
        buf_printf(out, "%s{library=\"%s\"} %llu\n", commands, l->name,
                   (unsigned long long)l->commands);
}

/* Commands that nobody has sent are left out: they would be most of the text. */
static void metrics_commands(struct buf *out)
{
    static const char total[] = "holdfast_commands_total";
    static const char duration[] = "holdfast_command_duration_seconds";
    const struct stats_command *c;
    char labels[96];

    put_help(out, total, "counter", "Commands, by outcome.");
    for (size_t i = 0; (c = stats_command_row(i)); i++) {
        if (c->ok + c->failed + c->rejected == 0)
            continue;
        buf_printf(out,
                   "%s{command=\"%s\",outcome=\"ok\"} %llu\n"
                   "%s{command=\"%s\",outcome=\"failed\"} %llu\n"
                   "%s{command=\"%s\",outcome=\"rejected\"} %llu\n",
                   total, c->name, (unsigned long long)c->ok, total, c->name,
                   (unsigned long long)c->failed, total, c->name, (unsigned long long)c->rejected);
    }
    put_help(out, duration, "histogram", "From the request to its reply.");
    for (size_t i = 0; (c = stats_command_row(i)); i++) {
        if (c->duration_us.count == 0)
            continue;
        snprintf(labels, sizeof labels, "command=\"%s\"", c->name);
        metrics_hist(out, duration, labels, &c->duration_us);
    }
}

/* ---- from the gauges ---- */

static void put_gauge(struct buf *out, const struct stats_gauge_row *row, int64_t value)
{
    if (value == INT64_MAX) {
        put_series(out, row->metric, "", row->labels);
        buf_printf(out, "+Inf\n");
    } else if (row->unit == STATS_UNIT_MS) {
        put_sample_us(out, row->metric, row->labels, value * 1000);
    } else {
        put_sample(out, row->metric, row->labels, value);
    }
}

static void metrics_gauges(struct buf *out, const struct stats_gauges *g)
{
    const char *previous = "";

    for (const struct stats_gauge_row *row = stats_gauge_rows; row->field; row++) {
        int64_t value = stats_gauge(g, row);
        if (value < 0)
            continue;
        if (strcmp(row->metric, previous) != 0)
            put_help(out, row->metric, "gauge", row->help);
        previous = row->metric;
        put_gauge(out, row, value);
    }
}

static void metrics_process(struct buf *out, const struct stats_gauges *g)
{
    put_help(out, "holdfast_build_info", "gauge", "Version in the label, always 1.");
    buf_printf(out, "holdfast_build_info{version=\"%s\"} 1\n", stats_version());
    put_help(out, "process_cpu_seconds_total", "counter", "User and system CPU time.");
    put_sample_us(out, "process_cpu_seconds_total", "", g->cpu_user_us + g->cpu_system_us);
}

/* ---- masters: their names come from the configuration, so they are escaped ---- */

static void put_escaped_label(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\n')
            buf_append(out, "\\n", 2);
        else if (*value == '"' || *value == '\\')
            buf_printf(out, "\\%c", *value);
        else
            buf_append(out, value, 1);
    }
    buf_append(out, "\"", 1);
}

static const struct master_row {
    const char *metric, *type, *help;
    size_t offset;
    bool ms; /* an int64_t of milliseconds, else a uint64_t count */
} master_rows[] = {
#define AT(field) offsetof(struct stats_master, field)
    {"holdfast_backend_quarantine_remaining_seconds", "gauge", "Until its votes count again.",
     AT(quarantine_remaining_ms), true},
    {"holdfast_backend_clock_offset_seconds", "gauge", "Its clock less ours.", AT(clock_offset_ms),
     true},
    {"holdfast_backend_inflight", "gauge", "Requests sent and not answered.", AT(inflight), false},
    {"holdfast_backend_restarts_total", "counter", "Restarts seen.", AT(restarts), false},
    {"holdfast_backend_data_loss_total", "counter", "Losses of its data seen.", AT(data_losses),
     false},
    {"holdfast_backend_clock_jumps_total", "counter", "Jumps of its clock seen.", AT(clock_jumps),
     false},
    {"holdfast_backend_reconnects_total", "counter", "Connections made after the first.",
     AT(reconnects), false},
#undef AT
};

static void put_master_sample(struct buf *out, const struct master_row *row,
                              const struct stats_master *m)
{
    const void *field = (const char *)m + row->offset;

    buf_printf(out, "%s{", row->metric);
    put_escaped_label(out, "node", m->name);
    if (row->ms)
        buf_printf(out, "} %.3f\n", (double)*(const int64_t *)field / 1000);
    else
        buf_printf(out, "} %llu\n", (unsigned long long)*(const uint64_t *)field);
}

static void put_master_states(struct buf *out, const struct stats_gauges *g)
{
    put_help(out, "holdfast_backend_up", "gauge", "Connected, and its votes count.");
    for (size_t i = 0; i < g->masters_len; i++) {
        buf_printf(out, "holdfast_backend_up{");
        put_escaped_label(out, "node", g->masters[i].name);
        buf_printf(out, "} %d\n", g->masters[i].up);
    }
    put_help(out, "holdfast_backend_state", "gauge", "Its state in the label, always 1.");
    for (size_t i = 0; i < g->masters_len; i++) {
        buf_printf(out, "holdfast_backend_state{");
        put_escaped_label(out, "node", g->masters[i].name);
        buf_append(out, ",", 1);
        put_escaped_label(out, "state", g->masters[i].state ? g->masters[i].state : "");
        buf_printf(out, "} 1\n");
    }
}

static void put_master_requests(struct buf *out, const struct stats_gauges *g)
{
    static const char total[] = "holdfast_backend_requests_total";
    static const char duration[] = "holdfast_backend_request_duration_seconds";
    static const char *const outcomes[] = {"ok", "error", "timeout"};

    put_help(out, total, "counter", "Requests to a master, by outcome.");
    for (size_t i = 0; i < g->masters_len; i++) {
        const struct stats_master *m = &g->masters[i];
        const uint64_t counts[] = {m->requests_ok, m->requests_error, m->requests_timeout};
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            buf_printf(out, "%s{", total);
            put_escaped_label(out, "node", m->name);
            buf_printf(out, ",outcome=\"%s\"} %llu\n", outcomes[k], (unsigned long long)counts[k]);
        }
    }
    put_help(out, duration, "histogram", "From a request to a master to its answer.");
    for (size_t i = 0; i < g->masters_len; i++) {
        struct buf labels = {0};
        put_escaped_label(&labels, "node", g->masters[i].name);
        buf_append(&labels, "", 1);
        if (g->masters[i].request_us)
            metrics_hist(out, duration, buf_head(&labels), g->masters[i].request_us);
        buf_fini(&labels);
    }
}

/* Puts a sample for each of some names, with commas between. */
static void put_signatures(struct buf *out, const char *metric, const char *master,
                           const char *names, bool is_missing)
{
    char name[STATS_BROKER_MAX + 1];

    for (; names && *names; names += strcspn(names, ","), names += *names == ',') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(names, ","), names);
        buf_printf(out, "%s{", metric);
        put_escaped_label(out, "node", master);
        buf_append(out, ",", 1);
        put_escaped_label(out, "broker", name);
        buf_printf(out, "} %d\n", is_missing);
    }
}

static void put_roll_calls(struct buf *out, const struct stats_gauges *g)
{
    static const char metric[] = "holdfast_backend_roll_call_missing";

    put_help(out, metric, "gauge", "In quarantine: 1 for a broker that has not signed yet.");
    for (size_t i = 0; i < g->masters_len; i++) {
        const struct stats_master *m = &g->masters[i];
        put_signatures(out, metric, m->name, m->missing, true);
        put_signatures(out, metric, m->name, m->signed_by, false);
    }
}

static void metrics_peers(struct buf *out, const struct stats_gauges *g)
{
    static const char metric[] = "holdfast_peer_up";

    put_help(out, metric, "gauge", "Another broker (peers) answers, and can grant locks.");
    for (size_t i = 0; i < g->peers_len; i++) {
        buf_printf(out, "%s{", metric);
        put_escaped_label(out, "peer", g->peers[i].address);
        buf_printf(out, "} %d\n", g->peers[i].up);
    }
}

static void metrics_masters(struct buf *out, const struct stats_gauges *g)
{
    put_master_states(out, g);
    for (size_t r = 0; r < sizeof master_rows / sizeof master_rows[0]; r++) {
        put_help(out, master_rows[r].metric, master_rows[r].type, master_rows[r].help);
        for (size_t i = 0; i < g->masters_len; i++)
            put_master_sample(out, &master_rows[r], &g->masters[i]);
    }
    put_roll_calls(out, g);
    put_master_requests(out, g);
}

void stats_metrics(struct buf *out, const struct stats_gauges *gauges)
{
    metrics_process(out, gauges);
    metrics_gauges(out, gauges);
    metrics_masters(out, gauges);
    metrics_peers(out, gauges);
    metrics_counters(out);
    for (const struct stats_hist_row *row = stats_hist_rows; row->field; row++) {
        put_help(out, row->metric, "histogram", row->help);
        metrics_hist(out, row->metric, "", stats_hist(row));
    }
    metrics_commands(out);
    metrics_errors(out);
    metrics_libraries(out);
}
