/*
 * One libevent loop with timers of a microsecond. A request is written at once, not with the next
 * turn of the loop, so that what is measured is the broker as far as one process can.
 *
 * Invariants: a client has at most one request under way; `freed_us` of a name is set from the
 * moment its holder asks to unlock until somebody is granted it.
 */
#include "bench_load.h"

#include <event2/event.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "cli.h"
#include "clock.h"
#include "link.h"

enum {
    CONNECTING_MAX = 64, /* at a time */
    RETRY_US = 100000,   /* after an error */
    DRAIN_US = 2000000,  /* for the last answers */
    CONNECT_MS = 5000,   /* without any answer at all */
    SPARE_FDS = 32
};

enum client_state {
    CLIENT_IDLE, /* a timer runs, or the load has not begun */
    CLIENT_CONNECTING,
    CLIENT_ASKING,
    CLIENT_HOLDING,
    CLIENT_UNLOCKING
};

struct name {
    char *text;
    int64_t freed_us; /* 0: held, or nobody has had it */
};

struct client {
    struct load *load;
    struct link link;
    struct event *readable, *writable, *timer;
    struct name *name;
    int64_t sent_us;
    uint32_t index;
    uint8_t state; /* enum client_state */
};

struct load {
    const struct bench_plan *plan;
    struct bench_result *result;
    bench_progress_fn progress;
    void *arg;
    struct event_base *base;
    struct event *tick, *end, *signals[2];
    struct client *clients;
    struct name *names;
    uint64_t random;
    int64_t begun_us;   /* 0: still connecting */
    int64_t unfinished; /* connections still open, once it has ended */
    uint32_t next_to_connect, connected;
    bool ended, interrupted;
    char wait[24], lease[24];
};

static void client_ask(struct client *c);

/* ---- one client ---- */

static void arm(struct client *c, int64_t us)
{
    struct timeval tv = {us / 1000000, us % 1000000};
    evtimer_add(c->timer, &tv);
}

static void client_close(struct client *c)
{
    if (c->readable)
        event_free(c->readable);
    if (c->writable)
        event_free(c->writable);
    c->readable = c->writable = NULL;
    link_close(&c->link);
}

static void note_error(struct load *l, const char *text)
{
    l->result->errors++;
    if (l->result->first_error[0] == '\0')
        snprintf(l->result->first_error, sizeof l->result->first_error, "%s", text);
}

static void settle_one(struct load *l)
{
    if (--l->unfinished <= 0)
        event_base_loopbreak(l->base);
}

static void client_broken(struct client *c)
{
    struct load *l = c->load;
    if (l->ended) { /* as it should */
        client_close(c);
        settle_one(l);
        return;
    }
    if (!l->begun_us)
        cli_die(c->link.denied ? STATUS_DENIED : STATUS_NO_BROKER, "client %u: %s", c->index + 1,
                c->link.error);
    l->result->waiting -= c->state == CLIENT_ASKING;
    l->result->disconnects++;
    note_error(l, c->link.error);
    l->result->errors--; /* counted as a disconnect */
    client_close(c);
    c->state = CLIENT_IDLE;
    arm(c, RETRY_US);
}

/* Writes what is queued, now. */
static void client_push(struct client *c)
{
    if (link_turn(&c->link, POLLOUT) != 0)
        client_broken(c);
    else if (c->link.wants_write)
        event_add(c->writable, NULL);
}

static struct name *choose(struct load *l)
{
    l->random ^= l->random << 13; /* xorshift64 (Marsaglia, 2003) */
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return &l->names[l->random % (uint64_t)l->plan->names];
}

static void client_ask(struct client *c)
{
    struct load *l = c->load;
    c->name = choose(l);
    const char *words[] = {"LOCK", c->name->text, "WAIT", l->wait, "LEASE", l->lease};
    c->state = CLIENT_ASKING;
    l->result->waiting++;
    c->sent_us = clock_us();
    link_send(&c->link, l->plan->lease_ms ? 6 : 4, words);
    client_push(c);
}

