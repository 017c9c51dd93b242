/*
 * The links. A packet is one EVALSHA with its items, or a greeting; it belongs to the network from
 * send() until it is freed, and may outlive its link, its master and its broker. A conn is one TCP
 * connection; its two ends learn of its end at different times.
 *
 * Invariants: answers come in the order of `sent`; on_answer runs in fake_master_pump() and
 * master_free() only.
 */
#include "fake_master.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "redis/life.h"
#include "redis/place.h"
#include "redis/settings.h"
#include "redis/skew.h"
#include "sim_time.h"

struct fake_net fake_net = {.latency_min_us = 100, .latency_max_us = 500, .copy_us = 1000000};

enum {
    ITEMS_MAX = 64,
    TICK_US = 50000,
    PROBE_US = 500000, /* as PROBE_MS of master_link.c */
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MAX_MS = 1000,
    REFUSED_MS = 1000
};

enum packet_kind { HELLO, JOIN, HIGH, PROBE, ACTIVATE, SUSPEND, ROLL, ITEMS, BREAK, CALL };

struct fake_conn {
    LIST_ENTRY(fake_conn) of_server;
    int refs;
    struct master *master;                       /* NULL: the broker has closed it */
    struct fake_server *server;                  /* NULL: the server's end has gone */
    bool broken;                                 /* what is sent from now on arrives nowhere */
    int64_t to_server_us, to_master_us;          /* when the last packet arrives there */
    TAILQ_HEAD(packet_list, fake_packet) flying; /* to the server */
};

struct fake_packet {
    TAILQ_ENTRY(fake_packet) link;
    struct fake_conn *conn;
    struct fake_server *server;
    enum packet_kind kind;
    enum script script;
    bool doomed, copy, is_flying;
    char run_id[FAKE_RUN_ID_LEN + 1], settings[SETTINGS_DIGEST_LEN + 1];
    int n_keys, n_args, cap_keys, cap_args;
    char **keys, **args;
    struct fake_reply reply;
};

struct batch {
    TAILQ_ENTRY(batch) link;
    enum packet_kind kind;
    enum script script;
    int n_items;
    int64_t sent_us;
    TAILQ_HEAD(call_list, master_call) calls;
    struct buf counters;
    struct fake_packet *packet; /* until it has been sent */
};
TAILQ_HEAD(batch_list, batch);

struct master {
    LIST_ENTRY(master) all;
    struct master_setup setup;
    struct fake_server *home, *server; /* its place; who answers there now */
    int index;
    struct fake_link link;
    uint8_t state, reported;
    struct fake_conn *conn;
    bool cut, deaf;
    int64_t hears_us; /* its ear was deaf until then */
    struct packet_list held_out, held_in, inbox;
    struct batch *early, *open;
    struct batch_list unsent, sent, dead;
    struct sim_event *retry, *tick;
    int64_t last_call;
    int64_t backoff_ms, opened_us, heard_us, quarantine_end_us, offset_us;
    struct life own, newest; /* as in master_life.c */
    bool has_news;
    char rival[FAKE_RUN_ID_LEN + 2]; /* the run of another server that was found in its place */
    struct fake_ear ear;             /* where link.sentinels */
    struct fake_server *named;       /* likewise; NULL: none */
    struct skew clock;
    int64_t suspend_owed_us; /* as in master_clock.c */
    int n_items;
    char run_id[FAKE_RUN_ID_LEN + 1], name[16], error[96], reason[48];
    char digest[SETTINGS_DIGEST_LEN + 1], disagreement[128]; /* as in master_private.h */
    struct place place;                                      /* as in master_roll.c */
    char roll_veto[80], roll_missing[160];
    bool adopt, probing, leaves;
    int64_t probed_us;
    struct master_status status;
};

static LIST_HEAD(, master) masters = LIST_HEAD_INITIALIZER(masters);

static void drop_link(struct master *m, const char *why);
static void close_link(struct master *m);
static bool life_is_over(const struct master *m);
static void join(struct master *m);
static void on_retry(void *arg);
static void arrive(void *arg);
static void arrive_back(void *arg);

/* ---- packets ---- */

static void conn_unref(struct fake_conn *c)
{
    if (--c->refs == 0)
        free(c);
}

static void packet_free(struct fake_packet *p)
{
    if (p->is_flying)
        TAILQ_REMOVE(&p->conn->flying, p, link);
    for (int i = 0; i < p->n_keys; i++)
        free(p->keys[i]);
    for (int i = 0; i < p->n_args; i++)
        free(p->args[i]);
    free(p->keys);
    free(p->args);
    fake_reply_fini(&p->reply);
    conn_unref(p->conn);
    free(p);
}

static void free_all(struct packet_list *list)
{
    struct fake_packet *p;
    while ((p = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, p, link);
        packet_free(p);
    }
}

static struct fake_packet *packet_new(struct fake_conn *c, struct fake_server *s,
                                      enum packet_kind kind, const char *run_id)
{
    struct fake_packet *p = util_alloc(sizeof *p);
    p->conn = c;
    c->refs++;
    p->server = s;
    p->kind = kind;
    snprintf(p->run_id, sizeof p->run_id, "%s", run_id);
    return p;
}

static void push(char ***list, int *n, int *cap, char *text)
{
    if (*n == *cap) {
        *cap = *cap ? 2 * *cap : 16;
        *list = util_realloc(*list, (size_t)*cap * sizeof **list);
    }
    (*list)[(*n)++] = text;
}

static void push_arg(struct fake_packet *p, const char *text)
{
    push(&p->args, &p->n_args, &p->cap_args, util_strdup(text));
}

static void push_int(struct fake_packet *p, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, n);
    push_arg(p, text);
}

/* "$3\r\nabc\r\n..." */
static void push_wire(char ***list, int *n, int *cap, const char *bytes, size_t len)
{
    for (const char *p = bytes; p < bytes + len;) {
        char *end;
        assert(*p == '$');
        size_t size = strtoul(p + 1, &end, 10);
        assert(end[0] == '\r' && end[1] == '\n' && end + 2 + size + 2 <= bytes + len);
        push(list, n, cap, util_memdup(end + 2, size));
        p = end + 2 + size;
        assert(p[0] == '\r' && p[1] == '\n');
        p += 2;
    }
}

