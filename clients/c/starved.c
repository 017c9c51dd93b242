/*
 * Sees what the library does when memory runs out: takes and gives back some locks, over and over,
 * and each time another allocation fails, be it in the library or in what it stands on.
 * usage: starved BROKER [FIRST STEP], for every so many-th allocation alone.
 *
 * Whatever fails, each lock must come to an end that is told, or the call must have said ENOMEM;
 * nothing may be used after it is freed, or be left, which the address sanitizer looks for.
 */
#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast.h"

/* The last LEASES of the LOCKS are not given back but end with their lease, which a timer has to
 * tell. OTHERS: timers of the program; libevent has room for eight, and has to make more for the
 * one by which the library asks its broker. */
enum { OTHERS = 8, LOCKS = 12, LEASES = 6, LEASE_MS = 20, WAIT_MS = 5000, LATE_S = 10 };

struct run {
    struct event_base *base;
    int open; /* locks whose end has not been told */
    int granted;
    bool late;
};

/* ---- the allocator of the whole program ---- */

static bool starving;
static long left, failed; /* so many allocations succeed before one fails; and have failed */

static bool is_refused(void)
{
    if (!starving || left-- > 0)
        return false;
    starving = false;
    failed++;
    errno = ENOMEM;
    return true;
}

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

void *malloc(size_t size)
{
    static void *(*next)(size_t);
    if (!next)
        *(void **)&next = real("malloc");
    return is_refused() ? NULL : next(size);
}

void *calloc(size_t n, size_t size)
{
    static void *(*next)(size_t, size_t);
    if (!next)
        *(void **)&next = real("calloc");
    return is_refused() ? NULL : next(n, size);
}

void *realloc(void *old, size_t size)
{
    static void *(*next)(void *, size_t);
    if (!next)
        *(void **)&next = real("realloc");
    return is_refused() ? NULL : next(old, size);
}

/* ---- one run ---- */

static void on_event(struct holdfast_lock *lock, enum holdfast_event event, void *arg)
{
    struct run *run = arg;
    if (event == HOLDFAST_GRANTED) {
        run->granted++;
        if (!strstr(holdfast_name(lock, 0), "-leased-"))
            holdfast_release(lock);
    } else if (event >= HOLDFAST_LOST) {
        holdfast_lock_free(lock);
        if (--run->open == 0)
            event_base_loopbreak(run->base);
    }
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    struct run *run = arg;
    (void)fd;
    (void)what;
    run->late = true;
    event_base_loopbreak(run->base);
}

static void ask(struct run *run, struct holdfast *h, int locks, int64_t wait_ms)
{
    const char *names[2] = {"starved-first", "starved-second"};
    char name[32];
    for (int i = 0; i < locks; i++) {
        struct holdfast_request r = HOLDFAST_REQUEST;
        bool is_leased = i >= LOCKS - LEASES;
        snprintf(name, sizeof name, "starved-%s%d", is_leased ? "leased-" : "", i);
        r.names = i == 0 ? names : (const char *const[]){name};
        r.n_names = i == 0 ? 2 : 1;
        r.lease_ms = is_leased ? LEASE_MS : i == 1 ? 5000 : 0;
        r.shared = i == 2;
        r.wait_ms = wait_ms;
        if (holdfast_lock(h, &r, on_event, run))
            run->open++;
        else if (errno != ENOMEM)
            abort();
    }
}

/* Returns how many were granted; -1: some have never come to an end. */
static int run(const char *broker, int locks, int64_t wait_ms, long n)
{
    struct run run = {.base = event_base_new()};
    struct holdfast_options options = HOLDFAST_OPTIONS;
    struct event *late[OTHERS];
    struct timeval tv = {LATE_S, 0};
    for (int i = 0; i < OTHERS; i++) {
        late[i] = event_new(run.base, -1, 0, on_late, &run);
        event_add(late[i], &tv);
    }
    options.brokers = broker;
    left = n;
    starving = n >= 0;
    struct holdfast *h = holdfast_new(run.base, &options);
    if (h)
        ask(&run, h, locks, wait_ms);
    else if (errno != ENOMEM)
        abort();
    if (run.open > 0)
        event_base_dispatch(run.base);
    starving = false;
    holdfast_free(h);
    for (int i = 0; i < OTHERS; i++)
        event_free(late[i]);
    event_base_free(run.base);
    return run.late ? -1 : run.granted;
}

/* Has one allocation fail in each run, until there is none more. False: some run had no end. */
static bool starve(const char *broker, int locks, int64_t wait_ms, long first, long step)
{
    long n = first, before = 0;
    do {
        before = failed;
        if (run(broker, locks, wait_ms, n) < 0) {
            fprintf(stderr, "starved: when allocation %ld failed, a lock came to no end\n", n);
            return false;
        }
        n += step;
    } while (failed > before);
    return true;
}

int main(int argc, char **argv)
{
    const char *nobody = "127.0.0.1:1"; /* where a timer alone ends what waits */
    long first = argc == 4 ? atol(argv[2]) : 0, step = argc == 4 ? atol(argv[3]) : 1;
    if (argc < 2 || run(argv[1], LOCKS, WAIT_MS, -1) < LOCKS - LEASES) {
        fprintf(stderr, "starved: not granted although nothing failed\n");
        return 1;
    }
    if (!starve(argv[1], 1, HOLDFAST_FOREVER, first, step) ||
        !starve(argv[1], LOCKS, WAIT_MS, first, step) ||
        !starve(nobody, LOCKS, LEASE_MS, first, step))
        return 1;
    printf("failed=%ld\n", failed);
    libevent_global_shutdown();
    return 0;
}