static void client_unlock(struct client *c)
{
    const char *words[] = {"UNLOCK", c->name->text};
    c->state = CLIENT_UNLOCKING;
    c->name->freed_us = c->sent_us = clock_us();
    link_send(&c->link, 2, words);
    client_push(c);
}

static void client_think(struct client *c)
{
    c->state = CLIENT_IDLE;
    if (c->load->plan->think_us)
        arm(c, c->load->plan->think_us);
    else
        client_ask(c);
}

static void on_granted(struct client *c)
{
    struct load *l = c->load;
    int64_t now_us = clock_us();
    hist_record(&l->result->grant_us, now_us - c->sent_us);
    if (c->name->freed_us > c->sent_us)
        hist_record(&l->result->handover_us, now_us - c->name->freed_us);
    l->result->grants[c->index]++;
    c->name->freed_us = 0;
    c->state = CLIENT_HOLDING;
    if (!l->plan->hold_us)
        client_unlock(c);
    else
        arm(c, l->plan->hold_us);
}

static void on_connected(struct client *c);

static void on_reply(struct client *c, const redisReply *reply)
{
    struct load *l = c->load;
    enum client_state state = (enum client_state)c->state;
    l->result->waiting -= state == CLIENT_ASKING;
    if (reply->type == REDIS_REPLY_ERROR && !l->begun_us)
        cli_die(cli_status_of(reply->str), "%s", reply->str);
    if (reply->type == REDIS_REPLY_ERROR) {
        note_error(l, reply->str);
        c->state = CLIENT_IDLE;
        arm(c, RETRY_US);
    } else if (state == CLIENT_CONNECTING) {
        on_connected(c);
    } else if (state == CLIENT_ASKING && reply->type == REDIS_REPLY_ARRAY) {
        on_granted(c);
    } else {
        l->result->refused += state == CLIENT_ASKING;
        client_think(c);
    }
}

/* Says that nothing more will come, and reads on until the broker closes, too. Closed at once, with
 * answers unread, the connection would be reset, and what it holds would be left to its lease. */
static void client_part(struct client *c)
{
    if (c->load->plan->lease_ms && c->state == CLIENT_HOLDING)
        link_send(&c->link, 2, (const char *[]){"UNLOCK", c->name->text});
    c->state = CLIENT_IDLE;
    if (link_turn(&c->link, POLLOUT) == 0 && !c->link.wants_write &&
        shutdown(link_fd(&c->link), SHUT_WR) == 0)
        return;
    client_close(c);
    settle_one(c->load);
}

/* A reply after the end: of interest only to those who wait for locks with a lease. */
static void on_late_reply(struct client *c, const redisReply *reply)
{
    if (c->state != CLIENT_ASKING || !c->load->plan->lease_ms)
        return;
    c->state = reply->type == REDIS_REPLY_ARRAY ? CLIENT_HOLDING : CLIENT_IDLE;
    client_part(c);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct client *c = arg;
    redisReply *reply = NULL;
    (void)fd, (void)what;
    if (link_turn(&c->link, POLLIN) != 0) {
        client_broken(c);
        return;
    }
    while (link_is_open(&c->link)) {
        if (link_next(&c->link, &reply) != 0)
            client_broken(c);
        if (!reply)
            return;
        if (c->load->ended)
            on_late_reply(c, reply);
        else
            on_reply(c, reply);
        freeReplyObject(reply);
        reply = NULL;
    }
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    client_push(arg);
}

