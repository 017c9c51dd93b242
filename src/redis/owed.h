#ifndef HOLDFAST_OWED_H
#define HOLDFAST_OWED_H
/*
 * owed: releases that one master must still hear of (safety R2). A release is sent at once when
 * that is possible; when it cannot be, or when the link breaks before the answer, it is kept and
 * sent again as soon as the master is back, until the lease that it ends has passed anyway.
 * Repeating a release does no harm.
 *
 *   owed_send --> SENT --answered--------------------------------------> on_answer
 *                  ^ \---link lost, not sent, rejected--> KEPT --expired--> on_answer
 *                  |                                       |              (MASTER_UNKNOWN)
 *                  +----owed_resend, or after a moment-----+
 */
#include <stdbool.h>
#include <stdint.h>

struct item;
struct master;
struct master_call;
struct owed_list;

struct owed_list *owed_new(struct master *);
void owed_free(struct owed_list *); /* must be empty */
/* Sends nothing any more, keeps only. */
void owed_close(struct owed_list *);
/* Everything that is kept gets MASTER_UNKNOWN. */
void owed_give_up(struct owed_list *, int64_t now_ms);

/* Sends a release. `call` is the caller's until its on_answer has run, exactly once and never
 * inside this call: with the master's answer (released, when an earlier try may have done that), or
 * MASTER_UNKNOWN once it has not been delivered by `expires_ms`. */
void owed_send(struct owed_list *, const struct item *, struct master_call *call,
               int64_t expires_ms, int64_t now_ms);
/* The master is back: sends everything that is kept. */
void owed_resend(struct owed_list *, int64_t now_ms);
/* Sends what is kept for the key of this item, at once: its next owner may be about to ask for it.
 * Was anything sent? */
bool owed_resend_key(struct owed_list *, const struct item *, int64_t now_ms);
/* Gives up what is past its time. */
void owed_expire(struct owed_list *, int64_t now_ms);
/* Nothing expires before this time; INT64_MAX: nothing is kept. */
int64_t owed_next_ms(const struct owed_list *);
#endif
