/*
 * hiredis connects, and its reader takes replies apart; bytes are read and written here, plain or
 * by TLS in the same way.
 *
 * Invariants: ctx is NULL exactly when the link is closed; wants_write is true while there may be
 * unsent bytes that the socket would take.
 */
#include "cli/link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/request.h"
#include "net/tls.h"

enum { READ_MAX = 16384 }; /* a record of TLS */

__attribute__((format(printf, 2, 3))) static int link_fail(struct link *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(l->error, sizeof l->error, fmt, args);
    va_end(args);
    link_close(l);
    return -1;
}

static int fail_io(struct link *l)
{
    char why[128];
    snprintf(why, sizeof why, "%s", l->ctx->errstr);
    return link_fail(l, "%s: %s", l->url->shown, why);
}

int link_open(struct link *l, const struct url *url)
{
    *l = (struct link){.url = url};
    l->ctx = url->at.is_unix ? redisConnectUnixNonBlock(url->at.host)
                             : redisConnectNonBlock(url->at.host, url->at.port);
    if (!l->ctx)
        return link_fail(l, "%s: out of memory", url->shown);
    if (l->ctx->err)
        return fail_io(l);
    /* A command that inherited it would keep it open, and the lock with it. */
    if (fcntl(l->ctx->fd, F_SETFD, FD_CLOEXEC) != 0)
        return link_fail(l, "%s: %s", url->shown, strerror(errno));
    if (url->tls)
        l->tls = tls_connect(url->tls, l->ctx->fd, url->at.host);
    l->wants_write = true; /* connected when it can be written to */
    l->auth_due = url->at.password != NULL;
    if (l->auth_due)
        request_auth(&l->out, url->at.user, url->at.password);
    return 0;
}

static void say_goodbye(struct link *l)
{
    if (l->tls && l->connected)
        tls_goodbye(l->tls);
}

void link_close(struct link *l)
{
    if (!l->ctx)
        return;
    say_goodbye(l);
    tls_free(l->tls);
    buf_fini(&l->out);
    redisFree(l->ctx);
    l->ctx = NULL;
    l->tls = NULL;
    l->wants_write = false;
}

