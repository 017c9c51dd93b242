/* address: where masters and Sentinels are, as URLs, read and written.
 *
 *   redis://[user[:password]@]host[:port][/db]      rediss:// by TLS
 *   unix:///path[?db=n]
 *   sentinel://[user[:password]@]host[:port],.../name    sentinels:// by TLS; the master found by
 *   redis://[user[:password]@][/db]                      them, in an option of its own
 *
 * A message never repeats an address, since there may be a password in it. */
#include "conf/private.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/buf.h"

enum { SENTINEL_PORT = 26379, HOST_MAX = CONF_HOST_MAX };

#define HOST_BYTES CONF_HOST_BYTES

static void free_login(char **user, char **password)
{
    free(*user);
    if (*password != NULL)
        explicit_bzero(*password, strlen(*password));
    free(*password);
    *user = *password = NULL;
}

void conf_address_fini(struct conf_master *m)
{
    free(m->host);
    free_login(&m->user, &m->password);
    free_login(&m->sentinel_user, &m->sentinel_password);
}

/* ---- reading a URL ---- */

/* Decodes in place. %00 is refused: nothing here may hold a NUL. */
static int percent_decode(char *s)
{
    char *out = s;

    for (; *s != '\0'; s++) {
        int high, low;
        if (*s != '%') {
            *out++ = *s;
            continue;
        }
        high = util_hex_digit(s[1]);
        low = high < 0 ? -1 : util_hex_digit(s[2]);
        if (low < 0 || high * 16 + low == 0)
            return -1;
        *out++ = (char)(high * 16 + low);
        s += 2;
    }
    *out = '\0';
    return 0;
}

/* Reads [user[:password]@] at the head of *rest; the parts point into it. */
static int parse_login(char **rest, struct conf_master *m, struct conf_error *err)
{
    char *end = *rest + strcspn(*rest, "/?"), *at = memrchr(*rest, '@', (size_t)(end - *rest));
    char *colon;

    if (at == NULL)
        return 0;
    *at = '\0';
    colon = strchr(*rest, ':');
    if (colon != NULL)
        *colon = '\0';
    m->user = **rest != '\0' ? *rest : NULL;
    m->password = colon != NULL && colon[1] != '\0' ? colon + 1 : NULL;
    *rest = at + 1;
    if ((m->user != NULL && percent_decode(m->user) != 0) ||
        (m->password != NULL && percent_decode(m->password) != 0))
        return conf_refuse(err,
                           "user or password have a %% that does not start a byte such as %%40");
    return 0;
}

static int parse_db(const char *text, struct conf_master *m, struct conf_error *err)
{
    int64_t db;

    if (util_parse_int(text, strlen(text), 0, INT32_MAX, &db) != 0)
        return conf_refuse(err, "the number of the database must be 0 or more");
    m->db = (int)db;
    return 0;
}

