/*
 * Random schedules: applications that lock, wait, enter again, renew, give up and vanish, at one to
 * three brokers in front of one, three or five masters, or of the partitions of a Redis Cluster,
 * while links break, servers stop and restart, brokers stand still and die. history.c judges; at
 * the end everything heals, and nothing may be left.
 *
 * SIM_SEEDS=n runs n seeds from SIM_FIRST (1) on, each SIM_STEP (1) above the one before;
 * SIM_SECONDS=n goes on for so long. SIM_SEED=n runs this one alone and writes a trace.
 * SIM_MUTATION=n makes a deliberate mistake (fake_server.h) and then has to fail: see
 * check_mutations.c. Without any of these the seeds of the file `seeds` come first.
 *
 * A run counts when enough locks were granted while something was broken. One that has too few goes
 * on, with faults that let grants through; one that has too few even then is void, and that fails.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "faults.h"
#include "history.h"
#include "world.h"

enum { RUN_MS = 20000, RUN_MAX_MS = 1600000, ENOUGH = 5, NAMES = 3, ASYNCS_MAX = 8 };

static uint64_t seed;
static struct {
    int apps, names, ask_gap_ms, force_per_mille, async_per_mille;
    struct faults_plan faults;
} plan;
static int n_tags;
static bool ending, overtime;

/* ---- applications ---- */

static void connect_somewhere(int index)
{
    int broker = (int)sim_random(world.conf.n_brokers);
    char owner[8];
    const struct world_broker *wb = &world.brokers[broker];
    if (!wb->alive || wb->paused || wb->leaves)
        return;
    snprintf(owner, sizeof owner, "o%d", (int)sim_random(100) < 15 ? 0 : index);
    world_connect(index, broker, owner);
}

/* Several names at once, now and then, of which this owner takes each exclusively. */
static bool say_many(int index, const char *name, char *text)
{
    char other[8];
    int limit;
    const char *owner = world.apps[index].owner;
    snprintf(other, sizeof other, "n%d", (int)sim_random(plan.names));
    if (!world.conf.kinds || !sim_chance(150) || strcmp(name, other) == 0 ||
        world_kind(name, owner, &limit) || world_kind(other, owner, &limit))
        return false;
    sprintf(text, "MLOCK 2 %s %s", name, other);
    return true;
}

/* Leaves the connection free meanwhile, if this run has such: some of them for an owner of its own.
 */
static void say_async(int index, char *text)
{
    if (plan.async_per_mille == 0 || !sim_chance(plan.async_per_mille) ||
        world.apps[index].n_asyncs >= ASYNCS_MAX)
        return;
    snprintf(text + strlen(text), WORLD_TEXT - strlen(text), " ASYNC t%d", ++n_tags);
    if (!world.conf.kinds && sim_chance(300)) /* else the owner decides about the kind */
        snprintf(text + strlen(text), WORLD_TEXT - strlen(text), " OWNER p%d", index);
}

static void say_lock(int index, const char *name)
{
    char text[WORLD_TEXT];
    int64_t lease_ms = world.conf.broker.lease_ms;
    int limit;
    const char *kind = world_kind(name, world.apps[index].owner, &limit);
    if (!say_many(index, name, text))
        snprintf(text, sizeof text, "LOCK %s%s%s", name, kind ? " " : "", kind ? kind : "");
    bool is_many = text[0] == 'M';
    if (sim_chance(600))
        snprintf(text + strlen(text), sizeof text - strlen(text), " WAIT %" PRId64,
                 sim_chance(100) ? 0 : sim_between(1, 4000));
    if (sim_chance(350))
        snprintf(text + strlen(text), sizeof text - strlen(text), " LEASE %" PRId64,
                 sim_between(lease_ms / 8, world.conf.broker.max_lease_ms));
    if (sim_chance(100))
        snprintf(text + strlen(text), sizeof text - strlen(text), " MAXHOLD %" PRId64,
                 sim_between(50, 3 * lease_ms));
    if (sim_chance(200))
        strcat(text, " TELL");
    if (!is_many && sim_chance(100))
        strcat(text, " FAIR");
    say_async(index, text);
    world_say(index, "%s", text);
}

/* One of those that are open, now and then one that is not. */
static void say_cancel(int index)
{
    const struct world_app *app = &world.apps[index];
    if (app->n_asyncs > 0 && sim_chance(900))
        world_say(index, "CANCEL %s", app->asyncs[sim_random(app->n_asyncs)].tag);
    else
        world_say(index, "CANCEL t%d", n_tags);
}

/* What only runs with tags say. */
static void say_for_async(int index, const char *name)
{
    if (sim_chance(500))
        say_cancel(index);
    else
        world_say(index, "UNLOCK %s OWNER p%d", name, index);
}

