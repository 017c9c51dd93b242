/*
 * The masters as the server sees them: made from the configuration, what follows when one changes
 * its state, and whether there are enough of them. How a master is talked to is master's business.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/systemd.h"
#include "base/util.h"
#include "dropin/call.h"
#include "dropin/messages.h"
#include "lock/replant.h"
#include "lock/view.h"
#include "net/stream.h"
#include "redis/cluster.h"
#include "redis/master.h"
#include "redis/partition.h"
#include "redis/settings.h"
#include "redis/subscriber.h"
#include "server/private.h"

/* A master that has BUSY_ITEMS to do takes about as long as BUSY_WAIT_NS. */
enum { BUSY_ITEMS = 32, BUSY_WAIT_NS = 300 * 1000 };

/* ---- making them ---- */

static void on_state(void *arg, struct master *m, enum master_state old)
{
    struct server *s = arg;
    int64_t now_ms = clock_ms();
    enum master_state state = master_status(m, now_ms)->state;

    (void)old;
    if (state == MASTER_ACTIVE || state == MASTER_QUARANTINE) {
        char peer[STREAM_ADDRESS_MAX];
        master_peer(m, peer);
        subscriber_keep_to(s->subscribers[master_index(m)], peer);
        rounds_master_back(&s->broker.rounds, master_index(m), now_ms);
    }
    replant_on_state(&s->broker, master_index(m), now_ms);
    quarantine_on_state(&s->quarantine);
    server_update_ready(s, now_ms);
    if (state == MASTER_ACTIVE && s->ready)
        broker_masters_back(&s->broker, now_ms);
}

static void on_moved(void *arg, struct master *m, const char *host, int port)
{
    struct server *s = arg;

    subscriber_move(s->subscribers[master_index(m)], host, port);
}

static struct master_setup setup_of(struct server *s)
{
    return (struct master_setup){
        .base = s->base,
        .dns = s->dns,
        .request_timeout_ms = s->conf.lock.request_timeout_ms,
        .quarantine_ms = s->conf.quarantine_ms == CONF_QUARANTINE_AUTO ? -1 : s->conf.quarantine_ms,
        .max_lease_ms = s->conf.lock.max_lease_ms,
        .drift_ppm = s->conf.lock.drift_ppm,
        .sentinel_timeout_ms = s->conf.sentinel_timeout_ms,
        .cluster = s->cluster,
        .broker = s->id,
        .settings = s->settings,
        .broker_name = s->conf.name,
        .brokers = s->brokers,
        .mirror = s->conf.mirror,
        .max_reply = s->conf.max_master_reply,
        .max_in_flight = s->conf.max_master_inflight,
        .client_name = s->client_name,
        .on_state = on_state,
        .on_moved = on_moved,
        .arg = s,
    };
}

static int n_masters(const struct server *s)
{
    return s->cluster ? partitions() : (int)s->conf.master_count;
}

/* Returns the configuration of master i. In a Cluster each partition is a master, and all have the
 * same but for the name, which is there until the next call. */
static struct conf_master conf_of(const struct server *s, int i)
{
    static char name[CONF_MASTER_NAME_MAX + 1];
    struct conf_master conf = s->conf.masters[s->cluster ? 0 : i];

    if (s->cluster) {
        snprintf(name, sizeof name, "p%02d", i);
        conf.name = name;
    }
    return conf;
}

static void on_call(void *arg, int i, const char *text, size_t len)
{
    struct server *s = arg;

    broker_called(&s->broker, i, text, len, clock_ms());
    dropin_called(s->dropin, text, len);
}

static void on_heard(void *arg, int i, int64_t since_ms, int64_t heard_ms)
{
    struct server *s = arg;

    broker_listens(&s->broker, i, since_ms, heard_ms, clock_ms());
}

static void on_said(void *arg, int i, const char *text, size_t len)
{
    struct server *s = arg;

    (void)i;
    messages_heard(dropin_messages(s->dropin), text, len, clock_ms());
}

static void on_listens(void *arg, int i, bool listens)
{
    struct server *s = arg;

    messages_listens(dropin_messages(s->dropin), i, listens, clock_ms());
}

