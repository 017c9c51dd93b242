#ifndef HOLDFAST_RUN_LOCK_PRIVATE_H
#define HOLDFAST_RUN_LOCK_PRIVATE_H
/*
 * What the files of run_lock share: run_lock_dial.c asks, run_lock.c understands the answers and
 * knows what time it is; run_lock_ear.c has the second connection.
 */
#include "cli/run_lock.h"

enum verb { VERB_LOCK, VERB_RENEW, VERB_UNLOCK };

static inline int64_t run_lock_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Moves to a state with what is to be said of it. The arguments must not lie in k->why. */
void run_lock_settle(struct run_lock *k, enum run_lock_state state, int status, const char *fmt,
                     ...) __attribute__((format(printf, 4, 5)));

/* Over the connection at hand, which is open. */
void run_lock_ask(struct run_lock *k, enum verb verb, int64_t now_ms);
/* Dials the next address, and asks what has to be asked first. */
void run_lock_connect(struct run_lock *k, int64_t now_ms);
/* Closes the connection in order and goes on to the next address, or ends. */
void run_lock_drop(struct run_lock *k, const char *why, int status, int64_t now_ms);
/* The connection has been silent for too long. */
void run_lock_silent(struct run_lock *k, int64_t now_ms);
/* The second connection: when it is due to ask something, does so, and reads what is heard. */
int64_t run_lock_ear_due_ms(const struct run_lock *k);
void run_lock_ear_time(struct run_lock *k, int64_t now_ms);
void run_lock_ear_read(struct run_lock *k, short revents, int64_t now_ms);
/* Those that were silent, at the end: nothing is ours any more that they could release. */
void run_lock_close_old(struct run_lock *k);
#endif
