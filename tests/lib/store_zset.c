/* Sorted sets: members by name, and in the order of their scores; those of one score by name. */
#include "dropin/store_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static int compare(double score, const char *name, size_t len, const struct store_member *m)
{
    if (score != m->score)
        return score < m->score ? -1 : 1;
    int by_bytes = memcmp(name, m->name, len < m->len ? len : m->len);
    return by_bytes ? by_bytes : (len > m->len) - (len < m->len);
}

/* Where this one stands, or would stand. */
static size_t place(const struct store_key *k, double score, const char *name, size_t len)
{
    size_t low = 0, high = k->zset.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare(score, name, len, k->zset.order[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct store_member *find(const struct store_key *k, const struct resp_arg *name)
{
    struct store_member *m = NULL;
    if (k)
        HASH_FIND(hh, k->zset.members, name->ptr, name->len, m);
    return m;
}

static void line_up(struct store_key *k, struct store_member *m)
{
    if (k->zset.n == k->zset.cap) {
        k->zset.cap = k->zset.cap ? 2 * k->zset.cap : 8;
        k->zset.order = util_realloc(k->zset.order, k->zset.cap * sizeof *k->zset.order);
    }
    size_t at = place(k, m->score, m->name, m->len);
    memmove(k->zset.order + at + 1, k->zset.order + at, (k->zset.n - at) * sizeof *k->zset.order);
    k->zset.order[at] = m;
    k->zset.n++;
}

static void step_out(struct store_key *k, const struct store_member *m)
{
    size_t at = place(k, m->score, m->name, m->len);
    k->zset.n--;
    memmove(k->zset.order + at, k->zset.order + at + 1, (k->zset.n - at) * sizeof *k->zset.order);
}

static void add(struct store_key *k, const struct resp_arg *name, double score)
{
    struct store_member *m = util_alloc(sizeof *m + name->len + 1);
    m->score = score + 0.0; /* Redis keeps no negative zero */
    m->len = name->len;
    memcpy(m->name, name->ptr, name->len);
    HASH_ADD_KEYPTR(hh, k->zset.members, m->name, m->len, m);
    line_up(k, m);
}

static void move(struct store_key *k, struct store_member *m, double score)
{
    step_out(k, m);
    m->score = score + 0.0;
    line_up(k, m);
}

static void drop(struct store_key *k, struct store_member *m)
{
    step_out(k, m);
    HASH_DEL(k->zset.members, m);
    free(m);
}

static void drop_if_empty(struct store_run *run, struct store_key *k)
{
    if (k && k->zset.n == 0)
        store_key_drop(run->store, k);
}

/* ---- ZADD ---- */

enum { NX = 1, XX = 2, GT = 4, LT = 8, CH = 16, INCR = 32 };

/* The word behind the options. */
static int parse_flags(struct store_run *run, int *flags)
{
    static const char *const words[] = {"NX", "XX", "GT", "LT", "CH", "INCR"};
    int i;
    *flags = 0;
    for (i = 2; i < run->argc; i++) {
        int j = 0;
        while (j < 6 && !store_is(&run->argv[i], words[j]))
            j++;
        if (j == 6)
            break;
        *flags |= 1 << j;
    }
    return i;
}

static bool flags_fit(struct store_run *run, int flags, int first)
{
    int n = run->argc - first;
    const char *error = NULL;
    if (n == 0 || n % 2 == 1)
        error = "ERR syntax error";
    else if ((flags & NX) && (flags & XX))
        error = "ERR XX and NX options at the same time are not compatible";
    else if (((flags & GT) && (flags & (LT | NX))) || ((flags & LT) && (flags & NX)))
        error = "ERR GT, LT, and/or NX options at the same time are not compatible";
    else if ((flags & INCR) && n > 2)
        error = "ERR INCR option supports a single increment-element pair";
    if (error)
        store_add_error(run->out, error);
    return !error;
}

struct added {
    int64_t added, changed;
    bool nothing; /* of the last one: a condition forbade it */
    double score; /* of the last one */
};

/* False: the sum is no number, and the error has been added. */
static bool add_one(struct store_run *run, struct store_key *k, const struct resp_arg *name,
                    double score, int flags, struct added *sum)
{
    struct store_member *m = find(k, name);
    sum->nothing = m ? flags & NX : flags & XX;
    if (sum->nothing)
        return true;
    if (m && (flags & INCR))
        score += m->score;
    if (isnan(score)) {
        store_add_error(run->out, "ERR resulting score is not a number (NaN)");
        return false;
    }
    if (m && (((flags & LT) && score >= m->score) || ((flags & GT) && score <= m->score))) {
        sum->nothing = true;
        return true;
    }
    sum->score = score;
    sum->added += !m;
    sum->changed += m && m->score != score;
    if (!m)
        add(k, name, score);
    else if (m->score != score)
        move(k, m, score);
    return true;
}

static void add_all(struct store_run *run, int flags, int first)
{
    struct added sum = {.nothing = false};
    double score;
    bool wrong;
    for (int i = first; i < run->argc; i += 2) {
        if (!store_want_double(run, &run->argv[i], &score))
            return;
    }
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_ZSET, &wrong);
    if (wrong)
        return;
    if (!k && (flags & XX))
        sum.nothing = true;
    else
        k = store_key_make(run, &run->argv[1], STORE_ZSET);
    bool fits = true;
    for (int i = first; k && fits && i < run->argc; i += 2) {
        fits = store_want_double(run, &run->argv[i], &score) &&
               add_one(run, k, &run->argv[i + 1], score, flags, &sum);
    }
    drop_if_empty(run, k);
    if (!fits)
        return;
    if ((flags & INCR) && sum.nothing)
        store_add_nil(run->out);
    else if (flags & INCR)
        store_double(run, sum.score);
    else
        store_add_int(run->out, sum.added + (flags & CH ? sum.changed : 0));
}

static void zadd(struct store_run *run)
{
    int flags, first = parse_flags(run, &flags);
    if (flags_fit(run, flags, first))
        add_all(run, flags, first);
}

static void zincrby(struct store_run *run)
{
    add_all(run, INCR, 2);
}

/* ---- one member ---- */

static void zrem(struct store_run *run)
{
    bool wrong;
    int64_t n = 0;
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_ZSET, &wrong);
    if (wrong)
        return;
    for (int i = 2; k && i < run->argc; i++) {
        struct store_member *m = find(k, &run->argv[i]);
        n += m != NULL;
        if (m)
            drop(k, m);
    }
    drop_if_empty(run, k);
    store_add_int(run->out, n);
}

static void zscore(struct store_run *run)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_ZSET, &wrong);
    const struct store_member *m = find(k, &run->argv[2]);
    if (m)
        store_double(run, m->score);
    else if (!wrong)
        store_add_nil(run->out);
}

