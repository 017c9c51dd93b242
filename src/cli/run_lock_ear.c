/*
 * Has the second connection, to the broker of the first: asks once who has the lock while it is
 * waited for, and listens to its channel while it is held. What is heard is a reason to say or ask
 * something, never more.
 */
#include "cli/run_lock_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/locks.h"
#include "cli/text.h"

enum { LISTEN_MS = 2000 /* from one try to listen to the next */ };

static bool is_waiting(const struct run_lock *k)
{
    return k->state == RUN_LOCK_ASKING;
}

/* ---- questions ---- */

int64_t run_lock_ear_due_ms(const struct run_lock *k)
{
    if (!link_is_open(&k->link) || link_is_open(&k->ear))
        return INT64_MAX;
    return is_waiting(k) ? k->tell_at_ms : k->state == RUN_LOCK_HELD ? k->ear_at_ms : INT64_MAX;
}

void run_lock_ear_time(struct run_lock *k, int64_t now_ms)
{
    char channel[520];
    if (now_ms < run_lock_ear_due_ms(k))
        return;
    if (is_waiting(k))
        k->tell_at_ms = INT64_MAX;
    else
        k->ear_at_ms = now_ms + LISTEN_MS;
    if (link_open(&k->ear, k->link.url) != 0)
        return;
    snprintf(channel, sizeof channel, "lock:%s", k->name);
    link_send(&k->ear, 2,
              is_waiting(k) ? (const char *[]){"LOCKINFO", k->name}
                            : (const char *[]){"SUBSCRIBE", channel});
}

/* ---- answers ---- */

/* Appends ": held by web-7 and 2 more, for 12s"; nothing if no holder is known. */
static void put_holders(struct buf *out, const redisReply *info)
{
    const redisReply *holder = locks_holder(info);
    int64_t others = locks_holding(info) - 1;
    char span[24];
    if (!holder)
        return;
    const char *owner = ask_text(holder, "owner");
    buf_printf(out, ": held by ");
    text_put(out, owner, strlen(owner), 0);
    if (others > 0)
        buf_printf(out, " and %" PRId64 " more", others);
    if (locks_is_elsewhere(holder))
        buf_printf(out, ", through another broker");
    else
        buf_printf(out, ", for %s", text_duration(span, ask_int(holder, "held_ms")));
}

/* Tells who has the lock and how many wait; this run is one of them. */
static void say_who_has_it(const struct run_lock *k, const redisReply *info)
{
    struct buf text = {0};
    int64_t others = ask_int(info, "waiting") - 1;
    put_holders(&text, info);
    if (others > 0)
        buf_printf(&text, "; %" PRId64 " more wait%s", others, others == 1 ? "s" : "");
    cli_warn("%s: waiting%.*s", k->name, (int)buf_len(&text), buf_head(&text));
    buf_fini(&text);
}

/* Asks at once when a message says that our hold is lost. */
static void on_message(struct run_lock *k, const redisReply *reply, int64_t now_ms)
{
    char lost[40];
    const redisReply *text =
        reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 ? reply->element[2] : NULL;
    snprintf(lost, sizeof lost, "lost %" PRId64 " ", k->token);
    if (text && text->type == REDIS_REPLY_STRING && strncmp(text->str, lost, strlen(lost)) == 0) {
        snprintf(k->reason, sizeof k->reason, "%s", text->str + strlen(lost));
        k->beat_ms = now_ms;
    }
}

void run_lock_ear_read(struct run_lock *k, short revents, int64_t now_ms)
{
    redisReply *reply = NULL;
    if (link_turn(&k->ear, revents) != 0)
        return;
    while (link_is_open(&k->ear) && link_next(&k->ear, &reply) == 0 && reply) {
        if (is_waiting(k)) {
            say_who_has_it(k, reply);
            link_close(&k->ear);
        } else {
            on_message(k, reply, now_ms);
        }
        freeReplyObject(reply);
    }
}
