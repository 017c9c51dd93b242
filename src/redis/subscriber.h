#ifndef HOLDFAST_SUBSCRIBER_H
#define HOLDFAST_SUBSCRIBER_H
/*
 * subscriber: hears from one master that it is this broker's turn for a lock
 * (src/redis/lua/call_up.lua), or that somebody has taken one of its holds away. A connection of
 * its own, subscribed to the broker's channel, because one that has subscribed cannot run scripts
 * (RESP2).
 *
 * It comes back by itself for ever. Nothing depends on it but speed: a call that is missed is made
 * good by the retry of those who wait, and what may have been missed is asked of the masters. So it
 * says up to when it has heard everything: a PING every 300 ms proves that.
 */
#include <stddef.h>
#include <stdint.h>

struct conf_master;
struct event_base;
struct evdns_base;
struct subscriber;

struct subscriber_setup {
    struct event_base *base;
    struct evdns_base *dns;
    const char *channel; /* copied */
    int64_t max_reply;   /* bytes; a longer one ends the link */
    /* A message from master `index`; `text` is lent. */
    void (*on_call)(void *arg, int index, const char *text, size_t len);
    /* Everything that master `index` has said since since_ms has been delivered, up to what it said
     * at heard_ms; INT64_MAX: there is no link, or it has been silent for a second. */
    void (*on_heard)(void *arg, int index, int64_t since_ms, int64_t heard_ms);
    void *arg;
};

/* Starts to connect to this master. What `conf` holds is copied. */
struct subscriber *subscriber_new(const struct subscriber_setup *, const struct conf_master *conf,
                                  int index);
/* After a reload: user, password and files for TLS count at the next connect. */
void subscriber_configure(struct subscriber *, const struct conf_master *conf);
void subscriber_free(struct subscriber *); /* also NULL */
#endif
