#ifndef HOLDFAST_UNDELIVERED_H
#define HOLDFAST_UNDELIVERED_H
/*
 * undelivered: releases that one master must still hear of (safety R2). A release is sent at once
 * when that is possible; when it cannot be, or when the link breaks before the answer, it is kept
 * and sent again as soon as the master is back, until the lease that it ends has passed anyway.
 * Repeating a release does no harm.
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
/* Sends nothing any more, keeps only. */
void undelivered_close(struct undelivered *);
/* Everything that is kept gets MASTER_UNKNOWN. */
void undelivered_give_up(struct undelivered *, int64_t now_ms);

/* Sends a release. `call` is the caller's until its on_answer has run, exactly once and never
 * inside this call: with the master's answer (released, when an earlier try may have done that), or
 * MASTER_UNKNOWN once it has not been delivered by `expires_ms`. */
void undelivered_send(struct undelivered *, const struct args *, struct master_call *call,
                      int64_t expires_ms, int64_t now_ms);
/* The master is back: sends everything that is kept. */
void undelivered_resend(struct undelivered *, int64_t now_ms);
/* Sends what is kept for the key of this item, at once: its next owner may be about to ask for it.
 * Was anything sent? */
bool undelivered_resend_key(struct undelivered *, const struct args *, int64_t now_ms);
/* Gives up what is past its time. */
void undelivered_expire(struct undelivered *, int64_t now_ms);
/* Nothing expires before this time; INT64_MAX: nothing is kept. */
int64_t undelivered_next_ms(const struct undelivered *);
#endif
