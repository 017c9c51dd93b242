#pragma once
/*
 * peer_link: asks the other brokers each second whether they can grant locks.
 *
 *   stream_connect --> SENTINEL CKQUORUM, each second --> closed after some, and connected anew
 *
 * Where the address says so it asks over TLS, and shows this broker's certificate to who wants one.
 * It asks without logging in, which a broker allows for this one question, and leaves before those
 * who have not logged in are put out.
 */
#include "session/peers.h"

struct event_base;
struct evdns_base;
struct ssl_ctx_st; /* tls.h */
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

/* Starts to ask these peers, by their addresses now; those of TLS when there is a context. */
struct peer_links *peer_links_new(const struct peer_links_setup *, const struct peers *);
/* Takes the context for connections that are made from now on, which stays the caller's and is
 * there until another takes its place. NULL: peers of TLS are not asked. */
void peer_links_secure(struct peer_links *, struct ssl_ctx_st *);
void peer_links_free(struct peer_links *); /* also NULL */
