#pragma once
/*
 * history: what has been said and answered, and what must never happen: the promises of the
 * program, one check each.
 *
 *   1 exclusion   two owners are told, or two brokers believe, that a name is theirs at once
 *   2 tokens      a token is given twice, or a later hold gets a smaller one
 *   4 one end     a request is answered twice, or never (history_check_answered), or waits when its
 *                 connection has gone; one with a tag is told of before its QUEUED, or twice, or
 *                 after CANCEL has been answered (world.c)
 *   5 in time     a watched hold is over and its connection has not been told, or too late
 *   6 counts      an UNLOCK answers otherwise than the LOCKs before it say
 *   7 memory      a broker that lives loses a hold, though its masters have done nothing but start
 *                 anew, one after the other or all at once, each soon enough (world_conf)
 *
 * It judges by what each owner was told. Where it looks away, and why:
 *   - An owner who has said UNLOCK or QUIT relies on nothing from then on, whatever the answer is;
 *     also when the connection has gone and a broker still has the request (lingering).
 *   - An owner who has asked for a shorter lease relies on no more than that, also at its other
 *     connections: it is its own word.
 *   - What was asked for before a FORCEUNLOCK was answered is no promise: that is its meaning.
 *   - Take-overs of one owner at two brokers at the same time have no order between them, so
 *     neither have their tokens; they must differ, and nobody else may come in between.
 *   - Counts are certain only for an owner with one request at a time, whose connections have not
 *     broken with a question open, whose hold has not run out, while no server has lost its data
 *     since it was asked: else nobody can know how often a LOCK whose answer was lost has counted.
 *     They are certain again with the next LOCK that is answered and known at one broker only.
 *   - While one with a tag is open the counts of its owner are not certain: what is said behind it
 * is answered before it.
 *   - A hold that a connection is asking about is told by the answer, not by a push; one at a
 * broker that stands still is told when it wakes up, before anything else it says.
 */
#include <stdbool.h>
#include <stdint.h>

#include "world.h"

/* How a history goes wrong: prints it with the seed, and ends the process with abort(). */
void history_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

void history_begin(void);
/* A server has lost its data: counts are unsure where something is held. */
void history_data_lost(void);

void history_said(struct world_app *, struct world_ask *);
/* One reply; the ask is taken out of the application after this. */
void history_answered(struct world_app *, const struct world_ask *, const char *reply);
void history_pushed(struct world_app *, const char *push);
/* Drop-in: `owner` has been told that `name` is its own until then, when it had asked at
 * `asked_us`. FORCEUNLOCK ends that, too. */
void history_covered(const char *name, const char *owner, int64_t asked_us, int64_t until_us);
/* It relies on it no longer than that. Returns until when it had. */
int64_t history_uncovered(const char *name, const char *owner, int64_t until_us);
/* Before broker_session_end(). */
void history_closing(struct world_app *, bool orderly);
/* Before the broker is gone. */
void history_killing(struct world_broker *);
/* After each turn of a broker. */
void history_turned(struct world_broker *);
/* Nobody has a request that is not answered. */
void history_check_answered(void);

extern struct history_counts {
    int64_t grants, faulty_grants, waits, lost, nils, errors, takeovers, reentries, cancelled;
} history_counts;
/* Something is out of order at the moment: set by whoever breaks things. */
extern int history_faults;
