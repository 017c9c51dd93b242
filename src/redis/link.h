#pragma once
/*
 * link: a connection to one server, which one master has for itself, or which several share that
 * one node of a Cluster serves.
 *
 *     link_connect(l, seat, ...) --> on_open --> append to link_out(l), link_write(l, seat, n)
 *                                                   --> on_reply, n times --> ...  --> on_end
 *
 * Each user has a seat. Replies come in the order of the requests, each to the seat that has asked.
 * Who leaves hears nothing more, and the replies to him are passed over; what he has written was
 * before all that anybody writes afterwards. When the last one leaves the connection is closed.
 *
 * What is written to a shared link leaves with links_write(), or at the end of the callbacks that
 * are running: one write for all seats. Of a link of its own it leaves at once.
 */
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/reply.h"
#include "net/stream.h"

struct evdns_base;
struct link;

enum link_end {
    LINK_LOST,     /* it could not be made, or has ended */
    LINK_NONSENSE, /* what came is no reply, or none that was asked for */
    LINK_SILENT,   /* link_break() says so */
};

struct link_events {
    /* The connection stands. Never runs inside link_connect(). */
    void (*on_open)(void *arg);
    /* link->reply is the next reply to this seat. It may leave, or break the link. */
    void (*on_reply)(void *arg, int64_t now_ms, int64_t now_us);
    /* The link has ended; the seat has left. `text` says why. */
    void (*on_end)(void *arg, enum link_end, const char *text);
};

struct link_seat {
    TAILQ_ENTRY(link_seat) next;
    const struct link_events *events; /* these two are the owner's */
    void *arg;
    bool taken, waits; /* waits: for on_open */
};

/* So many replies are to come for one seat; NULL: it has left. */
struct link_run {
    struct link_seat *seat;
    int n;
};

struct link {
    struct stream stream;
    struct reply reply;
    bool is_shared, is_dirty;
    bool greeted;      /* the users': this connection has been told who we are */
    int64_t client_id; /* likewise: of the last connection; 0: not known */
    TAILQ_HEAD(, link_seat) seats;
    struct link_run *runs; /* a ring */
    int first_run, n_runs, cap_runs;
    unsigned ends; /* counts connections: a callback may have ended the one that it came from */
    size_t max_reply;
    struct event turn;
    TAILQ_ENTRY(link) dirty;
};

/* Makes a link without a connection. */
struct link *link_new(struct event_base *, bool is_shared);
void link_free(struct link *); /* also NULL; nobody has a seat */

/* Takes the seat. Begins to connect if there is no connection, nor one on the way; on_open or
 * on_end follows. max_reply: bytes; a longer one ends the link. */
void link_connect(struct link *, struct link_seat *, struct evdns_base *, const char *host,
                  int port, size_t max_reply);
/* Leaves, if the seat is taken. */
void link_leave(struct link *, struct link_seat *);
/* Ends the link for all, each of whom hears of it inside this call. */
void link_break(struct link *, enum link_end, const char *text);

static inline bool link_is_open(const struct link *l)
{
    return stream_is_open(&l->stream);
}
static inline struct buf *link_out(struct link *l)
{
    return stream_out(&l->stream);
}
/* So many requests of this seat have been appended to link_out(). */
void link_write(struct link *, struct link_seat *, int n);
/* Tells whether requests of anybody are unanswered. */
static inline bool link_is_asked(const struct link *l)
{
    return l->n_runs > 0;
}
/* Sends what has been written to shared links. */
void links_write(void);