/* Reads /path[?db=n]. */
static int parse_unix(char *rest, struct conf_master *m, struct conf_error *err)
{
    char *query = strchr(rest, '?');

    if (query != NULL) {
        *query++ = '\0';
        if (strncmp(query, "db=", 3) != 0)
            return conf_refuse(err, "the only option of a unix:// address is ?db=number");
        if (parse_db(query + 3, m, err) != 0)
            return -1;
    }
    if (percent_decode(rest) != 0)
        return conf_refuse(err, "the path has a %% that does not start a byte such as %%40");
    if (rest[0] != '/' || strlen(rest) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return conf_refuse(err, "the path of a socket is absolute and at most %zu bytes long",
                           sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
    m->host = rest;
    m->is_unix = true;
    return 0;
}

/* Reads host or [v6]; *rest then points behind it. */
static int parse_host(char **rest, struct conf_master *m, struct conf_error *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    char *host = *rest, *end;

    if (*host == '[') {
        end = strchr(++host, ']');
        if (end == NULL)
            return conf_refuse(err, "there is a [ without ]");
        *end = '\0';
        if (inet_pton(AF_INET6, host, address) != 1)
            return conf_refuse(err, "what stands in [ ] is not an IPv6 address");
        *rest = end + 1;
    } else {
        size_t len = strspn(host, HOST_BYTES);
        if (len == 0 || len > HOST_MAX)
            return conf_refuse(err, "has no host (redis://host:port; IPv6 as redis://[::1]:port)");
        *rest = host + len;
    }
    m->host = host;
    return 0;
}

/* Reads host[:port][/db]. */
static int parse_tcp(char *rest, struct conf_master *m, struct conf_error *err)
{
    char *after, *slash;
    int64_t port = m->port;

    after = rest;
    if (parse_host(&after, m, err) != 0)
        return -1;
    slash = after + strcspn(after, "/");
    if (*slash == '/' && slash[1] != '\0' && parse_db(slash + 1, m, err) != 0)
        return -1;
    if (*after == ':' &&
        util_parse_int(after + 1, (size_t)(slash - after - 1), 1, 65535, &port) != 0)
        return conf_refuse(err, "the port must be 1 to 65535");
    if (*after != ':' && after != slash)
        return conf_refuse(err, "the host has a byte that no host name has");
    *after = '\0';
    m->port = (int)port;
    return 0;
}

/* Cuts up url in place; the strings of m point into it. */
static int parse_url(char *url, struct conf_master *m, struct conf_error *err)
{
    char *rest = strstr(url, "://");
    bool is_unix;

    if (rest == NULL)
        return conf_refuse(err, "is not an address (try redis://host:port or unix:///path)");
    *rest = '\0';
    rest += 3;
    is_unix = strcmp(url, "unix") == 0;
    m->tls = strcmp(url, "rediss") == 0;
    if (strcmp(url, "cluster") == 0)
        return conf_refuse(err, "a Redis Cluster is not served: name servers of their own");
    if (!is_unix && !m->tls && strcmp(url, "redis") != 0)
        return conf_refuse(err, "is neither a redis://, a rediss:// nor a unix:// address");
    if (parse_login(&rest, m, err) != 0)
        return -1;
    return is_unix ? parse_unix(rest, m, err) : parse_tcp(rest, m, err);
}

int conf_address_set(struct conf_master *m, const char *text, int port, struct conf_error *err)
{
    char *url = util_strdup(text);
    struct conf_master parsed = {.port = port};
    int rc = parse_url(url, &parsed, err);

    if (rc == 0) {
        conf_address_fini(m);
        m->host = util_strdup(parsed.host);
        m->user = util_strdup(parsed.user);
        m->password = util_strdup(parsed.password);
        m->port = parsed.is_unix ? 0 : parsed.port;
        m->db = parsed.db;
        m->is_unix = parsed.is_unix;
        m->tls = parsed.tls;
        m->by_sentinels = m->sentinel_tls = false;
    }
    explicit_bzero(url, strlen(text));
    free(url);
    return rc;
}

/* ---- Sentinels ---- */

static int compare_sentinels(const void *a, const void *b)
{
    const struct conf_sentinel *x = a, *y = b;
    int order = strcmp(x->host, y->host);

    return order != 0 ? order : x->port - y->port;
}

/* Reads host[:port]; *rest then points behind it. */
static int parse_sentinel(char **rest, struct conf_sentinel *out, struct conf_error *err)
{
    struct conf_master at = {.host = NULL};
    int64_t port = SENTINEL_PORT;

    if (parse_host(rest, &at, err) != 0)
        return -1;
    snprintf(out->host, sizeof(out->host), "%.*s", (int)(*rest - at.host), at.host);
    if (**rest == ':') {
        size_t len = strcspn(++*rest, ",/");
        if (util_parse_int(*rest, len, 1, 65535, &port) != 0)
            return conf_refuse(err, "the port of a Sentinel must be 1 to 65535");
        *rest += len;
    }
    out->port = (int)port;
    return 0;
}

/* Reads a list with commas between, and sorts it: the order in the file is each broker's own.
 * Returns how many they are; *rest then points behind them. */
static int parse_sentinels(char **rest, struct conf_sentinel out[CONF_SENTINELS_MAX],
                           struct conf_error *err)
{
    int n = 0;

    do {
        if (n == CONF_SENTINELS_MAX)
            return conf_refuse(err, "more than %d Sentinels", CONF_SENTINELS_MAX);
        *rest += n > 0; /* the comma */
        if (parse_sentinel(rest, &out[n++], err) != 0)
            return -1;
    } while (**rest == ',');
    qsort(out, (size_t)n, sizeof(out[0]), compare_sentinels);
    for (int i = 1; i < n; i++)
        if (compare_sentinels(&out[i - 1], &out[i]) == 0)
            return conf_refuse(err, "a Sentinel is named twice");
    return n;
}

/* Reads what stands behind ://; the strings of `login` point into it. Returns the number of
 * Sentinels; *name then points to what they call the master. */
static int parse_sentinels_url(char *rest, struct conf_master *login, char **name,
                               struct conf_sentinel out[CONF_SENTINELS_MAX], struct conf_error *err)
{
    int n = parse_login(&rest, login, err) == 0 ? parse_sentinels(&rest, out, err) : -1;

    if (n < 0)
        return -1;
    *name = rest + 1;
    if (*rest != '/' || **name == '\0' || strspn(*name, HOST_BYTES) < strlen(*name) ||
        strlen(*name) > HOST_MAX)
        return conf_refuse(err, "behind the Sentinels must stand / and what they call the master");
    return n;
}

int conf_sentinels(const struct conf_master *m, struct conf_sentinel out[CONF_SENTINELS_MAX])
{
    char *text = util_strdup(m->host), *rest = text;
    struct conf_error err;
    int n = parse_sentinels(&rest, out, &err);

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

static char *sentinels_text(const struct conf_sentinel *v, int n, const char *name)
{
    struct buf text = {0};

    for (int i = 0; i < n; i++)
        buf_printf(&text, strchr(v[i].host, ':') ? "%s[%s]:%d" : "%s%s:%d", i > 0 ? "," : "",
                   v[i].host, v[i].port);
    buf_printf(&text, "/%s", name);
    char *out = util_memdup(buf_head(&text), buf_len(&text));
    buf_fini(&text);
    return out;
}

/* Forgets how to log in to a master that had an address of its own. */
static void forget_login(struct conf_master *m)
{
    free_login(&m->user, &m->password);
    m->tls = false;
    m->db = 0;
}

int conf_sentinels_set(struct conf_master *m, const char *text, struct conf_error *err)
{
    char *url = util_strdup(text), *name;
    struct conf_sentinel sentinels[CONF_SENTINELS_MAX];
    struct conf_master parsed = {.host = NULL};
    int n = parse_sentinels_url(strstr(url, "://") + 3, &parsed, &name, sentinels, err);

    if (n > 0) {
        if (!m->by_sentinels && !m->has_login)
            forget_login(m);
        free(m->host);
        free_login(&m->sentinel_user, &m->sentinel_password);
        m->host = sentinels_text(sentinels, n, name);
        m->port = 0;
        m->is_unix = false;
        m->by_sentinels = true;
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
    if (parse_login(&rest, m, err) != 0)
        return -1;
    if (rest[0] != '\0' && rest[0] != '/')
        return conf_refuse(err, "has a host, which the Sentinels say (redis://user:password@/0)");
    return rest[0] == '/' && rest[1] != '\0' ? parse_db(rest + 1, m, err) : 0;
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

/* ---- writing ---- */

/* Appends text in which bytes that mean something in a URL become %XX. */
static size_t append_encoded(char *out, size_t n, const char *s, const char *plain)
{
    for (; *s != '\0' && n + 4 < CONF_VALUE_MAX; s++) {
        unsigned char c = (unsigned char)*s;
        if (isalnum(c) || strchr(plain, c) != NULL)
            out[n++] = *s;
        else
            n += (size_t)snprintf(out + n, CONF_VALUE_MAX - n, "%%%02X", c);
    }
    out[n] = '\0';
    return n;
}

static size_t append(char *out, size_t n, const char *s)
{
    n += (size_t)snprintf(out + n, CONF_VALUE_MAX - n, "%s", s);
    return n < CONF_VALUE_MAX ? n : CONF_VALUE_MAX - 1;
}

static size_t append_login(char *out, size_t n, const char *user, bool has_password)
{
    if (user != NULL)
        n = append_encoded(out, n, user, "-._~");
    if (has_password)
        n = append(out, n, ":***");
    return user != NULL || has_password ? append(out, n, "@") : n;
}

static void format_sentinels(const struct conf_master *m, char out[CONF_VALUE_MAX])
{
    size_t n = append(out, 0, m->sentinel_tls ? "sentinels://" : "sentinel://");

    n = append_login(out, n, m->sentinel_user,
                     m->sentinel_password != NULL || m->sentinel_password_file != NULL ||
                         m->sentinel_password_credential != NULL);
    append(out, n, m->host);
}

void conf_master_format(const struct conf_master *m, char out[CONF_VALUE_MAX])
{
    bool bracket = !m->is_unix && m->host != NULL && strchr(m->host, ':') != NULL;
    char number[32];
    size_t n = append(out, 0, m->is_unix ? "unix://" : m->tls ? "rediss://" : "redis://");

    if (m->by_sentinels) {
        format_sentinels(m, out);
        return;
    }
    n = append_login(out, n, m->user,
                     m->password != NULL || m->password_file != NULL ||
                         m->password_credential != NULL);
    if (m->host == NULL)
        return;
    if (bracket)
        n = append(out, n, "[");
    n = append_encoded(out, n, m->host, m->is_unix ? "-._~/" : "-._~:");
    if (!m->is_unix) {
        snprintf(number, sizeof(number), "%s:%d", bracket ? "]" : "", m->port);
        n = append(out, n, number);
    }
    if (m->db != 0) {
        snprintf(number, sizeof(number), "%s%d", m->is_unix ? "?db=" : "/", m->db);
        append(out, n, number);
    }
}
