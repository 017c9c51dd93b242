#pragma once
/*
 * token: the rule of fencing tokens (safety R4), and what a broker keeps for it. For one name all
 * tokens differ, and grow in the order of its holds: across brokers, lost masters and lost data.
 *
 * Counters: each master counts the tokens that it gives in fields of holdfast:master, which never
 * go back and have no time to live. With several masters a name has one of TOKEN_BUCKETS counters,
 * by a hash that never changes, and shares it with few other names: the masters have to agree on a
 * token. One master alone has a single counter, "base", below which no counter is.
 *
 * Floor: a broker asks for a token that is no lower than its clock: wall milliseconds, room for
 * 1024 tokens in each, never below what was given or seen. acquire.lua and takeover.lua give the
 * higher one of the floor and the counter + 1, and keep it in the hold.
 *
 * Agreement: the token of a hold is the largest one of the majority that has granted it (quorum.h).
 * Unless all of that majority gave this very one, it is committed to a majority first, only where
 * the hold is still there under its operation, and never downwards (commit.lua): a larger one that
 * is found there is committed next. lock/claim leads this.
 *
 * Lost counters: a master that has restarted gets a base, above which its counters go on
 * (quarantine.h).
 *
 * Last check: a broker grants no token that is not above all that it had granted from the same
 * bucket when it asked. Each counter of a majority was at least at these then; so the masters are
 * no longer what they were.
 *
 * A broker whose wall clock is far ahead must not take all others along, nor push the counters
 * beyond what can be counted. So its clock counts up to TOKEN_AHEAD_MS beyond those of the
 * masters, no further; and where counters are lost, they go on twice as far ahead: above all that
 * any broker can have made of its clock, unless those of the masters went back by more than
 * TOKEN_AHEAD_MS. They may have gone on from there before, when counters were lost earlier: so
 * what the clocks of the masters have gone back by since this broker began, up to TOKEN_AHEAD_MS,
 * is added.
 *
 * The clocks of the masters count by the middle one. One that shows a year which cannot be, as a
 * machine without a battery does at its start, is not believed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the clock that floors are taken from ---- */

enum { TOKEN_AHEAD_MS = 3600 * 1000 };

/* Years from 2020 to 2199 are believed; a token of 2200 leaves room for a quarter more, in which
 * counters can go on. */
#define TOKEN_FROM_MS INT64_C(1577836800000)
#define TOKEN_UNTIL_MS INT64_C(7258118400000)

struct token_clock {
    int64_t wall_offset_ms; /* wall clock less BOOTTIME */
    bool has_masters;
    int64_t masters_offset_ms; /* the middle one of the masters' clocks less BOOTTIME */
    int64_t most_offset_ms;    /* the most that this has been */
    int64_t highest;           /* given out as a floor, or seen */
};

void token_set_wall(struct token_clock *, int64_t wall_ms, int64_t now_ms);
/* Takes the times of n masters; sorts them. */
void token_set_masters(struct token_clock *, int64_t *times_ms, int n, int64_t now_ms);
/* Returns the floor for a new token: above every one given or seen here before. */
int64_t token_floor(struct token_clock *, int64_t now_ms);
/* Returns where counters go on when it is not known what they were. */
int64_t token_base(struct token_clock *, int64_t now_ms);
void token_saw(struct token_clock *, int64_t token);

/* ---- counters ---- */

enum { TOKEN_BUCKETS = 4096, TOKEN_COUNTER_MAX = 10 };

/* Returns the bucket of a name, from 0 on; the same at every broker of every version. */
int token_bucket(const char *name, size_t name_len);
/* Writes the name of the counter of a bucket, a field of holdfast:master; -1: "base". */
void token_counter(int bucket, char out[TOKEN_COUNTER_MAX + 1]);

/* ---- the last check ---- */

/* The highest token that this broker has granted, by bucket. */
struct token_granted {
    int64_t highest[TOKEN_BUCKETS];
};

int64_t token_highest(const struct token_granted *, const char *name, size_t name_len);
/* Notes a token that is about to be granted. False: it is not above `before`, what token_highest()
 * said when it was asked for, and must not be granted. */
bool token_grant(struct token_granted *, const char *name, size_t name_len, int64_t before,
                 int64_t token) __attribute__((warn_unused_result));
