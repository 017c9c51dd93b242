/* Which clients there are: how one connects, and what commands may know of it.
 *
 * Owns every client from client_accept() to the end of the turn in which it ended. Its memory is
 * never freed earlier, as a caller further up the stack may still hold it. How its commands are run
 * is in run.c, how it ends in end.c; what its commands mean is not known here.
 *
 *     accept --> RUNS --client_finish--> FINISHING --replies sent--> DEAD --end of turn--> freed
 *                 |--peer's FIN--> EOF --all answered, or one waits----^
 *                 +--client_end_now: reset, time-out, limits-----------+ */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/private.h"
#include "command/command.h"
#include "session/user.h"
#include "stats/stats.h"

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

static void on_stream_end(void *arg, enum stream_end end, int err, const char *text)
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
    if (c->finishing || c->eof) /* it had said QUIT, or sent its FIN, before the connection broke */
        client_end_now(c, c->end, text);
    else
        client_end_now(c, of_stream[end], text);
}

static const struct stream_events stream_events = {
    .on_bytes = client_on_bytes,
    .on_eof = on_eof,
    .on_drain = on_drain,
    .on_end = on_stream_end,
};

/* ---- what the session tells ---- */

void client_on_ready(struct session *s)
{
    client_ready(client_of(s));
}

/* A peer that has gone waits for nobody. */
static void on_blocked(struct session *s)
{
    const struct client *c = client_of(s);

    if (c->eof || c->finishing)
        client_ready(client_of(s));
}

static void on_close(struct session *s, const char *reason)
{
    client_finish(client_of(s), CLIENT_END_ASKED, reason);
}

static const struct session_events session_events = {
    .on_ready = client_on_ready,
    .on_unblocked = client_on_ready,
    .on_blocked = on_blocked,
    .on_close = on_close,
    .on_written = cmd_written,
};

/* ---- the set ---- */

static void on_unpause(evutil_socket_t fd, short what, void *arg)
{
    struct clients *set = arg;
    struct client *c;

    (void)fd, (void)what;
    set->paused_until_ms = 0;
    TAILQ_FOREACH(c, &set->all, link)
        if (c->stall == CLIENT_PAUSED)
            client_ready(c);
}

void client_pause_all(struct clients *set, int64_t until_ms, unsigned classes)
{
    int64_t left_ms = until_ms - clock_ms();

    set->paused_until_ms = until_ms;
    set->paused_classes = classes;
    if (left_ms <= 0) {
        event_del(&set->unpause);
        on_unpause(-1, 0, set);
        return;
    }
    struct timeval left = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    event_add(&set->unpause, &left);
}

static void take_limits(struct clients *set, const struct conf_client *limits)
{
    set->limits = *limits;
    set->resp = (struct resp_limits){.max_args = (size_t)limits->max_request_args,
                                     .max_arg_len = (size_t)limits->max_arg_len,
                                     .max_request_len = (size_t)limits->max_request,
                                     .max_inline_len = (size_t)limits->max_inline};
}

static void keep_alive(struct client *c)
{
    const struct conf_client *limits = &c->set->limits;
    const struct stream_keepalive times = {.idle_ms = limits->tcp_keepalive_ms,
                                           .timeout_ms = limits->tcp_user_timeout_ms};

    stream_keepalive(&c->stream, &times);
}

