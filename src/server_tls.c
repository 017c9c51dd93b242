/*
 * TLS as the server sees it: which files make which context, and when one takes the place of
 * another.
 *
 * Invariant: what is in force (s->tls) has been made whole from files that fit together; a reload
 * in which one does not leaves it as it is.
 */
#include <stdio.h>

#include "listener.h"
#include "log.h"
#include "server_private.h"
#include "tls.h"

static int check_masters(const struct conf *conf, char *error, size_t error_size)
{
    char why[TLS_REASON_MAX];

    for (size_t i = 0; i < conf->master_count; i++) {
        const struct conf_master *m = &conf->masters[i];
        struct ssl_ctx_st *context;
        if (!m->tls)
            continue;
        if (!(context = tls_master_new(m, why, sizeof why))) {
            snprintf(error, error_size, "masters: %s.%s", m->name, why);
            return -1;
        }
        tls_context_free(context);
    }
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

int server_check_tls(const struct conf *conf, char *error, size_t error_size)
{
    struct ssl_ctx_st *context;

    if (check_masters(conf, error, error_size) != 0 ||
        make_context(conf, &context, error, error_size) != 0)
        return -1;
    tls_context_free(context);
    return 0;
}

int server_load_tls(const struct server *s, const struct conf *conf, struct ssl_ctx_st **out,
                    char *error, size_t error_size)
{
    if (check_masters(conf, error, error_size) != 0 ||
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
    client_set_tls(s->clients, context);
}
