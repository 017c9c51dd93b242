#pragma once
/*
 * client: one socket with a session on it: bytes to requests, finished replies back in the order of
 * the requests. All clients of a daemon are one `struct clients`.
 *
 * The room client is the edge towards applications: listening sockets, connections, how they end.
 * It knows no lock.
 *
 * In one turn of the loop each client runs at most CLIENT_TURN commands; the replies of a turn
 * leave in client_flush_all(), which the server calls at the end of each turn. Every end has a
 * reason, which is logged and counted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/resp.h"
#include "net/stream.h"
#include "session/session.h"

struct clients;

struct conf_client; /* conf.h */
struct ssl_ctx_st;  /* tls.h */

enum {
    CLIENT_AUTH_MS = 5000,           /* to log in, where there are users */
    CLIENT_STRANGERS_MAX = 256,      /* clients at a time that have not logged in, */
    CLIENT_STRANGERS_PEER_MAX = 128, /* of them from one address, */
    CLIENT_STRANGER_OUT = 1024,      /* bytes of replies that one of them may leave unread */
    CLIENT_HANDSHAKE_MS = 5000,      /* for TLS; limits.request_time when that is shorter */
    CLIENT_TURN = 32,                /* commands of one client in one turn of the loop, */
    CLIENT_TURN_ALL = 512, /* of all that have just sent some, and as many of the others */
    CLIENT_LINGER_MS =
        5000 /* how long a client that is to be closed has to take its last replies */
};

/* Why a client has gone. */
enum client_end {
    CLIENT_END_EOF,      /* the peer closed in order */
    CLIENT_END_QUIT,     /* it said QUIT */
    CLIENT_END_RESET,    /* RST, or a write that the peer refused */
    CLIENT_END_TIMEOUT,  /* the peer's machine does not answer */
    CLIENT_END_ERROR,    /* another error of the socket */
    CLIENT_END_PROTOCOL, /* sent what is no request */
    CLIENT_END_HTTP,     /* spoke HTTP */
    CLIENT_END_TLS,      /* spoke TLS on a plain port, or not as we want it */
    CLIENT_END_AUTH,     /* did not log in in time */
    CLIENT_END_REQUEST,  /* did not finish a request in time */
    CLIENT_END_IDLE,     /* idle for too long */
    CLIENT_END_OUTPUT,   /* did not take its replies */
    CLIENT_END_KILLED,   /* CLIENT KILL */
    CLIENT_END_ASKED,    /* session_events.on_close, for on_lost = close */
    CLIENT_END_SHUTDOWN, /* the daemon ends */
    CLIENT_END_COUNT
};

/* Returns true for the ends after which the peer certainly works on nothing any more that it locked
 * here. */
static inline bool client_end_is_orderly(enum client_end end)
{
    return end == CLIENT_END_EOF || end == CLIENT_END_QUIT;
}

struct client_events {
    /* A client has connected: gives it its default owner (session->owner). */
    void (*on_start)(void *arg, struct session *, int64_t now_ms);
    /* It ends: releases its watched holds or lets them lapse (broker_session_end), and unrefs
     * session->owner (which is NULL after this). Once; no reply can be written any more. Its
     * requests are abandoned afterwards. */
    void (*on_end)(void *arg, struct session *, enum client_end, int64_t now_ms);
};

/* Makes an empty set. `limits` are copied; `events` stay the caller's. */
struct clients *client_init(struct event_base *, const struct conf_client *,
                            const struct client_events *, void *arg);

/* Ends every client (CLIENT_END_SHUTDOWN; bytes that are not sent get one try) and frees the set.
 * NULL is allowed. */
void client_fini(struct clients *);

/* Sets new limits, from a reload: they count at once, also for clients that are connected. */
void client_set_limits(struct clients *, const struct conf_client *);

/* Sets the context for connections with TLS from now on. It stays the caller's until another takes
 * its place. */
void client_set_tls(struct clients *, struct ssl_ctx_st *);

/* Follows a change of the set of users (user.h): ends clients whose user is gone, those that have
 * to log in now, and those that listen by rights that have changed. */
void client_users_changed(struct clients *);

/* Takes over an accepted socket, with TLS only when a context was given; answers an error and
 * closes when there are too many clients. Fits listener_accept_fn, with the set as `arg`. */
void client_accept(void *clients, int fd, bool tls, const struct sockaddr *peer,
                   socklen_t peer_len);

/* Writes and sends the replies that became ready in this turn, ends the clients that are to end,
 * frees those that have ended. Call it at the end of each turn of the loop; no client is freed at
 * any other time. */
void client_flush_all(struct clients *);

/* Calls `each` for every client; it may kill them. */
void client_each(struct clients *, void (*each)(struct session *, void *arg), void *arg);
/* Counts them; *n_strangers: those of them that have yet to log in. */
size_t client_count(const struct clients *, size_t *n_strangers);

/* Ends a client after the replies that it waits for have been sent, at the latest after
 * CLIENT_LINGER_MS. No further command of it runs. `reason` goes to the log. */
void client_kill(struct session *, const char *reason);

/* Lets commands of these classes (CMD_LOCK, CMD_INSPECT) of all clients wait until this time; 0: no
 * longer. */
void client_pause_all(struct clients *, int64_t until_ms, unsigned classes);

/* Return addresses in words and the descriptor, for CLIENT LIST; they live as long as the client.
 */
const char *client_peer(struct session *);
const char *client_local(struct session *);
int client_fd(struct session *);

/* Return, for CLIENT LIST, how many bytes wait to be run, and to be sent. */
size_t client_input_len(struct session *);
size_t client_output_len(struct session *);
