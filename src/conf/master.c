/* master: the section [masters]: the masters and their options: where their passwords come from,
 * files for TLS.
 *
 * Knows how a master is written, not how it is reached.
 *
 * Invariants: names are unique and keep the order in which they were first seen; a master without
 * an address (host NULL) has only been mentioned by an option of its own, and conf_check refuses
 * it; the array has room for CONF_MASTERS_MAX. */
#include "conf/private.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { REDIS_PORT = 6379, HOST_MAX = CONF_HOST_MAX, ID_MAX = 128 };

#define ID_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:/_-"
#define NAME_BYTES "abcdefghijklmnopqrstuvwxyz0123456789_-"
#define HOST_BYTES CONF_HOST_BYTES

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
} options[] = {
    {".id", TEXT(id), id_check, false},
    {".password_file", TEXT(password_file), conf_path_check, false},
    {".password_credential", TEXT(password_credential), credential_check, false},
    {".ca", TEXT(ca), conf_path_check, true},
    {".certificate", TEXT(certificate), conf_path_check, true},
    {".key", TEXT(key), conf_path_check, true},
    {".server_name", TEXT(server_name), tls_name_check, true},
    {".sentinel_password_file", TEXT(sentinel_password_file), conf_path_check, false},
    {".sentinel_password_credential", TEXT(sentinel_password_credential), credential_check, false},
    {".sentinel_ca", TEXT(sentinel_ca), conf_path_check, true},
    {".sentinel_certificate", TEXT(sentinel_certificate), conf_path_check, true},
    {".sentinel_key", TEXT(sentinel_key), conf_path_check, true},
    {".sentinel_server_name", TEXT(sentinel_server_name), tls_name_check, true}};
enum { N_OPTIONS = sizeof(options) / sizeof(options[0]), LOGIN_KEY = 1 + N_OPTIONS };

_Static_assert(1 + (int)LOGIN_KEY == CONF_MASTER_KEYS, "conf_master.line has another length");

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
        to->sentinel_user = util_strdup(to->sentinel_user);
        to->sentinel_password = util_strdup(to->sentinel_password);
        for (int k = 0; k < N_OPTIONS; k++)
            *text_of(to, k) = util_strdup(*text_of(to, k));
    }
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
    if (strcmp(key, ".master") == 0)
        return LOGIN_KEY;
    for (int i = 0; i < N_OPTIONS; i++)
        if (strcmp(key, options[i].key) == 0)
            return 1 + i;
    return key[0] == '\0' ? 0 : -1;
}

static int set_key(struct conf_master *m, int i, const char *value, struct conf_error *err)
{
    if (i == 0)
        return conf_is_sentinels_url(value) ? conf_sentinels_set(m, value, err)
               : conf_is_cluster_url(value) ? conf_cluster_set(m, value, err)
                                            : conf_address_set(m, value, REDIS_PORT, err);
    if (i == LOGIN_KEY)
        return conf_login_set(m, value, err);
    if (options[i - 1].check(value, err) != 0)
        return -1;
    replace_text(text_of(m, i - 1), value);
    return 0;
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
                                ".certificate, .key and .server_name, and one that is found by "
                                "Sentinels .master and these with .sentinel_ in front");
    if (line > 0 && m->line[i] > 0)
        return conf_refuse(err, "is set in line %d already", m->line[i]);
    if (set_key(m, i, value, err) != 0)
        return -1;
    m->line[i] = line;
    if (m->name == NULL) {
        m->name = util_memdup(key, len);
        conf->master_count++;
    }
    return 0;
}

/* ---- reading ---- */

bool conf_master_same_address(const struct conf_master *a, const struct conf_master *b)
{
    return util_same_text(a->host, b->host) && a->port == b->port && a->is_unix == b->is_unix &&
           a->tls == b->tls && a->sentinel_tls == b->sentinel_tls && a->by_cluster == b->by_cluster;
}

bool conf_master_same_id(const struct conf_master *a, const struct conf_master *b)
{
    return util_same_text(a->id, b->id);
}

bool conf_master_same_login(const struct conf_master *a, const struct conf_master *b)
{
    bool same = util_same_text(a->user, b->user) && util_same_text(a->password, b->password) &&
                util_same_text(a->sentinel_user, b->sentinel_user) &&
                util_same_text(a->sentinel_password, b->sentinel_password);

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
        replace_text(&to->sentinel_user, src->masters[i].sentinel_user);
        replace_text(&to->sentinel_password, src->masters[i].sentinel_password);
        for (int k = 0; k < N_OPTIONS; k++)
            if (options[k].for_tls)
                replace_text(text_of(to, k), read_text(&src->masters[i], k));
    }
}
