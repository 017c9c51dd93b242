#ifndef HOLDFAST_ROUND_H
#define HOLDFAST_ROUND_H
/*
 * round: one question to all masters of a group, and one verdict exactly once.
 *
 *   round_ask --> ASKED --majority, or none possible, or request_timeout--> DECIDED
 *                                                                               |
 *                                                                           on_verdict
 *                                                                               |
 *             freed <-- on_done <-- the last answer has come, or never will ----+
 *
 * It also owes: a release that could not be delivered to a master is kept for it until it is back
 * or the lease it ends has passed (safety R2). And it keeps the hybrid clock that is the floor of
 * tokens (R4).
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
#include "redis/script.h"
#include "redis/token.h"

struct rounds;
struct round;

/* The verdict. Runs once, never inside round_ask(). The round lives at least until it returns. */
typedef void (*round_fn)(struct round *, void *arg, int64_t now_ms);
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
    round_vote_fn on_vote; /* each answer that a script has given; NULL: not wanted */
    void *arg;
    void *about; /* the asker's, for on_vote and on_done */
    enum script script;
    bool all;   /* decided only when everybody has answered, or at the time-out */
    bool first; /* a renewal of the watchdog: goes before others */
    bool decided, queued;
    int64_t sent_ms, timeout_ms;
    struct quorum quorum;
    int n_open;
    uint32_t lease_ms;   /* the asker's: what it has asked for */
    struct vote votes[]; /* one a master */
};
TAILQ_HEAD(round_list, round);

/* A broker's masters of one group. */
struct rounds {
    struct master *masters[QUORUM_MASTERS_MAX];
    int n;
    int64_t request_timeout_ms;
    struct token_clock clock;        /* of tokens */
    struct round_list asked;         /* undecided, oldest first */
    struct round_list decided_first; /* their verdict is to be delivered: renewals, */
    struct round_list decided;       /* and the others, some in each turn */
    struct undelivered *undelivered[QUORUM_MASTERS_MAX];
    uint64_t rank[QUORUM_MASTERS_MAX]; /* hash of the identity, the same at every broker */
    bool closed;
    int64_t n_asks; /* questions put, each to all masters */
};

/* Its clock less our wall clock, as people want to know it. */
int64_t rounds_clock_offset_ms(const struct rounds *, const struct master_status *);

/* `identity` decides the order in which brokers agree on a master: the same text at every broker
 * for the same one. The masters are made and owned by the caller; n of them, all configured ones.
 */
void rounds_init(struct rounds *, int64_t request_timeout_ms);
void rounds_add_master(struct rounds *, struct master *, const char *identity);
/* Nothing is sent from now on: what is asked fails. The masters may be freed after this, and
 * rounds_fini() then brings every round to its end. */
void rounds_close(struct rounds *);
/* Decides what is still to be decided. True: there are verdicts to be delivered, which may ask for
 * more. */
bool rounds_give_up(struct rounds *, int64_t now_ms);
void rounds_fini(struct rounds *, int64_t now_ms);

/* Tells the wall clock; the floor of tokens follows it, within what the clocks of the masters
 * allow. Now and then is enough. */
void rounds_set_wall(struct rounds *, int64_t wall_ms, int64_t now_ms);
/* The floor for a new token: above every one given or seen here before, and near wall_ms << 10. */
int64_t rounds_floor(struct rounds *, int64_t now_ms);
/* Where a master's counters go on when those of too few others are known: above every token that
 * brokers can have given. */
int64_t rounds_base(struct rounds *, int64_t now_ms);
void rounds_saw_token(struct rounds *, int64_t token);
/* The bucket and the counter that the tokens of this name come from (token.h). */
int rounds_bucket(const struct rounds *, const char *name, size_t name_len); /* -1: base */
void rounds_counter(const struct rounds *, const char *name, size_t name_len,
                    char out[TOKEN_COUNTER_MAX + 1]);

/* Asks all masters. `all`: see struct round. Never NULL. */
struct round *round_ask(struct rounds *, enum script, const struct args *, bool all, round_fn,
                        void *arg, int64_t now_ms);
/* The next n questions with this script travel to each master in one call. */
void round_together(struct rounds *, enum script, int n, int64_t now_ms);
/* Asks one master for something whose answer nobody waits for (plant). */
void round_tell(struct rounds *, int i, enum script, const struct args *, int64_t now_ms);
/* The owner does not want to be called any more. Until on_done; before that also on a decided
 * round. */
void round_forget(struct round *);

/* Sends the arguments of release.lua to all masters; what cannot be delivered is owed for
 * `lease_ms`. The verdict (fn may be NULL): won when a majority has confirmed. */
struct round *round_release(struct rounds *, const struct args *, int64_t lease_ms, round_fn fn,
                            void *arg, int64_t now_ms);

/* What is owed about this lock leaves now, where it was turned away before: its owner asks for it
 * anew, and must not find what he has given back. Was there any? */
bool rounds_resend(struct rounds *, const char *name, size_t name_len, int64_t now_ms);
/* Master i is back (active or in quarantine): what is owed to it leaves. */
void rounds_master_back(struct rounds *, int i, int64_t now_ms);

/* One turn of the loop: decides what has timed out; */
void rounds_expire(struct rounds *, int64_t now_ms);
/* delivers verdicts one by one, of renewals of the watchdog or of all else, while there are any; */
static inline bool rounds_has_verdict(const struct rounds *b, bool of_renewal)
{
    return !TAILQ_EMPTY(of_renewal ? &b->decided_first : &b->decided);
}
void rounds_deliver(struct rounds *, bool of_renewal, int64_t now_ms);
/* and sends what has been asked. */
void rounds_send(struct rounds *, int64_t now_ms);
/* Nothing of these is due before this time; INT64_MAX: nothing at all. */
int64_t rounds_next_ms(const struct rounds *);

/* The master whose line counts for this name: all brokers agree on it while they see the same
 * masters active. -1: none is active. */
int rounds_agreed(struct rounds *, const char *name, size_t name_len, int64_t now_ms);

/* Why this broker may neither grant nor renew anything, whatever the other masters say, in words: a
 * master has settings of other brokers in force (safety R6). NULL: it may. While it may not, what
 * is asked of the masters has no votes, and only what gives back is sent. */
const char *rounds_veto(const struct rounds *);
/* True when a majority of masters can vote now, and none has a veto. */
bool rounds_has_quorum(struct rounds *, int64_t now_ms);
/* "only 1 of 3 masters answered (b: timeout, c: quarantined 12s)", from the votes of a lost round.
 */
void round_describe(struct round *, struct buf *out, int64_t now_ms);
int round_answered(const struct round *);
/* What master i has answered tells nothing: for round_describe() it has not. */
void round_set_aside(struct round *, int i);
/* True when a master has answered and said no: a hold that a majority has is not there. */
bool round_has_missed(const struct round *);
/* True when so many masters have answered no that there can be no majority, whatever the others
 * say. */
bool round_is_refused(const struct round *);
#endif
