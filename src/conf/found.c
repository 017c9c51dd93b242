/* found: masters that are found by asking other servers, as URLs.
 *
 *   sentinel://[user[:password]@]host[:port],.../name    sentinels:// by TLS; the master found by
 *   redis://[user[:password]@][/db]                      them, in an option of its own
 *   cluster://[user[:password]@]host[:port],...          the nodes that are asked first where the
 *                                                        others are; clusters://, by TLS, is
 * refused */
#include "conf/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* ---- lists of servers ---- */

static const struct kind {
    const char *one;
    int port;
} sentinels = {"Sentinel", 26379}, nodes = {"node", 6379};

static int compare_servers(const void *a, const void *b)
{
    const struct conf_sentinel *x = a, *y = b;
    int order = strcmp(x->host, y->host);

    return order != 0 ? order : x->port - y->port;
}

/* Reads host[:port]; *rest then points behind it. */
static int parse_server(char **rest, const struct kind *kind, struct conf_sentinel *out,
                        struct conf_error *err)
{
    struct conf_master at = {.host = NULL};
    int64_t port = kind->port;

    if (conf_parse_host(rest, &at, err) != 0)
        return -1;
    snprintf(out->host, sizeof(out->host), "%.*s", (int)(*rest - at.host), at.host);
    if (**rest == ':') {
        size_t len = strcspn(++*rest, ",/");
        if (util_parse_int(*rest, len, 1, 65535, &port) != 0)
            return conf_refuse(err, "the port of a %s must be 1 to 65535", kind->one);
        *rest += len;
    }
    out->port = (int)port;
    return 0;
}

/* Reads a list with commas between, and sorts it: the order in the file is each broker's own.
 * Returns how many they are; *rest then points behind them. */
static int parse_servers(char **rest, const struct kind *kind,
                         struct conf_sentinel out[CONF_SENTINELS_MAX], struct conf_error *err)
{
    int n = 0;

    do {
        if (n == CONF_SENTINELS_MAX)
            return conf_refuse(err, "more than %d %ss", CONF_SENTINELS_MAX, kind->one);
        *rest += n > 0; /* the comma */
        if (parse_server(rest, kind, &out[n++], err) != 0)
            return -1;
    } while (**rest == ',');
    qsort(out, (size_t)n, sizeof(out[0]), compare_servers);
    for (int i = 1; i < n; i++)
        if (compare_servers(&out[i - 1], &out[i]) == 0)
            return conf_refuse(err, "a %s is named twice", kind->one);
    return n;
}

/* ---- Sentinels ---- */

/* Reads what stands behind ://; the strings of `login` point into it. Returns the number of
 * Sentinels; *name then points to what they call the master. */
static int parse_sentinels_url(char *rest, struct conf_master *login, char **name,
                               struct conf_sentinel out[CONF_SENTINELS_MAX], struct conf_error *err)
{
    int n =
        conf_parse_login(&rest, login, err) == 0 ? parse_servers(&rest, &sentinels, out, err) : -1;

    if (n < 0)
        return -1;
    *name = rest + 1;
    if (*rest != '/' || **name == '\0' || strspn(*name, CONF_HOST_BYTES) < strlen(*name) ||
        strlen(*name) > CONF_HOST_MAX)
        return conf_refuse(err, "behind the Sentinels must stand / and what they call the master");
    return n;
}

int conf_sentinels(const struct conf_master *m, struct conf_sentinel out[CONF_SENTINELS_MAX])
{
    char *text = util_strdup(m->host), *rest = text;
    struct conf_error err;
    int n = parse_servers(&rest, &sentinels, out, &err);

    free(text);
    return n;
}

const char *conf_sentinels_call_it(const struct conf_master *m)
{
    return strchr(m->host, '/') + 1;
}

bool conf_is_sentinels_url(const char *text)
{
    return strncmp(text, "sentinel://", 11) == 0 || strncmp(text, "sentinels://", 12) == 0;
}

/* Writes them with commas between; and behind / the name, which may be NULL. */
static char *servers_text(const struct conf_sentinel *v, int n, const char *name)
{
    struct buf text = {0};

    for (int i = 0; i < n; i++)
        buf_printf(&text, strchr(v[i].host, ':') ? "%s[%s]:%d" : "%s%s:%d", i > 0 ? "," : "",
                   v[i].host, v[i].port);
    if (name)
        buf_printf(&text, "/%s", name);
    buf_append(&text, "", 1);
    char *out = util_strdup(buf_head(&text));
    buf_fini(&text);
    return out;
}

/* Forgets how to log in to a master that had an address of its own. */
static void forget_login(struct conf_master *m)
{
    conf_free_login(&m->user, &m->password);
    m->tls = false;
    m->db = 0;
}

