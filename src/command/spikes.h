#ifndef HOLDFAST_LATENCY_H
#define HOLDFAST_LATENCY_H
/*
 * latency: when something took longer than it should, as LATENCY of Redis keeps it: for each kind
 * of event the worst of each second, for the last LATENCY_LEN seconds that had one.
 */
#include <stddef.h>
#include <stdint.h>

enum latency_event {
    LATENCY_COMMAND, /* a command that did not wait for a lock, from request to reply */
    LATENCY_LOOP,    /* a timer of the event loop that came late: nothing else ran meanwhile */
    LATENCY_EVENTS
};

enum {
    LATENCY_LEN = 160,
    LATENCY_THRESHOLD_US = 10000 /* what is shorter is no event */
};

struct latency_sample {
    int64_t wall_s;
    int64_t worst_ms; /* in that second */
};

const char *latency_name(enum latency_event);
/* The event of that name, LATENCY_EVENTS: none. */
enum latency_event latency_find(const char *name, size_t len);

/* Below LATENCY_THRESHOLD_US: nothing. */
void latency_add(enum latency_event, int64_t duration_us, int64_t wall_ms);

uint32_t latency_count(enum latency_event);
struct latency_sample latency_get(enum latency_event, uint32_t i); /* 0: the oldest; i < count */
int64_t latency_worst_ms(enum latency_event);                      /* since the last reset */

/* True: there was something to forget. */
int latency_reset(enum latency_event);
#endif
