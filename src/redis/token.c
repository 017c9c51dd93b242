/* Arithmetic of clocks and tokens; asks nobody for the time and no master for a token. */
#include "redis/token.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { TOKEN_SHIFT = 10 };

/* ---- the clock ---- */

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void token_set_wall(struct token_clock *c, int64_t wall_ms, int64_t now_ms)
{
    c->wall_offset_ms = wall_ms - now_ms;
}

void token_set_masters(struct token_clock *c, int64_t *times_ms, int n, int64_t now_ms)
{
    int believed = 0;

    for (int i = 0; i < n; i++)
        if (times_ms[i] >= TOKEN_FROM_MS && times_ms[i] < TOKEN_UNTIL_MS)
            times_ms[believed++] = times_ms[i];
    c->has_masters = believed > 0;
    if (!c->has_masters)
        return;
    qsort(times_ms, (size_t)believed, sizeof times_ms[0], compare_times);
    c->masters_offset_ms = times_ms[(believed - 1) / 2] - now_ms;
    if (c->masters_offset_ms > c->most_offset_ms)
        c->most_offset_ms = c->masters_offset_ms;
}

static int64_t bounded_ms(const struct token_clock *c, int64_t now_ms)
{
    int64_t wall_ms = util_min(now_ms + c->wall_offset_ms, TOKEN_UNTIL_MS);

    return c->has_masters ? util_min(wall_ms, now_ms + c->masters_offset_ms + TOKEN_AHEAD_MS)
                          : wall_ms;
}

int64_t token_floor(struct token_clock *c, int64_t now_ms)
{
    int64_t clock = bounded_ms(c, now_ms) << TOKEN_SHIFT;

    c->highest = clock > c->highest ? clock : c->highest + 1;
    return c->highest;
}

int64_t token_base(struct token_clock *c, int64_t now_ms)
{
    int64_t base = token_floor(c, now_ms), ahead_ms = 2 * (int64_t)TOKEN_AHEAD_MS;
    int64_t offset_ms = util_min(c->most_offset_ms, c->masters_offset_ms + TOKEN_AHEAD_MS);

    if (c->has_masters)
        token_saw(c, (now_ms + offset_ms + ahead_ms) << TOKEN_SHIFT);
    return c->highest > base ? c->highest : base;
}

void token_saw(struct token_clock *c, int64_t token)
{
    if (token > c->highest)
        c->highest = token;
}

/* ---- counters ---- */

int token_bucket(const char *name, size_t name_len)
{
    uint32_t hash = util_fixed_hash(name, name_len);
    return (int)((hash ^ (hash >> 16)) % TOKEN_BUCKETS);
}

void token_counter(int bucket, char out[TOKEN_COUNTER_MAX + 1])
{
    if (bucket < 0)
        strcpy(out, "base");
    else
        *util_put_digits(out, (uint64_t)bucket) = '\0';
}

/* ---- the last check ---- */

int64_t token_highest(const struct token_granted *granted, const char *name, size_t name_len)
{
    return granted->highest[token_bucket(name, name_len)];
}

bool token_grant(struct token_granted *granted, const char *name, size_t name_len, int64_t before,
                 int64_t token)
{
    int64_t *highest = &granted->highest[token_bucket(name, name_len)];
    if (token <= before)
        return false;
    *highest = token > *highest ? token : *highest;
    return true;
}
