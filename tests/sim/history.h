#ifndef HOLDFAST_HISTORY_H
#define HOLDFAST_HISTORY_H
/*
 * history: what has been said and answered, and what must never happen: the promises of the
 * program, one check each.
 *
 *   1 exclusion   two owners are told, or two brokers believe, that a name is theirs at the same
 * time 2 tokens      a token is given twice, or a later hold gets a smaller one 4 one end     a
 * request is answered twice, or never (history_check_answered) 5 in time     a watched hold is over
 * and its connection has not been told, or was told after its deadline 6 counts      an UNLOCK
 * answers otherwise than the LOCKs before it say
 *
 * An owner who asks to give up (UNLOCK, QUIT), for a shorter lease, or an administrator who says
 * FORCEUNLOCK, cannot rely on the old promise from that moment on, whatever the answer is: so such
 * promises count no more.
 */
#include <stdbool.h>
#include <stdint.h>

#include "world.h"

/* How a history goes wrong: prints it with the seed, and ends the process with abort(). */
void history_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

void history_begin(void);
/* Clocks have jumped: promise 1 does not hold any more. */
void history_no_exclusion(void);

/* A server has lost its data: counts are unsure where something is held. */
void history_data_lost(void);

void history_said(struct world_app *, struct world_ask *);
/* One reply; the ask is taken out of the application after this. */
void history_answered(struct world_app *, const struct world_ask *, const char *reply);
void history_pushed(struct world_app *, const char *push);
/* Before broker_session_end(). */
void history_closing(struct world_app *, bool orderly);
/* Before the broker is gone. */
void history_killing(struct world_broker *);
/* After each turn of a broker. */
void history_turned(struct world_broker *);
/* Nobody has a request that is not answered. */
void history_check_answered(void);

extern struct history_counts {
    int64_t grants, faulty_grants, waits, lost, nils, errors, takeovers, reentries;
} history_counts;
/* Something is out of order at the moment: set by whoever breaks things. */
extern int history_faults;

#endif
