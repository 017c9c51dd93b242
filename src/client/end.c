/* How a client ends, and what is looked at at the end of each turn and some times a second to
 * decide it.
 *
 * Every end has a reason that is logged and counted, and goes through client_end_now() in the end.
 * Does not run commands, and frees no client before client_flush_all() has been through.
 *
 * Four times a second (on_watch) those clients are looked at that are in a state with a time limit:
 * a request half there, replies not taken, reading stopped, an end under way (set->watched; a
 * client is put there at once and leaves the next time that nothing is wrong). Idle ones are looked
 * for once a second (on_tick) by going round in the list of all, an eighth of it at a time: an idle
 * client ends up to 8 s late, and no request pays for it. A client with locks, requests or
 * subscriptions is never idle. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/private.h"
#include "command/command.h"
#include "session/login.h"
#include "stats/stats.h"

/* How many clients are ended in one turn; END_SMALL requests, subscriptions or holds of one count
 * as another client. */
enum { ENDS_TURN = 200, END_SMALL = 16 };

enum { WATCH_MS = 250, LOG_LINES_PER_SECOND = 20, IDLE_ROUND = 8, IDLE_LEAST = 16 };

/* How each end is named, logged and counted. */
static const struct {
    const char *name;
    enum log_level level;
    uint64_t *counter;
} ends[CLIENT_END_COUNT] = {
    [CLIENT_END_EOF] = {"closed", LOG_LEVEL_DEBUG, &stats.disconnects_closed},
    [CLIENT_END_QUIT] = {"quit", LOG_LEVEL_DEBUG, &stats.disconnects_quit},
    [CLIENT_END_RESET] = {"reset", LOG_LEVEL_INFO, &stats.disconnects_reset},
    [CLIENT_END_TIMEOUT] = {"timeout", LOG_LEVEL_INFO, &stats.disconnects_timeout},
    [CLIENT_END_ERROR] = {"error", LOG_LEVEL_INFO, &stats.disconnects_error},
    [CLIENT_END_PROTOCOL] = {"protocol", LOG_LEVEL_INFO, &stats.disconnects_protocol},
    [CLIENT_END_TLS] = {"tls", LOG_LEVEL_INFO, &stats.disconnects_tls},
    [CLIENT_END_HTTP] = {"http", LOG_LEVEL_DEBUG, &stats.disconnects_http},
    [CLIENT_END_AUTH] = {"auth_timeout", LOG_LEVEL_INFO, &stats.disconnects_auth_timeout},
    [CLIENT_END_REQUEST] = {"slow_request", LOG_LEVEL_INFO, &stats.disconnects_slow_request},
    [CLIENT_END_IDLE] = {"idle", LOG_LEVEL_INFO, &stats.disconnects_idle},
    [CLIENT_END_OUTPUT] = {"output_limit", LOG_LEVEL_INFO, &stats.disconnects_output_limit},
    [CLIENT_END_KILLED] = {"killed", LOG_LEVEL_INFO, &stats.disconnects_killed},
    [CLIENT_END_ASKED] = {"lost", LOG_LEVEL_INFO, &stats.disconnects_lost},
    [CLIENT_END_SHUTDOWN] = {"shutdown", LOG_LEVEL_DEBUG, &stats.disconnects_shutdown},
};

/* Logs an end; with a limit, as strangers can come and go without end. */
static void log_end(const struct client *c, enum client_end end, const char *reason, int64_t now_ms)
{
    enum log_level level = ends[end].level;
    char object[32];

    if (end == CLIENT_END_RESET && c->stream.bytes_in == 0)
        level = LOG_LEVEL_DEBUG; /* a health check that only connects */
    if (!log_enabled(level) ||
        !log_burst(&c->set->ends_logged, "clients", now_ms, LOG_LINES_PER_SECOND))
        return;
    snprintf(object, sizeof object, "client %" PRIu64, c->session.id);
    log_write(level, object, "closed: %s reason=%s peer=%s commands=%" PRId64 " age_ms=%" PRId64,
              reason, ends[end].name, c->peer, c->session.n_commands,
              now_ms - c->session.created_ms);
}

static void count_bytes(struct client *c)
{
    stats.total_net_input_bytes += (uint64_t)(c->stream.bytes_in - c->counted_in);
    stats.total_net_output_bytes += (uint64_t)(c->stream.bytes_out - c->counted_out);
    c->counted_in = c->stream.bytes_in;
    c->counted_out = c->stream.bytes_out;
}

void client_ready(struct client *c)
{
    if (c->is_ready || c->dead)
        return;
    c->is_ready = true;
    TAILQ_INSERT_TAIL(&c->set->ready, c, ready);
}

static void set_watch(struct clients *set)
{
    static const struct timeval time = {.tv_usec = WATCH_MS * 1000};

    if (!event_pending(&set->watch, EV_TIMEOUT, NULL))
        event_add(&set->watch, &time);
}

void client_watch(struct client *c)
{
    if (c->is_watched || c->dead)
        return;
    c->is_watched = true;
    TAILQ_INSERT_TAIL(&c->set->watched, c, watched);
    set_watch(c->set);
}

