/* From the bytes of a client to its commands, and when to stop.
 *
 * A client runs at most CLIENT_TURN commands in a turn of the loop, and as many fewer as some of
 * them do more than usual; what is left waits in the stream and goes on in the next turn, in the
 * order in which clients began to wait. All clients that have just sent something run at most
 * CLIENT_TURN_ALL together, and so do those with commands left; and no more sockets are read or
 * written than their quota allows (stream.h). What the broker itself has to do in a turn (server.c)
 * never waits for more than that. A client runs no command while one of its requests is parked, or
 * may yet be (as behind BLPOP), while too many are in flight, or while the peer does not take its
 * replies. Reading goes on meanwhile, so that the end of the connection is seen, until more than
 * one longest request has piled up.
 *
 * Invariants: bytes are left in the stream only when the client stalls, has_more, or a request is
 * half there; only the last is the peer's fault and counts against its time (partial_since_ms). */
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/private.h"
#include "command/command.h"
#include "session/login.h"
#include "stats/stats.h"

enum { STRANGER_LOG_MS = 60 * 1000 };

static void queue_more(struct client *c)
{
    static const struct timeval at_once;
    struct clients *set = c->set;

    if (c->has_more || c->dead)
        return;
    c->has_more = true;
    TAILQ_INSERT_TAIL(&set->more, c, more);
    set->n_more++;
    /* A timer, as event_active() would still run in this turn, again and again. */
    if (!event_pending(&set->turn, EV_TIMEOUT, NULL))
        event_add(&set->turn, &at_once);
}

static bool may_run(const struct client *c)
{
    const struct conf_client *limits = &c->set->limits;
    const struct session *s = &c->session;

    return !s->closing && !session_holds_back(s) && s->n_requests < limits->max_pending_requests &&
           c->full_since_ms == 0 && (int64_t)client_backlog(c) <= limits->output_buffer_soft;
}

void client_unstall(struct client *c)
{
    if (c->stall == CLIENT_RUNS || !may_run(c))
        return;
    if (c->stall == CLIENT_BARRIER && c->session.n_requests > 0)
        return;
    if (c->stall == CLIENT_LOGIN && login_waits(c->session.login))
        return;
    if (c->stall == CLIENT_PAUSED && c->set->paused_until_ms > 0)
        return;
    c->stall = CLIENT_RUNS;
    queue_more(c);
}

/* Returns true for the first word of an HTTP request, as Redis does: a browser, or a page that
 * forges its requests, must not have commands run. */
static bool is_http(const struct resp_arg *word)
{
    return (word->len == 4 && strncasecmp(word->ptr, "post", 4) == 0) ||
           (word->len == 5 && strncasecmp(word->ptr, "host:", 5) == 0);
}

static void refuse_http(struct client *c, int64_t now_ms)
{
    stats.protocol_errors_http++;
    if (log_limited_to(&c->set->http_logged, now_ms, STRANGER_LOG_MS))
        log_warn("clients",
                 "%s speaks HTTP: somebody may try to make a browser or a server send requests "
                 "here; the connection is closed (said at most once a minute)",
                 c->peer);
    client_finish(c, CLIENT_END_HTTP, "speaks HTTP");
}

/* Returns true when the bytes begin like a TLS handshake: type and major version of its first
 * record. No request begins like this. */
static bool is_tls(const struct client *c, const char *data, size_t len)
{
    return c->session.n_commands == 0 && !c->stream.tls && len >= 2 && data[0] == 0x16 &&
           data[1] == 0x03;
}

static void refuse_tls(struct client *c, int64_t now_ms)
{
    stats.protocol_errors_tls++;
    if (log_limited_to(&c->set->tls_logged, now_ms, STRANGER_LOG_MS))
        log_warn("clients",
                 "%s speaks TLS to %s, where it is not spoken (tls:// in listen says where it is); "
                 "the connection is closed (said at most once a minute)",
                 c->peer, client_local(&c->session));
    client_finish(c, CLIENT_END_TLS, "speaks TLS to a port without it");
}

static void refuse_protocol(struct client *c)
{
    struct resp_writer w = session_reply(&c->session);

    stats.protocol_errors_resp++;
    stats_error("ERR");
    resp_error(&w, "ERR Protocol error: %s", c->parser.error);
    session_reply_end(&c->session);
    client_finish(c, CLIENT_END_PROTOCOL, c->parser.error);
}

