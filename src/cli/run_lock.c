/*
 * The state machine of run_lock.h. All that waits has a time by which it is given up:
 * answer_by_ms for the connection at hand, wait_until_ms for the lock, deadline_ms for the hold.
 *
 * Invariants: in HELD, deadline_ms was told by a broker. A connection that holds is closed in order
 * only when the lock is not ours any more, or is to be released.
 */
#include "cli/run_lock_private.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"

enum {
    CANCEL_MS = 1000,
    VERIFY_MS = 1000, /* after a pause of our own: for one question more */
    MARGIN_MAX_MS = 2000,
    PAUSE_MS = 200, /* a turn that comes so much too late was held up */
    RETRY_MS = 200  /* after an error that may pass */
};

/* ---- ends ---- */

static void lose_lock(struct run_lock *k, const char *why)
{
    run_lock_settle(k, RUN_LOCK_LOST, STATUS_LOST, "%s", why);
}

static bool has_ended(const struct run_lock *k)
{
    return k->state != RUN_LOCK_ASKING && k->state != RUN_LOCK_HELD &&
           k->state != RUN_LOCK_RELEASING;
}

/* Returns when the hold counts as lost: some time before its validity ends, as whoever is told
 * needs a moment. */
static int64_t last_moment_ms(const struct run_lock *k)
{
    return k->deadline_ms - util_min(k->validity_ms / 10, MARGIN_MAX_MS);
}

/* ---- answers ---- */

static void on_kept(struct run_lock *k, const redisReply *reply, int64_t now_ms)
{
    k->token = reply->element[0]->integer;
    k->validity_ms = reply->element[1]->integer;
    k->deadline_ms = k->sent_ms + k->validity_ms;
    k->beat_ms = now_ms + k->validity_ms / 3;
    k->failures = 0;
    k->verify_by_ms = 0;
    k->why[0] = k->reason[0] = '\0';
}

/* Takes a grant, or a hold that was taken back. A grant that was long in coming may have lain
 * unread: it is confirmed first, and counts from that request. */
static void on_hold(struct run_lock *k, enum verb verb, const redisReply *reply, int64_t now_ms)
{
    int64_t was = k->token;
    on_kept(k, reply, now_ms);
    if (k->state == RUN_LOCK_RELEASING && k->recalled && k->n_asked == 0)
        run_lock_ask(k, VERB_UNLOCK, now_ms);
    if (k->state == RUN_LOCK_HELD && was != k->token)
        cli_warn("%s: taken back, token %" PRId64, k->name, k->token);
    if (k->state != RUN_LOCK_ASKING)
        return;
    k->may_hold = true;
    if (verb == VERB_LOCK && now_ms - k->sent_ms > k->validity_ms / 4) {
        run_lock_ask(k, VERB_RENEW, now_ms);
        return;
    }
    link_close(&k->ear); /* who has it is no question any more */
    k->state = RUN_LOCK_HELD;
}

static void on_not_held(struct run_lock *k, enum verb verb, int64_t now_ms)
{
    if (verb == VERB_UNLOCK && k->may_be_free) {
        k->state = RUN_LOCK_RELEASED; /* the first UNLOCK had come through */
    } else if (k->state == RUN_LOCK_ASKING) {
        run_lock_ask(k, VERB_LOCK, now_ms);
    } else if (verb == VERB_UNLOCK && k->n_old > 0 && !k->recalled) {
        /* Asks for it back in order to release it: a broker that was silent may have woken up, and
         * have taken the lock for a RENEW that it found. */
        k->recalled = true;
        run_lock_ask(k, VERB_RENEW, now_ms);
    } else {
        lose_lock(k, k->reason[0] ? k->reason : "not held any more, says the broker");
    }
}

static void on_error(struct run_lock *k, enum verb verb, const char *error, int64_t now_ms)
{
    int status = cli_status_of(error);
    if (strncmp(error, "NOTHELD", 7) == 0) {
        on_not_held(k, verb, now_ms);
    } else if (k->state == RUN_LOCK_ASKING && status != STATUS_NO_BROKER) {
        run_lock_settle(k, RUN_LOCK_FAILED, status, "%s", error);
    } else if (k->state == RUN_LOCK_ASKING) {
        k->may_hold = verb == VERB_RENEW;
        run_lock_drop(k, error, status, now_ms);
    } else if (k->state == RUN_LOCK_RELEASING) {
        run_lock_settle(k, RUN_LOCK_RELEASED, 0, "%s", error);
    } else {
        k->beat_ms = now_ms + util_min(RETRY_MS, k->validity_ms / 10 + 1);
        if (k->verbose)
            cli_warn("%s: %s", k->name, error);
    }
}

