/* Runs all clients in one libevent loop whose timers have a resolution of a microsecond. */
#include "cli/bench_load_private.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "cli/cli.h"

enum {
    CONNECTING_MAX = 64, /* at a time */
    DRAIN_US = 2000000,  /* for the last answers */
    CONNECT_MS = 5000,   /* without any answer at all */
    SPARE_FDS = 32
};

void bench_load_settle(struct load *l)
{
    if (--l->unfinished <= 0)
        event_base_loopbreak(l->base);
}

void bench_load_begin(struct load *l)
{
    struct timeval second = {1, 0},
                   end = {l->plan->duration_ms / 1000, l->plan->duration_ms % 1000 * 1000};
    l->begun_us = clock_us();
    event_base_update_cache_time(l->base); /* this turn may have begun long ago, with handshakes */
    evtimer_del(l->end);
    evtimer_add(l->end, &end);
    event_add(l->tick, &second);
    for (int64_t i = 0; i < l->plan->clients; i++)
        bench_client_ask(&l->clients[i]);
}

static void load_end(struct load *l)
{
    struct timeval drain = {DRAIN_US / 1000000, DRAIN_US % 1000000};
    l->ended = true;
    l->result->elapsed_us = clock_us() - l->begun_us;
    l->unfinished = 1; /* ours, until all are told */
    for (int64_t i = 0; i < l->plan->clients; i++) {
        if (link_is_open(&l->clients[i].link))
            bench_client_leave(&l->clients[i]);
    }
    event_base_loopexit(l->base, &drain);
    bench_load_settle(l);
}

static void on_load_end(evutil_socket_t fd, short what, void *arg)
{
    struct load *l = arg;
    (void)fd, (void)what;
    if (l->begun_us)
        load_end(l);
    else
        cli_die(STATUS_NO_BROKER, "%s: only %u of %" PRId64 " clients are connected after %d s",
                l->plan->urls->v[0].shown, l->connected, l->plan->clients, CONNECT_MS / 1000);
}

static void on_load_second(evutil_socket_t fd, short what, void *arg)
{
    struct load *l = arg;
    (void)fd, (void)what;
    l->result->elapsed_us = clock_us() - l->begun_us;
    if (l->progress && !l->ended)
        l->progress(l->arg, l->result);
}

static void on_load_signal(evutil_socket_t fd, short what, void *arg)
{
    struct load *l = arg;
    (void)fd, (void)what;
    l->interrupted = true;
    if (l->begun_us && !l->ended)
        load_end(l);
    else
        event_base_loopbreak(l->base);
}

static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    if (!config)
        return NULL;
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static void need_fds(int64_t clients)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)clients + SPARE_FDS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return;
    limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < need)
        cli_die(STATUS_SYSTEM, "%" PRId64 " clients need as many descriptors: ulimit -n is %llu",
                clients, (unsigned long long)limit.rlim_cur);
}

static void load_init(struct load *l)
{
    const struct bench_plan *plan = l->plan;
    char text[600];
    l->base = new_base();
    if (!l->base)
        util_die("no event base");
    util_random(&l->random, sizeof l->random);
    l->random |= 1;
    l->clients = util_alloc((size_t)plan->clients * sizeof l->clients[0]);
    l->names = util_alloc((size_t)plan->names * sizeof l->names[0]);
    l->result->grants = util_alloc((size_t)plan->clients * sizeof l->result->grants[0]);
    for (int64_t i = 0; i < plan->names; i++) {
        snprintf(text, sizeof text, "%s%" PRId64, plan->prefix, i);
        l->names[i].text = util_strdup(text);
    }
    for (int64_t i = 0; i < plan->clients; i++) {
        struct client *c = &l->clients[i];
        c->load = l;
        c->index = (uint32_t)i;
        c->timer = evtimer_new(l->base, bench_client_on_timer, c);
    }
    l->tick = event_new(l->base, -1, EV_PERSIST, on_load_second, l);
    l->end = evtimer_new(l->base, on_load_end, l);
    l->signals[0] = evsignal_new(l->base, SIGINT, on_load_signal, l);
    l->signals[1] = evsignal_new(l->base, SIGTERM, on_load_signal, l);
    event_add(l->signals[0], NULL);
    event_add(l->signals[1], NULL);
}

static void load_fini(struct load *l)
{
    for (int64_t i = 0; i < l->plan->clients; i++) {
        bench_client_close(&l->clients[i]);
        event_free(l->clients[i].timer);
    }
    for (int64_t i = 0; i < l->plan->names; i++)
        free(l->names[i].text);
    event_free(l->tick);
    event_free(l->end);
    event_free(l->signals[0]);
    event_free(l->signals[1]);
    event_base_free(l->base);
    free(l->clients);
    free(l->names);
}

bool bench_load(const struct bench_plan *plan, struct bench_result *result,
                bench_progress_fn progress, void *arg)
{
    struct load *l = util_alloc(sizeof *l);
    struct timeval patience = {CONNECT_MS / 1000, CONNECT_MS % 1000 * 1000};
    *l = (struct load){.plan = plan, .result = result, .progress = progress, .arg = arg};
    need_fds(plan->clients);
    signal(SIGPIPE, SIG_IGN);
    load_init(l);
    evtimer_add(l->end, &patience);
    while (l->next_to_connect < plan->clients && l->next_to_connect < CONNECTING_MAX)
        bench_client_connect(&l->clients[l->next_to_connect++]);
    event_base_dispatch(l->base);
    bool interrupted = l->interrupted;
    load_fini(l);
    free(l);
    return !interrupted;
}
