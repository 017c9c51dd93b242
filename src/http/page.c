/*
 * Names the values and lists that page.html shows. Whatever is not a number or a word of our own
 * goes through http_escape().
 */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "http/page_files.h"
#include "http/private.h"
#include "http/template.h"
#include "session/lostlog.h"
#include "stats/gauges.h"
#include "stats/stats.h"

enum { NAME_SHOWN = 96, CURVE_WIDTH = 118, CURVE_HEIGHT = 32 };

static const char dash[] = "&ndash;";

/* ---- values ---- */

/* Adds a text of our own, as it is. */
static void add_own(struct template_values *values, const char *name, const char *text)
{
    buf_append(template_value(values, name), text, strlen(text));
}

static void add_text(struct template_values *values, const char *name, const char *text)
{
    http_escape(template_value(values, name), text, strlen(text));
}

static void add_ms(struct template_values *values, const char *name, int64_t ms)
{
    http_put_ms(template_value(values, name), ms);
}

static void add_grouped(struct template_values *values, const char *name, uint64_t n)
{
    http_put_count(template_value(values, name), n);
}

/* Adds the name of a lock of which so many bytes are kept. */
static void add_lock(struct template_values *values, const char *lock, size_t kept, size_t len)
{
    struct buf *out = template_value(values, "lock");
    size_t n = kept < NAME_SHOWN ? kept : NAME_SHOWN;

    /* Not in the middle of a character. */
    for (int i = 0; i < 3 && n < kept && n > 0 && ((unsigned char)lock[n] & 0xc0) == 0x80; i++)
        n--;
    http_escape(out, lock, n);
    if (n < len)
        buf_printf(out, "\342\200\246");
}

/* ---- state and figures ---- */

static const char *state_word(const struct stats_gauges *g)
{
    return g->draining ? "Draining" : g->paused ? "Paused" : g->ready ? "Ready" : "Not ready";
}

static const char *state_colour(const struct stats_gauges *g)
{
    if (g->draining || g->paused || (g->ready && g->quorum_available < (int64_t)g->masters_len))
        return "warn";
    return g->ready ? "ok" : "bad";
}

static void add_broker_state(struct template_values *values, const struct http_view *v)
{
    const char *colour = state_colour(v->gauges);

    add_own(values, "state", state_word(v->gauges));
    add_own(values, "colour", colour);
    add_own(values, "icon colour",
            *colour == 'o'   ? "16794a"
            : *colour == 'w' ? "c77700"
                             : "bf2330");
    add_own(values, "version", stats_version());
    add_text(values, "id", v->id);
    add_ms(values, "uptime", v->gauges->uptime_ms);
    if (strcmp(colour, "ok") != 0)
        add_text(values, "status", v->status);
    if (v->notice)
        add_text(values, "notice", v->notice);
}

static uint64_t count_lost(void)
{
    return stats.lost_no_quorum + stats.lost_max_hold + stats.lost_gone + stats.lost_moved +
           stats.lost_forced + stats.lost_pause;
}

static void add_figures(struct template_values *values, const struct http_view *v)
{
    const struct stats_gauges *g = v->gauges;
    const struct http_sample none = {0},
                             *now = v->n_samples ? &v->samples[v->n_samples - 1] : &none;

    add_grouped(values, "held",
                (uint64_t)(g->locks_held_exclusive + g->locks_held_shared + g->locks_held_limited));
    if (g->lease_min_remaining_ms >= 0)
        add_ms(values, "shortest lease", g->lease_min_remaining_ms);
    add_grouped(values, "waiting", (uint64_t)g->waiters);
    if (v->n_waits > 0)
        add_ms(values, "longest wait", v->waits[0].since_ms);
    add_grouped(values, "grants", now->granted);
    add_grouped(values, "all grants", stats.acquires_granted);
    add_grouped(values, "commands", now->commands);
    add_grouped(values, "all commands", stats.total_commands_processed);
    add_grouped(values, "lost", count_lost());
    add_own(values, "lost colour", count_lost() > 0 ? "bad" : "");
    if (v->n_jeopardy > 0)
        add_grouped(values, "jeopardy", v->n_jeopardy);
    add_grouped(values, "clients", (uint64_t)g->clients_connected);
    add_grouped(values, "most clients", (uint64_t)g->max_clients);
    add_grouped(values, "voting masters", (uint64_t)g->quorum_available);
    add_grouped(values, "all masters", g->masters_len);
    add_grouped(values, "quorum", (uint64_t)g->quorum_required);
}

