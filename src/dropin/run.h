#pragma once
/*
 * run: runs a job over supposed truths, and says what the masters are to be asked for: what of it
 * they have to confirm, and what is to be written. Asks nobody; all that a run leaves behind is its
 * result.
 */
#include <stdbool.h>
#include <stdint.h>

#include "dropin/exchange.h"
#include "dropin/job.h"
#include "dropin/keys.h"
#include "dropin/store.h"

struct cage;

/* What a run has done with one of the job's names. */
struct run_name {
    bool touched;    /* the reply may depend on what stands there */
    bool read_time;  /* also on when that ends */
    bool keeps_time; /* IN_PLACE: it ends when it would have */
    uint8_t what;    /* enum exchange_what */
    struct buf text; /* IN_PLACE, NEW: what is to stand there */
    int64_t lease_ms;
};

/* All zero is an empty one. */
struct run {
    struct run_name *names; /* the caller's: one for each name of the job, at first all zero */
    struct store_reply reply, published; /* published: channel, message, ... */
    bool writes;                         /* one of the names at least */
};
void run_fini(struct run *); /* not the names */

/* What runs share: one of them for each broker. */
struct run_tools {
    struct keys keys;
    struct cage *cage;
    int64_t ahead_ms;    /* wall clock less BOOTTIME */
    int64_t max_hold_ms; /* of what is written without a time to live */
};

/* Runs the job over these truths, one for each of its names, at this time (BOOTTIME). A truth that
 * is SPLIT is taken as a string of somebody else's. The job must have
 * no error. */
void run_job(struct run_tools *, const struct job *, const struct truth *const truths[],
             struct run *, int64_t now_ms);
