#pragma once
/*
 * undelivered: delivers to one master what has to arrive: releases (safety R2), and what puts a
 * change back or carries it on (R22). Sends it at once if it can. Keeps what could not be sent, or
 * whose link broke before the answer, and sends it again as soon as the master is back, until the
 * lease that it is about has run out. Repeating it does no harm.
 *
 *   undelivered_send --> SENT --answered--------------------------------------> on_answer
 *                  ^ \---link lost, not sent, rejected--> KEPT --expired--> on_answer
 *                  |                                       |              (MASTER_UNKNOWN)
 *                  +----undelivered_resend, or after a moment-----+
 */
#include <stdbool.h>
#include <stdint.h>

#include "redis/script.h"

struct args;
struct master;
struct master_call;
struct token_clock;
struct undelivered;

/* `clock`: of the floors of what is sent again. */
struct undelivered *undelivered_new(struct master *, struct token_clock *clock);
void undelivered_free(struct undelivered *); /* must be empty */
/* Sends nothing from now on, only keeps. */
void undelivered_close(struct undelivered *);
/* Answers all that is kept with MASTER_UNKNOWN. */
void undelivered_give_up(struct undelivered *, int64_t now_ms);

/* Sends the arguments of a script. `call` is the caller's until its on_answer has run, exactly once
 * and never inside this call: with the master's answer (of a release: released, when an earlier try
 * may have done that), or MASTER_UNKNOWN once it has not been delivered by `expires_ms`. Of what is
 * no release only so much is kept. */
void undelivered_send(struct undelivered *, enum script, const struct args *,
                      struct master_call *call, int64_t expires_ms, int64_t now_ms);
/* Sends all that is kept: the master is back. */
void undelivered_resend(struct undelivered *, int64_t now_ms);
/* Tells whether anything is kept or under way that is no release. */
bool undelivered_has_changes(const struct undelivered *);
bool undelivered_is_empty(const struct undelivered *); /* nothing is kept */
/* Sends what is kept for the key of this item at once, because its next owner may be about to ask
 * for it. Tells whether anything was sent. */
bool undelivered_resend_key(struct undelivered *, const struct args *, int64_t now_ms);
/* Gives up all that is over. */
void undelivered_expire(struct undelivered *, int64_t now_ms);
/* Returns a time before which nothing expires; INT64_MAX: nothing is kept. */
int64_t undelivered_next_ms(const struct undelivered *);
