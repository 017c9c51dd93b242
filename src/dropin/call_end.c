/*
 * How a call ends: it publishes what its last run was to publish, leaves the lines of its names,
 * and its session hears that its reply is there.
 */
#include <assert.h>
#include <inttypes.h>

#include "base/log.h"
#include "dropin/call_private.h"
#include "dropin/messages.h"
#include "lock/broker_state.h"
#include "session/channel.h"
#include "session/user.h"
#include "stats/stats.h"

/* Logs it now and then only, as it may be so with every call of a program. */
static void log_unpublished(const struct dropin_call *c, const struct resp_arg *channel)
{
    static struct log_limit limit;
    bool is_own = channel_is_own(channel->ptr, channel->len);
    if (!log_limited(&limit, c->dropin->broker->now_ms))
        return;
    log_warn("drop-in", "a message to '%.*s' was not published: %s%s swallowed=%" PRIu64,
             (int)(channel->len < 64 ? channel->len : 64), channel->ptr,
             is_own ? "such channels are holdfast's own (lost, lock:NAME)"
                    : "the names of this user do not cover that channel, user=",
             is_own ? "" : c->user->name, limit.swallowed);
}

/* Publishes a message; returns to how many clients of this broker. */
static int64_t publish_one(const struct dropin_call *c, int i, int64_t now_ms)
{
    const struct store_reply *p = &c->run.published;
    const struct store_node *message = &p->nodes[i + 1];
    const struct resp_arg channel = {store_text(p, &p->nodes[i]), p->nodes[i].len};
    if (channel_is_own(channel.ptr, channel.len) ||
        !channel_permits(c->user, channel.ptr, channel.len)) {
        log_unpublished(c, &channel);
        return 0;
    }
    return messages_publish(c->dropin->messages, channel.ptr, channel.len, store_text(p, message),
                            message->len, now_ms);
}

/* Publishes what the run was to publish; PUBLISH itself tells how many have heard it. */
static void publish_all(struct dropin_call *c, int64_t now_ms)
{
    const struct store_reply *p = &c->run.published;
    bool is_publish = c->job.n_commands == 1 && !c->job.is_multi;
    for (int i = 0; i + 1 < p->n_nodes; i += 2) {
        int64_t n = publish_one(c, i, now_ms);
        if (is_publish)
            c->run.reply.nodes[0].n = n;
    }
}

void call_leave_lines(struct dropin_call *c)
{
    due_cancel(&c->dropin->broker->due, &c->due);
    for (int i = 0; c->slots && i < c->job.n_names; i++) {
        struct spot *s = c->slots[i].seat.spot;
        if (!s)
            continue;
        turns_leave(&c->dropin->turns, &c->slots[i].seat);
        spot_leave(c->dropin->broker, s);
    }
}

/* Finishes a call that has its reply and has published. */
static void finish_call(struct dropin_call *c)
{
    struct dropin *d = c->dropin;
    assert(c->state != CALL_FINISHED && c->state != CALL_ASKS);
    call_leave_lines(c);
    call_end_wait(c);
    c->state = CALL_FINISHED;
    c->base.failed = !c->is_aborted && c->run.reply.nodes[0].kind == STORE_ERROR;
    stats.drop_in_calls++;
    TAILQ_REMOVE(&d->calls, c, listed);
    TAILQ_INSERT_TAIL(&d->finished, c, listed);
}

void call_fail(struct dropin_call *c, const char *error)
{
    store_reply_clear(&c->run.reply);
    store_add_error(&c->run.reply, error);
    finish_call(c);
}

void call_finish_run(struct dropin_call *c, int64_t now_ms)
{
    if (c->job.is_watch && c->run.reply.nodes[0].kind != STORE_ERROR)
        call_watch_note(c);
    publish_all(c, now_ms);
    finish_call(c);
}

void call_finish_aborted(struct dropin_call *c)
{
    c->is_aborted = true;
    finish_call(c);
}

void call_tell_finished(struct dropin *d)
{
    struct dropin_call *c;
    while ((c = TAILQ_FIRST(&d->finished))) {
        TAILQ_REMOVE(&d->finished, c, listed);
        request_finish(&c->base);
    }
}
