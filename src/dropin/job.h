#pragma once
/* job: what a call is to run, with copies of all words: commands one after the other, or a script;
 * and the keys that it names, each once. */
#include <stdbool.h>
#include <stddef.h>

#include "dropin/keys.h"
#include "net/resp.h"

struct script_body;

/* ---- what is asked for; the words are lent. Those of a command, the keys of a script and its
 * arguments stand in one block of memory each, in their order, as the parser has them (resp.h) ----
 */

/* A plain command. Its keys are the words first_key, first_key + key_step, ..., n_keys of them. */
struct dropin_command {
    const struct resp_arg *argv;
    int argc, first_key, n_keys, key_step;
};

struct dropin_script {
    const struct resp_arg *keys, *args;
    int n_keys, n_args;
    bool read_only; /* EVAL_RO, EVALSHA_RO: a write is an error */
};

/* The name of the lock behind a key: the key, in other databases than 0 "db<n>:<key>". Returns how
 * many bytes it has, and writes them if they are not more than `size`; no NUL. */
size_t dropin_lock_name(int db, const struct resp_arg *key, char *out, size_t size);

/* ---- jobs ---- */

struct job_command {
    const struct resp_arg *argv;
    int argc;
};

struct job {
    int n_names;
    struct script_body *script;   /* one reference; NULL: commands */
    struct resp_arg *keys, *args; /* of the script */
    int n_keys, n_args;
    struct job_command *commands;
    int n_commands;
    bool is_multi;          /* the reply is an array, one element a command */
    bool is_watch;          /* looks at all names, and answers OK */
    bool read_only;         /* of the script */
    bool hides_owners;      /* of LOCK: who has asked may not see them */
    int db;                 /* of the script */
    struct resp_arg *words; /* all of them, and the block with all that they need */
    size_t room;            /* bytes of that block; also of one for the next job */
    char *lock_text; /* names of locks that are not those of the keys; NULL: there are none */
    /* What follows is not cleared for the next job. */
    char error[192];                 /* why it cannot be run at all; "": it can */
    struct resp_arg names[KEYS_MAX]; /* keys, as the client says them: n_names of them */
    struct resp_arg locks[KEYS_MAX]; /* names of their locks */
};

/* All of these begin with a job that is all zero, or that job_clear() has cleared; they copy the
 * words. */
void job_commands(struct job *, int db, const struct dropin_command *, int n);
/* Takes over the reference. NULL: NOSCRIPT. */
void job_script(struct job *, int db, struct script_body *, const struct dropin_script *);
void job_watch(struct job *, int db, const struct resp_arg *names, int n);
/* Adds a name that is not among its keys yet; returns its place, -1: too many. The words of `lock`
 * are lent. */
int job_add_name(struct job *, const struct resp_arg *name, const struct resp_arg *lock);
void job_too_many(struct job *); /* its error */
/* Refuses, as Redis does, names that are not all in one partition of a Redis Cluster (partition.h).
 */
void job_check_slots(struct job *);
void job_fini(struct job *);
/* Ends it, but for memory of up to `room_max` bytes for the words of the next one. */
void job_clear(struct job *, size_t room_max);

/* True for SET with NX and without GET, and SETNX: it is refused when anything stands there. */
bool job_wants_free(const struct job *);
