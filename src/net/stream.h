#pragma once
/*
 * stream: bytes over one non-blocking socket, plain or by TLS, for both edges.
 *
 * The room net has bytes and words on sockets: streams, TLS, the Redis protocol as clients speak it
 * (resp) and as servers answer (reply), the PROXY protocol. Nothing here knows what a command
 * means.
 *
 * Reads come in large gulps with plain recv(2) into memory that all streams share, so that an idle
 * connection costs no buffer; only what the owner leaves unconsumed is kept. Writes are gathered:
 * the owner appends to stream_out() as often as it likes in one turn of the loop and calls
 * stream_flush() once.
 *
 *   CLOSED --stream_adopt--> OPEN --stream_close | end--> CLOSED
 *   CLOSED --stream_connect--> CONNECTING --connected--> OPEN
 *
 * With TLS the handshake comes first: a stream from stream_connect() stays CONNECTING until it is
 * done; one from stream_adopt_tls() is OPEN at once and neither reads nor writes until then. A FIN
 * is an orderly end there too, with or without a close_notify: many clients, and each program that
 * is killed, end without it. Anybody on the way can send a FIN, as over plain TCP.
 *
 * A callback may call any function here for its own stream, stream_close() too. But the memory of
 * the stream has to stay until the callback has returned: an owner that frees a stream does so at
 * the end of the turn.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/util.h"

struct evdns_base;
struct ssl_ctx_st; /* tls.h */
struct ssl_st;
struct stream_dial; /* a connect under way */

/* Why the other side's bytes have ended. */
enum stream_end {
    STREAM_END_EOF,     /* orderly: the peer has sent FIN */
    STREAM_END_RESET,   /* the peer has sent RST, or does not take what we write any more */
    STREAM_END_TIMEOUT, /* keepalive or TCP_USER_TIMEOUT: the peer does not answer */
    STREAM_END_TLS,     /* what came is not TLS, or not as we want it */
    STREAM_END_ERROR,   /* any other error of the socket, or any of the connect; see err */
};

/* on_open, on_eof and on_drain may be NULL. */
struct stream_events {
    /* The connection stands (streams from stream_connect only). Once. */
    void (*on_open)(void *arg);
    /* Bytes have come: all that are not consumed yet. Returns how many of them are consumed now;
     * the rest is kept and comes again, with more behind it. May call stream_close(): then `data`
     * is gone and the return value does not matter. Not called while reading is paused. */
    size_t (*on_bytes)(void *arg, const char *data, size_t len);
    /* The peer has sent FIN and nothing more will come; what is kept unconsumed stays. We can still
     * write, and it is the owner who ends the stream. Once. NULL: on_end(STREAM_END_EOF) instead.
     */
    void (*on_eof)(void *arg);
    /* The socket has taken some of what stream_flush() had to leave in stream_out(). */
    void (*on_drain)(void *arg);
    /* The stream has ended and is CLOSED already; `err` is an errno or 0, `text` says it in words.
     * At most once, never from inside stream_close(); may run inside stream_flush(). */
    void (*on_end)(void *arg, enum stream_end end, int err, const char *text);
};

/* How much the streams of one set do in one turn of the loop, however many of their sockets are
 * ready: each that reads or writes counts once, and once more for each 16 KiB. Those that come too
 * late wait in the order in which they came, so that none is passed over. */
enum { STREAM_QUOTA = 256 };
struct stream_quota {
    int left;
    TAILQ_HEAD(, stream) waiting;
};

struct stream {
    int fd; /* -1: closed */
    bool connecting, paused, eof;
    bool tcp;                        /* TCP_NODELAY and keepalive make sense */
    bool shaking;                    /* the handshake of TLS is under way */
    bool read_waits;                 /* until the socket takes bytes (TLS only) */
    bool failed;                     /* nothing more may be said to the peer */
    struct event readable, writable; /* set up while fd >= 0 */
    struct buf in;                   /* bytes that came but are not consumed */
    struct buf out;                  /* bytes to send */
    const struct stream_events *events;
    void *arg;
    struct event_base *base;
    struct stream_dial *dial;     /* NULL: no connect under way */
    struct stream_quota *quota;   /* NULL: none */
    short due;                    /* events of the socket that wait for the quota; 0: none */
    TAILQ_ENTRY(stream) waiting;  /* quota->waiting, when due */
    struct ssl_st *tls;           /* NULL: plain */
    struct ssl_ctx_st *secure_by; /* stream_secure() */
    const char *secure_name;
    size_t keep_max; /* bytes of an empty `in` or `out` that are kept for the next; the owner may
                        raise it */
    unsigned closes; /* how often it was closed: a callback may close it and connect again */
    int64_t bytes_in, bytes_out;
};

/* Socket options for a connection over TCP; 0 leaves the system's value. */
struct stream_keepalive {
    int64_t idle_ms;    /* TCP_KEEPIDLE and TCP_KEEPINTVL; 3 probes */
    int64_t timeout_ms; /* TCP_USER_TIMEOUT */
};

