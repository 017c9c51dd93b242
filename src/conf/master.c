/* master: the section [masters]: addresses as URLs, where their passwords come from, and files
 * for TLS.
 *
 * Knows how a master is written, not how it is reached. A message never repeats an address, since
 * there may be a password in it.
 *
 * Invariants: names are unique and keep the order in which they were first seen; a master without
 * an address (host NULL) has only been mentioned by an option of its own, and conf_check refuses
 * it; the array has room for CONF_MASTERS_MAX. */
#include "conf/private.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { REDIS_PORT = 6379, HOST_MAX = 253, ID_MAX = 128 };

#define ID_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:/_-"
#define NAME_BYTES "abcdefghijklmnopqrstuvwxyz0123456789_-"
#define HOST_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

void conf_address_fini(struct conf_master *m)
{
    free(m->host);
    free(m->user);
    if (m->password != NULL)
        explicit_bzero(m->password, strlen(m->password));
    free(m->password);
}

/* ---- its options ---- */

static int id_check(const char *value, struct conf_error *err)
{
    size_t len = strlen(value);

    if (len == 0 || len > ID_MAX || strspn(value, ID_BYTES) < len)
        return conf_refuse(err, "must be 1 to %d of the bytes A-Z a-z 0-9 . : / _ -", ID_MAX);
    return 0;
}

/* Takes a name as it may stand in an address, or an IPv6 address without brackets. */
static int tls_name_check(const char *value, struct conf_error *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    size_t len = strlen(value);

    if (inet_pton(AF_INET6, value, address) != 1 &&
        (len == 0 || len > HOST_MAX || strspn(value, HOST_BYTES) < len))
        return conf_refuse(err, "must be the name or the address in the server's certificate");
    return 0;
}

static int credential_check(const char *value, struct conf_error *err)
{
    if (value[0] == '\0' || value[0] == '.' || strchr(value, '/') != NULL)
        return conf_refuse(err, "must be the name of a systemd credential, without /");
    return 0;
}

#define TEXT(field) offsetof(struct conf_master, field)

static const struct master_option {
    const char *key; /* what stands behind the name of the master */
    size_t offset;   /* of a text in struct conf_master */
    int (*check)(const char *value, struct conf_error *);
    bool for_tls;
} options[] = {{".id", TEXT(id), id_check, false},
               {".password_file", TEXT(password_file), conf_path_check, false},
               {".password_credential", TEXT(password_credential), credential_check, false},
               {".ca", TEXT(ca), conf_path_check, true},
               {".certificate", TEXT(certificate), conf_path_check, true},
               {".key", TEXT(key), conf_path_check, true},
               {".server_name", TEXT(server_name), tls_name_check, true}};
enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };

_Static_assert(1 + (int)N_OPTIONS == CONF_MASTER_KEYS, "conf_master.line has another length");

static char **text_of(struct conf_master *m, int i)
{
    void *field = (char *)m + options[i].offset;

    return field;
}

static const char *read_text(const struct conf_master *m, int i)
{
    const void *field = (const char *)m + options[i].offset;

    return *(char *const *)field;
}

static void replace_text(char **text, const char *by)
{
    free(*text);
    *text = util_strdup(by);
}

void conf_clear_masters(struct conf *conf)
{
    for (size_t i = 0; i < conf->master_count; i++) {
        struct conf_master *m = &conf->masters[i];
        conf_address_fini(m);
        free(m->name);
        for (int k = 0; k < N_OPTIONS; k++)
            free(*text_of(m, k));
    }
    free(conf->masters);
    conf->masters = NULL;
    conf->master_count = 0;
}

void conf_masters_copy(struct conf *dst, const struct conf *src)
{
    dst->master_count = src->master_count;
    dst->masters = util_alloc(CONF_MASTERS_MAX * sizeof(*dst->masters));
    for (size_t i = 0; i < src->master_count; i++) {
        struct conf_master *to = &dst->masters[i];
        *to = src->masters[i];
        to->name = util_strdup(to->name);
        to->host = util_strdup(to->host);
        to->user = util_strdup(to->user);
        to->password = util_strdup(to->password);
        for (int k = 0; k < N_OPTIONS; k++)
            *text_of(to, k) = util_strdup(*text_of(to, k));
    }
}

/* ---- the address ---- */

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
    }
    explicit_bzero(url, strlen(text));
    free(url);
    return rc;
}