static void say_something(int index)
{
    char name[8];
    int dice = (int)sim_random(1000);
    snprintf(name, sizeof name, "n%d", (int)sim_random(plan.names));
    if (plan.async_per_mille > 0 && sim_chance(150))
        say_for_async(index, name);
    else if (dice < plan.force_per_mille)
        world_say(index, "FORCEUNLOCK %s", name);
    else if (dice < (overtime ? 250 : 450)) /* else one owner may enter its hold for ever */
        say_lock(index, name);
    else if (dice < 780)
        world_say(index, "UNLOCK %s", name);
    else if (dice < 880 && sim_chance(300))
        world_say(index, "RENEW %s LEASE %" PRId64, name,
                  sim_between(200, world.conf.broker.max_lease_ms));
    else if (dice < 900)
        world_say(index, "RENEW %s", name);
    else if (dice < 950)
        world_say(index, "HOLDS %s", name);
    else
        world_say(index, "LOCKINFO %s", name);
}

static void on_app(void *arg)
{
    int index = (int)(intptr_t)arg;
    struct world_app *app = &world.apps[index];
    if (ending)
        return;
    if (!app->connected)
        connect_somewhere(index);
    else if (sim_chance(overtime ? 150 : 15) && !app->broker->paused)
        world_close(index, sim_chance(500));
    else if (app->n_asks < 1 + (int)sim_random(3))
        say_something(index);
    sim_at(sim_now_us() + sim_between(1, 2 * plan.ask_gap_ms) * 1000, on_app, arg);
}

/* ---- one run ---- */

/* Masters that restart, each back before it is missed: their brokers lose nothing (promise 7). */
static void plan_restarts_alone(struct world_conf *conf)
{
    conf->broker.lease_ms = sim_between(1500, 3000);
    conf->broker.max_lease_ms = conf->broker.lease_ms * 2;
    plan.faults.all_die = sim_chance(700);
    plan.faults.gap_ms = (int)sim_between(100, 600);
    plan.faults.longest_ms = (int)conf->broker.lease_ms / 4;
    plan.faults.alone_ms = (int)conf->broker.lease_ms;
    plan.faults.bad_net = plan.faults.jumps = false;
    conf->nothing_lost = true;
}

static void make_plan(struct world_conf *conf)
{
    static const int n_servers[] = {1, 3, 3, 3, 5};
    sim_begin(seed);
    world_defaults(conf, seed);
    conf->n_servers = n_servers[sim_random(5)];
    conf->n_brokers = (int)sim_between(1, 3);
    conf->broker.lease_ms = sim_between(400, 3000);
    conf->broker.max_lease_ms = conf->broker.lease_ms * 2;
    conf->broker.request_timeout_ms = sim_between(30, 250);
    conf->broker.claim_timeout_ms = sim_between(100, conf->broker.lease_ms / 3 + 100);
    conf->broker.min_validity_ms = sim_between(0, 100);
    conf->broker.on_disconnect = (enum conf_on_disconnect)sim_random(3);
    conf->broker.on_lost = sim_chance(200) ? CONF_LOST_CLOSE : CONF_LOST_NOTIFY;
    conf->broker.handover_max_count = sim_between(0, 4);
    conf->kinds = seed % 2 == 0;
    if (seed % 3 == 0)
        conf->brokers = conf->n_brokers == 1 ? "b0" : conf->n_brokers == 2 ? "b0,b1" : "b0,b1,b2";
    plan.apps = (int)sim_between(2, WORLD_APPS);
    plan.names = (int)sim_between(1, NAMES);
    plan.ask_gap_ms = (int)sim_between(2, 300);
    plan.faults.gap_ms = (int)sim_between(100, 3000);
    plan.faults.longest_ms = (int)sim_between(100, 6000);
    plan.faults.restarts = sim_chance(500);
    plan.faults.jumps = sim_chance(150);
    plan.faults.pauses = sim_chance(500);
    /* a broker that has just started cannot know that a clock has jumped */
    plan.faults.kills = sim_chance(400) && !plan.faults.jumps;
    plan.faults.refuses = sim_chance(300);
    plan.faults.bad_net = sim_chance(700);
    plan.force_per_mille = sim_chance(150) ? 20 : 0;
    plan.async_per_mille = sim_chance(500) ? (int)sim_between(50, 800) : 0;
    n_tags = 0;
    conf->wall_skew_ms = plan.faults.restarts ? 0 : sim_random(10000);
    fake_net = (struct fake_net){
        .latency_min_us = 50, .latency_max_us = sim_between(100, 5000), .copy_us = 1000000};
    /* drawn last, so that the plans of seeds that are kept stay what they were */
    plan.faults.all_die = plan.faults.restarts && sim_chance(300);
    plan.faults.alone_ms = 0;
    if (plan.faults.restarts && !plan.force_per_mille && sim_chance(200))
        plan_restarts_alone(conf);
    if (!conf->nothing_lost &&
        sim_chance(120)) /* a master alone that restarts twice may lose some */
        conf->partitions = conf->n_servers = sim_chance(500) ? 2 : 4;
    sim_end();
}

