/*
 * The other brokers as the server sees them: asks them how they are, and sends clients to one of
 * them while this one cannot grant.
 *
 * Clients are sent away by closing the connections on which nothing is under way, those that came
 * before that: the client connects again and asks where to. Who comes later knows what he does, and
 * hears why there are no locks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "lock/view.h"
#include "net/tls.h"
#include "server/private.h"
#include "session/channel.h"
#include "session/peer_link.h"
#include "session/pubsub.h"

/* Who has asked before clients are sent away connects a moment later. */
enum { LATE_MS = 1000 };

static void take_address(struct peers_address *out, const struct conf_address *a)
{
    _Static_assert(sizeof out->host >= sizeof a->host, "a host may be too long");
    memcpy(out->host, a->host, sizeof a->host);
    out->port = a->port;
    out->tls = a->tls;
}

static void on_word(void *arg, int i, enum peers_word word)
{
    struct server *s = arg;
    int64_t now_ms = clock_ms();

    peers_hear(&s->peers, i, word, now_ms);
    server_judge_peers(s, now_ms);
}

/* Links to the peers, for the first of the names that they are called by. */
static struct peer_links *make_links(struct server *s)
{
    const char *rest = s->conf.service;
    size_t len;
    const char *name = conf_next_name(&rest, &len);

    if (name == NULL || s->peers.n == 0)
        return NULL;
    char *service = util_memdup(name, len);
    const struct peer_links_setup setup = {
        .base = s->base, .dns = s->dns, .service = service, .on_word = on_word, .arg = s};
    struct peer_links *links = peer_links_new(&setup, &s->peers);
    free(service);
    return links;
}

void server_configure_peers(struct server *s)
{
    struct conf_address found[CONF_PEERS_MAX];
    struct peers_address own = {.port = 0}, others[CONF_PEERS_MAX];

    if (conf_addresses(s->conf.announce, found) > 0)
        take_address(&own, &found[0]);
    int n = conf_addresses(s->conf.peers, found);
    for (int i = 0; i < n; i++)
        take_address(&others[i], &found[i]);
    peer_links_free(s->peer_links);
    peers_configure(&s->peers, &own, others, n);
    s->peer_links = make_links(s);
    server_secure_peers(s);
}

void server_secure_peers(struct server *s)
{
    struct ssl_ctx_st *old = s->peers_tls;
    char error[TLS_REASON_MAX];

    s->peers_tls = NULL;
    if (server_peers_tls_new(&s->conf, &s->peers_tls, error, sizeof error) != 0)
        log_error("tls", "%s: peers with tls:// are not asked", error);
    if (s->peer_links)
        peer_links_secure(s->peer_links, s->peers_tls);
    tls_context_free(old);
}

static enum peers_own own_state(struct server *s, int64_t now_ms)
{
    if (s->phase != SERVER_RUNS || view_is_paused(&s->broker))
        return PEERS_LEAVES;
    return view_has_quorum(&s->broker, now_ms) && !view_veto(&s->broker) ? PEERS_GRANTS
                                                                         : PEERS_LACKS_QUORUM;
}

static void publish_move(const struct server *s, const struct peers_move *m, int64_t now_ms)
{
    char text[CONF_BROKER_NAME_MAX + 2 * PEERS_HOST_MAX + 40];
    const char *rest = s->conf.service, *name;
    size_t len;

    log_info("server", "clients are sent from %s:%d to %s:%d", m->from.host, m->from.port,
             m->to.host, m->to.port);
    while ((name = conf_next_name(&rest, &len)) != NULL) {
        int n = snprintf(text, sizeof text, "%.*s %s %d %s %d", (int)len, name, m->from.host,
                         m->from.port, m->to.host, m->to.port);
        (void)pubsub_publish(CHANNEL_SWITCHES, sizeof CHANNEL_SWITCHES - 1, text, (size_t)n,
                             now_ms);
    }
}

/* Who holds something stays where it can be given back; without a majority it cannot, and is better
 * taken along by RENEW. */
static bool may_leave(const struct server *s, struct session *session)
{
    if (session->n_requests > 0 || session->n_async > 0 || session->multi || session->transaction ||
        session->monitor || session->asks_where || session->closing ||
        client_input_len(session) > 0)
        return false;
    if (session->n_holds > 0 || session->n_entered > 0)
        return s->peers.state == PEERS_LACKS_QUORUM;
    return session->n_subscriptions == 0;
}

static void send_away(struct session *session, void *arg)
{
    const struct server *s = arg;

    if (session->created_ms <= s->sent_away_ms + LATE_MS && may_leave(s, session))
        client_kill(session, "another broker can grant locks, this one cannot");
}

void server_judge_peers(struct server *s, int64_t now_ms)
{
    struct peers_move moves[PEERS_MOVES_MAX];
    int old = s->peers.named;

    peers_set_own(&s->peers, own_state(s, now_ms), now_ms);
    int n = peers_judge(&s->peers, now_ms, moves);
    for (int i = 0; i < n; i++)
        publish_move(s, &moves[i], now_ms);
    if (s->peers.named == PEERS_SELF)
        return;
    if (old == PEERS_SELF)
        s->sent_away_ms = now_ms;
    if (s->clients)
        client_each(s->clients, send_away, s);
}

void server_free_peers(struct server *s)
{
    peer_links_free(s->peer_links);
    s->peer_links = NULL;
    tls_context_free(s->peers_tls);
    s->peers_tls = NULL;
}
