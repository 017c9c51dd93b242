#pragma once
/*
 * Between the files of master: master.c (its life), master_link.c (its link), master_greet.c (who
 * it is, scripts), master_run.c (which run of it, without a run id), master_judge.c (whether it may
 * be used), master_join.c (quarantine),
 * master_life.c (whether another server has served in its place), master_roll.c (the roll call),
 * master_ask.c (items), master_answer.c (replies), master_clock.c (its time and ours),
 * master_look.c (only looking), master_found.c (found by Sentinels).
 */
#include <event2/event_struct.h>

#include "base/buf.h"
#include "base/log.h"
#include "net/reply.h"
#include "net/request.h"
#include "net/stream.h"
#include "redis/life.h"
#include "redis/link.h"
#include "redis/master.h"
#include "redis/place.h"
#include "redis/sentinel.h"
#include "redis/settings.h"
#include "redis/skew.h"
#include "stats/stats.h"

enum {
    MASTER_TICK_MS = 200,
    MASTER_RUN_ID_MAX = 64,
    MASTER_DIGEST_LEN = 40,
    MASTER_HEAD_MAX = 80, /* "$7 EVALSHA $40 digest" */
    MASTER_ERROR_MAX = 400,
    MASTER_RIGHTS_MAX = 512, /* the rules for all that a broker does */
    MASTER_UNCHECKED_MAX = 296,
    MASTER_NAMES_MAX = 16 * 33,    /* of brokers, with commas between */
    MASTER_SETTINGS_MAX = 4096,    /* of another broker's, as people may see them */
    MASTER_NESTED_MAX = 1 + 8 * 16 /* peek: a count, and eight values of each hold that it shows */
};

#define MASTER_TOKEN_MAX ((int64_t)1 << 53) /* what a number in Lua holds exactly */

/* Reads m->reply. Returns -1 when it is none to what was asked: the link ends. */
typedef int (*master_reply_fn)(struct master *m);

/* One request that gets one reply. */
struct master_batch {
    TAILQ_ENTRY(master_batch) link;
    master_reply_fn on_reply; /* NULL: this is a call with items, and calls hear of the reply */
    uint8_t script;           /* of items, or the one that is loaded */
    uint8_t fate;             /* among the dead: enum master_result */
    int64_t sent_us;
    /* of a call with items */
    int n_items;
    int64_t number;   /* the call's, which its answer repeats */
    int64_t asked_ms; /* when the first item was asked for */
    bool is_renewal;  /* goes before others */
    struct buf keys, args;
    struct buf counters;     /* of a quorum, where the script has floors */
    int64_t lowest, highest; /* floor of an item; 0: none has one */
    TAILQ_HEAD(master_calls, master_call) calls;
};
TAILQ_HEAD(master_batches, master_batch);

/* What INFO has said. */
struct master_facts {
    char run_id[MASTER_RUN_ID_MAX + 1];
    char version[24];
    char role[16];
    char policy[32];
    char memory_used[24], memory_max[24];
    char promoted[24]; /* second_repl_offset: where it ended to be a replica; "-1": never */
    char leader[256], leader_port[8]; /* of a replica: its master */
    char uptime[12], now[12];         /* in seconds; its time is asked for where it has no run_id */
    bool is_named; /* its INFO gives no run_id: it is one that brokers have made (master_run.c) */
    bool loading, aof, cluster;
};

/* What is known of a server that is only looked at. */
struct master_looking {
    struct master_look found;
    int trips_left;
    int64_t end_ms; /* no more trips after it */
    char settings[MASTER_SETTINGS_MAX], no_keys[REPLY_WORDS_MAX], no_plain_keys[REPLY_WORDS_MAX],
        no_channels[REPLY_WORDS_MAX], no_multi[REPLY_WORDS_MAX];
    char missing[MASTER_RIGHTS_MAX], not_useful[MASTER_RIGHTS_MAX], disabled[MASTER_RIGHTS_MAX];
    int rights_told;
};

