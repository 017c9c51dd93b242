#pragma once
/*
 * listener: the sockets that clients connect to: TCP, Unix, or those that systemd passed.
 *
 * Hands each accepted connection to one callback and does not know what becomes of it. When
 * descriptors run out it tells the peer so, closes, and accepts nothing for 100 ms: the clients
 * that are connected go on undisturbed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/util.h"

struct conf_listens; /* conf.h */
struct event_base;
struct listeners;

/* Takes a connection: `fd` is non-blocking, close-on-exec, and belongs to the callee from here on.
 * `tls`: TLS is to be spoken on it. Behind a proxy with PROXY headers `peer` is the client. */
typedef void (*listener_accept_fn)(void *arg, int fd, bool tls, const struct sockaddr *peer,
                                   socklen_t peer_len);

/* Makes an empty set. */
struct listeners *listener_new(struct event_base *, listener_accept_fn, void *arg);

/* Opens every address of the list and starts to accept; sockets that systemd has passed are used in
 * place of the list (their FileDescriptorName= may be "tls", "proxy" or "proxy-tls"). Says
 * `listening on 127.0.0.1:5625` (the true port) in the log, a line for each. `unix_mode`:
 * permission bits of Unix sockets. -1: `error` says which address and why, none is open. */
int listener_open_all(struct listeners *, const struct conf_listens *, unsigned unix_mode,
                      char *error, size_t error_size) MUST_CHECK;

/* Returns true when TLS is to be spoken on one of them. */
bool listener_has_tls(const struct listeners *);

/* Stops or restarts accepting; connects meanwhile wait in the kernel. */
void listener_hold(struct listeners *, bool held);

/* Closes them all, removes the files of Unix sockets, and frees; NULL is allowed. */
void listener_free(struct listeners *);

/* Return the addresses that are open, "127.0.0.1:5625", "tls://127.0.0.1:5626",
 * "proxy://127.0.0.1:5627" or "unix:/path"; they live until listener_free(). */
size_t listener_count(const struct listeners *);
const char *listener_addr(const struct listeners *, size_t i);
