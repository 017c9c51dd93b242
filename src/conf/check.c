/* check: what no option can see alone.
 *
 * Errors are settings under which a promise could not be kept or nothing would work; warnings are
 * settings that somebody may want, but should know of. Each names the line of its option, when it
 * comes from the file. */
#include "conf/private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct check {
    const struct conf *conf;
    conf_report_fn report;
    void *arg;
    int errors;
};

enum { FAIL, WARN };

__attribute__((format(printf, 4, 5))) static void say_finding(struct check *check, int severity,
                                                              int line, const char *fmt, ...)
{
    struct conf_error text, out;
    char path[200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text.text, sizeof(text.text), fmt, ap);
    va_end(ap);
    if (severity == FAIL)
        check->errors++;
    if (line > 0 && check->conf->path != NULL)
        conf_refuse(&out, "%s:%d: %.300s", conf_printable(path, sizeof(path), check->conf->path),
                    line, text.text);
    else
        out = text;
    check->report(check->arg, severity == WARN, out.text);
}

/* Returns the line that set the key, or, as a default is never wrong alone, the line that set
 * other. */
static int line_of(const struct check *check, const char *key, const char *other)
{
    const struct conf_option *opt = conf_option_find(NULL, key);
    int line = check->conf->line[conf_option_index(opt)];

    if (line == 0 && other != NULL)
        return line_of(check, other, NULL);
    return line;
}

static const char *shown_value(const struct check *check, const char *key, char out[CONF_VALUE_MAX])
{
    conf_value_format(check->conf, conf_option_find(NULL, key), out);
    return out;
}

/* Says "a (1s) must be <relation> b (2s)<why>", with the values in force. */
static void say_pair(struct check *check, int severity, const char *a, const char *relation,
                     const char *b, const char *why)
{
    char va[CONF_VALUE_MAX], vb[CONF_VALUE_MAX];

    say_finding(check, severity, line_of(check, a, b), "%s (%s) %s %s (%s)%s", a,
                shown_value(check, a, va), relation, b, shown_value(check, b, vb), why);
}

static void check_times(struct check *check)
{
    const struct conf *c = check->conf;

    if (c->lock.lease_ms > c->lock.max_lease_ms)
        say_pair(check, FAIL, "lease", "must not be longer than", "max_lease", "");
    if (c->lock.min_validity_ms >= c->lock.lease_ms / 3)
        say_pair(check, FAIL, "min_validity", "must be shorter than a third of", "lease", "");
    if (c->lock.request_timeout_ms > c->lock.lease_ms / 3)
        say_pair(check, WARN, "request_timeout", "is longer than a third of", "lease",
                 ": one slow answer can cost a watched lock");
    if (c->pause_limit_ms > c->lock.lease_ms / 3)
        say_pair(check, WARN, "pause_limit", "is longer than a third of", "lease",
                 ": a pause that costs leases goes unnoticed");
    if (c->quarantine_ms > 0 && c->quarantine_ms < c->lock.max_lease_ms + c->lock.max_lease_ms *
                                                                              c->lock.drift_ppm /
                                                                              1000000)
        say_pair(check, WARN, "quarantine", "is shorter than", "max_lease",
                 " and its drift: a master that restarts empty can let in a second holder");
}

static void check_sizes(struct check *check)
{
    const struct conf *c = check->conf;

    if (c->client.output_buffer_soft > c->client.output_buffer_hard)
        say_pair(check, FAIL, "output_buffer_soft", "must not be larger than", "output_buffer_hard",
                 "");
    if (c->client.max_arg_len > c->client.max_request)
        say_pair(check, FAIL, "max_arg_len", "must not be larger than", "max_request", "");
}

static void check_brokers(struct check *check)
{
    const struct conf *c = check->conf;

    if (c->brokers != NULL &&
        (c->name == NULL || !conf_lists_name(c->brokers, c->name, strlen(c->name))))
        say_pair(check, FAIL, "name", "must be one of those in", "brokers", "");
}

static void check_peers(struct check *check)
{
    const struct conf *c = check->conf;
    struct conf_address own[CONF_PEERS_MAX];

    if (conf_addresses(c->announce, own) > 0 && own[0].tls)
        say_finding(check, FAIL, line_of(check, "announce", NULL),
                    "announce: is told to clients as it stands here, so without tls://");
    if (c->peers == NULL)
        return;
    if (c->announce == NULL)
        say_finding(check, FAIL, line_of(check, "peers", NULL),
                    "peers: needs announce, this broker's own address as in the peers of the "
                    "others");
    if (c->service == NULL)
        say_finding(check, FAIL, line_of(check, "peers", NULL), "peers: needs a service");
}

