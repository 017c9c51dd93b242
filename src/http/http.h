#pragma once
/*
 * http: shows the broker to monitoring and to people, on a listener of its own.
 *
 *   /metrics               Prometheus text
 *   /livez  /-/healthy     200: the loop turns
 *   /readyz /-/ready       200, or 503 and why no lock can be had; ?verbose: each check
 *   /                      the status page, for hosts of ours only (host.c)
 *   /style.css /page.js    how it looks, and what fills it
 *   /status.json           ... from this, for hosts of ours only
 *   /locks.json?find=TEXT  some of the locks with such names, and a cursor to go on from; likewise
 *
 * GET and HEAD only; nothing can be changed from here. One request a connection, and every
 * connection ends after HTTP_CONN_MS whatever it does.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"
#include "http/status.h"

struct buf;
struct event_base;
struct http;

enum {
    HTTP_CONNS_MAX = 64,
    HTTP_CONN_MS = 10000,
    HTTP_CROWDED_MS = 1000, /* ... when there are so many that others have to wait */
    HTTP_HEADERS_MAX = 8192,
    HTTP_BODY_MAX = 4096
};

struct http_hooks {
    void *arg;
    void (*metrics)(void *arg, struct buf *out);
    /* Returns whether locks can be had; appends lines of text that say so, or why not. */
    bool (*ready)(void *arg, struct buf *out, bool verbose);
    /* Gives the numbers of holds and waiters; is called every second. */
    void (*levels)(void *arg, uint32_t *held, uint32_t *waiting);
    /* Returns the option http.hosts; NULL: none. */
    const char *(*hosts)(void *arg);
    /* Fills all but the samples. */
    void (*view)(void *arg, struct http_view *);
    /* Looks for locks, within a bound of time: goes on from the cursor, and sets it anew. */
    void (*search)(void *arg, struct http_search *);
};

/* Makes one that listens nowhere; hooks are copied. */
struct http *http_new(struct event_base *, const struct http_hooks *);
/* Listens on a socket too, which is its own from here on. */
void http_listen(struct http *, int fd);

/* Takes a sample for the curves; call once a second. NULL is allowed. */
void http_second(struct http *);

/* Closes everything and frees; NULL is allowed. */
void http_free(struct http *);
