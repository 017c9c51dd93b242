/*
 * One subscriber connection. What goes wrong here goes wrong for the master itself too, and is
 * logged there; so this file logs at debug level only.
 *
 * Invariant: `retry` is set exactly while there is no link.
 */
#include "redis/subscriber.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "conf/conf.h"
#include "net/reply.h"
#include "net/request.h"
#include "net/stream.h"
#include "net/tls.h"
#include "redis/master.h"

enum { RETRY_MS = 1000, KEEPALIVE_MS = 5000, SILENT_MS = 15000, BEAT_MS = 300, DEAF_MS = 1000 };

struct subscriber {
    struct subscriber_setup setup;
    int index, port;
    bool secure;
    struct ssl_ctx_st *tls; /* NULL: not secure, or its files are not good */
    char *name, *host, *user, *password, *channel, *server_name;
    char *tls_name;                /* as configured; NULL: the host */
    char peer[STREAM_ADDRESS_MAX]; /* of the master's link, when it was last joined; "": not yet */
    char said[MASTER_SAID_MAX];
    bool listens; /* to that channel: asked for, if there is a link */
    int n_unsaid; /* times that it was asked to say no more of `said`, and has not answered */
    struct stream stream;
    struct reply reply;
    struct event retry, beat;
    int64_t since_ms; /* subscribed; INT64_MAX: not yet */
    int64_t asked_ms; /* PING, or SUBSCRIBE, was sent then and is not answered; 0: it is */
};

static void set_subscriber_timer(struct event *e, int ms)
{
    const struct timeval later = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    event_add(e, &later);
}

static void tell_heard(const struct subscriber *w, int64_t since_ms, int64_t heard_ms)
{
    w->setup.on_heard(w->setup.arg, w->index, since_ms, heard_ms);
}

static void retry_later(struct subscriber *w)
{
    stream_close(&w->stream);
    event_del(&w->beat);
    w->since_ms = INT64_MAX;
    tell_heard(w, INT64_MAX, 0);
    w->setup.on_listens(w->setup.arg, w->index, false);
    set_subscriber_timer(&w->retry, RETRY_MS);
}

/* ---- the link is proved to be alive ---- */

static void on_subscriber_beat(evutil_socket_t fd, short what, void *arg)
{
    struct subscriber *w = arg;
    int64_t now_ms = clock_ms();
    (void)fd, (void)what;
    set_subscriber_timer(&w->beat, BEAT_MS);
    if (!w->asked_ms && w->since_ms != INT64_MAX) {
        w->asked_ms = now_ms;
        request_words(stream_out(&w->stream), "PING");
        stream_flush(&w->stream);
    } else if (now_ms - w->asked_ms > DEAF_MS) {
        tell_heard(w, INT64_MAX, 0); /* keeps the link: messages under way may still come */
    }
}

static void take_proof(struct subscriber *w)
{
    if (w->since_ms == INT64_MAX)
        w->since_ms = clock_ms();
    tell_heard(w, w->since_ms, w->asked_ms);
    w->asked_ms = 0;
}

static void ask_channel(struct subscriber *w, bool on, const char *channel)
{
    static const char *const commands[2][2] = {{"UNSUBSCRIBE", "SUBSCRIBE"},
                                               {"SUNSUBSCRIBE", "SSUBSCRIBE"}};

    request_strings(stream_out(&w->stream), 2,
                    (const char *const[]){commands[w->setup.is_sharded][on], channel});
}

/* Tells whether it is linked to another server than the master's link. */
static bool is_elsewhere(const struct subscriber *w)
{
    char peer[STREAM_ADDRESS_MAX];

    stream_peer_address(peer, w->stream.fd);
    return w->peer[0] && strcmp(peer, w->peer) != 0;
}