struct master {
    struct master_setup setup;
    int index, port, db;
    bool is_unix, secure;                       /* secure: rediss:// */
    const char *at;                             /* partition_at() of its partition */
    char *name, *slot, *host, *user, *password; /* slot: its name at all brokers */
    struct ssl_ctx_st *tls;                     /* NULL: not secure, or its files are not good */
    char *server_name, *tls_name;               /* in its certificate; as configured, or NULL */
    struct sentinels *sentinels; /* NULL: its address is in the configuration; else host is NULL
                                  * while they name none */
    bool is_found;               /* its address is told by Sentinels or a Cluster */
    int64_t named_until_ms;      /* it counts before this time; INT64_MAX: for ever */
    char object[48], address[300];
    char passed_over[STREAM_ADDRESS_MAX]; /* of the addresses of its name: a replica is there */
    char unchecked[MASTER_UNCHECKED_MAX]; /* what it does not tell, in words; "": nothing */

    uint8_t state, reported; /* enum master_state; what on_state has been told */
    struct link *link;       /* that it has its seat at: own_link, or one that it shares */
    struct link *own_link;
    struct link_seat seat;
    unsigned links; /* counts connections: a callback may have ended the one that it came from */
    struct reply *reply; /* the link's */
    struct event retry, tick, turn;
    int64_t started_ms, opened_ms, heard_ms, ticked_ms, judged_ms;
    int64_t lost_ms; /* the end of the last link that was a good one, or the start */
    int64_t down_backoff_ms, refused_backoff_ms;
    /* of the request whose reply is read now: when it left, when its reply came, its script */
    int64_t asked_us, heard_us;
    uint8_t asked_script;
    bool silent;   /* a link was given up as it did not answer, and it has not answered since */
    bool joined;   /* this link has sent scripts */
    bool voted;    /* when it was last looked at (status.since_ms) */
    bool in_calls; /* on_answer or on_state is running */

    struct master_facts facts;
    char run_id[MASTER_RUN_ID_MAX + 1];   /* of the run it was last joined in; "": none yet */
    int64_t old_client_id;                /* of the last link that was joined; 0: unknown */
    char digest[SETTINGS_DIGEST_LEN + 1]; /* of the settings that the scripts were loaded with */
    char disagreement[MASTER_ERROR_MAX];  /* master_disagrees(); "": none */
    char head[SCRIPT_COUNT][MASTER_HEAD_MAX];
    int head_len[SCRIPT_COUNT], loads_left;
    bool adopt;    /* the next join puts our settings in force */
    bool stranger; /* a script has found the mark missing */
    bool has_news; /* the other masters have to hear of its new life */
    bool probing;
    bool leaves; /* MASTER_LEAVES has been said */
    int64_t quarantine_end_ms;
    struct life own, newest; /* that it was joined in; of its slot, that anybody has told */
    struct life told;        /* the newest, when the last join was sent */
    char roll_veto[80], roll_missing[MASTER_NAMES_MAX], roll_signed[MASTER_NAMES_MAX];
    struct life admitted;             /* this broker takes part in it (master_roll.c) */
    char waits_for[MASTER_NAMES_MAX]; /* JOINING: brokers that have not been there since this one
                                       * has come */
    int64_t waited_ms;                /* when that was asked last */
    int64_t seen_ms;                  /* the server's time in its last reply to a roll call of this
                                       * join; 0: none */
    char rival[256];                  /* another server that was found in its place; "": none */
    int64_t probed_ms;

    struct master_batch *renewing, *early, *open; /* take more items of their script; NULL: none */
    struct master_batches renewals, waiting;      /* will be sent, all those of `renewals` first */
    struct buf out;                               /* requests that stream has not seen */
    struct master_batches unsent, sent, dead, spare;
    int64_t n_before;    /* items of `unsent` and `sent`, but for renewals */
    int64_t quickest_us; /* in which this link has brought an answer to items; INT64_MAX: none */
    int64_t work_us, work_items; /* what the server took for so many of the last items */
    int64_t answered_us;         /* when the last answer to items came */
    int64_t last_number;         /* of a call with items */
    int64_t n_items;             /* of all batches but the spare ones */

    struct place place; /* of this broker's name there */
    struct skew clock;
    int64_t
        suspend_owed_ms; /* until then, for a jump of its clock, unless it has confirmed; 0: none */
    int64_t latency_us;
    struct hist trip_us;
    struct log_limit jump_limit;
    struct master_status status; /* its counters are the only ones */
    char error[MASTER_ERROR_MAX], logged[MASTER_ERROR_MAX], loss[MASTER_ERROR_MAX];
    char reason[256];
    char refusal[80]; /* the last error of a script that nothing here follows from */
    int64_t refusal_ms;
    struct log_limit refusal_log;
    struct master_looking *looking; /* NULL: it is to be used */

