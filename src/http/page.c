/*
 * The status page as a whole: head, state, figures with their curves, and the lists of
 * http_table.c. What is inside <main> is replaced every other second by the same part of a fresh
 * page.
 */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "http/private.h"
#include "stats/stats.h"

/* Of the curves. */
enum { WIDTH = 118, HEIGHT = 32 };

static void put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

/* ---- state ---- */

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

static const char padlock[] =
    "<path d=\"M6 10V8a6 6 0 0 1 12 0v2h1a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2v-8a2 2 0 0 "
    "1 2-2zm3 0h6V8a3 3 0 0 0-6 0z\"/>";

/* The head that browsers want before anything else; the colour of the icon is the state's. */
static void put_head(struct buf *out, const struct http_view *v, const char *nonce)
{
    const char *colour = state_colour(v->gauges);
    const char *rgb = *colour == 'o' ? "16794a" : *colour == 'w' ? "c77700" : "bf2330";

    buf_printf(out,
               "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta name=\"color-scheme\" content=\"light dark\">\n"
               "<title>%s \302\267 holdfast</title>\n"
               "<link rel=\"icon\" href=\"data:image/svg+xml,%%3Csvg "
               "xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='%%23%s'%%3E"
               "%%3Cpath d='M6 10V8a6 6 0 0 1 12 0v2h1a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 "
               "1-2-2v-8a2 2 0 0 1 2-2zm3 0h6V8a3 3 0 0 0-6 0z'/%%3E%%3C/svg%%3E\">\n"
               "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n"
               "<style nonce=\"%s\">\n",
               state_word(v->gauges), rgb, nonce);
    put(out, http_style);
    put(out, "</style>\n</head>\n<body>\n<p class=\"gone\" role=\"alert\">The broker does not "
             "answer. What you see is old.</p>\n");
}

static void put_state(struct buf *out, const struct http_view *v)
{
    const struct stats_gauges *g = v->gauges;

    buf_printf(out,
               "<header><h1><svg viewBox=\"0 0 24 24\" aria-hidden=\"true\">%s</svg>holdfast</h1>"
               "<span class=\"pill %s\">%s</span><span class=\"about\">%s \302\267 broker ",
               padlock, state_colour(g), state_word(g), stats_version());
    http_escape(out, v->id, strlen(v->id));
    put(out, " \302\267 up ");
    http_put_ms(out, g->uptime_ms);
    put(out, "</span></header>\n");
    if (strcmp(state_colour(g), "ok") != 0) {
        buf_printf(out, "<p class=\"status %s\">", state_colour(g));
        http_escape(out, v->status, strlen(v->status));
        put(out, "</p>\n");
    }
    if (v->notice && *v->notice) {
        put(out, "<p class=\"status warn\">");
        http_escape(out, v->notice, strlen(v->notice));
        put(out, "</p>\n");
    }
}

/* ---- figures and their curves ---- */

typedef uint32_t (*sample_fn)(const struct http_sample *);

static uint32_t granted_of(const struct http_sample *s)
{
    return s->granted;
}

static uint32_t commands_of(const struct http_sample *s)
{
    return s->commands;
}

static uint32_t held_of(const struct http_sample *s)
{
    return s->held;
}

static uint32_t waiting_of(const struct http_sample *s)
{
    return s->waiting;
}

/* "x,y x,y ...": the newest at the right edge, the highest a little below the upper one. */
static void put_points(struct buf *out, const struct http_view *v, sample_fn value)
{
    uint32_t max = 1;

    for (size_t i = 0; i < v->n_samples; i++)
        if (value(&v->samples[i]) > max)
            max = value(&v->samples[i]);
    for (size_t i = 0; i < v->n_samples; i++)
        buf_printf(out, "%zu,%.1f ", WIDTH - 2 * (v->n_samples - 1 - i),
                   HEIGHT - 1 - (double)value(&v->samples[i]) / max * (HEIGHT - 4));
}

