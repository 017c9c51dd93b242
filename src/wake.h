#ifndef HOLDFAST_WAKE_H
#define HOLDFAST_WAKE_H
/*
 * wake: hears from one master that it is this broker's turn for a lock (src/lua/call_up.lua). A
 * connection of its own, subscribed to the broker's channel, because one that has subscribed cannot
 * run scripts (RESP2).
 *
 * It comes back by itself for ever. Nothing depends on it but speed: a call that is missed is made
 * good by the retry of those who wait.
 */
#include <stddef.h>
#include <stdint.h>

struct conf_master;
struct event_base;
struct evdns_base;
struct wake;

struct wake_setup {
    struct event_base *base;
    struct evdns_base *dns;
    const char *channel; /* copied */
    int64_t max_reply;   /* bytes; a longer one ends the link */
    /* A message from master `index`; `text` is lent. */
    void (*on_call)(void *arg, int index, const char *text, size_t len);
    void *arg;
};

/* Starts to connect to this master. What `conf` holds is copied. */
struct wake *wake_new(const struct wake_setup *, const struct conf_master *conf, int index);
/* After a reload: user, password and files for TLS count at the next connect. */
void wake_configure(struct wake *, const struct conf_master *conf);
void wake_free(struct wake *); /* also NULL */
#endif
