#pragma once
/*
 * hasher: compares one password at a time with its hash, in a thread of its own, so that the loop
 * does not stand still for it.
 *
 * The thread is the only one besides the loop. It sees its one job and nothing else of the process,
 * and blocks all signals. Before hasher_start(), and where no thread can be made, hasher_give()
 * computes the result itself.
 */
#include <stdbool.h>
#include <stddef.h>

enum { HASHER_PASSWORD_MAX = 1024 }; /* a longer password is never right */

/* Allows a thread, which the first job makes. Returns a descriptor that is readable when there is a
 * result; -1: there will be no thread. */
int hasher_start(void);
/* Waits for the job that runs, drops its result, and ends the thread. Idempotent. */
void hasher_stop(void);

/* Returns true from hasher_give() until its result has been taken. */
bool hasher_is_busy(void);
/* Hands over a job; both texts are copied. Must not be called while it is busy. For `iterations`
 * see password_fits(). */
void hasher_give(const char *hash, const char *password, size_t len, int iterations);
/* Takes the result of the job, once. Returns false while there is none. */
bool hasher_take(bool *fits);
