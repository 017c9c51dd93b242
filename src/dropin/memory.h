#pragma once
/*
 * memory: what this broker knows of locks, each at its spot: truths that the masters have
 * confirmed, and what its own clients hold by LOCK. It is where guesses come from: a wrong one
 * costs a round to the masters, nothing else. A refusal from memory is another matter: see
 * memory_is_sure().
 *
 * What is free is not kept: whatever is not known is guessed to be free.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dropin/exchange.h"
#include "dropin/spot.h"

struct session;

/* Beyond these the one that was not written for longest goes. */
enum { MEMORY_BYTES_MAX = 128 * 1024 * 1024 };

struct memory {
    struct broker *broker;
    TAILQ_HEAD(, spot) known; /* in the order in which they were written */
    size_t bytes;
    bool is_closed;
};
void memory_init(struct memory *, struct broker *);
/* Forgets all, and remembers nothing any more. */
void memory_close(struct memory *);

/* Notes what stands at a spot that a call is about; `since_ms`: a majority was asked then and has
 * said so. Forgets what was known when this is nothing that a later call could guess (free,
 * foreign, split). */
void memory_put(struct memory *, struct spot *, const struct truth *, int64_t since_ms);
void memory_forget(struct spot *);
/* The hold of this operation has ended: forgets it if that is what is known. */
void memory_ended(struct spot *, const char *op, size_t op_len);

/* Writes the best guess (`out` has been initialised): DROPIN, NATIVE or FREE; never one
 * whose time is over. */
void memory_guess(const struct memory *, const struct spot *, struct truth *out, int64_t now_ms);

/* True when the lock is certainly held, so that who wants it free can be refused without asking the
 * masters: by a client of this broker, by LOCK or by an operation of this broker, and the broker
 * would have heard of anybody who took that away (broker_has_heard). */
bool memory_is_sure(const struct memory *, const struct spot *, int64_t now_ms);

/* ---- what clients of this broker hold ---- */

/* A lock whose last change this broker has made for a client, by a command of Redis. They are
 * counted in broker->n_drop_in. */
struct memory_hold {
    const char *name;
    size_t len;
    const struct truth *truth;
    uint64_t session_id; /* of the connection that took it; 0: it was taken at another broker */
    int64_t held_since_ms;
    const char *library; /* of that connection: "redis-py 5.0.1"; "": it did not say */
};

/* Notes that this connection has taken the lock that memory_put() has told of. */
void memory_note_taker(struct spot *, const struct session *, int64_t now_ms);
/* Finds a lock that is held so; false: it is not. Texts are lent until the next change. */
bool memory_find_hold(struct memory *, const char *name, size_t len, struct memory_hold *,
                      int64_t now_ms);
/* Goes through them in pieces, as view_scan() does. */
typedef void (*memory_hold_fn)(void *arg, const struct memory_hold *);
uint64_t memory_scan(struct memory *, uint64_t cursor, memory_hold_fn each, void *arg,
                     int64_t now_ms);
