#pragma once
/*
 * asker: a connection to one server that is kept for ever and is asked the same thing at each beat:
 * a Sentinel, or a node of a Redis Cluster.
 *
 *   stream_connect --> login --> ask --> ... --> asker_done --> ask at the next beat, or soon
 *        ^                                  |
 *        +---------- the next beat ---------+  it does not answer, or not as it should
 *
 * What is asked, and what follows from the answer, is the user's business. All that one user asks
 * belong to one set: one way to log in, one beat.
 */
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/reply.h"
#include "net/stream.h"
#include "redis/naming.h"

struct asker;
struct conf_sentinel;
struct evdns_base;
struct ssl_ctx_st;
struct tls_files;

/* `arg` is the asker's. Never inside a call of this header, but for on_beat. */
struct asker_events {
    /* Time has passed, before anything else is done. False: the user has ended the asker. */
    bool (*on_beat)(void *arg, int64_t now_ms);
    /* Appends the questions. */
    void (*ask)(void *arg, struct buf *out);
    /* Takes a reply, no error and no status; also when nothing is asked. Returns why the connection
     * is of no use, or NULL. */
    const char *(*on_reply)(void *arg, const struct reply *);
    void (*on_end)(void *arg); /* the server has ended the connection; may be NULL */
};

struct asker_set {
    struct event_base *base;
    struct evdns_base *dns;
    int64_t beat_ms, haste_ms; /* haste_ms: so long after a question the next may come early */
    int64_t max_reply;         /* bytes; a longer one ends a connection */
    const char *object, *kind; /* of log lines: "node"; must live on */
    const struct asker_events *events;
    bool secure;
    /* The rest is asker's. */
    char *user, *password, *server_name;
    struct ssl_ctx_st *tls; /* NULL: not secure, or its files are not good */
    TAILQ_HEAD(, asker) all;
};

struct asker {
    TAILQ_ENTRY(asker) next;
    struct asker_set *set;
    void *arg;
    struct naming_address address;
    char name[NAMING_HOST_MAX + 16]; /* in words */
    struct stream stream;
    struct reply reply;
    struct event beat; /* always set */
    int64_t since_ms;  /* it was asked, or the connect began; 0: neither */
    bool is_asked;
    bool hastens; /* the next beat comes early; or, while it is asked, another question follows */
    bool spoke;   /* it has answered or failed */
    char error[REPLY_WORDS_MAX + 40]; /* of the last connection; "": it is good */
};

/* Returns the address of a server as it is configured. */
struct naming_address asker_address(const struct conf_sentinel *);
/* Writes an address in words: "10.0.0.1:6379", "[::1]:6379". */
void asker_write_address(char *out, size_t size, const struct naming_address *);

/* Makes a set without askers. What stands above `user` is filled in. */
void asker_set_init(struct asker_set *);
/* Takes user, password (NULL: none) and, if the set is secure, files for TLS and the name in the
 * certificate (NULL: the host), for the next connect. Copies all. */
void asker_set_login(struct asker_set *, const char *user, const char *password,
                     const struct tls_files *, const char *server_name);
void asker_set_fini(struct asker_set *); /* its askers have ended */

/* Begins to ask the server at this address, in the next turn of the loop. */
void asker_init(struct asker *, struct asker_set *, const struct naming_address *, void *arg);
void asker_fini(struct asker *);

/* It has said what was asked for: whatever was wrong is over. */
void asker_heard(struct asker *);
/* All answers to the last question are there. */
void asker_done(struct asker *);
/* Asks before the next beat, if it is connected. */
void asker_hasten(struct asker *);