static void listen_to_brokers(void *arg, bool on)
{
    struct server *s = arg;

    for (int i = 0; i < n_masters(s); i++)
        subscriber_listen(s->subscribers[i], on);
}

static void start_wakes(struct server *s)
{
    char own[64], channel[96];

    broker_channel(&s->broker, own, sizeof own);
    struct subscriber_setup setup = {.base = s->base,
                                     .dns = s->dns,
                                     .channel = channel,
                                     .is_sharded = s->cluster != NULL,
                                     .max_reply = s->conf.max_master_reply,
                                     .on_call = on_call,
                                     .on_heard = on_heard,
                                     .on_said = on_said,
                                     .on_listens = on_listens,
                                     .arg = s};
    for (int i = 0; i < n_masters(s); i++) {
        const struct conf_master conf = conf_of(s, i);
        setup.partition = s->cluster ? i : 0;
        /* as the scripts name it: see script.c */
        snprintf(channel, sizeof channel, "%s%s", partition_at(setup.partition),
                 s->cluster ? strchr(own, ':') + 1 : own);
        s->subscribers[i] = subscriber_new(&setup, &conf, i);
    }
    messages_set_listen(dropin_messages(s->dropin), listen_to_brokers, s);
}

static struct cluster *cluster_of(struct server *s)
{
    const struct cluster_setup setup = {.base = s->base,
                                        .dns = s->dns,
                                        .timeout_ms = s->conf.sentinel_timeout_ms,
                                        .max_reply = s->conf.max_master_reply};

    return cluster_new(&setup, &s->conf.masters[0]);
}

void server_start_masters(struct server *s)
{
    struct rounds *b = &s->broker.rounds;

    s->settings = settings_text(&s->conf);
    s->brokers = settings_brokers(&s->conf);
    if (conf_is_clustered(&s->conf))
        s->cluster = cluster_of(s);
    struct master_setup setup = setup_of(s);
    for (int i = 0; i < n_masters(s); i++) {
        const struct conf_master conf = conf_of(s, i);
        char *identity = conf_master_identity(&conf);
        setup.partition = s->cluster ? i : 0;
        rounds_add_master(b, master_new(&setup, &conf, i), identity);
        free(identity);
    }
    for (int i = 0; i < b->n_all; i++)
        master_start(b->masters[i]);
    start_wakes(s);
}

void server_configure_masters(struct server *s)
{
    struct rounds *b = &s->broker.rounds;
    struct master_setup setup = setup_of(s);

    if (s->cluster)
        cluster_configure(s->cluster, &s->conf.masters[0]);
    for (int i = 0; i < b->n_all; i++) {
        const struct conf_master conf = conf_of(s, i);
        master_configure(b->masters[i], &setup, &conf);
        subscriber_configure(s->subscribers[i], &conf);
    }
}

void server_free_masters(struct server *s)
{
    struct rounds *b = &s->broker.rounds;

    for (int i = 0; i < b->n_all; i++) {
        subscriber_free(s->subscribers[i]);
        master_free(b->masters[i]);
    }
    cluster_free(s->cluster);
    s->cluster = NULL;
}

/* ---- quarantines ---- */

/* A broker that is cut off goes on with a master that Sentinels have left, until their word is over
 * (R17). */
void server_begin_roll_call(struct server *s)
{
    int64_t longest_ms = s->conf.lock.max_lease_ms;

    if (!s->brokers)
        return;
    for (size_t i = 0; i < s->conf.master_count; i++)
        if (s->conf.masters[i].by_sentinels || s->conf.masters[i].by_cluster)
            longest_ms = s->conf.lock.max_lease_ms + s->conf.sentinel_timeout_ms;
    rollcall_begin(&s->quarantine.roll, longest_ms, s->conf.lock.drift_ppm);
}

