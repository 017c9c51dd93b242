/*
 * Random schedules of drop-in: clients of several brokers take, extend, count and end locks by
 * plain commands and scripts, and others the same locks by LOCK, with and without waiting, while
 * links break, messages are lost, late and doubled, servers and brokers restart, and clocks jump.
 *
 * Two judges: what they were answered must have an order in which one Redis would have answered the
 * same (order.h); and nobody is granted what another one's time still covers (history.h), be it by
 * LOCK or by a command of Redis. Histories too wide to be searched to their end are counted.
 *
 * SIM_SEEDS=n runs n seeds from SIM_FIRST (1) on; SIM_SEED=n this one alone, with a trace.
 * SIM_MUTATION as in check_random.c.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "history.h"
#include "order.h"
#include "redis/quorum.h"
#include "words.h"
#include "world.h"

enum { CLIENTS = 7, LISTENER = 7, RUN_MS = 8000, EARLY_MS = 60, LATE_MS = 400, JUMP_MS = 5000 };

/* What a client takes its locks as. The names "s" and "t" are judged together. */
enum role { OF_STRINGS, OF_HASHES, NATIVE };
static const enum role roles[CLIENTS] = {OF_STRINGS, OF_STRINGS, OF_STRINGS, OF_HASHES,
                                         OF_HASHES,  NATIVE,     NATIVE};
enum { STRINGS, HASHES, ORDERS };
static const char *const names[ORDERS][ORDER_NAMES] = {{"s", "t"}, {"h", NULL}};
static struct order orders[ORDERS];

static struct client {
    int index;
    bool lost; /* native: it has been told that a hold is lost, or may not have been */
    struct order *order;
    struct order_op *op; /* under way */
    int64_t quiet_until_ms;
    int64_t relied_us[ORDER_NAMES]; /* until when it relied on them before `op` */
} clients[CLIENTS];

static uint64_t seed;
static struct {
    int gap_ms, natives, force_per_mille, move_per_mille;
    int64_t most_lease_ms;
    struct faults_plan faults;
} plan;
static bool ending;
static int n_known, n_unknown, n_again, n_wide, n_heard;

static int64_t now_ms(void)
{
    return sim_now_us() / 1000;
}

/* ---- what is said ---- */

static bool takes(const struct order_op *op)
{
    return op->verb == ORDER_TAKE || op->verb == ORDER_TAKE2 || op->verb == ORDER_EXTEND ||
           op->verb == ORDER_ENTER || op->verb == ORDER_LEAVE;
}

/* By a command of Redis. */
static bool changes_state(const struct client *c)
{
    const struct order_op *op = c->op;
    return roles[c->index] != NATIVE && !order_only_looks(op) && op->verb != ORDER_FORCE;
}

static const char *name_in(const struct order *o, int i)
{
    return names[o - orders][i];
}

static int64_t valid_ms(int64_t lease_ms)
{
    return quorum_validity_ms(lease_ms, 0, 0, world.conf.broker.drift_ppm);
}

/* Drop-in: what it relies on, of each name of its request: when it asks, when it is told that this
 * is done, and when it is told that nothing was. */
enum reliance { ASKS, IS_DONE, NOTHING_DONE };
static void rely(struct client *c, enum reliance what)
{
    const struct order_op *op = c->op;
    int64_t begin_us = op->begin_ms * 1000, until_us = begin_us + valid_ms(op->lease_ms) * 1000;
    for (int i = 0; i < ORDER_NAMES; i++) {
        const char *name = name_in(c->order, i), *owner = world.apps[c->index].owner;
        if (!name || (i != op->name && !order_is_pair(op)))
            continue;
        if (what == ASKS)
            c->relied_us[i] = history_uncovered(name, owner, order_ends(op) ? 0 : until_us);
        else
            history_covered(name, owner, begin_us, what == IS_DONE ? until_us : c->relied_us[i]);
    }
}