static struct fake_packet *packet_copy(const struct fake_packet *p)
{
    struct fake_packet *copy = packet_new(p->conn, p->server, p->kind, p->run_id);
    copy->script = p->script;
    strcpy(copy->settings, p->settings);
    copy->copy = true;
    for (int i = 0; i < p->n_keys; i++)
        push(&copy->keys, &copy->n_keys, &copy->cap_keys, util_strdup(p->keys[i]));
    for (int i = 0; i < p->n_args; i++)
        push_arg(copy, p->args[i]);
    return copy;
}

static int64_t latency_us(void)
{
    if (sim_chance(fake_net.slow_per_mille))
        return sim_between(fake_net.latency_max_us, fake_net.slow_us);
    return sim_between(fake_net.latency_min_us, fake_net.latency_max_us);
}

static int64_t in_order(int64_t *last_us)
{
    int64_t at_us = sim_now_us() + latency_us();
    if (at_us < *last_us)
        at_us = *last_us;
    *last_us = at_us;
    return at_us;
}

/* ---- the end of a connection ---- */

/* The broker hears of it, if it has not closed it itself. */
static void tell_master(struct fake_conn *c)
{
    if (c->master)
        sim_at(in_order(&c->to_master_us), arrive_back, packet_new(c, NULL, BREAK, ""));
}

/* What is on its way arrives up to some point. */
static void doom_some(struct fake_conn *c)
{
    struct fake_packet *p;
    int64_t n = 0;
    TAILQ_FOREACH(p, &c->flying, link)
        n++;
    n = sim_random(n + 1);
    TAILQ_FOREACH(p, &c->flying, link) {
        if (n-- <= 0)
            p->doomed = true;
    }
    c->broken = true;
}

static void conn_close_by_master(struct fake_conn *c)
{
    if (!c->broken)
        doom_some(c);
    c->master = NULL;
    conn_unref(c);
}

static void conn_close_by_server(struct fake_conn *c)
{
    LIST_REMOVE(c, of_server);
    c->server = NULL;
    c->broken = true;
    tell_master(c);
    conn_unref(c);
}

void fake_master_break(struct master *m)
{
    if (!m->conn || m->conn->broken)
        return;
    doom_some(m->conn);
    tell_master(m->conn);
}

/* ---- the server's side ---- */

static void run(struct fake_packet *p)
{
    struct fake_server *s = p->server;
    struct fake_conn *c = p->conn;
    if (p->kind == HELLO)
        snprintf(p->run_id, sizeof p->run_id, "%s", s->run_id);
    else if (p->kind == PROBE)
        fake_server_look(s, p->run_id, p->n_args, p->args, &p->reply);
    else
        fake_server_eval(s, p->script, p->run_id, p->settings, p->n_keys, p->keys, p->n_args,
                         p->args, &p->reply);
    p->server = NULL;
    if (!p->copy && c->server && c->master && !c->broken)
        sim_at(in_order(&c->to_master_us), arrive_back, p);
    else
        packet_free(p);
}

static void receive(struct fake_packet *p)
{
    struct fake_server *s = p->server;
    bool is_old = !p->copy && !p->conn->server;
    if (!s->up || is_old) {
        packet_free(p);
        return;
    }
    if (s->stopped)
        TAILQ_INSERT_TAIL(&s->backlog, p, link);
    else
        run(p);
}

static void arrive(void *arg)
{
    struct fake_packet *p = arg;
    struct master *m = p->conn->master;
    if (p->is_flying) {
        TAILQ_REMOVE(&p->conn->flying, p, link);
        p->is_flying = false;
    }
    if (p->doomed)
        packet_free(p);
    else if (m && m->cut && !p->copy)
        TAILQ_INSERT_TAIL(&m->held_out, p, link);
    else
        receive(p);
}

/* A message to all who listen to the channel, on another connection than the answers. */
static int publish(struct fake_server *s, const char *channel, const char *text)
{
    struct fake_conn *c;
    int n = 0;
    LIST_FOREACH(c, &s->conns, of_server) {
        if (!c->master || !c->master->link.channel || strcmp(c->master->link.channel, channel) != 0)
            continue;
        n++;
        struct fake_packet *p = packet_new(c, NULL, CALL, "");
        push_arg(p, text);
        if (sim_chance(fake_net.loss_per_mille) || c->master->deaf) {
            c->master->hears_us = sim_now_us(); /* the link has broken, and come back at once */
            packet_free(p);
        } else {
            sim_at(sim_now_us() + latency_us(), arrive_back, p);
        }
    }
    return n;
}

int64_t fake_master_hears_since_ms(const struct master *m)
{
    const struct fake_conn *c = m->conn;
    int64_t since_us = m->opened_us > m->hears_us ? m->opened_us : m->hears_us;
    if (m->deaf || m->cut || m->state < MASTER_LOADING || !c || c->broken || m->server->stopped)
        return INT64_MAX;
    return (since_us + m->link.local_us) / 1000 + 1;
}

void fake_master_deafen(struct master *m, bool deaf)
{
    m->deaf = deaf;
    m->hears_us = sim_now_us();
}

static void send(struct master *m, struct fake_packet *p)
{
    struct fake_conn *c = m->conn;
    if (c->broken) {
        packet_free(p);
        return;
    }
    int64_t at_us = in_order(&c->to_server_us);
    if (p->kind == ITEMS && sim_chance(fake_net.copy_per_mille)) /* never before the first one */
        sim_at(at_us + sim_random(fake_net.copy_us), arrive, packet_copy(p));
    TAILQ_INSERT_TAIL(&c->flying, p, link);
    p->is_flying = true;
    sim_at(at_us, arrive, p);
    if (p->kind == ITEMS && sim_chance(fake_net.loss_per_mille))
        fake_master_break(m);
}

