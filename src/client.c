/* Who is connected: how a client comes, and what commands may know of it.
 *
 * Owns every client from client_accept() to the end of the turn in which it ended. Its memory never
 * goes earlier, as somebody further up the stack may still hold it. How its commands are run is in
 * client_run.c, how it ends in client_end.c; what its commands mean is not known here.
 *
 *     accept --> RUNS --client_finish--> FINISHING --replies sent--> DEAD --end of turn--> freed
 *                 |--peer's FIN--> EOF --all answered, or one waits----^
 *                 +--client_end_now: reset, time-out, limits-----------+
 */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "client_private.h"
#include "clock.h"
#include "cmd.h"
#include "log.h"
#include "stats.h"

/* ---- what the stream tells ---- */

static void on_eof(void *arg)
{
    struct client *c = arg;

    c->eof = true;
    if (c->finishing) {
        if (c->shut)
            client_end_now(c, c->end, "");
        return;
    }
    client_begin_end(c, CLIENT_END_EOF, clock_ms());
}

static void on_drain(void *arg)
{
    client_ready(arg);
}

static void on_end(void *arg, enum stream_end end, int err, const char *text)
{
    static const enum client_end of_stream[] = {
        [STREAM_END_EOF] = CLIENT_END_EOF,         [STREAM_END_RESET] = CLIENT_END_RESET,
        [STREAM_END_TIMEOUT] = CLIENT_END_TIMEOUT, [STREAM_END_TLS] = CLIENT_END_TLS,
        [STREAM_END_ERROR] = CLIENT_END_ERROR,
    };
    struct client *c = arg;

    (void)err;
    if (end == STREAM_END_TLS)
        stats.protocol_errors_tls++;
    if (c->finishing || c->eof) /* it said farewell before it hung up */
        client_end_now(c, c->end, text);
    else
        client_end_now(c, of_stream[end], text);
}

static const struct stream_events stream_events = {
    .on_bytes = client_on_bytes,
    .on_eof = on_eof,
    .on_drain = on_drain,
    .on_end = on_end,
};

/* ---- what the session tells ---- */

static void on_ready(struct session *s)
{
    client_ready(client_of(s));
}

static void on_close(struct session *s, const char *reason)
{
    client_finish(client_of(s), CLIENT_END_ASKED, reason);
}

static const struct session_events session_events = {
    .on_ready = on_ready,
    .on_unblocked = on_ready,
    .on_close = on_close,
    .on_written = cmd_written,
};

/* ---- the set ---- */

static void on_unpause(evutil_socket_t fd, short what, void *arg)
{
    struct clients *set = arg;
    struct client *c;

    (void)fd;
    (void)what;
    set->paused_until_ms = 0;
    TAILQ_FOREACH(c, &set->all, link)
    if (c->stall == CLIENT_PAUSED)
        client_ready(c);
}

void client_pause_all(struct clients *set, int64_t until_ms)
{
    int64_t left_ms = until_ms - clock_ms();

    set->paused_until_ms = until_ms;
    if (left_ms <= 0) {
        event_del(&set->unpause);
        on_unpause(-1, 0, set);
        return;
    }
    struct timeval left = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    event_add(&set->unpause, &left);
}

struct clients *client_init(struct event_base *base, const struct client_limits *limits,
                            const struct client_events *events, void *arg)
{
    struct clients *set = util_alloc(sizeof *set);
    const struct timeval second = {.tv_sec = 1};

    set->base = base;
    set->limits = *limits;
    set->events = events;
    set->arg = arg;
    TAILQ_INIT(&set->all);
    TAILQ_INIT(&set->dead);
    TAILQ_INIT(&set->ready);
    TAILQ_INIT(&set->more);
    TAILQ_INIT(&set->watched);
    resp_scratch_init(&set->scratch);
    event_assign(&set->turn, base, -1, 0, client_on_turn, set);
    event_assign(&set->unpause, base, -1, 0, on_unpause, set);
    event_assign(&set->tick, base, -1, EV_PERSIST, client_on_tick, set);
    event_add(&set->tick, &second);
    return set;
}

