#pragma once
/*
 * session: a client without its socket.
 *
 * The room session has who clients are and what they are told apart from replies: sessions and
 * their requests, users and logins, channels, the last lost locks. Sockets and locks are not known
 * here.
 *
 * A session has an identity (number, default owner, name), the watched holds that end with it, and
 * its requests in flight in the order in which they came. A request finishes exactly once; its
 * reply is turned into bytes at the last moment (session_flush), so that a validity in it is true
 * when it leaves. Replies leave in the order of the requests.
 *
 *   A request:
 *     session_ask ---> RUNNING --request_finish--> DONE --session_flush--> freed
 *                        |  ^
 *          request_park  v  | request_unpark        (the session runs nothing behind it meanwhile)
 *                       PARKED
 *     session_fini: RUNNING or PARKED -> type->abandon(): its owner finishes with it and frees it.
 *
 * One with a tag (ASYNC) stands outside the order of replies: it is answered QUEUED at once,
 * nothing waits for it, and its end is told by a push, never before that QUEUED (session_async.c).
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "net/resp.h"

struct session;
struct request;
struct async;
struct owner;       /* lock.h */
struct hold;        /* lock.h */
struct user;        /* user.h */
struct login;       /* login.h */
struct transaction; /* of command/multi.c */

/* What kind of request it is: one constant table for each. */
struct request_type {
    /* Appends the reply. Once, at the head of the queue, after request_finish. It changes nothing
     * else: what follows from a reply is done later. */
    void (*write)(struct request *, struct resp_writer *, int64_t now_ms);
    /* The session has ended and the request is not done: nobody waits for it any more. From now on
     * it belongs to whoever runs it (request->session is NULL), who frees it when its road ends. */
    void (*abandon)(struct request *, int64_t now_ms);
    /* Frees it with all that it owns. */
    void (*free)(struct request *);
    /* In place of write, for one with a tag: tells what has become of it; NULL: it was cancelled.
     * `w` is for one push, and may be left alone. */
    void (*push)(struct session *, const struct async *, struct request *, struct resp_writer *w,
                 int64_t now_ms);
};

struct request {
    TAILQ_ENTRY(request) link; /* session->requests */
    const struct request_type *type;
    struct session *session; /* NULL: abandoned */
    struct async *async;     /* its tag; NULL: it is answered in its order */
    int64_t arrived_us;      /* when its last byte came, CLOCK_BOOTTIME */
    uint16_t cmd;            /* row of the command table, for the statistics; set by cmd */
    bool done, parked, failed;
    bool may_wait; /* set before session_ask: nothing said behind it is begun before it is done */
    bool granted;  /* a lock was granted: how long that took is a wait, for the statistics */
    bool waited;   /* has ever been parked: its time says nothing about our speed */
    uint8_t subject_len;
    char subject[64]; /* the lock, cut: for the slow log and lists of waiters */
};
TAILQ_HEAD(request_list, request);

/* What the client edge is told. */
struct session_events {
    /* Something can be written: call session_flush() before this turn of the loop ends. */
    void (*on_ready)(struct session *);
    /* No request is parked any more, those with a tag aside, or the last one, which may have
     * waited, is done: go on with the commands that came behind it. */
    void (*on_unblocked)(struct session *);
    /* A request has been parked, the first of them. NULL: nobody wants to know. */
    void (*on_blocked)(struct session *);
    /* The session has to end, e.g. by `on_lost = close`; `reason` is for the log. The edge does not
     * close inside the call but at the end of the turn, after what is written has been sent. */
    void (*on_close)(struct session *, const char *reason);
    /* A reply has been written, its request is still whole; for the statistics. NULL: nobody
     * counts. Not for immediate replies (session_reply), which are counted where they are made. */
    void (*on_written)(struct request *);
};

enum { SESSION_NAME_MAX = 128, SESSION_DATABASES = 16 };

