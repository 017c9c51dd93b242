#ifndef HOLDFAST_MASTER_H
#define HOLDFAST_MASTER_H
/*
 * master: one Redis that keeps locks.
 *
 * It is connected to, asked who it is, refused when it cannot be trusted (safety R6), given the
 * scripts of this run of it (R5), joined, and then asked. Items asked for in one turn of the loop
 * travel together: consecutive items of one script in one EVALSHA, everything in one write. Answers
 * come in order.
 *
 *   DOWN -> CONNECTING -> GREETING -> LOADING -> JOINING --> ACTIVE, or
 *                                                            QUARANTINE (votes on nothing)
 *
 *   QUARANTINE -> ACTIVE             it has been activated
 *   ACTIVE -> QUARANTINE             its clock has jumped ahead
 *   both -> JOINING                  it stands otherwise than was known here
 *   both -> GREETING                 its data or scripts are gone
 *   GREETING and later -> REFUSED    it must not be used; tried again, which leads to LOADING
 *   all others -> DOWN               link lost: backs off, then CONNECTING
 *
 * This header is the seam of the tests: tests/lib/fake_master.c implements it in virtual time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "redis/script.h"

struct conf_master;
struct event_base;
struct evdns_base;
struct hist;
struct master;

enum master_state {
    MASTER_DOWN,       /* no link; the next try is set */
    MASTER_CONNECTING, /* TCP */
    MASTER_GREETING,   /* AUTH, INFO and so on are under way */
    MASTER_REFUSED,    /* it answers but must not be used: see master_status.error */
    MASTER_LOADING,    /* SCRIPT LOAD */
    MASTER_JOINING,    /* join is under way */
    MASTER_QUARANTINE, /* holds may be planted and released; it has no vote */
    MASTER_ACTIVE,
    MASTER_STATES
};

/* What became of an item. */
enum master_result {
    MASTER_ANSWERED, /* the script ran: values (or nested) are its answer */
    MASTER_REJECTED, /* it certainly did not run for this item, `text` says why (LATE, NOSCRIPT,
                        ...) */
    MASTER_UNKNOWN,  /* it may have run or not: link lost, or an error in the middle */
};

struct master_value { /* an element of a nested answer; a nil is an empty text */
    bool is_text;
    int64_t integer;
    const char *text;
    size_t len;
};

struct master_answer {
    enum master_result result;
    const int64_t *values;             /* script_row.width of them */
    const struct master_value *nested; /* peek: the item; they live until on_answer returns */
    int n_nested;
    const char *text; /* why there is no answer, in words */
};

/* One item under way, part of the caller's own structure. From master_ask() until on_answer() it
 * belongs to the master; on_answer() runs exactly once, never inside master_ask() or
 * master_flush(). It may ask again, and free the call. */
struct master_call {
    TAILQ_ENTRY(master_call) link;
    void (*on_answer)(struct master_call *, const struct master_answer *, int64_t now_ms);
    int64_t sent_us;
    int64_t floor; /* the item's */
};

/* One item, written as it goes over the wire: bulk strings one after the other. */
struct master_item {
    const char *key; /* "$12\r\nholdfast:{x}\r\n" */
    size_t key_len;
    const char *args; /* script_row.args bulk strings */
    size_t args_len;
    int64_t floor; /* of acquire.lua: the token asked for, higher with each item, and the answer
                    * says how far above it the token is; of others 0 */
    int bucket;    /* of acquire.lua: the counter of the token, see token_bucket(); -1: base */
    bool early;    /* of release.lua: it may run before what acquire.lua was asked in this turn */
    bool renewal;  /* of renew.lua: goes before all that has not been sent, in the order of these */
};

struct master_status {
    const char *name, *address;
    enum master_state state;
    int64_t quarantine_left_ms;
    int64_t latency_us;      /* moving average of the answers */
    int64_t clock_offset_ms; /* its TIME less ours */
    uint32_t in_flight;      /* items asked and not answered */
    bool stalled;            /* it takes connections and does not answer: the oldest of these items
                              * is older than request_timeout, or the link was given up for that */
    int64_t restarts;        /* seen as another run of the server */
    int64_t data_losses;     /* seen without its mark in the same run: FLUSHALL or alike */
    int64_t reconnects, errors;
    int64_t clock_jumps;        /* its clock and ours disagreed on how much time had passed */
    int64_t answered, rejected; /* items, by what became of them */
    int64_t timeouts; /* items turned away because it is stalled, or lost as it did not answer */
    int64_t high;     /* highest token seen from it */
    int64_t high_asked_ms;      /* when the question that `high` answers was sent; 0: never */
    const struct hist *trip_us; /* from a request's leaving to its answer */
    const char *run_id, *version;
    const char *error; /* last one, in words; "" */
};