/* ---- the end ---- */

void client_begin_end(struct client *c, enum client_end end, int64_t now_ms)
{
    c->end = (uint8_t)end;
    c->ending_since_ms = now_ms;
    client_watch(c);
    client_ready(c);
}

void client_finish(struct client *c, enum client_end end, const char *reason)
{
    int64_t now_ms = clock_ms();

    if (c->finishing || c->dead)
        return;
    c->finishing = c->session.closing = true;
    log_end(c, end, reason, now_ms);
    client_begin_end(c, end, now_ms);
    if (c->stream.paused)
        stream_resume(&c->stream); /* what still comes is dropped */
}

static void leave_lists(struct client *c)
{
    struct clients *set = c->set;

    TAILQ_REMOVE(&set->all, c, link);
    set->n_all--;
    if (c->stranger) {
        set->n_strangers--;
        client_peer_stranger(c->from, -1);
    }
    c->stranger = false;
    client_peer_leave(set, c->from);
    c->from = NULL;
    if (c->is_ready)
        TAILQ_REMOVE(&set->ready, c, ready);
    if (c->is_watched)
        TAILQ_REMOVE(&set->watched, c, watched);
    if (c->has_more) {
        TAILQ_REMOVE(&set->more, c, more);
        set->n_more--;
    }
    c->is_ready = c->is_watched = c->has_more = false;
    TAILQ_INSERT_TAIL(&set->dead, c, link);
}

void client_end_now(struct client *c, enum client_end end, const char *reason)
{
    struct clients *set = c->set;
    const struct session *s = &c->session;
    int64_t now_ms = clock_ms();

    if (c->dead)
        return;
    if (!c->finishing)
        log_end(c, end, reason, now_ms);
    c->dead = c->session.closing = true;
    leave_lists(c);
    set->ends_left -=
        1 + (int)((s->n_requests + s->n_async + s->n_subscriptions + s->n_holds + s->n_entered) /
                  END_SMALL);
    (*ends[end].counter)++;
    cmd_session_end(&c->session);
    set->events->on_end(set->arg, &c->session, end, now_ms);
    session_fini(&c->session, now_ms);
    count_bytes(c);
    /* After a FIN the kernel would keep for long what the peer does not take. */
    if (end == CLIENT_END_OUTPUT || end == CLIENT_END_REQUEST)
        stream_reset(&c->stream);
    else
        stream_close(&c->stream);
}

void client_free_dead(struct clients *set)
{
    struct client *c;

    while ((c = TAILQ_FIRST(&set->dead)) != NULL) {
        TAILQ_REMOVE(&set->dead, c, link);
        free(c->peer);
        free(c->local);
        free(c);
    }
}

/* ---- the end of a turn ---- */

/* Ends a client that does not take its replies; returns false then. */
static bool bound_output(struct client *c, int64_t now_ms)
{
    const struct conf_client *limits = &c->set->limits;
    size_t before = c->unsent;
    int64_t unsent = (int64_t)buf_len(&c->stream.out);
    int64_t hard = c->stranger ? CLIENT_STRANGER_OUT : limits->output_buffer_hard;

    c->unsent = (size_t)unsent;
    /* One reply may be longer than the limit; what comes behind it, while the peer takes nothing,
     * may not. */
    if (before > 0 && unsent > (int64_t)before && unsent > hard) {
        client_end_now(c, CLIENT_END_OUTPUT, "does not take its replies (output_buffer_hard)");
        return false;
    }
    if (c->full_since_ms == 0 && unsent > limits->output_buffer_soft) {
        c->full_since_ms = now_ms;
        client_watch(c);
    } else if (unsent <= limits->output_buffer_soft / 2) {
        c->full_since_ms = 0;
    }
    return true;
}

/* Ends a client that is to end when nothing is left to send. */
static void settle_end(struct client *c)
{
    const struct session *s = &c->session;
    bool waits = session_is_blocked(
        s); /* its request waits for other owners for an unknown time, and the peer is gone */

    if (s->patient)
        cmd_hurry(&c->session, clock_ms()); /* answered in the next flush */
    if (!c->finishing) {
        bool answered =
            s->n_requests == 0 && !c->has_more && c->stall == CLIENT_RUNS && c->unsent == 0;
        if (waits || answered)
            client_end_now(c, CLIENT_END_EOF, "closed by the peer");
        return;
    }
    if (c->shut || c->unsent > 0 || (s->n_requests > 0 && !waits))
        return;
    if (c->end != CLIENT_END_PROTOCOL || c->eof) {
        client_end_now(c, c->end, "");
        return;
    }
    /* The peer is still writing. Closing before it has read the error would take the error away
     * from it: the kernel answers unread bytes by an RST. */
    c->shut = true;
    stream_shutdown(&c->stream);
}

static void flush(struct client *c)
{
    int64_t now_ms = clock_ms(); /* fresh: a reply says for how long a lock is held */

    session_flush(&c->session, now_ms);
    stream_flush(&c->stream);
    if (c->dead)
        return;
    count_bytes(c);
    if (!bound_output(c, now_ms))
        return;
    client_unstall(c);
    if (c->finishing || c->eof)
        settle_end(c);
}

