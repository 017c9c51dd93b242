/*
 * Bounds the connections of HTTP.
 *
 * evhttp reads requests and writes answers. It sets no bound to what is bounded here: how many
 * connections there are, and how long one may last however its bytes are spread. For this each
 * connection's bufferevent is made here and one reference to it kept; evhttp is through with it
 * when its callbacks are gone. To end one, its socket is shut down: evhttp then sees that by
 * itself.
 *
 * Invariant: the timer is armed while there is a connection, or while nothing is accepted.
 */
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/private.h"
#include "stats/stats.h"

enum { SWEEP_MS = 100 };

struct conn {
    TAILQ_ENTRY(conn) link;
    struct bufferevent *bev;
    int64_t since_ms;
    bool cut;
};

static struct http_conns *open_conns; /* those of this process, for on_accept_error */

/* ---- connections ---- */

static void pause_socket(struct evhttp_bound_socket *socket, void *arg)
{
    const struct http_conns *h = arg;
    struct evconnlistener *listener = evhttp_bound_socket_get_listener(socket);

    (void)(h->paused ? evconnlistener_disable : evconnlistener_enable)(listener);
}

static void set_paused(struct http_conns *h, bool paused)
{
    h->paused = paused;
    evhttp_foreach_bound_socket(h->evhttp, pause_socket, h);
}

static void forget_conn(struct http_conns *h, struct conn *c)
{
    TAILQ_REMOVE(&h->conns, c, link);
    h->n_conns--;
    bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    bufferevent_decref(c->bev); /* the last one: this closes the socket */
    free(c);
}

static void sweep_conns(struct http_conns *h)
{
    int64_t now_ms = clock_ms(), limit_ms = h->paused ? HTTP_CROWDED_MS : HTTP_CONN_MS;
    bufferevent_event_cb on_event;
    struct conn *c, *next;

    for (c = TAILQ_FIRST(&h->conns); c; c = next) {
        next = TAILQ_NEXT(c, link);
        bufferevent_getcb(c->bev, NULL, NULL, &on_event, NULL);
        if (!on_event) {
            forget_conn(h, c);
        } else if (!c->cut && now_ms - c->since_ms >= limit_ms) {
            c->cut = true;
            stats.http_connections_cut++;
            shutdown(bufferevent_getfd(c->bev), SHUT_RDWR);
        }
    }
    if (h->paused && h->n_conns < HTTP_CONNS_MAX)
        set_paused(h, false);
}

static void arm_sweep(struct http_conns *h)
{
    const struct timeval time = {.tv_usec = SWEEP_MS * 1000};

    if ((h->n_conns > 0 || h->paused) && !event_pending(&h->timer, EV_TIMEOUT, NULL))
        event_add(&h->timer, &time);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    sweep_conns(arg);
    arm_sweep(arg);
}

/* Makes the bufferevent of a connection that evhttp has accepted. */
static struct bufferevent *make_conn(struct event_base *base, void *arg)
{
    struct http_conns *h = arg;
    struct conn *c = util_alloc(sizeof *c);

    c->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!c->bev)
        util_die("cannot make a bufferevent");
    bufferevent_incref(c->bev);
    c->since_ms = clock_ms();
    TAILQ_INSERT_TAIL(&h->conns, c, link);
    if (++h->n_conns >= HTTP_CONNS_MAX)
        set_paused(h, true);
    arm_sweep(h);
    return c->bev;
}

/* Pauses accepting: most likely there are no descriptors left, and to go on at once would spin.
 * `arg` is the one that evhttp has set for its own callback of the socket. */
static void on_accept_error(struct evconnlistener *socket, void *arg)
{
    static struct log_limit limit;
    struct http_conns *h = open_conns;
    int err = errno;

    (void)socket, (void)arg;
    if (log_limited(&limit, clock_ms()))
        log_error("http", "cannot accept a connection: %s swallowed=%" PRIu64, strerror(err),
                  limit.swallowed);
    set_paused(h, true);
    arm_sweep(h);
}

void http_conns_listen(struct http_conns *h, int fd)
{
    struct evhttp_bound_socket *handle = evhttp_accept_socket_with_handle(h->evhttp, fd);

    if (!handle)
        util_die("cannot make an HTTP listener");
    evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(handle), on_accept_error);
}

/* ---- life ---- */

void http_conns_init(struct http_conns *h, struct event_base *base, struct evhttp *evhttp)
{
    *h = (struct http_conns){.evhttp = evhttp};
    TAILQ_INIT(&h->conns);
    event_assign(&h->timer, base, -1, 0, on_sweep, h);
    evhttp_set_bevcb(evhttp, make_conn, h);
    open_conns = h;
}

void http_conns_fini(struct http_conns *h)
{
    struct conn *c;

    /* forget_conn() takes it out of the list, which the analyser does not follow */
    while ((c = TAILQ_FIRST(&h->conns)))
        forget_conn(h, c); /* NOLINT(clang-analyzer-unix.Malloc) */
    event_del(&h->timer);
}
