/*
 * Decides which hosts the status page answers to.
 *
 * A web page from anywhere may have the name of its server lead to this machine a moment later (DNS
 * rebinding), and its script then reads what is here as if it were its own. The browser still says
 * the name in Host, and that is not one of ours. An address in Host needs no name, so nobody can
 * have made it lead elsewhere.
 */
#include "http/private.h"

#include <arpa/inet.h>
#include <event2/keyvalq_struct.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "conf/conf.h"

enum { HOST_MAX = 256 };

static bool is_address(const char *host)
{
    unsigned char addr[sizeof(struct in6_addr)];
    char text[HOST_MAX];
    size_t len = strlen(host);

    if (host[0] != '[')
        return inet_pton(AF_INET, host, addr) == 1;
    if (host[len - 1] != ']')
        return false;
    memcpy(text, host + 1, len - 2);
    text[len - 2] = '\0';
    return inet_pton(AF_INET6, text, addr) == 1;
}

static bool is_own_name(const char *host)
{
    static const char *const loopback[] = {"localhost", "ip6-localhost", "ip6-loopback"};
    char name[HOST_MAX];

    for (size_t i = 0; i < sizeof loopback / sizeof loopback[0]; i++)
        if (strcasecmp(host, loopback[i]) == 0)
            return true;
    if (gethostname(name, sizeof name - 1) != 0)
        return false;
    name[sizeof name - 1] = '\0';
    if (strcasecmp(host, name) == 0)
        return true;
    name[strcspn(name, ".")] = '\0';
    return *name && strcasecmp(host, name) == 0;
}

static bool is_listed(const char *host, const char *hosts)
{
    size_t len = strlen(host), n;

    for (const char *p = hosts; *p; p += n) {
        p += strspn(p, CONF_HOSTS_BETWEEN);
        n = strcspn(p, CONF_HOSTS_BETWEEN);
        if ((n == 1 && *p == '*') || (n == len && strncasecmp(p, host, n) == 0))
            return true;
    }
    return false;
}

/* Returns whether the text behind the host is nothing, or a colon and a port that may be empty. */
static bool is_port(const char *text)
{
    int64_t port;

    return !*text || (*text == ':' && (!text[1] || util_parse_int(text + 1, strlen(text + 1), 0,
                                                                  65535, &port) == 0));
}

bool http_host_fits(const char *header, const char *hosts)
{
    char host[HOST_MAX];
    size_t len;

    if (!header)
        return true;
    len = header[0] == '[' ? strcspn(header, "]") + 1 : strcspn(header, ":");
    if (len >= sizeof host || len > strlen(header) || !is_port(header + len))
        return false;
    memcpy(host, header, len);
    host[len] = '\0';
    if (len > 1 && host[len - 1] == '.') /* the full name */
        host[len - 1] = '\0';
    return is_address(host) || is_own_name(host) || (hosts && is_listed(host, hosts));
}

bool http_has_hosts(const struct evkeyvalq *headers)
{
    const struct evkeyval *header;
    int n = 0;

    TAILQ_FOREACH(header, headers, next)
        n += strcasecmp(header->key, "Host") == 0;
    return n > 1;
}