static bool is_loopback(const struct conf_listen *l)
{
    return l->is_unix || strncmp(l->host, "127.", 4) == 0 || strcmp(l->host, "::1") == 0;
}

static void check_exposure(struct check *check)
{
    const struct conf *c = check->conf;

    if (c->user_count > 0)
        return;
    for (size_t i = 0; i < c->listen.count; i++) {
        const struct conf_listen *l = &c->listen.v[i];
        /* behind a proxy there are other machines */
        if ((is_loopback(l) && !l->proxy) ||
            (l->tls && c->tls_clients == CONF_TLS_CLIENTS_REQUIRED))
            continue;
        say_finding(
            check, c->protected_mode ? FAIL : WARN, line_of(check, "listen", NULL),
            "listen: %s%s is open to other machines%s: whoever reaches it can take and free "
            "locks%s",
            conf_listen_prefix(l->tls, l->proxy), l->host,
            l->proxy ? ", as the clients of a proxy come from anywhere" : "",
            c->protected_mode ? " (name some in section [users], or set protected_mode = no)" : "");
        return;
    }
}

static void check_users(struct check *check)
{
    const struct conf *c = check->conf;

    for (size_t i = 0; i < c->user_count; i++) {
        const struct conf_user *u = &c->users[i];
        if (!u->defined)
            say_finding(check, FAIL, 0,
                        "user %s has options but no password (%s = the hash that holdfastd "
                        "--hash-password prints, or none)",
                        u->name, u->name);
        for (size_t k = 0; k < i; k++) {
            const struct conf_user *other = &c->users[k];
            if (u->uid >= 0 && u->uid == other->uid)
                say_finding(check, FAIL, 0, "user %s has the same uid as %s", u->name, other->name);
            if (u->certificate != NULL && other->certificate != NULL &&
                strcmp(u->certificate, other->certificate) == 0)
                say_finding(check, FAIL, 0, "user %s has the same certificate as %s", u->name,
                            other->name);
        }
    }
}

static void check_tls(struct check *check)
{
    const struct conf *c = check->conf;
    bool listens = false;

    for (size_t i = 0; i < c->listen.count; i++)
        listens = listens || c->listen.v[i].tls;
    if (listens && c->tls_certificate == NULL)
        say_finding(check, FAIL, line_of(check, "listen", NULL),
                    "listen: tls:// needs a certificate in section [tls]");
    if (c->tls_key != NULL && c->tls_certificate == NULL)
        say_finding(check, FAIL, line_of(check, "key", NULL), "key: has no certificate");
    if (c->tls_clients != CONF_TLS_CLIENTS_OFF && c->tls_ca == NULL)
        say_finding(check, FAIL, line_of(check, "client_certificates", NULL),
                    "client_certificates: needs a ca that signs them");
}

static void check_http(struct check *check)
{
    const struct conf_listens *listen = &check->conf->http_listen;
    int line = check->conf->line[conf_option_index(conf_option_find("http", "listen"))];

    for (size_t i = 0; i < listen->count; i++) {
        if (listen->v[i].is_unix)
            say_finding(check, FAIL, line, "http.listen: unix:%s is no TCP address",
                        listen->v[i].host);
        else if (listen->v[i].tls)
            say_finding(check, FAIL, line, "http.listen: there is no TLS for HTTP");
        else if (listen->v[i].proxy)
            say_finding(check, FAIL, line, "http.listen: there is no PROXY protocol for HTTP");
        else if (!is_loopback(&listen->v[i]))
            say_finding(check, WARN, line,
                        "http.listen: %s is open to other machines: whoever reaches it sees the "
                        "names of locks",
                        listen->v[i].host);
    }
}

