/*
 * Links and their seats. Knows where one reply ends and the next begins, and whose it is; not what
 * any of them says.
 *
 * Invariants: the replies that are still to come, in order, are the runs; a seat is in `seats`
 * exactly while it is taken; a link without seats has no connection.
 */
#include "redis/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"

enum { RUNS_FIRST = 16, KEEP = 64 * 1024 };

static TAILQ_HEAD(, link) dirty_links = TAILQ_HEAD_INITIALIZER(dirty_links);

/* ---- whose reply is next ---- */

static struct link_run *run_at(struct link *l, int i)
{
    return &l->runs[(l->first_run + i) & (l->cap_runs - 1)];
}

static void grow_runs(struct link *l)
{
    int cap = l->cap_runs ? 2 * l->cap_runs : RUNS_FIRST;
    struct link_run *runs = util_alloc((size_t)cap * sizeof *runs);

    for (int i = 0; i < l->n_runs; i++)
        runs[i] = *run_at(l, i);
    free(l->runs);
    l->runs = runs;
    l->first_run = 0;
    l->cap_runs = cap;
}

static void add_run(struct link *l, struct link_seat *seat, int n)
{
    struct link_run *last = l->n_runs > 0 ? run_at(l, l->n_runs - 1) : NULL;

    if (last && last->seat == seat) {
        last->n += n;
        return;
    }
    if (l->n_runs == l->cap_runs)
        grow_runs(l);
    *run_at(l, l->n_runs++) = (struct link_run){.seat = seat, .n = n};
}

/* ---- the end ---- */

static void disconnect(struct link *l)
{
    l->ends++;
    l->n_runs = 0;
    stream_close(&l->stream);
    event_del(&l->turn);
    if (l->is_dirty)
        TAILQ_REMOVE(&dirty_links, l, dirty);
    l->is_dirty = false;
}

static void leave_seat(struct link *l, struct link_seat *seat)
{
    TAILQ_REMOVE(&l->seats, seat, next);
    seat->taken = seat->waits = false;
}

void link_leave(struct link *l, struct link_seat *seat)
{
    if (!seat->taken)
        return;
    leave_seat(l, seat);
    if (TAILQ_EMPTY(&l->seats)) {
        disconnect(l);
        return;
    }
    for (int i = 0; i < l->n_runs; i++)
        if (run_at(l, i)->seat == seat)
            run_at(l, i)->seat = NULL;
}

void link_break(struct link *l, enum link_end end, const char *text)
{
    TAILQ_HEAD(, link_seat) seats = TAILQ_HEAD_INITIALIZER(seats);
    struct link_seat *seat;

    disconnect(l);
    while ((seat = TAILQ_FIRST(&l->seats)) != NULL) { /* who comes back meanwhile stays */
        leave_seat(l, seat);
        TAILQ_INSERT_TAIL(&seats, seat, next);
    }
    while ((seat = TAILQ_FIRST(&seats)) != NULL) {
        TAILQ_REMOVE(&seats, seat, next);
        seat->events->on_end(seat->arg, end, text);
    }
}

/* ---- what comes ---- */

static struct link_seat *who_waits(struct link *l)
{
    struct link_seat *seat;

    TAILQ_FOREACH(seat, &l->seats, next)
        if (seat->waits && link_is_open(l))
            return seat;
    return NULL;
}

/* Tells those who wait that it is open. */
static void serve_seats(struct link *l)
{
    struct link_seat *seat;

    while ((seat = who_waits(l)) != NULL) {
        seat->waits = false;
        seat->events->on_open(seat->arg);
    }
}

static void on_link_open(void *arg)
{
    struct link *l = arg;

    reply_start(&l->reply, l->max_reply);
    serve_seats(l);
}

static void take_reply(struct link *l, int64_t now_us)
{
    struct link_run *run = l->n_runs > 0 ? run_at(l, 0) : NULL;

    if (!run) {
        link_break(l, LINK_NONSENSE, "it said something that nobody had asked");
        return;
    }
    struct link_seat *seat = run->seat;
    if (--run->n == 0) {
        l->first_run = (l->first_run + 1) & (l->cap_runs - 1);
        l->n_runs--;
    }
    if (seat)
        seat->events->on_reply(seat->arg, now_us / 1000, now_us);
}

static size_t on_link_bytes(void *arg, const char *data, size_t len)
{
    struct link *l = arg;
    unsigned ends = l->ends;
    int64_t now_us = clock_us();
    enum reply_result result = REPLY_MORE;

    for (size_t done = 0, n; done < len && l->ends == ends; done += n) {
        n = len - done < REPLY_FEED_MAX ? len - done : REPLY_FEED_MAX;
        reply_feed(&l->reply, data + done, n);
        while ((result = reply_next(&l->reply)) == REPLY_READY) {
            take_reply(l, now_us);
            if (l->ends != ends)
                return len;
        }
        if (result == REPLY_BROKEN)
            link_break(l, LINK_NONSENSE, l->reply.error);
        else if (l->reply.unfinished > 0 && l->n_runs == 0)
            link_break(l, LINK_NONSENSE, "it said something that nobody had asked");
    }
    return len;
}

static void on_link_end(void *arg, enum stream_end end, int err, const char *text)
{
    (void)end, (void)err;
    link_break(arg, LINK_LOST, text);
}

static const struct stream_events stream_events = {
    .on_open = on_link_open,
    .on_bytes = on_link_bytes,
    .on_end = on_link_end,
};

/* ---- what goes ---- */

static void flush(struct link *l)
{
    TAILQ_REMOVE(&dirty_links, l, dirty);
    l->is_dirty = false;
    stream_flush(&l->stream);
}

void links_write(void)
{
    struct link *l;

    while ((l = TAILQ_FIRST(&dirty_links)) != NULL)
        flush(l);
}

void link_write(struct link *l, struct link_seat *seat, int n)
{
    add_run(l, seat, n);
    if (!l->is_shared) {
        stream_flush(&l->stream);
        return;
    }
    if (l->is_dirty)
        return;
    l->is_dirty = true;
    TAILQ_INSERT_TAIL(&dirty_links, l, dirty);
    event_active(&l->turn, EV_TIMEOUT, 0);
}

static void on_link_turn(evutil_socket_t fd, short what, void *arg)
{
    struct link *l = arg;

    (void)fd, (void)what;
    serve_seats(l);
    if (l->is_dirty)
        flush(l);
}

/* ---- life ---- */

void link_connect(struct link *l, struct link_seat *seat, struct evdns_base *dns, const char *host,
                  int port, size_t max_reply)
{
    assert(!seat->taken);
    bool is_first = TAILQ_EMPTY(&l->seats);

    seat->taken = seat->waits = true;
    TAILQ_INSERT_TAIL(&l->seats, seat, next);
    if (link_is_open(l)) {
        event_active(&l->turn, EV_TIMEOUT, 0);
    } else if (is_first) {
        l->greeted = false;
        l->client_id = 0;
        l->max_reply = max_reply;
        stream_connect(&l->stream, dns, host, port);
    }
}

struct link *link_new(struct event_base *base, bool is_shared)
{
    struct link *l = util_alloc(sizeof *l);

    l->is_shared = is_shared;
    TAILQ_INIT(&l->seats);
    stream_init(&l->stream, base, &stream_events, l);
    l->stream.keep_max = KEEP;
    event_assign(&l->turn, base, -1, 0, on_link_turn, l);
    return l;
}

void link_free(struct link *l)
{
    if (!l)
        return;
    assert(TAILQ_EMPTY(&l->seats));
    disconnect(l);
    reply_fini(&l->reply);
    free(l->runs);
    free(l);
}