static void on_subscriber_open(void *arg)
{
    struct subscriber *w = arg;
    struct buf *out = stream_out(&w->stream);
    const struct stream_keepalive alive = {.idle_ms = KEEPALIVE_MS, .timeout_ms = SILENT_MS};
    if (is_elsewhere(w)) {
        retry_later(w);
        return;
    }
    stream_keepalive(&w->stream, &alive);
    reply_start(&w->reply, (size_t)w->setup.max_reply);
    if (w->password)
        request_auth(out, w->user, w->password);
    ask_channel(w, true, w->channel);
    w->n_unsaid = 0;
    if (w->listens)
        ask_channel(w, true, w->said);
    w->asked_ms = clock_ms();
    set_subscriber_timer(&w->beat, BEAT_MS);
    stream_flush(&w->stream);
}

void subscriber_listen(struct subscriber *w, bool on)
{
    if (w->listens == on)
        return;
    w->listens = on;
    if (!on)
        w->setup.on_listens(w->setup.arg, w->index, false);
    if (!event_pending(&w->beat, EV_TIMEOUT, NULL))
        return; /* on_subscriber_open() asks */
    ask_channel(w, on, w->said);
    w->n_unsaid += !on;
    stream_flush(&w->stream);
}

static void hear_message(struct subscriber *w, const struct reply_value *v)
{
    const char *text = reply_text(&w->reply, &v[3]);
    if (!reply_is_text(&w->reply, &v[2], w->said))
        w->setup.on_call(w->setup.arg, w->index, text, v[3].len);
    else if (w->listens)
        w->setup.on_said(w->setup.arg, w->index, text, v[3].len);
}

/* Takes ["subscribe" and the like, channel, n], or ["pong", ""]. What is said of the channel of all
 * brokers may have been asked for after the proof that is waited for. Returns -1 when the node says
 * unasked that it does not serve a channel any more. */
static int take_word(struct subscriber *w, const struct reply_value *v)
{
    bool subscribed =
        reply_is_text(&w->reply, &v[1], w->setup.is_sharded ? "ssubscribe" : "subscribe");
    bool has_channel = w->reply.count > 2 && v[2].type == REPLY_TEXT;
    if (has_channel && reply_is_text(&w->reply, &v[1], "sunsubscribe")) {
        bool is_asked = w->n_unsaid > 0 && reply_is_text(&w->reply, &v[2], w->said);
        w->n_unsaid -= is_asked;
        return is_asked ? 0 : -1;
    }
    if (w->reply.count > 2 && reply_is_text(&w->reply, &v[2], w->said)) {
        if (subscribed && w->listens)
            w->setup.on_listens(w->setup.arg, w->index, true);
    } else if (w->asked_ms && (subscribed || reply_is_text(&w->reply, &v[1], "pong"))) {
        take_proof(w);
    }
    return 0;
}

/* Takes a message, ["message", channel, text], or a word about the subscription. Returns -1 when
 * the link is of no use. */
static int take_message(struct subscriber *w)
{
    const struct reply_value *v = w->reply.values;
    if (v->type == REPLY_ERROR) {
        char words[REPLY_WORDS_MAX];
        log_debug(w->name, "cannot subscribe: %s",
                  reply_words(words, sizeof words, reply_text(&w->reply, v), v->len));
        return -1;
    }
    if (v->type == REPLY_ARRAY && v->integer == 3 && w->reply.count == 4 &&
        v[2].type == REPLY_TEXT && v[3].type == REPLY_TEXT &&
        reply_is_text(&w->reply, &v[1], w->setup.is_sharded ? "smessage" : "message"))
        hear_message(w, v);
    else if (v->type == REPLY_ARRAY && w->reply.count > 1)
        return take_word(w, v);
    return 0;
}

static size_t on_subscriber_bytes(void *arg, const char *data, size_t len)
{
    struct subscriber *w = arg;
    enum reply_result result = REPLY_MORE;
    size_t used = 0;
    while (used < len && result != REPLY_BROKEN) {
        size_t n = len - used < REPLY_FEED_MAX ? len - used : REPLY_FEED_MAX;
        reply_feed(&w->reply, data + used, n);
        used += n;
        while ((result = reply_next(&w->reply)) == REPLY_READY) {
            if (take_message(w) != 0) {
                retry_later(w);
                return len;
            }
        }
    }
    if (result == REPLY_BROKEN) {
        log_debug(w->name, "subscriber link dropped: %s", w->reply.error);
        retry_later(w);
    }
    return len;
}

