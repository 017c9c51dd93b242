#pragma once
/*
 * fake_sentinels: the three Sentinels of one master in virtual time, and the ear that each broker
 * has for them. What follows from their words is the real redis/naming.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "fake_server.h"
#include "redis/naming.h"

enum { FAKE_SENTINELS = 3 };

struct fake_sentinels {
    int64_t timeout_ms;
    struct fake_server *names[FAKE_SENTINELS];     /* as the master; NULL: none */
    struct fake_server *known[2 * FAKE_SENTINELS]; /* all that were ever named */
    LIST_HEAD(, fake_ear) ears;
};

struct fake_ear {
    LIST_ENTRY(fake_ear) link;
    struct fake_sentinels *sentinels;
    struct naming naming;
    int64_t local_us; /* what the broker's clock shows beyond sim_now_us() */
    unsigned deaf;    /* bit i: Sentinel i is not heard */
    struct sim_event *beat;
    void (*on_word)(void *);
    void *arg;
};

/* All of them name this server from now on; whoever hears them learns of it at once. */
void fake_sentinels_name(struct fake_sentinels *, struct fake_server *);
/* One of them does. */
void fake_sentinel_names(struct fake_sentinels *, int i, struct fake_server *);

/* Begins to ask them, five times in their timeout. on_word runs from the loop of events. */
void fake_ear_open(struct fake_ear *, struct fake_sentinels *);
void fake_ear_close(struct fake_ear *);
/* The server that a majority names now; NULL: none. */
struct fake_server *fake_ear_named(const struct fake_ear *);
/* Whether the last naming is over. */
bool fake_ear_is_over(const struct fake_ear *);