void server_look_at_quarantines(struct server *s, int64_t now_ms)
{
    struct broker *b = &s->broker;
    struct quarantine *q = &s->quarantine;
    bool is_on = rollcall_is_on(&q->roll);

    for (int i = 0; i < b->rounds.n_all && is_on; i++) {
        if (master_status(b->rounds.masters[i], now_ms)->state == MASTER_QUARANTINE)
            quarantine_set_done(q, i, replant_is_done(b, i, now_ms));
    }
    if (b->n_drop_in > 0)
        rollcall_set_unsure(&q->roll, now_ms + q->roll.memory_ms);
    else
        rollcall_set_unsure(&q->roll, b->exchanges_until_ms);
    quarantine_turn(q, now_ms);
}

const char *server_unsigned_why(const struct server *s, int i, int64_t now_ms)
{
    const struct rollcall *roll = &s->quarantine.roll;
    const struct master_status *m = view_master(&s->broker, i, now_ms).status;

    if (m->state != MASTER_QUARANTINE || !rollcall_is_on(roll))
        return "";
    const char *why = rollcall_why_not(roll, i, now_ms);
    return why ? why : "";
}

/* ---- readiness ---- */

/* "2 of 3 masters (c: down)" */
static void describe_masters(const struct broker *b, struct buf *out, int64_t now_ms)
{
    int voters = view_n_voters(b, now_ms), n = view_n_masters(b);
    const char *separator = " (";

    buf_printf(out, "%d of %d masters", voters, n);
    if (voters == n)
        return;
    for (int i = 0; i < n; i++) {
        if (view_master(b, i, now_ms).votes)
            continue;
        buf_printf(out, "%s%s: %s", separator, view_master_name(b, i),
                   view_master_reason(b, i, now_ms));
        separator = ", ";
    }
    buf_append(out, ")", 1);
}

void server_update_status(struct server *s, int64_t now_ms)
{
    struct view_levels levels = view_levels(&s->broker);
    struct buf text = {0};

    if (s->phase == SERVER_DRAINS)
        buf_printf(&text, "draining, %" PRId64 " s left: ",
                   (s->drain_end_ms > now_ms ? s->drain_end_ms - now_ms : 0) / 1000);
    else
        buf_printf(&text, !s->ready                    ? "not ready: "
                          : view_is_paused(&s->broker) ? "paused, no new locks until RESUME: "
                                                       : "ready: ");
    describe_masters(&s->broker, &text, now_ms);
    buf_printf(&text, ", %" PRIu32 " lock%s, %" PRIu32 " waiting", levels.n_holds,
               util_plural(levels.n_holds), levels.n_waiters);
    buf_append(&text, "", 1);
    if (strncmp(s->status, buf_head(&text), sizeof s->status - 1) != 0) {
        snprintf(s->status, sizeof s->status, "%s", buf_head(&text));
        systemd_notify("STATUS=%s", s->status);
    }
    buf_fini(&text);
}

void server_log_ready(struct server *s, int64_t now_ms)
{
    struct buf text = {0};

    describe_masters(&s->broker, &text, now_ms);
    if (s->ready)
        log_info("server", "ready: %.*s", (int)buf_len(&text), buf_head(&text));
    else
        log_warn("server", "not ready, no lock can be granted: %.*s", (int)buf_len(&text),
                 buf_head(&text));
    buf_fini(&text);
}

void server_update_ready(struct server *s, int64_t now_ms)
{
    bool ready = view_has_quorum(&s->broker, now_ms);

    if (ready == s->ready || s->phase != SERVER_RUNS)
        return;
    s->ready = ready;
    server_judge_peers(s, now_ms);
    server_log_ready(s, now_ms);
    server_update_status(s, now_ms);
    if (ready)
        server_begin_to_accept(s);
}

/* ---- waiting for them ---- */

void server_let_masters_answer(struct server *s)
{
    const struct rounds *b = &s->broker.rounds;
    struct timespec wait = {.tv_nsec = BUSY_WAIT_NS};
    struct pollfd fds[ROUNDS_MASTERS_MAX];
    nfds_t n = 0;

    for (int i = 0; i < b->n_all; i++) {
        int64_t in_flight;
        fds[n] = (struct pollfd){.events = POLLIN};
        if (!master_is_active(b->masters[i], &fds[n].fd, &in_flight))
            continue;
        if (in_flight < BUSY_ITEMS)
            return;
        n++;
    }
    if (n > 0)
        (void)ppoll(fds, n, &wait, NULL);
}
