/*
 * What is kept in a fake server: holds, tombstones, permits by owner, counters. A key is there as
 * long as its time is not past its expiry, as in Redis.
 *
 * Invariant: nothing that has expired is seen, because each look at a list drops those first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_private.h"
#include "util.h"

/* ---- holds ---- */

void fake_lock_free(struct fake_server *s, struct fake_lock *l)
{
    TAILQ_REMOVE(&s->locks, l, link);
    free(l->key);
    free(l->part);
    free(l->owner);
    free(l->op);
    free(l);
}

static void free_tomb(struct fake_server *s, struct fake_tomb *t)
{
    TAILQ_REMOVE(&s->tombs, t, link);
    free(t->key);
    free(t);
}

static void free_permit(struct fake_server *s, struct fake_permit *p)
{
    TAILQ_REMOVE(&s->permits, p, link);
    free(p->key);
    free(p->owner);
    free(p->slot);
    free(p);
}

void fake_keys_clear(struct fake_server *s)
{
    while (!TAILQ_EMPTY(&s->locks))
        fake_lock_free(s, TAILQ_FIRST(&s->locks));
    while (!TAILQ_EMPTY(&s->tombs))
        free_tomb(s, TAILQ_FIRST(&s->tombs));
    while (!TAILQ_EMPTY(&s->permits))
        free_permit(s, TAILQ_FIRST(&s->permits));
}

static void expire(struct fake_server *s)
{
    int64_t now_ms = fake_server_time_ms(s);
    struct fake_lock *l, *next;
    struct fake_tomb *t, *next_tomb;
    struct fake_permit *p, *next_permit;
    for (l = TAILQ_FIRST(&s->locks); l; l = next) {
        next = TAILQ_NEXT(l, link);
        if (now_ms > l->expires_ms)
            fake_lock_free(s, l);
    }
    for (t = TAILQ_FIRST(&s->tombs); t; t = next_tomb) {
        next_tomb = TAILQ_NEXT(t, link);
        if (now_ms > t->expires_ms)
            free_tomb(s, t);
    }
    for (p = TAILQ_FIRST(&s->permits); p; p = next_permit) {
        next_permit = TAILQ_NEXT(p, link);
        if (now_ms > p->expires_ms)
            free_permit(s, p);
    }
}

struct fake_lock *fake_server_find_part(struct fake_server *s, const char *key, const char *part)
{
    struct fake_lock *l;
    expire(s);
    TAILQ_FOREACH(l, &s->locks, link) {
        if (strcmp(l->key, key) == 0 && strcmp(l->part, part) == 0)
            return l;
    }
    return NULL;
}

struct fake_lock *fake_server_find(struct fake_server *s, const char *key)
{
    return fake_server_find_part(s, key, "-");
}

int fake_server_count_locks(struct fake_server *s)
{
    struct fake_lock *l;
    int n = 0;
    expire(s);
    TAILQ_FOREACH(l, &s->locks, link)
        n++;
    return n;
}

static struct fake_lock *new_lock(struct fake_server *s, const char *key, const char *part)
{
    struct fake_lock *l = util_alloc(sizeof *l);
    l->key = util_strdup(key);
    l->part = util_strdup(part);
    l->owner = util_strdup("");
    l->op = util_strdup("");
    l->expires_ms = INT64_MAX;
    TAILQ_INSERT_TAIL(&s->locks, l, link);
    return l;
}

void fake_server_set_foreign(struct fake_server *s, const char *key)
{
    struct fake_lock *l = fake_server_find(s, key);
    if (!l)
        l = new_lock(s, key, "-");
    l->foreign = true;
    l->expires_ms = INT64_MAX;
}

enum fake_age fake_age(const char *op, const char *held)
{
    const char *number = strrchr(op, '.'), *its = strrchr(held, '.');
    if (fake_mutation == FAKE_LATE_COPIES || !number || !its || number - op != its - held ||
        strncmp(op, held, (size_t)(number - op)) != 0)
        return FAKE_UNRELATED;
    size_t len = strlen(number), its_len = strlen(its);
    return len < its_len || (len == its_len && strcmp(number, its) < 0) ? FAKE_OLDER : FAKE_NEWER;
}

bool fake_is_op(const struct fake_lock *l, const char *op)
{
    return l && !l->foreign && strcmp(l->op, op) == 0;
}

int64_t fake_pttl_ms(const struct fake_server *s, const struct fake_lock *l)
{
    if (!l)
        return -2;
    return l->expires_ms == INT64_MAX ? -1 : l->expires_ms - fake_server_time_ms(s);
}

static void set(char **field, const char *text)
{
    free(*field);
    *field = util_strdup(text);
}

void fake_put(struct fake_server *s, const char *key, const char *part, const char *owner,
              const char *op, int64_t token, int64_t count, int64_t seq, const char *lease,
              const char *maxhold)
{
    struct fake_lock *l = fake_server_find_part(s, key, part);
    if (!l)
        l = new_lock(s, key, part);
    set(&l->owner, owner);
    set(&l->op, op);
    l->token = token;
    l->count = count;
    l->seq = seq;
    l->taken = false;
    l->end_ms = atoll(maxhold) ? fake_server_time_ms(s) + atoll(maxhold) : 0;
    fake_last_until(s, l, fake_server_time_ms(s) + atoll(lease), true);
}

