#pragma once
/*
 * call: runs plain commands and scripts of Redis that lock: guess, check, run again.
 *
 *   dropin_submit --> QUEUED --its turn--> run over what is guessed --nothing to ask--> finished
 *                        ^                     |          ^
 *                        |                  exchange      | refused: run again over what
 *                        |                     |          | the masters say; at most
 *                        +--an earlier call----+----------+ DROPIN_ASKS times, then TRYAGAIN
 *                           turns out to       |
 *                           write              +-- confirmed: finished with what the run gave
 *                                              +-- failed: NOQUORUM, outcome unknown
 *
 * A call that is older than request_timeout is not tried again (TRYAGAIN, too): while masters are
 * silent, callers hear so in time. The reply is what the run over the confirmed state
 * gave; nothing is published before. Time stands still within a run. Calls about the same name take
 * effect in the order in which they were submitted; those that only look go side by side.
 *
 * Rules: a lock that was taken by LOCK is looked at (a string that is its owner), never written:
 * DEL and UNLINK leave it and do not count it, other writes are an error. There is no re-entry: the
 * value of SET NX is a value. Nothing is bound to a connection: a call whose connection has gone is
 * finished all the same, and what it took stays. What is written without a time to live is kept for
 * `max_hold_ms`, and TTL says -1.
 *
 * Names are those of LOCK: 1 to LOCK_NAME_MAX bytes without NUL, CR and LF; what breaks that, too
 * many names, or a value that cannot be kept is the call's error reply.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dropin/job.h"
#include "dropin/store.h"
#include "net/resp.h"

struct broker;
struct dropin;
struct dropin_call;
struct dropin_watch;
struct messages;
struct request;
struct session;

enum { DROPIN_ASKS = 4 };

struct dropin_conf {
    int64_t max_hold_ms; /* of what is written without a time to live */
    int64_t patience_ms; /* how long a call waits for a lock that it is refused; 0: not at all */
};

/* All of drop-in at one broker. */
struct dropin *dropin_new(struct broker *, const struct dropin_conf *);
void dropin_configure(struct dropin *, const struct dropin_conf *);
/* Finishes what does not wait for the masters, each with an error; what does is finished by
 * broker_fini(). Before that. */
void dropin_close(struct dropin *, int64_t now_ms);
/* After broker_fini(), when no call is left in any session; also NULL. */
void dropin_free(struct dropin *);

/* A master has published on this broker's channel (broker_called): "<op> holdfast:{name}", that
 * hold has ended. Other texts are left alone. */
void dropin_called(struct dropin *, const char *text, size_t len);

/* ---- calls: made, put into their session's queue by session_ask(), submitted ---- */

/* Each of these copies its words and returns a call; never NULL: what is wrong with it, its reply
 * tells. `db`: the database that was SELECTed; the names of each but 0 are
 * locks of their own (dropin_lock_name). The caller sets the request's type. */
struct dropin_call *dropin_call_command(struct dropin *, int db, const struct dropin_command *);

/* EVAL: keeps the body, as dropin_script_load() does. */
struct dropin_call *dropin_call_eval(struct dropin *, int db, const struct resp_arg *body,
                                     const struct dropin_script *);
/* EVALSHA: NOSCRIPT when there is none. `sha1` in either case. */
struct dropin_call *dropin_call_evalsha(struct dropin *, int db, const struct resp_arg *sha1,
                                        const struct dropin_script *);

/* What a connection WATCHes: counted references, the maker's is the first. */
struct dropin_watch *dropin_watch_new(void);
/* UNWATCH, DISCARD, EXEC, and the end of the connection; also NULL. A WATCH that is under way adds
 * to it without harm. */
void dropin_watch_drop(struct dropin_watch *);
/* WATCH: asks the masters what stands under these names and adds them; OK. At most KEYS_MAX in all.
 */
struct dropin_call *dropin_call_watch(struct dropin *, int db, struct dropin_watch *,
                                      const struct resp_arg *names, int n);