static void rank(struct store_run *run, bool from_end)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_ZSET, &wrong);
    const struct store_member *m = find(k, &run->argv[2]);
    if (wrong)
        return;
    if (!m) {
        store_add_nil(run->out);
        return;
    }
    size_t at = place(k, m->score, m->name, m->len);
    store_add_int(run->out, (int64_t)(from_end ? k->zset.n - 1 - at : at));
}

static void zrank(struct store_run *run)
{
    rank(run, false);
}

static void zrevrank(struct store_run *run)
{
    rank(run, true);
}

static void zcard(struct store_run *run)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_ZSET, &wrong);
    if (!wrong)
        store_add_int(run->out, k ? (int64_t)k->zset.n : 0);
}

/* ---- ranges ---- */

/* order[start .. end - 1], perhaps from the other side. */
static void reply_range(struct store_run *run, const struct store_key *k, size_t start, size_t end,
                        bool backwards, bool with_scores)
{
    store_add_array(run->out, (int64_t)(end - start) * (with_scores ? 2 : 1));
    for (size_t i = 0; i < end - start; i++) {
        const struct store_member *m = k->zset.order[backwards ? end - 1 - i : start + i];
        store_bulk(run, m->name, m->len);
        if (with_scores)
            store_double(run, m->score);
    }
}

static void by_rank(struct store_run *run, bool backwards, int options_at)
{
    bool wrong, with_scores = false;
    int64_t start, stop;
    for (int i = options_at; i < run->argc; i++) {
        if (store_is(&run->argv[i], "WITHSCORES")) {
            with_scores = true;
        } else if (!backwards && store_is(&run->argv[0], "ZRANGE") &&
                   store_is(&run->argv[i], "REV")) {
            backwards = true;
        } else {
            store_syntax_error(run);
            return;
        }
    }
    if (!store_want_int(run, &run->argv[2], &start) || !store_want_int(run, &run->argv[3], &stop))
        return;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_ZSET, &wrong);
    if (wrong)
        return;
    if (!k || !store_range((int64_t)k->zset.n, &start, &stop)) {
        store_add_array(run->out, 0);
        return;
    }
    size_t from = (size_t)start, to = (size_t)stop + 1;
    if (backwards)
        reply_range(run, k, k->zset.n - to, k->zset.n - from, true, with_scores);
    else
        reply_range(run, k, from, to, false, with_scores);
}

