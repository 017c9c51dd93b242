/*
 * A ring of samples for each event. Sample number n stands in ring[n % LATENCY_LEN].
 */
#include "command/spikes.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

static const char *const names[LATENCY_EVENTS] = {"command", "loop"};

static struct series {
    struct latency_sample ring[LATENCY_LEN];
    uint64_t n; /* samples ever; the last LATENCY_LEN of them are here */
    int64_t worst_ms;
} all[LATENCY_EVENTS];

const char *latency_name(enum latency_event event)
{
    return names[event];
}

enum latency_event latency_find(const char *name, size_t len)
{
    int event = 0;

    while (event < LATENCY_EVENTS &&
           !(strlen(names[event]) == len && strncasecmp(names[event], name, len) == 0))
        event++;
    return (enum latency_event)event;
}

void latency_add(enum latency_event event, int64_t duration_us, int64_t wall_ms)
{
    struct series *s = &all[event];
    struct latency_sample *last = &s->ring[(s->n + LATENCY_LEN - 1) % LATENCY_LEN];
    int64_t ms = duration_us / 1000;

    if (duration_us < LATENCY_THRESHOLD_US)
        return;
    if (ms > s->worst_ms)
        s->worst_ms = ms;
    if (s->n > 0 && last->wall_s == wall_ms / 1000) {
        if (ms > last->worst_ms)
            last->worst_ms = ms;
        return;
    }
    s->ring[s->n++ % LATENCY_LEN] =
        (struct latency_sample){.wall_s = wall_ms / 1000, .worst_ms = ms};
}

uint32_t latency_count(enum latency_event event)
{
    return all[event].n < LATENCY_LEN ? (uint32_t)all[event].n : LATENCY_LEN;
}

struct latency_sample latency_get(enum latency_event event, uint32_t i)
{
    const struct series *s = &all[event];

    assert(i < latency_count(event));
    return s->ring[(s->n - latency_count(event) + i) % LATENCY_LEN];
}

int64_t latency_worst_ms(enum latency_event event)
{
    return all[event].worst_ms;
}

int latency_reset(enum latency_event event)
{
    int had = all[event].n > 0;

    memset(&all[event], 0, sizeof all[event]);
    return had;
}