void fake_server_stop(struct fake_server *s, bool stop)
{
    struct fake_packet *p;
    s->stopped = stop;
    while (!stop && (p = TAILQ_FIRST(&s->backlog))) {
        TAILQ_REMOVE(&s->backlog, p, link);
        if (p->copy || p->conn->server)
            run(p);
        else
            packet_free(p);
    }
}

void fake_server_kill(struct fake_server *s)
{
    struct fake_packet *p;
    s->up = false;
    s->stopped = false;
    while ((p = TAILQ_FIRST(&s->backlog))) {
        TAILQ_REMOVE(&s->backlog, p, link);
        packet_free(p);
    }
    while (!LIST_EMPTY(&s->conns))
        conn_close_by_server(LIST_FIRST(&s->conns));
}

void fake_server_start(struct fake_server *s, bool keep_data)
{
    assert(!s->up);
    fake_server_rerun(s, keep_data);
    s->up = true;
}

/* ---- the broker's side ---- */

static void arrive_back(void *arg)
{
    struct fake_packet *p = arg;
    struct master *m = p->conn->master;
    if (!m || (p->kind < BREAK && p->conn->broken)) {
        packet_free(p);
    } else if (m->cut) {
        TAILQ_INSERT_TAIL(&m->held_in, p, link);
    } else {
        TAILQ_INSERT_TAIL(&m->inbox, p, link);
        m->link.wake(m->link.arg);
    }
}

void fake_master_cut(struct master *m, bool cut)
{
    struct packet_list out = TAILQ_HEAD_INITIALIZER(out), in = TAILQ_HEAD_INITIALIZER(in);
    struct fake_packet *p;
    m->cut = cut;
    if (cut)
        return;
    TAILQ_CONCAT(&out, &m->held_out, link);
    TAILQ_CONCAT(&in, &m->held_in, link);
    while ((p = TAILQ_FIRST(&in))) {
        TAILQ_REMOVE(&in, p, link);
        arrive_back(p);
    }
    while ((p = TAILQ_FIRST(&out))) {
        TAILQ_REMOVE(&out, p, link);
        receive(p);
    }
}

struct fake_ear *fake_master_ear(struct master *m)
{
    return &m->ear;
}

bool fake_master_is_cut(const struct master *m)
{
    return m->cut;
}

static int64_t local_ms(const struct master *m)
{
    return (sim_now_us() + m->link.local_us) / 1000;
}

static void move(struct master *m, enum master_state to)
{
    if (m->state == to)
        return;
    log_trace(m->name, "state %s -> %s", master_state_name(m->state), master_state_name(to));
    m->state = (uint8_t)to;
    m->link.wake(m->link.arg);
}

/* ---- batches ---- */

static struct batch *batch_new(struct master *m, enum packet_kind kind, enum script script)
{
    struct batch *b = util_alloc(sizeof *b);
    b->kind = kind;
    b->script = script;
    TAILQ_INIT(&b->calls);
    b->packet = m->conn ? packet_new(m->conn, m->server, kind, m->run_id) : NULL;
    b->packet->script = script;
    strcpy(b->packet->settings, m->digest);
    return b;
}

static void batch_free(struct batch *b)
{
    assert(TAILQ_EMPTY(&b->calls));
    if (b->packet)
        packet_free(b->packet);
    buf_fini(&b->counters);
    free(b);
}

static void set_int(struct fake_packet *p, int i, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, n);
    free(p->args[i]);
    p->args[i] = util_strdup(text);
}

/* The first and the last that there is, if there is one. */
static void push_floors(struct batch *b)
{
    int64_t lowest = 0, highest = 0;
    struct master_call *call;
    TAILQ_FOREACH(call, &b->calls, link) {
        lowest = lowest ? lowest : call->floor;
        highest = call->floor ? call->floor : highest;
    }
    if (highest > 0) {
        push_int(b->packet, lowest);
        push_int(b->packet, highest);
    }
}

/* Calls are numbered in the order in which they leave, by the time of the server: it forgets
 * numbers by their age. */
static void close_batch(struct master *m, struct batch **open)
{
    struct batch *b = *open;
    if (!b)
        return;
    int64_t time_us = fake_server_time_ms(m->server) * 1000;
    m->last_call = time_us > m->last_call ? time_us : m->last_call + 1;
    set_int(b->packet, 1, m->last_call);
    if (script_get(b->script)->floors) {
        push_floors(b);
        if (buf_len(&b->counters) > 0)
            push(&b->packet->args, &b->packet->n_args, &b->packet->cap_args,
                 util_memdup(buf_head(&b->counters), buf_len(&b->counters)));
    }
    TAILQ_INSERT_TAIL(&m->unsent, b, link);
    *open = NULL;
}

static void close_open(struct master *m)
{
    close_batch(m, &m->early);
    close_batch(m, &m->open);
}

static bool is_stalled(const struct master *m)
{
    const struct batch *b = TAILQ_FIRST(&m->sent);
    return b && sim_now_us() - b->sent_us > m->setup.request_timeout_ms * 1000;
}

static bool takes(struct master *m, enum script script, bool undoes)
{
    bool anyway = script_runs_in_quarantine(script);
    if (m->state != MASTER_ACTIVE && !(m->state == MASTER_QUARANTINE && anyway))
        return false;
    return script == SCRIPT_RELEASE || undoes || !is_stalled(m);
}

static void begin_args(struct master *m, struct batch *b, int64_t now_ms)
{
    if (script_get(b->script)->deadline)
        push_int(b->packet, now_ms + m->offset_us / 1000 + 2 * m->setup.request_timeout_ms);
    else
        push_arg(b->packet, "");
    push_arg(b->packet, "?"); /* close_batch() */
    push_arg(b->packet, m->setup.broker);
}

/* Nobody listens to the messages of clients here. */
void master_publish(struct master *m, const char *text, size_t len, int64_t now_ms)
{
    (void)m, (void)text, (void)len, (void)now_ms;
}

