/* peer: where clients reach this broker and the others, as host:port, and lists of names.
 *
 * Invariant: what conf_addresses_check() has let pass, conf_addresses() reads. */
#include "conf/private.h"

#include <arpa/inet.h>
#include <string.h>

const char *conf_next_name(const char **rest, size_t *len)
{
    const char *name;

    if (*rest == NULL)
        return NULL;
    name = *rest + strspn(*rest, CONF_HOSTS_BETWEEN);
    *len = strcspn(name, CONF_HOSTS_BETWEEN);
    *rest = name + *len;
    return *len > 0 ? name : NULL;
}

bool conf_lists_name(const char *list, const char *name, size_t len)
{
    const char *one;
    size_t one_len;

    while ((one = conf_next_name(&list, &one_len)) != NULL) {
        if (one_len == len && memcmp(one, name, len) == 0)
            return true;
    }
    return false;
}

/* Reads host:port or [v6]:port of this length, behind tls:// or not. */
static int parse_address(const char *text, size_t len, struct conf_address *out)
{
    static const char prefix[] = "tls://";
    const size_t prefix_len = sizeof prefix - 1;
    unsigned char v6[sizeof(struct in6_addr)];
    size_t host_len;
    int64_t port;

    out->tls = len > prefix_len && memcmp(text, prefix, prefix_len) == 0;
    if (out->tls) {
        text += prefix_len;
        len -= prefix_len;
    }
    const char *colon = memrchr(text, ':', len);
    if (colon == NULL ||
        util_parse_int(colon + 1, len - (size_t)(colon + 1 - text), 1, 65535, &port) != 0)
        return -1;
    host_len = (size_t)(colon - text);
    out->port = (int)port;
    if (host_len > 2 && text[0] == '[' && text[host_len - 1] == ']') {
        host_len -= 2;
        if (host_len > CONF_HOST_MAX)
            return -1;
        memcpy(out->host, text + 1, host_len);
        out->host[host_len] = '\0';
        return inet_pton(AF_INET6, out->host, v6) == 1 ? 0 : -1;
    }
    if (host_len == 0 || host_len > CONF_HOST_MAX)
        return -1;
    memcpy(out->host, text, host_len);
    out->host[host_len] = '\0';
    return strspn(out->host, CONF_HOST_BYTES) == host_len ? 0 : -1;
}

static bool is_there(const struct conf_address *v, int n, const struct conf_address *one)
{
    for (int i = 0; i < n; i++) {
        if (v[i].port == one->port && strcmp(v[i].host, one->host) == 0)
            return true;
    }
    return false;
}

/* Returns how many there are, or -1 with why in err. */
static int parse_addresses(const char *text, int64_t max, struct conf_address *out,
                           struct conf_error *err)
{
    size_t len;
    int n = 0;

    for (const char *p = text; *(p += strspn(p, CONF_HOSTS_BETWEEN)) != '\0'; p += len) {
        len = strcspn(p, CONF_HOSTS_BETWEEN);
        if (n == max)
            return conf_refuse(err, "must be %d address%s at most", (int)max, max > 1 ? "es" : "");
        if (parse_address(p, len, &out[n]) != 0)
            return conf_refuse(
                err, "must be host:port, [IPv6 address]:port, or tls:// and one of these, or none");
        if (is_there(out, n, &out[n]))
            return conf_refuse(err, "names an address twice");
        n++;
    }
    return n > 0
               ? n
               : conf_refuse(
                     err,
                     "must be host:port, [IPv6 address]:port, or tls:// and one of these, or none");
}

int conf_addresses_check(const char *text, int64_t max, struct conf_error *err)
{
    struct conf_address found[CONF_PEERS_MAX];

    return parse_addresses(text, max, found, err) > 0 ? 0 : -1;
}

int conf_addresses(const char *text, struct conf_address out[CONF_PEERS_MAX])
{
    struct conf_error err;
    int n = text != NULL ? parse_addresses(text, CONF_PEERS_MAX, out, &err) : 0;

    return n > 0 ? n : 0;
}
