#ifndef HOLDFAST_HYBRID_H
#define HOLDFAST_HYBRID_H
/*
 * hybrid: the clock that tokens are counted by: wall milliseconds, room for 1024 tokens in each,
 * and never below what was given or seen (safety R4).
 *
 * A broker whose wall clock is far ahead must not take all others along, nor push the counters
 * beyond what can be counted. So its clock counts up to HYBRID_AHEAD_MS beyond those of the
 * masters, no further; and where counters are lost, they go on twice as far ahead: above all that
 * any broker can have made of its clock, unless those of the masters went back by more than
 * HYBRID_AHEAD_MS. They may have gone on from there before, when counters were lost earlier: so
 * what the clocks of the masters have gone back by since this broker began, up to HYBRID_AHEAD_MS,
 * is added.
 *
 * The clocks of the masters count by the middle one. One that shows a year which cannot be, as a
 * machine without a battery does at its start, is not believed.
 */
#include <stdbool.h>
#include <stdint.h>

enum { HYBRID_AHEAD_MS = 3600 * 1000 };

/* Years from 2020 to 2199 are believed; a token of 2200 leaves room for a quarter more, in which
 * counters can go on. */
#define HYBRID_FROM_MS INT64_C(1577836800000)
#define HYBRID_UNTIL_MS INT64_C(7258118400000)

struct hybrid {
    int64_t wall_offset_ms; /* wall clock less BOOTTIME */
    bool has_masters;
    int64_t masters_offset_ms; /* the middle one of the masters' clocks less BOOTTIME */
    int64_t most_offset_ms;    /* the most that this has been */
    int64_t highest;           /* given out as a floor, or seen */
};

void hybrid_set_wall(struct hybrid *, int64_t wall_ms, int64_t now_ms);
/* The clocks of the masters, n of them; sorts them. */
void hybrid_set_masters(struct hybrid *, int64_t *times_ms, int n, int64_t now_ms);
/* The floor for a new token: above every one given or seen here before, and near the wall clock. */
int64_t hybrid_floor(struct hybrid *, int64_t now_ms);
/* Where counters go on when it is not known what they were. */
int64_t hybrid_base(struct hybrid *, int64_t now_ms);
void hybrid_saw(struct hybrid *, int64_t token);
#endif
