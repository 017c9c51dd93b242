#pragma once
/*
 * subscriber: listens to one master for messages that it is this broker's turn for a lock
 * (src/redis/lua/call_up.lua), or that another broker has taken one of its holds. It subscribes to
 * the broker's channel over a connection of its own, because a subscribed connection cannot run
 * scripts (RESP2). When it is told to, it also listens to what all brokers say to one another
 * (master_publish).
 *
 * It reconnects for ever. Only speed depends on it: waiters retry by themselves, and brokers ask
 * the masters about what they may have missed. For that it tells up to when it has received every
 * message, which a PING every 300 ms proves.
 */
#include <stdbool.h>
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
    int partition;       /* that it listens to (partition.h); 0 without a Cluster */
    bool is_sharded;     /* the channels are those of the node that keeps it, in a Cluster */
    int64_t max_reply;   /* bytes; a longer one ends the link */
    /* Hears a message from master `index`; `text` is valid during the call. */
    void (*on_call)(void *arg, int index, const char *text, size_t len);
    /* Hears that on_call has been told every message of master `index` from since_ms to heard_ms;
     * since_ms is INT64_MAX when there is no link, or when it has been silent for a second. */
    void (*on_heard)(void *arg, int index, int64_t since_ms, int64_t heard_ms);
    /* Hears what a broker, this one too, has published by master_publish(); `text` likewise. */
    void (*on_said)(void *arg, int index, const char *text, size_t len);
    /* Hears that it will be told of all that is published at master `index` from now on, or of
     * nothing more. */
    void (*on_listens)(void *arg, int index, bool listens);
    void *arg;
};

/* Starts to connect to this master. Copies `conf`. */
struct subscriber *subscriber_new(const struct subscriber_setup *, const struct conf_master *conf,
                                  int index);
/* Takes user, password and files for TLS after a reload, for the next connect. */
void subscriber_configure(struct subscriber *, const struct conf_master *conf);
/* Listens to what brokers say to one another, or no longer. It does not at first. */
void subscriber_listen(struct subscriber *, bool on);
/* Connects there from now on: where Sentinels or a Cluster tell its address there is none
 * before. NULL: there is none. */
void subscriber_move(struct subscriber *, const char *host, int port);
/* Listens to the very server that the link to the master goes to: its name may lead to several, or
 * elsewhere than before. */
void subscriber_keep_to(struct subscriber *, const char *peer);
void subscriber_free(struct subscriber *); /* also NULL */
