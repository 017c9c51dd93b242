/*
 * Each fault is begun, and undone some time later by an event of its own. All chance is drawn in
 * the order of the events, so that one seed is one run.
 */
#include "faults.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "history.h"
#include "world.h"

static struct faults_plan plan;
static bool over, easy;

struct fault {
    int kind, broker, server;
};
enum { CUT, STOP, KILL, BREAK, PAUSE, BROKER_KILL, NET, FLUSH, JUMP, REFUSE, FAULTS };

static const char *const refusals[] = {
    "OOM command not allowed when used memory > 'maxmemory'.",
    "MISCONF Errors writing to the AOF file",
    "READONLY You can't write against a read only replica.",
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script.",
    "NOAUTH Authentication required.",
};

static bool may_lose_data(int except)
{
    int out = 0;
    for (int i = 0; i < world.conf.n_servers; i++)
        out += i != except && !(world.servers[i].up && fake_server_is_active(&world.servers[i]));
    return out == 0 || world.conf.wall_skew_ms == 0;
}

/* One, or all of them as when the power fails. */
static void kill_servers(struct fake_server *one)
{
    bool all = plan.all_die && sim_chance(200);
    for (int i = 0; i < world.conf.n_servers; i++) {
        struct fake_server *s = &world.servers[i];
        if (s->up && (all || s == one))
            fake_server_kill(s);
    }
    history_data_lost();
}

static void start_servers(struct fake_server *one)
{
    for (int i = 0; i < world.conf.n_servers; i++) {
        struct fake_server *s = &world.servers[i];
        if (!s->up && (plan.all_die || s == one))
            fake_server_start(s, sim_chance(300));
    }
}

static void undo(void *arg)
{
    struct fault *f = arg;
    struct world_broker *wb = &world.brokers[f->broker];
    struct fake_server *s = &world.servers[f->server];
    switch (f->kind) {
    case CUT:
        if (wb->alive)
            fake_master_cut(wb->masters[f->server], false);
        break;
    case STOP:
        fake_server_stop(s, false);
        break;
    case KILL:
        start_servers(s);
        break;
    case PAUSE:
        if (wb->alive && wb->paused)
            world_broker_pause(f->broker, false);
        break;
    case BROKER_KILL:
        if (wb->alive && wb->leaves)
            world_broker_kill(f->broker);
        if (!wb->alive)
            world_broker_start(f->broker);
        break;
    case NET:
        fake_net.slow_per_mille = fake_net.loss_per_mille = fake_net.copy_per_mille = 0;
        break;
    case REFUSE:
        s->refuses = NULL;
        break;
    default:
        break;
    }
    log_trace("world", "fault %d of broker %d server %d is over", f->kind, f->broker, f->server);
    history_faults--;
    free(f);
}

/* Of one clock, or of all of them as when somebody sets the time. Smaller jumps pass as drift: see
 * master_clock.c */
static void jump(struct fake_server *one)
{
    int64_t ms = sim_between(1000, 5000) * (sim_chance(500) ? 1 : -1);
    bool all = sim_chance(300);
    for (int i = 0; i < world.conf.n_servers; i++) {
        if (all || one == &world.servers[i])
            fake_server_jump(&world.servers[i], ms);
    }
    history_data_lost();
}

static void spoil_net(void)
{
    fake_net.slow_per_mille = (int)sim_random(200);
    fake_net.slow_us = sim_between(1, 2 * world.conf.broker.request_timeout_ms) * 1000;
    fake_net.loss_per_mille = (int)sim_random(30);
    fake_net.copy_per_mille = (int)sim_random(100);
    fake_net.copy_us = sim_between(1, 4 * world.conf.broker.request_timeout_ms) * 1000;
}

/* Can it be now, and may it be in this plan? */
static bool is_possible(const struct fault *f)
{
    const struct world_broker *wb = &world.brokers[f->broker];
    const struct fake_server *s = &world.servers[f->server];
    if (plan.alone_ms && (history_faults > 0 || (f->kind != KILL && f->kind != FLUSH)))
        return false;
    switch (f->kind) {
    case CUT:
        return wb->alive && !fake_master_is_cut(wb->masters[f->server]);
    case STOP:
        return s->up && !s->stopped;
    case KILL:
    case FLUSH:
        return plan.restarts && s->up && may_lose_data(f->server);
    case BREAK:
        return wb->alive;
    case PAUSE:
        return plan.pauses && wb->alive && !wb->paused;
    case BROKER_KILL:
        return plan.kills && wb->alive && !wb->paused && !wb->leaves;
    case NET:
        return plan.bad_net;
    case JUMP:
        return plan.jumps;
    case REFUSE:
        return plan.refuses && !s->refuses;
    default:
        return false;
    }
}

static void begin_fault(const struct fault *f)
{
    struct master *m = world.brokers[f->broker].masters[f->server];
    struct fake_server *s = &world.servers[f->server];
    switch (f->kind) {
    case CUT:
        fake_master_cut(m, true);
        break;
    case STOP:
        fake_server_stop(s, true);
        break;
    case KILL:
        kill_servers(s);
        break;
    case FLUSH:
        fake_server_flush(s);
        history_data_lost();
        break;
    case BREAK:
        fake_master_break(m);
        break;
    case PAUSE:
        world_broker_pause(f->broker, true);
        break;
    case BROKER_KILL:
        if (world.conf.brokers && sim_chance(500))
            world_broker_leave(f->broker);
        else
            world_broker_kill(f->broker);
        break;
    case NET:
        spoil_net();
        break;
    case JUMP:
        jump(s);
        break;
    case REFUSE:
        s->refuses = refusals[sim_random(sizeof refusals / sizeof refusals[0])];
        break;
    default:
        break;
    }
}

static void on_fault(void *arg)
{
    (void)arg;
    if (over)
        return;
    struct fault *f = malloc(sizeof *f);
    *f = (struct fault){easy ? BREAK : (int)sim_random(FAULTS),
                        (int)sim_random(world.conf.n_brokers),
                        (int)sim_random(world.conf.n_servers)};
    if (is_possible(f)) {
        begin_fault(f);
        log_trace("world", "fault %d of broker %d server %d", f->kind, f->broker, f->server);
        history_faults++;
        int64_t ms = easy ? plan.gap_ms : sim_between(1, plan.longest_ms);
        sim_at(sim_now_us() + ms * 1000, undo, f);
    } else {
        free(f);
    }
    int64_t least_ms = plan.alone_ms ? plan.longest_ms + plan.alone_ms : 1;
    sim_at(sim_now_us() + sim_between(least_ms, least_ms + 2 * plan.gap_ms) * 1000, on_fault, NULL);
}

void faults_begin(const struct faults_plan *p)
{
    plan = *p;
    over = easy = false;
    sim_at(sim_now_us(), on_fault, NULL);
}

void faults_go_easy(void)
{
    easy = true;
}

void faults_end(void)
{
    over = true;
    while (history_faults > 0)
        world_run_ms(100);
    fake_net.slow_per_mille = fake_net.loss_per_mille = fake_net.copy_per_mille = 0;
    for (int i = 0; i < world.conf.n_servers; i++)
        fake_server_set_drift(&world.servers[i], 0);
}