    TAILQ_ENTRY(master) all;
};

/* ---- master.c ---- */
void master_move(struct master *, enum master_state to);
/* Returns the master of the same set that was made next after `before` (NULL: the first one), or
 * NULL. */
struct master *master_next_of_set(const struct master *, struct master *before);
/* Returns another master of the set that is the server with this run_id; NULL: none is. */
const struct master *master_twin(const struct master *, const char *run_id);
static inline int64_t master_patience_ms(const struct master *m)
{
    int64_t ms = 5 * m->setup.request_timeout_ms;
    return ms < 3000 ? 3000 : ms;
}

/* Prepares the stream for TLS, if it is to be used, to the host that it has now. */
void master_secure(struct master *);
static inline bool master_said_error(const struct master *m)
{
    return m->reply->values[0].type == REPLY_ERROR;
}
static inline bool master_is_joined(const struct master *m)
{
    return m->state == MASTER_ACTIVE || m->state == MASTER_QUARANTINE;
}

/* ---- master_link.c ---- */
/* Prepares its stream and the timers of its link, none of them running. */
void master_link_init(struct master *);
/* Takes this link for the next connect. */
void master_use_link(struct master *, struct link *);
/* Ends the link, if there is one, and sets no timer. What was under way waits for
 * master_deliver(). */
