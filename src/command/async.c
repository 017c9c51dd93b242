/*
 * LOCK and MLOCK with a tag: what is wrong with the tag, what the client is told at the end,
 * CANCEL.
 *
 * The end is a push; a connection of RESP2 gets none, and its end is a message on the channel of
 * the tag, for which somebody else listens. A grant that cannot be told so is given back: see
 * on_free of lock_reply.c.
 */
#include <inttypes.h>
#include <string.h>

#include "command/handlers.h"
#include "conf/conf.h"
#include "lock/broker.h"
#include "lock/multilock.h"
#include "session/channel.h"
#include "session/pubsub.h"
#include "session/user.h"
#include "stats/stats.h"

enum { CHANNEL_MAX = sizeof(CHANNEL_ASYNC) - 1 + SESSION_TAG_MAX };

/* ---- asking ---- */

static size_t make_channel(char out[CHANNEL_MAX], const char *tag, size_t len)
{
    const size_t n = sizeof(CHANNEL_ASYNC) - 1;

    memcpy(out, CHANNEL_ASYNC, n);
    memcpy(out + n, tag, len);
    return n + len;
}

/* Returns whether the end of a request of a RESP2 connection could be told. Else an error has been
 * answered. */
static bool has_listener(struct cmd_call *c, const struct resp_arg *tag)
{
    const struct user *u = users_active() ? c->session->user : NULL;
    char channel[CHANNEL_MAX];
    size_t len = make_channel(channel, tag->ptr, tag->len);

    if (u && !channel_permits(u, channel, len)) {
        stats.auth_failures_permission++;
        cmd_refused(c->session, CMD_REASON_NAME, channel, len, u->name, strlen(u->name));
        cmd_reply_error(c, "NOPERM user '%s' may not use the channel '%.*s' (users: %s.names)",
                        u->name, (int)len, channel, u->name);
        return false;
    }
    if (!pubsub_is_heard(channel, len)) {
        cmd_reply_error(c,
                        "ERR nobody listens to the channel '%.*s': with RESP2 another connection "
                        "has to SUBSCRIBE to it before; or say HELLO 3",
                        (int)len, channel);
        return false;
    }
    return true;
}

static bool may_ask(struct cmd_call *c, const struct resp_arg *tag)
{
    const struct session *s = c->session;

    if (session_has_tag(s, tag->ptr, tag->len)) {
        cmd_reply_error(c, "ERR the tag '%.*s' is that of a request which has not ended",
                        CMD_ARG(tag));
        return false;
    }
    if (s->n_async >= cmd_hooks()->conf->max_async_per_client) {
        stats.acquires_limit++;
        cmd_reply_error(c,
                        "LIMIT %" PRIu32 " requests with ASYNC of this connection have not ended, "
                        "no more are allowed (max_async_per_client)",
                        s->n_async);
        return false;
    }
    return s->proto >= 3 || has_listener(c, tag);
}

void cmd_async_ask(struct cmd_call *c, struct lock_request *r, const struct resp_arg *tag,
                   const struct resp_arg *names, int n)
{
    if (!may_ask(c, tag)) {
        lock_request_free(r);
        return;
    }
    r->async = true;
    c->asked = &r->base;
    session_ask_async(c->session, &r->base, tag->ptr, tag->len);
    broker_submit(r->broker, r, names, n, c->now_ms);
    resp_simple(cmd_reply(c), "QUEUED");
}

void cmd_async_cancel(struct cmd_call *c)
{
    struct session *s = c->session;
    struct request *r = session_cancel(s, c->argv[1].ptr, c->argv[1].len);

    if (r)
        broker_cancel(cmd_hooks()->broker, (struct lock_request *)r, c->now_ms);
    session_flush(s, c->now_ms); /* what has ended is told before the answer */
    cmd_reply_int(c, r != NULL);
}

/* ---- the end ---- */

/* Returns for how long it had waited, of which the client's clock may count as much: less what the
 * rates of two clocks may differ by. */
static int64_t waited_ms(const struct request *r, int64_t now_ms)
{
    int64_t ms = (now_ms * 1000 - r->arrived_us) / 1000;
    int64_t drift_ppm = cmd_hooks()->conf->lock.drift_ppm;

    return ms > 0 ? ms - (ms * drift_ppm + 999999) / 1000000 : 0;
}

static int n_tokens(const struct lock_request *r)
{
    return r->result == RESULT_MANY ? multilock_count(r->multilock) : 1;
}

static int64_t token(const struct lock_request *r, int i)
{
    return r->result == RESULT_MANY ? multilock_token(r->multilock, i) : r->token;
}

/* What is told. */
struct end {
    const char *what, *text;       /* text: of an error, else NULL */
    const struct lock_request *of; /* of a grant, else NULL */
    int64_t validity_ms, waited_ms;
};

static void push_end(const struct end *e, const char *tag, size_t len, struct resp_writer *w)
{
    resp_push(w, e->of ? 6 : e->text ? 4 : 3);
    resp_str(w, "async");
    resp_bulk(w, tag, len);
    resp_str(w, e->what);
    if (e->text)
        resp_str(w, e->text);
    if (!e->of)
        return;
    if (e->of->result == RESULT_MANY)
        resp_array(w, (size_t)n_tokens(e->of));
    for (int i = 0; i < n_tokens(e->of); i++)
        resp_int(w, token(e->of, i));
    resp_int(w, e->validity_ms);
    resp_int(w, e->waited_ms);
}

/* Returns false when nobody listens any more. */
static bool publish_end(const struct end *e, const char *tag, size_t len, int64_t now_ms)
{
    char channel[CHANNEL_MAX];
    size_t channel_len = make_channel(channel, tag, len);
    struct buf text = {0};

    if (!pubsub_is_heard(channel, channel_len))
        return false;
    buf_printf(&text, "%s%s%s", e->what, e->text ? " " : "", e->text ? e->text : "");
    for (int i = 0; e->of && i < n_tokens(e->of); i++)
        buf_printf(&text, "%c%" PRId64, i == 0 ? ' ' : ',', token(e->of, i));
    if (e->of)
        buf_printf(&text, " %" PRId64 " %" PRId64, e->validity_ms, e->waited_ms);
    (void)pubsub_publish(channel, channel_len, buf_head(&text), buf_len(&text), now_ms);
    buf_fini(&text);
    return true;
}

static struct end end_of(const struct lock_request *r, int64_t now_ms)
{
    int64_t left_ms;

    switch ((enum lock_result)r->result) {
    case RESULT_GRANTED:
    case RESULT_MANY:
        left_ms = cmd_lock_promised_ms(r) - now_ms;
        if (left_ms <= 0)
            break;
        return (struct end){"granted", NULL, r, left_ms, waited_ms(&r->base, now_ms)};
    case RESULT_ERROR:
        stats_error(r->text);
        return (struct end){.what = "error", .text = r->text};
    default:
        break;
    }
    return (struct end){.what = "timeout"};
}

void cmd_async_push(struct session *s, const struct async *a, struct request *base,
                    struct resp_writer *w, int64_t now_ms)
{
    struct lock_request *r = (struct lock_request *)base;
    struct end e = r ? end_of(r, now_ms) : (struct end){.what = "cancelled"};
    bool is_told = true;
    size_t len;
    const char *tag = session_tag(a, &len);

    if (s->proto >= 3) {
        push_end(&e, tag, len, w);
        stats.messages_sent++;
    } else {
        is_told = publish_end(&e, tag, len, now_ms);
    }
    if (r)
        r->told = is_told && e.of;
}