struct session {
    uint64_t id; /* unique in this process, from 1 */
    const struct session_events *events;
    struct buf *out;         /* the stream's; only whole replies and messages enter it */
    struct user *user;       /* the user that it acts as, one reference; NULL: nobody */
    struct user *own_user;   /* the user that its uid or certificate implies; likewise */
    struct login *login;     /* its password is being checked; NULL: none is */
    uint64_t origin;         /* its origin, see login.h */
    struct owner *owner;     /* default owner; one reference */
    struct owner *acted_for; /* of its last lock command; one reference, or NULL */
    struct request_list requests;
    uint32_t n_requests; /* in the list */
    uint32_t n_parked;
    uint64_t n_left;                    /* requests that have left the list, ever */
    struct async *asyncs;               /* requests with a tag, by tag, until their end is told */
    TAILQ_HEAD(, async) told;           /* of them, those whose end is to be told */
    uint32_t n_async, n_async_waits;    /* of them, in all and parked */
    TAILQ_HEAD(, multilock) multilocks; /* MLOCK and MUNLOCK that are not over; multilock.h */
    LIST_HEAD(, hold) holds;            /* that belong to this connection, those with LEASE too */
    uint32_t n_holds;
    LIST_HEAD(, hold_guest) entered; /* holds that do not belong to it, and that it has entered */
    uint32_t n_entered;
    TAILQ_HEAD(, subscription) subscriptions; /* pubsub.h */
    uint32_t n_subscriptions, n_patterns;     /* in the list; patterns among them */
    char *name;                               /* CLIENT SETNAME; NULL: none */
    char *lib_name, *lib_ver;                 /* CLIENT SETINFO; NULL: none */
    int64_t created_ms, last_ms;
    uint8_t library; /* what counts it by its lib_name, see stats/libraries.h */
    uint16_t last_cmd;
    uint8_t proto; /* 2 or 3 */
    uint8_t db;    /* SELECT; names of another one than 0 are other names, see command/names.c */
    bool ready;    /* on_ready has been called, session_flush not yet */
    bool writing;  /* a reply is being written */
    bool closing;  /* no further command is run (QUIT, kill) */
    bool patient;  /* its only request waits for a lock until something else is said */
    bool ended;    /* session_fini() runs: its requests are abandoned one after the other */
    bool monitor, no_evict, no_touch;
    bool multi; /* MULTI has been said: commands are queued until EXEC or DISCARD */
    struct transaction *transaction; /* of MULTI, or WATCH; NULL: none */
    bool asks_where;  /* it has asked which broker to use: it stays when others are sent away */
    bool tell;        /* CLIENT TELL: as if LOCK said TELL, and RENEW that takes a lock back */
    bool owner_named; /* `owner` is what it said with OWNER, not one made for it */
    int64_t n_commands;
    uint64_t listed; /* the last CLIENT LIST that shows it, see command/client_list.c */
    /* an immediate reply that has to wait for its turn (session_reply), or messages that have to
     * wait for the end of the reply that is being written (session_push) */
    struct buf held;
    size_t held_len; /* bytes of all immediate replies that wait for their turn */
};

/* Makes the session act as this user from now on; NULL: as nobody. */
void session_set_user(struct session *, struct user *);

/* Begins a session. `out` stays the caller's and must outlive it. The caller sets the default
 * owner. */
void session_init(struct session *, uint64_t id, const struct session_events *, struct buf *out,
                  int64_t now_ms);

/* Ends every request (abandon) and frees what the session owns. The holds and the owner must have
 * been dealt with before (broker_session_end), and the subscriptions (pubsub_leave). */
void session_fini(struct session *, int64_t now_ms);

/* Returns the writer for one immediate reply of a command: straight to `out` when nothing is in
 * flight, else into a finished request of its own at the end of the queue. Write exactly one whole
 * reply to it, before anything else is asked of the session, and then call session_reply_end(). */
struct resp_writer session_reply(struct session *);
void session_reply_end(struct session *);

/* Appends a request that will be finished later. From here on the session owns it. */
void session_ask(struct session *, struct request *);

/* Parks a request: it waits for somebody else, the session runs nothing behind it. Idempotent. */
void request_park(struct request *);
void request_unpark(struct request *);

/* Finishes a request, exactly once: its reply can be written. Frees it when it was abandoned. */
void request_finish(struct request *);

/* Writes the replies that are finished and at the head of the queue; on_written follows for each.
 * Does nothing while one is being written. */
void session_flush(struct session *, int64_t now_ms);

/* Returns the writer for a message that answers nothing (push, published message): finished replies
 * go first, and while one is being written the message goes behind it. Write one whole message,
 * then call session_push_end(). */
struct resp_writer session_push(struct session *, int64_t now_ms);
void session_push_end(struct session *);

/* Returns the first of its requests that is parked, or the next one behind `last`; NULL: there is
 * none. The one that is answered in its order comes first, then those with a tag in the order in
 * which they came. */
const struct request *session_waiting(const struct session *, const struct request *last);

/* ---- requests with a tag ---- */

enum { SESSION_TAG_MAX = 64 };

/* Appends a request that is told of by this tag, which no other one has; in place of session_ask().
 */
void session_ask_async(struct session *, struct request *, const char *tag, size_t len);
/* Its QUEUED has been written to session_reply(): its end may be told behind it. Before
 * session_reply_end(). */
void session_queued(struct session *, const struct request *);
/* Returns true when a request with this tag has yet to be told of. */
bool session_has_tag(const struct session *, const char *tag, size_t len);
/* Takes the request with this tag away, and tells that it was cancelled. It is abandoned from now
 * on: the caller ends it. NULL: there is none, or it has ended. */
struct request *session_cancel(struct session *, const char *tag, size_t len);
/* Abandons all of them without a word. */
void session_cancel_all(struct session *, int64_t now_ms);
/* Returns the tag, for request_type.push. */
const char *session_tag(const struct async *, size_t *len);
/* Tells of those on `told` that are to be told now; for session_flush(). */
void session_tell(struct session *, int64_t now_ms);
/* The end of this one is to be told; for request_finish(). */
void session_told(struct request *);

static inline bool session_is_blocked(const struct session *s)
{
    return s->n_parked > 0;
}

/* Must what is said now wait for a request that is parked, or may be before it is done? Such a
 * request is the last one: nothing is begun behind it. */
static inline bool session_holds_back(const struct session *s)
{
    const struct request *last = TAILQ_LAST(&s->requests, request_list);
    return session_is_blocked(s) || (last && last->may_wait && !last->done);
}
