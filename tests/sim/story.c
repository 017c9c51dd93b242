/* The words of the stories, as thin as can be: see story.h. */
#include "story.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world_conf story_conf;
static const char *brokers, *broker_names[WORLD_BROKERS];

static void conf_begin(int n_servers, int n_brokers)
{
    const char *mutation = getenv("SIM_MUTATION");
    fake_mutation = mutation ? (enum fake_mutation)atoi(mutation) : FAKE_AS_IT_SHOULD_BE;
    world_defaults(&story_conf, 1);
    story_conf.n_servers = n_servers;
    story_conf.n_brokers = n_brokers;
    story_conf.brokers = brokers;
    memcpy(story_conf.names, broker_names, sizeof story_conf.names);
    fake_net = (struct fake_net){.latency_min_us = 1000, .latency_max_us = 1000};
}

void story_list(const char *list, const char *const *names)
{
    brokers = list;
    for (int i = 0; i < WORLD_BROKERS; i++)
        broker_names[i] = names ? names[i] : NULL;
}

void story_begin_as(int n_servers, const struct world_view *views, int n_views, const char *owners)
{
    conf_begin(n_servers, n_views);
    memcpy(story_conf.views, views, (size_t)n_views * sizeof views[0]);
    world_begin(&story_conf);
    for (int i = 1; i < n_views; i++)
        world_broker_kill(i);
    world_settle();
    char owner[2] = {owners[0]};
    world_connect(0, 0, owner);
}

static void begin_with(int n_brokers, const char *owners)
{
    world_begin(&story_conf);
    if (story_conf.sentinels)
        fake_sentinels_name(story_conf.sentinels, &world.servers[0]);
    world_settle();
    for (int i = 0; owners[i]; i++) {
        char owner[2] = {owners[i]};
        world_connect(i, i < n_brokers ? i : n_brokers - 1, owner);
    }
}

void story_begin(int n_servers, int n_brokers, const char *owners)
{
    conf_begin(n_servers, n_brokers);
    begin_with(n_brokers, owners);
}

void story_begin_parts(int partitions, int n_brokers, const char *owners)
{
    conf_begin(partitions, n_brokers);
    story_conf.partitions = partitions;
    begin_with(n_brokers, owners);
}

void story_begin_found(int n_servers, int n_brokers, struct fake_sentinels *sentinels,
                       const char *owners, uint64_t seed)
{
    conf_begin(n_servers, n_brokers);
    story_conf.seed = seed;
    story_conf.sentinels = sentinels;
    begin_with(n_brokers, owners);
}

void story_cut(int broker, int server, bool cut)
{
    fake_master_cut(world.brokers[broker].masters[server], cut);
}

void story_run_there(void)
{
    sim_run_until(sim_now_us() + 1500);
}

void story_restart_empty(int server)
{
    fake_server_kill(&world.servers[server]);
    fake_server_start(&world.servers[server], false);
    world_run_ms(100);
}

static const char *counter_field(void)
{
    static char field[16];
    snprintf(field, sizeof field, "%d", token_bucket("n", 1));
    return field;
}

int64_t story_counter(int server)
{
    return fake_server_counter(&world.servers[server], counter_field());
}

void story_set_counter(int server, int64_t value)
{
    fake_server_set_counter(&world.servers[server], counter_field(), value);
}

static int64_t grant(int app, int64_t *validity_ms)
{
    int64_t token = 0;
    const char *reply = world_reply(app);
    ck_assert_msg(sscanf(reply, "[%" SCNd64 " %" SCNd64 "]", &token, validity_ms) == 2,
                  "no grant: '%s'", reply);
    ck_assert_int_gt(*validity_ms, 0);
    return token;
}

int64_t story_granted(int app)
{
    int64_t validity_ms;
    return grant(app, &validity_ms);
}

int64_t story_validity_ms(int app)
{
    int64_t validity_ms = 0;
    (void)grant(app, &validity_ms);
    return validity_ms;
}

static void begins(const char *what, const char *expected)
{
    ck_assert_msg(strncmp(what, expected, strlen(expected)) == 0 && (*expected || !*what),
                  "'%s', not '%s'", what, expected);
}

void story_answers(int app, const char *expected)
{
    begins(world_reply(app), expected);
}

int64_t story_gets(int app, const char *words)
{
    world_say(app, "%s", words);
    world_run_ms(10);
    return story_granted(app);
}

void story_frees(int app)
{
    world_say(app, "UNLOCK n");
    world_run_ms(10);
    story_answers(app, "1");
}

void story_pushed(int app, const char *expected)
{
    begins(world_push(app), expected);
}

enum master_state story_state(int broker, int server)
{
    return master_status(world.brokers[broker].masters[server],
                         world_local_ms(&world.brokers[broker]))
        ->state;
}
