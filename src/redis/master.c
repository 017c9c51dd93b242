/*
 * The life of one master: how it is made, its state, what people see of it, its end. How its link
 * comes and goes stands in master_link.c, who it is in master_greet.c, what it is asked in
 * master_ask.c.
 *
 * Invariant: nothing is called back from inside a function of master.h but master_free(): what is
 * to be told waits for `turn`.
 */
#include "redis/master.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sm.h"
#include "conf/conf.h"
#include "net/tls.h"
#include "redis/cluster.h"
#include "redis/master_private.h"
#include "redis/partition.h"

enum { REFUSAL_SHOWN_MS = 1000 };

#define BIT(state) (1U << (state))

static const struct sm_state states[MASTER_STATES] = {
    [MASTER_DOWN] = {"down", BIT(MASTER_CONNECTING)},
    [MASTER_CONNECTING] = {"connecting", BIT(MASTER_DOWN) | BIT(MASTER_GREETING)},
    [MASTER_GREETING] = {"greeting", BIT(MASTER_DOWN) | BIT(MASTER_REFUSED) | BIT(MASTER_LOADING)},
    [MASTER_REFUSED] = {"refused", BIT(MASTER_DOWN) | BIT(MASTER_LOADING)},
    [MASTER_LOADING] = {"loading", BIT(MASTER_DOWN) | BIT(MASTER_REFUSED) | BIT(MASTER_JOINING)},
    [MASTER_JOINING] = {"joining", BIT(MASTER_DOWN) | BIT(MASTER_REFUSED) | BIT(MASTER_ACTIVE) |
                                       BIT(MASTER_QUARANTINE)},
    [MASTER_QUARANTINE] = {"quarantine", BIT(MASTER_DOWN) | BIT(MASTER_GREETING) |
                                             BIT(MASTER_REFUSED) | BIT(MASTER_JOINING) |
                                             BIT(MASTER_ACTIVE)},
    [MASTER_ACTIVE] = {"active", BIT(MASTER_DOWN) | BIT(MASTER_GREETING) | BIT(MASTER_REFUSED) |
                                     BIT(MASTER_JOINING) | BIT(MASTER_QUARANTINE)},
};

static TAILQ_HEAD(, master) masters = TAILQ_HEAD_INITIALIZER(masters);

/* ---- state ---- */

static void say_joined(struct master *m)
{
    char left[48];

    m->logged[0] = 0;
    if (m->state == MASTER_ACTIVE) {
        log_info(m->object, "active version=%s run_id=%s", m->facts.version, m->run_id);
        return;
    }
    int64_t left_ms = m->quarantine_end_ms - clock_ms();
    util_format_duration(left, sizeof left, left_ms < 0 ? 0 : left_ms / 1000 * 1000);
    log_warn(m->object, "in quarantine for %s: leases that it has forgotten may still be out",
             left);
}

void master_move(struct master *m, enum master_state to)
{
    sm_move(states, &m->state, m->object, to);
    if (to == MASTER_ACTIVE)
        m->admitted = m->own;
    if (to == MASTER_ACTIVE || to == MASTER_QUARANTINE) {
        m->error[0] = 0;
        m->refused_backoff_ms = 0;
        say_joined(m);
    }
    if (m->state != m->reported)
        event_active(&m->turn, EV_TIMEOUT, 0);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    struct master *m = arg;

    (void)fd, (void)what;
    master_deliver(m, clock_ms());
    if (m->state == m->reported)
        return;
    enum master_state old = m->reported;
    m->reported = m->state;
    m->in_calls = true;
    if (m->setup.on_state)
        m->setup.on_state(m->setup.arg, m, old);
    m->in_calls = false;
}

static bool is_of_set(const struct master *a, const struct master *b)
{
    return a->setup.arg == b->setup.arg && a->setup.partition == b->setup.partition;
}

struct master *master_next_of_set(const struct master *m, struct master *before)
{
    struct master *next = before ? TAILQ_NEXT(before, all) : TAILQ_FIRST(&masters);

    while (next && !is_of_set(next, m))
        next = TAILQ_NEXT(next, all);
    return next;
}

