/*
 * The HTTP listener: sockets, connections and their bounds, and from a path to its answer.
 *
 * evhttp reads requests and writes answers. What it has no bound for is bounded here: how many
 * connections there are, and how long one may last however its bytes are spread. For this each
 * connection's bufferevent is made here and one reference to it kept; evhttp is through with it
 * when its callbacks are gone. To end one, its socket is shut down: evhttp then sees that by
 * itself.
 *
 * Invariant: the timer is armed while there is a connection, or while nothing is accepted.
 */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "buf.h"
#include "clock.h"
#include "conf.h"
#include "log.h"
#include "stats.h"
#include "stream.h"

enum {
    BACKLOG = 128,
    SILENCE_S = 5, /* evhttp ends a connection after this time without a byte */
    SWEEP_MS = 100,
    SOCKETS_MAX = 2 * CONF_LISTEN_MAX, /* each may be two: * is IPv4 and IPv6 */
    NONCE_LEN = 26
};

struct conn {
    TAILQ_ENTRY(conn) link; /* the oldest first */
    struct bufferevent *bev;
    int64_t since_ms;
    bool cut;
};

struct http {
    struct event_base *base;
    struct evhttp *evhttp;
    struct http_hooks hooks;
    struct evconnlistener *sockets[SOCKETS_MAX];
    size_t n_sockets;
    TAILQ_HEAD(, conn) conns;
    size_t n_conns;
    struct event timer;
    bool paused; /* nothing is accepted */

    struct http_sample samples[HTTP_SAMPLES]; /* a ring; the oldest in samples[n % HTTP_SAMPLES] */
    uint64_t n_samples;
    uint64_t last_granted, last_commands;
};

/* ---- connections ---- */

static void pause_accepting(struct http *h)
{
    h->paused = true;
    for (size_t i = 0; i < h->n_sockets; i++)
        evconnlistener_disable(h->sockets[i]);
}

static void resume_accepting(struct http *h)
{
    h->paused = false;
    for (size_t i = 0; i < h->n_sockets; i++)
        evconnlistener_enable(h->sockets[i]);
}

static bool has_ended(const struct conn *c)
{
    bufferevent_event_cb on_event;

    bufferevent_getcb(c->bev, NULL, NULL, &on_event, NULL);
    return !on_event;
}

static void forget(struct http *h, struct conn *c)
{
    TAILQ_REMOVE(&h->conns, c, link);
    h->n_conns--;
    bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    bufferevent_decref(c->bev); /* the last one: this closes the socket */
    free(c);
}

static void cut(struct conn *c)
{
    c->cut = true;
    stats.http_connections_cut++;
    shutdown(bufferevent_getfd(c->bev), SHUT_RDWR);
}

static void sweep(struct http *h)
{
    int64_t now_ms = clock_ms(), limit_ms = h->paused ? HTTP_CROWDED_MS : HTTP_CONN_MS;
    struct conn *c, *next;

    for (c = TAILQ_FIRST(&h->conns); c; c = next) {
        next = TAILQ_NEXT(c, link);
        if (has_ended(c))
            forget(h, c);
        else if (!c->cut && now_ms - c->since_ms >= limit_ms)
            cut(c);
    }
    if (h->paused && h->n_conns < HTTP_CONNS_MAX)
        resume_accepting(h);
}

static void arm(struct http *h)
{
    const struct timeval time = {.tv_usec = SWEEP_MS * 1000};

    if ((h->n_conns > 0 || h->paused) && !event_pending(&h->timer, EV_TIMEOUT, NULL))
        event_add(&h->timer, &time);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    sweep(arg);
    arm(arg);
}

/* For evhttp: the bufferevent of a connection that it has accepted. */
static struct bufferevent *make_conn(struct event_base *base, void *arg)
{
    struct http *h = arg;
    struct conn *c = util_alloc(sizeof *c);

    c->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!c->bev)
        util_die("cannot make a bufferevent");
    bufferevent_incref(c->bev);
    c->since_ms = clock_ms();
    TAILQ_INSERT_TAIL(&h->conns, c, link);
    if (++h->n_conns >= HTTP_CONNS_MAX)
        pause_accepting(h);
    arm(h);
    return c->bev;
}

