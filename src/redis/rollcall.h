#pragma once
/*
 * rollcall: ends the quarantine of a master as soon as all brokers have said that what they
 * remember stands on it (safety R15), which may be a round trip after its restart. By its time the
 * quarantine ends beside it (quarantine.h).
 *
 *   restart --> joined: name taken (roll.lua) --> replanted (lock/replant) --> signed --> the last
 *   broker of the list has signed: active, in the same step
 *
 * A broker signs for a life of a master only when all of this is so, where the masters are those of
 * its group (rounds.h); in doubt it does not:
 *
 *   1. What its clients rely on has been planted in this life, or has ended, and votes of former
 *      lives count no more: rollcall_set_done(), from replant_is_done().
 *   2. It has had its name on a majority of the masters since before this life began, without a gap
 *      (place.h), so that no process of this name that was before it has been told anything since
 *      then. And it has been for long enough since then: the time that anybody could rely on what
 *      such a process has told; less, if that process left cleanly and said so to a majority.
 *   3. It is still the one that has its name: N-Q+1 active masters have said so since this life
 *      began; or all that are active have, and all others are in quarantine, and it has followed
 *      them from life to life. No master has ever named another process that came later.
 *   4. It remembers all that it has told: nothing by commands of Redis (drop-in) within the time
 *      that a lease may last, as the masters alone keep that (rollcall_set_unsure()).
 *
 * Each signature has the highest token that the broker knows of or can have made of its clock; the
 * master goes on above the highest. Whoever grants a token has seen it (token.h), and whoever takes
 * the name after it has heard of it from a majority when it took it.
 *
 * The master has a veto, until the quarantine is over by its time: when another process takes a
 * name in the middle of it, when its clock has jumped, when its settings have changed.
 *
 * Not found out is a second process of the same name when all masters that knew of it have lost
 * their data within PLACE_GAP_MS, and the older one comes first. So one must have ended before
 * another one is started in its place.
 */
#include <stdbool.h>
#include <stdint.h>

#include "redis/life.h"
#include "redis/rounds.h"

struct rollcall_master {
    struct life life; /* that the rest is about */
    int64_t next_ms;
    uint8_t looks;
    bool is_done; /* rollcall_set_done */
    bool was_able;
    char told[160]; /* what the log has said last of this life */
};

struct rollcall {
    struct rounds *rounds;
    int64_t drift_ppm;
    int64_t memory_ms; /* how long anybody may rely on what a broker has told; 0: no roll call */
    int64_t unsure_until_ms;
    struct rollcall_master masters[ROUNDS_MASTERS_MAX];
};

void rollcall_init(struct rollcall *, struct rounds *);
/* There is a list of brokers: quarantines may end by roll call. longest_ms: how long a broker may
 * be relied on that gets no votes any more. */
void rollcall_begin(struct rollcall *, int64_t longest_ms, int64_t drift_ppm);
static inline bool rollcall_is_on(const struct rollcall *r)
{
    return r->memory_ms > 0;
}

/* Notes whether all that this broker remembers stands on master i now. True: this is new. */
bool rollcall_set_done(struct rollcall *, int i, bool done);
/* Until this time clients may rely on something that this broker does not remember. */
void rollcall_set_unsure(struct rollcall *, int64_t until_ms);

/* Looks at master i, which is in quarantine: asks, signs. Returns when to look again. */
int64_t rollcall_turn(struct rollcall *, int i, int64_t now_ms);
/* Returns why this broker does not sign for master i, which is in quarantine, in words; NULL: it
 * has, or is about to. Asks other masters, if it is for their answers. */
const char *rollcall_why_not(const struct rollcall *, int i, int64_t now_ms);
/* Returns how long it takes until this broker could sign if a master restarted now; 0: it could. */
int64_t rollcall_memory_left_ms(const struct rollcall *, int64_t now_ms);

/* It is in quarantine no more. */
void rollcall_over(struct rollcall *, int i);

/* This broker ends, with nothing under way: tells all masters that nothing comes from it any more.
 * has_holds: clients may still rely on something. */
void rollcall_leave(struct rollcall *, bool has_holds, int64_t now_ms);
