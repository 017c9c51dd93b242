#pragma once
/*
 * probe: says what a script would do, before anybody relies on it: runs it over the states in which
 * its keys can be found, and tells for each what it writes and what it answers.
 *
 * States: free, and what the run over free has left; held as a string by each of ARGV and by a
 * value of its own, held as a hash by each of ARGV once and twice and by another field; without a
 * time to live and about to end. Values and fields that the script itself writes or asks for count
 * as those of ARGV. With several keys each of them by itself, the others free, and all of them. A
 * state in which the script does the same as in the one that it is a kind of is not told.
 *
 * Nothing is asked of anybody. What runs see as the time is always the same.
 */
#include <stdbool.h>
#include <stddef.h>

#include "net/resp.h"

struct cage;
struct store_reply;

struct probe_script {
    const char *body;
    size_t len;
    const struct resp_arg *keys, *args;
    int n_keys, n_args; /* keys: at most KEYS_MAX, no name twice */
};

/* Texts for people, of any bytes but NUL. They hold until the function returns. */
struct probe_row {
    const char *state; /* "held by ARGV[1]" */
    const char *does;  /* "takes KEYS[1] for 30000 ms; publishes 1 message"; refused: why */
    const char *reply; /* refused: "" */
    bool is_refused;   /* the script is not served in this state */
    bool is_error;     /* the reply is one */
};

/* Runs the script over the states, until it has taken so many steps in all (of the cage; 0: no
 * bound), and tells each row; a last one says so when there are states left. Returns in how many
 * states it is refused; -1: no state was tried as it is no Lua or beyond the cage's bounds, and the
 * error for a client has been added. */
int probe_run(struct cage *, const struct probe_script *, long steps_max,
              void (*row)(void *arg, const struct probe_row *), void *arg,
              struct store_reply *error);

/* The same bit by bit, for who only wants to know whether the script is refused in a state, and in
 * none of them has much time. */
struct probe_walk;
enum probe_step { PROBE_SERVED, PROBE_REFUSED, PROBE_OVER };
/* The script and all that it refers to is lent until probe_walk_free(). It compiles. */
struct probe_walk *probe_walk_new(struct cage *, const struct probe_script *);
void probe_walk_free(struct probe_walk *);
/* Tries the next state, with PROBE_WALK_STEPS at most. REFUSED: `row` says in which and why. OVER:
 * there is none left, or they take too long. */
enum probe_step probe_walk_step(struct probe_walk *, struct probe_row *row);
enum { PROBE_WALK_STEPS = 1000 };
