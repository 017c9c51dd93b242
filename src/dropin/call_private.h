#pragma once
/* Between call.c (calls are made, their words and replies), call_run.c (their turns, runs and
 * exchanges), call_end.c (their ends), call_check.c (scripts that are new), call_wait.c (patience)
 * and call_watch.c (WATCH). */
#include <sys/queue.h>

#include "dropin/call.h"
#include "dropin/exchange.h"
#include "dropin/job.h"
#include "dropin/memory.h"
#include "dropin/run.h"
#include "dropin/scripts.h"
#include "dropin/turns.h"
#include "lock/due.h"
#include "lock/locktab.h"
#include "session/session.h"

TAILQ_HEAD(dropin_calls, dropin_call);

struct dropin {
    struct broker *broker;
    struct memory memory;
    struct scripts scripts;
    struct turns turns;
    struct run_tools tools;
    struct messages *messages;
    struct dropin_calls calls;    /* submitted and not finished */
    struct dropin_calls finished; /* their sessions are still to hear of it */
    struct dropin_calls spares;   /* freed ones, with memory for one name and a reply */
    int n_spares;
    TAILQ_HEAD(, check) checks; /* scripts that are tried over states of their keys */
    int n_checks;
    struct due check_due;
    bool closed;
    int64_t patience_ms;
    struct run what_if; /* of call_wait.c */
    struct run_name what_if_name;
};

/* A watched name. */
struct watched {
    char *text;                 /* bytes of both names; heap */
    struct resp_arg name, lock; /* the key, and its lock */
    struct truth truth;         /* UNKNOWN: the masters have not been asked, or have not said it */
};

struct dropin_watch {
    uint32_t refs;
    int n;
    struct watched names[KEYS_MAX];
};

/* One name of a call. */
struct slot {
    struct locktab_name name;
    struct truth truth;      /* over which it runs */
    struct seat seat;        /* and the spot */
    struct watched *watched; /* EXEC: as what it must be found; NULL: not watched */
    bool is_told;            /* the truth was told by a majority in the last exchange */
};

enum call_state {
    CALL_MADE,
    CALL_WAITS,  /* for its turn */
    CALL_ASKS,   /* an exchange is under way */
    CALL_QUEUES, /* refused, it waits among LOCKs (call_wait.c) */
    CALL_PAUSES, /* votes were split: it asks again a moment later */
    CALL_FINISHED
};

struct dropin_call {
    struct request base; /* first */
    struct dropin *dropin;
    TAILQ_ENTRY(dropin_call) listed; /* in calls or finished */
    struct due due;                  /* end of a pause */
    struct lock_request *place;      /* among LOCKs; NULL: it has not begun to wait there */
    struct user *user;               /* who asked, one reference; NULL: nobody */
    struct run run;                  /* the last one */
    struct dropin_watch *watch;      /* WATCH, EXEC: one reference; NULL: none */
    struct slot *slots;              /* one for each name of the job; NULL: it has not begun */
    struct exchange_item *items;     /* of the last exchange: the first n_items of as many */
    int n_items;
    uint8_t item_slot[KEYS_MAX]; /* the slot of each item */
    uint8_t state;               /* enum call_state */
    uint8_t asks;                /* exchanges so far */
    bool writes;     /* a run over a guess wanted to write: waits until it is the first */
    bool doubted;    /* the end of a hold under one of its names was told meanwhile */
    bool at_once;    /* what was told was told of all names at once */
    bool is_hurried; /* it waits there no longer */
    bool is_aborted; /* EXEC: a watched name is not as it was */
    int64_t submitted_ms, asked_ms;
    /* What follows is not cleared for the next call. */
    struct slot one_slot; /* where there is only one name */
    struct exchange_item one_item;
    struct run_name one_name;
    struct job job; /* job_clear() */
};

/* ---- call.c ---- */
/* Makes a call without a job. */
struct dropin_call *call_new(struct dropin *);
/* Makes room for what is known of each of its names. */
void call_make_slots(struct dropin_call *);

/* ---- call_run.c ---- */
extern const char call_closed[]; /* the error when the broker goes down */
/* Begins: it waits for its turn in the lines of all its names. Inside a flow of the broker. */
void call_begin(struct dropin_call *, int64_t now_ms);
/* It has left its lines: begins anew, behind those who are there now. Inside a flow. */
void call_start_again(struct dropin_call *, int64_t now_ms);
/* Lets go on whoever may. Inside a flow. */
void call_next(struct dropin *, int64_t now_ms);

/* ---- call_judge.c: of the last run ---- */
/* Returns whether a name that was touched cannot be asked for again: readers and permits of LOCK,
 * what is no lock, and what programs hold that do not use holdfast. */
bool call_is_unaskable(const struct dropin_call *);
/* Returns why no lock may be taken now (draining, paused, full); NULL: it may. */
const char *call_why_not_taken(const struct dropin_call *);
/* Returns whether the masters need not be asked about the run: they have just told, in one answer,
 * all that it depends on; or it depends on nothing. */
bool call_is_answered(const struct dropin_call *);
/* Returns whether this is a SET NX of a lock that this broker certainly holds for somebody. */
bool call_is_refused_from_memory(struct dropin_call *, int64_t now_ms);

/* ---- call_end.c ---- */
/* Finishes it with what its last run gave, and publishes what that was to publish. */
void call_finish_run(struct dropin_call *, int64_t now_ms);
void call_leave_lines(struct dropin_call *);
/* Finishes it with this error. */
void call_fail(struct dropin_call *, const char *error);
/* EXEC: finishes it with nothing done, as a watched name is not as it was. */
void call_finish_aborted(struct dropin_call *);
/* Tells the sessions of finished calls. */
void call_tell_finished(struct dropin *);

/* ---- call_check.c ---- */
/* Begins to try the script of this job, whose words it copies, over states of its keys; the log
 * says for what it is refused. */
void call_check_script(struct dropin *, const struct job *, int64_t now_ms);
void call_end_checks(struct dropin *);

/* ---- call_wait.c ---- */
/* It is refused by what its last run gave. True: it waits for the lock before it says so. Inside a
 * flow. */
bool call_wait(struct dropin_call *, int64_t now_ms);
/* Takes it out of the queue, if it is there. Inside a flow. */
void call_end_wait(struct dropin_call *);
/* It does not wait any longer. Not inside a flow. */
void call_hurry(struct dropin_call *, int64_t now_ms);

/* ---- call_watch.c ---- */
/* EXEC: takes the watched truths as guesses. False: one of them cannot be true any more. */
bool call_watch_guess(struct dropin_call *, int64_t now_ms);
/* True when each watched name of the last exchange is as it was seen. */
bool call_watch_is_met(const struct dropin_call *);
/* WATCH: notes what was found. */
void call_watch_note(struct dropin_call *);
/* EXEC: adds the watched names to those of the call. */
void call_watch_join(struct dropin_call *);
/* Binds them to the slots, when these have been made. */
void call_watch_bind(struct dropin_call *);
