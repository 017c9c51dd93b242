/*
 * The lists of the status page. An owner is never shown, only the connection that acts for it: an
 * owner's id is what proves that a hold is his.
 *
 * On a narrow screen each row stands as a small block, in which data-of names the figure (see
 * http_style.c); a table without class "wide" stays one.
 */
#include "http/private.h"

#include <string.h>

#include "base/buf.h"
#include "session/lostlog.h"
#include "stats/stats.h"

enum { NAME_SHOWN = 96 };

static void put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

static void put_text(struct buf *out, const char *text)
{
    http_escape(out, text, strlen(text));
}

/* `title` and `what` are our own words. */
static void begin(struct buf *out, const char *title, const char *what)
{
    buf_printf(out, "<section class=\"card\"><h2>%s<small>%s</small></h2>\n", title, what);
}

static void put_none(struct buf *out, const char *text)
{
    buf_printf(out, "<p class=\"none\">%s</p></section>\n", text);
}

static void end(struct buf *out)
{
    put(out, "</tbody></table></section>\n");
}

static void put_name(struct buf *out, const char *name, size_t kept, size_t len)
{
    size_t n = kept < NAME_SHOWN ? kept : NAME_SHOWN;

    /* Not in the middle of a character. */
    for (int i = 0; i < 3 && n < kept && n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80; i++)
        n--;
    put(out, "<td><bdi class=\"lock\">");
    http_escape(out, name, n);
    put(out, n < len ? "\342\200\246</bdi></td>" : "</bdi></td>");
}

static void put_client(struct buf *out, const struct http_row *row)
{
    buf_printf(out, "<td class=\"who\">#%llu ", (unsigned long long)row->client);
    if (row->client_name) {
        put(out, "<bdi>");
        put_text(out, row->client_name);
        put(out, "</bdi> ");
    }
    put(out, "<small>");
    put_text(out, row->peer);
    put(out, "</small></td></tr>\n");
}

static void put_time_cell(struct buf *out, const char *of, int64_t ms)
{
    buf_printf(out, "<td class=\"n\" data-of=\"%s\">", of);
    http_put_ms(out, ms);
    put(out, "</td>");
}

/* ---- masters ---- */

static const char *colour_of(const struct http_master *m)
{
    if (m->votes)
        return "ok";
    return strcmp(m->state, "down") == 0 || strcmp(m->state, "refused") == 0 ? "bad" : "warn";
}

static void put_master(struct buf *out, const struct http_master *m)
{
    put(out, "<tr><td><bdi class=\"lock\">");
    put_text(out, m->name);
    put(out, "</bdi><small><bdi>");
    put_text(out, m->address);
    buf_printf(out, "</bdi></small></td><td><span class=\"%s\"><i class=\"dot\"></i>",
               colour_of(m));
    put_text(out, m->state);
    put(out, "</span>");
    if (m->quarantine_left_ms > 0) {
        put(out, " for ");
        http_put_ms(out, m->quarantine_left_ms);
    }
    if (!m->votes && m->error[0]) {
        put(out, "<small>");
        put_text(out, m->error);
        put(out, "</small>");
    }
    put(out, "</td><td class=\"n\" data-of=\"answers in\">");
    if (m->votes)
        http_put_us(out, m->latency_us);
    else
        put(out, "\342\200\223");
    put(out, "</td><td class=\"n\" data-of=\"in flight\">");
    http_put_count(out, m->in_flight);
    buf_printf(out, "</td><td class=\"n\" data-of=\"clock\">%+lld&nbsp;ms</td>",
               (long long)m->clock_offset_ms);
    put(out, "<td class=\"n\" data-of=\"restarts\">");
    http_put_count(out, (uint64_t)m->restarts);
    put(out, "</td></tr>\n");
}

void http_put_masters(struct buf *out, const struct http_view *v)
{
    const struct stats_gauges *g = v->gauges;

    buf_printf(out,
               "<section class=\"card\"><h2>Masters<small>%lld of %zu vote, a lock needs "
               "%lld</small></h2>\n<table class=\"wide\"><thead><tr><th>Name</th><th>State</th>"
               "<th class=\"n\">Answers in</th><th class=\"n\">In flight</th>"
               "<th class=\"n\">Clock</th><th class=\"n\">Restarts</th></tr></thead><tbody>\n",
               (long long)g->quorum_available, v->n_masters, (long long)g->quorum_required);
    for (size_t i = 0; i < v->n_masters; i++)
        put_master(out, &v->masters[i]);
    end(out);
}

/* ---- locks ---- */

void http_put_waits(struct buf *out, const struct http_view *v)
{
    begin(out, "Longest waiting", "clients of this broker");
    if (v->n_waits == 0) {
        put_none(out, "Nobody waits for a lock.");
        return;
    }
    put(out, "<table class=\"wide\"><thead><tr><th>Lock</th><th class=\"n\">For</th>"
             "<th>Client</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < v->n_waits; i++) {
        const struct http_row *row = &v->waits[i];
        put(out, "<tr>");
        put_name(out, row->name, row->name_len, row->name_len);
        put_time_cell(out, "for", row->since_ms);
        put_client(out, row);
    }
    end(out);
}

