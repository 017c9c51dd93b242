#pragma once
/*
 * Is shared by the files of run_lock alone: run_lock_dial.c sends requests, run_lock.c handles
 * replies and deadlines, run_lock_ear.c has the second connection.
 */
#include "cli/run_lock.h"

enum verb { VERB_LOCK, VERB_RENEW, VERB_UNLOCK };

/* Moves to a state with what is to be said of it. The arguments must not lie in k->why. */
void run_lock_settle(struct run_lock *k, enum run_lock_state state, int status, const char *fmt,
                     ...) __attribute__((format(printf, 4, 5)));

/* Sends a request over the connection at hand, which is open. */
void run_lock_ask(struct run_lock *k, enum verb verb, int64_t now_ms);
/* Dials the next address and sends the first request. */
void run_lock_connect(struct run_lock *k, int64_t now_ms);
/* Closes the connection in order and goes on to the next address, or ends. */
void run_lock_drop(struct run_lock *k, const char *why, int status, int64_t now_ms);
/* Puts aside the connection that has been silent for too long. */
void run_lock_silent(struct run_lock *k, int64_t now_ms);
/* Of the second connection: when its next request is due; sends it; reads what has come. */
int64_t run_lock_ear_due_ms(const struct run_lock *k);
void run_lock_ear_time(struct run_lock *k, int64_t now_ms);
void run_lock_ear_read(struct run_lock *k, short revents, int64_t now_ms);
/* Closes the silent connections at the end, when there is nothing left that a broker could release
 * for them. */
void run_lock_close_old(struct run_lock *k);
