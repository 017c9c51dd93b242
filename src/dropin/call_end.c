/*
 * How a call ends: it publishes what its last run was to publish, leaves the lines of its names,
 * and its session hears that its reply is there.
 */
#include <assert.h>

#include "dropin/call_private.h"
#include "lock/broker_state.h"
#include "session/pubsub.h"

/* Tells those who listen at this broker; returns how many. */
static int64_t publish_one(const struct store_reply *p, int i, int64_t now_ms)
{
    const struct store_node *channel = &p->nodes[i], *message = &p->nodes[i + 1];
    return pubsub_publish(store_text(p, channel), channel->len, store_text(p, message),
                          message->len, now_ms);
}

/* Publishes what the run was to publish; PUBLISH itself tells how many have heard it. */
static void publish_all(struct dropin_call *c, int64_t now_ms)
{
    const struct store_reply *p = &c->run.published;
    bool is_publish = c->job.n_commands == 1 && !c->job.is_multi;
    for (int i = 0; i + 1 < p->n_nodes; i += 2) {
        int64_t n = publish_one(p, i, now_ms);
        if (is_publish)
            c->run.reply.nodes[0].n = n;
    }
}

static void leave_lines(struct dropin_call *c)
{
    due_cancel(&c->dropin->broker->due, &c->due);
    for (int i = 0; c->slots && i < c->job.n_names; i++) {
        if (c->slots[i].seat.line)
            turns_leave(&c->dropin->turns, &c->slots[i].seat);
    }
}

/* It has its reply, and has published what it was to publish. */
static void finish_call(struct dropin_call *c)
{
    struct dropin *d = c->dropin;
    assert(c->state != CALL_FINISHED && c->state != CALL_ASKS);
    leave_lines(c);
    c->state = CALL_FINISHED;
    c->base.failed = !c->is_aborted && c->run.reply.nodes[0].kind == STORE_ERROR;
    d->figures.calls++;
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
