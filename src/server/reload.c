/*
 * From the configuration to the parts, at the start and when it changes: by SIGHUP, or by CONFIG
 * SET.
 *
 * What is in force (s->conf) is always a whole: a new configuration is checked before anything of
 * it counts, and what needs a restart stays as it was, so that CONFIG GET never shows what is not
 * so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/systemd.h"
#include "base/util.h"
#include "client/listener.h"
#include "command/command.h"
#include "dropin/call.h"
#include "server/private.h"
#include "session/user.h"
#include "stats/stats.h"

/* ---- who may connect ---- */

struct conf_client server_client_limits(const struct conf *c)
{
    struct conf_client limits = c->client;

    limits.max_clients = server_max_clients(c);
    return limits;
}

static bool is_local(const char *host)
{
    return strncmp(host, "unix:", 5) == 0 || strncmp(host, "127.", 4) == 0 ||
           strncmp(host, "[::1]", 5) == 0;
}

int server_check_exposure(const struct server *s, char *error, size_t error_size)
{
    if (s->conf.user_count > 0 || !s->conf.protected_mode)
        return 0;
    for (size_t i = 0; i < listener_count(s->listeners); i++) {
        const char *address = listener_addr(s->listeners, i);
        bool tls, proxy;
        const char *host = conf_listen_skip_prefix(address, &tls, &proxy);
        if ((is_local(host) && !proxy) || (tls && s->conf.tls_clients == CONF_TLS_CLIENTS_REQUIRED))
            continue;
        snprintf(error, error_size,
                 "%s is open to other machines%s: name somebody in section [users], or set "
                 "protected_mode = no",
                 address, proxy ? ", as the clients of a proxy come from anywhere" : "");
        return -1;
    }
    return 0;
}

void server_set_log(const struct server *s)
{
    int level = s->conf.log_level + s->setup.verbose;

    log_set_level(level < LOG_LEVEL_TRACE ? (enum log_level)level : LOG_LEVEL_TRACE);
    log_set_syslog(s->conf.log == CONF_LOG_SYSLOG ? s->conf.log_facility : -1);
}

/* ---- a new configuration ---- */

struct taking {
    const struct conf *from;
    struct conf *into; /* what will be in force */
    int changes, refused;
};

static void take_change(void *arg, const struct conf_change *change)
{
    static const char masters[] = "masters.";
    struct taking *t = arg;
    struct conf_error error;

    t->changes++;
    if (change->needs_restart) {
        log_warn(
            "config",
            "%s: the change from \"%s\" to \"%s\" needs a restart, and does not count until then",
            change->name, change->old_value, change->new_value);
        return;
    }
    if (strcmp(change->name, "users") == 0) {
        log_info("config", "users: other users, passwords or rights");
        conf_take_users(t->into, t->from);
        return;
    }
    if (strncmp(change->name, masters, sizeof masters - 1) == 0) {
        log_info("config", "%s: other credentials or files for TLS, used at the next connect",
                 change->name);
        conf_take_logins(t->into, t->from);
        return;
    }
    log_info("config", "%s: \"%s\" -> \"%s\"", change->name, change->old_value, change->new_value);
    if (conf_set(t->into, change->name, change->new_value, &error) != 0) {
        log_error("config", "%s", error.text);
        t->refused++;
    }
}

/* Whether the brokers are called and reached as before. */
static bool has_same_peers(const struct conf *a, const struct conf *b)
{
    return util_same_text(a->service, b->service) && util_same_text(a->announce, b->announce) &&
           util_same_text(a->peers, b->peers);
}

static void apply_to_parts(struct server *s, bool peers_changed)
{
    struct conf_client limits = server_client_limits(&s->conf);

    server_set_log(s);
    const struct dropin_conf dropin = {.max_hold_ms = s->conf.lock.drop_in_max_hold_ms,
                                       .patience_ms = s->conf.lock.drop_in_patience_ms};

    broker_configure(&s->broker, &s->conf.lock);
    dropin_configure(s->dropin, &dropin);
    client_set_limits(s->clients, &limits);
    users_configure(&s->conf);
    client_users_changed(s->clients);
    server_configure_masters(s);
    if (peers_changed)
        server_configure_peers(s);
    else
        server_secure_peers(s);
    s->reload_wall_ms = clock_wall_ms();
}

