/*
 * Makes the JSON of the status page. Names come from strangers: whatever bytes they have, they come
 * as text that people may be shown (utf8.h).
 */
#include "http/status.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/util.h"
#include "dropin/state.h"
#include "stats/gauges.h"
#include "stats/lostlog.h"
#include "stats/stats.h"

enum { NAME_SHOWN = 96 };

void http_show(struct buf *out, const char *text, size_t len)
{
    char shown[UTF8_SHOWN_MAX];
    size_t n;

    for (const char *end = text + len; text < end;) {
        text += utf8_show(text, (size_t)(end - text), shown, &n);
        buf_append(out, shown, n);
    }
}

static json_t *take_text(struct buf *text)
{
    json_t *json = json_stringn(buf_len(text) ? buf_head(text) : "", buf_len(text));

    buf_fini(text);
    return json;
}

static json_t *shown_text(const char *text)
{
    struct buf out = {0};

    http_show(&out, text ? text : "", text ? strlen(text) : 0);
    return take_text(&out);
}

/* Makes the name of a lock of which so many bytes are kept; its end may be left out. */
static json_t *shown_lock(const char *lock, size_t kept, size_t len)
{
    struct buf out = {0};
    size_t n = kept < NAME_SHOWN ? kept : NAME_SHOWN;

    /* Not in the middle of a character. */
    for (int i = 0; i < 3 && n < kept && n > 0 && ((unsigned char)lock[n] & 0xc0) == 0x80; i++)
        n--;
    http_show(&out, lock, n);
    if (n < len)
        buf_printf(&out, "\342\200\246");
    return take_text(&out);
}

static json_t *all_masters_json(const struct stats_gauges *g)
{
    json_t *list = json_array();

    for (size_t i = 0; i < g->masters_len; i++) {
        const struct stats_master *m = &g->masters[i];
        json_t *master = json_pack("{s:o, s:o, s:o, s:o, s:b}", "name", shown_text(m->name),
                                   "address", shown_text(m->address), "state", shown_text(m->state),
                                   "error", shown_text(m->error), "up", m->up);
        json_object_update_new(master,
                               json_pack("{s:o, s:o, s:o}", "missing", shown_text(m->missing),
                                         "signed", shown_text(m->signed_by), "unsigned_why",
                                         shown_text(m->unsigned_why)));
        json_object_update_new(master,
                               json_pack("{s:I, s:I, s:I, s:I, s:I}", "quarantine_ms",
                                         m->quarantine_remaining_ms, "latency_us", m->latency_us,
                                         "clock_offset_ms", m->clock_offset_ms, "in_flight",
                                         m->inflight, "restarts", m->restarts));
        json_array_append_new(list, master);
    }
    return list;
}

/* Makes what commands of Redis have written there, as text. */
static json_t *shown_state(const struct http_row *row)
{
    struct buf out = {0};

    state_show(row->state, row->state_len, &out);
    return take_text(&out);
}

static json_t *rows_json(const struct http_row *rows, size_t n)
{
    json_t *list = json_array();

    for (const struct http_row *row = rows; row < rows + n; row++) {
        json_t *json = json_pack("{s:o, s:I, s:I, s:i, s:I, s:o, s:o, s:b}", "lock",
                                 shown_lock(row->name, row->name_len, row->name_len), "since_ms",
                                 row->since_ms, "left_ms", row->left_ms, "waiting", row->waiters,
                                 "client", row->client, "client_name", shown_text(row->client_name),
                                 "address", shown_text(row->peer), "drop_in", row->state != NULL);
        if (row->state)
            json_object_update_new(json, json_pack("{s:o, s:o}", "value", shown_state(row),
                                                   "library", shown_text(row->library)));
        json_array_append_new(list, json);
    }
    return list;
}

