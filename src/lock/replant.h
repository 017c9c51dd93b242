#pragma once
/*
 * replant: puts what this broker's clients hold on masters that have forgotten it (safety R14). A
 * master does when it begins a new life: it has restarted, empty or with old data, was promoted, or
 * another server serves in its place (R16).
 *
 * For each master:
 *
 *           another life,              all locks seen,
 *           in quarantine              all plants answered
 *     IDLE --------------> SWEEPING <-----------------> FINISHED
 *      ^                    ^    |        another life        |
 *      |      after a moment|    | a plant was not answered,  |
 *      |                    |    v or was turned away         |
 *      |                    PAUSED                            |
 *      +---------- it is active, or has gone: all ------------+
 *
 * As soon as another life of a master is known all of its votes that have not been used are void
 * (rounds_new_life), before anything is planted. Then every hold whose told validity still runs is
 * planted, as it is here and for at least as long as was told, without asking other masters first:
 * some in each turn, behind renewals and grants; those of which the master did not say that it has
 * them once more after a moment. What is granted or renewed meanwhile rests on no
 * vote of the former life. A hold that a master says somebody newer has, or that has been ended by
 * force, ends: moved.
 *
 * A quarantine that begins because a clock has jumped (suspend.lua) is no new life: nothing is
 * planted by this, and nothing is ever DONE.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/broker_state.h"

/* Master i has been joined, or has gone: whenever its state changes. */
void replant_on_state(struct broker *, int i, int64_t now_ms);
/* Plants some, and looks whether a master in quarantine has begun another life. */
void replant_turn(struct broker *, int64_t now_ms);
/* Tells whether there can be anything for replant_turn(): nearly never. */
static inline bool replant_has_turn(const struct broker *b)
{
    return b->n_quarantined > 0 || b->n_plants > 0;
}
void replant_init(struct broker *);
/* After the masters have been freed. */
void replant_fini(struct broker *);
/* Nothing is to be done before this time. */
int64_t replant_next_ms(const struct broker *);

/*
 * Tells whether master i, in the life that it is in now, knows of everything that this broker's
 * clients may rely on because of votes of its former lives: every hold whose told validity runs has
 * been planted for at least as long, or has ended; what this broker has ended for others is ended
 * there; and what was owed to it has been delivered. Only while it is in quarantine after a new
 * life has begun; false at all other times. It can be false again in the next turn.
 */
bool replant_is_done(const struct broker *, int i, int64_t now_ms);
/* Returns how many plants are still to be answered, as far as is known, for people. */
int64_t replant_left(const struct broker *, int i);
