/* listen: the list of addresses to listen on, from text and back.
 *
 * Addresses are numeric: nothing is looked up, so a list means the same on every start.
 *
 * Invariant: v has room for CONF_LISTEN_MAX addresses and no two are the same. */
#include "conf/private.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define ADDRESS_HINT                                                                               \
    "try 127.0.0.1:5625, [::1]:5625, *:5625, tls://*:5626, proxy://127.0.0.1:5627 or "             \
    "unix:/run/holdfast/holdfast.sock"

void conf_listens_fini(struct conf_listens *listens)
{
    for (size_t i = 0; i < listens->count; i++)
        free(listens->v[i].host);
    free(listens->v);
    *listens = (struct conf_listens){0};
}

void conf_listens_copy(struct conf_listens *dst, const struct conf_listens *src)
{
    dst->count = src->count;
    dst->v = util_alloc(CONF_LISTEN_MAX * sizeof(*dst->v));
    for (size_t i = 0; i < src->count; i++) {
        dst->v[i] = src->v[i];
        dst->v[i].host = util_strdup(src->v[i].host);
    }
}

const char *conf_listen_prefix(bool tls, bool proxy)
{
    static const char *const prefixes[2][2] = {{"", "proxy://"}, {"tls://", "proxy+tls://"}};

    return prefixes[tls][proxy];
}

const char *conf_listen_skip_prefix(const char *address, bool *tls, bool *proxy)
{
    for (int i = 3; i >= 0; i--) {
        const char *prefix = conf_listen_prefix(i & 1, i & 2);
        *tls = i & 1;
        *proxy = i & 2;
        if (strncmp(address, prefix, strlen(prefix)) == 0)
            return address + strlen(prefix);
    }
    return address;
}

/* Reads an address; cuts text into host and port in place. */
static int parse_listen(char *text, struct conf_listen *out)
{
    unsigned char address[sizeof(struct in6_addr)];
    char *colon;
    int64_t port;
    size_t len;

    if (strncmp(text, "unix:", 5) == 0) {
        *out = (struct conf_listen){.host = text + 5, .is_unix = true};
        len = strlen(out->host);
        return out->host[0] == '/' && len < sizeof(((struct sockaddr_un *)0)->sun_path) ? 0 : -1;
    }
    *out = (struct conf_listen){0};
    text += conf_listen_skip_prefix(text, &out->tls, &out->proxy) - text;
    colon = strrchr(text, ':');
    if (colon == NULL || util_parse_int(colon + 1, strlen(colon + 1), 0, 65535, &port) != 0)
        return -1;
    *colon = '\0';
    out->host = text;
    out->port = (int)port;
    if (strcmp(text, "*") == 0 || inet_pton(AF_INET, text, address) == 1)
        return 0;
    len = strlen(text);
    if (len < 2 || text[0] != '[' || text[len - 1] != ']')
        return -1;
    text[len - 1] = '\0';
    out->host = text + 1;
    return inet_pton(AF_INET6, out->host, address) == 1 ? 0 : -1;
}

static bool same_listen(const struct conf_listen *a, const struct conf_listen *b)
{
    if (a->is_unix != b->is_unix || a->port != b->port || strcmp(a->host, b->host) != 0)
        return false;
    return a->port != 0 ||
           (a->tls == b->tls && a->proxy == b->proxy); /* any free port is another one each time */
}

static int listens_add(struct conf_listens *listens, const char *word, struct conf_error *err)
{
    struct conf_listen parsed;
    char shown[128], *text = util_strdup(word);
    int rc = -1;

    conf_printable(shown, sizeof(shown), word);
    if (parse_listen(text, &parsed) != 0) {
        conf_refuse(err, "'%s' is not an address (" ADDRESS_HINT ")", shown);
        goto out;
    }
    if (listens->count == CONF_LISTEN_MAX) {
        conf_refuse(err, "more than %d addresses", CONF_LISTEN_MAX);
        goto out;
    }
    for (size_t i = 0; i < listens->count; i++) {
        if (same_listen(&listens->v[i], &parsed)) {
            conf_refuse(err, "'%s' is there twice", shown);
            goto out;
        }
    }
    parsed.host = util_strdup(parsed.host);
    listens->v[listens->count++] = parsed;
    rc = 0;
out:
    free(text);
    return rc;
}

int conf_listens_set(struct conf_listens *listens, const char *text, struct conf_error *err)
{
    struct conf_listens fresh = {0};
    char *copy = util_strdup(text), *rest = copy, *word;
    int rc = 0;

    fresh.v = util_alloc(CONF_LISTEN_MAX * sizeof(*fresh.v));
    while (rc == 0 && (word = strsep(&rest, " \t,")) != NULL) {
        if (*word != '\0')
            rc = listens_add(&fresh, word, err);
    }
    if (rc == 0 && fresh.count == 0)
        rc = conf_refuse(err, "names no address (" ADDRESS_HINT ")");
    free(copy);
    if (rc != 0) {
        conf_listens_fini(&fresh);
        return -1;
    }
    conf_listens_fini(listens);
    *listens = fresh;
    return 0;
}

void conf_listens_format(const struct conf_listens *listens, char out[CONF_VALUE_MAX])
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < listens->count && n < CONF_VALUE_MAX; i++) {
        const struct conf_listen *l = &listens->v[i];
        bool bracket = !l->is_unix && strchr(l->host, ':') != NULL;
        n += (size_t)snprintf(out + n, CONF_VALUE_MAX - n, "%s%s%s%s%s%s", i > 0 ? " " : "",
                              conf_listen_prefix(l->tls, l->proxy), l->is_unix ? "unix:" : "",
                              bracket ? "[" : "", l->host, bracket ? "]" : "");
        if (!l->is_unix && n < CONF_VALUE_MAX)
            n += (size_t)snprintf(out + n, CONF_VALUE_MAX - n, ":%d", l->port);
    }
}