/* EXEC: all commands, in this order, as one; an array of their replies, or a null array when a
 * watched name is not as it was seen. `watch` may be NULL, and may be dropped at once. */
struct dropin_call *dropin_call_multi(struct dropin *, int db, const struct dropin_command *, int n,
                                      struct dropin_watch *);

/* The request of a call, to be put into its session, and back. */
struct request *dropin_request(struct dropin_call *);
struct dropin_call *dropin_call_of(struct request *);

/* Before it is submitted: what is held by LOCK is shown to it without the owner. */
void dropin_call_hide_owners(struct dropin_call *);

/* Returns how many locks it is about: each is a part of what dropin_submit() costs. */
int dropin_call_names(const struct dropin_call *);

/* Runs it. It is in its session's queue, and ends by request_finish(), perhaps before this returns.
 */
void dropin_submit(struct dropin_call *, int64_t now_ms);

/* This session is `patient`: its only request is a call that waits for a lock before it says that
 * it is refused. It waits no longer, as the session says something else. */
void dropin_hurry(struct session *, int64_t now_ms);

/* How many steps the last script took (cage_steps()): a part of what dropin_submit() costs. */
long dropin_steps(const struct dropin *);

/* For the maker's struct request_type. */
void dropin_call_write(const struct dropin_call *, struct resp_writer *);
void dropin_call_abandon(struct dropin_call *);
void dropin_call_free(struct dropin_call *);
/* The reply of a finished call: dropin_call_write() writes it as Redis does in RESP2, and its nulls
 * by RESP3; NULL: that is a null array (EXEC). */
const struct store_reply *dropin_reply(const struct dropin_call *);

/* ---- scripts (scripts.h) ---- */

/* Keeps a body; adds its SHA-1 to `out`, or the error of the compiler. */
void dropin_script_load(struct dropin *, const struct resp_arg *body, struct store_reply *out);
bool dropin_script_exists(struct dropin *, const struct resp_arg *sha1);
void dropin_script_flush(struct dropin *);

/* Runs a kept script over the states in which its keys can be found and tells each row, see probe.h
 * (which asks nobody). Adds an error and tells none when there is no such script, or it cannot be
 * run. At most KEYS_MAX keys, no name twice. */
struct probe_row;
void dropin_script_check(struct dropin *, const struct resp_arg *sha1, const struct dropin_script *,
                         void (*row)(void *arg, const struct probe_row *), void *arg,
                         struct store_reply *error);

/* ---- messages ---- */

/* What clients publish, in scripts or otherwise, and who listens. */
struct messages *dropin_messages(struct dropin *);

/* ---- what clients of this broker hold ---- */

/* A lock whose last change this broker has made for a client, by a command of Redis. */
struct dropin_hold {
    const char *name; /* of the lock */
    size_t name_len;
    const char *state; /* what Redis would have there: state.h */
    size_t state_len;
    int64_t token;       /* fencing */
    uint64_t session_id; /* of the connection that took it; 0: it was taken at another broker */
    const char *library; /* of that connection: "redis-py 5.0.1"; "": it did not say */
    int64_t held_ms, left_ms;
};

/* False: there is none. Texts are lent until the next turn of the loop. */
bool dropin_find_hold(struct dropin *, const char *name, size_t len, struct dropin_hold *,
                      int64_t now_ms);
/* Goes through all of them in pieces, as view_scan() does. */
typedef void (*dropin_hold_fn)(void *arg, const struct dropin_hold *);
uint64_t dropin_scan(struct dropin *, uint64_t cursor, dropin_hold_fn each, void *arg,
                     int64_t now_ms);

/* What is kept now; what is counted stands in stats.h. */
struct dropin_figures {
    uint32_t n_scripts, n_names; /* scripts; names whose lock is remembered */
    size_t script_bytes;
};
struct dropin_figures dropin_figures(const struct dropin *);
