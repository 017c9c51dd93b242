#ifndef HOLDFAST_FAKE_SERVER_H
#define HOLDFAST_FAKE_SERVER_H
/*
 * fake_server: a Redis with our scripts, as a model in C: locks, shares, tombstones, lines,
 * counters, the mark, and a clock of its own that may be off, drift and jump. tests/scripts runs
 * the same cases against this and against the real scripts on a real Redis.
 *
 * Knows nothing of networks: who calls fake_server_eval() has got the request there.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "item.h"
#include "life.h"
#include "script.h"
#include "settings.h"

enum { FAKE_RUN_ID_LEN = 40, FAKE_LIVES = 8 };

/* A hold: the hash under a key, or that of a share of it. The set <key>:shares is no structure of
 * its own: a share is in it as long as its hash is there, and its score is when that expires. */
struct fake_lock {
    TAILQ_ENTRY(fake_lock) link;
    char *key;
    char *part;   /* "-" the lock as a whole, "r:<owner>", "s:<n>:<i>" */
    bool foreign; /* some other type: no lock */
    char *owner, *op;
    int64_t count, seq, token;
    int64_t end_ms;     /* of MAXHOLD; 0: none */
    bool taken;         /* by a take-over of a hold that was one */
    int64_t expires_ms; /* by its clock; INT64_MAX: never */
};

struct fake_tomb {
    TAILQ_ENTRY(fake_tomb) link;
    char *key;     /* with the operation */
    bool moved;    /* by a take-over */
    bool released; /* by a release, which a repeat answers in the same way */
    int64_t expires_ms;
};

/* <key>:permit:<owner> */
struct fake_permit {
    TAILQ_ENTRY(fake_permit) link;
    char *key, *owner, *slot; /* "<n>:<i>" */
    int64_t expires_ms;
};

struct fake_turn {
    char *ticket;
    int64_t expires_ms;
};

/* Who waits for a lock, and whose turn it is; which reader wants it alone. */
struct fake_line {
    TAILQ_ENTRY(fake_line) link;
    char *key;
    char **tickets;
    int n, cap;
    int64_t expires_ms;
    struct fake_turn *turns; /* in the order of their ends */
    int n_turns;
    char *upgrade; /* owner; NULL: nobody */
    int64_t upgrade_expires_ms;
};

/* The number of a broker's last call. */
struct fake_last {
    LIST_ENTRY(fake_last) link;
    char broker[16];
    int64_t call;
};

struct fake_server {
    char name[16];
    char run_id[FAKE_RUN_ID_LEN + 1];
    TAILQ_HEAD(, fake_lock) locks;
    TAILQ_HEAD(, fake_tomb) tombs;
    TAILQ_HEAD(, fake_permit) permits;
    TAILQ_HEAD(, fake_line) lines;
    /* PUBLISH: how many have subscribed to this channel. NULL: nobody ever has. */
    int (*publish)(struct fake_server *, const char *channel, const char *text);
    struct {                              /* holdfast:master */
        char run_id[FAKE_RUN_ID_LEN + 1]; /* "": no mark */
        bool active;
        int64_t until_ms, base;
        char settings[128], digest[SETTINGS_DIGEST_LEN + 1], promoted[24];
        struct {
            char slot[16]; /* "": free */
            struct life newest;
        } lives[FAKE_LIVES];
        int64_t counters[ITEM_BUCKETS];
        LIST_HEAD(, fake_last) lasts;
    } mark;
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

/* Deliberate mistakes in the scripts: the simulation has to find each of them. */
enum fake_mutation {
    FAKE_AS_IT_SHOULD_BE,
    FAKE_COMMIT_ANYWHERE, /* writes the token back without looking who holds */
    FAKE_COMMIT_LOWERS,
    FAKE_NO_TOMBS,
    FAKE_OLD_CALLS, /* a copy of an earlier call does what it says */
    FAKE_NO_DEADLINE,
    FAKE_NO_QUARANTINE,
    FAKE_RELEASE_ANY, /* an undo frees whatever is there */
    FAKE_RENEW_CREATES,
    FAKE_PLANT_ANYWHERE,  /* over a hold of somebody else */
    FAKE_REPEAT_COUNTS,   /* an operation seen again takes the lock once more */
    FAKE_SEQ_IGNORED,     /* an old count overwrites a newer one */
    FAKE_NO_FLOOR,        /* counters begin where they begin */
    FAKE_SCRIPTS_SURVIVE, /* a restart goes unnoticed */
    FAKE_TAKEOVER_KEEPS_TOKEN,
    FAKE_LATE_COPIES,     /* of two operations of one broker the later to arrive wins */
    FAKE_JUMPS_UNSEEN,    /* nobody looks at the clocks of the masters */
    FAKE_SETTINGS_UNSEEN, /* other settings are refused at joining only */
    FAKE_VETO_UNHEARD,    /* who refuses a broker for them is one vote less, and no more */
    FAKE_READERS_UNSEEN,  /* who wants a lock alone does not look whether others read */
    FAKE_WRITER_UNSEEN,   /* a reader does not look whether somebody has it alone */
    FAKE_PERMIT_TWICE,    /* a permit that is taken is given away again */
    FAKE_GROUP_IN_PARTS,  /* of an all-or-none group the free ones are taken */
    FAKE_LIVES_FORGOTTEN, /* nobody remembers that another server stood in for one */
    /* in the broker, not in the scripts: tests/sim/mutants.c */
    FAKE_QUORUM_OF_CONNECTED,
    FAKE_NO_COMMIT,
    FAKE_VALID_FROM_ANSWER,
    FAKE_TOLD_LATE,
    FAKE_IDS_TWICE,
    FAKE_NO_UNDO,
    FAKE_MUTATIONS
};
extern enum fake_mutation fake_mutation;
extern const char *const fake_mutation_names[FAKE_MUTATIONS];

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
/* The highest token that it has given. */
int64_t fake_server_high(const struct fake_server *);

/* What there is under this key now, or the share `part` of it; NULL: nothing. */
struct fake_lock *fake_server_find(struct fake_server *, const char *key);
struct fake_lock *fake_server_find_part(struct fake_server *, const char *key, const char *part);
bool fake_server_is_gone(struct fake_server *, const char *key, const char *op);
/* Some other program writes a string there. */
void fake_server_set_foreign(struct fake_server *, const char *key);
/* All holds, with all shares. */
int fake_server_count_locks(struct fake_server *);
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
    char error[80]; /* "": it ran */
    int64_t time_ms, call;
    int n, cap;
    struct fake_value *values; /* without the time */
    int *nested;               /* peek: how many values each item has */
    int n_nested;
};

enum { FAKE_HEAD = 3 }; /* arguments of every script with items: deadline, call, broker */

/* Runs the text of this script that was loaded in the run `run_id` by a broker whose settings have
 * the digest `settings`. */
void fake_server_eval(struct fake_server *, enum script, const char *run_id, const char *settings,
                      int n_keys, char *const *keys, int n_args, char *const *args,
                      struct fake_reply *reply);
void fake_reply_fini(struct fake_reply *);

#endif
