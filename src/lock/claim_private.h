#pragma once
/*
 * What the files of claim share: claim.c leads a claim from round to round, claim_item.c says what
 * the masters are asked, claim_votes.c reads what they have answered.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/claim.h"

struct args;
struct round;

/* Writes the arguments of a first round: acquire.lua or takeover.lua. */
struct args *claim_item_ask(const struct claim *, int64_t now_ms);
/* Writes the arguments of commit.lua: the operation gets c->token on every master. */
struct args *claim_item_commit(const struct claim *);

/* Counts of the votes of a round that was not won. */
struct claim_tally {
    int busy, same_owner, unsure, taken;
    int other_kind, deadlock;
    int64_t pttl_ms;         /* longest that stands in the way */
    struct lock_part in_use; /* by those who say that it is another kind; see acquire.lua */
    int64_t other;           /* a permit that somebody knows to be free; -1: none */
};

struct claim_tally claim_count(const struct round *);
/* Returns the largest token that a round of commit has found in place of its own; 0: none. */
int64_t claim_largest_token(const struct round *);
/* A take-over that was won goes on with what its owner had: part, count, version, MAXHOLD, and the
 * rest of the lease. False: a majority had nothing, but for tries of our own that came late, or
 * they do not agree. */
bool claim_inherit(struct claim *, const struct round *);
