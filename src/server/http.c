/*
 * What HTTP shows of the server: the metrics, whether it is ready, and the view for the status
 * page.
 *
 * Looks at connections, not at the table of locks: there are at most max_clients of them, and a
 * request for the page must not hold up a million locks.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "dropin/call.h"
#include "http/http.h"
#include "lock/view.h"
#include "net/stream.h"
#include "redis/master.h"
#include "server/private.h"
#include "stats/gauges.h"
#include "stats/stats.h"

enum { HOLDS_LOOKED_AT = 20000 };

/* ---- the texts ---- */

static void metrics(void *arg, struct buf *out)
{
    struct stats_gauges g;

    server_gauges(arg, &g, clock_ms());
    stats_metrics(out, &g);
}

static void put_check(struct buf *out, bool good, const char *what, const char *text)
{
    buf_printf(out, "[%c]%s: %s\n", good ? '+' : '-', what, text);
}

/* why: this broker has not signed; "": it has, or there is no roll call. */
static void put_master_check(const struct broker *b, int i, const char *why, struct buf *out,
                             int64_t now_ms)
{
    struct view_master seen = view_master(b, i, now_ms);
    const struct master_status *m = seen.status;

    buf_printf(out, "[%c]master %s: %s%s%s", seen.votes ? '+' : '-', m->name,
               seen.votes ? "votes" : view_master_reason(b, i, now_ms),
               !seen.votes && m->error[0] ? ": " : "", seen.votes ? "" : m->error);
    if (m->roll_signed[0])
        buf_printf(out, "; signed by %s", m->roll_signed);
    if (why[0])
        buf_printf(out, "; not by this broker: %s", why);
    buf_append(out, "\n", 1);
}

/* What a restart of a master would cost now. */
static void put_memory(const struct server *s, struct buf *out, int64_t now_ms)
{
    const struct rollcall *roll = &s->quarantine.roll;
    char left[48];

    if (!rollcall_is_on(roll))
        return;
    int64_t left_ms = rollcall_memory_left_ms(roll, now_ms);
    util_format_duration(left, sizeof left, (left_ms + 999) / 1000 * 1000);
    if (left_ms > 0)
        buf_printf(out,
                   "[-]roll call: this broker cannot sign for %s more: until then a quarantine "
                   "lasts to its end\n",
                   left);
    else
        buf_printf(out, "[+]roll call: this broker can sign\n");
}

static void put_checks(struct server *s, struct buf *out, bool ready, int64_t now_ms)
{
    const struct broker *b = &s->broker;

    put_check(out, s->phase == SERVER_RUNS, "phase",
              s->phase == SERVER_RUNS ? "takes new locks" : "draining");
    put_check(out, !view_is_paused(b), "acquires", view_is_paused(b) ? "paused" : "not paused");
    const char *veto = view_veto(b);
    put_check(out, s->ready, "quorum", s->ready ? "there" : veto ? veto : "missing");
    for (int i = 0; i < view_n_masters(b); i++)
        put_master_check(b, i, server_unsigned_why(s, i, now_ms), out, now_ms);
    put_memory(s, out, now_ms);
    buf_printf(out, "readyz check %s\n", ready ? "passed" : "failed");
}

static bool is_ready(void *arg, struct buf *out, bool verbose)
{
    struct server *s = arg;
    int64_t now_ms = clock_ms();

    server_update_ready(s, now_ms);
    server_update_status(s, now_ms);
    bool ready = s->ready && s->phase == SERVER_RUNS && !view_is_paused(&s->broker);
    if (verbose)
        put_checks(s, out, ready, now_ms);
    else
        buf_printf(out, "%s\n", s->status);
    return ready;
}

static void levels(void *arg, uint32_t *held, uint32_t *waiting)
{
    const struct server *s = arg;
    struct view_levels levels = view_levels(&s->broker);

    *held = levels.n_holds + levels.n_drop_in;
    *waiting = levels.n_waiters;
}

static const char *hosts(void *arg)
{
    const struct server *s = arg;

    return s->conf.http_hosts;
}

/* ---- the view ---- */

/* Adds a row in its place among the longest; the last one may fall out. */
static void insert(struct http_row *rows, size_t *n, const struct http_row *row)
{
    size_t i = *n;

    if (i == HTTP_ROWS && rows[i - 1].since_ms >= row->since_ms)
        return;
    i = i < HTTP_ROWS ? (*n)++ : HTTP_ROWS - 1;
    for (; i > 0 && rows[i - 1].since_ms < row->since_ms; i--)
        rows[i] = rows[i - 1];
    rows[i] = *row;
}

struct looking {
    struct http_view *view;
    struct http_row row; /* of the client at hand */
    int64_t now_ms, n_holds;
};