/* ---- curves ---- */

static uint32_t sample_value(const struct http_view *v, size_t i, size_t field)
{
    uint32_t value;

    memcpy(&value, (const char *)&v->samples[i] + field, sizeof value);
    return value;
}

/* Appends "x,y x,y ...": the newest at the right edge, the highest a little below the upper one. */
static void put_points(struct buf *out, const struct http_view *v, size_t field)
{
    uint32_t max = 1;

    for (size_t i = 0; i < v->n_samples; i++)
        if (sample_value(v, i, field) > max)
            max = sample_value(v, i, field);
    for (size_t i = 0; i < v->n_samples; i++)
        buf_printf(out, "%zu,%.1f ", CURVE_WIDTH - 2 * (v->n_samples - 1 - i),
                   CURVE_HEIGHT - 1 - (double)sample_value(v, i, field) / max * (CURVE_HEIGHT - 4));
}

/* Adds the last minute of a field of the samples, as a drawing. */
static void add_curve(struct template_values *values, const char *name, const struct http_view *v,
                      size_t field)
{
    struct buf *out = template_value(values, name);

    if (v->n_samples < 2)
        return;
    buf_printf(out, "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
               CURVE_WIDTH, CURVE_HEIGHT);
    buf_printf(out, "<path d=\"M%zu,%d L", CURVE_WIDTH - 2 * (v->n_samples - 1), CURVE_HEIGHT);
    put_points(out, v, field);
    buf_printf(out, "L%d,%dZ\"/><polyline points=\"", CURVE_WIDTH, CURVE_HEIGHT);
    put_points(out, v, field);
    buf_printf(out, "\"/></svg>");
}

/* ---- masters ---- */

static const char *master_colour(const struct stats_master *m)
{
    if (m->up)
        return "ok";
    return strcmp(m->state, "down") == 0 || strcmp(m->state, "refused") == 0 ? "bad" : "warn";
}

static void add_master(struct template_values *values, const void *arg, size_t i)
{
    const struct stats_master *m = &((const struct http_view *)arg)->gauges->masters[i];

    add_text(values, "name", m->name);
    add_text(values, "address", m->address);
    add_own(values, "colour", master_colour(m));
    add_text(values, "state", m->state);
    if (m->quarantine_remaining_ms > 0)
        add_ms(values, "quarantine", m->quarantine_remaining_ms);
    if (!m->up)
        add_text(values, "error", m->error);
    if (m->up)
        http_put_us(template_value(values, "answers in"), m->latency_us);
    else
        add_own(values, "answers in", dash);
    add_grouped(values, "in flight", m->inflight);
    buf_printf(template_value(values, "clock"), "%+" PRId64 "&nbsp;ms", m->clock_offset_ms);
    add_grouped(values, "restarts", m->restarts);
}

/* ---- locks ---- */

static void add_lock_row(struct template_values *values, const struct http_row *row)
{
    add_lock(values, row->name, row->name_len, row->name_len);
    add_ms(values, "for", row->since_ms);
    add_ms(values, "lease", row->left_ms);
    add_grouped(values, "waiters", row->waiters);
    buf_printf(template_value(values, "client"), "%" PRIu64, row->client);
    if (row->client_name)
        add_text(values, "client name", row->client_name);
    add_text(values, "address", row->peer);
}

static void add_waiting_row(struct template_values *values, const void *arg, size_t i)
{
    add_lock_row(values, &((const struct http_view *)arg)->waits[i]);
}

