#pragma once
/*
 * fake_server: a Redis in virtual time: the real scripts of src/redis/lua, run by an embedded Lua
 * over a store (store.h), and a clock of its own that may be off, drift and jump. tests/scripts
 * runs the same cases against this and against a real redis-server.
 *
 * Knows nothing of networks: who calls fake_server_eval() has got the request there.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "dropin/store.h"
#include "fake_mutations.h"

enum { FAKE_RUN_ID_LEN = 40 };

/* What is held under a key, as its text says (src/redis/lua/hold.lua). */
struct fake_lock {
    bool foreign; /* some other program's: the rest is empty */
    char key[1024], owner[512], op[64];
    int64_t token, count;
    char seq[128];
    int64_t left_ms; /* of its time to live; -1: none */
};

struct fake_server {
    char name[16];
    char run_id[FAKE_RUN_ID_LEN + 1];
    struct store store;
    /* PUBLISH: how many have subscribed to this channel. NULL: nobody ever has. */
    int (*publish)(struct fake_server *, const char *channel, const char *text);
    int64_t clock_us, clock_at_us; /* its time was clock_us at clock_at_us of the simulation */
    int32_t drift_ppm;             /* how much faster it runs */
    const char *refuses; /* what it says to each script: "MISCONF ..."; NULL: it runs them */
    /* for fake_master.c */
    bool up, stopped;
    struct fake_server *instead;       /* who answers at its address; NULL: itself */
    TAILQ_HEAD(, fake_packet) backlog; /* came while it was stopped */
    LIST_HEAD(, fake_conn) conns;
    int64_t evals, restarts;
};

/* A new one, empty, without a mark, running. */
void fake_server_init(struct fake_server *, const char *name);
void fake_server_fini(struct fake_server *);

int64_t fake_server_time_ms(const struct fake_server *);
void fake_server_jump(struct fake_server *, int64_t ms);
void fake_server_set_drift(struct fake_server *, int32_t ppm);

/* FLUSHALL. */
void fake_server_flush(struct fake_server *);
/* Another process: a new run id, with the data or without. */
void fake_server_rerun(struct fake_server *, bool keep_data);
/* Its mark is of this run, and not in quarantine. */
bool fake_server_is_active(struct fake_server *);
/* The highest token that it has given. */
int64_t fake_server_high(struct fake_server *);
/* A field of holdfast:master that counts: "base", or the number of a bucket. 0: it is not there. */
int64_t fake_server_counter(struct fake_server *, const char *field);
void fake_server_set_counter(struct fake_server *, const char *field, int64_t value);

/* What there is under this key now, or the share `part` of it ("-": the lock as a whole); NULL:
 * nothing. In memory that is used again. */
const struct fake_lock *fake_server_find(struct fake_server *, const char *key, const char *part);
bool fake_server_is_gone(struct fake_server *, const char *key, const char *op);
/* Its time to live is over at once, or lasts so much longer. False: it is not there. */
bool fake_server_lapse(struct fake_server *, const char *key, const char *part);
bool fake_server_prolong(struct fake_server *, const char *key, int64_t ms);
/* A hold stands there, as if an acquire had written it. */
void fake_server_set_hold(struct fake_server *, const char *key, const char *op, const char *owner,
                          int64_t token, int64_t lease_ms);
/* Some other program writes a string there. */
void fake_server_set_foreign(struct fake_server *, const char *key);
/* All holds, with all shares; `first`, when not NULL, gets the first of them. */
int fake_server_count_locks(struct fake_server *, struct fake_lock *first);
/* The tickets of its line, joined by blanks, then " turn:" with each ticket whose turn it is; in
 * memory that is used again. */
const char *fake_server_line(struct fake_server *, const char *key);

/* ---- EVALSHA ---- */

struct fake_value {
    bool is_text;
    int64_t integer;
    char *text; /* heap */
};

struct fake_reply {
    char error[128]; /* "": it ran */
    int64_t time_ms, call;
    int n, cap;
    struct fake_value *values; /* without the time */
    int *nested;               /* peek: how many values each item has */
    int n_nested;
};

/* Runs the text of this script that was loaded in the run `run_id` by a broker whose settings have
 * the digest `settings`. */
void fake_server_eval(struct fake_server *, enum script, const char *run_id, const char *settings,
                      int n_keys, char *const *keys, int n_args, char *const *args,
                      struct fake_reply *reply);
/* What a look at its mark says, in the shape of the reply of join.lua, but for the numbers. */
void fake_server_look(struct fake_server *, const char *run_id, int n_slots, char *const *slots,
                      struct fake_reply *reply);
void fake_reply_fini(struct fake_reply *);