/* What a look at a server has found, beyond its status; the texts are the master's own. */
struct master_look {
    bool aof, fsync_always;          /* it persists; and each write before it answers */
    int64_t memory_used, memory_max; /* bytes; memory_max 0: no limit */
    bool marked;                     /* brokers have joined this run of it */
    int64_t quarantine_left_ms;      /* as they have it */
    const char *settings;            /* as they have them; "": none yet */
    const char *no_keys, *no_scripts, *no_channels; /* why these cannot be used; "": they can */
};

struct master_setup {
    struct event_base *base;
    struct evdns_base *dns;
    int64_t request_timeout_ms;
    int64_t quarantine_ms; /* after a restart; -1: by itself (max_lease and drift), 0: off */
    int64_t max_lease_ms, drift_ppm;
    const char *broker;      /* its id: no other broker has it */
    const char *settings;    /* what all brokers must agree on: see settings.h */
    int64_t max_reply;       /* bytes; a longer one ends the link */
    int64_t max_in_flight;   /* items; more are turned away */
    const char *client_name; /* CLIENT SETNAME: people see who is connected */
    /* State has changed. Never inside a call of this header. */
    void (*on_state)(void *arg, struct master *, enum master_state old);
    /* Set: the server is only looked at. It is connected to and judged as ever, but not joined, and
     * nothing on it changes; a good one stays GREETING, and this tells of it, once a link. Inside
     * it no function of this header may be called but master_status(). */
    void (*on_look)(void *arg, struct master *, const struct master_look *);
    void *arg;
};

/* Makes it, DOWN. `conf` is copied whole, `setup` without its strings: they must live on. Masters
 * that share setup.arg are one set: no two of them may be the same server. */
struct master *master_new(const struct master_setup *setup, const struct conf_master *conf,
                          int index);
/* Ends it. Items under way are answered inside this call, then nothing is called any more. Never
 * from a callback of this master. */
void master_free(struct master *);
/* After a reload: limits and times count at once, user, password and files for TLS (which are read
 * in this call, and in master_new) at the next connect; the address is not looked at. */
void master_configure(struct master *, const struct master_setup *setup,
                      const struct conf_master *conf);
/* Starts to connect, and to reconnect for ever. */
void master_start(struct master *);
int master_index(const struct master *);
/* Is it ACTIVE? Then its socket, to wait for an answer, and how many items are under way. */
bool master_is_active(const struct master *, int *fd, int64_t *in_flight);
const char *master_name(const struct master *);
/* This broker's settings are not those in force there: what differs and what to do, in words. NULL:
 * as far as is known they are. Once it is known it stays so until the master has taken ours, also
 * while there is no link. Set before on_answer tells of the call that was refused for it. */
const char *master_disagrees(const struct master *);

/* Asks for one item. Returns -1 when it cannot be sent (nothing will happen; master_reason says
 * why), 0 when on_answer will come. What `item` points to is copied. In QUARANTINE only plant
 * and scripts without a deadline are taken; while the master is stalled only release. */
int master_ask(struct master *, enum script, const struct master_item *item,
               struct master_call *call, int64_t now_ms);

/* The next n items, if they are of this script (64 at most), travel in one call. */
void master_together(struct master *, enum script, int n, int64_t now_ms);

/* Sends what has been asked since the last time. Once at the end of each turn of the loop. */
void master_flush(struct master *, int64_t now_ms);

/* Ends the quarantine when its time is over, or with `force` now; no token at or below `base` is
 * given afterwards. on_state follows. */
void master_activate(struct master *, int64_t base, bool force);
/* The quarantine that it is in begins anew, for all brokers. Nothing in other states. */
void master_prolong(struct master *);

/* An administrator's word: the settings of this broker count on this master from now on, and
 * brokers with others are refused there. Also lets one in that is refused for its settings. */
void master_adopt(struct master *);

/* Asks anew for the highest token that it has given, whatever its state after joining. Nothing else
 * changes; status.high and high_asked_ms follow when the answer comes. Not sent in other states. */
void master_ask_high(struct master *);

const struct master_status *master_status(struct master *, int64_t now_ms);
/* Why it does not vote now, in a few words: "down", "timeout", "quarantined 12s". */
const char *master_reason(struct master *, int64_t now_ms);
const char *master_state_name(enum master_state);
/* As people see it: "stalled" where it is, else the name of its state. */
static inline const char *master_status_name(const struct master_status *s)
{
    return s->stalled ? "stalled" : master_state_name(s->state);
}

static inline bool master_state_votes(enum master_state s)
{
    return s == MASTER_ACTIVE;
}
#endif
