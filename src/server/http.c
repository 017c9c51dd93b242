/*
 * What HTTP shows of the server: the metrics, and whether it is ready. What the status page shows
 * is page.c.
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
                                     .view = server_fill_page,
                                     .search = server_search_page};

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
