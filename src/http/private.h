/* Is shared by the files of http alone. */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "http/http.h"

struct evhttp;
struct evkeyvalq;
struct conn;

/* ---- conn.c: connections, and the sockets that they come to ---- */
struct http_conns {
    struct evhttp *evhttp;
    TAILQ_HEAD(, conn) conns;
    size_t n_conns;
    struct event timer;
    bool paused; /* nothing is accepted */
};
void http_conns_init(struct http_conns *, struct event_base *, struct evhttp *);
/* Accepts from a listening socket, which is evhttp's from here on. */
void http_conns_listen(struct http_conns *, int fd);
void http_conns_fini(struct http_conns *); /* after evhttp_free() */

/* ---- host.c ---- */
/* Returns whether a Host header says a name of this machine, an address, or one of `hosts` (NULL:
 * none). No header (NULL) fits too: browsers send one. */
bool http_host_fits(const char *header, const char *hosts);
/* Returns whether there is more than one Host. A proxy on the way may have gone by the other. */
bool http_has_hosts(const struct evkeyvalq *headers);