int master_ask(struct master *m, enum script script, const struct master_item *item,
               struct master_call *call, int64_t now_ms)
{
    assert(script <= SCRIPT_PEEK);
    if (!takes(m, script, item->undoes))
        return -1;
    bool early = item->early && (!m->open || m->open->script == SCRIPT_ACQUIRE);
    struct batch **open = early ? &m->early : &m->open;
    if (*open && ((*open)->script != script || (*open)->n_items == ITEMS_MAX))
        close_open(m);
    if (!*open) {
        *open = batch_new(m, ITEMS, script);
        begin_args(m, *open, now_ms);
    }
    struct fake_packet *p = (*open)->packet;
    push_wire(&p->keys, &p->n_keys, &p->cap_keys, item->key, item->key_len);
    push_wire(&p->args, &p->n_args, &p->cap_args, item->args, item->args_len);
    assert(p->n_keys == (*open)->n_items + 1);
    if (script_get(script)->floors && item->bucket >= 0)
        buf_printf(&(*open)->counters, "%s%d", p->n_keys > 1 ? " " : "", item->bucket);
    call->sent_us = sim_now_us();
    call->floor = item->floor;
    TAILQ_INSERT_TAIL(&(*open)->calls, call, link);
    (*open)->n_items++;
    m->n_items++;
    return 0;
}

void master_together(struct master *m, enum script script, int n, int64_t now_ms)
{
    (void)now_ms;
    if (m->open && (m->open->script != script || m->open->n_items + n > ITEMS_MAX))
        close_open(m);
}

void master_flush(struct master *m, int64_t now_ms)
{
    struct batch *b;
    (void)now_ms;
    close_open(m);
    while ((b = TAILQ_FIRST(&m->unsent))) {
        TAILQ_REMOVE(&m->unsent, b, link);
        b->sent_us = sim_now_us();
        struct fake_packet *p = b->packet;
        b->packet = NULL;
        TAILQ_INSERT_TAIL(&m->sent, b, link);
        send(m, p);
    }
}

static struct batch *ask_self(struct master *m, enum packet_kind kind, enum script script)
{
    close_open(m);
    struct batch *b = batch_new(m, kind, script);
    TAILQ_INSERT_TAIL(&m->unsent, b, link);
    return b;
}

static void greet(struct master *m)
{
    if (m->state != MASTER_REFUSED)
        move(m, MASTER_GREETING);
    ask_self(m, HELLO, SCRIPT_COUNT);
    master_flush(m, 0);
}

static int64_t quarantine_ms(const struct master *m)
{
    const struct master_setup *s = &m->setup;
    int64_t longer_ms = m->link.sentinels ? m->link.sentinels->timeout_ms : 0;

    if (fake_mutation == FAKE_PROMOTED_IS_RESTARTED)
        longer_ms = 0;
    if (s->quarantine_ms >= 0)
        return s->quarantine_ms > 0 ? s->quarantine_ms + longer_ms : 0;
    longer_ms += s->max_lease_ms;
    return longer_ms + longer_ms * s->drift_ppm / 1000000 + 1000;
}

/* Are they masters of one broker and one partition? */
static bool is_of_set(const struct master *a, const struct master *b)
{
    return a->setup.arg == b->setup.arg && a->setup.partition == b->setup.partition;
}

/* Join says all that one can ask for, and its repeat changes nothing. */
static void ask_how(struct master *m, enum packet_kind kind)
{
    struct batch *b = ask_self(m, kind, SCRIPT_JOIN);
    struct master *other;
    push_arg(b->packet, m->run_id);
    push_int(b->packet, quarantine_ms(m));
    push_arg(b->packet, m->setup.settings);
    push_int(b->packet, m->adopt);
    push_arg(b->packet, m->digest);
    m->adopt = false;
    push_arg(b->packet, "-1");
    push_arg(b->packet, m->name);
    push_arg(b->packet, m->newest.text);
    LIST_FOREACH(other, &masters, all) {
        if (other == m || !is_of_set(other, m))
            continue;
        push_arg(b->packet, other->name);
        push_arg(b->packet, other->newest.text);
    }
    master_flush(m, 0);
}

static void join(struct master *m)
{
    move(m, MASTER_JOINING);
    ask_how(m, JOIN);
}

void master_roll(struct master *m, enum master_roll what, int64_t token, int64_t left_ms)
{
    static const char *const words[] = {"here", "sign", "leave"};
    bool is_in = m->state == MASTER_ACTIVE || m->state == MASTER_QUARANTINE;
    if (!m->setup.brokers || !is_in || m->leaves)
        return;
    if (what == MASTER_SIGNS && life_is_over(m)) {
        join(m);
        return;
    }
    m->leaves = what == MASTER_LEAVES;
    struct batch *b = ask_self(m, ROLL, SCRIPT_ROLL);
    const char *const texts[] = {
        m->run_id, m->name, m->own.text, m->digest, m->setup.broker_name, m->setup.broker};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        push_arg(b->packet, texts[i]);
    push_int(b->packet, m->last_call);
    push_arg(b->packet, words[what]);
    push_int(b->packet, token);
    push_int(b->packet, left_ms);
    push_arg(b->packet, m->setup.brokers);
    push_arg(b->packet, "0"); /* it is no Cluster's */
    push_int(b->packet, 0);
    push_int(b->packet, 0);
    master_flush(m, 0);
}

static void probe(struct master *m)
{
    struct batch *b = ask_self(m, PROBE, SCRIPT_JOIN);
    struct master *other;
    push_arg(b->packet, m->name);
    LIST_FOREACH(other, &masters, all) {
        if (other != m && is_of_set(other, m))
            push_arg(b->packet, other->name);
    }
    m->probing = true;
    m->probed_us = sim_now_us();
    master_roll(m, MASTER_IS_HERE, 0, 0);
    master_flush(m, 0);
}

/* ---- lives, as in master_life.c ---- */

static bool life_is_over(const struct master *m)
{
    return strcmp(m->own.text, m->newest.text) != 0;
}

