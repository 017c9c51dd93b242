#pragma once
/*
 * rounds: the masters of a broker, and what its rounds have in common: the clock of tokens (safety
 * R4), the veto of a master with other settings (R6), and the one master whose line counts for a
 * name. The masters are all that are configured, never only those that are connected (R3).
 *
 * Each name has a group of masters, whose majority decides about it: all of them, or in a Redis
 * Cluster those of its partition (partition.h). They stand one group behind the other:
 *
 *     masters[0 .. n-1]   the first group      masters[n .. 2n-1]   the second      ... n_all
 *
 * The votes of a round are numbered within its group, from 0 on; here `i` is one of all masters.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "redis/master.h"
#include "redis/partition.h"
#include "redis/quorum.h"
#include "redis/token.h"

struct undelivered;

TAILQ_HEAD(round_list, round);

enum { ROUNDS_MASTERS_MAX = PARTITIONS };
_Static_assert((int)QUORUM_MASTERS_MAX <= (int)ROUNDS_MASTERS_MAX, "room for a group");

struct rounds {
    struct master *masters[ROUNDS_MASTERS_MAX];
    int n, n_all; /* in a group; in all groups */
    int64_t request_timeout_ms;
    struct token_clock clock;     /* of tokens */
    struct round_list asked;      /* undecided, oldest first */
    struct round_list decided[2]; /* their verdict is to be delivered; [true]: of renewals */
    struct undelivered *undelivered[ROUNDS_MASTERS_MAX];
    uint64_t rank[ROUNDS_MASTERS_MAX]; /* hash of the identity, the same at every broker */
    bool closed;
    int64_t n_asks; /* questions put, each to all masters of a group */
};

/* Returns the clock of a master less our wall clock; 0: not known yet. */
int64_t rounds_clock_offset_ms(const struct rounds *, const struct master_status *);

/* Returns the time of master i at `at_ms`. */
int64_t rounds_master_ms(struct rounds *, int i, int64_t at_ms, int64_t now_ms);

void rounds_init(struct rounds *, int64_t request_timeout_ms);
/* Adds a master, which the caller owns: all of a partition, then those of the next. `identity`
 * decides in which order brokers agree on masters: it is the same text at every broker for the same
 * master. */
void rounds_add_master(struct rounds *, struct master *, const char *identity);
/* Returns the first master of the group that decides about this name; */
static inline int rounds_first(const struct rounds *b, const char *name, size_t name_len)
{
    return partition_of(name, name_len) * b->n;
}
/* and of the group that master i belongs to. */
static inline int rounds_group(const struct rounds *b, int i)
{
    return i - i % b->n;
}
/* Ends all sending: what is asked fails from now on. The masters may be freed after this, and
 * round_fini() then brings every round to its end. */
void rounds_close(struct rounds *);
/* Takes the wall clock, which the floor of tokens follows within what the clocks of the masters
 * allow. Now and then is enough. */
void rounds_set_wall(struct rounds *, int64_t wall_ms, int64_t now_ms);
/* Returns the floor for a new token: above every one given or seen here before (token.h). */
int64_t rounds_floor(struct rounds *, int64_t now_ms);
/* Returns where a master's counters go on when those of too few others are known: above every token
 * that brokers can have given. */
int64_t rounds_base(struct rounds *, int64_t now_ms);
void rounds_saw_token(struct rounds *, int64_t token);
/* Return the bucket and the counter that the tokens of this name come from (token.h). */
int rounds_bucket(const struct rounds *, const char *name, size_t name_len); /* -1: base */
void rounds_counter(const struct rounds *, const char *name, size_t name_len,
                    char out[TOKEN_COUNTER_MAX + 1]);

/* Returns the master whose line counts for this name, as a number within its group: all brokers
 * agree on it while they see the same masters active. -1: none is active. */
int rounds_agreed(struct rounds *, const char *name, size_t name_len, int64_t now_ms);

/* Returns in words why this broker may neither grant nor renew anything, whatever the other masters
 * say: a master has settings of other brokers in force (safety R6). NULL: it may. While it may not,
 * what is asked of the masters has no votes, and only what gives back is sent. */
const char *rounds_veto(const struct rounds *);
/* Tells whether any name can be granted: a majority of a group can vote now, and no master has a
 * veto. */
bool rounds_has_quorum(struct rounds *, int64_t now_ms);

/* Sends what masters must still hear about this lock, where it was turned away before: its owner
 * asks for it anew, and must not find what he has given back. Tells whether there was any. */
bool rounds_resend(struct rounds *, const char *name, size_t name_len, int64_t now_ms);
/* Master i is back (active or in quarantine): sends what it must still hear. */
void rounds_master_back(struct rounds *, int i, int64_t now_ms);
/* Publishes a text to all brokers that listen (subscriber.h), through each master of the channel's
 * group that can be reached. */
void rounds_publish(struct rounds *, const char *channel, size_t channel_len, const char *text,
                    size_t len, int64_t now_ms);
/* Sends what has been asked since the last time. Once at the end of each turn of the loop. */
void rounds_send(struct rounds *, int64_t now_ms);