static void to_log(void *arg, bool is_warning, const char *text)
{
    (void)arg;
    if (is_warning)
        log_warn("config", "%s", text);
    else
        log_error("config", "%s", text);
}

/* Checks a new configuration and its files for TLS; -1: what is wrong has been logged. */
static int check(const struct server *s, const struct taking *t, struct ssl_ctx_st **tls)
{
    char error[512];

    if (t->refused > 0 || conf_check(t->into, false, to_log, NULL) != 0)
        return -1;
    if (server_load_tls(s, t->into, tls, error, sizeof error) == 0)
        return 0;
    log_error("config", "%s", error);
    return -1;
}

static void take_over(struct server *s, const struct conf *from)
{
    struct ssl_ctx_st *tls;
    struct taking t = {.from = from, .into = util_alloc(sizeof *t.into)};

    conf_copy(t.into, &s->conf);
    conf_diff(&s->conf, from, take_change, &t);
    if (check(s, &t, &tls) != 0) {
        stats.config_reloads_failed++;
        log_error("config",
                  "configuration unchanged: without a restart the new one does not hold together");
        conf_fini(t.into);
    } else {
        bool peers_changed = !has_same_peers(&s->conf, t.into);
        conf_fini(&s->conf);
        s->conf = *t.into;
        server_use_tls(s, tls);
        apply_to_parts(s, peers_changed);
        stats.config_reloads_ok++;
        log_info("config", "configuration read again, %d change%s", t.changes,
                 util_plural(t.changes));
    }
    free(t.into);
}

void server_reload(struct server *s)
{
    struct conf from;

    systemd_notify_reloading();
    if (s->setup.load(s->setup.arg, &from, to_log, NULL) != 0) {
        stats.config_reloads_failed++;
        log_error("config", "configuration unchanged: the new one has errors");
    } else {
        take_over(s, &from);
        conf_fini(&from);
    }
    systemd_notify("READY=1");
}

/* ---- CONFIG SET ---- */

struct first_error {
    char *text;
    size_t size;
    bool found;
};

static void to_text(void *arg, bool is_warning, const char *text)
{
    struct first_error *e = arg;

    if (is_warning || e->found)
        return;
    e->found = true;
    snprintf(e->text, e->size, "%s", text);
}

/* Reads the files for TLS again if others are meant. 0, or -1 with text in `error`. */
static int reload_tls(struct server *s, const struct conf *conf, char *error, size_t error_size)
{
    const struct conf *old = &s->conf;
    struct ssl_ctx_st *tls;

    if (util_same_text(old->tls_certificate, conf->tls_certificate) &&
        util_same_text(old->tls_key, conf->tls_key) && util_same_text(old->tls_ca, conf->tls_ca) &&
        util_same_text(old->tls_peer_ca, conf->tls_peer_ca) &&
        util_same_text(old->peers, conf->peers) && old->tls_clients == conf->tls_clients)
        return 0;
    if (server_load_tls(s, conf, &tls, error, error_size) != 0)
        return -1;
    server_use_tls(s, tls);
    return 0;
}

/* Returns the option that cannot be set; NULL: all are. */
static const char *set_all(struct conf *conf, const struct cmd_setting *settings, int n,
                           char *error, size_t error_size)
{
    struct conf_error err;

    for (int i = 0; i < n; i++) {
        if (conf_set_live(conf, settings[i].key, settings[i].value, &err) == 0)
            continue;
        snprintf(error, error_size, "%s", err.text);
        return settings[i].key;
    }
    return NULL;
}

const char *server_config_set(struct server *s, const struct cmd_setting *settings, int n,
                              char *error, size_t error_size)
{
    struct conf conf;
    struct first_error first = {.text = error, .size = error_size};

    conf_copy(&conf, &s->conf);
    const char *refused = set_all(&conf, settings, n, error, error_size);
    if (!refused && (conf_check(&conf, false, to_text, &first) != 0 ||
                     reload_tls(s, &conf, error, error_size) != 0))
        refused = settings[n - 1].key;
    if (refused) {
        conf_fini(&conf);
        return refused;
    }
    for (int i = 0; i < n; i++)
        log_info("config", "%s: \"%s\" by CONFIG SET", settings[i].key, settings[i].value);
    bool peers_changed = !has_same_peers(&s->conf, &conf);
    conf_fini(&s->conf);
    s->conf = conf;
    apply_to_parts(s, peers_changed);
    return NULL;
}
