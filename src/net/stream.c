/* Bytes over one non-blocking socket.
 *
 * Owns the socket, its two events, what was read and not consumed, and what is to be written. Does
 * not know what the bytes mean, nor any bound on them: the owner pauses. How bytes get on and off
 * the socket is in io_read() and io_write() alone; what they need of TLS is in stream_tls.c.
 *
 * Invariants: `readable` is armed exactly while the stream is open, not paused and not at its end;
 * `writable` while connecting or while `out` holds what the socket did not take. A handshake arms
 * them as it needs, and so does a read that waits to write (read_waits). A CLOSED stream has no
 * memory, no descriptor and no event. After each callback the stream may be closed, or even another
 * connection: `closes` tells. The connect itself is in stream_dial.c, and how many streams are
 * served in a turn in stream_quota.c. */
#include "net/stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "net/stream_private.h"
#include "net/tls.h"

enum {
    GULP = 64 * 1024,      /* one read */
    TURN_MAX = 256 * 1024, /* bytes read of one stream in one turn: the others want to live too */
    KEEP_MAX = 1024,
    KEEPALIVE_PROBES = 3
};

/* All streams read into it: its bytes are consumed or copied before the next read of any. */
static char gulp[GULP];

/* ---- the socket ---- */

static ssize_t io_read(struct stream *s, void *p, size_t n)
{
    if (s->tls)
        return stream_tls_read(s, p, n);
    return recv(s->fd, p, n, 0);
}

static ssize_t io_write(struct stream *s, const void *p, size_t n)
{
    if (s->tls)
        return stream_tls_write(s, p, n);
    return send(s->fd, p, n, MSG_NOSIGNAL);
}

static bool is_transient(int err)
{
    return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

void stream_fail(struct stream *s, enum stream_end end, int err, const char *text)
{
    stream_close(s);
    s->events->on_end(s->arg, end, err, text);
}

void stream_io_failed(struct stream *s, int err)
{
    enum stream_end end = STREAM_END_ERROR;
    const char *text = strerror(err);

    s->failed = true;
    if (err == ECONNRESET || err == EPIPE) {
        end = STREAM_END_RESET;
    } else if (err == ETIMEDOUT) {
        end = STREAM_END_TIMEOUT;
    } else if (s->tls && err == EPROTO) {
        end = STREAM_END_TLS;
        text = tls_reason();
    }
    stream_fail(s, end, err, text);
}

/* ---- reading ---- */

static void trim(const struct stream *s, struct buf *b)
{
    if (b->cap > s->keep_max)
        buf_trim(b);
}

/* Offers what is kept. Returns false when the callback has closed the stream. */
static bool offer_kept(struct stream *s)
{
    unsigned closes = s->closes;
    size_t len = buf_len(&s->in);
    size_t used = s->events->on_bytes(s->arg, buf_head(&s->in), len);

    if (s->closes != closes)
        return false;
    assert(used <= len);
    buf_consume(&s->in, used);
    trim(s, &s->in);
    return true;
}

static bool offer_gulp(struct stream *s, size_t len)
{
    if (buf_len(&s->in) > 0) {
        buf_append(&s->in, gulp, len);
        return offer_kept(s);
    }
    unsigned closes = s->closes;
    size_t used = s->events->on_bytes(s->arg, gulp, len);
    if (s->closes != closes)
        return false;
    assert(used <= len);
    buf_append(&s->in, gulp + used, len - used);
    return true;
}

void stream_arm(struct stream *s)
{
    if (s->shaking)
        return;
    if (stream_is_open(s) && !s->paused && !s->eof && !s->read_waits)
        event_add(&s->readable, NULL);
    else
        event_del(&s->readable);
}

static void on_fin(struct stream *s)
{
    s->eof = true;
    stream_arm(s);
    if (s->events->on_eof)
        s->events->on_eof(s->arg);
    else
        stream_fail(s, STREAM_END_EOF, 0, "closed by the peer");
}

static void read_socket(struct stream *s, short what)
{
    if (s->shaking) {
        stream_tls_shake(s);
        return;
    }
    bool resumed = (what & EV_TIMEOUT) && !s->paused && buf_len(&s->in) > 0;
    if (resumed && !offer_kept(s))
        return;
    for (size_t total = 0; total < TURN_MAX && !s->paused && !s->eof;) {
        ssize_t n = io_read(s, gulp, sizeof gulp);
        if (n == 0)
            on_fin(s);
        else if (n < 0 && !is_transient(errno))
            stream_io_failed(s, errno);
        if (n <= 0)
            return;
        s->bytes_in += n;
        stream_quota_spend(s, n);
        /* Records of TLS are shorter than what may be there. */
        if (!offer_gulp(s, (size_t)n) || ((size_t)n < sizeof gulp && !s->tls))
            return;
        total += (size_t)n;
    }
}

void stream_pause(struct stream *s)
{
    if (s->paused || !stream_is_open(s))
        return;
    s->paused = true;
    stream_arm(s);
}

void stream_resume(struct stream *s)
{
    if (!s->paused)
        return;
    s->paused = false;
    stream_arm(s);
    if (buf_len(&s->in) > 0)
        event_active(&s->readable, EV_TIMEOUT, 0);
}

void stream_offer(struct stream *s)
{
    if (buf_len(&s->in) > 0)
        offer_kept(s);
}

bool stream_probe(struct stream *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLRDHUP};
    int err = 0;
    socklen_t err_len = sizeof err;

    if (!stream_is_open(s) || poll(&p, 1, 0) <= 0)
        return false;
    if ((p.revents & POLLERR) && getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &err_len) == 0 &&
        err != 0) {
        stream_io_failed(s, err);
        return false;
    }
    return true;
}