static void client_connect(struct client *c)
{
    struct load *l = c->load;
    c->state = CLIENT_CONNECTING;
    if (link_open(&c->link, l->plan->url) != 0) {
        client_broken(c);
        return;
    }
    int fd = link_fd(&c->link);
    c->readable = event_new(l->base, fd, EV_READ | EV_PERSIST, on_readable, c);
    c->writable = event_new(l->base, fd, EV_WRITE, on_writable, c);
    if (!c->readable || !c->writable)
        util_die("out of memory");
    event_add(c->readable, NULL);
    link_send(&c->link, 1, (const char *[]){"PING"});
    event_add(c->writable, NULL);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct client *c = arg;
    (void)fd, (void)what;
    if (!link_is_open(&c->link))
        client_connect(c);
    else if (c->state == CLIENT_HOLDING)
        client_unlock(c);
    else
        client_ask(c);
}

/* ---- all of them ---- */

static void load_begin(struct load *l)
{
    struct timeval second = {1, 0},
                   end = {l->plan->duration_ms / 1000, l->plan->duration_ms % 1000 * 1000};
    l->begun_us = clock_us();
    evtimer_del(l->end);
    evtimer_add(l->end, &end);
    event_add(l->tick, &second);
    for (int64_t i = 0; i < l->plan->clients; i++)
        client_ask(&l->clients[i]);
}

static void on_connected(struct client *c)
{
    struct load *l = c->load;
    c->state = CLIENT_IDLE;
    if (l->begun_us) { /* again, after its connection was lost */
        client_think(c);
        return;
    }
    l->connected++;
    if (l->next_to_connect < l->plan->clients)
        client_connect(&l->clients[l->next_to_connect++]);
    else if (l->connected == l->plan->clients)
        load_begin(l);
}

/* At the end. A lock with a lease of its own does not go with the connection: who waits for one
 * goes on, and gives it back when it has it. */
static void client_leave(struct client *c)
{
    evtimer_del(c->timer);
    c->load->unfinished++;
    if (!c->load->plan->lease_ms || c->state != CLIENT_ASKING)
        client_part(c);
}

static void load_end(struct load *l)
{
    struct timeval drain = {DRAIN_US / 1000000, DRAIN_US % 1000000};
    l->ended = true;
    l->result->elapsed_us = clock_us() - l->begun_us;
    l->unfinished = 1; /* ours, until all are told */
    for (int64_t i = 0; i < l->plan->clients; i++) {
        if (link_is_open(&l->clients[i].link))
            client_leave(&l->clients[i]);
    }
    event_base_loopexit(l->base, &drain);
    settle_one(l);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
    struct load *l = arg;
    (void)fd, (void)what;
    if (l->begun_us)
        load_end(l);
    else
        cli_die(STATUS_NO_BROKER, "%s: only %u of %" PRId64 " clients are connected after %d s",
                l->plan->url->shown, l->connected, l->plan->clients, CONNECT_MS / 1000);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct load *l = arg;
    (void)fd, (void)what;
    l->result->elapsed_us = clock_us() - l->begun_us;
    if (l->progress && !l->ended)
        l->progress(l->arg, l->result);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
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
        c->timer = evtimer_new(l->base, on_timer, c);
    }
    snprintf(l->wait, sizeof l->wait, "%" PRId64, plan->wait_ms);
    snprintf(l->lease, sizeof l->lease, "%" PRId64, plan->lease_ms);
    l->tick = event_new(l->base, -1, EV_PERSIST, on_tick, l);
    l->end = evtimer_new(l->base, on_end, l);
    l->signals[0] = evsignal_new(l->base, SIGINT, on_signal, l);
    l->signals[1] = evsignal_new(l->base, SIGTERM, on_signal, l);
    event_add(l->signals[0], NULL);
    event_add(l->signals[1], NULL);
}

static void load_fini(struct load *l)
{
    for (int64_t i = 0; i < l->plan->clients; i++) {
        client_close(&l->clients[i]);
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
        client_connect(&l->clients[l->next_to_connect++]);
    event_base_dispatch(l->base);
    bool interrupted = l->interrupted;
    load_fini(l);
    free(l);
    return !interrupted;
}
