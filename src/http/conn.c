/*
 * Opens the sockets of HTTP and bounds its connections.
 *
 * evhttp reads requests and writes answers. It sets no bound to what is bounded here: how many
 * connections there are, and how long one may last however its bytes are spread. For this each
 * connection's bufferevent is made here and one reference to it kept; evhttp is through with it
 * when its callbacks are gone. To end one, its socket is shut down: evhttp then sees that by
 * itself.
 *
 * Invariant: the timer is armed while there is a connection, or while nothing is accepted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "conf/conf.h"
#include "http/private.h"
#include "net/stream.h"
#include "stats/stats.h"

enum { BACKLOG = 128, SWEEP_MS = 100 };

struct conn {
    TAILQ_ENTRY(conn) link;
    struct bufferevent *bev;
    int64_t since_ms;
    bool cut;
};

static struct http_conns *open_conns; /* those of this process, for on_accept_error */

/* ---- connections ---- */

static void pause_accepting(struct http_conns *h)
{
    h->paused = true;
    for (size_t i = 0; i < h->n_sockets; i++)
        evconnlistener_disable(h->sockets[i]);
}

static void resume_accepting(struct http_conns *h)
{
    h->paused = false;
    for (size_t i = 0; i < h->n_sockets; i++)
        evconnlistener_enable(h->sockets[i]);
}

static bool conn_has_ended(const struct conn *c)
{
    bufferevent_event_cb on_event;

    bufferevent_getcb(c->bev, NULL, NULL, &on_event, NULL);
    return !on_event;
}

static void forget_conn(struct http_conns *h, struct conn *c)
{
    TAILQ_REMOVE(&h->conns, c, link);
    h->n_conns--;
    bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    bufferevent_decref(c->bev); /* the last one: this closes the socket */
    free(c);
}

static void cut_conn(struct conn *c)
{
    c->cut = true;
    stats.http_connections_cut++;
    shutdown(bufferevent_getfd(c->bev), SHUT_RDWR);
}

static void sweep_conns(struct http_conns *h)
{
    int64_t now_ms = clock_ms(), limit_ms = h->paused ? HTTP_CROWDED_MS : HTTP_CONN_MS;
    struct conn *c, *next;

    for (c = TAILQ_FIRST(&h->conns); c; c = next) {
        next = TAILQ_NEXT(c, link);
        if (conn_has_ended(c))
            forget_conn(h, c);
        else if (!c->cut && now_ms - c->since_ms >= limit_ms)
            cut_conn(c);
    }
    if (h->paused && h->n_conns < HTTP_CONNS_MAX)
        resume_accepting(h);
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
        pause_accepting(h);
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
    pause_accepting(h);
    arm_sweep(h);
}

/* ---- listening ---- */

struct opening {
    struct http_conns *conns;
    char *error;
    size_t error_size;
};

static int refuse_listen(const struct opening *o, const char *where, const char *why)
{
    snprintf(o->error, o->error_size, "cannot listen on %s (http.listen): %s", where, why);
    return -1;
}

static int add_socket(const struct opening *o, int fd, const char *where)
{
    struct http_conns *h = o->conns;
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(h->evhttp, fd);

    if (!bound) {
        close(fd);
        return refuse_listen(o, where, "libevent does not take the socket");
    }
    h->sockets[h->n_sockets] = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(h->sockets[h->n_sockets++], on_accept_error);
    log_info("http", "status page and metrics on http://%s/", where);
    return 0;
}

/* Opens one address. `optional`: a machine without IPv6 is no error. */
static int open_address(const struct opening *o, const struct sockaddr *addr, socklen_t len,
                        bool optional)
{
    char where[STREAM_ADDRESS_MAX];
    struct sockaddr_storage bound;
    socklen_t bound_len = sizeof bound;
    int on = 1, fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (addr->sa_family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    stream_address(where, addr, len);
    if (fd < 0 || bind(fd, addr, len) != 0 || listen(fd, BACKLOG) != 0) {
        int err = errno;
        if (fd >= 0)
            close(fd);
        return optional && (err == EAFNOSUPPORT || err == EADDRNOTAVAIL)
                   ? 0
                   : refuse_listen(o, where, strerror(err));
    }
    if (getsockname(fd, (struct sockaddr *)&bound, &bound_len) == 0)
        stream_address(where, (struct sockaddr *)&bound, bound_len);
    return add_socket(o, fd, where);
}

static int open_listen(const struct opening *o, const struct conf_listen *l)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)l->port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)l->port)};
    const struct sockaddr *v4 = (const struct sockaddr *)&in, *v6 = (const struct sockaddr *)&in6;

    if (l->is_unix)
        return refuse_listen(o, l->host, "it must be a TCP address");
    if (strcmp(l->host, "*") == 0)
        return open_address(o, v4, sizeof in, false) == 0 ? open_address(o, v6, sizeof in6, true)
                                                          : -1;
    if (inet_pton(AF_INET, l->host, &in.sin_addr) == 1)
        return open_address(o, v4, sizeof in, false);
    if (inet_pton(AF_INET6, l->host, &in6.sin6_addr) == 1)
        return open_address(o, v6, sizeof in6, false);
    return refuse_listen(o, l->host, strerror(EINVAL));
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

int http_conns_open(struct http_conns *h, const struct conf_listens *listens, char *error,
                    size_t error_size)
{
    const struct opening o = {h, error, error_size};

    for (size_t i = 0; i < listens->count; i++)
        if (open_listen(&o, &listens->v[i]) != 0)
            return -1;
    return 0;
}

void http_conns_fini(struct http_conns *h)
{
    struct conn *c;

    /* forget_conn() takes it out of the list, which the analyser does not follow */
    while ((c = TAILQ_FIRST(&h->conns)))
        forget_conn(h, c); /* NOLINT(clang-analyzer-unix.Malloc) */
    event_del(&h->timer);
}
