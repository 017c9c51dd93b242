/*
 * Walks LOCKS to its end and sends LOCKINFO in batches, so that a long list takes few round trips
 * and a broker never gets more than BATCH requests at once.
 */
#include "cli/locks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "cli/text.h"

enum { BATCH = 64 };

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct locks_row *)a)->name, ((const struct locks_row *)b)->name);
}

static void drop_doubles(struct locks *locks)
{
    size_t kept = 0;
    if (locks->n == 0)
        return;
    qsort(locks->v, locks->n, sizeof locks->v[0], by_name);
    for (size_t i = 1; i < locks->n; i++) {
        if (strcmp(locks->v[kept].name, locks->v[i].name) == 0)
            free(locks->v[i].name);
        else
            locks->v[++kept] = locks->v[i];
    }
    locks->n = kept + 1;
}

static void add_name(struct locks *locks, const redisReply *name, size_t max)
{
    if (max && locks->n == max) {
        locks->more = true;
    } else if (name && name->type == REDIS_REPLY_STRING) {
        locks->v = util_realloc(locks->v, (locks->n + 1) * sizeof locks->v[0]);
        locks->v[locks->n++] = (struct locks_row){util_memdup(name->str, name->len), NULL};
    }
}

static void add_contended(struct locks *locks, const struct locks_wish *wish)
{
    struct glob *glob = wish->glob ? glob_new(wish->glob, strlen(wish->glob)) : NULL;
    for (size_t i = 0; i < ask_count(wish->contended); i++) {
        const redisReply *name = ask_get(wish->contended->element[i], "lock");
        if (name && (!glob || glob_match(glob, name->str, name->len)))
            add_name(locks, name, wish->max);
    }
    glob_free(glob);
}

/* Returns the next reply; NULL: there is none, or it is an error, then *error is it. */
static redisReply *take_reply(struct link *link, redisReply **error)
{
    redisReply *reply = ask_try_reply(link);
    if (!reply || reply->type != REDIS_REPLY_ERROR)
        return reply;
    *error = reply;
    return NULL;
}

static int get_names(struct locks *locks, struct link *link, const struct locks_wish *wish,
                     redisReply **error)
{
    const char *glob = wish->glob;
    char cursor[24] = "0";
    do {
        const char *words[] = {"LOCKS", "CURSOR", cursor, "COUNT", "1000", "MATCH", glob};
        link_send(link, glob ? 7 : 5, words);
        redisReply *reply = take_reply(link, error);
        if (!reply)
            return -1;
        bool ok = ask_count(reply) == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
                  reply->element[0]->len < sizeof cursor;
        strcpy(cursor, ok ? reply->element[0]->str : "0");
        const redisReply *names = ok ? reply->element[1] : NULL;
        for (size_t i = 0; names && i < ask_count(names); i++)
            add_name(locks, names->element[i], wish->max);
        freeReplyObject(reply);
    } while (strcmp(cursor, "0") != 0 && !locks->more);
    drop_doubles(locks);
    return 0;
}

static int get_details(struct locks *locks, struct link *link)
{
    size_t sent = 0;
    for (size_t i = 0; i < locks->n; i++) {
        for (; sent < locks->n && sent < i + BATCH; sent++)
            link_send(link, 2, (const char *[]){"LOCKINFO", locks->v[sent].name});
        redisReply *reply = ask_try_reply(link);
        if (!reply)
            return -1;
        if (reply->type == REDIS_REPLY_ARRAY)
            locks->v[i].info = reply;
        else
            freeReplyObject(reply);
    }
    return 0;
}

int locks_get(struct locks *locks, struct link *link, const struct locks_wish *wish,
              redisReply **error)
{
    *locks = (struct locks){0};
    *error = NULL;
    add_contended(locks, wish);
    if (get_names(locks, link, wish, error) == 0 &&
        (!wish->details || get_details(locks, link) == 0))
        return 0;
    locks_fini(locks);
    return -1;
}

void locks_fini(struct locks *locks)
{
    for (size_t i = 0; i < locks->n; i++) {
        free(locks->v[i].name);
        if (locks->v[i].info)
            freeReplyObject(locks->v[i].info);
    }
    free(locks->v);
    *locks = (struct locks){0};
}

const redisReply *locks_holder(const redisReply *info)
{
    const redisReply *holders = ask_get(info, "holders");
    return ask_count(holders) ? holders->element[0] : NULL;
}

/* Returns whether a master's words in LOCKINFO mean that it says nothing of the lock. */
bool locks_is_silent(const redisReply *says)
{
    return says->type != REDIS_REPLY_STRING || strncmp(says->str, "no answer", 9) == 0;
}

void locks_count_masters(const redisReply *info, size_t *n, size_t *n_answered)
{
    const redisReply *masters = ask_get(info, "masters");
    *n = *n_answered = 0;
    for (size_t i = 0; i + 1 < ask_count(masters); i += 2) {
        ++*n;
        *n_answered += !locks_is_silent(masters->element[i + 1]);
    }
}

const char *locks_state(const redisReply *info)
{
    const redisReply *masters = ask_get(info, "masters");
    size_t n = ask_count(masters) / 2, n_free = 0;
    if (locks_holder(info))
        return "held";
    for (size_t i = 0; i < n; i++) {
        const redisReply *says = masters->element[2 * i + 1];
        n_free += says->type == REDIS_REPLY_STRING && strcmp(says->str, "free") == 0;
    }
    return n - n_free < n / 2 + 1 ? "free" : "unknown"; /* may a majority have a holder? */
}

int64_t locks_holding(const redisReply *info)
{
    int64_t holding = ask_int(info, "holding");
    int64_t listed = (int64_t)ask_count(ask_get(info, "holders"));
    return holding > listed ? holding : listed;
}

bool locks_is_elsewhere(const redisReply *holder)
{
    return strcmp(ask_text(holder, "connection"), "elsewhere") == 0;
}

const char *locks_kind(char *buf, const redisReply *info)
{
    const char *kind = ask_text(info, "kind");
    int64_t limit = ask_int(info, "limit"), holding = locks_holding(info);
    if (holding == 0)
        snprintf(buf, LOCKS_KIND_SIZE, "-");
    else if (strcmp(kind, "limit") == 0)
        snprintf(buf, LOCKS_KIND_SIZE, "limit %" PRId64 "/%" PRId64, holding, limit);
    else if (strcmp(kind, "shared") == 0)
        snprintf(buf, LOCKS_KIND_SIZE, "shared %" PRId64, holding);
    else
        snprintf(buf, LOCKS_KIND_SIZE, "%.20s", *kind ? kind : "exclusive");
    return buf;
}

void locks_add_kind(json_t *lock, const redisReply *info)
{
    const redisReply *limit = ask_get(info, "limit");
    const char *kind = ask_text(info, "kind");
    bool has_limit = *kind && limit && limit->type == REDIS_REPLY_INTEGER;
    json_object_set_new(lock, "kind", *kind ? text_json_str(kind) : json_null());
    json_object_set_new(lock, "limit", has_limit ? json_integer(limit->integer) : json_null());
    json_object_set_new(lock, "holding", json_integer(locks_holding(info)));
}
