#pragma once
/*
 * fake_master: master.h in virtual time. Each `struct master` is the link of one broker to one
 * fake_server, over a network that delays, loses, repeats and cuts as it is told.
 *
 *   master_flush --> on its way --> [cut: held] --> server [stopped: backlog] --> answer on its way
 * --> inbox fake_master_pump --> on_answer
 *
 * As over TCP: what travels in one direction stays in order, and when a link breaks, what was on
 * its way arrives up to some point and not beyond; everything unanswered gets MASTER_UNKNOWN.
 */
#include <stdbool.h>
#include <stdint.h>

#include "fake_sentinels.h"
#include "fake_server.h"
#include "redis/master.h"

/* How the network behaves from now on. */
struct fake_net {
    int64_t latency_min_us, latency_max_us; /* one way */
    int slow_per_mille;                     /* messages that take up to slow_us */
    int64_t slow_us;
    int loss_per_mille; /* of packets to the server: the link breaks there */
    int copy_per_mille; /* of packets to the server: the same again later, its reply swallowed */
    int64_t copy_us;    /* so much later at most */
};
extern struct fake_net fake_net;

/* What only the fake has to know of the broker whose link it is. */
struct fake_link {
    int64_t local_us;    /* what its clock shows beyond sim_now_us() */
    const char *slot;    /* as which master it serves; NULL: its own name */
    const char *channel; /* on which it hears that it is its turn; NULL: it does not listen */
    struct fake_sentinels *sentinels; /* it is where they say; NULL: at its home */
    void (*wake)(void *); /* there is something for fake_master_pump(); may only take note of it */
    void (*on_call)(void *, int index, const char *text, size_t len); /* from fake_master_pump() */
    void *arg;
};
struct master *fake_master_new(const struct master_setup *, struct fake_server *, int index,
                               const struct fake_link *);

/* Delivers what has come: answers, lost links, changes of state. A broker that stands still does
 * not call it. */
void fake_master_pump(struct master *, int64_t now_ms);

/* Since when it hears all that is said to its channel, by its broker's clock; INT64_MAX: it does
 * not. */
int64_t fake_master_hears_since_ms(const struct master *);
/* What is said to its channel is lost, and it does not know; or no more from now on. */
void fake_master_deafen(struct master *, bool deaf);
/* Nothing gets through between this broker and the server, silently. Healed, what is held arrives,
 * in order. */
void fake_master_cut(struct master *, bool cut);
bool fake_master_is_cut(const struct master *);
/* Its ear for its Sentinels. */
struct fake_ear *fake_master_ear(struct master *);
/* The link breaks, as by a reset somewhere on the way. */
void fake_master_break(struct master *);

/* SIGSTOP and SIGCONT. */
void fake_server_stop(struct fake_server *, bool stop);
/* kill -9, and started again. */
void fake_server_kill(struct fake_server *);
void fake_server_start(struct fake_server *, bool keep_data);
/* FLUSHALL is fake_server_flush(): links stay. */