static bool show_hold(void *arg, const struct view_hold *h)
{
    struct looking *l = arg;
    struct http_row row = l->row;

    if (++l->n_holds > HOLDS_LOOKED_AT)
        return false;
    row.name = h->name;
    row.name_len = h->name_len;
    row.since_ms = h->held_ms;
    row.left_ms = h->left_ms;
    row.waiters = h->n_waiters;
    insert(l->view->holds, &l->view->n_holds, &row);
    return true;
}

static void show_wait(struct looking *l, const struct request *r)
{
    struct http_row row = l->row;

    row.name = r->subject;
    row.name_len = r->subject_len;
    row.since_ms = l->now_ms - r->arrived_us / 1000;
    insert(l->view->waits, &l->view->n_waits, &row);
}

static void show_client(struct session *session, void *arg)
{
    struct looking *l = arg;
    const struct request *r = session_waiting(session);

    l->row = (struct http_row){
        .client = session->id, .client_name = session->name, .peer = client_peer(session)};
    view_holds(session, l->now_ms, show_hold, l);
    if (r)
        show_wait(l, r);
}

static void show_drop_in(void *arg, const struct dropin_hold *h)
{
    struct looking *l = arg;
    const struct http_row row = {.name = h->name,
                                 .name_len = h->name_len,
                                 .client = h->session_id,
                                 .since_ms = h->held_ms,
                                 .left_ms = h->left_ms,
                                 .state = h->state,
                                 .state_len = h->state_len,
                                 .library = h->library};

    l->n_holds++;
    insert(l->view->holds, &l->view->n_holds, &row);
}

/* Adds what commands of Redis hold. */
static void show_all_drop_in(struct server *s, struct looking *l)
{
    uint64_t cursor = 0;

    l->n_holds = 0;
    do {
        cursor = dropin_scan(s->dropin, cursor, show_drop_in, l, l->now_ms);
        l->n_holds++; /* a bucket may have none */
    } while (cursor && l->n_holds < HOLDS_LOOKED_AT);
    for (struct http_row *row = l->view->holds; row < l->view->holds + l->view->n_holds; row++)
        if (row->state)
            row->waiters = view_n_waiters(&s->broker, row->name, row->name_len);
}

static const char *notice_of(const struct server *s)
{
    static char text[160];

    text[0] = 0;
    (void)server_tls_warns(&s->conf, s->tls_expiry_s, text, sizeof text);
    return text;
}

/* Fills the view; its gauges are the server's own and live until the next one. */
static void fill_view(void *arg, struct http_view *view)
{
    static struct stats_gauges gauges;
    struct server *s = arg;
    int64_t now_ms = clock_ms();
    struct looking l = {.view = view, .now_ms = now_ms};

    server_update_ready(s, now_ms);
    server_update_status(s, now_ms);
    server_gauges(s, &gauges, now_ms);
    view->gauges = &gauges;
    view->id = s->id;
    view->status = s->status;
    view->notice = notice_of(s);
    view->now_ms = now_ms;
    view->n_jeopardy = view_levels(&s->broker).n_jeopardy;
    client_each(s->clients, show_client, &l);
    show_all_drop_in(s, &l);
}

/* ---- start ---- */

static void add_socket(struct http *http, int fd)
{
    char where[STREAM_ADDRESS_MAX];

    stream_own_address(where, fd);
    http_listen(http, fd);
    log_info("http", "status page and metrics on http://%s/", where);
}

/* Listens on every address of http.listen. -1: `error` says which cannot be had, and why. */
static int listen_to_all(struct server *s, char *error, size_t error_size)
{
    const struct conf_listens *listens = &s->conf.http_listen;
    char where[STREAM_ADDRESS_MAX];
    int fds[2];

    for (size_t i = 0; i < listens->count; i++) {
        const struct conf_listen *l = &listens->v[i];
        assert(!l->is_unix); /* conf_check() */
        if (stream_listen(l->host, l->port, fds, where) != 0) {
            snprintf(error, error_size, "cannot listen on %s (http.listen): %s", where,
                     strerror(errno));
            return -1;
        }
        for (int k = 0; k < 2; k++)
            if (fds[k] >= 0)
                add_socket(s->http, fds[k]);
    }
    return 0;
}

int server_open_http(struct server *s, char *error, size_t error_size)
{
    const struct http_hooks hooks = {.arg = s,
                                     .metrics = metrics,
                                     .ready = is_ready,
                                     .levels = levels,
                                     .hosts = hosts,
                                     .view = fill_view};

    if (s->conf.http_listen.count == 0)
        return 0;
    s->http = http_new(s->base, &hooks);
    if (listen_to_all(s, error, error_size) == 0)
        return 0;
    http_free(s->http);
    s->http = NULL;
    if (!conf_is_default(&s->conf, "http", "listen"))
        return -1;
    log_warn("http", "no metrics and no status page: %s", error);
    return 0;
}
