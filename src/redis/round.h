#pragma once
/*
 * round: puts one question about a name to all masters that decide about it, its group (rounds.h),
 * and brings one verdict exactly once.
 *
 *   round_ask --> ASKED --majority, or none possible, or request_timeout--> DECIDED
 *                                                                               |
 *                                                                           on_verdict
 *                                                                               |
 *             freed <-- on_done <-- the last answer has come, or never will ----+
 *
 * A release that could not be delivered to a master is kept for it until it is back, or the lease
 * that it ends has passed (undelivered.h, safety R2); and so is what is owed to a master alone.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/util.h"
#include "redis/args.h"
#include "redis/codes.h"
#include "redis/master.h"
#include "redis/quorum.h"
#include "redis/rounds.h"
#include "redis/script.h"

struct round;

/* Hears the verdict: once, never inside round_ask(). The round lives at least until it returns. */
typedef void (*round_fn)(struct round *, void *arg, int64_t now_ms);
/* Tells whether the asker knows enough to decide, though not everybody has answered. */
typedef bool (*round_enough_fn)(const struct round *);
/* Master i has answered and its vote is counted, before the verdict or after it. May ask anew. */
typedef void (*round_vote_fn)(struct round *, int i, const struct master_answer *, int64_t now_ms);

enum vote_state {
    VOTE_NONE,     /* asked, no answer yet; or never asked */
    VOTE_ANSWERED, /* code and value are there */
    VOTE_UNSENT,   /* it could not be asked, or refused: certainly nothing happened there */
    VOTE_UNKNOWN,  /* it was asked and there is no telling */
};

/* Of the count of a hold (lua/hold.lua): the token that its owner was granted, and how often the
 * count has been written since. */
struct count_version {
    int64_t token, number;
};
static inline bool count_version_is_later(struct count_version a, struct count_version b)
{
    return a.token > b.token || (a.token == b.token && a.number > b.number);
}

struct vote {
    struct master_call call;
    struct round *round;
    int64_t value; /* second integer of the item: token, pttl, tickets in the line */
    /* of a take-over, see there */
    int64_t pttl_ms, left_ms;
    struct count_version version;
    int32_t extra; /* third: count of a take-over; tickets in the line (acquire) */
    int32_t share; /* eighth of a take-over: which share it was */
    int8_t code;   /* first, see codes.h */
    uint8_t index;
    uint8_t state; /* enum vote_state */
    bool open;     /* an answer is still to come */
};

struct round {
    TAILQ_ENTRY(round) by_age;
    struct rounds *rounds;
    round_fn on_verdict;
    round_fn on_done; /* after the verdict, when no answer is to come any more; NULL: not wanted */
    round_vote_fn on_vote;     /* each answer that a script has given; NULL: not wanted */
    round_enough_fn is_enough; /* NULL: when it is won, or cannot be any more */
    void *arg;
    void *about; /* the asker's, for on_vote and on_done */
    enum script script;
    bool all;   /* decided only when everybody has answered, or at the time-out */
    bool first; /* a renewal of the watchdog: goes before others */
    bool decided, queued;
    bool takes_planted; /* the asker's, of a renewal: what was planted in quarantine is a vote */
    bool disputed;      /* an active master has said that somebody else has it */
    int64_t sent_ms, timeout_ms;
    struct quorum quorum;
    int n_open, first_master; /* of the group */
    uint32_t lease_ms;        /* the asker's: what it has asked for */
    struct vote votes[];      /* one a master of the group */
};

/* Returns the master that vote i is of. */
static inline struct master *round_master(const struct round *r, int i)
{
    return r->rounds->masters[r->first_master + i];
}

/* Asks all masters of the group. `all`: see struct round. Never returns NULL. */
struct round *round_ask(struct rounds *, enum script, const struct args *, bool all, round_fn,
                        void *arg, int64_t now_ms);
/* Lets the next n questions with this script travel to each master in one call; they are about
 * names of the group whose first master is `first`. */
void round_together(struct rounds *, int first, enum script, int n, int64_t now_ms);
/* Asks one master, i of the group, for something whose answer nobody waits for (plant). */
void round_tell(struct rounds *, int i, enum script, const struct args *, int64_t now_ms);
/* Sends the arguments of a script to master i of the group, whose answer nobody waits for; keeps
 * them for `lease_ms` as long as they cannot be delivered (undelivered.h). */
void round_owe(struct rounds *, int i, enum script, const struct args *, int64_t lease_ms,
               int64_t now_ms);
/* Ends all calls of the owner's functions. Allowed until on_done, on a decided round too. */
void round_forget(struct round *);

/* Sends the arguments of release.lua to all masters of the group; what cannot be delivered is kept
 * for `lease_ms`. The verdict (fn may be NULL) is won when a majority has confirmed. */
struct round *round_release(struct rounds *, const struct args *, int64_t lease_ms, round_fn fn,
                            void *arg, int64_t now_ms);

/* One turn of the loop: decides what has timed out; */
void round_expire(struct rounds *, int64_t now_ms);
/* and delivers verdicts one by one, of renewals of the watchdog or of all else, while there are
 * any. rounds_send() then sends what has been asked. */
static inline bool round_has_verdict(const struct rounds *b, bool of_renewal)
{
    return !TAILQ_EMPTY(&b->decided[of_renewal]);
}
void round_deliver(struct rounds *, bool of_renewal, int64_t now_ms);
/* Returns when the next round or release expires; 0: verdicts are to be delivered; INT64_MAX:
 * nothing is under way. */
int64_t round_next_ms(const struct rounds *);

/* Master i, of all, has begun a new life: whatever it has said in the former one to a question
 * whose verdict is still to be delivered is no vote any more (safety R14), but for releases. */
void round_new_life(struct rounds *, int i);

/* After rounds_close(). Decides what is still to be decided. True: there are verdicts to be
 * delivered, which may ask for more. */
bool round_give_up(struct rounds *, int64_t now_ms);
/* After rounds_close(). Brings every round to its end, and the rounds too. */
void round_fini(struct rounds *, int64_t now_ms);

/* Returns why a round was lost, from its votes: "NOQUORUM only 1 of 3 masters answered (b: timeout,
 * c: quarantined 12s)"; heap. */
char *round_no_quorum(struct round *, int64_t now_ms);
int round_answered(const struct round *);
/* Tells whether the master of vote i is in quarantine: it may have forgotten what it does not show.
 */
bool round_may_forget(const struct round *, int i, int64_t now_ms);
/* Sets aside what master i has answered: for round_no_quorum() it has not. */
void round_set_aside(struct round *, int i);
/* Tells whether a master has answered no: a hold that a majority has is not there. */
bool round_has_missed(const struct round *);
/* Tells whether so many masters have answered no that there can be no majority, whatever the others
 * say. */
bool round_is_refused(const struct round *);
