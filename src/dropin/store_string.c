/* Strings: one run of bytes under a key, and numbers written as such. */
#include "dropin/store_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/util.h"

enum { NX = 1, XX = 2, KEEPTTL = 4, GET = 8, PERSIST = 16, IF = 32 };

static void reply_string(struct store_run *run, const struct store_key *k)
{
    if (k)
        store_bulk(run, k->string.ptr, k->string.len);
    else
        store_add_nil(run->out);
}

/* Replaces what stands there (`k`; NULL: nothing) and its time to live. */
static struct store_key *put_over(struct store_run *run, struct store_key *k,
                                  const struct resp_arg *name, const struct resp_arg *value)
{
    if (k) {
        store_value_fini(k);
        k->type = STORE_STRING;
    } else {
        k = store_key_make(run, name, STORE_STRING);
    }
    k->string = store_bytes_of(value);
    k->expires_ms = INT64_MAX;
    store_wrote(run, name, true, true);
    return k;
}

static struct store_key *put_value(struct store_run *run, const struct resp_arg *name,
                                   const struct resp_arg *value)
{
    return put_over(run, store_key_find(run, name), name, value);
}

static void put_text(struct store_run *run, struct store_key *k, const char *text, size_t len)
{
    store_wrote(run, &run->argv[1], true, false);
    store_bytes_fini(&k->string);
    k->string = store_bytes_of(&(struct resp_arg){text, len});
}

static bool is_time_option(const struct resp_arg *word)
{
    return store_is(word, "EX") || store_is(word, "PX") || store_is(word, "EXAT") ||
           store_is(word, "PXAT");
}

struct options {
    int flags, time_at; /* time_at: word of the time option, which is read last; 0: none */
    int if_at;          /* word of IFEQ or IFNE; 0: none */
};

static bool is_condition(const struct resp_arg *word)
{
    return store_is(word, "IFEQ") || store_is(word, "IFNE");
}

/* Returns whether what stands there, NULL: nothing, has this value, or for IFNE another one. */
static bool meets(const struct store_key *k, const struct resp_arg *word,
                  const struct resp_arg *value)
{
    bool same =
        k && k->string.len == value->len && memcmp(k->string.ptr, value->ptr, value->len) == 0;
    return store_is(word, "IFNE") ? !same : same;
}

/* Returns which flag of a SET or GETEX a word is, and which ones it excludes; 0: it is none. */
static int read_flag(const struct resp_arg *word, int *excludes)
{
    *excludes = 0;
    if (store_is(word, "GET"))
        return GET;
    if (store_is(word, "NX")) {
        *excludes = XX | IF;
        return NX;
    }
    if (store_is(word, "XX")) {
        *excludes = NX | IF;
        return XX;
    }
    if (store_is(word, "KEEPTTL")) {
        *excludes = PERSIST;
        return KEEPTTL;
    }
    if (!store_is(word, "PERSIST"))
        return 0;
    *excludes = KEEPTTL;
    return PERSIST;
}

/* Parses the options from word `i` on, of those in `allowed`. -1: the error has been added. */
static int parse_options(struct store_run *run, int i, int allowed, struct options *o)
{
    *o = (struct options){0, 0, 0};
    for (; i < run->argc; i++) {
        int excludes;
        if ((allowed & IF) && !(o->flags & (NX | XX | IF)) && i + 1 < run->argc &&
            is_condition(&run->argv[i])) {
            o->flags |= IF;
            o->if_at = i++;
            continue;
        }
        int flag = read_flag(&run->argv[i], &excludes) & allowed;
        bool is_ttl = flag == KEEPTTL || flag == PERSIST;
        if (flag && !(o->flags & excludes) && !(is_ttl && o->time_at)) {
            o->flags |= flag;
            continue;
        }
        bool has_time = o->time_at || (o->flags & (KEEPTTL | PERSIST));
        if (flag || has_time || i + 1 >= run->argc || !is_time_option(&run->argv[i])) {
            store_syntax_error(run);
            return -1;
        }
        o->time_at = i++;
    }
    return 0;
}

static bool option_time(struct store_run *run, const struct options *o, int64_t *at_ms)
{
    const struct resp_arg *word = &run->argv[o->time_at];
    int64_t unit_ms = (word->ptr[0] | 0x20) == 'e' ? 1000 : 1;
    return store_want_time(run, word + 1, unit_ms, word->len == 2, false, at_ms);
}

