#ifndef HOLDFAST_BROKER_PRIVATE_H
#define HOLDFAST_BROKER_PRIVATE_H
/* Between broker.c (requests, holds that are over) and broker_turn.c (the turn, and what takes
 * several). */
#include "lock/broker_state.h"

/* Releases of connections that have gone, in one turn. */
enum { BROKER_LEAVES_TURN = 500 };

extern const char broker_draining[];

/* Ends a hold and passes its lock on, as handover_pass_on() says. */
void broker_end_hold(struct broker *, struct hold *, struct lock_request *releaser, bool is_lapsing,
                     int64_t now_ms);
/* Somebody asks for this lock: what connections that have gone have left of it is released now. */
void broker_release_left_of(struct broker *, struct lock *, int64_t now_ms);
#endif