static const char *run_of(const struct life *l)
{
    const char *run = strchr(l->text, ' ');
    return run ? run : "";
}

static void end_life(struct master *m)
{
    if (strcmp(run_of(&m->own), run_of(&m->newest)) != 0)
        snprintf(m->rival, sizeof m->rival, "%s", run_of(&m->newest));
    if (m->state == MASTER_ACTIVE)
        join(m);
}

static void take_lives(struct master *m, const struct fake_reply *r)
{
    const struct fake_value *v = r->values + 4;
    struct master *other;
    m->own = (struct life){{0}};
    (void)life_take(&m->own, v->text, strlen(v->text));
    m->has_news |= life_take(&m->newest, v->text, strlen(v->text));
    LIST_FOREACH(other, &masters, all) {
        if (other == m || !is_of_set(other, m))
            continue;
        v++;
        (void)life_take(&other->newest, v->text, strlen(v->text));
    }
}

static void spread_lives(struct master *m)
{
    bool has_news = m->has_news;
    struct master *other;
    m->has_news = false;
    LIST_FOREACH(other, &masters, all) {
        if (other == m || !is_of_set(other, m) || other->state < MASTER_QUARANTINE)
            continue;
        if (life_is_over(other))
            end_life(other);
        else if (has_news)
            ask_how(other, HIGH);
    }
}

void master_ask_high(struct master *m)
{
    if (m->state == MASTER_ACTIVE || m->state == MASTER_QUARANTINE)
        ask_how(m, HIGH);
}

void master_activate(struct master *m, int64_t base, bool force)
{
    if (m->state != MASTER_QUARANTINE)
        return;
    if (life_is_over(m)) {
        join(m);
        return;
    }
    struct batch *b = ask_self(m, ACTIVATE, SCRIPT_ACTIVATE);
    push_arg(b->packet, m->run_id);
    push_int(b->packet, base);
    push_int(b->packet, force);
    push_arg(b->packet, m->digest);
    master_flush(m, 0);
}

/* ---- answers ---- */

static void answer_all(struct master *m, struct batch *b, enum master_result result,
                       const char *text, int64_t now_ms)
{
    struct master_answer answer = {.result = result, .text = text};
    struct master_call *call;
    m->n_items -= b->n_items;
    while ((call = TAILQ_FIRST(&b->calls))) {
        TAILQ_REMOVE(&b->calls, call, link);
        call->on_answer(call, &answer, now_ms);
    }
}

static void answer_item(const struct batch *b, const struct fake_reply *r, int item, int at,
                        int width, struct master_call *call, int64_t now_ms)
{
    int64_t values[SCRIPT_WIDTH_MAX];
    struct master_value nested[1 + 8 * 16]; /* as peek.lua says */
    struct master_value text = {.is_text = true, .text = ""};
    struct master_answer answer = {
        .result = MASTER_ANSWERED, .values = values, .item_text = &text, .text = ""};
    if (script_get(b->script)->texts) {
        text.text = r->values[at + width].text;
        text.len = strlen(text.text);
    }
    for (int i = 0; i < width; i++) {
        const struct fake_value *v = &r->values[at + i];
        if (b->script != SCRIPT_PEEK)
            values[i] = v->integer + (i == 1 && values[0] == 1 ? call->floor : 0);
        else
            nested[i] = (struct master_value){v->is_text, v->integer, v->text,
                                              v->is_text ? strlen(v->text) : 0};
    }
    if (b->script == SCRIPT_PEEK) {
        answer.values = NULL;
        answer.nested = nested;
        answer.n_nested = r->nested[item];
    }
    call->on_answer(call, &answer, now_ms);
}

/* What this says of its clock; true: it has jumped ahead. As master_clock_take(). */
static bool take_time(struct master *m, const struct batch *b, const struct fake_reply *r)
{
    int64_t now_us = sim_now_us(), trip_us = now_us - b->sent_us, apart_us, age_us;
    struct skew_sample sample = {.error_us = trip_us / 2 + 1000, .at_us = now_us};
    m->offset_us = r->time_ms * 1000 - (b->sent_us + trip_us / 2 + m->link.local_us);
    sample.offset_us = m->offset_us;
    enum skew_verdict verdict = skew_take(&m->clock, &sample, m->setup.drift_ppm,
                                          m->setup.max_lease_ms * 1000, &apart_us, &age_us);
    m->status.clock_jumps += verdict != SKEW_FINE;
    if (verdict != SKEW_AHEAD || fake_mutation == FAKE_JUMPS_UNSEEN)
        return false;
    m->suspend_owed_us = now_us + quarantine_ms(m) * 1000;
    return true;
}

static void suspend(struct master *m)
{
    int64_t ms = quarantine_ms(m);
    if (ms == 0 || m->suspend_owed_us <= sim_now_us())
        return;
    if (m->state != MASTER_ACTIVE && m->state != MASTER_QUARANTINE)
        return;
    m->quarantine_end_us = sim_now_us() + ms * 1000;
    move(m, MASTER_QUARANTINE);
    struct batch *b = ask_self(m, SUSPEND, SCRIPT_SUSPEND);
    push_arg(b->packet, m->run_id);
    push_int(b->packet, ms);
    master_flush(m, 0);
}

void master_prolong(struct master *m)
{
    if (m->state != MASTER_QUARANTINE)
        return;
    m->suspend_owed_us = sim_now_us() + quarantine_ms(m) * 1000;
    suspend(m);
}

static void answer_items(struct master *m, struct batch *b, const struct fake_reply *r,
                         int64_t now_ms)
{
    struct master_call *call;
    int at = 0;
    if (take_time(m, b, r)) {
        suspend(m);
        answer_all(m, b, MASTER_UNKNOWN, "its clock has jumped ahead", now_ms);
        return;
    }
    m->n_items -= b->n_items;
    for (int item = 0; (call = TAILQ_FIRST(&b->calls)); item++) {
        int width = b->script == SCRIPT_PEEK ? r->nested[item] : script_get(b->script)->width;
        TAILQ_REMOVE(&b->calls, call, link);
        answer_item(b, r, item, at, width, call, now_ms);
        at += width + script_get(b->script)->texts;
    }
    assert(at == r->n);
}

