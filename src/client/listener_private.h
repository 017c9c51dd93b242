#pragma once
/* Between listener.c (accepts), listener_open.c (opens) and listener_proxy.c (PROXY headers). */
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "client/listener.h"

enum { LISTENERS_MAX = 64 };

/* The file of a Unix socket that we made; path is empty when there is none. */
struct listener_file {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    dev_t dev;
    ino_t ino;
};

/* What is spoken on a socket: TLS, and a PROXY header before everything else. */
struct listener_speech {
    bool tls, proxy;
};

/* Takes over a listening socket, and the file to remove at its end (NULL: none). */
void listener_add(struct listeners *, int fd, struct listener_speech,
                  const struct listener_file *file);
bool listener_is_full(const struct listeners *);

/* Adds the sockets that systemd has passed. Returns how many, or -1 with text in `error`. */
int listener_take_passed(struct listeners *, char *error, size_t error_size);

/* Opens and adds each address of the list. -1: one cannot be opened; some may be added. */
int listener_open_list(struct listeners *, const struct conf_listens *, unsigned unix_mode,
                       char *error, size_t error_size);

/* Connections whose PROXY header has not come yet. */
struct listener_proxied {
    LIST_HEAD(, proxied) head;
    size_t n;
    struct event_base *base;
    listener_accept_fn accept; /* called for each, with the address from its header */
    void *arg;
};
/* Adds a connection whose header is to come; `fd` belongs to the list from here on. */
void listener_await_header(struct listener_proxied *, int fd, bool tls, const struct sockaddr *peer,
                           socklen_t peer_len);
void listener_drop_waiting(struct listener_proxied *);

/* Removes the file, unless another one stands in its place. */
void listener_remove_file(const struct listener_file *);