struct clients *client_init(struct event_base *base, const struct conf_client *limits,
                            const struct client_events *events, void *arg)
{
    struct clients *set = util_alloc(sizeof *set);
    const struct timeval second = {.tv_sec = 1};

    set->base = base;
    take_limits(set, limits);
    set->turn_left = CLIENT_TURN_ALL;
    stream_quota_init(&set->quota);
    set->events = events;
    set->arg = arg;
    TAILQ_INIT(&set->all);
    TAILQ_INIT(&set->dead);
    TAILQ_INIT(&set->ready);
    TAILQ_INIT(&set->more);
    TAILQ_INIT(&set->watched);
    event_assign(&set->turn, base, -1, 0, client_on_turn, set);
    set->strict = (struct resp_limits){.max_args = 8,
                                       .max_arg_len = 1024,
                                       .max_request_len = 8 * 1024,
                                       .max_inline_len = 1024,
                                       .of_strangers = true};
    event_assign(&set->unpause, base, -1, 0, on_unpause, set);
    event_assign(&set->watch, base, -1, 0, client_on_watch, set);
    event_assign(&set->tick, base, -1, EV_PERSIST, client_on_tick, set);
    event_add(&set->tick, &second);
    client_login_init(set);
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
    client_login_fini(set);
    event_del(&set->tick);
    event_del(&set->watch);
    resp_scratch_fini(&set->scratch);
    free(set);
}

void client_set_limits(struct clients *set, const struct conf_client *limits)
{
    struct client *c;

    take_limits(set, limits);
    TAILQ_FOREACH(c, &set->all, link) {
        keep_alive(c);
        client_ready(c); /* with a wider limit it may go on */
    }
}

void client_set_tls(struct clients *set, struct ssl_ctx_st *context)
{
    set->tls = context;
}

/* ---- a client comes ---- */