static enum order_verb draw_verb(enum role role)
{
    static const enum order_verb of[][12] = {
        [OF_STRINGS] = {ORDER_TAKE, ORDER_TAKE, ORDER_TAKE, ORDER_GET, ORDER_END, ORDER_END,
                        ORDER_END, ORDER_EXTEND, ORDER_EXTEND, ORDER_TAKE2, ORDER_GET2, ORDER_END2},
        [OF_HASHES] = {ORDER_ENTER, ORDER_ENTER, ORDER_ENTER, ORDER_ENTER, ORDER_ENTER, ORDER_ENTER,
                       ORDER_LEAVE, ORDER_LEAVE, ORDER_LEAVE, ORDER_LEAVE, ORDER_LEAVE,
                       ORDER_LEAVE},
        [NATIVE] = {ORDER_LOCK, ORDER_LOCK, ORDER_LOCK, ORDER_LOCK, ORDER_LOCK, ORDER_UNLOCK,
                    ORDER_UNLOCK, ORDER_UNLOCK, ORDER_UNLOCK, ORDER_UNLOCK, ORDER_UNLOCK,
                    ORDER_UNLOCK},
    };
    return of[role][sim_random(12)];
}

static void begin_op(struct client *c)
{
    enum role role = roles[c->index];
    int which = role == OF_STRINGS ? STRINGS : role == OF_HASHES ? HASHES : (int)sim_random(ORDERS);
    bool forces = sim_chance(plan.force_per_mille);
    struct order *o = &orders[which];
    if (o->n == ORDER_OPS)
        return;
    struct order_op *op = &o->ops[o->n++];
    *op = (struct order_op){.verb = forces ? ORDER_FORCE : draw_verb(role),
                            .client = c->index + 1,
                            .broker = world.apps[c->index].broker->index,
                            .name = which == STRINGS ? (int)sim_random(ORDER_NAMES) : 0,
                            .begin_ms = now_ms(),
                            .end_ms = INT64_MAX,
                            .lease_ms = sim_between(300, plan.most_lease_ms)};
    c->order = o;
    c->op = op;
    if (changes_state(c))
        rely(c, ASKS);
    if (op->verb == ORDER_LOCK)
        c->lost = false;
    words_say(c->index, op, (int)(op - o->ops), name_in(o, op->name));
}

/* ---- what is answered ---- */

/* Its time, and for how long it may leave something behind that is not to be known. */
static void set_times(struct order_op *op, const char *text)
{
    int64_t validity_ms = 0, jump_ms = plan.faults.jumps ? JUMP_MS : 0;
    int64_t late_ms = 4 * world.conf.broker.request_timeout_ms + LATE_MS + jump_ms;
    op->sure_ms = op->begin_ms + valid_ms(op->lease_ms) - EARLY_MS;
    op->gone_ms = op->end_ms + op->lease_ms + LATE_MS + jump_ms;
    if (op->outcome == ORDER_UNKNOWN)
        op->gone_ms += late_ms;
    if (op->verb == ORDER_LOCK) { /* renewed until nobody knows when */
        sscanf(text, "[%*s %" SCNd64, &validity_ms);
        op->sure_ms = op->end_ms + validity_ms - EARLY_MS;
        op->gone_ms = INT64_MAX;
    }
    op->left_ms = op->end_ms + plan.most_lease_ms + LATE_MS + jump_ms;
    op->latest_ms = order_ends(op) ? op->left_ms : op->end_ms + late_ms;
}

static bool is_refused(const struct order_op *op)
{
    return op->outcome == ORDER_NOT_DONE || (op->outcome == ORDER_KNOWN && op->result == 0);
}

/* A LOCK that waits tries again and again: each try may have had the lock for a while, and undone
 * it. */
static void note_tries(struct order *o, const struct order_op *op)
{
    if (op->verb != ORDER_LOCK || op->outcome != ORDER_KNOWN ||
        op->end_ms - op->begin_ms < world.conf.broker.request_timeout_ms || o->n == ORDER_OPS)
        return;
    struct order_op *tries = &o->ops[o->n++];
    *tries = *op;
    tries->outcome = ORDER_UNKNOWN;
    tries->latest_ms = tries->left_ms = op->end_ms;
}

