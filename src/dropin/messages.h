#pragma once
/*
 * messages: carries what clients publish to the subscribers at all brokers of the same masters.
 *
 *   messages_publish --> listeners here (session/pubsub), at once
 *          |
 *          +--> rounds_publish --> its masters --> subscribers of brokers --> messages_heard
 *                                                                     once, by its number -->
 * pubsub
 *
 * A broker listens at the masters only while one of its clients is subscribed to a channel that is
 * not holdfast's own, and a moment longer. A message is lost to a broker when no master carries it
 * from end to end; nothing is kept for who is not there. Messages of one broker on one channel come
 * in order while no link to a master fails.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct messages;
struct rounds;

struct messages_setup {
    struct rounds *rounds;
    const char *broker; /* its id, of at most MESSAGES_BROKER_MAX bytes; lives on */
    /* Begins or ends to listen at all masters. NULL: there is nothing to listen to. */
    void (*listen)(void *arg, bool on);
    void *arg;
};
enum { MESSAGES_BROKER_MAX = 31 };

/* Who waits until this broker listens; the caller embeds it, zeroed. */
struct messages_wait {
    TAILQ_ENTRY(messages_wait) next;
    bool waits;
    void (*on_ready)(struct messages_wait *, int64_t now_ms);
};

struct messages *messages_new(const struct messages_setup *);
void messages_free(struct messages *); /* also NULL; nobody waits any more */
void messages_set_listen(struct messages *, void (*listen)(void *arg, bool on), void *arg);

/* Sends a message to all who listen. Returns how many clients of this broker were told at once. To
 * holdfast's own channels (channel_is_own) nothing is sent. */
int64_t messages_publish(struct messages *, const char *channel, size_t channel_len,
                         const char *text, size_t len, int64_t now_ms);

/* Master i has said what a broker has published. */
void messages_heard(struct messages *, const char *text, size_t len, int64_t now_ms);
/* What is published at master i is told from now on, or is not. */
void messages_listens(struct messages *, int i, bool listens, int64_t now_ms);

/* Begins to listen, if it does not. True: a majority of masters, of each group, tells of messages,
 * so that each one comes that is published from now on by who has a majority, or there is nothing
 * to listen to. */
bool messages_want(struct messages *, int64_t now_ms);
/* It is wanted, in vain so far: on_ready will run when it is so, or in the first messages_look()
 * after request_timeout. */
void messages_wait(struct messages *, struct messages_wait *, int64_t now_ms);
void messages_stop_waiting(struct messages *, struct messages_wait *);
/* Once a second: ends waits that are over, and listening that nobody wants any more. */
void messages_look(struct messages *, int64_t now_ms);
