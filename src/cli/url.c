/*
 * Text of a user in, addresses out. A message never repeats an address, since there may be a
 * password in it.
 */
#include "cli/url.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

enum { DEFAULT_PORT = 5625 };

static void url_fini(struct url *u)
{
    free(u->shown);
    free(u->host);
    free(u->path);
    free(u->user);
    if (u->password)
        explicit_bzero(u->password, strlen(u->password));
    free(u->password);
}

void urls_fini(struct urls *urls)
{
    for (size_t i = 0; i < urls->n; i++)
        url_fini(&urls->v[i]);
    free(urls->v);
    *urls = (struct urls){0};
}

static int hex(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* %XX become bytes. NULL: no text that could be meant. */
static char *decode(const char *text, size_t len)
{
    char *out = util_memdup(text, len), *to = out;
    for (const char *from = out; *from; from++) {
        int high = *from == '%' ? hex(from[1]) : 0;
        int low = *from == '%' && high >= 0 ? hex(from[2]) : 0;
        if (high < 0 || low < 0 || (*from == '%' && high == 0 && low == 0)) {
            free(out);
            return NULL;
        }
        *to++ = *from == '%' ? (char)(high << 4 | low) : *from;
        from += *from == '%' ? 2 : 0;
    }
    *to = '\0';
    return out;
}

/* user:password, :password; redis-cli reads a word alone as the password, and so do we. */
static const char *take_user(struct url *u, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    size_t user_len = colon ? (size_t)(colon - text) : 0;
    const char *password = colon ? colon + 1 : text;
    if (user_len && !(u->user = decode(text, user_len)))
        return "its user is not %-encoded as it should";
    u->password = decode(password, len - (size_t)(password - text));
    if (!u->password)
        return "its password is not %-encoded as it should";
    return NULL;
}

static const char *take_host(struct url *u, const char *text)
{
    size_t len = strcspn(text, "/?");
    bool bracket = text[0] == '[';
    const char *end = bracket ? memchr(text, ']', len) : memchr(text, ':', len);
    const char *host = text + bracket;
    int64_t port = DEFAULT_PORT;
    if (bracket && !end)
        return "a ] is missing";
    if (!end)
        end = text + len;
    u->host = util_memdup(host, (size_t)(end - host));
    if (u->host[0] == '\0')
        return "there is no host in it";
    end += bracket;
    if (end < text + len) {
        size_t digits = (size_t)(text + len - end) - 1;
        if (*end != ':' || util_parse_int(end + 1, digits, 1, 65535, &port) != 0)
            return "its port is not a number from 1 to 65535";
    }
    u->port = (int)port;
    u->shown = util_alloc(strlen(u->host) + 16);
    sprintf(u->shown, bracket ? "[%s]:%d" : "%s:%d", u->host, u->port);
    return NULL;
}

static const char *take_path(struct url *u, const char *text)
{
    if (text[0] != '/')
        return "a Unix socket is written unix:///path";
    if (strlen(text) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return "its path is too long for a socket";
    u->path = util_strdup(text);
    u->shown = util_strdup(text);
    return NULL;
}

/* NULL, or what is wrong. */
static const char *parse(struct url *u, const char *text)
{
    const char *rest, *why;
    bool is_unix = strncasecmp(text, "unix://", 7) == 0;
    u->is_tls = strncasecmp(text, "rediss://", 9) == 0;
    if (!is_unix && !u->is_tls && strncasecmp(text, "redis://", 8) != 0)
        return "it begins with none of redis://, rediss:// and unix://";
    rest = strstr(text, "://") + 3;
    size_t end = is_unix && rest[0] == '/' ? 0 : strcspn(rest, is_unix ? "" : "/?");
    const char *at = memrchr(rest, '@', end);
    if (at) {
        why = take_user(u, rest, (size_t)(at - rest));
        if (why)
            return why;
        rest = at + 1;
    }
    return is_unix ? take_path(u, rest) : take_host(u, rest);
}

int urls_add(struct urls *urls, const char *list, char *error, size_t error_size)
{
    do {
        size_t len = strcspn(list, ",");
        char *one = util_memdup(list, len);
        struct url u = {0};
        const char *why = parse(&u, one);
        explicit_bzero(one, len);
        free(one);
        if (why) {
            url_fini(&u);
            snprintf(error, error_size, "address %zu is no URL of a broker: %s", urls->n + 1, why);
            return -1;
        }
        urls->v = util_realloc(urls->v, (urls->n + 1) * sizeof urls->v[0]);
        urls->v[urls->n++] = u;
        list += len + (list[len] == ',');
    } while (*list);
    return 0;
}
