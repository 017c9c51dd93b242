#pragma once
/*
 * link: one connection to a broker that never blocks once it is opened (a host name is looked up
 * while it is): poll() its descriptor for link_events(), then link_turn(). Requests and replies go
 * through hiredis, 0.14 or later, which need not know of TLS; replies are RESP2, in the order of
 * the requests. A password in the address is sent first, and its reply taken care of here.
 */
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/url.h"

struct ssl_st;

struct link {
    redisContext *ctx; /* NULL: closed */
    const struct url *url;
    bool wants_write;
    bool connected;     /* it could be written to; with TLS: they have shaken hands */
    struct ssl_st *tls; /* NULL: without */
    struct buf out;     /* requests that are to be written */
    bool auth_due;      /* the next reply is that to AUTH */
    bool denied;        /* it failed because the broker refused the password */
    char error[320];    /* why it failed; stays after link_close() */
};

/* Begins to connect. -1: `error` is set and it is closed. The url must outlive the link. */
int link_open(struct link *l, const struct url *url) MUST_CHECK;
/* Closes in order: the broker releases what this connection holds. A closed link stays closed. */
void link_close(struct link *l);
/* Closes it as a broken network would: the broker releases nothing. */
void link_abort(struct link *l);
/* Closes the sending half: the broker sees the end, and its last replies can be read. -1: the link
 * is closed. */
int link_finish(struct link *l) MUST_CHECK;

static inline bool link_is_open(const struct link *l)
{
    return l->ctx != NULL;
}

int link_fd(const struct link *l);
short link_events(const struct link *l);

/* Queues a request; a closed link takes none. */
void link_send(struct link *l, int argc, const char *const *argv);

/* A request made word by word: {.v = {"LOCK", name}, .n = 2} to begin with. */
struct link_words {
    const char *v[16];
    int n;
    char numbers[4][24];
    int n_numbers;
};
void link_word(struct link_words *, const char *word); /* which is lent */
/* Adds an option with its number. */
void link_option(struct link_words *, const char *word, int64_t number);

/* Writes and reads what `revents` says is possible. -1: the link is closed, `error` says why. */
int link_turn(struct link *l, short revents) MUST_CHECK;

/* Takes one reply that has come, for freeReplyObject(); *reply is NULL when none is whole yet. -1:
 * the link is closed, `error` says why. */
int link_next(struct link *l, redisReply **reply) MUST_CHECK;
