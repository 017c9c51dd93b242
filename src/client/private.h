#pragma once
/* Between client.c (which clients there are), run.c (from bytes to commands) and end.c (how one
 * ends). */
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "base/log.h"
#include "client/client.h"
#include "conf/conf.h"

/* Why the commands of a client wait. */
enum client_stall {
    CLIENT_RUNS,
    CLIENT_BUSY,    /* a request is parked, too many are in flight, or too much is to be sent */
    CLIENT_BARRIER, /* the next command wants nothing in flight */
    CLIENT_LOGIN,   /* its password is being checked: login.c */
    CLIENT_PAUSED   /* client_pause_all() */
};

struct client {
    struct session session;
    struct stream stream;
    struct resp_parser parser;
    struct clients *set;
    TAILQ_ENTRY(client) link;    /* set->all, or set->dead */
    TAILQ_ENTRY(client) ready;   /* set->ready, when is_ready */
    TAILQ_ENTRY(client) more;    /* set->more, when has_more */
    TAILQ_ENTRY(client) watched; /* set->watched, when is_watched */
    bool is_ready, has_more, is_watched;
    bool eof;                 /* the peer's FIN has come: what came before it is still answered */
    bool finishing;           /* client_finish(): only what is in flight is still answered */
    bool shut;                /* our FIN is sent: only the peer's is waited for */
    bool dead;                /* ended; freed at the end of the turn */
    uint8_t stall;            /* enum client_stall */
    uint8_t end;              /* enum client_end, when eof, finishing or dead */
    int64_t ending_since_ms;  /* when eof or finishing */
    int64_t partial_since_ms; /* 0: no request is half there */
    int64_t full_since_ms;    /* 0: the peer takes its replies */
    bool stranger;            /* there are users, and it has not logged in */
    bool certificate_seen;    /* its certificate has been looked at for a user */
    int64_t stranger_since_ms;
    int64_t login_since_ms;          /* it sent the password that is checked, or was last */
    size_t unsent;                   /* bytes that the last flush had to leave */
    int64_t counted_in, counted_out; /* of stream's, in the statistics */
    char *peer, *local;
    struct client_peer *from; /* NULL: over a Unix socket */
};
TAILQ_HEAD(client_list, client);

struct clients {
    struct event_base *base;
    struct conf_client limits;
    struct resp_limits resp; /* of them, those of the parser */
    const struct client_events *events;
    void *arg;
    struct ssl_ctx_st *tls; /* NULL: none */
    struct client_list all, dead;
    struct client_list ready; /* flushed at the end of this turn */
    struct client_list more;  /* have commands left for the next turn */
    struct client_list
        watched; /* clients in a state that has a time limit; looked at some times a second */
    size_t n_all, n_more;
    uint64_t last_id;
    int64_t paused_until_ms; /* 0: commands are not paused */
    unsigned paused_classes; /* of commands; see client_pause_all() */
    struct resp_scratch scratch;
    struct stream_quota quota; /* of their streams */
    size_t n_strangers;
    struct client_peer *peers; /* by address */
    int turn_left;             /* commands that may still run in this turn, of all clients */
    int ends_left;             /* clients that may still be ended in this turn, roughly */
    struct resp_limits strict; /* for strangers */
    struct event turn, tick, watch, unpause;
    struct event login_due, login_done; /* login.c */
    struct log_limit http_logged, tls_logged;
    struct log_burst ends_logged;
};

static inline struct client *client_of(struct session *s)
{
    return (struct client *)s; /* its first member */
}

/* Puts the client on the list of those that are flushed and looked at before this turn ends. */
void client_ready(struct client *);
void client_on_ready(struct session *); /* the same, for what tells of a session */
/* Puts the client on the list of those that are looked at some times a second. */
void client_watch(struct client *);

/* Ends the client once the replies that it waits for have been sent; runs nothing further of it. */
void client_finish(struct client *, enum client_end, const char *reason);
/* Ends the client now. Must not be called while a command of it is being run. */
void client_end_now(struct client *, enum client_end, const char *reason);

/* Returns how many bytes of replies wait: for the socket, or for the replies before them. */
static inline size_t client_backlog(const struct client *c)
{
    return buf_len(&c->stream.out) + c->session.held_len;
}

/* Allows the commands of another turn. What one costly command has done beyond its turn is taken
 * off the next ones. */
static inline void client_refill(struct clients *set)
{
    set->turn_left = set->turn_left < 0 ? set->turn_left + CLIENT_TURN_ALL : CLIENT_TURN_ALL;
}

/* Begins the time in which the client has to end. */
void client_begin_end(struct client *, enum client_end, int64_t now_ms);
/* Frees the clients that have ended. */
void client_free_dead(struct clients *);
/* Callbacks of the set's events: once a second, and while a client is watched. */
void client_on_tick(evutil_socket_t, short, void *arg);
void client_on_watch(evutil_socket_t, short, void *arg);

/* Sets the bounds that hold for its user, which may have changed. */
void client_look_at_user(struct client *);

/* peer.c: where connections come from */
enum { CLIENT_PEER_KEY = 9 };
void client_peer_count(struct clients *, const struct sockaddr *, int64_t *n_clients,
                       int64_t *n_strangers);
struct client_peer *client_peer_join(struct clients *, const struct sockaddr *);
void client_peer_stranger(struct client_peer *, int change); /* +1, -1; NULL is allowed */
void client_peer_leave(struct clients *, struct client_peer *);
/* Returns its origin, for login.h; `uid` counts for peers without an address. */
uint64_t client_peer_origin(const struct sockaddr *, int64_t uid);
/* Returns the address of this end in words; heap. */
char *client_local_address(int fd);
/* Returns the address of the peer in words; heap. Over a Unix socket it has none: that of the
 * socket says more. */
char *client_peer_address(int fd, const struct sockaddr *, socklen_t);

/* login.c */
void client_login_init(struct clients *);
void client_login_fini(struct clients *);
/* Runs login_turn(), and sets the timer for the next one. */
void client_login_turn(struct clients *);
/* Sets that timer only; call it after login_ask(). */
void client_login_arm(struct clients *);

/* run.c */
/* Runs the commands in the bytes of a client; for stream_events.on_bytes. */
size_t client_on_bytes(void *arg, const char *data, size_t len);
/* Goes on with the commands of a client that had to wait, if nothing is in its way any more. */
void client_unstall(struct client *);
/* Callback of the set's event: goes on with the clients that had commands left. */
void client_on_turn(evutil_socket_t, short, void *arg);
