#pragma once
/*
 * memory: what this broker knows of locks by their names: truths that the masters have confirmed,
 * and what its own clients hold by LOCK. It is where guesses come from: a wrong one costs a round
 * to the masters, nothing else. A refusal from memory is another matter: see memory_is_sure().
 *
 * What is free is not kept: whatever is not known is guessed to be free.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dropin/exchange.h"

struct broker;
struct known;
struct locktab_name;

/* Beyond these the one that was not written for longest goes. */
enum { MEMORY_NAMES_MAX = 65536, MEMORY_BYTES_MAX = 32 * 1024 * 1024 };

/* All zero is an empty one. */
struct memory {
    struct known *by_name; /* in the order in which they were written */
    size_t n_names, bytes;
};
void memory_fini(struct memory *);

/* Notes what stands under a name; `since_ms`: a majority was asked then and has said so. Forgets
 * what was known when this is nothing that a later call could guess (free, foreign, split). */
void memory_put(struct memory *, const struct locktab_name *, const struct truth *,
                int64_t since_ms);
void memory_forget(struct memory *, const struct locktab_name *);
/* The hold of this operation has ended: forgets the name if that is what is known of it. */
void memory_ended(struct memory *, const struct locktab_name *, const char *op, size_t op_len);

/* Writes the best guess for a name (`out` has been initialised): DROPIN, NATIVE or FREE; never one
 * whose time is over. */
void memory_guess(struct memory *, struct broker *, const struct locktab_name *, struct truth *out,
                  int64_t now_ms);

/* True when the name is certainly held, so that who wants it free can be refused without asking the
 * masters: by a client of this broker, by LOCK or by an operation of this broker, and the broker
 * would have heard of anybody who took that away (broker_has_heard). */
bool memory_is_sure(struct memory *, struct broker *, const struct locktab_name *, int64_t now_ms);
