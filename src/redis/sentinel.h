#pragma once
/*
 * sentinel: asks the Sentinels of a master which server it is.
 *
 * One connection (asker.h) to each, with a round after each fifth of the timeout, and at once when
 * told of a switch. A round is UNSUBSCRIBE, SENTINEL get-master-addr-by-name and SUBSCRIBE to
 * +switch-master in one write: so one connection is enough (a subscribed one may ask nothing in
 * RESP2), and what Sentinels tell is never believed but asked for. What follows from their words is
 * naming's business.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/naming.h"

struct conf_master;
struct event_base;
struct evdns_base;
struct sentinels;
struct ssl_ctx_st;

struct sentinels_setup {
    struct event_base *base;
    struct evdns_base *dns;
    int64_t timeout_ms; /* how long a word counts */
    int64_t max_reply;  /* bytes; a longer one ends a link */
    const char *object; /* of log lines; must live on */
    /* Hears that a Sentinel has said a word, or that words have become too old. Never runs inside a
     * call of this header. */
    void (*on_word)(void *arg);
    void *arg;
};

/* Makes the context for connections to them from the files that the configuration names. */
struct ssl_ctx_st *sentinels_tls_new(const struct conf_master *, char *error, size_t error_size);

/* Starts to connect to the Sentinels of this master, which is found by them. Copies `conf`. */
struct sentinels *sentinels_new(const struct sentinels_setup *, const struct conf_master *conf);
/* Takes user, password and files for TLS after a reload, for the next connect. */
void sentinels_configure(struct sentinels *, const struct conf_master *conf);
void sentinels_free(struct sentinels *); /* also NULL */

const struct naming *sentinels_naming(const struct sentinels *);
/* Returns what each of them says, for people: "s1:26379 names 10.0.0.1:6379, s2:26379: connection
 * refused". It lives until the next call. */
const char *sentinels_words(struct sentinels *, int64_t now_ms);
/* Tells whether each of them has answered, or has not been reached, since the start. */
bool sentinels_have_spoken(const struct sentinels *);