static void on_subscriber_end(void *arg, enum stream_end end, int err, const char *text)
{
    struct subscriber *w = arg;
    (void)end, (void)err;
    log_debug(w->name, "subscriber link lost: %s", text);
    retry_later(w);
}

static const struct stream_events stream_events = {
    .on_open = on_subscriber_open,
    .on_bytes = on_subscriber_bytes,
    .on_end = on_subscriber_end,
};

static void on_subscriber_retry(evutil_socket_t fd, short what, void *arg)
{
    struct subscriber *w = arg;
    (void)fd, (void)what;
    if (!w->host || (w->secure && !w->tls))
        retry_later(w);
    else {
        stream_connect(&w->stream, w->setup.dns, w->host, w->port);
        stream_keep_to(&w->stream, w->peer);
    }
}

static void secure_subscriber(struct subscriber *w)
{
    free(w->server_name);
    w->server_name = util_strdup(master_tls_name(w->tls_name, w->host));
    if (w->tls)
        stream_secure(&w->stream, w->tls, w->server_name);
}

void subscriber_configure(struct subscriber *w, const struct conf_master *conf)
{
    char error[TLS_REASON_MAX];
    struct ssl_ctx_st *fresh;

    free(w->user);
    free(w->password);
    w->user = util_strdup(conf->user);
    w->password = util_strdup(conf->password);
    if (!w->secure || !(fresh = master_tls_new(conf, error, sizeof error)))
        return;
    tls_context_free(w->tls);
    w->tls = fresh;
    free(w->tls_name);
    w->tls_name = util_strdup(conf->server_name);
    secure_subscriber(w);
}

void subscriber_move(struct subscriber *w, const char *host, int port)
{
    free(w->host);
    w->host = util_strdup(host);
    w->port = port;
    w->peer[0] = 0;
    secure_subscriber(w);
    retry_later(w);
    if (host)
        event_active(&w->retry, EV_TIMEOUT, 0);
}

void subscriber_keep_to(struct subscriber *w, const char *peer)
{
    snprintf(w->peer, sizeof w->peer, "%s", peer);
    if (!stream_is_open(&w->stream) || !is_elsewhere(w))
        return;
    retry_later(w);
    event_active(&w->retry, EV_TIMEOUT, 0);
}

struct subscriber *subscriber_new(const struct subscriber_setup *setup,
                                  const struct conf_master *conf, int index)
{
    struct subscriber *w = util_alloc(sizeof *w);
    w->setup = *setup;
    w->index = index;
    w->port = conf->is_unix ? 0 : conf->port;
    w->name = util_strdup(conf->name);
    w->host = conf->by_sentinels || conf->by_cluster ? NULL : util_strdup(conf->host);
    w->channel = util_strdup(setup->channel);
    master_said_channel(setup->partition, conf->db, w->said);
    w->secure = conf->tls;
    stream_init(&w->stream, setup->base, &stream_events, w);
    subscriber_configure(w, conf);
    w->since_ms = INT64_MAX;
    event_assign(&w->beat, setup->base, -1, 0, on_subscriber_beat, w);
    event_assign(&w->retry, setup->base, -1, 0, on_subscriber_retry, w);
    event_active(&w->retry, EV_TIMEOUT, 0);
    return w;
}

void subscriber_free(struct subscriber *w)
{
    if (!w)
        return;
    event_del(&w->retry);
    event_del(&w->beat);
    stream_close(&w->stream);
    reply_fini(&w->reply);
    free(w->name);
    free(w->host);
    free(w->user);
    free(w->password);
    free(w->channel);
    tls_context_free(w->tls);
    free(w->server_name);
    free(w->tls_name);
    free(w);
}