void link_abort(struct link *l)
{
    struct linger none = {1, 0};
    if (!l->ctx)
        return;
    (void)setsockopt(l->ctx->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    l->connected = false; /* no goodbye */
    link_close(l);
}

int link_finish(struct link *l)
{
    say_goodbye(l);
    if (shutdown(l->ctx->fd, SHUT_WR) == 0)
        return 0;
    return link_fail(l, "%s: %s", l->url->shown, strerror(errno));
}

int link_fd(const struct link *l)
{
    return l->ctx ? l->ctx->fd : -1;
}

short link_events(const struct link *l)
{
    return (short)(POLLIN | (l->wants_write ? POLLOUT : 0));
}

void link_send(struct link *l, int argc, const char *const *argv)
{
    if (!link_is_open(l))
        return;
    request_strings(&l->out, argc, argv);
    l->wants_write = true;
}

void link_word(struct link_words *words, const char *word)
{
    assert((size_t)words->n < sizeof words->v / sizeof words->v[0]);
    words->v[words->n++] = word;
}

void link_option(struct link_words *words, const char *word, int64_t number)
{
    char *text = words->numbers[words->n_numbers++];
    snprintf(text, sizeof words->numbers[0], "%" PRId64, number);
    link_word(words, word);
    link_word(words, text);
}

/* ---- bytes ---- */

/* Returns what has become of recv(2) or send(2), in the words of TLS; `wait`: when the socket is
 * not ready. */
static enum tls_result plain_result(ssize_t n, enum tls_result wait, size_t *done)
{
    *done = n > 0 ? (size_t)n : 0;
    if (n >= 0)
        return n > 0 ? TLS_DONE : TLS_CLOSED;
    return errno == EAGAIN || errno == EINTR ? wait : TLS_BROKEN;
}

static enum tls_result read_some(struct link *l, void *p, size_t n, size_t *done)
{
    if (l->tls)
        return tls_read(l->tls, p, n, done);
    return plain_result(recv(l->ctx->fd, p, n, 0), TLS_WANT_READ, done);
}

static enum tls_result write_to_link(struct link *l, const void *p, size_t n, size_t *done)
{
    if (l->tls)
        return tls_write(l->tls, p, n, done);
    return plain_result(send(l->ctx->fd, p, n, MSG_NOSIGNAL), TLS_WANT_WRITE, done);
}

/* Looks how the connect has ended, and shakes hands by TLS. */
static enum tls_result connect_on(struct link *l)
{
    int err = 0;
    socklen_t len = sizeof err;
    if (l->tls)
        return tls_shake(l->tls);
    if (getsockopt(l->ctx->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0 || err == 0)
        return TLS_DONE;
    errno = err;
    return TLS_BROKEN;
}

/* Returns 1 to go on, 0 to wait for the socket; -1: the link has failed and is closed. */
static int go_on_after(struct link *l, enum tls_result result)
{
    const char *why = result == TLS_BROKEN ? strerror(errno) : "Server closed the connection";
    switch (result) {
    case TLS_DONE:
        return 1;
    case TLS_WANT_WRITE:
        l->wants_write = true;
        return 0;
    case TLS_WANT_READ:
        return 0;
    case TLS_FAILED:
        why = tls_reason();
        break;
    case TLS_CLOSED:
    case TLS_CUT:
    case TLS_BROKEN:
        break;
    }
    l->connected = false; /* no goodbye */
    return link_fail(l, "%s: %s", l->url->shown, why);
}

static int write_out(struct link *l)
{
    int go_on = 1;
    while (go_on == 1 && buf_len(&l->out) > 0) {
        size_t done = 0;
        go_on = go_on_after(l, write_to_link(l, buf_head(&l->out), buf_len(&l->out), &done));
        if (go_on == 1)
            buf_consume(&l->out, done);
    }
    return go_on < 0 ? -1 : 0;
}

static int read_in(struct link *l)
{
    char bytes[READ_MAX];
    size_t done = sizeof bytes;
    while (l->tls || done == sizeof bytes) {
        int go_on = go_on_after(l, read_some(l, bytes, sizeof bytes, &done));
        if (go_on != 1)
            return go_on;
        if (redisReaderFeed(l->ctx->reader, bytes, done) != REDIS_OK)
            util_die("out of memory");
    }
    return 0;
}

int link_turn(struct link *l, short revents)
{
    if (!revents)
        return 0;
    l->wants_write = false;
    if (!l->connected) {
        int go_on = go_on_after(l, connect_on(l));
        if (go_on != 1)
            return go_on;
        if (!l->url->at.is_unix)
            (void)redisEnableKeepAlive(l->ctx); /* a broker's host that vanishes is noticed */
        l->connected = true;
    }
    if (write_out(l) != 0)
        return -1;
    return l->tls || revents & ~POLLOUT ? read_in(l) : 0; /* TLS may do either for the other */
}

/* Takes the reply to AUTH. -1: it was refused, and the link is closed. */
static int take_auth(struct link *l, redisReply *reply)
{
    char text[200];
    l->auth_due = false;
    if (reply->type != REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        return 0;
    }
    snprintf(text, sizeof text, "%s", reply->str);
    freeReplyObject(reply);
    (void)link_fail(l, "%s: %s", l->url->shown, text);
    l->denied = true;
    return -1;
}

int link_next(struct link *l, redisReply **reply)
{
    void *got = NULL;
    *reply = NULL;
    if (redisGetReplyFromReader(l->ctx, &got) != REDIS_OK)
        return fail_io(l);
    if (got && l->auth_due) {
        if (take_auth(l, got) != 0)
            return -1;
        if (redisGetReplyFromReader(l->ctx, &got) != REDIS_OK)
            return fail_io(l);
    }
    *reply = got;
    return 0;
}