const struct master *master_twin(const struct master *m, const char *run_id)
{
    struct master *other = NULL;

    while ((other = master_next_of_set(m, other)) != NULL)
        if (other != m && other->state != MASTER_REFUSED && strcmp(other->run_id, run_id) == 0)
            return other;
    return NULL;
}

/* ---- its life ---- */

static void set_secret(struct master *m, const struct conf_master *conf)
{
    free(m->user);
    free(m->password);
    m->user = util_strdup(conf->user);
    m->password = util_strdup(conf->password);
}

struct ssl_ctx_st *master_tls_new(const struct conf_master *m, char *error, size_t error_size)
{
    const struct tls_files files = {.certificate = m->certificate, .key = m->key, .ca = m->ca};

    return tls_client_new(&files, error, error_size);
}

const char *master_tls_name(const char *configured, const char *host)
{
    return configured ? configured : host ? host : "";
}

void master_secure(struct master *m)
{
    free(m->server_name);
    m->server_name = util_strdup(master_tls_name(m->tls_name, m->host));
    if (m->tls)
        stream_secure(&m->link->stream, m->tls, m->server_name);
}

/* Makes the TLS context anew, because the files may be others under the same names. */
static void set_tls(struct master *m, const struct conf_master *conf)
{
    char error[TLS_REASON_MAX];
    struct ssl_ctx_st *fresh;

    if (!m->secure)
        return;
    if (!(fresh = master_tls_new(conf, error, sizeof error))) {
        log_error(m->object, "TLS: %s", error);
        return;
    }
    tls_context_free(m->tls);
    m->tls = fresh;
    free(m->tls_name);
    m->tls_name = util_strdup(conf->server_name);
    master_secure(m);
}

struct master *master_new(const struct master_setup *setup, const struct conf_master *conf,
                          int index)
{
    struct master *m = util_alloc(sizeof *m);

    m->setup = *setup;
    m->index = index;
    m->name = util_strdup(conf->name);
    m->slot = conf_master_identity(conf);
    m->db = conf->db;
    m->at = partition_at(setup->partition);
    m->is_unix = conf->is_unix;
    m->named_until_ms = INT64_MAX;
    set_secret(m, conf);
    snprintf(m->object, sizeof m->object, "master %s", m->name);
    if (conf->by_sentinels || setup->cluster)
        master_find(m, conf);
    else
        master_set_address(m, conf->host, conf->port);
    TAILQ_INIT(&m->renewals);
    TAILQ_INIT(&m->waiting);
    TAILQ_INIT(&m->unsent);
    TAILQ_INIT(&m->sent);
    TAILQ_INIT(&m->dead);
    TAILQ_INIT(&m->spare);
    m->quickest_us = INT64_MAX;
    master_link_init(m);
    m->secure = conf->tls;
    set_tls(m, conf);
    event_assign(&m->turn, setup->base, -1, 0, on_turn, m);
    TAILQ_INSERT_TAIL(&masters, m, all);
    return m;
}

void master_configure(struct master *m, const struct master_setup *setup,
                      const struct conf_master *conf)
{
    struct master_setup old = m->setup;

    m->setup = *setup;
    m->setup.base = old.base;
    m->setup.dns = old.dns;
    m->setup.arg = old.arg;
    m->setup.on_state = old.on_state;
    m->setup.on_moved = old.on_moved;
    m->setup.partition = old.partition;
    m->setup.cluster = old.cluster;
    set_secret(m, conf);
    set_tls(m, conf);
    if (m->sentinels)
        sentinels_configure(m->sentinels, conf);
}

void master_free(struct master *m)
{
    assert(!m->in_calls);
    sentinels_free(m->sentinels);
    if (m->setup.cluster)
        cluster_leave(m->setup.cluster, m->setup.partition);
    snprintf(m->error, sizeof m->error, "shutting down");
    master_link_close(m);
    master_leave_link(m);
    m->state = MASTER_DOWN;
    master_deliver(m, clock_ms());
    master_forget(m);
    event_del(&m->retry);
    event_del(&m->turn);
    TAILQ_REMOVE(&masters, m, all);
    link_free(m->own_link);
    free(m->name);
    free(m->slot);
    free(m->host);
    free(m->user);
    free(m->password);
    tls_context_free(m->tls);
    free(m->server_name);
    free(m->tls_name);
    free(m->looking);
    free(m);
}

