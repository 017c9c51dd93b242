/*
 * The parts of the broker and the turn of the loop.
 *
 * Owns every part; each is made after those that it uses and freed before them. What the parts do
 * is their business: here stands only in which order they get their turn.
 */
#include "server/server.h"

#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/systemd.h"
#include "client/listener.h"
#include "command/command.h"
#include "command/handlers.h"
#include "dropin/call.h"
#include "dropin/messages.h"
#include "http/http.h"
#include "net/tls.h"
#include "server/private.h"
#include "session/login.h"
#include "session/pubsub.h"
#include "session/user.h"
#include "stats/stats.h"

/* ---- signals ---- */

static void on_term_signal(evutil_socket_t number, short what, void *arg)
{
    (void)what;
    log_info("server", "signal %s", number == SIGTERM ? "TERM" : "INT");
    server_stop(arg, false);
}

static void on_hup_signal(evutil_socket_t number, short what, void *arg)
{
    struct server *s = arg;

    (void)number, (void)what;
    if (s->phase != SERVER_ENDS)
        server_reload(s);
}

/* ---- the loop ---- */

static void run_each_second(struct server *s, int64_t now_ms)
{
    s->second_ms = now_ms + 1000;
    rounds_set_wall(&s->broker.rounds, clock_wall_ms(), now_ms);
    stats_tick(now_ms);
    http_second(s->http);
    stats.log_lines_dropped += log_look();
    messages_look(dropin_messages(s->dropin), now_ms);
    server_update_ready(s, now_ms);
    server_update_status(s, now_ms);
    server_judge_peers(s, now_ms);
    server_look_at_names(s);
    if (now_ms >= s->tls_look_ms)
        server_look_at_certificate(s, now_ms);
}

void server_begin_to_accept(struct server *s)
{
    if (s->accept_ms == INT64_MAX)
        return;
    s->accept_ms = INT64_MAX;
    listener_hold(s->listeners, false);
}

static void run_periodic(struct server *s, int64_t now_ms)
{
    if (now_ms >= s->accept_ms) {
        server_log_ready(s, now_ms); /* nothing changes, which would be logged, when none comes */
        server_begin_to_accept(s);
    }
    server_look_at_quarantines(s, now_ms);
    if (now_ms >= s->second_ms)
        run_each_second(s, now_ms);
    if (s->watchdog_ms && now_ms >= s->watchdog_due_ms) {
        systemd_notify("WATCHDOG=1");
        s->watchdog_due_ms = now_ms + s->watchdog_ms;
    }
    if (s->phase == SERVER_DRAINS && now_ms >= s->drain_look_ms)
        server_look_at_drain(s, now_ms);
}

static int64_t next_ms(const struct server *s)
{
    int64_t next = util_min(broker_next_ms(&s->broker), s->second_ms);

    if (s->n_asks_sent != s->broker.rounds.n_asks || pubsub_waits() || cmd_client_waits())
        return 0;
    next = util_min(next, util_min(quarantine_next_ms(&s->quarantine), s->accept_ms));
    if (s->watchdog_ms)
        next = util_min(next, s->watchdog_due_ms);
    return s->phase == SERVER_DRAINS ? util_min(next, s->drain_look_ms) : next;
}

/* The timer is only set anew when it would come too late: one that comes early costs a turn in
 * which nothing is done, while setting it costs a system call each time. It counts BOOTTIME as
 * clock_ms() does, so that it comes at once after a suspend. */
static void set_loop_timer(struct server *s, int64_t due_ms)
{
    struct itimerspec at = {
        .it_value = {.tv_sec = due_ms / 1000, .tv_nsec = due_ms % 1000 * 1000000}};

    if (due_ms >= s->timer_ms)
        return;
    timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    s->timer_ms = due_ms;
}

static void on_loop_timer(evutil_socket_t fd, short what, void *arg)
{
    struct server *s = arg;
    uint64_t times;

    (void)what;
    (void)!read(fd, &times, sizeof times);
    s->timer_ms = INT64_MAX;
}

