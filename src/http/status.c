/*
 * Makes the JSON of the status page. Names come from strangers: whatever bytes they have, they come
 * as text that people may be shown (utf8.h).
 */
#include "http/status.h"

#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/util.h"
#include "dropin/state.h"
#include "lock/lock.h"
#include "stats/gauges.h"
#include "stats/lostlog.h"
#include "stats/recent.h"
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
        json_object_update_new(master, json_pack("{s:o, s:I}", "version", shown_text(m->version),
                                                 "since_ms", m->since_ms));
        json_object_update_new(master,
                               json_pack("{s:I, s:I, s:I, s:I, s:I}", "quarantine_ms",
                                         m->quarantine_remaining_ms, "latency_us", m->latency_us,
                                         "clock_offset_ms", m->clock_offset_ms, "in_flight",
                                         m->inflight, "restarts", m->restarts));
        json_array_append_new(list, master);
    }
    return list;
}

static json_t *peers_json(const struct stats_gauges *g)
{
    json_t *list = json_array();

    for (const struct stats_peer *p = g->peers; p < g->peers + g->peers_len; p++)
        json_array_append_new(list, json_pack("{s:o, s:s, s:b, s:b, s:I}", "address",
                                              shown_text(p->address), "state", p->state, "up",
                                              p->up, "named", p->named, "heard_ms", p->heard_ms));
    return list;
}

/* ---- locks ---- */

static json_t *groups_json(const struct view_group *groups, int n)
{
    json_t *list = json_array();

    for (const struct view_group *g = groups; g < groups + n; g++)
        json_array_append_new(list,
                              json_pack("{s:o, s:s, s:I}", "client", shown_text(g->client), "kind",
                                        lock_kind_name(g->kind), "n", (json_int_t)g->n));
    return list;
}

static json_t *lock_json(const struct view_lock *l)
{
    json_t *json = json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:I}", "lock", shown_lock(l->name, l->name_len, l->name_len),
        "holding", (json_int_t)l->n_holders, "since_ms", l->held_ms, "left_ms", l->left_ms,
        "waiting", (json_int_t)l->n_waiters, "waited_ms", l->waited_ms);

    json_object_update_new(json, json_pack("{s:s, s:i, s:o, s:o}", "kind", lock_kind_name(l->kind),
                                           "limit", (int)l->limit, "holders",
                                           groups_json(l->holders, l->n_holder_groups), "waiters",
                                           groups_json(l->waiters, l->n_waiter_groups)));
    return json;
}

static json_t *locks_json(const struct view_lock *locks, size_t n)
{
    json_t *list = json_array();

    for (const struct view_lock *l = locks; l < locks + n; l++)
        json_array_append_new(list, lock_json(l));
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
        json_t *json = json_pack("{s:o, s:I, s:I, s:i, s:i, s:I, s:o, s:o, s:b}", "lock",
                                 shown_lock(row->name, row->name_len, row->name_len), "since_ms",
                                 row->since_ms, "left_ms", row->left_ms, "waiting", row->waiters,
                                 "holding", row->holders, "client", row->client, "client_name",
                                 shown_text(row->client_name), "address", shown_text(row->peer),
                                 "drop_in", row->state != NULL);
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
    static const char *const names[] = {
#define NAME(field, metric, help) #field,
        STATS_HISTS(NAME)
#undef NAME
    };
    static const struct hist *const hists[] = {
#define HIST(field, metric, help) &stats.field,
        STATS_HISTS(HIST)
#undef HIST
    };
    json_t *times = json_object();
    struct hist recent;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        recent_hist(i, &recent);
        json_object_set_new(times, names[i],
                            json_pack("{s:o, s:o}", "recent", quantiles_json(&recent), "ever",
                                      quantiles_json(hists[i])));
    }
    return times;
}

static json_t *curves_json(const struct http_view *v)
{
    static const struct {
        const char *name;
        size_t offset;
    } curves[] = {
#define CURVE(field) {#field, offsetof(struct http_sample, field)}
        CURVE(held),    CURVE(waiting),   CURVE(granted), CURVE(commands),
        CURVE(refused), CURVE(timed_out), CURVE(errors),
#undef CURVE
    };
    json_t *json = json_object();

    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++) {
        json_t *curve = json_array();
        for (const struct http_sample *s = v->samples; s < v->samples + v->n_samples; s++) {
            const void *field = (const char *)s + curves[i].offset;
            json_array_append_new(curve, json_integer(*(const uint32_t *)field));
        }
        json_object_set_new(json, curves[i].name, curve);
    }
    return json;
}

/* Makes how many were lost, by reason as in the list of the last ones. */
static json_t *lost_json(void)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "no-quorum", stats.lost_no_quorum,
                     "gone", stats.lost_gone, "pause", stats.lost_pause, "left", stats.lost_left,
                     "moved", stats.lost_moved, "forced", stats.lost_forced, "max-hold",
                     stats.lost_max_hold);
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
        {"refused", (int64_t)stats.acquires_busy},
        {"timed_out", (int64_t)stats.acquires_timeout},
        {"errors", (int64_t)stats_error_count()},
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

static void put_json(struct buf *out, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);

    if (!text)
        util_die("cannot make the JSON of the status page");
    buf_append(out, text, strlen(text));
    free(text);
    json_decref(json);
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
    json_object_set_new(json, "peers", peers_json(g));
    json_object_set_new(json, "lost", lost_json());
    json_object_set_new(json, "contended", locks_json(v->contended, v->n_contended));
    json_object_set_new(json, "in_jeopardy", rows_json(v->in_jeopardy, v->n_in_jeopardy));
    json_object_set_new(json, "waits", rows_json(v->waits, v->n_waits));
    json_object_set_new(json, "holds", rows_json(v->holds, v->n_holds));
    json_object_set_new(json, "losses", losses_json(v->now_ms));
    json_object_set_new(json, "times", times_json());
    put_json(out, json);
}

void http_found(struct buf *out, const struct http_search *search)
{
    json_t *cursor = json_sprintf("%" PRIu64, search->cursor); /* too large for a script */

    put_json(out, json_pack("{s:o, s:o, s:o}", "cursor", cursor, "locks",
                            locks_json(search->locks, search->n_locks), "drop_in",
                            rows_json(search->drop_in, search->n_drop_in)));
}