void client_fini(struct clients *set)
{
    struct client *c;

    if (!set)
        return;
    client_flush_all(set);
    while ((c = TAILQ_FIRST(&set->all)) != NULL)
        client_end_now(c, c->finishing ? c->end : CLIENT_END_SHUTDOWN, "the daemon ends");
    client_free_dead(set);
    event_del(&set->turn);
    event_del(&set->unpause);
    event_del(&set->tick);
    resp_scratch_fini(&set->scratch);
    free(set);
}

void client_set_limits(struct clients *set, const struct client_limits *limits)
{
    struct client *c;

    set->limits = *limits;
    TAILQ_FOREACH(c, &set->all, link)
    {
        stream_keepalive(&c->stream, &limits->keepalive);
        client_ready(c); /* a wider limit may let it go on */
    }
}

void client_set_tls(struct clients *set, struct ssl_ctx_st *context)
{
    set->tls = context;
}

/* ---- a client comes ---- */

static void refuse(struct clients *set, int fd, bool tls)
{
    static const char text[] = "-ERR max number of clients reached\r\n";
    static struct log_limit limit;
    char dropped[1024];

    stats.connections_rejected_clients++;
    if (log_limited(&limit, clock_ms()))
        log_warn("clients",
                 "max_clients=%" PRId64 " reached, a connection is refused swallowed=%" PRIu64,
                 set->limits.max_clients, limit.swallowed);
    /* What it has sent is read, as bytes left unread turn the close into a reset that can take the
     * text away from the peer. */
    if (!tls && send(fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        shutdown(fd, SHUT_WR);
    while (recv(fd, dropped, sizeof dropped, MSG_DONTWAIT) == (ssize_t)sizeof dropped) {
    }
    close(fd);
}

static char *local_address(int fd)
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    char text[STREAM_ADDRESS_MAX] = "?";

    if (getsockname(fd, (struct sockaddr *)&addr, &len) == 0)
        stream_address(text, (const struct sockaddr *)&addr, len);
    return util_strdup(text);
}

/* The peer over a Unix socket has no name: that of the socket says more. */
static char *peer_address(int fd, const struct sockaddr *peer, socklen_t len)
{
    char text[STREAM_ADDRESS_MAX];

    if (peer->sa_family == AF_UNIX)
        return local_address(fd);
    stream_address(text, peer, len);
    return util_strdup(text);
}

void client_accept(void *clients, int fd, bool tls, const struct sockaddr *peer, socklen_t peer_len)
{
    struct clients *set = clients;
    int64_t now_ms = clock_ms();

    stats.connections_received++;
    if ((int64_t)set->n_all >= set->limits.max_clients) {
        refuse(set, fd, tls);
        return;
    }
    struct client *c = util_alloc(sizeof *c);
    c->set = set;
    c->peer = peer_address(fd, peer, peer_len);
    stream_init(&c->stream, set->base, &stream_events, c);
    session_init(&c->session, ++set->last_id, &session_events, stream_out(&c->stream), now_ms);
    resp_parser_init(&c->parser, &set->limits.resp);
    TAILQ_INSERT_TAIL(&set->all, c, link);
    set->n_all++;
    if (tls) {
        stream_adopt_tls(&c->stream, fd, set->tls);
        client_watch(c); /* a handshake must not last */
    } else {
        stream_adopt(&c->stream, fd);
    }
    stream_keepalive(&c->stream, &set->limits.keepalive);
    set->events->on_start(set->arg, &c->session, now_ms);
    log_debug("clients", "client %" PRIu64 " connected peer=%s", c->session.id, c->peer);
}

/* ---- for the commands ---- */

void client_each(struct clients *set, void (*each)(struct session *, void *arg), void *arg)
{
    struct client *c;

    TAILQ_FOREACH(c, &set->all, link)
    each(&c->session, arg);
}

size_t client_count(const struct clients *set)
{
    return set->n_all;
}

void client_kill(struct session *s, const char *reason)
{
    client_finish(client_of(s), CLIENT_END_KILLED, reason);
}

const char *client_peer(struct session *s)
{
    return client_of(s)->peer;
}

const char *client_local(struct session *s)
{
    struct client *c = client_of(s);

    if (!c->local)
        c->local = local_address(c->stream.fd);
    return c->local;
}

int client_fd(struct session *s)
{
    return client_of(s)->stream.fd;
}

size_t client_input_len(struct session *s)
{
    return stream_kept(&client_of(s)->stream);
}

size_t client_output_len(struct session *s)
{
    return client_backlog(client_of(s));
}
