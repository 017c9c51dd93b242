/* holdfast bench: reads its options, has bench_load run, and prints the figures. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/bench_load.h"
#include "cli/cli.h"
#include "cli/text.h"

enum { CLIENTS_MAX = 100000, NAMES_MAX = 10000000 };

static const struct {
    const char *name;
    double q;
} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};
enum { N_QUANTILES = sizeof quantiles / sizeof quantiles[0] };

static void bench_options(struct bench_plan *p, int argc, char **argv)
{
    const struct cli_option own[] = {{"clients", 'c', CLI_NUMBER, &p->clients, 1, CLIENTS_MAX},
                                     {"names", 'n', CLI_NUMBER, &p->names, 1, NAMES_MAX},
                                     {"hold", 0, CLI_US, &p->hold_us, 0, 0},
                                     {"think", 0, CLI_US, &p->think_us, 0, 0},
                                     {"duration", 0, CLI_MS, &p->duration_ms, 0, 0},
                                     {"wait", 0, CLI_MS, &p->wait_ms, 0, 0},
                                     {"lease", 0, CLI_MS, &p->lease_ms, 0, 0},
                                     {"shared", 0, CLI_FLAG, &p->shared, 0, 0},
                                     {"limit", 0, CLI_NUMBER, &p->limit, 1, CLI_LIMIT_MAX},
                                     {"prefix", 0, CLI_TEXT, &p->prefix, 0, 0},
                                     CLI_JSON,
                                     {0}};
    cli_options(argc, argv, own, false);
    cli_no_words(argc, argv);
    if (strlen(p->prefix) > 400 || strpbrk(p->prefix, "\r\n"))
        cli_usage("--prefix: at most 400 bytes without line breaks");
    if (p->shared && p->limit)
        cli_usage("--shared or --limit, not both");
    if (p->duration_ms < 1)
        cli_usage("--duration: more than nothing");
    p->urls = cli_urls();
}

/* ---- figures ---- */

