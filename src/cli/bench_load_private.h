#pragma once
/*
 * Is shared by the files of bench_load alone: bench_load_client.c runs one client, bench_load.c
 * begins and ends all of them.
 */
#include <event2/event.h>

#include "cli/bench_load.h"
#include "cli/link.h"

enum client_state {
    CLIENT_IDLE, /* a timer runs, or the load has not begun */
    CLIENT_CONNECTING,
    CLIENT_ASKING,
    CLIENT_HOLDING,
    CLIENT_UNLOCKING
};

struct name {
    char *text;
    int64_t freed_us; /* 0: held, or nobody has had it */
};

struct client {
    struct load *load;
    struct link link;
    struct event *readable, *writable, *timer;
    struct name *name;
    int64_t sent_us;
    uint32_t index;
    uint8_t state; /* enum client_state */
};

struct load {
    const struct bench_plan *plan;
    struct bench_result *result;
    bench_progress_fn progress;
    void *arg;
    struct event_base *base;
    struct event *tick, *end, *signals[2];
    struct client *clients;
    struct name *names;
    uint64_t random;
    int64_t begun_us;   /* 0: still connecting */
    int64_t unfinished; /* connections still open, once it has ended */
    uint32_t next_to_connect, connected;
    bool ended, interrupted;
};

/* Opens its connection; the load begins when all have one. */
void bench_client_connect(struct client *c);
/* Begins a new round. */
void bench_client_ask(struct client *c);
/* Begins no new round: gives back what the client holds and closes in order. */
void bench_client_leave(struct client *c);
void bench_client_close(struct client *c);
/* Callback of the timer: at the end of a hold, of a pause, or of the wait for a new connection. */
void bench_client_on_timer(evutil_socket_t fd, short what, void *arg);

/* Starts the measurement, once all clients are connected. */
void bench_load_begin(struct load *l);
/* Counts a connection that has ended after the measurement; the last one ends the loop. */
void bench_load_settle(struct load *l);
