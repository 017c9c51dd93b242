/*
 * Arithmetic of clocks and tokens; asks nobody for the time.
 */
#include "redis/hybrid.h"

#include <stdlib.h>

enum { TOKEN_SHIFT = 10 };

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void hybrid_set_wall(struct hybrid *h, int64_t wall_ms, int64_t now_ms)
{
    h->wall_offset_ms = wall_ms - now_ms;
}

void hybrid_set_masters(struct hybrid *h, int64_t *times_ms, int n, int64_t now_ms)
{
    int believed = 0;

    for (int i = 0; i < n; i++)
        if (times_ms[i] >= HYBRID_FROM_MS && times_ms[i] < HYBRID_UNTIL_MS)
            times_ms[believed++] = times_ms[i];
    h->has_masters = believed > 0;
    if (!h->has_masters)
        return;
    qsort(times_ms, (size_t)believed, sizeof times_ms[0], compare);
    h->masters_offset_ms = times_ms[(believed - 1) / 2] - now_ms;
    h->most_offset_ms = max(h->most_offset_ms, h->masters_offset_ms);
}

static int64_t bounded_ms(const struct hybrid *h, int64_t now_ms)
{
    int64_t wall_ms = min(now_ms + h->wall_offset_ms, HYBRID_UNTIL_MS);

    return h->has_masters ? min(wall_ms, now_ms + h->masters_offset_ms + HYBRID_AHEAD_MS) : wall_ms;
}

int64_t hybrid_floor(struct hybrid *h, int64_t now_ms)
{
    int64_t clock = bounded_ms(h, now_ms) << TOKEN_SHIFT;

    h->highest = clock > h->highest ? clock : h->highest + 1;
    return h->highest;
}

int64_t hybrid_base(struct hybrid *h, int64_t now_ms)
{
    int64_t base = hybrid_floor(h, now_ms), ahead_ms = 2 * (int64_t)HYBRID_AHEAD_MS;
    int64_t offset_ms = min(h->most_offset_ms, h->masters_offset_ms + HYBRID_AHEAD_MS);

    if (h->has_masters)
        hybrid_saw(h, (now_ms + offset_ms + ahead_ms) << TOKEN_SHIFT);
    return max(h->highest, base);
}

void hybrid_saw(struct hybrid *h, int64_t token)
{
    if (token > h->highest)
        h->highest = token;
}