static int by_count(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double per_second(uint64_t n, int64_t us)
{
    return us > 0 ? (double)n * 1e6 / (double)us : 0;
}

static double mean_us(const struct hist *h)
{
    return h->count ? (double)h->sum_us / (double)h->count : 0;
}

struct progress {
    uint64_t last;
    int64_t last_us;
};

static void on_progress(void *arg, const struct bench_result *r)
{
    struct progress *p = arg;
    char p50[24], p99[24];
    fprintf(stderr, "\r%4" PRId64 " s  %8.0f grants/s  p50 %s  p99 %s  %" PRId64 " waiting\033[K",
            r->elapsed_us / 1000000,
            per_second(r->grant_us.count - p->last, r->elapsed_us - p->last_us),
            text_latency(p50, hist_quantile(&r->grant_us, 0.5)),
            text_latency(p99, hist_quantile(&r->grant_us, 0.99)), r->waiting);
    p->last = r->grant_us.count;
    p->last_us = r->elapsed_us;
}

static void put_hist_line(struct buf *out, const char *what, const struct hist *h)
{
    char text[24];
    buf_printf(out, "%-10s %9" PRIu64, what, h->count);
    for (int i = 0; i < N_QUANTILES; i++)
        buf_printf(out, " %9s",
                   h->count ? text_latency(text, hist_quantile(h, quantiles[i].q)) : "-");
    buf_printf(out, " %9s %9s\n", h->count ? text_latency(text, (int64_t)h->max_us) : "-",
               h->count ? text_latency((char[24]){0}, (int64_t)mean_us(h)) : "-");
}

static const char *kind_of(const struct bench_plan *p)
{
    return p->shared ? "shared" : p->limit ? "limit" : "exclusive";
}

static void bench_text(const struct bench_plan *p, const struct bench_result *r, struct buf *out)
{
    char hold[24], think[24], kind[40] = "";
    if (p->limit)
        snprintf(kind, sizeof kind, ", limit %" PRId64, p->limit);
    else if (p->shared)
        snprintf(kind, sizeof kind, ", shared");
    for (size_t i = 0; i < p->urls->n; i++)
        buf_printf(out, "%s%s", i ? ", " : "", p->urls->v[i].shown);
    buf_printf(out, ": %" PRId64 " client%s, %" PRId64 " name%s%s, hold %s, think %s, %.1f s\n\n",
               p->clients, p->clients == 1 ? "" : "s", p->names, p->names == 1 ? "" : "s", kind,
               text_latency(hold, p->hold_us), text_latency(think, p->think_us),
               (double)r->elapsed_us / 1e6);
    buf_printf(out, "%-10s %9s %9s %9s %9s %9s %9s %9s\n", "", "count", "p50", "p90", "p99",
               "p99.9", "max", "mean");
    put_hist_line(out, "grant", &r->grant_us);
    put_hist_line(out, "hand-over", &r->handover_us);
    buf_printf(out, "\ngrants a second      %.1f\n", per_second(r->grant_us.count, r->elapsed_us));
    buf_printf(out, "grants per client    %u to %u, median %u\n", r->grants[0],
               r->grants[p->clients - 1], r->grants[p->clients / 2]);
    if (r->refused)
        buf_printf(out, "not granted in time  %" PRIu64 "\n", r->refused);
    if (r->errors || r->disconnects)
        buf_printf(out,
                   "errors               %" PRIu64 ", connections lost %" PRIu64 "; first: %s\n",
                   r->errors, r->disconnects, r->first_error);
}

/* Returns the number with so many decimals. */
static json_t *rounded_json(double n, int decimals)
{
    double scale = pow(10, decimals);
    return json_real(round(n * scale) / scale);
}

static json_t *hist_json(const struct hist *h)
{
    json_t *json = json_pack("{s:I}", "count", (json_int_t)h->count);
    for (int i = 0; i < N_QUANTILES; i++)
        json_object_set_new(json, quantiles[i].name,
                            json_integer(hist_quantile(h, quantiles[i].q)));
    json_object_set_new(json, "max", json_integer((json_int_t)h->max_us));
    json_object_set_new(json, "mean", rounded_json(mean_us(h), 1));
    return json;
}

static void bench_json(const struct bench_plan *p, const struct bench_result *r, struct buf *out)
{
    json_t *json =
        json_pack("{s:o, s:I, s:I, s:s, s:o, s:I, s:I}", "broker",
                  text_json_str(p->urls->v[0].shown), "clients", p->clients, "names", p->names,
                  "kind", kind_of(p), "limit", p->limit ? json_integer(p->limit) : json_null(),
                  "hold_us", p->hold_us, "think_us", p->think_us);
    json_t *per_client = json_pack("{s:i, s:i, s:i}", "min", r->grants[0], "median",
                                   r->grants[p->clients / 2], "max", r->grants[p->clients - 1]);
    json_object_set_new(json, "seconds", rounded_json((double)r->elapsed_us / 1e6, 3));
    json_object_set_new(json, "grants_per_second",
                        rounded_json(per_second(r->grant_us.count, r->elapsed_us), 1));
    json_object_set_new(json, "grant_us", hist_json(&r->grant_us));
    json_object_set_new(json, "handover_us", hist_json(&r->handover_us));
    json_object_set_new(json, "grants_per_client", per_client);
    json_object_update_new(json, json_pack("{s:I, s:I, s:I, s:o}", "not_granted",
                                           (json_int_t)r->refused, "errors", (json_int_t)r->errors,
                                           "disconnects", (json_int_t)r->disconnects, "first_error",
                                           text_json_str(r->first_error)));
    text_put_json(out, json);
}

int bench_main(int argc, char **argv)
{
    struct bench_plan plan = {
        .prefix = "bench:", .clients = 50, .names = 1, .duration_ms = 10000, .wait_ms = -1};
    struct bench_result *result = util_alloc(sizeof *result);
    struct progress progress = {0};
    struct buf out = {0};
    bench_options(&plan, argc, argv);
    bool on_terminal = isatty(STDERR_FILENO) == 1;
    bool whole = bench_load(&plan, result, on_terminal ? on_progress : NULL, &progress);
    if (on_terminal)
        fputs("\r\033[K", stderr);
    qsort(result->grants, (size_t)plan.clients, sizeof result->grants[0], by_count);
    if (cli.json)
        bench_json(&plan, result, &out);
    else
        bench_text(&plan, result, &out);
    text_flush(&out);
    bool failed = result->grant_us.count == 0 && result->first_error[0];
    int status = failed ? cli_status_of(result->first_error) : STATUS_OK;
    free(result->grants);
    free(result);
    return whole ? status : 130;
}