void client_flush_all(struct clients *set)
{
    static const struct timeval at_once;
    struct client_list later = TAILQ_HEAD_INITIALIZER(later);
    struct client *c;

    while ((c = TAILQ_FIRST(&set->ready)) != NULL) {
        TAILQ_REMOVE(&set->ready, c, ready);
        if (set->ends_left <= 0 && (c->finishing || c->eof)) {
            TAILQ_INSERT_TAIL(&later, c, ready);
            continue;
        }
        c->is_ready = false;
        flush(c);
    }
    TAILQ_CONCAT(&set->ready, &later, ready);
    bool more = stream_quota_refill(&set->quota) || !TAILQ_EMPTY(&set->ready);
    if (more && !event_pending(&set->turn, EV_TIMEOUT, NULL))
        event_add(&set->turn, &at_once);
    client_free_dead(set);
    client_refill(set);
    set->ends_left = ENDS_TURN;
}

/* ---- what must not last ---- */

static bool shakes_too_long(const struct client *c, int64_t now_ms)
{
    int64_t request_ms = c->set->limits.request_time_ms;
    int64_t most_ms =
        request_ms > 0 && request_ms < CLIENT_HANDSHAKE_MS ? request_ms : CLIENT_HANDSHAKE_MS;

    return stream_is_shaking(&c->stream) && now_ms - c->session.created_ms >= most_ms;
}

/* Who has said in time who he is gets the answer, however many passwords are checked before his;
 * what he sends after that is too late. */
static bool is_stranger_too_long(const struct client *c, int64_t now_ms)
{
    int64_t until_ms = c->stranger_since_ms + CLIENT_AUTH_MS - WATCH_MS;
    bool is_heard = login_waits(c->session.login) && c->login_since_ms <= until_ms;

    return c->stranger && now_ms > until_ms && !is_heard;
}

static void watch_one(struct client *c, int64_t now_ms)
{
    const struct conf_client *limits = &c->set->limits;
    bool ending = c->finishing || c->eof;

    if (ending && now_ms - c->ending_since_ms >= CLIENT_LINGER_MS)
        client_end_now(c, c->end, "took too long to take its last replies");
    else if (c->partial_since_ms > 0 && limits->request_time_ms > 0 &&
             now_ms - c->partial_since_ms >= limits->request_time_ms)
        client_end_now(c, CLIENT_END_REQUEST, "did not finish a request in time (request_time)");
    else if (!ending && is_stranger_too_long(c, now_ms))
        client_end_now(c, CLIENT_END_AUTH, "did not say in time who it is");
    else if (shakes_too_long(c, now_ms))
        client_end_now(c, CLIENT_END_REQUEST, "did not finish the handshake of TLS in time");
    else if (c->full_since_ms > 0 &&
             now_ms - c->full_since_ms >= limits->output_buffer_soft_time_ms)
        client_end_now(c, CLIENT_END_OUTPUT, "does not take its replies (output_buffer_soft)");
    else if (c->stream.paused && stream_probe(&c->stream) && session_is_blocked(&c->session))
        client_end_now(c, CLIENT_END_EOF, "closed by the peer");
    else if (!c->dead && !ending && c->partial_since_ms == 0 && c->full_since_ms == 0 &&
             !c->stream.paused && !c->stranger && !stream_is_shaking(&c->stream)) {
        c->is_watched = false;
        TAILQ_REMOVE(&c->set->watched, c, watched);
    }
}

void client_on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct clients *set = arg;
    int64_t now_ms = clock_ms();

    (void)fd, (void)what;
    if (set->limits.idle_timeout_ms == 0)
        return;
    for (size_t n = set->n_all / IDLE_ROUND + IDLE_LEAST;
         n > 0 && set->ends_left > 0 && !TAILQ_EMPTY(&set->all); n--) {
        struct client *c = TAILQ_FIRST(&set->all);
        const struct session *s = &c->session;
        bool idle = now_ms - s->last_ms >= set->limits.idle_timeout_ms && s->n_requests == 0 &&
                    s->n_async == 0 && s->n_holds == 0 && s->n_subscriptions == 0 && !s->monitor &&
                    !c->has_more;
        TAILQ_REMOVE(&set->all, c, link);
        TAILQ_INSERT_TAIL(&set->all, c, link);
        if (idle)
            client_end_now(c, CLIENT_END_IDLE, "idle for too long (idle_timeout)");
    }
}

void client_on_watch(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval at_once;
    struct clients *set = arg;
    int64_t now_ms = clock_ms();
    struct client *c, *next;

    (void)fd, (void)what;
    for (c = TAILQ_FIRST(&set->watched); c && set->ends_left > 0; c = next) {
        next = TAILQ_NEXT(c, watched); /* to end one client ends no other in the same call */
        watch_one(c, now_ms);
    }
    if (c) /* goes on in the next turn */
        event_add(&set->watch, &at_once);
    else if (!TAILQ_EMPTY(&set->watched))
        set_watch(set);
}
