#pragma once
/*
 * broker: acquire, wait, hand over, renew, release. Owns the locks, the wheel, and what happens
 * when something is due. Knows nothing of sockets; time is an argument.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lock/broker_state.h"

/* `id` makes operation ids and default owners unique; random in the daemon, fixed in the
 * simulation. Masters are then added to broker->rounds. */
void broker_init(struct broker *, const struct conf_lock *, const char *id, uint64_t seed,
                 int64_t now_ms);
/* After rounds_close(), and when the masters have been freed and no session is left. */
void broker_fini(struct broker *, int64_t now_ms);
void broker_configure(struct broker *, const struct conf_lock *);

/* Runs one request of command/lock; it is already in its session's queue. Ends with
 * request_finish(). The names, one but for MLOCK and MUNLOCK, are copied into the locks. */
void broker_submit(struct broker *, struct lock_request *, const struct resp_arg *names, int n,
                   int64_t now_ms);
/* Its session has ended (request_type.abandon). Of many with a tag some leave their queues in each
 * turn; none of them is granted anything any more. */
void broker_abandon(struct broker *, struct lock_request *, int64_t now_ms);
/* It was cancelled (session_cancel): likewise, at once. What it is being granted is given back. */
void broker_cancel(struct broker *, struct lock_request *, int64_t now_ms);

/* Nobody could be told that its locks are held: they are given back. The request is the caller's to
 * free, as it was. */
void broker_untold(struct broker *, struct lock_request *);

/* A connection has ended; `orderly`: by QUIT or FIN. Its watched holds are released or left to
 * lapse. Before session_fini(). */
void broker_session_end(struct broker *, struct session *, bool orderly, int64_t now_ms);

/* Master i has called this broker up: `text` is "<ticket> holdfast:{name}" (call_up.lua), whose
 * turn it is, or "<op> holdfast:{name}" (takeover.lua, release.lua), the operation whose hold was
 * taken over or forced. */
void broker_called(struct broker *, int i, const char *text, size_t len, int64_t now_ms);
/* The channel on which they do. */
void broker_channel(const struct broker *, char *out, size_t size);

/* All that master i has said since since_ms has been delivered up to what it said at heard_ms;
 * INT64_MAX: nothing is heard. Often enough, while it is so, that heard_ms is never a second old.
 */
void broker_listens(struct broker *, int i, int64_t since_ms, int64_t heard_ms, int64_t now_ms);

/* No new acquires from now on; renewals and releases go on. */
void broker_drain(struct broker *);

/* No new acquires until they are let go on: who does not wait is refused, who waits goes on
 * waiting, also when the lock becomes free. Renewals, releases and what an owner does with the
 * locks that he has go on. What was asked of the masters before is still granted. */
void broker_pause(struct broker *, bool paused, int64_t now_ms);

/* A majority of the masters is there again: who has waited for it asks in the next turn. */
void broker_masters_back(struct broker *, int64_t now_ms);

/* Stand around every call that may change something: a flow runs between them, and broker_end()
 * does what it has left to be done. Nothing of the broker calls back into these. For rooms above
 * whose flows ask the masters. */
void broker_begin(struct broker *, int64_t now_ms);
void broker_end(struct broker *, int64_t now_ms);

/* One turn of the loop, after the events: what is due, time-outs, verdicts; then everything that
 * was asked for is sent. */
void broker_turn(struct broker *, int64_t now_ms);
/* Nothing is due before this time. */
int64_t broker_next_ms(const struct broker *);

/* The process stood still for a while: every promise is looked at again before anything else
 * happens. */
void broker_check_promises(struct broker *, int64_t now_ms);