static void check_sentinels(struct check *check, const struct conf_master *m)
{
    bool tls =
        m->sentinel_ca || m->sentinel_certificate || m->sentinel_key || m->sentinel_server_name;
    bool any = tls || m->has_login || m->sentinel_password_file || m->sentinel_password_credential;
    struct conf_sentinel sentinels[CONF_SENTINELS_MAX];

    if (!m->by_sentinels) {
        if (any)
            say_finding(check, FAIL, m->line[0],
                        "%s: has options for Sentinels but no sentinel:// address", m->name);
        return;
    }
    if (tls && !m->sentinel_tls)
        say_finding(check, FAIL, m->line[0],
                    "%s: has options for TLS to Sentinels but no sentinels:// address", m->name);
    if (m->sentinel_key && !m->sentinel_certificate)
        say_finding(check, FAIL, m->line[0], "%s.sentinel_key: has no certificate", m->name);
    if (m->sentinel_user && !m->sentinel_password)
        say_finding(check, FAIL, m->line[0], "%s: has a user for Sentinels but no password",
                    m->name);
    int n = conf_sentinels(m, sentinels);
    if (n < 3)
        say_finding(check, WARN, m->line[0],
                    "%s: with %d Sentinel%s the loss of one stops all locks there: name three",
                    m->name, n, n == 1 ? "" : "s");
}

/* The quarantine of a node that was promoted ends by roll call only (safety R17). A plain key of
 * the mirror has a slot of its own, not that of the partition. */
static void check_cluster(struct check *check, const struct conf_master *m)
{
    const struct conf *c = check->conf;

    if (!m->by_cluster)
        return;
    if (c->master_count > 1)
        say_finding(check, FAIL, m->line[0], "%s: a Redis Cluster is the only one in [masters]",
                    m->name);
    if (c->brokers == NULL)
        say_finding(check, FAIL, m->line[0],
                    "%s: a Redis Cluster needs the list of all brokers (name and brokers)",
                    m->name);
    if (c->mirror)
        say_finding(check, FAIL, m->line[0], "%s: there is no mirror in a Redis Cluster", m->name);
    if (c->quarantine_ms == CONF_QUARANTINE_OFF)
        say_finding(check, FAIL, m->line[0], "%s: a Redis Cluster needs a quarantine", m->name);
}

static void check_master(struct check *check, size_t index)
{
    const struct conf_master *m = &check->conf->masters[index];

    if (m->host == NULL) {
        say_finding(check, FAIL, 0, "master %s has no address (%s = redis://host:port)", m->name,
                    m->name);
        return;
    }
    check_sentinels(check, m);
    check_cluster(check, m);
    if (m->user != NULL && m->password == NULL)
        say_finding(check, FAIL, m->line[0], "%s: has a user but no password", m->name);
    if (m->key != NULL && m->certificate == NULL)
        say_finding(check, FAIL, m->line[0], "%s.key: has no certificate", m->name);
    if (!m->tls && (m->ca != NULL || m->certificate != NULL || m->server_name != NULL))
        say_finding(check, FAIL, m->line[0], "%s: has options for TLS but no rediss:// %s", m->name,
                    m->by_sentinels ? "in its option .master" : "address");
    for (size_t i = 0; i < index; i++) {
        const struct conf_master *other = &check->conf->masters[i];
        if (conf_master_same_address(m, other))
            say_finding(check, FAIL, m->line[0], "%s: has the same address as %s", m->name,
                        other->name);
        if (m->id != NULL && conf_master_same_id(m, other))
            say_finding(check, FAIL, m->line[0], "%s: has the same id as %s", m->name, other->name);
    }
}

static void check_master_list(struct check *check, bool masters_optional)
{
    size_t count = check->conf->master_count;

    if (count == 0 && !masters_optional)
        say_finding(check, FAIL, 0,
                    "there is no master: section [masters] needs a line such as a = "
                    "redis://127.0.0.1:6379");
    for (size_t i = 0; i < count; i++)
        check_master(check, i);
    if (count > 0 && count % 2 == 0)
        say_finding(check, WARN, 0,
                    "%zu masters survive the loss of %zu, as %zu would: an odd number is better",
                    count, (count - 1) / 2, count - 1);
}

int conf_check(const struct conf *conf, bool masters_optional, conf_report_fn report, void *arg)
{
    struct check check = {.conf = conf, .report = report, .arg = arg};

    check_times(&check);
    check_sizes(&check);
    check_brokers(&check);
    check_peers(&check);
    check_exposure(&check);
    check_users(&check);
    check_tls(&check);
    check_http(&check);
    check_master_list(&check, masters_optional);
    return check.errors == 0 ? 0 : -1;
}