static void take_error(struct master *m, const char *error)
{
    bool is_in = m->state == MASTER_ACTIVE || m->state == MASTER_QUARANTINE;
    snprintf(m->error, sizeof m->error, "%s", error);
    if (is_in && (strncmp(error, "STRANGER", 8) == 0 || strncmp(error, "NOSCRIPT", 8) == 0))
        greet(m);
    else if (m->state == MASTER_ACTIVE && strncmp(error, "QUARANTINE", 10) == 0)
        join(m);
    else if (is_in && strncmp(error, "SETTINGS", 8) == 0)
        join(m);
    else if (m->state == MASTER_ACTIVE && strncmp(error, "LATE", 4) == 0)
        probe(m);
}

/* What join and activate say: state and what is left of the quarantine. */
static void take_state(struct master *m, const struct fake_reply *r)
{
    m->quarantine_end_us = sim_now_us() + r->values[1].integer * 1000;
    move(m, strcmp(r->values[0].text, "active") == 0 ? MASTER_ACTIVE : MASTER_QUARANTINE);
}

static void take_high(struct master *m, const struct fake_reply *r, int64_t sent_us)
{
    if (r->values[3].integer > m->status.high)
        m->status.high = r->values[3].integer;
    m->status.high_asked_ms = (sent_us + m->link.local_us) / 1000;
}

/* Emptied, or activated by another broker: that is not the answer to the question. */
static void take_how(struct master *m, enum packet_kind kind, const struct fake_reply *r,
                     int64_t sent_us)
{
    if (m->state != MASTER_ACTIVE && m->state != MASTER_QUARANTINE)
        return;
    const struct life joined = m->own;
    take_lives(m, r);
    if ((strcmp(r->values[0].text, "active") == 0) != (m->state == MASTER_ACTIVE) ||
        (kind == PROBE && strcmp(joined.text, m->own.text) != 0))
        join(m);
    else if (kind == HIGH)
        take_high(m, r, sent_us);
    else if (life_is_over(m))
        end_life(m);
    else if (m->state == MASTER_ACTIVE)
        m->rival[0] = '\0';
    spread_lives(m);
}

/* The settings in force there are ours; else it is refused. */
static bool agrees(struct master *m, const struct fake_reply *r)
{
    const char *theirs = r->values[2].text;
    m->disagreement[0] = '\0';
    if (strcmp(theirs, m->setup.settings) == 0)
        return true;
    snprintf(m->disagreement, sizeof m->disagreement, "%s: brokers disagree", m->name);
    close_link(m);
    move(m, MASTER_REFUSED);
    m->retry = sim_at(sim_now_us() + REFUSED_MS * 1000, on_retry, m);
    return false;
}

static void take_roll(struct master *m, const struct batch *b, const struct fake_reply *r)
{
    if (m->leaves)
        return;
    if (m->state != MASTER_ACTIVE && m->state != MASTER_QUARANTINE)
        return;
    const struct fake_value *v = r->values;
    struct place_told told = {.record = v[2].text,
                              .len = strlen(v[2].text),
                              .is_active = strcmp(v[0].text, "active") == 0,
                              .asked_ms = (b->sent_us + m->link.local_us) / 1000,
                              .heard_ms = local_ms(m)};
    bool is_record = place_take(&m->place, m->setup.broker, &told, &m->own);
    assert(is_record);
    (void)is_record;
    snprintf(m->roll_veto, sizeof m->roll_veto, "%s", v[3].text);
    snprintf(m->roll_missing, sizeof m->roll_missing, "%s", v[4].text);
    if (m->state == MASTER_QUARANTINE)
        take_state(m, r);
    else if (!told.is_active)
        join(m);
    if (m->state == MASTER_ACTIVE && life_is_over(m))
        join(m);
}

static void take_greeting(struct master *m, const struct batch *b, const struct fake_packet *p)
{
    m->probing &= b->kind != PROBE;
    if (b->kind == HELLO) {
        bool is_other = strcmp(m->run_id, p->run_id) != 0;
        m->status.restarts += m->run_id[0] && is_other;
        m->clock.known &= !is_other;
        if (is_other)
            m->suspend_owed_us = 0;
        snprintf(m->run_id, sizeof m->run_id, "%s", p->run_id);
        move(m, MASTER_LOADING);
        join(m);
        return;
    }
    if (p->reply.error[0]) {
        if (b->kind == JOIN || (b->kind == ROLL && strncmp(p->reply.error, "STRANGER", 8) != 0 &&
                                strncmp(p->reply.error, "SETTINGS", 8) != 0))
            drop_link(m, p->reply.error);
        else
            take_error(m, p->reply.error);
        return;
    }
    if (b->kind <= PROBE && !agrees(m, &p->reply))
        return;
    (void)take_time(m, b, &p->reply);
    if (b->kind == SUSPEND)
        m->suspend_owed_us = 0;
    if (b->kind == ROLL) {
        take_roll(m, b, &p->reply);
    } else if (b->kind == HIGH || b->kind == PROBE) {
        take_how(m, b->kind, &p->reply, b->sent_us);
    } else if (b->kind == JOIN || m->state == MASTER_QUARANTINE) {
        if (b->kind == JOIN) {
            take_lives(m, &p->reply);
            take_high(m, &p->reply, b->sent_us);
        }
        if (b->kind == JOIN && life_is_over(m)) {
            join(m);
            return;
        }
        take_state(m, &p->reply);
        if (b->kind == JOIN) {
            m->roll_veto[0] = m->roll_missing[0] = '\0';
            master_roll(m, MASTER_IS_HERE, 0, 0);
        }
        if (b->kind == ACTIVATE && m->state == MASTER_ACTIVE)
            master_roll(m, MASTER_IS_HERE, 0, 0);
        if (life_is_over(m))
            end_life(m);
        spread_lives(m);
    }
    suspend(m);
}