/* ---- writing ---- */

static void write_to_socket(struct stream *s)
{
    while (buf_len(&s->out) > 0) {
        size_t len = buf_len(&s->out);
        ssize_t n = io_write(s, buf_head(&s->out), len);
        if (n < 0 && is_transient(errno))
            break;
        if (n < 0) {
            stream_io_failed(s, errno);
            return;
        }
        s->bytes_out += n;
        buf_consume(&s->out, (size_t)n);
    }
    if (buf_len(&s->out) > 0) {
        event_add(&s->writable, NULL);
        return;
    }
    event_del(&s->writable);
    trim(s, &s->out);
}

void stream_flush(struct stream *s)
{
    if (stream_is_open(s) && !s->shaking && buf_len(&s->out) > 0 &&
        !event_pending(&s->writable, EV_WRITE, NULL))
        write_to_socket(s);
}

static void write_more(struct stream *s)
{
    unsigned closes = s->closes;
    int64_t before = s->bytes_out;

    if (s->shaking) {
        stream_tls_shake(s);
        return;
    }
    if (s->connecting) {
        stream_dial_answered(s);
        return;
    }
    if (s->read_waits) {
        s->read_waits = false;
        event_del(&s->writable);
        stream_arm(s);
        event_active(&s->readable, EV_READ, 0); /* it is the read that has to be tried again */
    }
    write_to_socket(s);
    if (s->closes != closes)
        return;
    stream_quota_spend(s, s->bytes_out - before);
    if (s->events->on_drain)
        s->events->on_drain(s->arg);
}

void stream_serve(struct stream *s, short what)
{
    unsigned closes = s->closes;

    if (what & EV_WRITE)
        write_more(s);
    if (s->closes == closes && (what & (EV_READ | EV_TIMEOUT)))
        read_socket(s, what);
}

static void on_socket_ready(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;

    (void)fd;
    if (!s->quota || stream_quota_take(s, what))
        stream_serve(s, what);
}

void stream_shutdown(struct stream *s)
{
    assert(buf_len(&s->out) == 0);
    if (s->tls)
        tls_goodbye(s->tls);
    if (stream_is_open(s))
        shutdown(s->fd, SHUT_WR); /* an error shows itself at the next read */
}

/* ---- its life ---- */

void stream_init(struct stream *s, struct event_base *base, const struct stream_events *events,
                 void *arg)
{
    *s =
        (struct stream){.fd = -1, .base = base, .events = events, .arg = arg, .keep_max = KEEP_MAX};
}

void stream_set_fd(struct stream *s, int fd)
{
    s->fd = fd;
    event_assign(&s->readable, s->base, fd, EV_READ | EV_PERSIST, on_socket_ready, s);
    event_assign(&s->writable, s->base, fd, EV_WRITE | EV_PERSIST, on_socket_ready, s);
}

void stream_start(struct stream *s)
{
    int protocol = 0, on = 1;
    socklen_t len = sizeof protocol;

    s->eof = s->paused = false;
    s->bytes_in = s->bytes_out = 0;
    s->tcp =
        getsockopt(s->fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 && protocol == IPPROTO_TCP;
    if (s->tcp)
        setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    stream_arm(s);
}

void stream_adopt(struct stream *s, int fd)
{
    int flags = fcntl(fd, F_GETFL);

    assert(s->fd < 0 && !s->connecting);
    if (flags >= 0 && !(flags & O_NONBLOCK))
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    stream_set_fd(s, fd);
    stream_start(s);
}

void stream_adopt_tls(struct stream *s, int fd, struct ssl_ctx_st *context)
{
    stream_adopt(s, fd);
    event_del(&s->readable);
    s->tls = tls_accept(context, fd);
    stream_tls_start(s);
}

void stream_secure(struct stream *s, struct ssl_ctx_st *context, const char *name)
{
    s->secure_by = context;
    s->secure_name = name;
}

void stream_drop_fd(struct stream *s)
{
    if (s->fd < 0)
        return;
    if (s->tls && !s->failed && !s->shaking)
        tls_goodbye(s->tls);
    tls_free(s->tls);
    s->tls = NULL;
    event_del(&s->readable);
    event_del(&s->writable);
    close(s->fd);
    s->fd = -1;
}

void stream_close(struct stream *s)
{
    s->closes++;
    stream_quota_leave(s);
    stream_dial_cancel(s);
    stream_drop_fd(s);
    s->connecting = s->paused = s->eof = s->shaking = s->read_waits = s->failed = false;
    buf_fini(&s->in);
    buf_fini(&s->out);
}

void stream_reset(struct stream *s)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (s->fd >= 0)
        setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    s->failed = true;
    stream_close(s);
}

/* ---- TCP and addresses ---- */

static void set_tcp(int fd, int option, int64_t value)
{
    int v = value > INT32_MAX ? INT32_MAX : (int)value;

    setsockopt(fd, IPPROTO_TCP, option, &v,
               sizeof v); /* refused on an ended connection: no matter */
}

void stream_keepalive(struct stream *s, const struct stream_keepalive *k)
{
    int on = 1;

    if (!stream_is_open(s) || !s->tcp)
        return;
    if (k->idle_ms > 0) {
        int64_t idle_s = (k->idle_ms + 999) / 1000;
        setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        set_tcp(s->fd, TCP_KEEPIDLE, idle_s);
        set_tcp(s->fd, TCP_KEEPINTVL, idle_s);
        set_tcp(s->fd, TCP_KEEPCNT, KEEPALIVE_PROBES);
    }
    if (k->timeout_ms > 0)
        set_tcp(s->fd, TCP_USER_TIMEOUT, k->timeout_ms);
}
