/*
 * What a broker hears from the masters without having asked: that it is its turn for a lock, and
 * that others have taken one of its holds away; and what follows when it has been deaf.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/broker.h"
#include "lock/broker_private.h"
#include "lock/claim.h"
#include "lock/hold.h"
#include "lock/queue.h"
#include "lock/waiters.h"
#include "redis/args.h"

/* ---- called up ---- */

void broker_channel(const struct broker *b, char *out, size_t size)
{
    snprintf(out, size, "holdfast:wake:%s", b->id);
}

/* "<broker>", "<broker>/<n>" or "<broker>.<n>", all of this broker. False: it is none of these. */
static bool parse_ours(const struct broker *b, const char *text, size_t len, char *mark,
                       uint64_t *number)
{
    size_t id_len = strlen(b->id);
    char digits[16] = "";
    *mark = '\0';
    *number = 0;
    if (len < id_len || memcmp(text, b->id, id_len) != 0)
        return false;
    if (len == id_len)
        return true;
    *mark = text[id_len];
    if ((*mark != '/' && *mark != '.') || len - id_len - 1 >= sizeof digits)
        return false;
    memcpy(digits, text + id_len + 1, len - id_len - 1);
    *number = strtoull(digits, NULL, 36);
    return true;
}

/* takeover.lua or release.lua has found this operation of ours. */
static void moved(struct broker *b, struct lock *l, uint64_t op, int64_t now_ms)
{
    struct hold *h;
    struct claim *c;
    LIST_FOREACH(h, &l->holds, of_lock) {
        if (h->op == op) {
            hold_check(b, h, now_ms);
            return;
        }
    }
    if (!l->queue)
        return;
    LIST_FOREACH(c, &l->queue->claims, of_lock)
        if (c->op == op)
            claim_doubt(c);
}

void broker_called(struct broker *b, int i, const char *text, size_t len, int64_t now_ms)
{
    const char *space = memchr(text, ' ', len), *name;
    size_t name_len;
    uint64_t number;
    char mark;
    if (!space || !parse_ours(b, text, (size_t)(space - text), &mark, &number))
        return;
    if (!args_name_of_key(space + 1, len - (size_t)(space + 1 - text), &name, &name_len) ||
        name_len > LOCK_NAME_MAX)
        return;
    broker_begin(b, now_ms);
    struct lock *l = locktab_get(&b->locks, name, name_len);
    work_lock(&b->work, l, WORK_LOOK);
    if (mark == '.')
        moved(b, l, number, now_ms);
    else if (rounds_agreed(&b->rounds, name, name_len, now_ms) ==
             i - rounds_first(&b->rounds, name, name_len))
        waiters_call(b, l, number, now_ms);
    broker_end(b, now_ms);
}

/* ---- ears ---- */

static void doubt(void *arg, struct lock *l)
{
    struct broker *b = arg;
    waiters_doubt(b, l, b->now_ms);
}

/* Some of the locks at a time: there may be very many. */
static void on_doubt(struct broker *b, struct due *due, int64_t now_ms)
{
    enum { BUCKETS = 512 };
    for (int i = 0; i < BUCKETS; i++) {
        b->doubt_cursor = locktab_scan(&b->locks, b->doubt_cursor, doubt, b);
        if (!b->doubt_cursor)
            return;
    }
    due_at(&b->due, due, now_ms + 1);
}

void broker_listens(struct broker *b, int i, int64_t since_ms, int64_t heard_ms, int64_t now_ms)
{
    struct broker_ear *ear = &b->ears[i];
    if (ear->since_ms != since_ms && b->n_waiters > 0) { /* who comes later looks himself */
        b->doubt_cursor = 0;
        b->doubt.fn = on_doubt;
        due_at(&b->due, &b->doubt, now_ms);
    }
    *ear = (struct broker_ear){since_ms, heard_ms};
}