/* As the real one: what it has answered raises what is known of its tokens. */
static void see_tokens(struct master *m, const struct batch *b, const struct fake_reply *r)
{
    const struct fake_value *v = r->values;
    const struct master_call *call;
    if (b->script > SCRIPT_TAKEOVER || r->n == 0)
        return;
    TAILQ_FOREACH(call, &b->calls, link) {
        if (v[0].integer == 1 && v[1].integer + call->floor > m->status.high)
            m->status.high = v[1].integer + call->floor;
        v += script_get(b->script)->width + script_get(b->script)->texts;
    }
}

static void take_packet(struct master *m, struct fake_packet *p, int64_t now_ms)
{
    if (p->conn != m->conn)
        return;
    if (p->kind == CALL) {
        m->link.on_call(m->link.arg, m->index, p->args[0], strlen(p->args[0]));
        return;
    }
    if (p->kind == BREAK) {
        drop_link(m, "connection reset");
        return;
    }
    struct batch *b = TAILQ_FIRST(&m->sent);
    assert(b && b->kind == p->kind);
    TAILQ_REMOVE(&m->sent, b, link);
    if (b->kind != ITEMS) {
        take_greeting(m, b, p);
    } else if (p->reply.error[0]) {
        if (strncmp(p->reply.error, "SETTINGS", 8) == 0)
            snprintf(m->disagreement, sizeof m->disagreement, "%s: brokers disagree", m->name);
        answer_all(m, b, MASTER_REJECTED, p->reply.error, now_ms);
        take_error(m, p->reply.error);
    } else {
        see_tokens(m, b, &p->reply);
        answer_items(m, b, &p->reply, now_ms);
    }
    batch_free(b);
}

static void deliver_dead(struct master *m, int64_t now_ms)
{
    struct batch *b;
    while ((b = TAILQ_FIRST(&m->dead))) {
        TAILQ_REMOVE(&m->dead, b, link);
        bool left = !b->packet; /* it was sent */
        answer_all(m, b, left ? MASTER_UNKNOWN : MASTER_REJECTED, "link lost", now_ms);
        batch_free(b);
    }
}

void fake_master_pump(struct master *m, int64_t now_ms)
{
    struct fake_packet *p;
    if (m->link.sentinels && m->state != MASTER_DOWN && fake_ear_is_over(&m->ear)) {
        m->named = NULL;
        drop_link(m, "no majority of its Sentinels names it");
    }
    while ((p = TAILQ_FIRST(&m->inbox))) {
        TAILQ_REMOVE(&m->inbox, p, link);
        m->heard_us = sim_now_us();
        take_packet(m, p, now_ms);
        packet_free(p);
    }
    int64_t patience_ms = 5 * m->setup.request_timeout_ms;
    const struct batch *b = TAILQ_FIRST(&m->sent);
    if (b && sim_now_us() - b->sent_us > (patience_ms < 3000 ? 3000 : patience_ms) * 1000)
        drop_link(m, "it does not answer");
    if (m->state >= MASTER_QUARANTINE && !m->probing && sim_now_us() - m->probed_us >= PROBE_US)
        probe(m);
    deliver_dead(m, now_ms);
    if (m->state != m->reported) {
        enum master_state old = m->reported;
        m->reported = m->state;
        if (m->setup.on_state)
            m->setup.on_state(m->setup.arg, m, old);
    }
}

/* ---- the link ---- */

static void on_tick(void *arg)
{
    struct master *m = arg;
    m->tick = sim_at(sim_now_us() + TICK_US, on_tick, m);
    m->link.wake(m->link.arg);
}

static void on_retry(void *arg)
{
    struct master *m = arg;
    m->retry = NULL;
    m->server = m->home->instead ? m->home->instead : m->home;
    if (m->link.sentinels)
        m->server = m->named;
    if (!m->server || !m->server->up || m->cut) {
        m->backoff_ms = m->backoff_ms * 2 < BACKOFF_MAX_MS ? m->backoff_ms * 2 : BACKOFF_MAX_MS;
        m->retry = sim_at(sim_now_us() + sim_between(m->backoff_ms / 2, m->backoff_ms) * 1000,
                          on_retry, m);
        return;
    }
    struct fake_conn *c = util_alloc(sizeof *c);
    c->refs = 2; /* the two ends */
    c->master = m;
    c->server = m->server;
    TAILQ_INIT(&c->flying);
    LIST_INSERT_HEAD(&m->server->conns, c, of_server);
    m->conn = c;
    m->opened_us = sim_now_us();
    m->tick = sim_at(sim_now_us() + TICK_US, on_tick, m);
    if (m->state != MASTER_REFUSED)
        move(m, MASTER_CONNECTING);
    greet(m);
}

/* As on_sentinels_word() of master_found.c. */
static void on_ear_word(void *arg)
{
    struct master *m = arg;
    struct fake_server *named = fake_ear_named(&m->ear);
    if (named == m->named)
        return;
    m->named = named;
    if (m->state != MASTER_DOWN)
        drop_link(m, "its Sentinels name another server now");
    sim_cancel(m->retry);
    m->retry = sim_at(sim_now_us(), on_retry, m);
}

/* Everything unanswered waits in `dead`. */
static void bury(struct master *m)
{
    close_open(m);
    TAILQ_CONCAT(&m->dead, &m->sent, link);
    TAILQ_CONCAT(&m->dead, &m->unsent, link);
}

static void close_link(struct master *m)
{
    m->probing = false;
    if (m->state == MASTER_ACTIVE || m->state == MASTER_QUARANTINE)
        place_broke(&m->place, local_ms(m));
    bury(m);
    sim_cancel(m->tick);
    m->tick = NULL;
    free_all(&m->held_in);
    if (m->conn) {
        struct fake_conn *c = m->conn;
        struct fake_packet *p;
        m->conn = NULL;
        /* what the partition holds back may still arrive when it is over; see fake_master_cut() */
        int64_t n = 0;
        TAILQ_FOREACH(p, &m->held_out, link)
            n += p->conn == c;
        n = sim_random(n + 1);
        TAILQ_FOREACH(p, &m->held_out, link)
            p->doomed |= p->conn == c && n-- <= 0;
        conn_close_by_master(c);
    }
}