/* Out of descriptors, most likely: to go on at once would spin. */
static void on_accept_error(struct evconnlistener *socket, void *arg)
{
    static struct log_limit limit;
    struct http *h = arg;
    int err = errno;

    (void)socket;
    if (log_limited(&limit, clock_ms()))
        log_error("http", "cannot accept a connection: %s swallowed=%" PRIu64, strerror(err),
                  limit.swallowed);
    pause_accepting(h);
    arm(h);
}

/* ---- answers ---- */

struct answer {
    struct http *http;
    const char *query; /* NULL: none */
    const char *type;
    char policy[256]; /* Content-Security-Policy */
    struct buf body;
    int status;
};

static bool is_verbose(const char *query)
{
    while (query) {
        if (strncmp(query, "verbose", 7) == 0 && strchr("&=", query[7]))
            return true;
        query = strchr(query, '&');
        query += query != NULL;
    }
    return false;
}

static void answer_metrics(struct answer *a)
{
    a->type = "text/plain; version=0.0.4; charset=utf-8";
    a->http->hooks.metrics(a->http->hooks.arg, &a->body);
}

/* That there is an answer is the proof. */
static void answer_livez(struct answer *a)
{
    buf_printf(&a->body, is_verbose(a->query) ? "[+]loop: turns\nlivez check passed\n" : "ok\n");
}

static void answer_readyz(struct answer *a)
{
    if (!a->http->hooks.ready(a->http->hooks.arg, &a->body, is_verbose(a->query)))
        a->status = 503;
}

static void copy_samples(const struct http *h, struct http_view *view)
{
    uint64_t n = h->n_samples < HTTP_SAMPLES ? h->n_samples : HTTP_SAMPLES;

    for (uint64_t i = 0; i < n; i++)
        view->samples[i] = h->samples[(h->n_samples - n + i) % HTTP_SAMPLES];
    view->n_samples = (size_t)n;
}

static void answer_page(struct answer *a)
{
    struct http_view *view = util_alloc(sizeof *view);
    char nonce[NONCE_LEN + 1];

    util_random_id(nonce, NONCE_LEN);
    snprintf(a->policy, sizeof a->policy,
             "default-src 'none'; style-src 'nonce-%s'; script-src 'nonce-%s'; img-src data:; "
             "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             nonce, nonce);
    a->type = "text/html; charset=utf-8";
    a->http->hooks.view(a->http->hooks.arg, view);
    copy_samples(a->http, view);
    http_page(&a->body, view, nonce);
    free(view);
}

static const struct {
    const char *path;
    void (*make)(struct answer *);
} routes[] = {
    {"/", answer_page},         {"/metrics", answer_metrics}, {"/livez", answer_livez},
    {"/readyz", answer_readyz}, {"/-/healthy", answer_livez}, {"/-/ready", answer_readyz},
};

static void make_answer(struct answer *a, const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (strcmp(path, routes[i].path) == 0) {
            routes[i].make(a);
            return;
        }
    }
    a->status = 404;
    buf_printf(&a->body, "not found; there are");
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        buf_printf(&a->body, " %s", routes[i].path);
    buf_printf(&a->body, "\n");
}

static const char *status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    default:
        return "Service Unavailable";
    }
}

static void send_answer(struct evhttp_request *req, const struct answer *a)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    struct evbuffer *body = evbuffer_new();
    char length[24];

    if (!body)
        util_die("cannot make a buffer");
    evbuffer_add(body, buf_head(&a->body), buf_len(&a->body));
    snprintf(length, sizeof length, "%zu", buf_len(&a->body));
    evhttp_add_header(headers, "Content-Type", a->type);
    evhttp_add_header(headers, "Content-Length", length);
    evhttp_add_header(headers, "Content-Security-Policy", a->policy);
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
    evhttp_add_header(headers, "Cross-Origin-Resource-Policy", "same-origin");
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_add_header(headers, "Connection", "close");
    if (a->status == 405)
        evhttp_add_header(headers, "Allow", "GET, HEAD");
    evhttp_send_reply(req, a->status, status_text(a->status), body);
    evbuffer_free(body);
}