/* ---- shares ---- */

static bool is_before(const struct fake_lock *a, const struct fake_lock *b)
{
    if (a->expires_ms != b->expires_ms)
        return a->expires_ms < b->expires_ms;
    return strcmp(a->part, b->part) < 0;
}

static bool is_share(const struct fake_lock *l, const char *key)
{
    return strcmp(l->key, key) == 0 && strcmp(l->part, "-") != 0;
}

int fake_shares(struct fake_server *s, const char *key)
{
    struct fake_lock *l;
    int n = 0;
    expire(s);
    TAILQ_FOREACH(l, &s->locks, link)
        n += is_share(l, key);
    return n;
}

struct fake_lock *fake_share(struct fake_server *s, const char *key, int i)
{
    struct fake_lock *l, *before;
    expire(s);
    TAILQ_FOREACH(l, &s->locks, link) {
        int place = 0;
        if (!is_share(l, key))
            continue;
        TAILQ_FOREACH(before, &s->locks, link)
            place += is_share(before, key) && is_before(before, l);
        if (place == i)
            return l;
    }
    return NULL;
}

int fake_limit_of(struct fake_server *s, const char *key)
{
    const struct fake_lock *first = fake_share(s, key, 0);
    return first && first->part[0] == 's' ? atoi(first->part + 2) : 0;
}

/* ---- permits ---- */

struct fake_permit *fake_permit(struct fake_server *s, const char *key, const char *owner)
{
    struct fake_permit *p;
    expire(s);
    TAILQ_FOREACH(p, &s->permits, link) {
        if (strcmp(p->key, key) == 0 && strcmp(p->owner, owner) == 0)
            return p;
    }
    return NULL;
}

void fake_forget_permit(struct fake_server *s, const char *key, const char *part)
{
    const struct fake_lock *l = fake_server_find_part(s, key, part);
    struct fake_permit *p = l && part[0] == 's' ? fake_permit(s, key, l->owner) : NULL;
    if (p && strcmp(p->slot, part + 2) == 0)
        free_permit(s, p);
}

void fake_last_until(struct fake_server *s, struct fake_lock *l, int64_t expires_ms, bool anew)
{
    bool is_later = anew || l->expires_ms < expires_ms;
    l->expires_ms = expires_ms;
    if (l->part[0] != 's' || !is_later)
        return;
    struct fake_permit *p = fake_permit(s, l->key, l->owner);
    if (!p) {
        p = util_alloc(sizeof *p);
        p->key = util_strdup(l->key);
        p->owner = util_strdup(l->owner);
        TAILQ_INSERT_TAIL(&s->permits, p, link);
    }
    set(&p->slot, l->part + 2);
    p->expires_ms = expires_ms;
}

/* ---- tombstones ---- */

static char *tomb_key(const char *key, const char *op)
{
    char *text = util_alloc(strlen(key) + strlen(op) + 7);
    sprintf(text, "%s:gone:%s", key, op);
    return text;
}

struct fake_tomb *fake_find_tomb(struct fake_server *s, const char *key, const char *op)
{
    char *text = tomb_key(key, op);
    struct fake_tomb *t;
    expire(s);
    TAILQ_FOREACH(t, &s->tombs, link) {
        if (strcmp(t->key, text) == 0)
            break;
    }
    free(text);
    return t;
}

bool fake_server_is_gone(struct fake_server *s, const char *key, const char *op)
{
    return fake_find_tomb(s, key, op) != NULL;
}

struct fake_tomb *fake_add_tomb(struct fake_server *s, const char *key, const char *op, int64_t ms,
                                bool moved)
{
    static struct fake_tomb none;
    struct fake_tomb *t = fake_find_tomb(s, key, op);
    if (fake_mutation == FAKE_NO_TOMBS)
        return &none;
    if (!t) {
        t = util_alloc(sizeof *t);
        t->key = tomb_key(key, op);
        TAILQ_INSERT_TAIL(&s->tombs, t, link);
    }
    t->moved = moved;
    t->released = false;
    t->expires_ms = fake_server_time_ms(s) + ms;
    return t;
}

/* ---- counters ---- */

int64_t *fake_counter(struct fake_server *s, const char *counter)
{
    return strcmp(counter, "base") == 0 ? &s->mark.base : &s->mark.counters[atoi(counter)];
}

int64_t fake_next_token(struct fake_server *s, const char *bucket, int64_t least)
{
    int64_t *counter = fake_counter(s, bucket);
    if (fake_mutation == FAKE_NO_FLOOR)
        return *counter = *counter + 1;
    return *counter = fake_max(fake_max(*counter + 1, s->mark.base + 1), least);
}

void fake_raise_counter(struct fake_server *s, const char *bucket, int64_t token)
{
    int64_t *counter = fake_counter(s, bucket);
    *counter = fake_max(*counter, token);
}