static void on_lock_reply(struct run_lock *k, const redisReply *reply, int64_t now_ms)
{
    if (k->n_asked == 0) {
        run_lock_drop(k, "an answer that nobody has asked for", STATUS_NO_BROKER, now_ms);
        return;
    }
    enum verb verb = k->asked[0];
    memmove(k->asked, k->asked + 1, (size_t)--k->n_asked);
    bool again = reply->type == REDIS_REPLY_INTEGER && reply->integer == 0 && k->owner_is_mine;
    bool is_hold = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                   reply->element[0]->type == REDIS_REPLY_INTEGER &&
                   reply->element[1]->type == REDIS_REPLY_INTEGER;
    if (reply->type == REDIS_REPLY_ERROR)
        on_error(k, verb, reply->str, now_ms);
    else if (verb == VERB_UNLOCK && again) /* a LOCK that was thought lost had counted, too */
        run_lock_ask(k, VERB_UNLOCK, now_ms);
    else if (verb == VERB_UNLOCK)
        k->state = RUN_LOCK_RELEASED;
    else if (is_hold)
        on_hold(k, verb, reply, now_ms);
    else if (verb == VERB_LOCK && reply->type == REDIS_REPLY_NIL)
        run_lock_settle(k, RUN_LOCK_NOT_GRANTED, STATUS_NOT_GRANTED, "somebody else has it");
    else
        run_lock_drop(k, "an answer of the wrong shape: is this a holdfastd?", STATUS_NO_BROKER,
                      now_ms);
}

static void read_link(struct run_lock *k, short revents, int64_t now_ms)
{
    redisReply *reply = NULL;
    if (link_turn(&k->link, revents) != 0) {
        run_lock_drop(k, k->link.error, STATUS_NO_BROKER, now_ms);
        return;
    }
    while (link_is_open(&k->link) && !has_ended(k)) {
        if (link_next(&k->link, &reply) != 0) {
            run_lock_drop(k, k->link.error, STATUS_NO_BROKER, now_ms);
            return;
        }
        if (!reply)
            return;
        on_lock_reply(k, reply, now_ms);
        freeReplyObject(reply);
    }
}

/* ---- time ---- */

static void on_time_asking(struct run_lock *k, int64_t now_ms)
{
    if (k->wait_ms > 0 && now_ms >= k->wait_until_ms && !link_is_open(&k->link))
        run_lock_settle(k, RUN_LOCK_FAILED, k->status ? k->status : STATUS_NO_BROKER, "%s",
                        k->why[0] ? strdupa(k->why) : "no broker");
}

static void on_time_held(struct run_lock *k, int64_t now_ms)
{
    int64_t last_ms = last_moment_ms(k);
    bool held_up = k->due_ms && now_ms > k->due_ms + PAUSE_MS;
    if (now_ms >= last_ms && !k->verify_by_ms && held_up) {
        k->verify_by_ms = now_ms + VERIFY_MS;
        k->beat_ms = k->try_at_ms = now_ms;
        k->answer_by_ms = now_ms + VERIFY_MS;
    }
    if (now_ms >= last_ms && now_ms >= k->verify_by_ms) {
        char text[sizeof k->why + 40];
        snprintf(text, sizeof text, "not confirmed in time%s%s", k->why[0] ? ": " : "", k->why);
        lose_lock(k, text);
        return;
    }
    if (link_is_open(&k->link) && k->n_asked == 0 && now_ms >= k->beat_ms)
        run_lock_ask(k, VERB_RENEW, now_ms);
}

/* Returns when the connection at hand will have been silent for too long. */
static int64_t silent_ms(const struct run_lock *k)
{
    return !k->link.connected ? k->connect_by_ms : k->n_asked ? k->answer_by_ms : INT64_MAX;
}