static void zrange(struct store_run *run)
{
    by_rank(run, false, 4);
}

static void zrevrange(struct store_run *run)
{
    by_rank(run, true, 4);
}

struct bound {
    double score;
    bool open; /* "(1": the score itself is outside */
};

static bool parse_bound(const struct resp_arg *arg, struct bound *b)
{
    char text[128], *end;
    b->open = arg->len > 0 && arg->ptr[0] == '(';
    size_t len = arg->len - b->open;
    if (len >= sizeof text)
        return false;
    memcpy(text, arg->ptr + b->open, len);
    text[len] = '\0';
    b->score = strtod(text, &end);
    return *end == '\0' && !isnan(b->score);
}

static bool want_bounds(struct store_run *run, struct bound *min, struct bound *max)
{
    if (parse_bound(&run->argv[2], min) && parse_bound(&run->argv[3], max))
        return true;
    store_add_error(run->out, "ERR min or max is not a float");
    return false;
}

static void between(const struct store_key *k, const struct bound *min, const struct bound *max,
                    size_t *start, size_t *end)
{
    *start = 0;
    while (*start < k->zset.n && (k->zset.order[*start]->score < min->score ||
                                  (min->open && k->zset.order[*start]->score == min->score)))
        (*start)++;
    *end = *start;
    while (*end < k->zset.n && (k->zset.order[*end]->score < max->score ||
                                (!max->open && k->zset.order[*end]->score == max->score)))
        (*end)++;
}

static void zcount(struct store_run *run)
{
    struct bound min, max;
    bool wrong;
    size_t start = 0, end = 0;
    if (!want_bounds(run, &min, &max))
        return;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_ZSET, &wrong);
    if (wrong)
        return;
    if (k)
        between(k, &min, &max, &start, &end);
    store_add_int(run->out, (int64_t)(end - start));
}

static void zrangebyscore(struct store_run *run)
{
    struct bound min, max;
    bool wrong, with_scores = false;
    int64_t offset = 0, most = -1;
    size_t start = 0, end = 0;
    if (!want_bounds(run, &min, &max))
        return;
    for (int i = 4; i < run->argc; i++) {
        if (store_is(&run->argv[i], "WITHSCORES")) {
            with_scores = true;
        } else if (store_is(&run->argv[i], "LIMIT") && i + 2 < run->argc) {
            if (!store_want_int(run, &run->argv[i + 1], &offset) ||
                !store_want_int(run, &run->argv[i + 2], &most))
                return;
            i += 2;
        } else {
            store_syntax_error(run);
            return;
        }
    }
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_ZSET, &wrong);
    if (wrong)
        return;
    if (k)
        between(k, &min, &max, &start, &end);
    if (offset < 0 || (size_t)offset >= end - start)
        start = end;
    else
        start += (size_t)offset;
    if (most >= 0 && (size_t)most < end - start)
        end = start + (size_t)most;
    reply_range(run, k, start, end, false, with_scores);
}

static void zremrangebyscore(struct store_run *run)
{
    struct bound min, max;
    bool wrong;
    size_t start = 0, end = 0;
    if (!want_bounds(run, &min, &max))
        return;
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_ZSET, &wrong);
    if (wrong)
        return;
    if (k)
        between(k, &min, &max, &start, &end);
    for (size_t i = start; i < end; i++)
        drop(k, k->zset.order[start]);
    drop_if_empty(run, k);
    store_add_int(run->out, (int64_t)(end - start));
}

const struct store_command store_zset_commands[] = {
    {"ZADD", -4, 0, zadd},
    {"ZCARD", 2, 0, zcard},
    {"ZCOUNT", 4, 0, zcount},
    {"ZINCRBY", 4, 0, zincrby},
    {"ZRANGE", -4, 0, zrange},
    {"ZRANGEBYSCORE", -4, 0, zrangebyscore},
    {"ZRANK", 3, 0, zrank},
    {"ZREM", -3, 0, zrem},
    {"ZREMRANGEBYSCORE", 4, 0, zremrangebyscore},
    {"ZREVRANGE", -4, 0, zrevrange},
    {"ZREVRANK", 3, 0, zrevrank},
    {"ZSCORE", 3, 0, zscore},
    {NULL, 0, 0, NULL},
};
