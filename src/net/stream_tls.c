/* The TLS of a stream: its handshake, and reading and writing in the manner of recv(2) and send(2).
 *
 * A read takes whole records into the gulp of stream.c, which is longer than any, so no byte stays
 * inside TLS that the socket does not tell of.
 *
 * A handshake costs a server about a millisecond of computing. When many clients come at once the
 * others want to live too: after each costly step the next waits for a part of the time that it
 * took, in which the loop serves everybody else. Nothing has to wake it, as its socket stays
 * readable. */
#include <errno.h>

#include "base/clock.h"
#include "net/stream_private.h"
#include "net/tls.h"

enum { COSTLY_US = 100 };

static int64_t rest_until_us; /* of all streams: no step of a server before it */

static void shaken(struct stream *s)
{
    bool dialed = s->connecting;

    s->shaking = s->connecting = false;
    event_del(&s->writable);
    stream_arm(s);
    if (!dialed)
        stream_flush(s);
    else if (s->events->on_open)
        s->events->on_open(s->arg);
}

static void wait_for(struct stream *s, bool read)
{
    event_add(read ? &s->readable : &s->writable, NULL);
    event_del(read ? &s->writable : &s->readable);
}

static enum tls_result shake_once(struct stream *s)
{
    int64_t start_us = clock_us();
    enum tls_result result = tls_shake(s->tls);
    int64_t end_us = clock_us();

    if (end_us - start_us > COSTLY_US)
        rest_until_us = end_us + (end_us - start_us) / 2;
    return result;
}

void stream_tls_shake(struct stream *s)
{
    if (!s->connecting && clock_us() < rest_until_us)
        return;
    switch (shake_once(s)) {
    case TLS_DONE:
        shaken(s);
        return;
    case TLS_WANT_READ:
        wait_for(s, true);
        return;
    case TLS_WANT_WRITE:
        wait_for(s, false);
        return;
    case TLS_CLOSED:
    case TLS_CUT:
        stream_fail(s, STREAM_END_EOF, 0, "closed during the handshake of TLS");
        return;
    case TLS_BROKEN:
        stream_io_failed(s, errno);
        return;
    case TLS_FAILED:
        stream_io_failed(s, EPROTO);
        return;
    }
}

void stream_tls_start(struct stream *s)
{
    s->shaking = true;
    /* A server waits to be spoken to; a socket that is connected takes bytes, so that a client
     * begins at once, and from the loop. */
    wait_for(s, !s->connecting);
}

/* Returns what recv(2) would: 0 at the end, else -1 with an errno. */
static ssize_t as_errno(enum tls_result result)
{
    switch (result) {
    case TLS_CLOSED:
    case TLS_CUT:
        return 0;
    case TLS_WANT_READ:
    case TLS_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case TLS_FAILED:
        errno = EPROTO;
        return -1;
    case TLS_BROKEN: /* errno says it */
    case TLS_DONE:
        break;
    }
    return -1;
}

ssize_t stream_tls_read(struct stream *s, void *p, size_t n)
{
    size_t done = 0;
    enum tls_result result = tls_read(s->tls, p, n, &done);

    if (result == TLS_DONE)
        return (ssize_t)done;
    /* TLS owes the peer an answer (a new key) that the socket does not take now. */
    if (result == TLS_WANT_WRITE) {
        s->read_waits = true;
        wait_for(s, false);
    }
    return as_errno(result);
}

ssize_t stream_tls_write(struct stream *s, const void *p, size_t n)
{
    size_t done = 0;
    enum tls_result result = tls_write(s->tls, p, n, &done);

    if (result == TLS_DONE)
        return (ssize_t)done;
    /* Nothing that we allow asks to read first. */
    if (result == TLS_WANT_READ || result == TLS_CLOSED || result == TLS_CUT) {
        errno = EPIPE;
        return -1;
    }
    return as_errno(result);
}

bool stream_peer_name(struct stream *s, char *out, size_t size)
{
    return s->tls && !s->shaking && tls_peer_name(s->tls, out, size);
}
