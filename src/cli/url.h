#pragma once
/*
 * url: reads addresses of brokers: redis://[[user]:password@]host[:port][/], the same with
 * rediss:// for TLS, or unix://[[user]:password@]/path. User, password and path may be
 * %-encoded.
 */
#include <stddef.h>

#include "conf/conf.h"

#define URL_DEFAULT "redis://127.0.0.1:5625"

struct ssl_ctx_st;

struct url {
    struct conf_master at;  /* host, port and so on; its host is the path of a Unix socket */
    char *shown;            /* host:port or the path: never a password */
    struct ssl_ctx_st *tls; /* to be set before it is used, if at.tls; not its own */
};

struct urls {
    struct url *v;
    size_t n;
};

/* Adds the addresses of a list that is separated by commas. -1: `error` says what is wrong, without
 * a password. */
int urls_add(struct urls *urls, const char *list, char *error, size_t error_size) MUST_CHECK;
void urls_fini(struct urls *urls);
