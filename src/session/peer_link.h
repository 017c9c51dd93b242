#pragma once
/*
 * peer_link: asks the other brokers each second whether they can grant locks.
 *
 *   stream_connect --> SENTINEL CKQUORUM, each second --> closed after some, and connected anew
 *
 * It asks without logging in, which a broker allows for this one question, and leaves before those
 * who have not logged in are put out.
 */
#include "session/peers.h"

struct event_base;
struct evdns_base;
struct peer_links;

struct peer_links_setup {
    struct event_base *base;
    struct evdns_base *dns;
    const char *service; /* the name that is asked for; is copied */
    /* Hears what peer i has said, or that its link has broken. Never runs inside a call of this
     * header. */
    void (*on_word)(void *arg, int i, enum peers_word);
    void *arg;
};

/* Starts to ask these peers, by their addresses now. */
struct peer_links *peer_links_new(const struct peer_links_setup *, const struct peers *);
void peer_links_free(struct peer_links *); /* also NULL */
