/* Keys of any type: whether they are there, what they are, how long they stay; TIME and PUBLISH. */
#include "dropin/store_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void store_key_del(struct store_run *run)
{
    int64_t n = 0;
    for (int i = 1; i < run->argc; i++) {
        struct store_key *k = store_key_find(run, &run->argv[i]);
        if (!k)
            continue;
        n++;
        store_key_drop(run->store, k);
        store_wrote(run, &run->argv[i], true, true);
    }
    store_add_int(run->out, n);
}

static void exists(struct store_run *run)
{
    int64_t n = 0;
    for (int i = 1; i < run->argc; i++)
        n += store_key_find(run, &run->argv[i]) != NULL;
    store_add_int(run->out, n);
}

static void type(struct store_run *run)
{
    static const char *const names[] = {"string", "hash", "list", "set", "zset"};
    const struct store_key *k = store_key_find(run, &run->argv[1]);
    const char *name = k ? names[k->type] : "none";
    store_add_text(run->out, STORE_STATUS, name, strlen(name));
}

/* ---- times to live ---- */

enum { NX = 1, XX = 2, GT = 4, LT = 8 };

static bool parse_condition(struct store_run *run, int *flags)
{
    static const char *const words[] = {"NX", "XX", "GT", "LT"};
    *flags = 0;
    for (int i = 3; i < run->argc; i++) {
        int j = 0;
        while (j < 4 && !store_is(&run->argv[i], words[j]))
            j++;
        if (j == 4) {
            char text[160];
            snprintf(text, sizeof text, "ERR Unsupported option %.*s",
                     run->argv[i].len < 128 ? (int)run->argv[i].len : 128, run->argv[i].ptr);
            store_add_error(run->out, text);
            return false;
        }
        *flags |= 1 << j;
    }
    if ((*flags & NX) && (*flags & (XX | GT | LT)))
        store_add_error(run->out,
                        "ERR NX and XX, GT or LT options at the same time are not compatible");
    else if ((*flags & GT) && (*flags & LT))
        store_add_error(run->out, "ERR GT and LT options at the same time are not compatible");
    else
        return true;
    return false;
}

/* Returns whether NX, XX, GT and LT allow the new time; no time to live counts as longer than any.
 */
static bool holds_key(const struct store_key *k, int flags, int64_t at_ms)
{
    bool has_time = k->expires_ms != INT64_MAX;
    return !((flags & NX) && has_time) && !((flags & XX) && !has_time) &&
           !((flags & GT) && at_ms <= k->expires_ms) && !((flags & LT) && at_ms >= k->expires_ms);
}

static void expire_at(struct store_run *run, int64_t unit_ms, bool is_relative)
{
    int flags;
    int64_t at_ms;
    if (!parse_condition(run, &flags))
        return;
    if (!store_want_time(run, &run->argv[2], unit_ms, is_relative, true, &at_ms))
        return;
    struct store_key *k = store_key_find(run, &run->argv[1]);
    if (!k || !holds_key(k, flags, at_ms)) {
        store_add_int(run->out, 0);
        return;
    }
    store_wrote(run, &run->argv[1], at_ms <= run->now_ms, true);
    if (at_ms <= run->now_ms)
        store_key_drop(run->store, k);
    else
        k->expires_ms = at_ms;
    store_add_int(run->out, 1);
}

static void expire(struct store_run *run)
{
    expire_at(run, 1000, true);
}

static void pexpire(struct store_run *run)
{
    expire_at(run, 1, true);
}

static void expireat(struct store_run *run)
{
    expire_at(run, 1000, false);
}

static void pexpireat(struct store_run *run)
{
    expire_at(run, 1, false);
}

static void persist(struct store_run *run)
{
    struct store_key *k = store_key_find(run, &run->argv[1]);
    bool had_time = k && k->expires_ms != INT64_MAX;
    if (had_time) {
        k->expires_ms = INT64_MAX;
        store_wrote(run, &run->argv[1], false, true);
    }
    store_add_int(run->out, had_time);
}

/* Replies the time left; in seconds, half a second and more counts as one. */
static void left(struct store_run *run, bool in_seconds, bool is_point)
{
    const struct store_key *k = store_key_find(run, &run->argv[1]);
    if (!k || k->expires_ms == INT64_MAX) {
        store_add_int(run->out, k ? -1 : -2);
        return;
    }
    int64_t ms = k->expires_ms - (is_point ? 0 : run->now_ms);
    store_add_int(run->out, in_seconds ? (ms + 500) / 1000 : ms);
}

static void ttl(struct store_run *run)
{
    left(run, true, false);
}

static void pttl(struct store_run *run)
{
    left(run, false, false);
}

static void expiretime(struct store_run *run)
{
    left(run, true, true);
}

static void pexpiretime(struct store_run *run)
{
    left(run, false, true);
}

/* ---- no key ---- */

static void server_time(struct store_run *run)
{
    char text[24];
    int64_t us = run->store->now_us;
    store_add_array(run->out, 2);
    store_bulk(run, text, (size_t)snprintf(text, sizeof text, "%" PRId64, us / 1000000));
    store_bulk(run, text, (size_t)snprintf(text, sizeof text, "%" PRId64, us % 1000000));
}

static void publish_message(struct store_run *run)
{
    struct store *s = run->store;
    store_add_int(run->out, s->publish ? s->publish(s->arg, &run->argv[1], &run->argv[2]) : 0);
}

const struct store_command store_key_commands[] = {
    {"DEL", -2, STORE_SERVED | STORE_KEYS | STORE_WRITES | STORE_DELETES, store_key_del},
    {"EXISTS", -2, STORE_SERVED | STORE_KEYS, exists},
    {"EXPIRE", -3, STORE_CHANGE | STORE_WEIGHS_TIME, expire},
    {"EXPIREAT", -3, STORE_CHANGE | STORE_WEIGHS_TIME, expireat},
    {"EXPIRETIME", 2, STORE_LOOK | STORE_READS_TIME, expiretime},
    {"PERSIST", 2, STORE_CHANGE, persist},
    {"PEXPIRE", -3, STORE_CHANGE | STORE_WEIGHS_TIME, pexpire},
    {"PEXPIREAT", -3, STORE_CHANGE | STORE_WEIGHS_TIME, pexpireat},
    {"PEXPIRETIME", 2, STORE_LOOK | STORE_READS_TIME, pexpiretime},
    {"PTTL", 2, STORE_LOOK | STORE_READS_TIME, pttl},
    {"PUBLISH", 3, STORE_SERVED | STORE_WRITES, publish_message},
    {"TIME", 1, STORE_SERVED | STORE_READS_CLOCK, server_time},
    {"TTL", 2, STORE_LOOK | STORE_READS_TIME, ttl},
    {"TYPE", 2, STORE_LOOK, type},
    {"UNLINK", -2, STORE_SERVED | STORE_KEYS | STORE_WRITES | STORE_DELETES, store_key_del},
    {NULL, 0, 0, NULL},
};