static void on_deadline(struct run_lock *k, int64_t now_ms)
{
    if (k->state == RUN_LOCK_ASKING)
        on_time_asking(k, now_ms);
    else if (k->state == RUN_LOCK_HELD)
        on_time_held(k, now_ms);
    else if (now_ms >= k->release_by_ms)
        run_lock_settle(k, RUN_LOCK_RELEASED, 0,
                        "it could not be given back and ends with its lease");
    if (has_ended(k))
        return;
    if (link_is_open(&k->link) && now_ms >= silent_ms(k))
        run_lock_silent(k, now_ms);
    if (!has_ended(k) && !link_is_open(&k->link) && now_ms >= k->try_at_ms)
        run_lock_connect(k, now_ms);
    run_lock_ear_time(k, now_ms);
}

/* ---- for the caller ---- */

void run_lock_start(struct run_lock *k, int64_t now_ms)
{
    k->wait_until_ms = k->wait_ms > 0 ? now_ms + k->wait_ms : INT64_MAX;
    run_lock_connect(k, now_ms);
}

void run_lock_fds(const struct run_lock *k, struct pollfd *fds)
{
    const struct link *links[RUN_LOCK_FDS] = {&k->link, &k->ear};
    for (int i = 0; i < RUN_LOCK_FDS; i++) {
        bool heard = link_is_open(links[i]) && !has_ended(k);
        fds[i] = (struct pollfd){-1, 0, 0};
        if (heard)
            fds[i] = (struct pollfd){link_fd(links[i]), link_events(links[i]), 0};
    }
}

int64_t run_lock_due_ms(struct run_lock *k)
{
    int64_t due_ms = INT64_MAX;
    bool open = link_is_open(&k->link);
    if (!has_ended(k)) {
        due_ms = open ? silent_ms(k) : k->try_at_ms;
        if (k->state == RUN_LOCK_ASKING && !open)
            due_ms = util_min(due_ms, k->wait_until_ms);
        if (k->state == RUN_LOCK_RELEASING)
            due_ms = util_min(due_ms, k->release_by_ms);
    }
    if (k->state == RUN_LOCK_HELD) {
        due_ms = util_min(due_ms, k->verify_by_ms ? k->verify_by_ms : last_moment_ms(k));
        if (open && k->n_asked == 0)
            due_ms = util_min(due_ms, k->beat_ms);
    }
    return k->due_ms = util_min(due_ms, run_lock_ear_due_ms(k));
}

void run_lock_turn(struct run_lock *k, const struct pollfd *fds, int64_t now_ms)
{
    if (!has_ended(k) && link_is_open(&k->link) && fds[0].fd == link_fd(&k->link) && fds[0].revents)
        read_link(k, fds[0].revents, now_ms);
    if (link_is_open(&k->ear) && fds[1].fd == link_fd(&k->ear) && fds[1].revents)
        run_lock_ear_read(k, fds[1].revents, now_ms);
    if (!has_ended(k))
        on_deadline(k, now_ms);
}

void run_lock_cancel(struct run_lock *k, int64_t now_ms)
{
    redisReply *reply = NULL;
    int64_t until_ms = now_ms + CANCEL_MS;
    bool is_open = link_is_open(&k->link) && link_finish(&k->link) == 0;
    while (is_open && link_is_open(&k->link) && now_ms < until_ms) {
        struct pollfd fd = {link_fd(&k->link), POLLIN, 0};
        if (poll(&fd, 1, (int)(until_ms - now_ms)) < 0 || link_turn(&k->link, fd.revents) != 0)
            break;
        while (link_next(&k->link, &reply) == 0 && reply)
            freeReplyObject(reply);
        now_ms = clock_ms();
    }
    link_close(&k->link);
    k->n_asked = 0;
    if (k->may_hold && k->lease_ms)
        run_lock_release(k, now_ms, CANCEL_MS);
}

void run_lock_release(struct run_lock *k, int64_t now_ms, int64_t wait_ms)
{
    k->state = RUN_LOCK_RELEASING;
    k->release_by_ms = now_ms + wait_ms;
    k->why[0] = '\0';
    if (link_is_open(&k->link))
        run_lock_ask(k, VERB_UNLOCK, now_ms);
    else
        k->try_at_ms = now_ms;
}

void run_lock_fini(struct run_lock *k)
{
    link_close(&k->link);
    link_close(&k->ear);
    run_lock_close_old(k);
}
