#include "relay.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/un.h>
#include <unistd.h>

enum { CALL_DIGITS = 16 };

struct pipe {
    struct relay *relay;
    struct bufferevent *client, *server; /* NULL: ended */
    TAILQ_ENTRY(pipe) link;
};

struct relay {
    struct event_base *base;
    struct evconnlistener *listener;
    char path[108], upstream[108];
    const char *lie;
    size_t lie_len;
    char call[CALL_DIGITS];
    bool hold;
    TAILQ_HEAD(, pipe) pipes;
};

static struct sockaddr_un address(const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    return un;
}

static void end_side(struct bufferevent **side)
{
    if (*side)
        bufferevent_free(*side);
    *side = NULL;
}

/* The number of the first call in what a broker has sent: a time in us, which nothing else is. */
static void note_call(struct relay *r, struct evbuffer *in)
{
    static const char number[] = "\r\n$16\r\n";
    struct evbuffer_ptr at = evbuffer_search(in, number, sizeof number - 1, NULL);
    if (at.pos < 0)
        return;
    evbuffer_ptr_set(in, &at, sizeof number - 1, EVBUFFER_PTR_ADD);
    evbuffer_copyout_from(in, &at, r->call, CALL_DIGITS);
}

static void lie(struct relay *r, struct bufferevent *client)
{
    const char *p = r->lie, *end = r->lie + r->lie_len, *at;
    for (; (at = memchr(p, '@', (size_t)(end - p))); p = at + 1) {
        bufferevent_write(client, p, (size_t)(at - p));
        bufferevent_write(client, r->call, CALL_DIGITS);
    }
    bufferevent_write(client, p, (size_t)(end - p));
}

static void on_client_bytes(struct bufferevent *side, void *arg)
{
    struct pipe *p = arg;
    note_call(p->relay, bufferevent_get_input(side));
    if (p->server)
        bufferevent_read_buffer(side, bufferevent_get_output(p->server));
}

static void on_server_bytes(struct bufferevent *side, void *arg)
{
    struct pipe *p = arg;
    struct evbuffer *in = bufferevent_get_input(side);

    if (p->relay->hold)
        return;
    if (p->relay->lie || !p->client) {
        evbuffer_drain(in, evbuffer_get_length(in));
        if (p->client)
            lie(p->relay, p->client);
        return;
    }
    bufferevent_write_buffer(p->client, in);
}

static void on_client_event(struct bufferevent *side, short what, void *arg)
{
    struct pipe *p = arg;
    (void)side;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
        end_side(&p->client);
        end_side(&p->server);
    }
}

static void on_server_event(struct bufferevent *side, short what, void *arg)
{
    struct pipe *p = arg;
    (void)side;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
        end_side(&p->server);
        end_side(&p->client);
    }
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len,
                      void *arg)
{
    struct relay *r = arg;
    struct pipe *p = calloc(1, sizeof *p);
    struct sockaddr_un un = address(r->upstream);

    (void)l, (void)from, (void)len;
    if (!p)
        abort();
    p->relay = r;
    TAILQ_INSERT_TAIL(&r->pipes, p, link);
    p->client = bufferevent_socket_new(r->base, fd, BEV_OPT_CLOSE_ON_FREE);
    p->server = bufferevent_socket_new(r->base, -1, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(p->client, on_client_bytes, NULL, on_client_event, p);
    bufferevent_setcb(p->server, on_server_bytes, NULL, on_server_event, p);
    bufferevent_enable(p->client, EV_READ | EV_WRITE);
    bufferevent_enable(p->server, EV_READ | EV_WRITE);
    if (bufferevent_socket_connect(p->server, (struct sockaddr *)&un, sizeof un) != 0)
        abort();
}

struct relay *relay_new(struct event_base *base, const char *path, const char *upstream)
{
    struct relay *r = calloc(1, sizeof *r);
    struct sockaddr_un un = address(path);

    if (!r)
        abort();
    r->base = base;
    TAILQ_INIT(&r->pipes);
    snprintf(r->path, sizeof r->path, "%s", path);
    snprintf(r->upstream, sizeof r->upstream, "%s", upstream);
    r->listener = evconnlistener_new_bind(base, on_accept, r, LEV_OPT_CLOSE_ON_FREE, 8,
                                          (struct sockaddr *)&un, sizeof un);
    if (!r->listener)
        abort();
    return r;
}

void relay_free(struct relay *r)
{
    struct pipe *p;

    while ((p = TAILQ_FIRST(&r->pipes)) != NULL) {
        TAILQ_REMOVE(&r->pipes, p, link);
        end_side(&p->client);
        end_side(&p->server);
        free(p);
    }
    evconnlistener_free(r->listener);
    unlink(r->path);
    free(r);
}

void relay_say(struct relay *r, const char *bytes, size_t len)
{
    struct pipe *p;
    TAILQ_FOREACH(p, &r->pipes, link)
        if (p->client)
            bufferevent_write(p->client, bytes, len);
}

void relay_replace(struct relay *r, const char *bytes, size_t len)
{
    r->lie = bytes;
    r->lie_len = len;
}

void relay_hold(struct relay *r, bool hold)
{
    struct pipe *p;

    r->hold = hold;
    TAILQ_FOREACH(p, &r->pipes, link)
        if (!hold && p->server)
            on_server_bytes(p->server, p);
}

void relay_cut(struct relay *r)
{
    struct pipe *p;
    TAILQ_FOREACH(p, &r->pipes, link)
        end_side(&p->client);
}

int relay_servers(const struct relay *r)
{
    const struct pipe *p;
    int n = 0;
    TAILQ_FOREACH(p, &r->pipes, link)
        n += p->server != NULL;
    return n;
}