static void set(struct store_run *run)
{
    const struct resp_arg *name = &run->argv[1];
    struct options o;
    int64_t at_ms = INT64_MAX;
    bool wrong = false;
    if (parse_options(run, 3, NX | XX | IF | GET | KEEPTTL, &o) < 0)
        return;
    if (o.time_at && !option_time(run, &o, &at_ms))
        return;
    struct store_key *k = store_key_find(run, name);
    if (o.flags & (GET | IF)) {
        k = store_key_get(run, name, STORE_STRING, &wrong);
        if (wrong)
            return;
    }
    if (o.flags & GET)
        reply_string(run, k);
    if ((k && (o.flags & NX)) || (!k && (o.flags & XX)) ||
        (o.if_at && !meets(k, &run->argv[o.if_at], &run->argv[o.if_at + 1]))) {
        if (!(o.flags & GET))
            store_add_nil(run->out);
        return;
    }
    int64_t kept_ms = k && (o.flags & KEEPTTL) ? k->expires_ms : INT64_MAX;
    k = put_over(run, k, name, &run->argv[2]);
    k->expires_ms = o.time_at ? at_ms : kept_ms;
    if (!(o.flags & GET))
        store_ok(run);
}

static void setnx(struct store_run *run)
{
    bool is_free = !store_key_find(run, &run->argv[1]);
    if (is_free)
        put_value(run, &run->argv[1], &run->argv[2]);
    store_add_int(run->out, is_free);
}

static void set_for(struct store_run *run, int64_t unit_ms)
{
    int64_t at_ms;
    if (!store_want_time(run, &run->argv[2], unit_ms, true, false, &at_ms))
        return;
    put_value(run, &run->argv[1], &run->argv[3])->expires_ms = at_ms;
    store_ok(run);
}

static void setex(struct store_run *run)
{
    set_for(run, 1000);
}

static void psetex(struct store_run *run)
{
    set_for(run, 1);
}

static void get_string(struct store_run *run)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_STRING, &wrong);
    if (!wrong)
        reply_string(run, k);
}

/* Serves DELEX and DELIFEQ, which Redis 7.0 does not have, as Redis 8.4 and Valkey 9 answer them.
 */
static void drop_if(struct store_run *run, const struct resp_arg *word,
                    const struct resp_arg *value)
{
    bool wrong;
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_STRING, &wrong);
    if (wrong)
        return;
    bool is_met = k && meets(k, word, value);
    if (is_met) {
        store_key_drop(run->store, k);
        store_wrote(run, &run->argv[1], true, true);
    }
    store_add_int(run->out, is_met);
}

static void delifeq(struct store_run *run)
{
    drop_if(run, &run->argv[0], &run->argv[2]);
}

static void delex(struct store_run *run)
{
    if (run->argc == 2) {
        store_key_del(run);
    } else if (run->argc != 4) {
        store_add_error(run->out, "ERR wrong number of arguments for 'delex' command");
    } else if (!is_condition(&run->argv[2])) {
        store_add_error(run->out, "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
    } else {
        drop_if(run, &run->argv[2], &run->argv[3]);
    }
}

static void getset(struct store_run *run)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_STRING, &wrong);
    if (wrong)
        return;
    reply_string(run, k);
    put_value(run, &run->argv[1], &run->argv[2]);
}

static void getdel(struct store_run *run)
{
    bool wrong;
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_STRING, &wrong);
    if (wrong)
        return;
    reply_string(run, k);
    if (k) {
        store_key_drop(run->store, k);
        store_wrote(run, &run->argv[1], true, true);
    }
}

static void getex(struct store_run *run)
{
    struct options o;
    int64_t at_ms = INT64_MAX;
    bool wrong;
    if (parse_options(run, 2, PERSIST, &o) < 0)
        return;
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_STRING, &wrong);
    if (wrong)
        return;
    if (!k) {
        store_add_nil(run->out);
        return;
    }
    if (o.time_at && !option_time(run, &o, &at_ms))
        return;
    reply_string(run, k);
    bool ends = o.time_at && at_ms <= run->now_ms;
    if (!o.time_at && (!(o.flags & PERSIST) || k->expires_ms == INT64_MAX))
        return;
    store_wrote(run, &run->argv[1], ends, true);
    if (ends)
        store_key_drop(run->store, k);
    else
        k->expires_ms = at_ms;
}

static void mget(struct store_run *run)
{
    store_add_array(run->out, run->argc - 1);
    for (int i = 1; i < run->argc; i++) {
        const struct store_key *k = store_key_find(run, &run->argv[i]);
        reply_string(run, k && k->type == STORE_STRING ? k : NULL);
    }
}

static bool in_pairs(struct store_run *run)
{
    char text[64];
    if (run->argc % 2 == 1)
        return true;
    snprintf(text, sizeof text, "ERR wrong number of arguments for '%s' command",
             store_is(&run->argv[0], "MSET") ? "mset" : "msetnx");
    store_add_error(run->out, text);
    return false;
}

static void put_all(struct store_run *run)
{
    for (int i = 1; i < run->argc; i += 2)
        put_value(run, &run->argv[i], &run->argv[i + 1]);
}

