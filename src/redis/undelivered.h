#pragma once
/*
 * undelivered: delivers releases to one master (safety R2). Sends a release at once if it can.
 * Keeps one that could not be sent, or whose link broke before the answer, and sends it again as
 * soon as the master is back, until the lease that it ends has run out. Repeating a release does no
 * harm.
 *
 *   undelivered_send --> SENT --answered--------------------------------------> on_answer
 *                  ^ \---link lost, not sent, rejected--> KEPT --expired--> on_answer
 *                  |                                       |              (MASTER_UNKNOWN)
 *                  +----undelivered_resend, or after a moment-----+
 */
#include <stdbool.h>
#include <stdint.h>

struct args;
struct master;
struct master_call;
struct undelivered;

struct undelivered *undelivered_new(struct master *);
void undelivered_free(struct undelivered *); /* must be empty */
/* Sends nothing from now on, only keeps. */
void undelivered_close(struct undelivered *);
/* Answers all that is kept with MASTER_UNKNOWN. */
void undelivered_give_up(struct undelivered *, int64_t now_ms);

/* Sends a release. `call` is the caller's until its on_answer has run, exactly once and never
 * inside this call: with the master's answer (released, when an earlier try may have done that), or
 * MASTER_UNKNOWN once it has not been delivered by `expires_ms`. */
void undelivered_send(struct undelivered *, const struct args *, struct master_call *call,
                      int64_t expires_ms, int64_t now_ms);
/* Sends all that is kept: the master is back. */
void undelivered_resend(struct undelivered *, int64_t now_ms);
/* Sends what is kept for the key of this item at once, because its next owner may be about to ask
 * for it. Tells whether anything was sent. */
bool undelivered_resend_key(struct undelivered *, const struct args *, int64_t now_ms);
/* Gives up releases whose time is over. */
void undelivered_expire(struct undelivered *, int64_t now_ms);
/* Returns a time before which nothing expires; INT64_MAX: nothing is kept. */
int64_t undelivered_next_ms(const struct undelivered *);
