#pragma once
/*
 * story: words for the stories of check_*.c: one world each, told step by step. What a story sets
 * up is ended by world_end().
 */
#include <stdint.h>

#include "world.h"

extern struct world_conf story_conf; /* of the world that story_begin() has made */

/* The worlds of the stories that follow have a list of brokers (safety R15); names: NULL, or one
 * for each broker. */
void story_list(const char *brokers, const char *const *names);
/* A world with these, all masters active; SIM_MUTATION as in check_random.c. For each letter of
 * `owners` there is an application of this owner: the first at broker 0, the second at broker 1,
 * and so on; where there are not so many, at the last one. */
void story_begin(int n_servers, int n_brokers, const char *owners);
/* The same, where each broker has a view of its own; those beyond the first are not there yet, nor
 * their applications. */
void story_begin_as(int n_servers, const struct world_view *views, int n_views, const char *owners);
/* The same as story_begin(), where the first master is the one that these Sentinels name: at first
 * the first server. */
void story_begin_found(int n_servers, int n_brokers, struct fake_sentinels *, const char *owners,
                       uint64_t seed);
/* The same, where the masters are so many partitions of a Redis Cluster. */
void story_begin_parts(int partitions, int n_brokers, const char *owners);
/* Cuts the link of one broker to one master, or heals it. */
void story_cut(int broker, int server, bool cut);
/* Until a request that was just said has run on the servers, and its answers are on their way. */
void story_run_there(void);
/* kill -9, started again at once without its data, and everybody has noticed. */
void story_restart_empty(int server);
/* The token counter of lock `n` at this master. */
int64_t story_counter(int server);
void story_set_counter(int server, int64_t value);

/* This application says it, LOCK or RENEW, and is granted it within some milliseconds: the token.
 */
int64_t story_gets(int app, const char *words);
/* It gives lock `n` back, which it has once. */
void story_frees(int app);
/* The next reply of this application is a grant: its token. */
int64_t story_granted(int app);
/* The same, and the validity that it was told. */
int64_t story_validity_ms(int app);
/* The next reply begins like this; "": there is none. */
void story_answers(int app, const char *expected);
/* The next push begins like this; "": there is none. */
void story_pushed(int app, const char *expected);
/* The state of a master as this broker sees it. */
enum master_state story_state(int broker, int server);
