#pragma once
/*
 * world: applications, brokers and masters in one process and in virtual time. The brokers are the
 * real ones, from the command to the script; sockets are not: a session's bytes are read where it
 * has written them.
 *
 * A broker runs one turn of its loop when something has come for it, as server.c does. One world at
 * a time. What happens in it is reported to history.h, which knows what must never happen.
 */
#include <stdbool.h>
#include <stdint.h>

#include "dropin/call.h"
#include "fake_master.h"
#include "lock/broker.h"
#include "lock/replant.h"
#include "redis/args.h"
#include "redis/quarantine.h"
#include "session/session.h"
#include "sim_time.h"

enum { WORLD_SERVERS = 5, WORLD_BROKERS = 3, WORLD_APPS = 8, WORLD_ASKS = 64, WORLD_TEXT = 160 };

/* Of the settings and the servers of one broker, where they are its own. */
struct world_view {
    const char *settings; /* NULL: as everybody's */
    const char *servers;  /* by their names, "abc"; NULL: all of them */
    const char *slots;    /* as which masters they serve, "abd"; NULL: each by its own name */
};

struct world_app;
struct world_ask;

struct world_conf {
    uint64_t seed;
    int n_servers, n_brokers;
    int partitions; /* of a Redis Cluster, each at a server of its own, which are as many; 0: none
                     */
    struct conf_lock broker;
    int64_t quarantine_ms;            /* as in struct master_setup */
    struct fake_sentinels *sentinels; /* of the first master; NULL: it is at its home */
    int64_t wall_skew_ms;             /* how far apart the brokers' wall clocks may be */
    const char *brokers;              /* the names of all, "b0,b1"; NULL: no roll call */
    const char *names[WORLD_BROKERS]; /* NULL: "b" and the index */
    bool kinds;                       /* readers and permits too; see world_kind() */
    bool nothing_lost; /* masters do nothing that could lose a broker that lives a hold */
    struct world_view views[WORLD_BROKERS];
    /* Each reply, and each message of a channel, as it comes; may be NULL. */
    void (*on_reply)(struct world_app *, const struct world_ask *, const char *text);
    void (*on_message)(struct world_app *, const char *text);
};

enum world_verb {
    WORLD_LOCK,
    WORLD_UNLOCK,
    WORLD_RENEW,
    WORLD_MLOCK,
    WORLD_MUNLOCK,
    WORLD_HOLDS, /* those from here on change nothing, */
    WORLD_FORCE, /* or everything */
    WORLD_INFO,
    WORLD_CANCEL, /* of a LOCK with a tag */
    WORLD_PLAIN   /* a plain command of Redis, or a script */
};
enum { WORLD_NAMES = 4 };

/* A request of an application, as it said it. */
struct world_ask {
    enum world_verb verb;
    char text[WORLD_TEXT];
    char name[16], owner[16];
    char names[WORLD_NAMES][16]; /* the first one is `name` */
    int n_names;
    int64_t said_us;
    int64_t lease_ms, maxhold_ms; /* 0: none */
    bool waits;
    char tag[16];          /* ASYNC; "": none */
    int64_t highest_token; /* history: of this name, when it was said */
};

/* An application with one connection at a time. */
struct world_app {
    int index;
    char owner[16];
    bool connected;
    struct world_broker *broker;
    struct session session;
    struct buf out;
    bool wants_close;
    struct world_ask
        asks[WORLD_ASKS]; /* said and not answered; the first n_run have been taken by the broker */
    int n_asks, n_run;
    struct world_ask asyncs[WORLD_ASKS]; /* QUEUED has been said, and their end has not */
    int n_asyncs;
    char cancelled[WORLD_ASKS][WORLD_TEXT]; /* tags that were told to be, the last ones */
    int n_cancelled;
    char replies[WORLD_ASKS][WORLD_TEXT]; /* for scenarios: not looked at yet */
    int n_replies;
    bool wants_renewed; /* it has said TELL: those pushes are kept for it too; else the judge
                         * sees them */
    char pushes[WORLD_ASKS][WORLD_TEXT];
    int n_pushes;
};

struct world_broker {
    int index, n_made;
    bool alive, paused, leaves;
    struct broker b;
    struct dropin *dropin;
    struct quarantine quarantine;
    struct master *masters[WORLD_SERVERS];
    int n_masters;
    int64_t local_us, wall_skew_ms, expected_ms;
    int64_t pace_ms, pace_asks; /* what it had asked by then */
    /* When it was there again, in quarantine; INT64_MAX: it is not. And whether it was in one when
     * it was lost. */
    int64_t back_us[WORLD_SERVERS];
    bool again[WORLD_SERVERS];
    int64_t heard_ms[WORLD_SERVERS]; /* when its ear was last proved to be open */
    char channel[48], name[8];
    struct sim_event *turn, *timer;
};

struct world {
    struct world_conf conf;
    struct fake_server servers[WORLD_SERVERS];
    struct world_broker brokers[WORLD_BROKERS];
    struct world_app apps[WORLD_APPS];
    int n_brokers_made;
    uint64_t n_sessions, turns;
};
extern struct world world;

/* Good settings for a small and quick world. */
void world_defaults(struct world_conf *, uint64_t seed);
void world_begin(const struct world_conf *);
/* Everything ends; nothing may be left (the sanitizer looks). */
void world_end(void);

void world_run_ms(int64_t ms);
/* Until all masters of all brokers are active; at most some minutes. */
void world_settle(void);

/* ---- applications ---- */
void world_connect(int app, int broker, const char *owner);
void world_say(int app, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Gives a script a name: "EVAL <name> numkeys key... arg..." runs it. Both texts are lent. */
void world_script(const char *name, const char *body);
void world_close(int app, bool orderly);
void world_subscribe(int app, const char *channel);
/* The first reply that has not been looked at: "[token validity]", "nil", "1", "-NOTHELD ..."; ""
 * when there is none. */
const char *world_reply(int app);
/* The same for pushes: "lost a 17 gone", "async t timeout". */
const char *world_push(int app);

/* ---- brokers ---- */
void world_broker_kill(int broker);
void world_broker_leave(int broker); /* takes nobody any more, and ends cleanly in a moment */
void world_broker_start(int broker); /* a new one, in the place of one that was killed */
void world_broker_pause(int broker, bool paused);
/* It has been asked for something outside of its turn. */
void world_wake(int broker);
static inline int64_t world_local_ms(const struct world_broker *wb)
{
    return (sim_now_us() + wb->local_us) / 1000;
}

/* As what this owner takes this lock, always the same in one run: NULL: exclusively; else the
 * option of LOCK that says so. `limit` is set to n for LIMIT n, else 0. */
const char *world_kind(const char *name, const char *owner, int *limit);

/* Of all masters of all brokers: questions put by this broker so far. */
int64_t world_asks(int broker);
/* Returns the server of the partition of this name; 0 without a Cluster. */
int world_server_of(const char *name);
/* How many servers hold this lock now. */
int world_copies(const char *name);
const struct fake_lock *world_lock_at(int server, const char *name);
