#pragma once
/* Between broker.c (requests), broker_work.c (what follows) and broker_turn.c (the turn, and what
 * takes several). */
#include "lock/broker_state.h"

/* Releases of connections that have gone, in one turn. */
enum { BROKER_LEAVES_TURN = 500 };
/* Takes a request of nobody out of its queue, if it is not, and ends it. */
void broker_leave(struct broker *, struct lock_request *, int64_t now_ms);
/* The same for the first of broker->leavers, at most so many. Returns how many. */
int broker_let_leave(struct broker *, int most, int64_t now_ms);

extern const char broker_draining[];

/* ---- broker.c ---- */
/* Runs a request, or runs it again. */
void broker_run(struct broker *, struct lock_request *, int64_t now_ms);

/* ---- broker_work.c ---- */
/* Ends a hold and passes its lock on. `releaser`: as handover_pass_on() says. */
void broker_end_hold(struct broker *, struct hold *, struct lock_request *releaser, int64_t now_ms);

/* ---- broker_turn.c ---- */
/* Somebody asks for this lock: what connections that have gone have left of it is released now. */
void broker_release_left_of(struct broker *, struct lock *, int64_t now_ms);
/* Delivers the verdicts that there are: all of renewals, and `most` of the others. */
void broker_deliver(struct broker *, int most, int64_t now_ms);