/* Makes a closed stream. `events` and `arg` are kept, the memory of `events` stays the caller's.
 * A stream that is closed holds no memory: there is no stream_fini(). */
void stream_init(struct stream *, struct event_base *, const struct stream_events *events,
                 void *arg);

/* Makes a quota. It stays the caller's, who puts it into `quota` of each stream of the set before
 * that is opened. */
void stream_quota_init(struct stream_quota *);
/* Once in each turn: serves the streams that wait, as far as the quota goes. Callbacks run inside
 * this call. */
void stream_quota_serve(struct stream_quota *);
/* Begins another turn. Returns true when streams wait: then no turn may sleep. */
bool stream_quota_refill(struct stream_quota *);

/* Takes over an accepted socket (made non-blocking; TCP_NODELAY set on TCP). Reading starts. */
void stream_adopt(struct stream *, int fd);

/* Does the same with TLS; the peer is the one that has connected. */
void stream_adopt_tls(struct stream *, int fd, struct ssl_ctx_st *);

/* Has stream_connect() make connections with TLS from now on, to the server of this name (a name or
 * a numeric address). The context and the name stay the caller's and must be there at each connect;
 * NULL: plain again. */
void stream_secure(struct stream *, struct ssl_ctx_st *, const char *name);

/* Starts to connect. `host` is a name, an address, or with port 0 the path of a Unix socket. Names
 * are looked up without blocking by `dns`; each address is tried in turn. on_open or on_end
 * follows, never from inside this call. There is no time-out: who waits calls stream_close(). */
void stream_connect(struct stream *, struct evdns_base *dns, const char *host, int port);

/* Has the connect that has just been begun try the addresses of the name from the one behind this
 * one on (in words, as of stream_peer_address), and this one last. A text that is none of them
 * changes nothing. */
void stream_begin_behind(struct stream *, const char *address);
/* Has it try this one alone, if it is among them. */
void stream_keep_to(struct stream *, const char *address);

/* Sets keepalive and TCP_USER_TIMEOUT where the socket is TCP; harmless elsewhere. */
void stream_keepalive(struct stream *, const struct stream_keepalive *);

/* Returns the buffer to append bytes to; they leave with the next stream_flush(). */
static inline struct buf *stream_out(struct stream *s)
{
    return &s->out;
}

/* Writes what the socket takes, and waits for it to take the rest. */
void stream_flush(struct stream *);

/* Stops and restarts reading. What is kept unconsumed is offered again by stream_resume(), from the
 * loop and not from inside the call. */
void stream_pause(struct stream *);
void stream_resume(struct stream *);

/* Offers what is kept unconsumed once more, now: on_bytes runs inside this call. Also when paused.
 * Not to be called from a callback of the same stream. */
void stream_offer(struct stream *);

/* Returns how many bytes are kept unconsumed. */
static inline size_t stream_kept(const struct stream *s)
{
    return buf_len(&s->in);
}

/* Looks whether the peer of a paused stream is still there, which nothing else would notice. on_end
 * runs inside this call when the connection is broken, or with TLS when it has ended, since whether
 * in order cannot be seen without reading. Returns true when the peer has sent FIN, behind bytes
 * that may not have been read yet. */
bool stream_probe(struct stream *);

/* Returns true while the handshake of TLS is under way. */
static inline bool stream_is_shaking(const struct stream *s)
{
    return s->shaking;
}

/* Writes the name in the peer's certificate (tls_peer_name); false without TLS. */
bool stream_peer_name(struct stream *, char *out, size_t size);

/* Sends FIN; reading goes on. Call it only when stream_out() is empty. */
void stream_shutdown(struct stream *);

/* Ends it now: drops what is unsent, closes the socket. No callback follows. A closed one stays
 * closed. */
void stream_close(struct stream *);

/* Closes as stream_close() does, with an RST in place of a FIN: the peer sees an error at once. */
void stream_reset(struct stream *);

static inline bool stream_is_open(const struct stream *s)
{
    return s->fd >= 0 && !s->connecting;
}

/* Writes an address in words: "127.0.0.1:4711", "[::1]:4711", "unix:/path", "unix:" for one without
 * a name. */
enum { STREAM_ADDRESS_MAX = 128 };
void stream_address(char out[STREAM_ADDRESS_MAX], const struct sockaddr *, socklen_t len);
/* Write the address that a socket is bound to, and the one that it is connected to; "?": none. */
void stream_own_address(char out[STREAM_ADDRESS_MAX], int fd);
void stream_peer_address(char out[STREAM_ADDRESS_MAX], int fd);

/* Listens on a numeric TCP address, or for "*" on all of both families: fds[0] is the socket of
 * IPv4 and fds[1] that of IPv6, -1 where there is none. A machine without IPv6 is an error only
 * when an address of it is asked for that is not its loopback. -1: errno says why `where` cannot be
 * had, and none is open. */
int stream_listen(const char *host, int port, int fds[2],
                  char where[STREAM_ADDRESS_MAX]) MUST_CHECK;
