#pragma once
/*
 * master: one Redis that keeps locks.
 *
 * Connects to it, asks who it is, refuses it when it cannot be trusted (safety R6), loads the
 * scripts for this run of it (R5), joins it, and then asks it for items. Items of one turn of the
 * loop travel together: consecutive items of one script in one EVALSHA, everything in one write.
 * Answers come in order.
 *
 *   DOWN -> CONNECTING -> GREETING -> LOADING -> JOINING --> ACTIVE, or
 *                                                            QUARANTINE (votes on nothing)
 *
 *   QUARANTINE -> ACTIVE             it has been activated
 *   ACTIVE -> QUARANTINE             its clock has jumped ahead
 *   both -> JOINING                  it stands otherwise than was known here
 *   both -> GREETING                 its data or scripts are gone
 *   GREETING and later -> REFUSED    it must not be used; tried again, which leads to LOADING
 *   all others -> DOWN               link lost: backs off, then CONNECTING; or, where Sentinels
 *                                    tell its address: they name another server, or none
 *
 * This header is the seam of the tests: tests/lib/fake_master.c implements it in virtual time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/util.h"
#include "redis/script.h"

struct cluster;
struct conf_master;
struct ssl_ctx_st;
struct event_base;
struct evdns_base;
struct hist;
struct master;
struct place;

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

/* How the request for an item has ended. */
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
    const struct master_value *item_text; /* script_row.texts: of this item; lives likewise */
    const char *text;                     /* why there is no answer, in words */
};

/* One item under way; the caller embeds it. The master owns it from master_ask() until on_answer(),
 * which runs exactly once, never inside master_ask() or master_flush(). on_answer() may ask again,
 * and free the call. */
struct master_call {
    TAILQ_ENTRY(master_call) link;
    void (*on_answer)(struct master_call *, const struct master_answer *, int64_t now_ms);
    int64_t sent_us;
    int64_t floor; /* the item's */
};

/* One item, written as it goes over the wire: bulk strings one after the other. */
struct master_item {
    const char *key; /* "$12\r\nholdfast:{x}\r\n"; of its partition */
    size_t key_len;
    const char *args; /* script_row.args bulk strings */
    size_t args_len;
    int64_t floor; /* script_row.floors: the token asked for, higher with each item, and the answer
                    * says how far above it the token is; of what takes none 0 */
    int bucket;    /* likewise: the counter of the token, see token_bucket(); -1: base */
    bool early;    /* of release.lua: it may run before what acquire.lua was asked in this turn */
    bool undoes;   /* goes to a stalled master too, as what release.lua is asked does */
    bool renewal;  /* of renew.lua: goes before all that has not been sent, in the order of these */
};

struct master_status {
    const char *name, *address;
    enum master_state state;
    int64_t since_ms; /* when it began to vote, or last did */
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
    bool disputed;    /* other brokers have found another server in its place, not this one */
    const char *life; /* that it was joined in last (life.h); "": none yet */
    const struct place *place; /* of this broker's name there */
    const char *roll_veto; /* why this quarantine ends by its time only; "": by roll call, too */
    bool has_left;         /* it has taken MASTER_LEAVES */
    /* In quarantine, brokers that have not signed and that have, as the master said last, with
     * commas between; both "" without a roll call. */
    const char *roll_missing, *roll_signed;
    const char *error; /* the last one, or what cannot be checked there, in words; "" */
};

/* What a look at a server has found, beyond its status. The master owns the texts. */
struct master_look {
    bool aof, fsync_always;          /* it persists; and each write before it answers */
    bool fsync_known;                /* else CONFIG is forbidden */
    int64_t memory_used, memory_max; /* bytes; memory_max 0: no limit */
    bool marked;                     /* brokers have joined this run of it */
    int64_t quarantine_left_ms;      /* as they have it */
    const char *settings;            /* as they have them; "": none yet */
    /* why these cannot be used; "": they can */
    const char *no_keys, *no_plain_keys, *no_channels, *no_multi;
    const char *missing, *not_useful; /* what its user would have to be given: "+get +set"; of the
                                       * latter brokers can do without */
    const char *disabled;             /* commands that are disabled or renamed: "get set" */
    const char *unchecked;            /* what it does not tell; "": nothing */
};

struct master_setup {
    struct event_base *base;
    struct evdns_base *dns;
    int64_t request_timeout_ms;
    int64_t quarantine_ms; /* after a restart; -1: by itself (max_lease and drift), 0: off */
    int64_t max_lease_ms, drift_ppm;
    int64_t sentinel_timeout_ms; /* a master that Sentinels name counts for so long after it */
    int partition;               /* that it keeps (partition.h); 0 without a Cluster */
    struct cluster *cluster;     /* that tells its address; NULL: it is not found by one */
    const char *broker;          /* its id: no other broker has it */
    const char *settings;        /* what all brokers must agree on: see settings.h */
    const char *broker_name;     /* of each process that takes the place of the one before, too */
    const char *brokers;   /* the names of all, of `settings`, with commas between; NULL: no list */
    bool mirror;           /* holds are plain keys too (R23); stands in `settings` */
    int64_t max_reply;     /* bytes; a longer one ends the link */
    int64_t max_in_flight; /* items; more are turned away */
    const char *client_name; /* CLIENT SETNAME: people see who is connected */
    /* Hears that the state has changed. Never runs inside a call of this header. */
    void (*on_state)(void *arg, struct master *, enum master_state old);
    /* Hears of a server that is only looked at; NULL: the server is to be used. The master connects
     * to such a server and judges it, but does not join it and changes nothing there. A good one
     * stays GREETING, and this runs once a link. It may call nothing of this header but
     * master_status(). */
    void (*on_look)(void *arg, struct master *, const struct master_look *);
    /* Hears that a master that is found by Sentinels is at another address; host NULL: at none. May
     * be NULL. It may call nothing of this header but master_index(). */
    void (*on_moved)(void *arg, struct master *, const char *host, int port);
    void *arg;
};