static void on_request(struct evhttp_request *req, void *arg)
{
    struct answer a = {.http = arg,
                       .type = "text/plain; charset=utf-8",
                       .policy = "default-src 'none'; frame-ancestors 'none'",
                       .status = 200};
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    enum evhttp_cmd_type method = evhttp_request_get_command(req);

    stats.http_requests++;
    if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
        a.status = 405;
        buf_printf(&a.body, "only GET and HEAD: nothing can be changed here\n");
    } else {
        a.query = uri ? evhttp_uri_get_query(uri) : NULL;
        make_answer(&a, path && *path ? path : "/");
    }
    send_answer(req, &a);
    buf_fini(&a.body);
}

/* ---- the curves ---- */

/* What was added since; CONFIG RESETSTAT begins at 0 again. */
static uint32_t since(uint64_t *last, uint64_t now)
{
    uint64_t more = now >= *last ? now - *last : now;

    *last = now;
    return more < UINT32_MAX ? (uint32_t)more : UINT32_MAX;
}

void http_second(struct http *h)
{
    if (!h)
        return;
    struct http_sample *s = &h->samples[h->n_samples++ % HTTP_SAMPLES];
    s->granted = since(&h->last_granted, stats.acquires_granted);
    s->commands = since(&h->last_commands, stats.commands_processed);
    h->hooks.levels(h->hooks.arg, &s->held, &s->waiting);
}

/* ---- listening ---- */

struct opening {
    struct http *http;
    char *error;
    size_t error_size;
};

static int fail(const struct opening *o, const char *where, const char *why)
{
    snprintf(o->error, o->error_size, "http: cannot listen on %s: %s", where, why);
    return -1;
}

static int add_socket(const struct opening *o, int fd, const char *where)
{
    struct http *h = o->http;
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(h->evhttp, fd);

    if (!bound) {
        close(fd);
        return fail(o, where, "libevent does not take the socket");
    }
    h->sockets[h->n_sockets] = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(h->sockets[h->n_sockets++], on_accept_error);
    log_info("http", "status page and metrics on http://%s/", where);
    return 0;
}

/* `optional`: a machine without IPv6 is no error. */
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
                   : fail(o, where, strerror(err));
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
        return fail(o, l->host, "it must be a TCP address");
    if (strcmp(l->host, "*") == 0)
        return open_address(o, v4, sizeof in, false) == 0 ? open_address(o, v6, sizeof in6, true)
                                                          : -1;
    if (inet_pton(AF_INET, l->host, &in.sin_addr) == 1)
        return open_address(o, v4, sizeof in, false);
    if (inet_pton(AF_INET6, l->host, &in6.sin6_addr) == 1)
        return open_address(o, v6, sizeof in6, false);
    return fail(o, l->host, strerror(EINVAL));
}

/* ---- life ---- */

struct http *http_new(struct event_base *base, const struct conf_listens *listens,
                      const struct http_hooks *hooks, char *error, size_t error_size)
{
    struct http *h = util_alloc(sizeof *h);
    const struct opening o = {h, error, error_size};

    h->base = base;
    h->hooks = *hooks;
    h->last_granted = stats.acquires_granted;
    h->last_commands = stats.commands_processed;
    TAILQ_INIT(&h->conns);
    event_assign(&h->timer, base, -1, 0, on_timer, h);
    h->evhttp = evhttp_new(base);
    if (!h->evhttp)
        util_die("cannot make an HTTP server");
    evhttp_set_bevcb(h->evhttp, make_conn, h);
    evhttp_set_gencb(h->evhttp, on_request, h);
    evhttp_set_max_headers_size(h->evhttp, HTTP_HEADERS_MAX);
    evhttp_set_max_body_size(h->evhttp, HTTP_BODY_MAX);
    evhttp_set_timeout(h->evhttp, SILENCE_S);
    /* Those that are not allowed get an answer too. */
    evhttp_set_allowed_methods(h->evhttp, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                              EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                              EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                              EVHTTP_REQ_PATCH);
    for (size_t i = 0; i < listens->count; i++) {
        if (open_listen(&o, &listens->v[i]) != 0) {
            http_free(h);
            return NULL;
        }
    }
    return h;
}

void http_free(struct http *h)
{
    struct conn *c;

    if (!h)
        return;
    evhttp_free(h->evhttp); /* with its sockets and connections */
    while ((c = TAILQ_FIRST(&h->conns)))
        forget(h, c);
    event_del(&h->timer);
    free(h);
}
