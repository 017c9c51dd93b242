/*
 * TLS as the server sees it: which files make which context, and when one takes the place of
 * another.
 *
 * Invariant: what is in force (s->tls) has been made whole from files that fit together; a reload
 * in which one does not leaves it as it is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "client/listener.h"
#include "net/tls.h"
#include "redis/sentinel.h"
#include "server/private.h"

enum { DAY_S = 24 * 60 * 60, LOOK_EVERY_MS = DAY_S * 1000 };

static int check_masters(const struct conf *conf, char *error, size_t error_size)
{
    char why[TLS_REASON_MAX];

    for (size_t i = 0; i < conf->master_count; i++) {
        const struct conf_master *m = &conf->masters[i];
        struct ssl_ctx_st *of_master = NULL, *of_sentinels = NULL;
        const char *bad = NULL;
        if (m->tls && !(of_master = master_tls_new(m, why, sizeof why)))
            bad = "";
        else if (m->sentinel_tls && !(of_sentinels = sentinels_tls_new(m, why, sizeof why)))
            bad = "sentinel_";
        tls_context_free(of_master);
        tls_context_free(of_sentinels);
        if (!bad)
            continue;
        snprintf(error, error_size, "masters: %s.%s%s", m->name, bad, why);
        return -1;
    }
    return 0;
}

int server_peers_tls_new(const struct conf *conf, struct ssl_ctx_st **out, char *error,
                         size_t error_size)
{
    const struct tls_files files = {
        .certificate = conf->tls_certificate, .key = conf->tls_key, .ca = conf->tls_peer_ca};
    struct conf_address found[CONF_PEERS_MAX];
    char why[TLS_REASON_MAX];
    bool is_wanted = false;

    for (int i = conf_addresses(conf->peers, found) - 1; i >= 0; i--)
        is_wanted |= found[i].tls;
    *out = NULL;
    if (!is_wanted)
        return 0;
    *out = tls_client_new(&files, why, sizeof why);
    if (*out)
        return 0;
    /* of the certificate that is for clients, too, or of the option peer_ca */
    snprintf(error, error_size, "tls: %s%s", strncmp(why, "ca ", 3) == 0 ? "peer_" : "", why);
    return -1;
}

static int check_peers(const struct conf *conf, char *error, size_t error_size)
{
    struct ssl_ctx_st *context;

    if (server_peers_tls_new(conf, &context, error, error_size) != 0)
        return -1;
    tls_context_free(context);
    return 0;
}

static int make_context(const struct conf *conf, struct ssl_ctx_st **out, char *error,
                        size_t error_size)
{
    static const enum tls_clients clients[] = {
        [CONF_TLS_CLIENTS_OFF] = TLS_CLIENTS_ANY,
        [CONF_TLS_CLIENTS_OPTIONAL] = TLS_CLIENTS_OPTIONAL,
        [CONF_TLS_CLIENTS_REQUIRED] = TLS_CLIENTS_REQUIRED,
    };
    const struct tls_files files = {
        .certificate = conf->tls_certificate, .key = conf->tls_key, .ca = conf->tls_ca};
    char why[TLS_REASON_MAX];

    *out = NULL;
    if (!conf->tls_certificate)
        return 0;
    *out = tls_server_new(&files, clients[conf->tls_clients], why, sizeof why);
    if (*out)
        return 0;
    snprintf(error, error_size, "tls: %s", why);
    return -1;
}

/* ---- how long it is good for ---- */

bool server_tls_warns(const struct conf *conf, int64_t expiry_s, char *out, size_t size)
{
    int64_t left_s = expiry_s - clock_wall_ms() / 1000;
    time_t at_s = (time_t)expiry_s;
    char stamp[32] = "?";
    struct tm tm;

    if (expiry_s <= 0 || left_s >= conf->tls_expiry_warning_ms / 1000)
        return false;
    if (gmtime_r(&at_s, &tm))
        strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M UTC", &tm);
    if (left_s <= 0)
        snprintf(out, size, "the certificate for clients has expired at %s", stamp);
    else if (left_s < 2 * DAY_S)
        snprintf(out, size, "the certificate for clients expires in %" PRId64 " hour%s, at %s",
                 left_s / 3600, util_plural(left_s / 3600), stamp);
    else
        snprintf(out, size, "the certificate for clients expires in %" PRId64 " days, at %s",
                 left_s / DAY_S, stamp);
    return true;
}

void server_look_at_certificate(struct server *s, int64_t now_ms)
{
    char text[160];

    s->tls_look_ms = now_ms + LOOK_EVERY_MS;
    if (server_tls_warns(&s->conf, s->tls_expiry_s, text, sizeof text))
        log_warn("tls", "%s", text);
}

/* ---- from files to contexts ---- */

int server_check_tls(const struct conf *conf, char *error, size_t error_size)
{
    struct ssl_ctx_st *context;

    if (check_masters(conf, error, error_size) != 0 || check_peers(conf, error, error_size) != 0 ||
        make_context(conf, &context, error, error_size) != 0)
        return -1;
    *error = 0;
    (void)server_tls_warns(conf, context ? tls_context_expiry_s(context) : 0, error, error_size);
    tls_context_free(context);
    return 0;
}

int server_load_tls(const struct server *s, const struct conf *conf, struct ssl_ctx_st **out,
                    char *error, size_t error_size)
{
    if (check_masters(conf, error, error_size) != 0 || check_peers(conf, error, error_size) != 0 ||
        make_context(conf, out, error, error_size) != 0)
        return -1;
    if (*out || !listener_has_tls(s->listeners))
        return 0;
    snprintf(error, error_size, "tls: certificate: needed by a socket that is for TLS");
    return -1;
}

void server_use_tls(struct server *s, struct ssl_ctx_st *context)
{
    tls_context_free(s->tls);
    s->tls = context;
    s->tls_expiry_s = context ? tls_context_expiry_s(context) : 0;
    s->tls_look_ms = 0;
    client_set_tls(s->clients, context);
}
