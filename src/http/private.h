/* Is shared by the files of http alone. */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "conf/conf.h"
#include "http/http.h"

struct evhttp;
struct evkeyvalq;
struct evconnlistener;
struct conn;

/* ---- conn.c: sockets and connections ---- */
struct http_conns {
    struct evhttp *evhttp;
    struct evconnlistener *sockets[2 * CONF_LISTEN_MAX]; /* each may be two: * is IPv4 and IPv6 */
    size_t n_sockets;
    TAILQ_HEAD(, conn) conns;
    size_t n_conns;
    struct event timer;
    bool paused; /* nothing is accepted */
};
void http_conns_init(struct http_conns *, struct event_base *, struct evhttp *);
/* -1: `error` says which address and why; those that are open are evhttp's to close. */
int http_conns_open(struct http_conns *, const struct conf_listens *, char *error,
                    size_t error_size) MUST_CHECK;
void http_conns_fini(struct http_conns *); /* after evhttp_free() */

/* ---- host.c ---- */
/* Returns whether a Host header says a name of this machine, an address, or one of `hosts` (NULL:
 * none). No header (NULL) fits too: browsers send one. */
bool http_host_fits(const char *header, const char *hosts);
/* Returns whether there is more than one Host. A proxy on the way may have gone by the other. */
bool http_has_hosts(const struct evkeyvalq *headers);