/* Makes a context for connections to a master from the files that its configuration names
 * (tls_client_new). */
struct ssl_ctx_st *master_tls_new(const struct conf_master *, char *error,
                                  size_t error_size) MUST_CHECK;
/* Returns the name that its certificate must be for; either may be NULL. */
const char *master_tls_name(const char *configured, const char *host);

/* Returns a new master, DOWN. Copies `conf` whole and `setup` without its strings, which must live
 * on. Masters that share setup.arg and partition are one set: no two of them may be the same
 * server. */
struct master *master_new(const struct master_setup *setup, const struct conf_master *conf,
                          int index);
/* Closes the links and frees the master. Answers items under way inside this call and calls nothing
 * afterwards. Never from a callback of this master. */
void master_free(struct master *);
/* Takes what a reload has changed: limits and times at once; user, password and files for TLS (read
 * in this call, as in master_new) at the next connect. Ignores the address. */
void master_configure(struct master *, const struct master_setup *setup,
                      const struct conf_master *conf);
/* Starts to connect, and reconnects for ever. */
void master_start(struct master *);
int master_index(const struct master *);
int master_partition(const struct master *);
/* Tells whether it is ACTIVE. Sets its socket, to wait for an answer, and the number of items under
 * way. */
bool master_is_active(const struct master *, int *fd, int64_t *in_flight);
const char *master_name(const struct master *);
/* Writes the address that its link goes to, as stream_peer_address() does; `out` is as large as
 * there. */
void master_peer(const struct master *, char *out);
/* Returns in words how this broker's settings differ from those in force there, and what to do;
 * NULL while no difference is known. A known difference stays, also without a link, until the
 * master has taken ours. It is known before on_answer tells of the call that was refused for it. */
const char *master_disagrees(const struct master *);

/* Asks for one item. Returns 0 when on_answer will run, -1 when the item cannot be sent: nothing
 * will happen, and master_reason says why. Copies what `item` points to. Takes in QUARANTINE only
 * what script_runs_in_quarantine() says, from a stalled master only release and what undoes. */
int master_ask(struct master *, enum script, const struct master_item *item,
               struct master_call *call, int64_t now_ms);

/* Makes the next n items of this script travel in one call; n is at most its items_max. */
void master_together(struct master *, enum script, int n, int64_t now_ms);

/* Publishes a text on the channel of all brokers of this master's database; see subscriber.h.
 * Nobody hears what becomes of it: not sent to a master that is down, stalled, or behind by
 * megabytes. */
void master_publish(struct master *, const char *text, size_t len, int64_t now_ms);
/* That channel; %d: the database, as all of them share the channels of a server. */
#define MASTER_SAID_CHANNEL "holdfast:said:%d"
/* In a Cluster it is a sharded one of each partition; %s: partition_at(). */
#define MASTER_SAID_IN_PARTITION "%ssaid"
enum { MASTER_SAID_MAX = 48 };
/* Writes its name. */
void master_said_channel(int partition, int db, char out[MASTER_SAID_MAX]);

/* Sends what has been asked for since the last time. Call it once at the end of each turn of the
 * loop. */
void master_flush(struct master *, int64_t now_ms);
/* Writes what master_flush() has handed to links that several masters share. Behind all of them in
 * each turn; else it leaves at the end of the callbacks that are running. */
void masters_write(void);

/* Ends the quarantine when its time is over, or with `force` now. The master gives no token at or
 * below `base` afterwards. on_state follows. */
void master_activate(struct master *, int64_t base, bool force);
/* In a Cluster: takes part in its life although others have not been seen there, as an
 * administrator has said. Returns false when that is not what it waits for. */
bool master_admit(struct master *);
/* Begins the quarantine that it is in anew, for all brokers. Does nothing in other states. */
void master_prolong(struct master *);

enum master_roll { MASTER_IS_HERE, MASTER_SIGNS, MASTER_LEAVES };
/* Says under the name of this broker that it is here; in quarantine, that it signs; or that nothing
 * comes from it any more (lua/roll.lua, which tells of token and left_ms). Its answer sets
 * status.place and so on. Does nothing where there is no list of brokers, or the master is not
 * joined. The master says by itself that this broker is here: behind each join, and twice a second.
 */
void master_roll(struct master *, enum master_roll, int64_t token, int64_t left_ms);

/* Puts the settings of this broker in force on this master, as an administrator has said: it
 * refuses brokers with other settings from now on. Tries a master again that is refused for its
 * settings. */
void master_adopt(struct master *);

/* Asks anew for the highest token that it has given; its answer sets status.high and high_asked_ms.
 * Does nothing unless it is ACTIVE or in QUARANTINE. */
void master_ask_high(struct master *);

const struct master_status *master_status(struct master *, int64_t now_ms);
/* Returns in a few words why it does not vote now: "down", "stalled", "quarantined 12s". */
const char *master_reason(struct master *, int64_t now_ms);
const char *master_state_name(enum master_state);
/* Returns what its Sentinels say, for people; NULL: it is not found by Sentinels. The text lives
 * until the next call. */
const char *master_sentinels(struct master *, int64_t now_ms);
/* Returns "stalled" for a master that is, else the name of its state: for people. */
static inline const char *master_status_name(const struct master_status *s)
{
    return s->stalled ? "stalled" : master_state_name(s->state);
}

static inline bool master_state_is_joined(enum master_state s)
{
    return s == MASTER_QUARANTINE || s == MASTER_ACTIVE;
}

static inline bool master_state_votes(enum master_state s)
{
    return s == MASTER_ACTIVE;
}