/* Waits for events, at most until due_ms, and runs them. Returns what time it is then. */
static int64_t wait_for_events(struct server *s, int64_t due_ms)
{
    int64_t start_ms = clock_ms();
    bool waits = due_ms > start_ms;

    if (waits) {
        set_loop_timer(s, due_ms);
        server_let_masters_answer(s);
    }
    event_base_loop(s->base, waits ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK);
    int64_t now_ms = clock_ms(), late_ms = now_ms - (waits ? due_ms : start_ms);
    if (late_ms >= 0)
        hist_add(&stats.loop_lag_us, late_ms * 1000);
    if (late_ms > s->conf.pause_limit_ms) {
        log_warn("server", "stood still for %" PRId64 " ms (pause_limit): every lease is checked",
                 late_ms);
        broker_check_promises(&s->broker, now_ms);
    }
    return now_ms;
}

/* One turn. The order matters:
 *
 * 1. events, when the masters have had a moment to answer: commands are run and answers of masters
 * taken in, but nothing is sent yet;
 * 2. after a pause of our own (stopped, suspended, starved) every promise is looked at again,
 * before any reply goes out that was made from what we believed before it;
 * 3. broker_turn: what is due, verdicts; all that was asked of the masters since the last turn
 * leaves in one write each;
 * 4. messages to channels, and lists of clients, that were too many for one turn;
 * 5. client_flush_all: all replies leave in one write a client. Clients that had to wait may run
 *    further commands here; what these ask of the masters must not wait for the next event, so the
 *    next turn then follows at once (next_ms). */
void server_turn(struct server *s, int64_t due_ms)
{
    int64_t now_ms = wait_for_events(s, util_min(due_ms, next_ms(s)));

    run_periodic(s, now_ms);
    broker_turn(&s->broker, now_ms);
    s->n_asks_sent = s->broker.rounds.n_asks;
    pubsub_turn(now_ms);
    cmd_client_turn();
    if (s->clients)
        client_flush_all(s->clients);
}

/* Turns the loop; READY at once, as whoever starts this service must not wait for the
 * masters. */
void server_run(struct server *s)
{
    server_update_status(s, clock_ms());
    systemd_notify("READY=1");
    log_set_patient(false);
    while (s->phase != SERVER_ENDS)
        server_turn(s, INT64_MAX);
}

/* ---- making the parts ---- */

static void on_event_log(int severity, const char *text)
{
    if (severity >= EVENT_LOG_WARN)
        log_warn("libevent", "%s", text);
}

static void make_base(struct server *s)
{
    struct event_config *config = event_config_new();

    event_set_log_callback(on_event_log);
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        s->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (!s->base)
        util_die("cannot make an event loop");
    server_look_at_names(s); /* before they are read, so that no change between is missed */
    s->dns = server_make_dns(s->base);
}

/* Makes a timer of our own, as those of libevent count in jiffies. */
static void make_timer(struct server *s)
{
    s->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (s->timer_fd < 0)
        util_die("cannot make a timer: %s", strerror(errno));
    s->timer_ms = INT64_MAX;
    event_assign(&s->timer, s->base, s->timer_fd, EV_READ | EV_PERSIST, on_loop_timer, s);
    event_add(&s->timer, NULL);
}

static void watch_signals(struct server *s)
{
    static const int numbers[] = {SIGPIPE, SIGTERM, SIGINT, SIGHUP};

    /* What libevent puts back at the end: a process that ends is not killed by being told to. */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signal(numbers[i], SIG_IGN);
    evsignal_assign(&s->on_term, s->base, SIGTERM, on_term_signal, s);
    evsignal_assign(&s->on_int, s->base, SIGINT, on_term_signal, s);
    evsignal_assign(&s->on_hup, s->base, SIGHUP, on_hup_signal, s);
    evsignal_add(&s->on_term, NULL);
    evsignal_add(&s->on_int, NULL);
    evsignal_add(&s->on_hup, NULL);
}

static void find_names(struct server *s)
{
    struct utsname u;
    ssize_t len = readlink("/proc/self/exe", s->executable, sizeof s->executable - 1);

    s->executable[len > 0 ? len : 0] = '\0';
    if (uname(&u) == 0)
        snprintf(s->os, sizeof s->os, "%.40s %.40s %.40s", u.sysname, u.release, u.machine);
    util_random_id(s->id, BROKER_ID_LEN);
    snprintf(s->client_name, sizeof s->client_name, "holdfast-%s", s->id);
}