static void mset(struct store_run *run)
{
    if (!in_pairs(run))
        return;
    put_all(run);
    store_ok(run);
}

static void msetnx(struct store_run *run)
{
    bool is_free = true;
    if (!in_pairs(run))
        return;
    for (int i = 1; i < run->argc; i += 2)
        is_free = is_free && !store_key_find(run, &run->argv[i]);
    if (is_free)
        put_all(run);
    store_add_int(run->out, is_free);
}

static void increase(struct store_run *run, int64_t by)
{
    struct resp_arg old = {"0", 1};
    bool wrong;
    int64_t n;
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_STRING, &wrong);
    if (wrong)
        return;
    if (k)
        old = (struct resp_arg){k->string.ptr, k->string.len};
    if (!store_want_int(run, &old, &n))
        return;
    if (__builtin_add_overflow(n, by, &n)) {
        store_add_error(run->out, "ERR increment or decrement would overflow");
        return;
    }
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, n);
    put_text(run, k ? k : store_key_make(run, &run->argv[1], STORE_STRING), text, (size_t)len);
    store_add_int(run->out, n);
}

static void incr(struct store_run *run)
{
    increase(run, 1);
}

static void decr(struct store_run *run)
{
    increase(run, -1);
}

static void incrby(struct store_run *run)
{
    int64_t by;
    if (store_want_int(run, &run->argv[2], &by))
        increase(run, by);
}

static void decrby(struct store_run *run)
{
    int64_t by;
    if (!store_want_int(run, &run->argv[2], &by))
        return;
    if (by == INT64_MIN)
        store_add_error(run->out, "ERR decrement would overflow");
    else
        increase(run, -by);
}

static void append_to_string(struct store_run *run)
{
    const struct resp_arg *more = &run->argv[2];
    struct store_key *k = store_key_make(run, &run->argv[1], STORE_STRING);
    if (!k)
        return;
    size_t len = k->string.len;
    struct store_bytes all = {pool_get(len + more->len), len + more->len};
    if (len)
        memcpy(all.ptr, k->string.ptr, len);
    if (more->len)
        memcpy(all.ptr + len, more->ptr, more->len);
    store_bytes_fini(&k->string);
    k->string = all;
    store_wrote(run, &run->argv[1], true, false);
    store_add_int(run->out, (int64_t)k->string.len);
}

static void length(struct store_run *run)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_STRING, &wrong);
    if (!wrong)
        store_add_int(run->out, k ? (int64_t)k->string.len : 0);
}

/* Replies the bytes from one to another, both included; negative ones count from the end. */
static void getrange(struct store_run *run)
{
    int64_t from, to;
    bool wrong;
    if (!store_want_int(run, &run->argv[2], &from) || !store_want_int(run, &run->argv[3], &to))
        return;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_STRING, &wrong);
    if (wrong)
        return;
    int64_t len = k ? (int64_t)k->string.len : 0;
    bool is_reversed = from < 0 && to < 0 && from > to;
    from = from < -len ? 0 : from < 0 ? from + len : from;
    to = to < -len ? 0 : to < 0 ? to + len : to >= len ? len - 1 : to;
    if (len == 0 || is_reversed || from > to)
        store_bulk(run, "", 0);
    else
        store_bulk(run, k->string.ptr + from, (size_t)(to - from + 1));
}

const struct store_command store_string_commands[] = {
    {"APPEND", 3, STORE_WRITES, append_to_string},
    {"DECR", 2, STORE_CHANGE | STORE_COUNTS, decr},
    {"DECRBY", 3, STORE_CHANGE | STORE_COUNTS, decrby},
    {"GET", 2, STORE_LOOK, get_string},
    {"DELEX", -2, STORE_CHANGE, delex},
    {"DELIFEQ", 3, STORE_CHANGE, delifeq},
    {"GETDEL", 2, STORE_CHANGE, getdel},
    {"GETEX", -2, STORE_CHANGE, getex},
    {"GETSET", 3, STORE_CHANGE, getset},
    {"INCR", 2, STORE_CHANGE | STORE_COUNTS, incr},
    {"INCRBY", 3, STORE_CHANGE | STORE_COUNTS, incrby},
    {"MGET", -2, STORE_SERVED | STORE_KEYS, mget},
    {"MSET", -3, 0, mset},
    {"MSETNX", -3, 0, msetnx},
    {"PSETEX", 4, STORE_CHANGE, psetex},
    {"SET", -3, STORE_CHANGE, set},
    {"SETEX", 4, STORE_CHANGE, setex},
    {"SETNX", 3, STORE_CHANGE, setnx},
    {"STRLEN", 2, STORE_LOOK, length},
    {"GETRANGE", 4, STORE_LOOK, getrange},
    {NULL, 0, 0, NULL},
};
