/*
 * The connections to the other brokers.
 *
 * Invariants: `beat` is always set; a question is under way or it is not, never two at once.
 */
#include "session/peer_link.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"
#include "net/reply.h"
#include "net/request.h"
#include "net/stream.h"

/* Brokers put those out who have not logged in after 5 s. */
enum { BEAT_MS = 1000, PATIENCE_MS = 2000, QUESTIONS = 3, REPLY_BYTES = 4096 };

struct peer_link {
    struct peer_links *all;
    int index;
    struct peers_address address;
    struct stream stream;
    struct reply reply;
    struct event beat;
    bool is_secured;  /* there is a context for TLS */
    int64_t since_ms; /* it was asked, or the connect began; 0: neither */
    int n_asked;      /* over this connection */
};

struct peer_links {
    struct peer_links_setup setup;
    char *service;
    int n;
    struct peer_link v[PEERS_MAX];
};

static void tell_word(struct peer_link *l, enum peers_word word)
{
    l->all->setup.on_word(l->all->setup.arg, l->index, word);
}

/* Closes the connection, which the next beat makes anew. */
static void close_link(struct peer_link *l)
{
    stream_close(&l->stream);
    l->since_ms = 0;
}

static void lose_link(struct peer_link *l)
{
    close_link(l);
    tell_word(l, PEERS_GONE);
}

static void ask_peer(struct peer_link *l)
{
    l->since_ms = clock_ms();
    l->n_asked++;
    request_strings(stream_out(&l->stream), 3,
                    (const char *const[]){"SENTINEL", "CKQUORUM", l->all->service});
    stream_flush(&l->stream);
}

static void on_peer_open(void *arg)
{
    struct peer_link *l = arg;

    reply_start(&l->reply, REPLY_BYTES);
    l->n_asked = 0;
    ask_peer(l);
}

static void on_peer_beat(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval later = {.tv_sec = BEAT_MS / 1000};
    struct peer_link *l = arg;

    (void)fd, (void)what;
    event_add(&l->beat, &later);
    if (l->since_ms && clock_ms() - l->since_ms > PATIENCE_MS)
        lose_link(l);
    if (l->since_ms)
        return;
    if (stream_is_open(&l->stream)) {
        ask_peer(l);
        return;
    }
    if (l->address.tls && !l->is_secured)
        return;
    l->since_ms = clock_ms();
    stream_connect(&l->stream, l->all->setup.dns, l->address.host, l->address.port);
}

static void take_answer(struct peer_link *l)
{
    enum peers_word word = l->reply.values->type == REPLY_STATUS ? PEERS_WELL : PEERS_SICK;

    l->since_ms = 0;
    if (l->n_asked >= QUESTIONS)
        close_link(l);
    tell_word(l, word);
}

static size_t on_peer_bytes(void *arg, const char *data, size_t len)
{
    struct peer_link *l = arg;
    enum reply_result result;

    if (!l->since_ms || len > REPLY_FEED_MAX) {
        lose_link(l);
        return len;
    }
    reply_feed(&l->reply, data, len);
    result = reply_next(&l->reply);
    if (result == REPLY_READY)
        take_answer(l);
    else if (result == REPLY_BROKEN)
        lose_link(l);
    return len;
}

static void on_peer_end(void *arg, enum stream_end end, int err, const char *text)
{
    (void)end, (void)err, (void)text;
    lose_link(arg);
}

static const struct stream_events link_events = {
    .on_open = on_peer_open,
    .on_bytes = on_peer_bytes,
    .on_end = on_peer_end,
};

struct peer_links *peer_links_new(const struct peer_links_setup *setup, const struct peers *peers)
{
    struct peer_links *links = util_alloc(sizeof *links);

    links->setup = *setup;
    links->service = util_strdup(setup->service);
    links->n = peers->n;
    for (int i = 0; i < links->n; i++) {
        struct peer_link *l = &links->v[i];
        l->all = links;
        l->index = i;
        l->address = peers->v[i].address;
        stream_init(&l->stream, setup->base, &link_events, l);
        event_assign(&l->beat, setup->base, -1, 0, on_peer_beat, l);
        event_active(&l->beat, EV_TIMEOUT, 0);
    }
    return links;
}

void peer_links_secure(struct peer_links *links, struct ssl_ctx_st *tls)
{
    for (int i = 0; i < links->n; i++) {
        struct peer_link *l = &links->v[i];
        l->is_secured = l->address.tls && tls;
        if (l->address.tls)
            stream_secure(&l->stream, tls, l->address.host);
    }
}

void peer_links_free(struct peer_links *links)
{
    if (!links)
        return;
    for (int i = 0; i < links->n; i++) {
        event_del(&links->v[i].beat);
        stream_close(&links->v[i].stream);
        reply_fini(&links->v[i].reply);
    }
    free(links->service);
    free(links);
}