static void make_broker(struct server *s)
{
    uint64_t seed;

    util_random(&seed, sizeof seed);
    partitions_use(conf_is_clustered(&s->conf) ? PARTITIONS : 0); /* before names are looked at */
    broker_init(&s->broker, &s->conf.lock, s->id, seed, s->start_ms);
    rounds_set_wall(&s->broker.rounds, s->start_wall_ms, s->start_ms);
    const struct dropin_conf conf = {.max_hold_ms = s->conf.lock.drop_in_max_hold_ms,
                                     .patience_ms = s->conf.lock.drop_in_patience_ms};
    s->dropin = dropin_new(&s->broker, &conf);
}

struct server *server_new(const struct server_setup *setup, struct conf *conf, char *error,
                          size_t error_size)
{
    struct server *s = util_alloc(sizeof *s);
    struct conf_client limits;
    struct ssl_ctx_st *tls;

    s->setup = *setup;
    s->conf = *conf;
    s->start_ms = s->second_ms = clock_ms();
    s->start_wall_ms = s->reload_wall_ms = clock_wall_ms();
    s->watchdog_ms = systemd_watchdog_ms() / 2;
    server_set_log(s);
    server_raise_fds(&s->conf);
    find_names(s);
    /* From here on each part uses those made before it. */
    make_base(s);
    make_timer(s);
    watch_signals(s);
    make_broker(s);
    peers_init(&s->peers);
    server_configure_peers(s);
    users_configure(&s->conf);
    limits = server_client_limits(&s->conf);
    s->clients = client_init(s->base, &limits, &server_client_events, s);
    server_init_commands(s);
    s->listeners = listener_new(s->base, client_accept, s->clients);
    server_start_masters(s);
    quarantine_init(&s->quarantine, &s->broker.rounds);
    server_begin_roll_call(s);
    log_info("server", "holdfastd %s broker=%s pid=%ld masters=%zu", stats_version(), s->id,
             (long)getpid(), s->conf.master_count);
    /* Last: whoever connects from now on is served. */
    if (server_open_http(s, error, error_size) != 0 ||
        listener_open_all(s->listeners, &s->conf.listen, (unsigned)s->conf.unix_socket_mode, error,
                          error_size) != 0 ||
        server_check_exposure(s, error, error_size) != 0 ||
        server_load_tls(s, &s->conf, &tls, error, error_size) != 0) {
        server_free(s);
        return NULL;
    }
    server_use_tls(s, tls);
    /* Who comes now, on a port that systemd has kept open say, waits for the masters to join rather
     * than hear at once that there is no quorum. */
    listener_hold(s->listeners, true);
    s->accept_ms = clock_ms() + s->conf.lock.request_timeout_ms;
    return s;
}

/* ---- the end ---- */

void server_free(struct server *s)
{
    s->phase = SERVER_ENDS;
    systemd_notify("STOPPING=1\nSTATUS=stopping");
    listener_free(s->listeners);
    http_free(s->http);
    s->http = NULL;
    server_free_peers(s);
    server_end_clients(s);
    server_send_owed(s);
    server_leave(s);
    rounds_close(&s->broker.rounds);
    server_free_masters(s);
    dropin_close(s->dropin, clock_ms());
    broker_fini(&s->broker, clock_ms());
    dropin_free(s->dropin);
    cmd_fini();
    event_del(&s->on_term);
    event_del(&s->on_int);
    event_del(&s->on_hup);
    signal(SIGTERM, SIG_IGN); /* who asks again while we go must not make it a failure */
    signal(SIGINT, SIG_IGN);
    event_del(&s->timer);
    close(s->timer_fd);
    evdns_base_free(s->dns, 0);
    event_base_loop(s->base,
                    EVLOOP_ONCE | EVLOOP_NONBLOCK); /* what it has called off frees itself here */
    event_base_free(s->base);
    libevent_global_shutdown();
    conf_fini(&s->conf);
    log_set_patient(true);
    log_info(NULL, "stopped");
    login_fini();
    users_fini();
    tls_context_free(s->tls);
    free(s->settings);
    free(s->brokers);
    free(s);
}

struct event_base *server_base(struct server *s)
{
    return s->base;
}

const char *server_address(const struct server *s)
{
    return listener_addr(s->listeners, 0);
}