void http_put_holds(struct buf *out, const struct http_view *v)
{
    begin(out, "Longest held", "clients of this broker");
    if (v->n_holds == 0) {
        put_none(out, "No connection holds a lock.");
        return;
    }
    put(out, "<table class=\"wide\"><thead><tr><th>Lock</th><th class=\"n\">For</th>"
             "<th class=\"n\">Lease</th><th class=\"n\">Waiting</th><th>Client</th></tr></thead>"
             "<tbody>\n");
    for (size_t i = 0; i < v->n_holds; i++) {
        const struct http_row *row = &v->holds[i];
        put(out, "<tr>");
        put_name(out, row->name, row->name_len, row->name_len);
        put_time_cell(out, "for", row->since_ms);
        put_time_cell(out, "lease", row->left_ms);
        put(out, "<td class=\"n\" data-of=\"waiting\">");
        http_put_count(out, row->waiters);
        put(out, "</td>");
        put_client(out, row);
    }
    end(out);
}

/* As in notify.h; what is not here shows its name alone. */
static const char *const lost_words[][2] = {
    {"no-quorum", "too few masters confirmed its renewal in time"},
    {"gone", "a majority of the masters had it no more"},
    {"moved", "its owner took it back on another connection or broker"},
    {"max-hold", "its MAXHOLD was over"},
    {"forced", "an administrator said FORCEUNLOCK"},
    {"pause", "this broker stood still for longer than the lease"},
};

static void put_lost(struct buf *out, const struct lostlog_entry *e, int64_t now_ms)
{
    put(out, "<tr>");
    put_name(out, e->name, e->name_len < LOSTLOG_NAME ? e->name_len : LOSTLOG_NAME, e->name_len);
    put(out, "<td class=\"why\">");
    put_text(out, e->reason);
    for (size_t i = 0; i < sizeof lost_words / sizeof lost_words[0]; i++)
        if (strcmp(lost_words[i][0], e->reason) == 0)
            buf_printf(out, "<small>%s</small>", lost_words[i][1]);
    put(out, "</td>");
    put(out, "<td class=\"n\">");
    http_put_ms(out, now_ms > e->at_ms ? now_ms - e->at_ms : 0);
    put(out, " ago</td>");
    put_time_cell(out, "held for", e->held_ms);
    buf_printf(out, "<td class=\"n\" data-of=\"token\">%lld</td><td>", (long long)e->token);
    if (e->client)
        buf_printf(out, "#%llu", (unsigned long long)e->client);
    put(out, "</td></tr>\n");
}

void http_put_lost(struct buf *out, const struct http_view *v)
{
    begin(out, "Last lost", "locks that ended although somebody relied on them");
    if (lostlog_count() == 0) {
        put_none(out, "No lock has been lost since the start.");
        return;
    }
    put(out, "<table class=\"wide\"><thead><tr><th>Lock</th><th>Why</th><th class=\"n\">When</th>"
             "<th class=\"n\">Held for</th><th class=\"n\">Token</th><th>Client</th></tr></thead>"
             "<tbody>\n");
    for (size_t i = 0; i < lostlog_count(); i++)
        put_lost(out, lostlog_get(i), v->now_ms);
    end(out);
}

/* ---- how long things take ---- */

/* Most are measured by a clock of milliseconds: what is less is not known any better. */
static void put_quantile(struct buf *out, const struct hist *h, double q, int64_t least_us)
{
    int64_t us = hist_quantile(h, q);

    put(out, "<td class=\"n\">");
    if (h->count == 0) {
        put(out, "\342\200\223");
    } else if (us < least_us) {
        put(out, "&lt;&nbsp;");
        http_put_us(out, least_us);
    } else {
        http_put_us(out, us);
    }
    put(out, "</td>");
}

static void put_times(struct buf *out, const char *what, const struct hist *h, int64_t least_us)
{
    buf_printf(out, "<tr><td>%s</td>", what);
    put_quantile(out, h, 0.5, least_us);
    put_quantile(out, h, 0.99, least_us);
    put_quantile(out, h, 1, least_us);
    put(out, "</tr>\n");
}

void http_put_times(struct buf *out)
{
    begin(out, "Times", "since the start");
    put(out, "<table><thead><tr><th></th><th class=\"n\">Median</th><th class=\"n\">99&nbsp;%</th>"
             "<th class=\"n\">Worst</th></tr></thead><tbody>\n");
    put_times(out, "Masters decide on a lock", &stats.acquire_us, 1000);
    put_times(out, "Wait for a granted lock", &stats.wait_us, 0);
    put_times(out, "A lock is held", &stats.hold_us, 1000);
    put_times(out, "Renewals leave late by", &stats.renewal_lateness_us, 1000);
    put_times(out, "Timers run late by", &stats.loop_lag_us, 1000);
    end(out);
}