static void drop_link(struct master *m, const char *why)
{
    snprintf(m->error, sizeof m->error, "%s", why);
    log_trace(m->name, "link lost: %s", why);
    if (sim_now_us() - m->opened_us > 5000000)
        m->backoff_ms = 0;
    close_link(m);
    move(m, MASTER_DOWN);
    m->backoff_ms = m->backoff_ms ? 2 * m->backoff_ms : BACKOFF_FIRST_MS;
    if (m->backoff_ms > BACKOFF_MAX_MS)
        m->backoff_ms = BACKOFF_MAX_MS;
    m->retry =
        sim_at(sim_now_us() + sim_between(m->backoff_ms / 2, m->backoff_ms) * 1000, on_retry, m);
}

/* ---- its life ---- */

struct master *fake_master_new(const struct master_setup *setup, struct fake_server *s, int index,
                               const struct fake_link *link)
{
    struct master *m = util_alloc(sizeof *m);
    m->setup = *setup;
    m->home = m->server = s;
    s->publish = publish;
    LIST_INSERT_HEAD(&masters, m, all);
    m->index = index;
    m->setup.settings = setup->settings ? setup->settings : "";
    settings_digest(m->setup.settings, m->digest);
    m->link = *link;
    snprintf(m->name, sizeof m->name, "%s", link->slot ? link->slot : s->name);
    TAILQ_INIT(&m->held_out);
    TAILQ_INIT(&m->held_in);
    TAILQ_INIT(&m->inbox);
    TAILQ_INIT(&m->unsent);
    TAILQ_INIT(&m->sent);
    TAILQ_INIT(&m->dead);
    m->offset_us = fake_server_time_ms(s) * 1000 - sim_now_us() - link->local_us;
    m->backoff_ms = BACKOFF_FIRST_MS;
    return m;
}

void master_start(struct master *m)
{
    m->ear = (struct fake_ear){.local_us = m->link.local_us, .on_word = on_ear_word, .arg = m};
    if (m->link.sentinels)
        fake_ear_open(&m->ear, m->link.sentinels);
    m->retry = sim_at(sim_now_us(), on_retry, m);
}

void master_free(struct master *m)
{
    struct fake_packet *p;
    if (m->link.sentinels)
        fake_ear_close(&m->ear);
    close_link(m);
    m->state = MASTER_DOWN;
    deliver_dead(m, local_ms(m));
    sim_cancel(m->retry);
    LIST_REMOVE(m, all);
    free_all(&m->inbox);
    while ((p = TAILQ_FIRST(&m->held_out))) { /* the kernel goes on sending for the dead process */
        TAILQ_REMOVE(&m->held_out, p, link);
        sim_at(sim_now_us() + sim_random(3000000), arrive, p);
    }
    free(m);
}

void master_configure(struct master *m, const struct master_setup *setup,
                      const struct conf_master *conf)
{
    (void)conf;
    m->setup.request_timeout_ms = setup->request_timeout_ms;
}

const char *master_disagrees(const struct master *m)
{
    return m->disagreement[0] && fake_mutation != FAKE_VETO_UNHEARD ? m->disagreement : NULL;
}

void master_adopt(struct master *m)
{
    m->adopt = true;
    if (m->state == MASTER_REFUSED && m->retry) {
        sim_cancel(m->retry);
        on_retry(m);
    } else if (m->state == MASTER_ACTIVE || m->state == MASTER_QUARANTINE) {
        ask_how(m, HIGH);
    }
}

void masters_write(void)
{
}

int master_partition(const struct master *m)
{
    return m->setup.partition;
}

int master_index(const struct master *m)
{
    return m->index;
}

const char *master_name(const struct master *m)
{
    return m->name;
}

static int64_t quarantine_left_ms(const struct master *m)
{
    bool over = m->state != MASTER_QUARANTINE || m->quarantine_end_us <= sim_now_us();
    return over ? 0 : (m->quarantine_end_us - sim_now_us() + 999) / 1000;
}

const struct master_status *master_status(struct master *m, int64_t now_ms)
{
    struct master_status *s = &m->status;
    (void)now_ms;
    s->name = m->name;
    s->address = m->name;
    s->state = m->state;
    s->quarantine_left_ms = quarantine_left_ms(m);
    s->clock_offset_ms = m->offset_us / 1000;
    s->in_flight = (uint32_t)m->n_items;
    s->stalled = is_stalled(m);
    s->run_id = m->run_id;
    s->life = m->own.text;
    s->place = &m->place;
    s->roll_veto = m->roll_veto;
    s->roll_missing = m->roll_missing;
    s->roll_signed = "";
    s->disputed = m->rival[0] && strcmp(m->rival, run_of(&m->own)) != 0;
    s->version = "fake";
    s->error = m->error;
    return s;
}

const char *master_reason(struct master *m, int64_t now_ms)
{
    (void)now_ms;
    switch (m->state) {
    case MASTER_ACTIVE:
        return is_stalled(m) ? "timeout" : "active";
    case MASTER_QUARANTINE:
        snprintf(m->reason, sizeof m->reason, "quarantined %" PRId64 "ms", quarantine_left_ms(m));
        return m->reason;
    case MASTER_DOWN:
    case MASTER_CONNECTING:
        return "down";
    default:
        return "joining";
    }
}

const char *master_sentinels(struct master *m, int64_t now_ms)
{
    (void)m, (void)now_ms;
    return NULL;
}

const char *master_state_name(enum master_state state)
{
    static const char *const names[MASTER_STATES] = {
        "down", "connecting", "greeting", "refused", "loading", "joining", "quarantine", "active"};
    return names[state];
}