static bool has_open(const struct world_app *app)
{
    return app->n_asks + app->n_asyncs > 0;
}

static bool is_quiet(void)
{
    for (int i = 0; i < WORLD_APPS; i++) {
        if (world.apps[i].connected && has_open(&world.apps[i]))
            return false;
    }
    return true;
}

/* Applications at different brokers that wait for each other's locks do so for ever: one of them
 * goes. */
static void break_circle(void)
{
    for (int i = 0; i < WORLD_APPS; i++) {
        const struct world_app *app = &world.apps[i];
        if (app->connected && has_open(app) && !LIST_EMPTY(&app->session.holds)) {
            world_close(i, true);
            return;
        }
    }
}

/* Everybody who holds gives up, until everybody who waits has been served. */
static void drain(void)
{
    for (int round = 0; round < 2000 && !is_quiet(); round++) {
        for (int i = 0; i < WORLD_APPS; i++) {
            bool is_free = world.apps[i].connected && world.apps[i].n_asks == 0;
            for (int n = 0; is_free && n < plan.names; n++)
                world_say(i, "UNLOCK n%d", n);
            for (int n = 0; is_free && plan.async_per_mille > 0 && n < plan.names; n++)
                world_say(i, "UNLOCK n%d OWNER p%d", n, i);
        }
        world_run_ms(500);
        if (round % 20 == 19)
            break_circle();
    }
    history_check_answered();
}

static void check_nothing_left(void)
{
    for (int i = 0; i < world.conf.n_servers; i++) {
        struct fake_lock l;
        if (fake_server_count_locks(&world.servers[i], &l) == 0)
            continue;
        history_fail("server %s still has %s for %s under %s", world.servers[i].name, l.key,
                     l.owner, l.op);
    }
    for (int i = 0; i < world.conf.n_brokers; i++) {
        const struct broker *b = &world.brokers[i].b;
        if (b->locks.count || b->n_holds || b->n_waiters || b->n_renewed || b->n_jeopardy)
            history_fail(
                "broker %d still knows %zu locks, %u holds, %u waiters, %u renewed, %u in jeopardy",
                i, b->locks.count, b->n_holds, b->n_waiters, b->n_renewed, b->n_jeopardy);
    }
}

/* Promise 3: every name is free within a lease, and can be had. */
static void check_all_free(void)
{
    for (int i = 0; i < WORLD_APPS; i++) {
        if (world.apps[i].connected)
            world_close(i, sim_chance(500));
    }
    world_run_ms(world.conf.broker.max_lease_ms + 8000);
    check_nothing_left();
    world_connect(0, 0, "last");
    for (int n = 0; n < plan.names; n++) {
        world_say(0, "LOCK n%d", n);
        world_run_ms(200);
        if (world_reply(0)[0] != '[')
            history_fail("n%d cannot be had at the end", n);
        world_say(0, "UNLOCK n%d", n);
        world_run_ms(200);
        if (strcmp(world_reply(0), "1") != 0)
            history_fail("n%d cannot be given back at the end", n);
    }
    world_close(0, true);
}

/* Promise 4, when all is well again: whoever waits, at whatever broker, gets it, soon after the one
 * before him has given it back; with FAIR in the order in which they came. A broker that is next in
 * line may die; what was called up there is lost, and those behind it then ask by themselves, in
 * any order. */
static void check_line(void)
{
    bool fair = sim_chance(500), dies = world.conf.n_brokers > 1 && sim_chance(300), dead = false;
    int64_t patience_ms = 2000, waiting_ms = 0;
    int last = -1, left = WORLD_APPS;
    for (int i = 0; i < WORLD_APPS; i++) {
        char owner[8];
        snprintf(owner, sizeof owner, "w%d", i);
        world_connect(i, i % world.conf.n_brokers, owner);
        world_say(i, fair ? "LOCK n0 WAIT 0 FAIR" : "LOCK n0 WAIT 0");
        world_run_ms(30);
    }
    for (int i = 0; left > 0; i = (i + 1) % WORLD_APPS) {
        bool granted = world.apps[i].connected && world_reply(i)[0] == '[';
        if (granted) {
            if (fair && !dead && i < last)
                history_fail("FAIR: application %d was granted n0 after %d", i, last);
            last = i;
            waiting_ms = 0;
            world_say(i, "UNLOCK n0");
            if (dies && i == 2) { /* released, and the next one is being called up */
                world_run_ms(1);
                world_broker_kill(3 % world.conf.n_brokers);
                dies = false;
                dead = true;
                patience_ms += world.conf.broker.max_lease_ms;
            }
        }
        if (granted || i == WORLD_APPS - 1) {
            world_run_ms(10);
            waiting_ms += 10;
        }
        left = 0;
        for (int j = 0; j < WORLD_APPS; j++)
            left += world.apps[j].connected && world.apps[j].n_asks > 0;
        if (waiting_ms > patience_ms)
            history_fail("n0 is free, and %d applications wait for it", left);
    }
}