/* ---- setting by name ---- */

/* Returns the master of that name; a new one, not counted yet, when there is none. */
static struct conf_master *master_find_or_add(struct conf *conf, const char *name, size_t len,
                                              struct conf_error *err)
{
    for (size_t i = 0; i < conf->master_count; i++) {
        struct conf_master *m = &conf->masters[i];
        if (strlen(m->name) == len && memcmp(m->name, name, len) == 0)
            return m;
    }
    if (len == 0 || len > CONF_MASTER_NAME_MAX || strspn(name, NAME_BYTES) < len) {
        conf_refuse(err, "a master's name is 1 to %d of the bytes a-z 0-9 _ -",
                    CONF_MASTER_NAME_MAX);
        return NULL;
    }
    if (conf->master_count == CONF_MASTERS_MAX) {
        conf_refuse(err, "more than %d masters", CONF_MASTERS_MAX);
        return NULL;
    }
    if (conf->masters == NULL)
        conf->masters = util_alloc(CONF_MASTERS_MAX * sizeof(*conf->masters));
    conf->masters[conf->master_count] = (struct conf_master){0};
    return &conf->masters[conf->master_count];
}

/* Returns which key of a master it is: 0 is the address; -1: none. */
static int find_key(const char *key)
{
    for (int i = 0; i < N_OPTIONS; i++)
        if (strcmp(key, options[i].key) == 0)
            return 1 + i;
    return key[0] == '\0' ? 0 : -1;
}

int conf_master_set(struct conf *conf, const char *key, const char *value, int line,
                    struct conf_error *err)
{
    size_t len = strcspn(key, ".");
    struct conf_master *m = master_find_or_add(conf, key, len, err);
    int i = find_key(key + len);

    if (m == NULL)
        return -1;
    if (i < 0)
        return conf_refuse(err, "a master has only .id, .password_file, .password_credential, .ca, "
                                ".certificate, .key and .server_name");
    if (line > 0 && m->line[i] > 0)
        return conf_refuse(err, "is set in line %d already", m->line[i]);
    if (i == 0 ? conf_address_set(m, value, REDIS_PORT, err) : options[i - 1].check(value, err))
        return -1;
    if (i > 0)
        replace_text(text_of(m, i - 1), value);
    m->line[i] = line;
    if (m->name == NULL) {
        m->name = util_memdup(key, len);
        conf->master_count++;
    }
    return 0;
}

/* ---- reading ---- */

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

void conf_master_format(const struct conf_master *m, char out[CONF_VALUE_MAX])
{
    bool bracket = !m->is_unix && m->host != NULL && strchr(m->host, ':') != NULL;
    char number[32];
    size_t n = append(out, 0, m->is_unix ? "unix://" : m->tls ? "rediss://" : "redis://");

    if (m->user != NULL)
        n = append_encoded(out, n, m->user, "-._~");
    if (m->password != NULL || m->password_file != NULL || m->password_credential != NULL)
        n = append(out, n, ":***");
    if (m->user != NULL || out[n - 1] == '*')
        n = append(out, n, "@");
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

bool conf_master_same_address(const struct conf_master *a, const struct conf_master *b)
{
    return util_same_text(a->host, b->host) && a->port == b->port && a->is_unix == b->is_unix &&
           a->tls == b->tls;
}

bool conf_master_same_id(const struct conf_master *a, const struct conf_master *b)
{
    return util_same_text(a->id, b->id);
}

bool conf_master_same_login(const struct conf_master *a, const struct conf_master *b)
{
    bool same = util_same_text(a->user, b->user) && util_same_text(a->password, b->password);

    for (int k = 0; k < N_OPTIONS; k++)
        same = same && (!options[k].for_tls || util_same_text(read_text(a, k), read_text(b, k)));
    return same;
}

void conf_take_logins(struct conf *dst, const struct conf *src)
{
    for (size_t i = 0; i < src->master_count && i < dst->master_count; i++) {
        struct conf_master *to = &dst->masters[i];
        replace_text(&to->user, src->masters[i].user);
        replace_text(&to->password, src->masters[i].password);
        for (int k = 0; k < N_OPTIONS; k++)
            if (options[k].for_tls)
                replace_text(text_of(to, k), read_text(&src->masters[i], k));
    }
}