const char *master_name(const struct master *m)
{
    return m->name;
}

void master_peer(const struct master *m, char *out)
{
    stream_peer_address(out, m->link->stream.fd);
}

int master_index(const struct master *m)
{
    return m->index;
}

int master_partition(const struct master *m)
{
    return m->setup.partition;
}

bool master_is_active(const struct master *m, int *fd, int64_t *in_flight)
{
    *fd = m->link->stream.fd;
    *in_flight = m->n_items;
    return m->state == MASTER_ACTIVE;
}

/* ---- what people see ---- */

static int64_t quarantine_left_ms(const struct master *m, int64_t now_ms)
{
    bool over = m->state != MASTER_QUARANTINE || m->quarantine_end_ms <= now_ms;
    return over ? 0 : m->quarantine_end_ms - now_ms;
}

/* Notes since when it votes, or does not; somebody looks each second. */
static void note_votes(struct master *m, int64_t now_ms)
{
    bool votes = master_state_votes(m->state) && !m->status.stalled;

    if (votes != m->voted || m->status.since_ms == 0)
        m->status.since_ms = now_ms;
    m->voted = votes;
}

const struct master_status *master_status(struct master *m, int64_t now_ms)
{
    struct master_status *s = &m->status;

    s->name = m->name;
    s->address = m->address;
    s->state = m->state;
    s->quarantine_left_ms = quarantine_left_ms(m, now_ms);
    s->latency_us = m->latency_us;
    s->trip_us = &m->trip_us;
    s->clock_offset_ms = m->clock.known ? m->clock.best.offset_us / 1000 : 0;
    s->in_flight = (uint32_t)m->n_items;
    s->stalled = m->silent || master_is_stalled(m, now_ms * 1000);
    note_votes(m, now_ms);
    s->run_id = m->run_id;
    s->life = m->own.text;
    s->disputed = m->rival[0] && master_life_is_disputed(m);
    s->version = m->facts.version;
    s->place = &m->place;
    s->roll_veto = m->roll_veto;
    bool is_called = m->state == MASTER_QUARANTINE && !m->roll_veto[0];
    bool waits = m->state == MASTER_JOINING && m->waited_ms;
    s->roll_missing = waits ? m->waits_for : is_called ? m->roll_missing : "";
    s->roll_signed = is_called ? m->roll_signed : "";
    s->error = m->error[0] ? m->error : m->rival[0] ? m->rival : m->unchecked;
    return s;
}

const char *master_reason(struct master *m, int64_t now_ms)
{
    char left[48];

    if (m->silent)
        return "stalled";
    switch (m->state) {
    case MASTER_ACTIVE:
        if (master_is_stalled(m, now_ms * 1000))
            return "stalled";
        if (m->refusal[0] && now_ms - m->refusal_ms < REFUSAL_SHOWN_MS)
            return m->refusal;
        return m->n_items >= m->setup.max_in_flight ? "overloaded" : "active";
    case MASTER_QUARANTINE:
        util_format_duration(left, sizeof left,
                             (quarantine_left_ms(m, now_ms) + 999) / 1000 * 1000);
        snprintf(m->reason, sizeof m->reason, "quarantined %s%s%.160s", left,
                 m->roll_missing[0] && !m->roll_veto[0] ? ", waits for " : "",
                 m->roll_veto[0] ? "" : m->roll_missing);
        return m->reason;
    case MASTER_REFUSED:
        if (!m->disagreement[0])
            return "refused";
        snprintf(m->reason, sizeof m->reason,
                 "refused, brokers disagree: configure all alike, or MASTER %s ADOPT", m->name);
        return m->reason;
    case MASTER_DOWN:
    case MASTER_CONNECTING:
        return m->host        ? "down"
               : m->sentinels ? "no majority of its Sentinels names it"
                              : "no majority of the Cluster names a keeper";
    default:
        if (m->state != MASTER_JOINING || !m->waited_ms || !m->waits_for[0])
            return "joining";
        snprintf(m->reason, sizeof m->reason, "waits until %.160s has been there", m->waits_for);
        return m->reason;
    }
}

const char *master_state_name(enum master_state state)
{
    return sm_name(states, (uint8_t)state);
}
