/* address: where masters are, as URLs, read, and written with what stands in found.c.
 *
 *   redis://[user[:password]@]host[:port][/db]      rediss:// by TLS
 *   unix:///path[?db=n]
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

enum { HOST_MAX = CONF_HOST_MAX };

#define HOST_BYTES CONF_HOST_BYTES

void conf_free_login(char **user, char **password)
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
    conf_free_login(&m->user, &m->password);
    conf_free_login(&m->sentinel_user, &m->sentinel_password);
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
int conf_parse_login(char **rest, struct conf_master *m, struct conf_error *err)
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

int conf_parse_db(const char *text, struct conf_master *m, struct conf_error *err)
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
        if (conf_parse_db(query + 3, m, err) != 0)
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
int conf_parse_host(char **rest, struct conf_master *m, struct conf_error *err)
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
    if (conf_parse_host(&after, m, err) != 0)
        return -1;
    slash = after + strcspn(after, "/");
    if (*slash == '/' && slash[1] != '\0' && conf_parse_db(slash + 1, m, err) != 0)
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
    if (!is_unix && !m->tls && strcmp(url, "redis") != 0)
        return conf_refuse(err, "is neither a redis://, a rediss:// nor a unix:// address");
    if (conf_parse_login(&rest, m, err) != 0)
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
        m->by_sentinels = m->by_cluster = m->sentinel_tls = false;
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

static void format_cluster(const struct conf_master *m, char out[CONF_VALUE_MAX])
{
    size_t n = append(out, 0, "cluster://");

    n = append_login(out, n, m->user,
                     m->password != NULL || m->password_file != NULL ||
                         m->password_credential != NULL);
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
    if (m->by_cluster) {
        format_cluster(m, out);
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