int conf_sentinels_set(struct conf_master *m, const char *text, struct conf_error *err)
{
    char *url = util_strdup(text), *name;
    struct conf_sentinel found[CONF_SENTINELS_MAX];
    struct conf_master parsed = {.host = NULL};
    int n = parse_sentinels_url(strstr(url, "://") + 3, &parsed, &name, found, err);

    if (n > 0) {
        if (!m->by_sentinels && !m->has_login)
            forget_login(m);
        free(m->host);
        conf_free_login(&m->sentinel_user, &m->sentinel_password);
        m->host = servers_text(found, n, name);
        m->port = 0;
        m->is_unix = false;
        m->by_sentinels = true;
        m->by_cluster = false;
        m->sentinel_tls = strncmp(text, "sentinels:", 10) == 0;
        m->sentinel_user = util_strdup(parsed.user);
        m->sentinel_password = util_strdup(parsed.password);
    }
    explicit_bzero(url, strlen(text));
    free(url);
    return n > 0 ? 0 : -1;
}

/* Reads [user[:password]@][/db]; the strings of m point into it. */
static int parse_login_url(char *rest, struct conf_master *m, struct conf_error *err)
{
    if (conf_parse_login(&rest, m, err) != 0)
        return -1;
    if (rest[0] != '\0' && rest[0] != '/')
        return conf_refuse(err, "has a host, which the Sentinels say (redis://user:password@/0)");
    return rest[0] == '/' && rest[1] != '\0' ? conf_parse_db(rest + 1, m, err) : 0;
}

int conf_login_set(struct conf_master *m, const char *text, struct conf_error *err)
{
    char *url = util_strdup(text), *rest = strstr(url, "://");
    struct conf_master parsed = {.host = NULL};
    bool tls = strncmp(text, "rediss://", 9) == 0;
    int rc = -1;

    if (!tls && strncmp(text, "redis://", 8) != 0)
        conf_refuse(err, "is neither a redis:// nor a rediss:// login");
    else
        rc = parse_login_url(rest + 3, &parsed, err);
    if (rc == 0) {
        forget_login(m);
        m->has_login = true;
        m->tls = tls;
        m->db = parsed.db;
        m->user = util_strdup(parsed.user);
        m->password = util_strdup(parsed.password);
    }
    explicit_bzero(url, strlen(text));
    free(url);
    return rc;
}

/* ---- the nodes of a Cluster ---- */

bool conf_is_cluster_url(const char *text)
{
    return strncmp(text, "cluster://", 10) == 0 || strncmp(text, "clusters://", 11) == 0;
}

/* Reads what stands behind ://; the strings of `login` point into it. Returns the number of nodes.
 */
static int parse_cluster_url(char *rest, struct conf_master *login,
                             struct conf_sentinel out[CONF_SENTINELS_MAX], struct conf_error *err)
{
    int n = conf_parse_login(&rest, login, err) == 0 ? parse_servers(&rest, &nodes, out, err) : -1;

    if (n > 0 && rest[0] == '/' && rest[1] != '\0')
        return conf_refuse(err, "a Redis Cluster has no other database than 0");
    if (n > 0 && rest[0] == '/')
        rest++;
    if (n > 0 && *rest != '\0')
        return conf_refuse(err, "is not cluster://host:port,host:port...");
    return n;
}

int conf_cluster_set(struct conf_master *m, const char *text, struct conf_error *err)
{
    char *url = util_strdup(text);
    struct conf_sentinel found[CONF_SENTINELS_MAX];
    struct conf_master parsed = {.host = NULL};
    int n = parse_cluster_url(strstr(url, "://") + 3, &parsed, found, err);

    if (n > 0 && strncmp(text, "clusters:", 9) == 0)
        n = conf_refuse(err, "a Redis Cluster by TLS is not served yet");
    if (n > 0) {
        conf_address_fini(m);
        m->host = servers_text(found, n, NULL);
        m->user = util_strdup(parsed.user);
        m->password = util_strdup(parsed.password);
        m->port = m->db = 0;
        m->tls = m->is_unix = m->by_sentinels = m->sentinel_tls = false;
        m->by_cluster = true;
    }
    explicit_bzero(url, strlen(text));
    free(url);
    return n > 0 ? 0 : -1;
}

int conf_cluster_nodes(const struct conf_master *m, struct conf_sentinel out[CONF_SENTINELS_MAX])
{
    char *text = util_strdup(m->host), *rest = text;
    struct conf_error err;
    int n = parse_servers(&rest, &nodes, out, &err);

    free(text);
    return n;
}
