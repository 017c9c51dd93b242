/* Connecting a stream: a name to addresses, and each address in turn until one answers, or all have
 * had their time but the last, which may take as long as it likes.
 *
 * Owns the list of addresses while a connect is under way, and nothing after. Everything that can
 * fail is done from the loop (on_go), so that no callback of the owner runs inside
 * stream_connect().
 *
 * A look-up that is cancelled still calls back, later; so the dial outlives its stream then, with
 * `stream` NULL, and on_looked_up() frees it. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/stream_private.h"
#include "net/tls.h"

enum {
    ADDRESSES_MAX = 8,
    ADDRESS_MS = 250 /* for an answer, while there are further addresses */
};

struct address {
    struct sockaddr_storage addr;
    socklen_t len;
};

struct stream_dial {
    struct stream *stream;                    /* NULL: cancelled, the look-up will free this */
    struct evdns_getaddrinfo_request *lookup; /* NULL: none under way */
    struct event go;
    struct address address[ADDRESSES_MAX];
    int count, next;
    char named[STREAM_ADDRESS_MAX]; /* the address that is the last to be tried, or the only one */
    bool keeps_to;                  /* the only one */
    int err;                        /* of the last address, or why there is none */
    const char *text;               /* the same when it is no errno */
};

static void add_address(struct stream_dial *d, const void *addr, size_t len)
{
    if (d->count == ADDRESSES_MAX || len > sizeof d->address[0].addr)
        return;
    memcpy(&d->address[d->count].addr, addr, len);
    d->address[d->count++].len = (socklen_t)len;
}

static void add_path(struct stream_dial *d, const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t len = strlen(path);

    if (len >= sizeof un.sun_path) {
        d->err = ENAMETOOLONG;
        return;
    }
    memcpy(un.sun_path, path, len + 1);
    add_address(d, &un, offsetof(struct sockaddr_un, sun_path) + len + 1);
}

static bool add_numeric(struct stream_dial *d, const char *host, int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

    if (inet_pton(AF_INET, host, &in.sin_addr) == 1)
        add_address(d, &in, sizeof in);
    else if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1)
        add_address(d, &in6, sizeof in6);
    return d->count > 0;
}

static void on_looked_up(int result, struct evutil_addrinfo *list, void *arg)
{
    struct stream_dial *d = arg;

    d->lookup = NULL;
    if (d->stream) {
        for (const struct evutil_addrinfo *a = list; a; a = a->ai_next)
            add_address(d, a->ai_addr, a->ai_addrlen);
        d->err = EHOSTUNREACH;
        d->text = result ? evutil_gai_strerror(result) : "the name has no address";
        event_active(&d->go, EV_TIMEOUT, 0);
    } else {
        free(d);
    }
    if (list)
        evutil_freeaddrinfo(list);
}

/* Tries one address after the other until a connect to one of them begins. Goes on to the next when
 * that one does not answer soon. */
static void dial_next(struct stream *s)
{
    static const struct timeval soon = {.tv_usec = ADDRESS_MS * 1000};
    struct stream_dial *d = s->dial;

    event_del(&d->go);
    while (d->next < d->count) {
        const struct address *a = &d->address[d->next++];
        int fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        d->text = NULL;
        if (fd >= 0 &&
            (connect(fd, (const struct sockaddr *)&a->addr, a->len) == 0 || errno == EINPROGRESS)) {
            stream_set_fd(s, fd);
            event_add(&s->writable, NULL); /* at once when it stands already */
            if (d->next < d->count)
                event_add(&d->go, &soon);
            return;
        }
        d->err = errno;
        if (fd >= 0)
            close(fd);
    }
    int err = d->err;
    stream_fail(s, STREAM_END_ERROR, err, d->text ? d->text : strerror(err));
}

/* Puts the address that is named last, or leaves it alone. */
static void choose_addresses(struct stream_dial *d)
{
    char text[STREAM_ADDRESS_MAX];
    struct address was[ADDRESSES_MAX];
    int named = 0;

    memcpy(was, d->address, sizeof was);
    while (named < d->count) {
        stream_address(text, (const struct sockaddr *)&was[named].addr, was[named].len);
        if (strcmp(text, d->named) == 0)
            break;
        named++;
    }
    if (named == d->count)
        return;
    if (d->keeps_to) {
        d->address[0] = was[named];
        d->count = 1;
    } else {
        for (int i = 0; i < d->count; i++)
            d->address[i] = was[(named + 1 + i) % d->count];
    }
}

void stream_begin_behind(struct stream *s, const char *address)
{
    snprintf(s->dial->named, sizeof s->dial->named, "%s", address);
}

void stream_keep_to(struct stream *s, const char *address)
{
    stream_begin_behind(s, address);
    s->dial->keeps_to = true;
}

static void on_go(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;

    (void)fd, (void)what;
    stream_drop_fd(s);
    if (s->dial->next == 0)
        choose_addresses(s->dial);
    dial_next(s);
}

void stream_dial_answered(struct stream *s)
{
    struct stream_dial *d = s->dial;
    socklen_t len = sizeof d->err;

    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &d->err, &len) != 0)
        d->err = errno;
    if (d->err != 0) {
        stream_drop_fd(s);
        dial_next(s);
        return;
    }
    event_del(&s->writable);
    stream_dial_cancel(s);
    if (s->secure_by) {
        stream_start(s);
        s->tls = tls_connect(s->secure_by, s->fd, s->secure_name);
        stream_tls_start(s);
        return;
    }
    s->connecting = false;
    stream_start(s);
    if (s->events->on_open)
        s->events->on_open(s->arg);
}

void stream_dial_cancel(struct stream *s)
{
    struct stream_dial *d = s->dial;

    if (!d)
        return;
    s->dial = NULL;
    event_del(&d->go);
    if (d->lookup) {
        d->stream = NULL;
        evdns_getaddrinfo_cancel(d->lookup);
    } else {
        free(d);
    }
}

static void look_up(struct stream_dial *d, struct evdns_base *dns, const char *host, int port)
{
    struct evutil_addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_protocol = IPPROTO_TCP,
        .ai_flags = EVUTIL_AI_NUMERICSERV,
    };
    char service[12];

    snprintf(service, sizeof service, "%d", port);
    /* NULL: on_looked_up() has run already, from /etc/hosts for one. */
    d->lookup = evdns_getaddrinfo(dns, host, service, &hints, on_looked_up, d);
}

void stream_connect(struct stream *s, struct evdns_base *dns, const char *host, int port)
{
    assert(s->fd < 0 && !s->connecting);
    struct stream_dial *d = util_alloc(sizeof *d);
    d->stream = s;
    event_assign(&d->go, s->base, -1, 0, on_go, s);
    s->dial = d;
    s->connecting = true;
    if (port == 0)
        add_path(d, host);
    else if (!add_numeric(d, host, port)) {
        look_up(d, dns, host, port);
        return;
    }
    event_active(&d->go, EV_TIMEOUT, 0);
}