static void end_op(struct client *c, const char *text)
{
    struct order_op *op = c->op;
    words_read(op, text);
    op->end_ms = now_ms();
    if (op->verb == ORDER_LOCK && op->outcome == ORDER_UNKNOWN)
        c->lost = true; /* what it had before may be gone with it */
    else if (op->verb == ORDER_UNLOCK && op->result < 0 && c->lost)
        op->outcome = ORDER_NOT_DONE;
    set_times(op, text);
    note_tries(c->order, op);
    if (op->heard > 0 && is_refused(op))
        history_fail("%d of client %d has published, and was not done: %s",
                     (int)(op - c->order->ops), op->client, text);
    if (op->outcome == ORDER_KNOWN && op->result > 0 && takes(op))
        rely(c, IS_DONE);
    else if (op->outcome == ORDER_NOT_DONE && changes_state(c))
        rely(c, NOTHING_DONE);
    if (op->outcome == ORDER_UNKNOWN) /* too many of these are too wide */
        c->quiet_until_ms = now_ms() + sim_between(0, 600);
    n_known += op->outcome == ORDER_KNOWN;
    n_unknown += op->outcome == ORDER_UNKNOWN;
    n_again += op->outcome == ORDER_NOT_DONE;
    c->op = NULL;
}

static void on_reply(struct world_app *app, const struct world_ask *ask, const char *text)
{
    struct client *c = &clients[app->index];
    (void)ask;
    if (c->op)
        end_op(c, text);
}

/* Only what has been done publishes, and only once. */
static void on_message(struct world_app *app, const char *text)
{
    char name[8];
    int i;
    (void)app;
    if (sscanf(text, "message %7s %d", name, &i) != 2 || i >= orders[STRINGS].n)
        history_fail("a message that nobody has published: %s", text);
    struct order_op *op = &orders[STRINGS].ops[i];
    if (++op->heard > 1 || is_refused(op))
        history_fail("%d of client %d was not done, or once, and was heard", i, op->client);
    n_heard++;
}

/* ---- clients ---- */

static void connect_client(int index)
{
    int broker = (int)sim_random(world.conf.n_brokers);
    char owner[16];
    if (!world.brokers[broker].alive || world.brokers[broker].paused)
        return;
    snprintf(owner, sizeof owner, "%c%d", index < CLIENTS && roles[index] != NATIVE ? 'v' : 'n',
             index + 1);
    world_connect(index, broker, owner);
    if (index == LISTENER) {
        world_subscribe(index, "s");
        world_subscribe(index, "t");
    }
}

static bool sees_lost_push(int index)
{
    bool is_lost = false;
    for (const char *text; *(text = world_push(index));)
        is_lost = is_lost || strncmp(text, "lost ", 5) == 0;
    return is_lost;
}

static void on_client(void *arg)
{
    struct client *c = arg;
    struct world_app *app = &world.apps[c->index];
    if (ending)
        return;
    /* its broker may have died, or masters have lost its hold, and nobody could tell it */
    c->lost = c->lost || sees_lost_push(c->index) || plan.faults.restarts || plan.faults.jumps ||
              plan.faults.kills || plan.force_per_mille;
    if (c->op && !app->connected)
        end_op(c, "-gone");
    if (!app->connected)
        connect_client(c->index);
    else if (!c->op && roles[c->index] != NATIVE && sim_chance(plan.move_per_mille))
        world_close(c->index, true);
    else if (!c->op && c->quiet_until_ms <= now_ms())
        begin_op(c);
    sim_at(sim_now_us() + sim_between(1, 2 * plan.gap_ms) * 1000, on_client, c);
}

static void on_listener(void *arg)
{
    (void)arg;
    if (!world.apps[LISTENER].connected)
        connect_client(LISTENER);
    if (!ending)
        sim_at(sim_now_us() + 50000, on_listener, NULL);
}

/* ---- one run ---- */

