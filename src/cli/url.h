#ifndef HOLDFAST_URL_H
#define HOLDFAST_URL_H
/*
 * url: where a broker is: redis://[[user]:password@]host[:port][/], the same with rediss:// for
 * TLS, or unix://[[user]:password@]/path. User and password may be %-encoded.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"

#define URL_DEFAULT "redis://127.0.0.1:5625"

struct ssl_ctx_st;

struct url {
    char *shown; /* host:port or the path: never a password */
    char *host;  /* NULL: a Unix socket */
    int port;
    char *path;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */
    bool is_tls;
    struct ssl_ctx_st *tls; /* to be set before it is used, when is_tls; not its own */
};

struct urls {
    struct url *v;
    size_t n;
};

/* Adds the addresses of a list that is separated by commas. 0, or -1: `error` says what is wrong,
 * without a password. */
int urls_add(struct urls *urls, const char *list, char *error, size_t error_size) MUST_CHECK;
void urls_fini(struct urls *urls);
#endif