static void put_curve(struct buf *out, const struct http_view *v, sample_fn value)
{
    if (v->n_samples < 2)
        return;
    buf_printf(out, "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
               WIDTH, HEIGHT);
    buf_printf(out, "<path d=\"M%zu,%d L", WIDTH - 2 * (v->n_samples - 1), HEIGHT);
    put_points(out, v, value);
    buf_printf(out, "L%d,%dZ\"/><polyline points=\"", WIDTH, HEIGHT);
    put_points(out, v, value);
    put(out, "\"/></svg>");
}

/* All texts are our own. */
static void put_tile(struct buf *out, const char *title, uint64_t n, const char *colour)
{
    buf_printf(out, "<div class=\"tile\"><span>%s</span><b class=\"%s\">", title, colour);
    http_put_count(out, n);
    put(out, "</b><small>");
}

static void end_tile(struct buf *out, const struct http_view *v, sample_fn curve)
{
    put(out, "</small>");
    if (curve)
        put_curve(out, v, curve);
    put(out, "</div>\n");
}

static uint64_t count_lost(void)
{
    return stats.locks_lost_no_quorum + stats.locks_lost_max_hold + stats.locks_lost_gone +
           stats.locks_lost_moved + stats.locks_lost_forced + stats.locks_lost_pause;
}

static void put_lock_tiles(struct buf *out, const struct http_view *v)
{
    const struct stats_gauges *g = v->gauges;

    put_tile(out, "Held",
             (uint64_t)(g->locks_held_exclusive + g->locks_held_shared + g->locks_held_limited),
             "");
    if (g->lease_min_remaining_ms >= 0) {
        put(out, "shortest lease ");
        http_put_ms(out, g->lease_min_remaining_ms);
    }
    end_tile(out, v, held_of);
    put_tile(out, "Waiting", (uint64_t)g->waiters, "");
    if (v->n_waits > 0) {
        put(out, "longest ");
        http_put_ms(out, v->waits[0].since_ms);
    }
    end_tile(out, v, waiting_of);
    put_tile(out, "Grants/s", v->n_samples ? v->samples[v->n_samples - 1].granted : 0, "");
    http_put_count(out, stats.acquires_granted);
    put(out, " in all");
    end_tile(out, v, granted_of);
}

static void put_other_tiles(struct buf *out, const struct http_view *v)
{
    const struct stats_gauges *g = v->gauges;
    uint64_t lost = count_lost();

    put_tile(out, "Commands/s", v->n_samples ? v->samples[v->n_samples - 1].commands : 0, "");
    http_put_count(out, stats.commands_processed);
    put(out, " in all");
    end_tile(out, v, commands_of);
    put_tile(out, "Lost", lost, lost > 0 ? "bad" : "");
    if (v->n_jeopardy > 0)
        http_put_count(out, v->n_jeopardy);
    put(out, v->n_jeopardy > 0 ? " in jeopardy now" : "none in jeopardy");
    end_tile(out, v, NULL);
    put_tile(out, "Clients", (uint64_t)g->clients_connected, "");
    put(out, "of at most ");
    http_put_count(out, (uint64_t)g->max_clients);
    end_tile(out, v, NULL);
}

/* ---- all ---- */

void http_page(struct buf *out, const struct http_view *v, const char *nonce)
{
    put_head(out, v, nonce);
    buf_printf(out, "<main data-title=\"%s \302\267 holdfast\">\n", state_word(v->gauges));
    put_state(out, v);
    put(out, "<div class=\"tiles\">\n");
    put_lock_tiles(out, v);
    put_other_tiles(out, v);
    put(out, "</div>\n");
    http_put_masters(out, v);
    put(out, "<div class=\"grid\">\n");
    http_put_waits(out, v);
    http_put_holds(out, v);
    put(out, "</div>\n");
    http_put_lost(out, v);
    http_put_times(out);
    buf_printf(out,
               "</main>\n<footer><a href=\"/metrics\">metrics</a> \302\267 "
               "<a href=\"/readyz?verbose\">readiness</a> \302\267 curves are the last minute, "
               "figures count from the start or <bdi>CONFIG RESETSTAT</bdi></footer>\n"
               "<script nonce=\"%s\">\n%s</script>\n</body>\n</html>\n",
               nonce, http_live_script);
}