static void add_held_row(struct template_values *values, const void *arg, size_t i)
{
    add_lock_row(values, &((const struct http_view *)arg)->holds[i]);
}

/* Explains the reasons of notify.h; one that is not here shows its name alone. */
static const char *const loss_meanings[][2] = {
    {"no-quorum", "too few masters confirmed its renewal in time"},
    {"gone", "a majority of the masters had it no more"},
    {"moved", "its owner took it back on another connection or broker"},
    {"max-hold", "its MAXHOLD was over"},
    {"forced", "an administrator said FORCEUNLOCK"},
    {"pause", "this broker stood still for longer than the lease"},
};

static void add_loss(struct template_values *values, const void *arg, size_t i)
{
    const struct lostlog_entry *e = lostlog_get(i);
    int64_t now_ms = ((const struct http_view *)arg)->now_ms;

    add_lock(values, e->name, e->name_len < LOSTLOG_NAME ? e->name_len : LOSTLOG_NAME, e->name_len);
    add_text(values, "reason", e->reason);
    for (size_t k = 0; k < sizeof loss_meanings / sizeof loss_meanings[0]; k++)
        if (strcmp(loss_meanings[k][0], e->reason) == 0)
            add_own(values, "meaning", loss_meanings[k][1]);
    add_ms(values, "when", now_ms > e->at_ms ? now_ms - e->at_ms : 0);
    add_ms(values, "held for", e->held_ms);
    buf_printf(template_value(values, "token"), "%" PRId64, e->token);
    if (e->client)
        buf_printf(template_value(values, "client"), "%" PRIu64, e->client);
}

/* ---- how long things take ---- */

static const struct {
    const char *what;
    const struct hist *hist;
    int64_t
        least_us; /* measured by a clock of milliseconds: what is less is not known any better */
} times[] = {
    {"Masters decide on a lock", &stats.acquire_us, 1000},
    {"Wait for a granted lock", &stats.wait_us, 0},
    {"A lock is held", &stats.hold_us, 1000},
    {"Renewals leave late by", &stats.renewal_lateness_us, 1000},
    {"Timers run late by", &stats.loop_lag_us, 1000},
};

static void add_quantile(struct template_values *values, const char *name, size_t i, double q)
{
    struct buf *out = template_value(values, name);
    int64_t us = hist_quantile(times[i].hist, q), least_us = times[i].least_us;

    if (times[i].hist->count == 0) {
        buf_printf(out, "%s", dash);
        return;
    }
    if (us < least_us)
        buf_printf(out, "&lt;&nbsp;");
    http_put_us(out, us < least_us ? least_us : us);
}

static void add_time(struct template_values *values, const void *arg, size_t i)
{
    (void)arg;
    add_own(values, "what", times[i].what);
    add_quantile(values, "median", i, 0.5);
    add_quantile(values, "99 %", i, 0.99);
    add_quantile(values, "worst", i, 1);
}

/* ---- all ---- */

void http_page(struct buf *out, const struct http_view *v, const char *nonce)
{
    struct template_values values = {0};
    const struct template_list lists[] = {
        {"masters", v->gauges->masters_len, add_master},
        {"waits", v->n_waits, add_waiting_row},
        {"holds", v->n_holds, add_held_row},
        {"losses", lostlog_count(), add_loss},
        {"times", sizeof times / sizeof times[0], add_time},
        {NULL, 0, NULL},
    };

    add_own(&values, "nonce", nonce);
    add_own(&values, "style", http_style_css);
    add_own(&values, "script", http_live_js);
    add_broker_state(&values, v);
    add_figures(&values, v);
    add_curve(&values, "held curve", v, offsetof(struct http_sample, held));
    add_curve(&values, "waiting curve", v, offsetof(struct http_sample, waiting));
    add_curve(&values, "grants curve", v, offsetof(struct http_sample, granted));
    add_curve(&values, "commands curve", v, offsetof(struct http_sample, commands));
    template_fill(out, http_page_html, &values, lists, v);
    buf_fini(&values.text);
}
