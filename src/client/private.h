#ifndef HOLDFAST_CLIENT_PRIVATE_H
#define HOLDFAST_CLIENT_PRIVATE_H
/* Between client.c (who is there), run.c (bytes to commands) and end.c (how one
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
    CLIENT_LOGIN,   /* its password is being looked at: login.c */
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
    bool stranger;            /* users are asked for, and it has not said who it is */
    bool certificate_seen;    /* who it is by its certificate has been looked for */
    int64_t stranger_since_ms;
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
    struct client_list ready; /* to be flushed at the end of this turn */
    struct client_list more;  /* have commands left for the next turn */
    struct client_list
        watched; /* looked at some times a second: something about them must not last */
    size_t n_all, n_more;
    uint64_t last_id;
    int64_t paused_until_ms; /* 0: commands are not paused */
    unsigned paused_classes; /* of commands; see client_pause_all() */
    struct resp_scratch scratch;
    size_t n_strangers;
    struct client_peer *peers; /* by address */
    int turn_left;             /* commands that may still run in this turn, of all clients */
    int ends_left;             /* clients that may still be ended in this turn, roughly */
    struct resp_limits strict; /* for strangers */
    struct event turn, tick, watch, unpause;
    struct event login_due, login_done; /* login.c */
    int64_t http_logged_ms, tls_logged_ms;
    struct log_burst ends_logged;
};

static inline struct client *client_of(struct session *s)
{
    return (struct client *)s; /* its first member */
}

/* Has it flushed and looked at before this turn ends. */
void client_ready(struct client *);
/* Has it looked at some times a second. */
void client_watch(struct client *);

/* Ends it once the replies that it waits for have been sent; nothing further of it is run. */
void client_finish(struct client *, enum client_end, const char *reason);
/* Ends it now. Not while a command of it is being run. */
void client_end_now(struct client *, enum client_end, const char *reason);

/* Bytes of replies that wait: for the socket, or for the replies before them. */
static inline size_t client_backlog(const struct client *c)
{
    return buf_len(&c->stream.out) + c->session.held_len;
}

/* Commands may run again. What a turn has done too much, in one command that costs a lot, is done
 * less in the next ones. */
static inline void client_refill(struct clients *set)
{
    set->turn_left = set->turn_left < 0 ? set->turn_left + CLIENT_TURN_ALL : CLIENT_TURN_ALL;
}

/* Its time to end runs from now on. */
void client_begin_end(struct client *, enum client_end, int64_t now_ms);
/* Frees those who have ended. */
void client_free_dead(struct clients *);
/* The events of the set: once a second, and while somebody is watched. */
void client_on_tick(evutil_socket_t, short, void *arg);
void client_on_watch(evutil_socket_t, short, void *arg);

/* Who it is may have changed: other bounds hold. */
void client_look_at_user(struct client *);

/* peer.c: connections by address */
enum { CLIENT_PEER_KEY = 9 };
void client_peer_count(struct clients *, const struct sockaddr *, int64_t *n_clients,
                       int64_t *n_strangers);
struct client_peer *client_peer_join(struct clients *, const struct sockaddr *);
void client_peer_stranger(struct client_peer *, int change); /* +1, -1; NULL is allowed */
void client_peer_leave(struct clients *, struct client_peer *);
/* Where it comes from, for login.h; `uid` counts for peers without an address. */
uint64_t client_peer_origin(const struct sockaddr *, int64_t uid);

/* login.c */
void client_login_init(struct clients *);
void client_login_fini(struct clients *);
/* Gives login.h its turn, and has it come again when it is due. */
void client_login_turn(struct clients *);
/* After login_ask(): only the latter. */
void client_login_arm(struct clients *);

/* run.c */
/* stream_events.on_bytes. */
size_t client_on_bytes(void *arg, const char *data, size_t len);
/* Goes on with the commands of a client that had to wait, if it need not any more. */
void client_unstall(struct client *);
/* The event of the set: those who had commands left. */
void client_on_turn(evutil_socket_t, short, void *arg);
#endif
