#pragma once
/*
 * pubsub: who listens to which channel or pattern, and messages to them.
 *
 * Messages are sent in the order in which they were published; one that many listen to, or that has
 * to be compared with many patterns, over several turns of the loop.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

/* What one connection may have; the caller compares n_subscriptions before it subscribes. */
enum { PUBSUB_SUBSCRIPTIONS_MAX = 1024, PUBSUB_PATTERNS_MAX = 128, PUBSUB_NAME_MAX = 1024 };
/* Different patterns of all connections: each message is compared with all of them. */
enum { PUBSUB_PATTERNS_ALL_MAX = 1024 };

/* Subscribes; `is_pattern` for PSUBSCRIBE. A repeat changes nothing. Returns how many channels and
 * patterns the session then has. */
uint32_t pubsub_subscribe(struct session *, const char *name, size_t len, bool is_pattern);
uint32_t pubsub_unsubscribe(struct session *, const char *name, size_t len, bool is_pattern);
/* Returns true when somebody is subscribed to this very pattern. */
bool pubsub_has_pattern(const char *pattern, size_t len);
bool pubsub_is_subscribed(const struct session *, const char *name, size_t len, bool is_pattern);

/* Ends all subscriptions of one kind; calls `each` for each of them with the name and how many are
 * left. */
void pubsub_unsubscribe_all(struct session *, bool is_pattern,
                            void (*each)(void *arg, const char *name, size_t len, uint32_t left),
                            void *arg);

/* Ends every subscription without a message, for a session that ends. */
void pubsub_leave(struct session *);

/* Returns how many subscriptions of one kind the session has. */
uint32_t pubsub_count_session(const struct session *, bool is_pattern);

/* Returns true when somebody listens to this channel and a message to it would not be dropped. */
bool pubsub_is_heard(const char *channel, size_t len);
/* Returns false when a message to this channel would reach nobody, so that the caller need not make
 * one. */
bool pubsub_wanted(const char *channel, size_t len);

/* Sends the message to everybody who listens now (to a session once for the channel and once for
 * each pattern that fits). Returns how many were sent at once; pubsub_turn() sends the others. The
 * message is dropped, and counted, when too many wait. */
uint32_t pubsub_publish(const char *channel, size_t channel_len, const char *text, size_t text_len,
                        int64_t now_ms);

/* Goes on with the messages that wait; call it once in each turn of the loop. */
void pubsub_turn(int64_t now_ms);
/* Returns true when messages wait: the next turn must not wait for events. */
bool pubsub_waits(void);

/* For PUBSUB CHANNELS, NUMSUB and NUMPAT. `each` returns false when it has seen enough. */
void pubsub_each_channel(bool (*each)(void *arg, const char *name, size_t len, uint32_t n_sessions),
                         void *arg);
uint32_t pubsub_count_channels(void);
uint32_t pubsub_count_channel(const char *name, size_t len);
uint32_t pubsub_count_patterns(void);
/* Returns how many of the channels and patterns are not holdfast's own. */
uint32_t pubsub_count_foreign(void);
