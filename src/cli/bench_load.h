#pragma once
/*
 * bench_load: puts a broker under the load of many clients in one process. Each has a connection
 * and repeats: LOCK a name, hold, UNLOCK, think.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "cli/url.h"

struct bench_plan {
    const struct urls *urls; /* clients take them in turn */
    const char *prefix;      /* of the names */
    int64_t clients, names;
    int64_t hold_us, think_us;
    int64_t duration_ms;
    int64_t wait_ms;  /* 0: tries once; below 0: never gives up */
    int64_t lease_ms; /* 0: watched */
    bool shared;      /* readers */
    int64_t limit;    /* permits of a name; 0: none */
};

struct bench_result {
    struct hist grant_us;    /* LOCK sent to grant read */
    struct hist handover_us; /* UNLOCK sent by one to grant read by another who waited already;
                                empty where several hold a name together */
    uint64_t refused;        /* not granted in time */
    uint64_t errors;
    uint64_t disconnects;
    char first_error[320];
    int64_t elapsed_us;
    int64_t waiting;  /* at this moment */
    uint32_t *grants; /* of each client, clients long; the caller frees it */
};

/* Is called each second with the result so far. */
typedef void (*bench_progress_fn)(void *arg, const struct bench_result *so_far);

/* Connects, runs, and fills *result. Ends the program when the broker cannot be reached at all.
 * False: INT or TERM ended it early; the result is that of the time until then. */
bool bench_load(const struct bench_plan *plan, struct bench_result *result,
                bench_progress_fn progress, void *arg);
