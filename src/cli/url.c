/*
 * Takes the addresses of brokers out of a list. They are written as those of masters are, and read
 * by the same code; a message never repeats one, since there may be a password in it.
 */
#include "cli/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"

enum { DEFAULT_PORT = 5625 };

void urls_fini(struct urls *urls)
{
    for (size_t i = 0; i < urls->n; i++) {
        conf_address_fini(&urls->v[i].at);
        free(urls->v[i].shown);
    }
    free(urls->v);
    *urls = (struct urls){0};
}

static char *show_address(const struct conf_master *at)
{
    size_t size = strlen(at->host) + sizeof "[]:65535";
    char *shown = util_alloc(size);

    if (at->is_unix)
        snprintf(shown, size, "%s", at->host);
    else
        snprintf(shown, size, strchr(at->host, ':') ? "[%s]:%d" : "%s:%d", at->host, at->port);
    return shown;
}

int urls_add(struct urls *urls, const char *list, char *error, size_t error_size)
{
    do {
        size_t len = strcspn(list, ",");
        char *text = util_memdup(list, len);
        struct url url = {0};
        struct conf_error err;
        int rc = conf_address_set(&url.at, text, DEFAULT_PORT, &err);
        explicit_bzero(text, len);
        free(text);
        if (rc != 0) {
            snprintf(error, error_size, "address %zu: %s", urls->n + 1, err.text);
            return -1;
        }
        if (url.at.user && !url.at.password) { /* redis-cli reads a word alone as the password */
            url.at.password = url.at.user;
            url.at.user = NULL;
        }
        url.shown = show_address(&url.at);
        urls->v = util_realloc(urls->v, (urls->n + 1) * sizeof urls->v[0]);
        urls->v[urls->n++] = url;
        list += len + (list[len] == ',');
    } while (*list);
    return 0;
}