/* Answers an error and closes. */
static void turn_away(int fd, bool tls, const char *text)
{
    char dropped[1024];

    /* Reads what it has sent: bytes left unread turn the close into a reset, which can take the
     * text away from the peer. */
    if (!tls && send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        shutdown(fd, SHUT_WR);
    while (recv(fd, dropped, sizeof dropped, MSG_DONTWAIT) == (ssize_t)sizeof dropped) {
    }
    close(fd);
}

enum refusal { TOO_MANY, TOO_MANY_OF_ADDRESS, TOO_MANY_STRANGERS, NOT_REFUSED };

static void refuse_client(enum refusal refusal, int fd, bool tls, const struct sockaddr *peer,
                          socklen_t peer_len)
{
    static const struct {
        uint64_t *counter;
        const char *why, *answer;
    } refusals[] = {
        [TOO_MANY] = {&stats.rejected_max_clients, "max_clients reached",
                      "-ERR max number of clients reached\r\n"},
        [TOO_MANY_OF_ADDRESS] = {&stats.rejected_per_address, "max_clients_per_address reached",
                                 "-ERR max number of clients of one address reached "
                                 "(max_clients_per_address)\r\n"},
        [TOO_MANY_STRANGERS] = {&stats.rejected_unauthenticated,
                                "too many connections have not said who they are",
                                "-ERR max number of unauthenticated clients reached\r\n"},
    };
    static struct log_limit limits[NOT_REFUSED];
    char text[STREAM_ADDRESS_MAX];

    ++*refusals[refusal].counter;
    if (log_limited(&limits[refusal], clock_ms())) {
        stream_address(text, peer, peer_len);
        log_warn("clients", "%s, a connection is refused peer=%s swallowed=%" PRIu64,
                 refusals[refusal].why, text, limits[refusal].swallowed);
    }
    turn_away(fd, tls, refusals[refusal].answer);
}

/* Returns the uid of a peer over a Unix socket; -1 over any other. */
static int64_t uid_of_peer(int fd, const struct sockaddr *peer)
{
    struct ucred cred;
    socklen_t len = sizeof cred;

    if (peer->sa_family != AF_UNIX || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
        return -1;
    return cred.uid;
}

static void set_own_user(struct client *c, struct user *user)
{
    struct session *s = &c->session;

    user_unref(s->own_user);
    s->own_user = user ? user_ref(user) : NULL;
    session_set_user(s, user);
}

void client_look_at_user(struct client *c)
{
    char name[128];

    if (!c->certificate_seen && c->stream.tls && !stream_is_shaking(&c->stream)) {
        struct user *user = NULL;
        c->certificate_seen = true;
        if (stream_peer_name(&c->stream, name, sizeof name))
            user = user_of_certificate(name);
        if (user)
            set_own_user(c, user);
    }
    bool stranger = users_active() && !c->session.user;
    if (stranger == c->stranger)
        return;
    c->stranger = stranger;
    client_peer_stranger(c->from, stranger ? 1 : -1);
    c->parser.limits = stranger ? &c->set->strict : &c->set->resp;
    if (stranger) {
        c->set->n_strangers++;
        c->stranger_since_ms = clock_ms();
        client_watch(c);
    } else {
        c->set->n_strangers--;
    }
}

void client_users_changed(struct clients *set)
{
    struct client *c;

    TAILQ_FOREACH(c, &set->all, link) {
        struct session *s = &c->session;
        bool gone = s->user && s->user->gone, unknown = !s->user && !c->stranger;
        if (s->own_user && s->own_user->gone) {
            user_unref(s->own_user);
            s->own_user = NULL;
        }
        if (!users_active())
            set_own_user(c, NULL);
        else if (unknown && user_of_nobody())
            set_own_user(c, user_of_nobody());
        else if (gone)
            client_finish(c, CLIENT_END_KILLED, "its user is no longer there");
        else if (s->user && s->user->changed && (s->monitor || s->n_subscriptions > 0))
            client_finish(c, CLIENT_END_KILLED, "the rights of its user have changed");
        else if (unknown)
            client_finish(c, CLIENT_END_KILLED, "users have to say now who they are");
        client_look_at_user(c);
    }
    client_login_turn(set);
}

static enum refusal look_for_room(struct clients *set, const struct sockaddr *peer, bool stranger)
{
    int64_t n_clients, n_strangers;

    client_peer_count(set, peer, &n_clients, &n_strangers);
    if ((int64_t)set->n_all >= set->limits.max_clients)
        return TOO_MANY;
    if (n_clients >= set->limits.max_clients_per_address)
        return TOO_MANY_OF_ADDRESS;
    if (stranger &&
        (set->n_strangers >= CLIENT_STRANGERS_MAX || n_strangers >= CLIENT_STRANGERS_PEER_MAX))
        return TOO_MANY_STRANGERS;
    return NOT_REFUSED;
}

void client_accept(void *clients, int fd, bool tls, const struct sockaddr *peer, socklen_t peer_len)
{
    struct clients *set = clients;
    int64_t now_ms = clock_ms();

    stats.total_connections_received++;
    int64_t uid = uid_of_peer(fd, peer);
    struct user *user = uid >= 0 ? user_of_uid(uid) : NULL;
    user = user ? user : user_of_nobody(); /* that of connections that do not log in, if any */
    enum refusal refusal = look_for_room(set, peer, users_active() && !user);
    if (refusal != NOT_REFUSED) {
        refuse_client(refusal, fd, tls, peer, peer_len);
        return;
    }
    struct client *c = util_alloc(sizeof *c);
    c->set = set;
    c->from = client_peer_join(set, peer);
    c->peer = client_peer_address(fd, peer, peer_len);
    stream_init(&c->stream, set->base, &stream_events, c);
    c->stream.quota = &set->quota;
    session_init(&c->session, ++set->last_id, &session_events, stream_out(&c->stream), now_ms);
    c->session.origin = client_peer_origin(peer, uid);
    resp_parser_init(&c->parser, &set->resp);
    TAILQ_INSERT_TAIL(&set->all, c, link);
    set->n_all++;
    if (tls) {
        stream_adopt_tls(&c->stream, fd, set->tls);
        client_watch(c); /* a handshake has a time limit */
    } else {
        stream_adopt(&c->stream, fd);
    }
    keep_alive(c);
    c->certificate_seen = !tls;
    set_own_user(c, user);
    client_look_at_user(c);
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

size_t client_count(const struct clients *set, size_t *n_strangers)
{
    *n_strangers = set->n_strangers;
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
        c->local = client_local_address(c->stream.fd);
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
