/*
 * Connections whose PROXY header has yet to come: they wait here, outside of everything else, for
 * WAIT_S at most and so many at a time.
 *
 * The header is read without a byte of what follows it, which may be TLS: the bytes in the socket
 * are looked at first, and taken out of it as far as they belong to the header.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/listener_private.h"
#include "net/proxy.h"
#include "net/stream.h"
#include "stats/stats.h"

enum { WAIT_S = 5, WAITING_MAX = 1024 };

struct proxied {
    LIST_ENTRY(proxied) link;
    struct listener_proxied *list;
    struct event readable; /* with its time-out */
    int fd;
    bool tls;
    struct sockaddr_storage peer; /* of the proxy */
    socklen_t peer_len;
    size_t len;
    char data[PROXY_HEADER_MAX];
};

static void forget_proxied(struct proxied *p)
{
    event_del(&p->readable);
    LIST_REMOVE(p, link);
    p->list->n--;
    free(p);
}

static void drop(struct proxied *p)
{
    close(p->fd);
    forget_proxied(p);
}

static void refuse_header(struct proxied *p, const char *why)
{
    static struct log_limit limit;
    char text[STREAM_ADDRESS_MAX];

    stats.protocol_errors_proxy++;
    stream_address(text, (const struct sockaddr *)&p->peer, p->peer_len);
    if (log_limited(&limit, clock_ms()))
        log_warn("listener", "a connection from %s is closed: %s swallowed=%" PRIu64, text, why,
                 limit.swallowed);
    drop(p);
}

static void hand_on(struct proxied *p, const struct sockaddr_storage *client, socklen_t client_len)
{
    struct listener_proxied *list = p->list;
    struct sockaddr_storage peer = client_len ? *client : p->peer;
    socklen_t peer_len = client_len ? client_len : p->peer_len;
    bool tls = p->tls;
    int fd = p->fd;

    forget_proxied(p);
    list->accept(list->arg, fd, tls, (const struct sockaddr *)&peer, peer_len);
}

static void on_header_bytes(evutil_socket_t fd, short what, void *arg)
{
    struct proxied *p = arg;
    struct sockaddr_storage client = {0};
    socklen_t client_len;
    size_t used;

    if (what & EV_TIMEOUT) {
        refuse_header(p, p->len ? "its PROXY header did not end in time"
                                : "it has said no PROXY header in time, as this address wants it");
        return;
    }
    ssize_t n = recv(fd, p->data + p->len, sizeof p->data - p->len, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* a health check that only connects */
        drop(p);
        return;
    }
    enum proxy_result result =
        proxy_parse(p->data, p->len + (size_t)n, &used, &client, &client_len);
    if (result == PROXY_ERROR || (result == PROXY_MORE && p->len + (size_t)n == sizeof p->data)) {
        refuse_header(p, "it does not begin with a PROXY header, as this address wants it");
        return;
    }
    size_t take = result == PROXY_DONE ? used - p->len : (size_t)n;
    if (recv(fd, p->data + p->len, take, 0) != (ssize_t)take) {
        drop(p);
        return;
    }
    p->len += take;
    if (result == PROXY_DONE)
        hand_on(p, &client, client_len);
}

void listener_await_header(struct listener_proxied *list, int fd, bool tls,
                           const struct sockaddr *peer, socklen_t peer_len)
{
    static const struct timeval wait = {.tv_sec = WAIT_S};

    if (list->n >= WAITING_MAX) {
        stats.rejected_max_clients++;
        close(fd);
        return;
    }
    struct proxied *p = util_alloc(sizeof *p);
    p->list = list;
    p->fd = fd;
    p->tls = tls;
    memcpy(&p->peer, peer, peer_len);
    p->peer_len = peer_len;
    LIST_INSERT_HEAD(&list->head, p, link);
    list->n++;
    event_assign(&p->readable, list->base, fd, EV_READ | EV_PERSIST, on_header_bytes, p);
    event_add(&p->readable, &wait);
}

void listener_drop_waiting(struct listener_proxied *list)
{
    struct proxied *p, *next;

    for (p = LIST_FIRST(&list->head); p; p = next) {
        next = LIST_NEXT(p, link);
        drop(p);
    }
}
