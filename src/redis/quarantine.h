#pragma once
/*
 * quarantine: ends the quarantine of a master that had restarted or lost its data (safety R5).
 *
 * When its time is over the master gets a base: no token at or below it is ever given there. Two
 * cases, with N masters in its group (rounds.h) and a majority of Q; others are those of the group:
 *
 *   1. N-Q+1 or more OTHER masters are active: the base is the highest token that any of them has
 * given, and they are asked for it after the end of the quarantine. This is sound. Every majority
 * that ever granted a token has a master in common with every N-Q+1 masters; and a grant that was
 * on its way when the master went down has reached the others, or can never be granted any more,
 * before the quarantine is over. So the base is no lower than any token that was granted with the
 * vote that the master has forgotten.
 *   2. Fewer are active and none is in quarantine with time left (first boot, or two restarts one
 * inside the other): the base is the highest of what every master has said, of what this broker has
 * seen, and of twice as far ahead of the masters' clocks as any broker counts (token.h). This is
 * not sound by itself: tokens grow in order only unless the clocks of the masters have gone back
 * meanwhile by more than that. A single master is always in this case. The alternative is a set of
 * masters that is stranded for ever. Masters that are on their way back get some seconds to make it
 * case 1.
 *
 * While a master has settings of other brokers in force (rounds_veto), those brokers may go on
 * granting locks by masters that are not on our list. So no quarantine ends then, and all begin
 * anew when the settings have been adopted: only what was granted before that can still be held, by
 * brokers that are refused from then on.
 *
 * Beside this, all brokers together may end a quarantine earlier, by roll call (rollcall.h).
 *
 * The master itself has the last word about the time (activate.lua), so that a broker whose clock
 * runs fast cannot end a quarantine early. Several brokers may do this side by side: the first
 * one's base counts, and each is good.
 */
#include <stdbool.h>
#include <stdint.h>

#include "redis/quorum.h"
#include "redis/rollcall.h"

struct quarantine_master {
    int64_t
        over_ms; /* when its quarantine was first seen to be over; 0: it is not, or it is in none */
    bool trusted;  /* quarantine_trust: whatever is left of it */
    bool told;     /* the log has a line about the end of this quarantine */
    uint8_t looks; /* since it was over */
};

struct quarantine {
    struct rounds *rounds;
    struct rollcall roll;
    int64_t next_ms; /* INT64_MAX: no master is in quarantine */
    bool vetoed;
    struct quarantine_master masters[ROUNDS_MASTERS_MAX];
};

/* The rounds have all its masters, and outlive it. */
void quarantine_init(struct quarantine *, struct rounds *);

/* Whether all that this broker remembers stands on master i now (replant_is_done); before each
 * turn, for a master in quarantine. */
void quarantine_set_done(struct quarantine *, int i, bool done);

/* The state of a master has changed: everything is looked at in the next turn. */
void quarantine_on_state(struct quarantine *);

/* Asks and activates; cheap when there is nothing to do. When a quarantine ends, and from then on
 * until the master is active, some four times a second at last. */
void quarantine_turn(struct quarantine *, int64_t now_ms);
/* Nothing is to be done before this time. */
int64_t quarantine_next_ms(const struct quarantine *);

/* An administrator's word: the quarantine of this master ends now. NULL, or why not, in words. */
const char *quarantine_trust(struct quarantine *, const char *name, int64_t now_ms);
