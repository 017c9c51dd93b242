/*
 * Messages about holds. Pushes go to RESP3 connections that have asked for them (TELL) only: many
 * clients take what they did not ask for as a reply, in RESP2 each of them does, and subscribe
 * instead.
 */
#include "lock/notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "lock/broker_state.h"
#include "net/resp.h"
#include "session/pubsub.h"
#include "stats/lostlog.h"
#include "stats/stats.h"

static const struct {
    const char *name;
    uint64_t *counter;
} reasons[LOST_REASONS] = {
    [LOST_NO_QUORUM] = {"no-quorum", &stats.lost_no_quorum},
    [LOST_GONE] = {"gone", &stats.lost_gone},
    [LOST_MOVED] = {"moved", &stats.lost_moved},
    [LOST_LEFT] = {"left", &stats.lost_left},
    [LOST_MAX_HOLD] = {"max-hold", &stats.lost_max_hold},
    [LOST_FORCED] = {"forced", &stats.lost_forced},
    [LOST_PAUSE] = {"pause", &stats.lost_pause},
};

/* ["what", name, token, text or number] */
static void push_to(struct session *s, const struct hold *h, const char *what, const char *text,
                    int64_t number, int64_t now_ms)
{
    if (s->proto < 3)
        return;
    struct resp_writer w = session_push(s, now_ms);
    resp_push(&w, 4);
    resp_str(&w, what);
    resp_bulk(&w, h->lock->name, h->lock->name_len);
    resp_int(&w, h->token);
    if (text)
        resp_str(&w, text);
    else
        resp_int(&w, number > 0 ? number : 0);
    session_push_end(s);
    stats.messages_sent++;
}

/* To the connection that it belongs to. */
static void push(const struct hold *h, const char *what, int64_t number, int64_t now_ms)
{
    if (h->tell && h->session)
        push_to(h->session, h, what, NULL, number, now_ms);
}

static void publish(const struct hold *h, const char *what, const char *text, int64_t now_ms)
{
    char channel[LOCK_NAME_MAX + 8], message[64];
    size_t channel_len = 5 + h->lock->name_len;
    memcpy(channel, "lock:", 5);
    memcpy(channel + 5, h->lock->name, h->lock->name_len);
    if (!pubsub_wanted(channel, channel_len))
        return;
    int len = snprintf(message, sizeof message, "%s %" PRId64 "%s%s", what, h->token,
                       text ? " " : "", text ? text : "");
    (void)pubsub_publish(channel, channel_len, message, (size_t)len, now_ms);
}

void notify_granted(const struct hold *h, int64_t now_ms)
{
    publish(h, "granted", NULL, now_ms);
}

void notify_released(const struct hold *h, int64_t now_ms)
{
    publish(h, "released", NULL, now_ms);
}

void notify_renewed(const struct hold *h, int64_t now_ms)
{
    push(h, "renewed", h->deadline_ms - now_ms, now_ms);
}

/* A quorum that is lost can take all holds along. What is lost has lines of its own, which those
 * that were in jeopardy before do not use up. */
static struct log_burst lost_lines, other_lines;

static bool may_log(struct log_burst *burst, int64_t now_ms)
{
    enum { LINES_PER_SECOND = 200 };

    return log_burst(burst, "lock", now_ms, LINES_PER_SECOND);
}

void notify_jeopardy(const struct hold *h, int64_t now_ms)
{
    stats.jeopardies++;
    if (may_log(&other_lines, now_ms))
        log_warn("lock",
                 "in jeopardy: a renewal failed token=%" PRId64 " left_ms=%" PRId64 " name=%s",
                 h->token, h->deadline_ms - now_ms, h->lock->name);
    push(h, "jeopardy", h->deadline_ms - now_ms, now_ms);
}

void notify_safe(const struct hold *h, int64_t now_ms)
{
    if (may_log(&other_lines, now_ms))
        log_info("lock", "safe again token=%" PRId64 " name=%s", h->token, h->lock->name);
    push(h, "safe", h->deadline_ms - now_ms, now_ms);
}

/* For the status page. */
static void remember(const struct hold *h, const char *reason, int64_t now_ms)
{
    const struct lostlog_entry entry = {.at_ms = now_ms,
                                        .held_ms = now_ms - h->since_ms,
                                        .token = h->token,
                                        .client = h->session ? h->session->id : 0,
                                        .reason = reason};

    lostlog_add(&entry, h->lock->name, h->lock->name_len);
}

/* Tells one connection, and ends it where that is wanted. */
static void lost_to(const struct broker *b, struct session *s, bool tell, const struct hold *h,
                    const char *reason, int64_t now_ms)
{
    if (tell)
        push_to(s, h, "lost", reason, 0, now_ms);
    if (b->conf.on_lost == CONF_LOST_CLOSE)
        s->events->on_close(s, "a lock that it held was lost");
}

void notify_lost(const struct broker *b, const struct hold *h, enum lost_reason reason,
                 int64_t now_ms)
{
    const char *name = reasons[reason].name;
    char message[LOCK_NAME_MAX + 64];
    (*reasons[reason].counter)++;
    if (may_log(&lost_lines, now_ms))
        log_warn("lock",
                 "lost reason=%s token=%" PRId64 " left_ms=%" PRId64 " client=%" PRIu64 " name=%s",
                 name, h->token, h->deadline_ms - now_ms, h->session ? h->session->id : 0,
                 h->lock->name);
    remember(h, name, now_ms);
    if (h->session && reason != LOST_LEFT)
        lost_to(b, h->session, h->tell, h, name, now_ms);
    const struct hold_guest *g;
    LIST_FOREACH(g, &h->guests, of_hold)
        lost_to(b, g->session, g->tell, h, name, now_ms);
    publish(h, "lost", name, now_ms);
    if (pubsub_wanted("lost", 4)) {
        int len =
            snprintf(message, sizeof message, "%s %" PRId64 " %s", h->lock->name, h->token, name);
        (void)pubsub_publish("lost", 4, message, (size_t)len, now_ms);
    }
}
