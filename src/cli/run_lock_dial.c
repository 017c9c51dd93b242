/*
 * Sends the requests of a lock. Dials one address after the other, and gives a connection up when
 * it fails or is silent.
 */
#include "cli/run_lock_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum {
    ANSWER_MAX_MS = 5000,
    CONNECT_MAX_MS = 2000,
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 2000,
    TELL_MS = 1000
};

void run_lock_make_owner(struct run_lock *k)
{
    char host[65] = "", id[21];
    (void)gethostname(host, sizeof host - 1);
    util_random_id(id, sizeof id - 1);
    snprintf(k->owner, sizeof k->owner, "%s/%ld/%s", host, (long)getpid(), id);
    k->owner_is_mine = true;
}

void run_lock_settle(struct run_lock *k, enum run_lock_state state, int status, const char *fmt,
                     ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(k->why, sizeof k->why, fmt, args);
    va_end(args);
    k->state = state;
    k->status = status;
}

/* ---- questions ---- */

static int64_t answer_time_ms(const struct run_lock *k)
{
    return k->validity_ms ? util_min(ANSWER_MAX_MS, k->validity_ms / 3 + 20) : ANSWER_MAX_MS;
}

void run_lock_ask(struct run_lock *k, enum verb verb, int64_t now_ms)
{
    static const char *const verbs[] = {
        [VERB_LOCK] = "LOCK", [VERB_RENEW] = "RENEW", [VERB_UNLOCK] = "UNLOCK"};
    struct link_words words = {.v = {verbs[verb], k->name, "OWNER", k->owner}, .n = 4};
    int64_t left_ms = k->wait_until_ms - now_ms;
    k->answer_by_ms = now_ms + answer_time_ms(k);
    if (verb != VERB_UNLOCK && k->lease_ms)
        link_option(&words, "LEASE", k->lease_ms);
    if (verb == VERB_LOCK && k->maxhold_ms)
        link_option(&words, "MAXHOLD", k->maxhold_ms);
    if (verb == VERB_LOCK && k->wait_ms < 0) {
        link_option(&words, "WAIT", 0);
        k->answer_by_ms = INT64_MAX;
    } else if (verb == VERB_LOCK && k->wait_ms > 0) {
        link_option(&words, "WAIT", left_ms < 1 ? 1 : left_ms);
        k->answer_by_ms = k->wait_until_ms + ANSWER_MAX_MS;
    }
    if (verb == VERB_LOCK && k->shared)
        link_word(&words, "SHARED");
    if (verb == VERB_LOCK && k->limit)
        link_option(&words, "LIMIT", k->limit);
    if (verb == VERB_LOCK && k->fair)
        link_word(&words, "FAIR");
    assert(k->n_asked < RUN_LOCK_ASKED_MAX);
    k->asked[k->n_asked++] = (uint8_t)verb;
    k->sent_ms = now_ms;
    k->may_hold = k->may_hold || verb == VERB_LOCK;
    k->may_be_free = verb == VERB_UNLOCK && k->unlocked;
    k->unlocked = verb == VERB_UNLOCK;
    link_send(&k->link, words.n, words.v);
}

/* Sends the first request over a new connection. */
static void ask_first(struct run_lock *k, int64_t now_ms)
{
    if (k->state == RUN_LOCK_RELEASING)
        run_lock_ask(k, VERB_UNLOCK, now_ms);
    else if (k->state == RUN_LOCK_HELD || k->may_hold)
        run_lock_ask(k, VERB_RENEW, now_ms);
    else
        run_lock_ask(k, VERB_LOCK, now_ms);
}

/* ---- connections ---- */

static void back_off(struct run_lock *k, int64_t now_ms)
{
    size_t round = k->failures / k->urls->n;
    int64_t pause_ms = 0;
    uint16_t dice;
    if (k->failures % k->urls->n == 0) { /* all have been tried */
        pause_ms = round > 6 ? BACKOFF_MAX_MS : util_min(BACKOFF_MAX_MS, BACKOFF_MIN_MS << round);
        util_random(&dice, sizeof dice);
        pause_ms = pause_ms / 2 + pause_ms * dice / 65536 / 2;
    }
    k->try_at_ms = now_ms + pause_ms;
}

/* Decides how to go on after the connection is closed or given up. `why` must not lie in k->why. */
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
        run_lock_settle(k, RUN_LOCK_FAILED, STATUS_DENIED, "%s", why);
    else if (k->state == RUN_LOCK_ASKING && k->wait_ms == 0 && all_tried)
        run_lock_settle(k, RUN_LOCK_FAILED, status, "%s", why);
    else if (k->state == RUN_LOCK_ASKING && (k->failures == 1 || k->verbose))
        cli_warn("%s: %s, trying again", k->name, why);
    else if (k->state == RUN_LOCK_HELD && (k->failures == 1 || k->verbose))
        cli_warn("%s: %s, taking the lock back", k->name, why);
    back_off(k, now_ms);
}

void run_lock_drop(struct run_lock *k, const char *why, int status, int64_t now_ms)
{
    char text[sizeof k->why];
    snprintf(text, sizeof text, "%s", why);
    link_close(&k->link);
    on_down(k, text, status, now_ms);
}

/* Puts the silent connection aside instead of closing it: if the broker still reads, an orderly
 * close would release the lock. */
void run_lock_silent(struct run_lock *k, int64_t now_ms)
{
    char text[sizeof k->why];
    bool keep = k->link.connected && k->asked[0] == VERB_RENEW;
    snprintf(text, sizeof text, "%s: no answer", k->link.url->shown);
    if (!keep) {
        run_lock_drop(k, text, STATUS_NO_BROKER, now_ms);
        return;
    }
    if (k->n_old == RUN_LOCK_OLD_MAX) {
        link_abort(&k->old[0]);
        memmove(k->old, k->old + 1, (size_t)--k->n_old * sizeof k->old[0]);
    }
    k->old[k->n_old++] = k->link;
    k->link = (struct link){0};
    on_down(k, text, STATUS_NO_BROKER, now_ms);
}

void run_lock_close_old(struct run_lock *k)
{
    while (k->n_old > 0)
        link_close(&k->old[--k->n_old]);
}

void run_lock_connect(struct run_lock *k, int64_t now_ms)
{
    if (link_open(&k->link, &k->urls->v[k->next_url]) != 0) {
        run_lock_drop(k, k->link.error, STATUS_NO_BROKER, now_ms);
        return;
    }
    k->tell_at_ms = k->tells ? now_ms + TELL_MS : INT64_MAX;
    k->connect_by_ms = now_ms + util_min(CONNECT_MAX_MS, answer_time_ms(k));
    ask_first(k, now_ms);
}