static json_t *losses_json(int64_t now_ms)
{
    json_t *list = json_array();

    for (size_t i = 0; i < lostlog_count(); i++) {
        const struct lostlog_entry *e = lostlog_get(i);
        size_t kept = e->name_len < LOSTLOG_NAME ? e->name_len : LOSTLOG_NAME;
        json_t *token = json_sprintf("%lld", (long long)e->token); /* too large for a script */
        int64_t ago_ms = now_ms > e->at_ms ? now_ms - e->at_ms : 0;
        json_array_append_new(list, json_pack("{s:o, s:s, s:I, s:I, s:o, s:I}", "lock",
                                              shown_lock(e->name, kept, e->name_len), "reason",
                                              e->reason, "ago_ms", ago_ms, "held_ms", e->held_ms,
                                              "token", token, "client", e->client));
    }
    return list;
}

/* Makes [median, 99 %, worst]; [] if nothing was measured. */
static json_t *quantiles_json(const struct hist *h)
{
    if (h->count == 0)
        return json_array();
    return json_pack("[I, I, I]", hist_quantile(h, 0.5), hist_quantile(h, 0.99),
                     hist_quantile(h, 1));
}

static json_t *times_json(void)
{
    json_t *times = json_object();

#define TIME(field, metric, help) json_object_set_new(times, #field, quantiles_json(&stats.field));
    STATS_HISTS(TIME)
#undef TIME
    return times;
}

static json_t *curves_json(const struct http_view *v)
{
    json_t *held = json_array(), *waiting = json_array(), *granted = json_array(),
           *commands = json_array();

    for (const struct http_sample *s = v->samples; s < v->samples + v->n_samples; s++) {
        json_array_append_new(held, json_integer(s->held));
        json_array_append_new(waiting, json_integer(s->waiting));
        json_array_append_new(granted, json_integer(s->granted));
        json_array_append_new(commands, json_integer(s->commands));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "held", held, "waiting", waiting, "granted", granted,
                     "commands", commands);
}

static json_t *figures_json(const struct http_view *v)
{
    const struct stats_gauges *g = v->gauges;
    const struct {
        const char *name;
        int64_t value;
    } figures[] = {
        {"uptime_ms", g->uptime_ms},
        {"held", g->locks_held_exclusive + g->locks_held_shared + g->locks_held_limited +
                     g->locks_held_drop_in},
        {"lease_min_remaining_ms", g->lease_min_remaining_ms},
        {"waiting", g->waiters},
        {"granted", (int64_t)stats.acquires_granted},
        {"commands", (int64_t)stats.total_commands_processed},
        {"lost",
         (int64_t)(stats.lost_no_quorum + stats.lost_max_hold + stats.lost_gone + stats.lost_moved +
                   stats.lost_left + stats.lost_forced + stats.lost_pause)},
        {"jeopardy", v->n_jeopardy},
        {"clients", g->clients_connected},
        {"max_clients", g->max_clients},
        {"voting", g->quorum_available},
        {"quorum", g->quorum_required},
        {"roll_call", g->roll_call},
        {"roll_call_memory_left_ms", g->roll_call_memory_left_ms},
    };
    json_t *json = json_object();

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        json_object_set_new(json, figures[i].name, json_integer(figures[i].value));
    return json;
}

void http_status(struct buf *out, const struct http_view *v)
{
    const struct stats_gauges *g = v->gauges;
    const char *state = g->draining ? "Draining"
                        : g->paused ? "Paused"
                        : g->ready  ? "Ready"
                                    : "Not ready";
    json_t *json = figures_json(v);

    json_object_update_new(json, json_pack("{s:s, s:s, s:o, s:o, s:o}", "state", state, "version",
                                           stats_version(), "id", shown_text(v->id), "status",
                                           shown_text(v->status), "notice", shown_text(v->notice)));
    json_object_set_new(json, "curves", curves_json(v));
    json_object_set_new(json, "masters", all_masters_json(g));
    json_object_set_new(json, "waits", rows_json(v->waits, v->n_waits));
    json_object_set_new(json, "holds", rows_json(v->holds, v->n_holds));
    json_object_set_new(json, "losses", losses_json(v->now_ms));
    json_object_set_new(json, "times", times_json());
    char *text = json_dumps(json, JSON_COMPACT);
    if (!text)
        util_die("cannot make the JSON of the status page");
    buf_append(out, text, strlen(text));
    free(text);
    json_decref(json);
}
