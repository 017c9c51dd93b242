/*
 * A thin skin over a redisContext in its non-blocking mode.
 *
 * Invariants: ctx is NULL exactly when the link is closed; wants_write is true while hiredis may
 * have unsent bytes.
 */
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int fail(struct link *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct link *l, const char *fmt, ...)
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
    return fail(l, "%s: %s", l->url->shown, why);
}

static void send_auth(struct link *l, const struct url *url)
{
    const char *words[] = {"AUTH", url->user, url->password};
    if (url->user)
        link_send(l, 3, words);
    else
        link_send(l, 2, (const char *[]){"AUTH", url->password});
    l->auth_due = true;
}

int link_open(struct link *l, const struct url *url)
{
    *l = (struct link){.url = url};
    l->ctx = url->path ? redisConnectUnixNonBlock(url->path)
                       : redisConnectNonBlock(url->host, url->port);
    if (!l->ctx)
        return fail(l, "%s: out of memory", url->shown);
    if (l->ctx->err)
        return fail_io(l);
    /* A command that inherited it would keep it open, and the lock with it. */
    if (fcntl(l->ctx->fd, F_SETFD, FD_CLOEXEC) != 0)
        return fail(l, "%s: %s", url->shown, strerror(errno));
    l->wants_write = true; /* connected when it can be written to */
    if (url->password)
        send_auth(l, url);
    return 0;
}

void link_close(struct link *l)
{
    if (l->ctx)
        redisFree(l->ctx);
    l->ctx = NULL;
    l->wants_write = false;
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
    const char *words[16];
    if (argc > (int)(sizeof words / sizeof words[0]))
        util_die("a request of %d words", argc);
    memcpy(words, argv, (size_t)argc * sizeof words[0]);
    if (redisAppendCommandArgv(l->ctx, argc, words, NULL) != REDIS_OK)
        util_die("out of memory");
    l->wants_write = true;
}

static int write_out(struct link *l)
{
    int done = 0;
    if (redisBufferWrite(l->ctx, &done) != REDIS_OK)
        return fail_io(l);
    if (!l->connected && l->url->host)
        (void)redisEnableKeepAlive(l->ctx); /* a broker's host that vanishes is noticed */
    l->connected = true;
    l->wants_write = !done;
    return 0;
}

int link_turn(struct link *l, short revents)
{
    bool broken = revents & (POLLERR | POLLHUP);
    if (!l->connected && !(revents & POLLOUT) && !broken)
        return 0;
    if (l->wants_write && (revents & POLLOUT || broken) && write_out(l) != 0)
        return -1;
    if ((revents & POLLIN || broken) && redisBufferRead(l->ctx) != REDIS_OK)
        return fail_io(l);
    return 0;
}

/* The reply to AUTH. */
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
    (void)fail(l, "%s: %s", l->url->shown, text);
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
