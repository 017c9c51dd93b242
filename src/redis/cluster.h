#pragma once
/*
 * cluster: asks the nodes of a Redis Cluster which of them keeps each partition (partition.h), and
 * has one link to each for all masters there.
 *
 * One connection (asker.h) to each node that is configured or that another one has told of. Each is
 * asked for CLUSTER NODES again after a fifth of the timeout, or soon when in doubt. What follows
 * from their words is the business of shards.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/shards.h"

struct cluster;
struct conf_master;
struct event_base;
struct evdns_base;
struct link;

struct cluster_setup {
    struct event_base *base;
    struct evdns_base *dns;
    int64_t timeout_ms; /* how long a word counts */
    int64_t max_reply;  /* bytes; a longer one ends a link */
};

/* Starts to connect to the nodes that are configured. Copies `conf`. partitions_use() was before.
 */
struct cluster *cluster_new(const struct cluster_setup *, const struct conf_master *conf);
/* Takes user, password and files for TLS after a reload, for the next connect. */
void cluster_configure(struct cluster *, const struct conf_master *conf);
void cluster_free(struct cluster *); /* also NULL; nobody has a seat at a link of it */

/* Calls on_word whenever a node has said a word, or words have become too old: the keeper of the
 * partition may be another one, and counts until another time. Never inside a call of this header.
 */
void cluster_follow(struct cluster *, int partition, void (*on_word)(void *arg), void *arg);
void cluster_leave(struct cluster *, int partition); /* no more */
const struct shards *cluster_shards(const struct cluster *);
/* A node has said, or shown, that things are not as they were: asks all soon. */
void cluster_doubt(struct cluster *);
/* Returns the link to the server there, for one more user of it. */
struct link *cluster_link(struct cluster *, const char *host, int port);
/* One of its users, who has left his seat, does not need it any more. Without users it ends, not
 * inside this call nor in a callback of the link. */
void cluster_unlink(struct cluster *, const struct link *);

/* Returns what each node says, for people. It lives until the next call. */
const char *cluster_words(struct cluster *, int64_t now_ms);
/* Tells whether each node that is configured has answered, or has not been reached, since the
 * start. */
bool cluster_has_spoken(const struct cluster *);
