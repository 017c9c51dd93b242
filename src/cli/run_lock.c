/*
 * The state machine of run_lock.h. All that waits has a time by which it is given up:
 * answer_by_ms for the connection at hand, wait_until_ms for the lock, deadline_ms for the hold.
 *
 * Invariants: in HELD, deadline_ms was told by a broker. A connection that holds is closed in order
 * only when the lock is not ours any more, or is to be released.
 */
#include "run_lock.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "clock.h"

enum verb { VERB_LOCK, VERB_RENEW, VERB_UNLOCK };

enum {
    ANSWER_MAX_MS = 5000,
    CONNECT_MAX_MS = 2000,
    CANCEL_MS = 1000,
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 2000,
    VERIFY_MS = 1000, /* after a pause of our own: for one question more */
    MARGIN_MAX_MS = 2000,
    PAUSE_MS = 200, /* a turn that comes so much too late was held up */
    RETRY_MS = 200  /* after an error that may pass */
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void run_lock_make_owner(struct run_lock *k)
{
    char host[65] = "", id[21];
    (void)gethostname(host, sizeof host - 1);
    util_random_id(id, sizeof id - 1);
    snprintf(k->owner, sizeof k->owner, "%s/%ld/%s", host, (long)getpid(), id);
    k->owner_is_mine = true;
}

/* ---- ends ---- */

static void settle(struct run_lock *k, enum run_lock_state state, int status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void settle(struct run_lock *k, enum run_lock_state state, int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(k->why, sizeof k->why, fmt, args);
    va_end(args);
    k->state = state;
    k->status = status;
}

static void lose(struct run_lock *k, const char *why)
{
    settle(k, RUN_LOCK_LOST, STATUS_LOST, "%s", why);
}

static bool is_over(const struct run_lock *k)
{
    return k->state != RUN_LOCK_ASKING && k->state != RUN_LOCK_HELD &&
           k->state != RUN_LOCK_RELEASING;
}

/* So long before the end of the validity the hold counts as lost: whoever is told needs a moment.
 */
static int64_t last_moment_ms(const struct run_lock *k)
{
    return k->deadline_ms - min64(k->validity_ms / 10, MARGIN_MAX_MS);
}

/* ---- questions ---- */

static int64_t answer_time_ms(const struct run_lock *k)
{
    return k->validity_ms ? min64(ANSWER_MAX_MS, k->validity_ms / 3 + 20) : ANSWER_MAX_MS;
}

static void ask(struct run_lock *k, enum verb verb, int64_t now_ms)
{
    const char *words[14] = {"", k->name, "OWNER", k->owner};
    char wait[24], lease[24], maxhold[24];
    int n = 4;
    words[0] = verb == VERB_LOCK ? "LOCK" : verb == VERB_RENEW ? "RENEW" : "UNLOCK";
    k->answer_by_ms = now_ms + answer_time_ms(k);
    if (verb != VERB_UNLOCK && k->lease_ms) {
        snprintf(lease, sizeof lease, "%" PRId64, k->lease_ms);
        words[n++] = "LEASE";
        words[n++] = lease;
    }
    if (verb == VERB_LOCK && k->maxhold_ms) {
        snprintf(maxhold, sizeof maxhold, "%" PRId64, k->maxhold_ms);
        words[n++] = "MAXHOLD";
        words[n++] = maxhold;
    }
    if (verb == VERB_LOCK && k->wait_ms >= 0) {
        int64_t left_ms = k->wait_ms ? k->wait_until_ms - now_ms : 0;
        snprintf(wait, sizeof wait, "%" PRId64, k->wait_ms && left_ms < 1 ? 1 : left_ms);
        words[n++] = "WAIT";
        words[n++] = wait;
        k->answer_by_ms = k->wait_ms ? k->wait_until_ms + ANSWER_MAX_MS : INT64_MAX;
    }
    if (verb == VERB_LOCK && k->fair)
        words[n++] = "FAIR";
    assert(k->n_asked < RUN_LOCK_ASKED_MAX);
    k->asked[k->n_asked++] = (uint8_t)verb;
    k->sent_ms = now_ms;
    k->may_hold = k->may_hold || verb == VERB_LOCK;
    k->may_be_free = verb == VERB_UNLOCK && k->unlocked;
    k->unlocked = verb == VERB_UNLOCK;
    link_send(&k->link, n, words);
}

/* What is asked first over a new connection. */
static void ask_first(struct run_lock *k, int64_t now_ms)
{
    if (k->state == RUN_LOCK_RELEASING)
        ask(k, VERB_UNLOCK, now_ms);
    else if (k->state == RUN_LOCK_HELD || k->may_hold)
        ask(k, VERB_RENEW, now_ms);
    else
        ask(k, VERB_LOCK, now_ms);
}

/* ---- connections ---- */

static void back_off(struct run_lock *k, int64_t now_ms)
{
    size_t round = k->failures / k->urls->n;
    int64_t pause_ms = 0;
    uint16_t dice;
    if (k->failures % k->urls->n == 0) { /* all have been tried */
        pause_ms = round > 6 ? BACKOFF_MAX_MS : min64(BACKOFF_MAX_MS, BACKOFF_MIN_MS << round);
        util_random(&dice, sizeof dice);
        pause_ms = pause_ms / 2 + pause_ms * dice / 65536 / 2;
    }
    k->try_at_ms = now_ms + pause_ms;
}

/* The connection is closed or given up: what now? `why` must not lie in k->why. */
static void on_down(struct run_lock *k, const char *why, int status, int64_t now_ms)
{
    k->n_asked = 0;
    k->ear_at_ms = now_ms;
    link_close(&k->ear); /* it listens to the same broker */
    k->failures++;
    k->next_url = (k->next_url + 1) % k->urls->n;
    bool all_tried = k->failures % k->urls->n == 0;
    snprintf(k->why, sizeof k->why, "%s", why);
    k->status = status;
    if (k->state == RUN_LOCK_ASKING && k->link.denied)
        settle(k, RUN_LOCK_FAILED, STATUS_DENIED, "%s", why);
    else if (k->state == RUN_LOCK_ASKING && k->wait_ms < 0 && all_tried)
        settle(k, RUN_LOCK_FAILED, status, "%s", why);
    else if (k->state == RUN_LOCK_ASKING && (k->failures == 1 || k->verbose))
        cli_warn("%s: %s, trying again", k->name, why);
    else if (k->state == RUN_LOCK_HELD && (k->failures == 1 || k->verbose))
        cli_warn("%s: %s, taking the lock back", k->name, why);
    back_off(k, now_ms);
}

static void drop(struct run_lock *k, const char *why, int status, int64_t now_ms)
{
    char text[sizeof k->why];
    snprintf(text, sizeof text, "%s", why);
    link_close(&k->link);
    on_down(k, text, status, now_ms);
}

/* Silent for too long. Closed in order it would take the lock along, if the broker still reads. */
static void on_silence(struct run_lock *k, int64_t now_ms)
{
    char text[sizeof k->why];
    bool keep = k->link.connected && k->asked[0] == VERB_RENEW && k->n_old < RUN_LOCK_OLD_MAX;
    snprintf(text, sizeof text, "%s: no answer", k->link.url->shown);
    if (!keep) {
        drop(k, text, STATUS_NO_BROKER, now_ms);
        return;
    }
    k->old[k->n_old++] = k->link;
    k->link = (struct link){0};
    on_down(k, text, STATUS_NO_BROKER, now_ms);
}

static void close_old(struct run_lock *k)
{
    while (k->n_old > 0)
        link_close(&k->old[--k->n_old]);
}

static void connect_next(struct run_lock *k, int64_t now_ms)
{
    if (link_open(&k->link, &k->urls->v[k->next_url]) != 0) {
        drop(k, k->link.error, STATUS_NO_BROKER, now_ms);
        return;
    }
    k->connect_by_ms = now_ms + min64(CONNECT_MAX_MS, answer_time_ms(k));
    ask_first(k, now_ms);
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
    close_old(k);
}

/* Granted or taken back. A grant that was long in coming may have lain unread: it is confirmed
 * first, and counted from that question. */
static void on_hold(struct run_lock *k, enum verb verb, const redisReply *reply, int64_t now_ms)
{
    int64_t was = k->token;
    on_kept(k, reply, now_ms);
    if (k->state == RUN_LOCK_HELD && was != k->token)
        cli_warn("%s: taken back, token %" PRId64, k->name, k->token);
    if (k->state != RUN_LOCK_ASKING)
        return;
    k->may_hold = true;
    if (verb == VERB_LOCK && now_ms - k->sent_ms > k->validity_ms / 4) {
        ask(k, VERB_RENEW, now_ms);
        return;
    }
    k->state = RUN_LOCK_HELD;
}

static void on_unlocked(struct run_lock *k, const redisReply *reply, int64_t now_ms)
{
    if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 0 && k->owner_is_mine)
        ask(k, VERB_UNLOCK, now_ms); /* a LOCK that was thought lost had counted, too */
    else
        k->state = RUN_LOCK_RELEASED;
}

static void on_not_held(struct run_lock *k, enum verb verb, int64_t now_ms)
{
    if (verb == VERB_UNLOCK && k->may_be_free)
        k->state = RUN_LOCK_RELEASED; /* the first UNLOCK had come through */
    else if (k->state == RUN_LOCK_ASKING)
        ask(k, VERB_LOCK, now_ms);
    else
        lose(k, k->reason[0] ? k->reason : "not held any more, says the broker");
}

/* Errors that another broker, or a moment, may cure. */
static bool may_pass(const char *error)
{
    return cli_status_of(error) == STATUS_NO_BROKER;
}

static void on_error(struct run_lock *k, enum verb verb, const char *error, int64_t now_ms)
{
    int status = cli_status_of(error);
    if (strncmp(error, "NOTHELD", 7) == 0) {
        on_not_held(k, verb, now_ms);
    } else if (k->state == RUN_LOCK_ASKING && !may_pass(error)) {
        settle(k, RUN_LOCK_FAILED, status, "%s", error);
    } else if (k->state == RUN_LOCK_ASKING) {
        k->may_hold = verb == VERB_RENEW;
        drop(k, error, status, now_ms);
    } else if (k->state == RUN_LOCK_RELEASING) {
        settle(k, RUN_LOCK_RELEASED, 0, "%s", error);
    } else {
        k->beat_ms = now_ms + min64(RETRY_MS, k->validity_ms / 10 + 1);
        if (k->verbose)
            cli_warn("%s: %s", k->name, error);
    }
}

static void on_reply(struct run_lock *k, const redisReply *reply, int64_t now_ms)
{
    if (k->n_asked == 0) {
        drop(k, "an answer that nobody has asked for", STATUS_NO_BROKER, now_ms);
        return;
    }
    enum verb verb = k->asked[0];
    memmove(k->asked, k->asked + 1, (size_t)--k->n_asked);
    bool is_hold = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                   reply->element[0]->type == REDIS_REPLY_INTEGER &&
                   reply->element[1]->type == REDIS_REPLY_INTEGER;
    if (reply->type == REDIS_REPLY_ERROR)
        on_error(k, verb, reply->str, now_ms);
    else if (verb == VERB_UNLOCK)
        on_unlocked(k, reply, now_ms);
    else if (is_hold)
        on_hold(k, verb, reply, now_ms);
    else if (verb == VERB_LOCK && reply->type == REDIS_REPLY_NIL)
        settle(k, RUN_LOCK_NOT_GRANTED, STATUS_NOT_GRANTED, "somebody else has it");
    else
        drop(k, "an answer of the wrong shape: is this a holdfastd?", STATUS_NO_BROKER, now_ms);
}

static void read_link(struct run_lock *k, short revents, int64_t now_ms)
{
    redisReply *reply = NULL;
    if (link_turn(&k->link, revents) != 0) {
        drop(k, k->link.error, STATUS_NO_BROKER, now_ms);
        return;
    }
    while (link_is_open(&k->link) && !is_over(k)) {
        if (link_next(&k->link, &reply) != 0) {
            drop(k, k->link.error, STATUS_NO_BROKER, now_ms);
            return;
        }
        if (!reply)
            return;
        on_reply(k, reply, now_ms);
        freeReplyObject(reply);
    }
}

/* ---- the second connection ---- */

static void open_ear(struct run_lock *k, int64_t now_ms)
{
    char channel[520];
    k->ear_at_ms = now_ms + BACKOFF_MAX_MS;
    if (link_open(&k->ear, k->link.url) != 0)
        return;
    snprintf(channel, sizeof channel, "lock:%s", k->name);
    link_send(&k->ear, 2, (const char *[]){"SUBSCRIBE", channel});
}

/* That our hold is lost is a reason to ask at once. */
static void read_ear(struct run_lock *k, short revents, int64_t now_ms)
{
    redisReply *reply = NULL;
    char lost[40];
    snprintf(lost, sizeof lost, "lost %" PRId64 " ", k->token);
    if (link_turn(&k->ear, revents) != 0)
        return;
    while (link_is_open(&k->ear) && link_next(&k->ear, &reply) == 0 && reply) {
        const redisReply *text =
            reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 ? reply->element[2] : NULL;
        if (text && text->type == REDIS_REPLY_STRING &&
            strncmp(text->str, lost, strlen(lost)) == 0) {
            snprintf(k->reason, sizeof k->reason, "%s", text->str + strlen(lost));
            k->beat_ms = now_ms;
        }
        freeReplyObject(reply);
    }
}

/* ---- time ---- */

static void on_time_asking(struct run_lock *k, int64_t now_ms)
{
    if (k->wait_ms > 0 && now_ms >= k->wait_until_ms && !link_is_open(&k->link))
        settle(k, RUN_LOCK_FAILED, k->status ? k->status : STATUS_NO_BROKER, "%s",
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
        lose(k, text);
        return;
    }
    if (link_is_open(&k->link) && k->n_asked == 0 && now_ms >= k->beat_ms)
        ask(k, VERB_RENEW, now_ms);
    if (!link_is_open(&k->ear) && link_is_open(&k->link) && now_ms >= k->ear_at_ms)
        open_ear(k, now_ms);
}

/* When the connection at hand has been silent for too long. */
static int64_t silent_ms(const struct run_lock *k)
{
    return !k->link.connected ? k->connect_by_ms : k->n_asked ? k->answer_by_ms : INT64_MAX;
}

static void on_time(struct run_lock *k, int64_t now_ms)
{
    if (k->state == RUN_LOCK_ASKING)
        on_time_asking(k, now_ms);
    else if (k->state == RUN_LOCK_HELD)
        on_time_held(k, now_ms);
    else if (now_ms >= k->release_by_ms)
        settle(k, RUN_LOCK_RELEASED, 0, "it could not be given back and ends with its lease");
    if (is_over(k))
        return;
    if (link_is_open(&k->link) && now_ms >= silent_ms(k))
        on_silence(k, now_ms);
    if (!is_over(k) && !link_is_open(&k->link) && now_ms >= k->try_at_ms)
        connect_next(k, now_ms);
}

/* ---- for the caller ---- */

void run_lock_start(struct run_lock *k, int64_t now_ms)
{
    k->wait_until_ms = k->wait_ms > 0 ? now_ms + k->wait_ms : INT64_MAX;
    connect_next(k, now_ms);
}

void run_lock_fds(const struct run_lock *k, struct pollfd *fds)
{
    const struct link *links[RUN_LOCK_FDS] = {&k->link, &k->ear};
    for (int i = 0; i < RUN_LOCK_FDS; i++) {
        bool heard = link_is_open(links[i]) && !is_over(k);
        fds[i] = (struct pollfd){-1, 0, 0};
        if (heard)
            fds[i] = (struct pollfd){link_fd(links[i]), link_events(links[i]), 0};
    }
}

int64_t run_lock_due_ms(struct run_lock *k)
{
    int64_t due_ms = INT64_MAX;
    bool open = link_is_open(&k->link);
    if (!is_over(k)) {
        due_ms = open ? silent_ms(k) : k->try_at_ms;
        if (k->state == RUN_LOCK_ASKING && !open)
            due_ms = min64(due_ms, k->wait_until_ms);
        if (k->state == RUN_LOCK_RELEASING)
            due_ms = min64(due_ms, k->release_by_ms);
    }
    if (k->state == RUN_LOCK_HELD) {
        due_ms = min64(due_ms, k->verify_by_ms ? k->verify_by_ms : last_moment_ms(k));
        if (open && k->n_asked == 0)
            due_ms = min64(due_ms, k->beat_ms);
        if (open && !link_is_open(&k->ear))
            due_ms = min64(due_ms, k->ear_at_ms);
    }
    return k->due_ms = due_ms;
}

void run_lock_turn(struct run_lock *k, const struct pollfd *fds, int64_t now_ms)
{
    if (!is_over(k) && link_is_open(&k->link) && fds[0].fd == link_fd(&k->link) && fds[0].revents)
        read_link(k, fds[0].revents, now_ms);
    if (link_is_open(&k->ear) && fds[1].fd == link_fd(&k->ear) && fds[1].revents)
        read_ear(k, fds[1].revents, now_ms);
    if (!is_over(k))
        on_time(k, now_ms);
}

void run_lock_cancel(struct run_lock *k, int64_t now_ms)
{
    redisReply *reply = NULL;
    int64_t until_ms = now_ms + CANCEL_MS;
    if (link_is_open(&k->link) && shutdown(link_fd(&k->link), SHUT_WR) != 0)
        link_close(&k->link);
    while (link_is_open(&k->link) && now_ms < until_ms) {
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
        ask(k, VERB_UNLOCK, now_ms);
    else
        k->try_at_ms = now_ms;
}

void run_lock_fini(struct run_lock *k)
{
    link_close(&k->link);
    link_close(&k->ear);
    close_old(k);
}