/* Has too little happened to show anything? Masters that restart alone leave little room for it. */
static bool is_void(void)
{
    return history_counts.faulty_grants < ENOUGH && !world.conf.nothing_lost;
}

static int run_seed(void)
{
    struct world_conf conf;
    make_plan(&conf);
    ending = overtime = false;
    world_begin(&conf);
    for (int i = 0; i < conf.n_servers; i++)
        fake_server_set_drift(&world.servers[i], (int32_t)sim_between(-2000, 2000));
    world_settle();
    for (int i = 0; i < plan.apps; i++)
        sim_at(sim_now_us() + sim_random(100000), on_app, (void *)(intptr_t)i);
    faults_begin(&plan.faults);
    int64_t end_us = sim_now_us() + RUN_MS * 1000,
            last_us = sim_now_us() + (int64_t)RUN_MAX_MS * 1000;
    while (sim_now_us() < end_us || (is_void() && sim_now_us() < last_us)) {
        world_run_ms(1000);
        overtime = sim_now_us() >= end_us;
        if (overtime)
            faults_go_easy();
    }
    ending = true;
    faults_end();
    world_settle();
    world_run_ms(1000);
    drain();
    check_all_free();
    check_line();
    bool was_void = is_void();
    world_end();
    return was_void;
}

static const char *program;

static void on_abort(int number)
{
    char text[1200];
    int len =
        snprintf(text, sizeof text,
                 "SIM_SEED=%" PRIu64 " has failed; to see it again: SIM_SEED=%" PRIu64 " %s\n",
                 seed, seed, program);
    (void)number;
    (void)!write(STDERR_FILENO, text, (size_t)len);
    signal(SIGABRT, SIG_DFL);
}

/* The sanitizers end in SIGABRT too, so that the seed is told. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1:detect_leaks=1";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "abort_on_error=1:print_stacktrace=1";
}

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoll(text) : otherwise;
}

static struct history_counts sum;
static int64_t n_runs, n_void;

static void run(uint64_t number)
{
    seed = number;
    n_runs++;
    if (run_seed()) {
        n_void++;
        fprintf(stderr,
                "SIM_SEED=%" PRIu64 " is void: %" PRId64 " grants while something was broken\n",
                seed, history_counts.faulty_grants);
    }
    sum.grants += history_counts.grants;
    sum.faulty_grants += history_counts.faulty_grants;
    sum.waits += history_counts.waits;
    sum.takeovers += history_counts.takeovers;
    sum.reentries += history_counts.reentries;
    sum.lost += history_counts.lost;
    sum.errors += history_counts.errors;
    sum.cancelled += history_counts.cancelled;
}

/* Each line: a seed, and why it is there. */
static void run_file(void)
{
    const char *srcdir = getenv("srcdir");
    char path[1024], line[256];
    snprintf(path, sizeof path, "%s/tests/sim/seeds", srcdir ? srcdir : ".");
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (line[0] >= '0' && line[0] <= '9')
            run(strtoull(line, NULL, 10));
    }
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    int64_t one = setting("SIM_SEED", 0), first = setting("SIM_FIRST", 0),
            n = setting("SIM_SEEDS", 500), step = setting("SIM_STEP", 1);
    time_t until = time(NULL) + setting("SIM_SECONDS", 0);
    (void)argc;
    program = argv[0];
    signal(SIGABRT, on_abort);
    fake_mutation = (enum fake_mutation)setting("SIM_MUTATION", 0);
    if (one) {
        setenv("SIM_TRACE", "1", 1);
        first = one;
        n = 1;
    }
    if (!first && !fake_mutation)
        run_file();
    for (int64_t i = 0; i < n || time(NULL) < until; i++)
        run((uint64_t)((first ? first : 1) + i * step));
    printf("%" PRId64 " seeds: %" PRId64 " grants, %" PRId64
           " of them while something was broken, %" PRId64 " after a wait, %" PRId64
           " take-overs, %" PRId64 " re-entries, %" PRId64 " lost, %" PRId64 " errors, %" PRId64
           " cancelled; %" PRId64 " runs void\n",
           n_runs, sum.grants, sum.faulty_grants, sum.waits, sum.takeovers, sum.reentries, sum.lost,
           sum.errors, sum.cancelled, n_void);
    return n_void ? EXIT_FAILURE : EXIT_SUCCESS;
}
