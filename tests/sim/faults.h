#pragma once
/*
 * faults: links break, servers stop and restart, clocks jump, brokers stand still and die, at
 * random; each fault is undone some time later. One plan at a time.
 *
 * history_faults counts those that are not undone.
 */
#include <stdbool.h>

struct faults_plan {
    int gap_ms;         /* from one to the next, on average */
    int longest_ms;     /* until it is undone */
    bool restarts;      /* servers that lose their data, by kill or FLUSHALL */
    bool all_die;       /* all of them at once, now and then */
    int alone_ms;       /* nothing but restarts, one by one with so much between; 0: all */
    bool jumps;         /* clocks of servers */
    bool pauses, kills; /* of brokers */
    bool bad_net;       /* late, lost and doubled messages */
    bool refuses;       /* servers that answer with errors */
};

/* From now on. */
void faults_begin(const struct faults_plan *);
/* Only links break, so that something gets through. */
void faults_go_easy(void);
/* No more of them; returns when all is well again. */
void faults_end(void);