/* Returns CLIENT_RUNS when this command may run now, else why it has to wait. */
static enum client_stall look_before(const struct client *c, const struct resp_arg *word)
{
    if (c->session.n_requests > 0 && cmd_must_wait(&c->session, word))
        return CLIENT_BARRIER;
    if (c->set->paused_until_ms > 0) {
        const struct cmd *cmd = cmd_find(word);
        if (cmd && (cmd->flags & c->set->paused_classes))
            return CLIENT_PAUSED;
    }
    return CLIENT_RUNS;
}

static void take_from_turn(struct client *c, int *left, int cost)
{
    *left -= cost;
    c->set->turn_left -= cost;
}

/* Runs the commands that may run, and returns how many bytes these were. Sets stall, has_more or
 * `partial` when some are left. */
static size_t run_commands(struct client *c, const char *data, size_t len, int64_t now_us,
                           bool *partial)
{
    const struct resp_parser *p = &c->parser;
    size_t used = 0, n;

    if (!c->certificate_seen)
        client_look_at_user(c);
    if (is_tls(c, data, len)) {
        refuse_tls(c, now_us / 1000);
        return len;
    }
    for (int left = CLIENT_TURN; used < len;) {
        if (!may_run(c)) {
            c->stall = CLIENT_BUSY;
            return used;
        }
        if (left <= 0 || c->set->turn_left <= 0) {
            queue_more(c);
            return used;
        }
        switch (resp_parse(&c->parser, &c->set->scratch, data + used, len - used, &n)) {
        case RESP_MORE:
            *partial = true;
            return used + n;
        case RESP_REFUSED:
            cmd_refuse_request(&c->session, p->error);
            used += n;
            take_from_turn(c, &left, 1);
            continue;
        case RESP_ERROR:
            refuse_protocol(c);
            return used;
        case RESP_REQUEST:
            break;
        }
        if (p->argc > 0 && is_http(&p->argv[0])) {
            refuse_http(c, now_us / 1000);
            return used;
        }
        if (p->argc > 0 && c->session.patient)
            cmd_hurry(&c->session, now_us / 1000);
        if (p->argc > 0 && (c->stall = (uint8_t)look_before(c, &p->argv[0])) != CLIENT_RUNS)
            return used;
        if (p->argc == 0) {
            used += n;
            continue;
        }
        bool waits = !cmd_dispatch(&c->session, p->argc, p->argv, now_us / 1000, now_us);
        take_from_turn(c, &left, cmd_cost());
        if (waits) {
            c->stall = CLIENT_LOGIN;
            c->login_since_ms = now_us / 1000;
            client_login_arm(c->set);
            return used;
        }
        used += n;
        c->session.n_commands++;
        client_look_at_user(c);
    }
    return used;
}

/* Stops reading when too much is left, `kept` bytes, or goes on. Never stops for a request that is
 * half there: the parser bounds that one. */
static void bound_input(struct client *c, size_t kept)
{
    size_t bound = c->set->resp.max_request_len;
    bool waits = c->stall != CLIENT_RUNS || c->has_more;

    if (waits && kept > bound) {
        stream_pause(&c->stream);
        client_watch(c);
    } else if (!waits || kept <= bound / 2) {
        stream_resume(&c->stream);
    }
}

size_t client_on_bytes(void *arg, const char *data, size_t len)
{
    struct client *c = arg;
    int64_t now_us = clock_us();
    bool partial = false;
    size_t used = 0;

    if (c->session.closing)
        return len; /* whatever comes is dropped */
    c->session.last_ms = now_us / 1000;
    if (!c->has_more && c->stall == CLIENT_RUNS)
        used = run_commands(c, data, len, now_us, &partial);
    if (c->session.closing) {
        client_finish(c, CLIENT_END_QUIT, "QUIT"); /* unless it is finishing already */
        return len;
    }
    if (!partial) {
        c->partial_since_ms = 0;
    } else if (c->partial_since_ms == 0 || used > 0) {
        c->partial_since_ms = now_us / 1000;
        client_watch(c);
    }
    bound_input(c, len - used);
    return used;
}

void client_on_turn(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval at_once;
    struct clients *set = arg;
    struct client *c;

    (void)fd, (void)what;
    stream_quota_serve(&set->quota);
    client_refill(set);
    for (size_t n = set->n_more; n > 0 && (c = TAILQ_FIRST(&set->more)) != NULL; n--) {
        if (set->turn_left <= 0) { /* the clients that are left come first in the next turn */
            event_add(&set->turn, &at_once);
            return;
        }
        TAILQ_REMOVE(&set->more, c, more);
        set->n_more--;
        c->has_more = false;
        stream_offer(&c->stream);
        if (!c->has_more && c->eof)
            client_ready(c); /* this may have been its last command */
    }
}