void master_link_close(struct master *);
/* Ends the link for this reason, back to DOWN, and sets the next try. */
void master_drop(struct master *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, as a node of a Cluster says that another one keeps the partition, or nobody: has the
 * Cluster asked soon, and tries the same node again only after a while. */
void master_turned_away(struct master *, const char *words);
/* Ends the link, to REFUSED: it must not be used until somebody has put this right. Returns -1. */
int master_refuse(struct master *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- master_greet.c ---- */
/* Says on a new link who we are, and asks who it is. */
void master_greet(struct master *);
/* Asks on the same link who it is, and goes on from there to join it. */
void master_greet_again(struct master *);
/* Ends the link because it answered `what` by an error; refuses it unless that passes by itself.
 * Returns 0. */
int master_give_up(struct master *, const char *what);
/* Asks by a request of words without spaces. */
void master_ask_words(struct master *, master_reply_fn, const char *words);

/* Goes on with the greeting when all facts are there. Returns 0. */
int master_take_facts(struct master *);

/* ---- master_run.c ---- */
/* Asks for a name for its run, facts.run_id, and then calls master_take_facts(). */
void master_find_run(struct master *);

/* ---- master_join.c ---- */
void master_join(struct master *);
void master_probe(struct master *);
/* Notes how its settings differ from ours, for master_disagrees(). */
void master_disagree(struct master *, const char *how);
/* Puts it into quarantine, for all brokers, as its clock has jumped ahead. Does nothing when no
 * quarantine is owed. */
void master_suspend(struct master *);
/* Returns how long a quarantine lasts: longer than any lease that it may have forgotten. */
int64_t master_quarantine_ms(const struct master *);

/* Begins a call of a script without items with so many arguments, the run id first. */
void master_put_call(struct master *, enum script, int n_args);
/* Writes the key of its mark. */
void master_put_mark(struct master *);
/* Tells whether the reply is an array of these types (i: integer, t: text) and `more` values. */
bool master_is_row(const struct reply *, const char *types, int more);
/* Moves the master to the state that a script has answered. Returns -1 when that is no state. */
int master_take_state(struct master *, const struct reply_value *state, int64_t left_ms);

/* ---- master_roll.c ---- */
/* Says that this broker is here, if there is a list of brokers. */
void master_roll_here(struct master *);
/* Tells whether an active life is one of a Cluster that this broker has just come to: then it waits
 * in JOINING until all others have been there, too. */
bool master_must_wait(const struct master *);
/* Asks whether they have. */
void master_wait_for_others(struct master *);

/* ---- master_life.c ---- */
/* Writes the last arguments of a join: each master of the set, this one first, and its newest
 * life. */
void master_put_lives(struct master *);
/* Writes the names of the fields of the mark that hold the lives, in the same order. */
void master_put_life_fields(struct master *);
int master_count_lives(struct master *);
/* Tells whether these values of the reply, as many as were asked for, can be the lives in that
 * order, nil where none is known. */
bool master_are_lives(struct master *, const struct reply_value *);
/* Takes these lives, which can be such. */
void master_take_lives(struct master *, const struct reply_value *);
/* Tells whether a newer life of it is known than the one that it was joined in. */
bool master_life_is_over(const struct master *);
/* Tells whether that newer life was an argument of the last join: then it does not do what join.lua
 * says. */
bool master_life_is_denied(const struct master *);
/* Tells whether the server in whose place another one was found is not that other one. */
bool master_life_is_disputed(const struct master *);
/* Tells the other masters which lives are new after an answer was taken, and joins those again
 * whose life is over. */
void master_spread_lives(struct master *);
/* Does the same after a look at the mark, and joins this one again if its life is over. */
void master_heed_lives(struct master *);

/* ---- master_judge.c ---- */
/* Reads the facts from the text of INFO. */
void master_take_info(struct master_facts *, const char *text, size_t len);
/* Refuses it, with the reason, and returns -1 when its facts say that it must not be used. */
int master_judge(struct master *);
/* Notes, and logs if it is new, what it must be trusted in because it does not tell. */
void master_note_unchecked(struct master *);
/* Asks for the facts that may change during a link, and judges again. */
void master_review(struct master *);
/* Asks whether it still is a master, and refuses it if not. */
void master_ask_role(struct master *);

/* ---- master_found.c ---- */
/* Begins to ask the Sentinels of a master that is found by them; or follows the Cluster. */
void master_find(struct master *, const struct conf_master *);
/* Has the Cluster asked soon, if there is one: things may not be there as they were. */
void master_doubt(struct master *);
/* Tells whether the reply is an error by which a node of a Cluster says that the partition is not
 * its own, or not now. */
bool master_said_elsewhere(const struct master *);
/* Returns who tells its address, in words. */
const char *master_finders(const struct master *);
/* Takes this address; NULL: none. */
void master_set_address(struct master *, const char *host, int port);
/* Gives back the link that it shares, whose seat it has left. */
void master_leave_link(struct master *);
/* Leaves the server, as no majority has named it for too long. */
void master_lose_name(struct master *);

/* ---- master_look.c ---- */
/* Tries what INFO does not tell of a server that could be used, and tells setup.on_look. */
void master_look(struct master *);
/* Goes on when its rights are known. Returns 0. */
int master_look_on(struct master *);

/* ---- master_rights.c ---- */
/* Asks what its user may do, and then calls master_look_on(). */
void master_look_at_rights(struct master *);
/* Notes that it may not do what this rule would let it do. */
void master_lacks(struct master *, const char *rule);

/* ---- master_ask.c ---- */
/* Begins a request that is no call with items. The caller writes its bytes into m->out. */
struct master_batch *master_batch_add(struct master *, master_reply_fn);
/* Keeps what was under way on a link that has ended for master_deliver(). */
void master_bury(struct master *);
/* Answers the calls that were under way on a link that has ended. */
void master_deliver(struct master *, int64_t now_ms);
/* Frees all batches; none may have calls. */
void master_forget(struct master *);
bool master_is_stalled(const struct master *, int64_t now_us);

/* ---- master_answer.c ---- */
/* Takes a reply; link_events.on_reply. */
void master_on_reply(void *arg, int64_t now_ms, int64_t now_us);
/* Hands the same answer, without values, to every call of a batch that is in no list. */
void master_answer_calls(struct master *, struct master_batch *, enum master_result,
                         const char *text, int64_t now_ms);

/* ---- master_clock.c ---- */
/* Takes the time that it said in the answer to something sent at sent_us, which came at now_us.
 * True: its clock has jumped ahead, so what it says in this answer is not to be trusted. */
bool master_clock_take(struct master *, int64_t time_ms, int64_t sent_us, int64_t now_us);
/* Takes the reply to TIME. */
int master_on_time(struct master *) MUST_CHECK;