static void make_plan(struct world_conf *conf)
{
    sim_begin(seed);
    world_defaults(conf, seed);
    conf->n_servers = sim_chance(200) ? 1 : sim_chance(800) ? 3 : 5;
    conf->n_brokers = (int)sim_between(1, 3);
    conf->broker.request_timeout_ms = sim_between(30, 200);
    conf->broker.lease_ms = 1000;
    conf->broker.max_lease_ms = 2000;
    conf->broker.min_validity_ms = 0;
    fake_net = (struct fake_net){.latency_min_us = 50, .latency_max_us = sim_between(100, 5000)};
    memset(&plan, 0, sizeof plan);
    plan.gap_ms = (int)sim_between(5, 150);
    plan.natives = (int)sim_random(3);
    plan.force_per_mille = sim_chance(150) ? 20 : 0;
    plan.move_per_mille = sim_chance(500) ? 30 : 0;
    plan.most_lease_ms = conf->broker.max_lease_ms;
    struct faults_plan *f = &plan.faults;
    f->gap_ms = (int)sim_between(50, 2000);
    f->longest_ms = (int)sim_between(50, 3000);
    f->restarts = sim_chance(300);
    f->all_die = f->restarts && sim_chance(300);
    f->jumps = sim_chance(150);
    f->pauses = sim_chance(300);
    f->kills = sim_chance(400) && !f->jumps;
    f->refuses = sim_chance(200);
    f->bad_net = sim_chance(700);
    conf->wall_skew_ms = f->restarts ? 0 : sim_random(10000);
    conf->on_reply = on_reply;
    conf->on_message = on_message;
    sim_end();
}

static void begin_run(const struct world_conf *conf)
{
    memset(orders, 0, sizeof orders);
    memset(clients, 0, sizeof clients);
    ending = false;
    world_begin(conf);
    words_begin();
    for (int i = 0; i < conf->n_servers; i++)
        fake_server_set_drift(&world.servers[i], (int32_t)sim_between(-2000, 2000));
    world_settle();
    on_listener(NULL);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].index = i;
        if (roles[i] != NATIVE || i - (CLIENTS - 2) < plan.natives)
            sim_at(sim_now_us() + sim_random(100000), on_client, &clients[i]);
    }
    faults_begin(&plan.faults);
}

/* Everybody is answered but who waits for a lock that nobody gives up. */
static void end_run(void)
{
    ending = true;
    faults_end();
    world_run_ms(8000);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &clients[i];
        if (c->op && world.apps[i].connected && c->op->verb != ORDER_LOCK)
            history_fail("client %d was not answered: %s", i + 1, world.apps[i].asks[0].text);
        if (c->op)
            end_op(c, "-gone");
    }
}

static void judge(int which)
{
    int stuck;
    enum order_end end = order_search(&orders[which], &stuck);
    n_wide += end == ORDER_TOO_WIDE;
    if (end == ORDER_NONE) {
        order_print(&orders[which]);
        history_fail("the answers of '%s' have no order: stuck at %d", names[which][0], stuck);
    }
}

static void run_seed(void)
{
    struct world_conf conf;
    make_plan(&conf);
    begin_run(&conf);
    world_run_ms(RUN_MS);
    end_run();
    world_end();
    for (int i = 0; i < ORDERS; i++)
        judge(i);
}

static uint64_t number(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : usual;
}

int main(void)
{
    uint64_t one = number("SIM_SEED", 0), first = number("SIM_FIRST", 1),
             n = number("SIM_SEEDS", 12);
    fake_mutation = (enum fake_mutation)number("SIM_MUTATION", 0);
    if (one) {
        setenv("SIM_TRACE", "1", 1);
        first = one;
        n = 1;
    }
    for (uint64_t i = 0; i < n; i++) {
        seed = first + i;
        run_seed();
    }
    printf("%" PRIu64 " seeds: %d answers, %d unknown, %d to be tried again, %d messages; %d of "
           "%" PRIu64 " histories too wide\n",
           n, n_known, n_unknown, n_again, n_heard, n_wide, n * ORDERS);
    return n_known ? EXIT_SUCCESS : EXIT_FAILURE;
}
