/*
 * The bytes are kept only while they are not delivered; on the usual road (sent, answered) that
 * costs one allocation and a copy. What is kept is bounded by time, a lease at most; of what is no
 * release, by number too, as leases of drop-in holds may be long.
 * The list of kept ones is in order of arrival, which is nearly the order of expiry;
 * undelivered_expire looks at all of them, at most once in SWEEP_MS, and tries them again once in
 * RETRY_MS: a master that is there and turns a release away (MISCONF, OOM, too much in flight)
 * never says when it would take one.
 */
#include "redis/undelivered.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/pool.h"
#include "base/util.h"
#include "redis/args.h"
#include "redis/master.h"
#include "redis/token.h"

enum { SWEEP_MS = 100, RETRY_MS = 200, CHANGES_MAX = 10000 };

struct undelivered_call {
    struct master_call call;            /* first: ours to the master */
    TAILQ_ENTRY(undelivered_call) link; /* in kept */
    struct undelivered *list;
    struct master_call *for_call; /* the caller's */
    int64_t expires_ms;
    enum script script;
    bool may_have_run; /* an earlier try of it */
    struct master_item item;
    char bytes[]; /* the item's key, then its args */
};

TAILQ_HEAD(undelivered_queue, undelivered_call);

struct undelivered {
    struct master *master;
    struct token_clock *clock;
    struct undelivered_queue kept;
    bool closed;
    int n_changes;    /* not over yet, that are no releases */
    int64_t sweep_ms; /* next look for expired ones; INT64_MAX: none kept */
    int64_t retry_ms; /* not tried again before */
};

struct undelivered *undelivered_new(struct master *m, struct token_clock *clock)
{
    struct undelivered *list = util_alloc(sizeof *list);
    list->master = m;
    list->clock = clock;
    TAILQ_INIT(&list->kept);
    list->sweep_ms = INT64_MAX;
    return list;
}

void undelivered_free(struct undelivered *list)
{
    assert(TAILQ_EMPTY(&list->kept));
    free(list);
}

void undelivered_close(struct undelivered *list)
{
    list->closed = true;
}

static void finish(struct undelivered_call *o, const struct master_answer *answer, int64_t now_ms)
{
    struct master_call *call = o->for_call;
    o->list->n_changes -= o->script != SCRIPT_RELEASE;
    pool_put(o, sizeof *o + o->item.key_len + o->item.args_len);
    call->on_answer(call, answer, now_ms);
}

static void keep(struct undelivered_call *o, int64_t now_ms)
{
    struct undelivered *list = o->list;
    TAILQ_INSERT_TAIL(&list->kept, o, link);
    if (list->sweep_ms != INT64_MAX)
        return;
    list->sweep_ms = now_ms + SWEEP_MS;
    list->retry_ms = now_ms + RETRY_MS;
}

static void on_undelivered_answer(struct master_call *call, const struct master_answer *answer,
                                  int64_t now_ms)
{
    static const int64_t released[] = {1, 0};
    static const struct master_answer done = {
        .result = MASTER_ANSWERED, .values = released, .text = ""};
    struct undelivered_call *o = (struct undelivered_call *)call;
    if (answer->result != MASTER_ANSWERED) {
        o->may_have_run |= answer->result == MASTER_UNKNOWN;
        keep(o, now_ms);
    } else {
        finish(o, o->may_have_run && o->script == SCRIPT_RELEASE ? &done : answer, now_ms);
    }
}

static int try_send(struct undelivered_call *o, int64_t now_ms)
{
    if (o->list->closed)
        return -1;
    if (o->item.floor > 0) /* those of a call ascend, also when it is sent again */
        o->item.floor = token_floor(o->list->clock, now_ms);
    return master_ask(o->list->master, o->script, &o->item, &o->call, now_ms);
}

void undelivered_send(struct undelivered *list, enum script script, const struct args *it,
                      struct master_call *call, int64_t expires_ms, int64_t now_ms)
{
    struct master_item item;
    args_bytes(it, &item);
    struct undelivered_call *o = pool_get(sizeof *o + item.key_len + item.args_len);
    o->call.on_answer = on_undelivered_answer;
    o->list = list;
    o->script = script;
    list->n_changes += script != SCRIPT_RELEASE;
    o->for_call = call;
    o->expires_ms = expires_ms;
    o->item = item;
    o->item.key = memcpy(o->bytes, item.key, item.key_len);
    o->item.args = memcpy(o->bytes + item.key_len, item.args, item.args_len);
    if (list->n_changes > CHANGES_MAX)
        o->expires_ms = now_ms;
    if (try_send(o, now_ms) != 0)
        keep(o, now_ms);
}

/* Tells whether any has been sent. */
static bool send_or_keep(struct undelivered_queue *some, int64_t now_ms)
{
    struct undelivered_call *o;
    bool sent = false;
    while ((o = TAILQ_FIRST(some))) {
        TAILQ_REMOVE(some, o, link);
        if (try_send(o, now_ms) == 0)
            sent = true;
        else
            keep(o, now_ms);
    }
    return sent;
}

void undelivered_resend(struct undelivered *list, int64_t now_ms)
{
    struct undelivered_queue all = TAILQ_HEAD_INITIALIZER(all);
    TAILQ_CONCAT(&all, &list->kept, link);
    (void)send_or_keep(&all, now_ms);
}

bool undelivered_has_changes(const struct undelivered *list)
{
    return list->n_changes > 0;
}

bool undelivered_is_empty(const struct undelivered *list)
{
    return TAILQ_EMPTY(&list->kept);
}

bool undelivered_resend_key(struct undelivered *list, const struct args *it, int64_t now_ms)
{
    struct undelivered_queue same = TAILQ_HEAD_INITIALIZER(same);
    struct undelivered_call *o, *next;
    struct master_item item;
    args_bytes(it, &item);
    for (o = TAILQ_FIRST(&list->kept); o; o = next) {
        next = TAILQ_NEXT(o, link);
        if (o->item.key_len != item.key_len || memcmp(o->bytes, item.key, item.key_len) != 0)
            continue;
        TAILQ_REMOVE(&list->kept, o, link);
        TAILQ_INSERT_TAIL(&same, o, link);
    }
    return send_or_keep(&same, now_ms);
}

static void give_up(struct undelivered *list, int64_t until_ms, int64_t now_ms)
{
    static const struct master_answer given_up = {.result = MASTER_UNKNOWN,
                                                  .text = "not delivered"};
    struct undelivered_call *o, *next;
    for (o = TAILQ_FIRST(&list->kept); o; o = next) {
        next = TAILQ_NEXT(o, link);
        if (o->expires_ms <= until_ms) {
            TAILQ_REMOVE(&list->kept, o, link);
            finish(o, &given_up, now_ms);
        }
    }
}

void undelivered_expire(struct undelivered *list, int64_t now_ms)
{
    if (now_ms < list->sweep_ms)
        return;
    give_up(list, now_ms, now_ms);
    if (now_ms >= list->retry_ms && !list->closed) {
        list->retry_ms = now_ms + RETRY_MS;
        undelivered_resend(list, now_ms);
    }
    list->sweep_ms = TAILQ_EMPTY(&list->kept) ? INT64_MAX : now_ms + SWEEP_MS;
}

void undelivered_give_up(struct undelivered *list, int64_t now_ms)
{
    give_up(list, INT64_MAX, now_ms);
}

int64_t undelivered_next_ms(const struct undelivered *list)
{
    return list->sweep_ms;
}
