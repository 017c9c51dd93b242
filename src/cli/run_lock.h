#pragma once
/*
 * run_lock: gets, keeps and gives back one lock over connections that may come and go. Knows
 * nothing of the command that runs meanwhile. The caller polls, tells the time (clock_ms()) and
 * looks at `state` after each turn:
 *
 *   ASKING -> HELD -> RELEASING -> RELEASED
 *      |        \---------\------> LOST
 *      \-> NOT_GRANTED, FAILED
 *
 * The caller may rely on the lock until `deadline_ms`, the end of the last validity that a broker
 * has told, counted from before the question was sent. RENEW at a third of the validity makes it
 * fresh, and takes the lock back over a new connection when the old one has failed or is silent. A
 * second connection asks who has the lock that is waited for, and listens to the channel of the
 * lock that is held, only to ask sooner: what counts is the answer to RENEW.
 */
#include "cli/link.h"

enum run_lock_state {
    RUN_LOCK_ASKING,
    RUN_LOCK_HELD,
    RUN_LOCK_RELEASING,
    RUN_LOCK_RELEASED,
    RUN_LOCK_LOST,        /* `why` */
    RUN_LOCK_NOT_GRANTED, /* somebody else has it */
    RUN_LOCK_FAILED       /* `why`, and `status` of cli.h */
};

enum { RUN_LOCK_FDS = 2, RUN_LOCK_ASKED_MAX = 8, RUN_LOCK_OLD_MAX = 8 };

struct run_lock {
    /* Set by the caller. */
    const struct urls *urls;
    const char *name;
    char owner[257];
    bool owner_is_mine; /* made up: no other run enters with it */
    bool fair, verbose;
    bool tells;         /* on stderr, who has the lock, when it has to wait for a moment */
    bool shared;        /* a reader's share */
    int64_t limit;      /* one of so many permits; 0: no permit */
    int64_t wait_ms;    /* 0: try once; -1: for ever */
    int64_t lease_ms;   /* 0: watched */
    int64_t maxhold_ms; /* for the broker; 0: none */

    /* To be read. */
    enum run_lock_state state;
    int64_t token, deadline_ms;
    char why[512];
    int status;

    /* Its own. */
    struct link link; /* that of the lock */
    /* Silent. A RENEW may wait there unread, which will make the lock theirs when the broker
     * wakes up: closed in order they would release it then, so they stay open to the end. */
    struct link old[RUN_LOCK_OLD_MAX];
    int n_old;
    struct link ear;
    char reason[32];                   /* why it is lost, as far as was heard */
    uint8_t asked[RUN_LOCK_ASKED_MAX]; /* verbs whose answers are due, in order */
    int n_asked;
    size_t next_url;
    size_t failures; /* attempts to connect since the last answer */
    int64_t sent_ms; /* of the last RENEW or LOCK */
    int64_t connect_by_ms, answer_by_ms, try_at_ms, wait_until_ms;
    int64_t beat_ms, ear_at_ms, tell_at_ms, release_by_ms, verify_by_ms;
    int64_t due_ms; /* as last told */
    int64_t validity_ms;
    bool may_hold;    /* a LOCK was sent whose answer is not known */
    bool may_be_free; /* an UNLOCK before this one may have come through */
    bool unlocked;    /* the last question was UNLOCK */
    bool recalled;    /* it was asked back from a broker that had been silent, to be released */
};

/* Makes up an owner id: host/pid/100 random bits. */
void run_lock_make_owner(struct run_lock *k);

void run_lock_start(struct run_lock *k, int64_t now_ms);
struct pollfd;
/* Fills RUN_LOCK_FDS entries. */
void run_lock_fds(const struct run_lock *k, struct pollfd *fds);
/* Returns when the next turn is due, whether or not anything is heard. */
int64_t run_lock_due_ms(struct run_lock *k);
void run_lock_turn(struct run_lock *k, const struct pollfd *fds, int64_t now_ms);

/* Gives the lock back within wait_ms, from HELD or LOST. */
void run_lock_release(struct run_lock *k, int64_t now_ms, int64_t wait_ms);
/* Gives up asking, from ASKING. Waits until the broker has heard, so that a grant that is just on
 * its way is not left to its lease; then RELEASING if there may be something to be given back. */
void run_lock_cancel(struct run_lock *k, int64_t now_ms);
void run_lock_fini(struct run_lock *k);
