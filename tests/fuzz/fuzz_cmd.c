/* Any bytes as what three clients say, from the parser through the table of commands and the flows
 * of the broker to a modelled master, in virtual time. The input is cut at FRAME bytes; the first
 * byte of a piece says whose it is, how much time goes by behind it, and whether he hangs up.
 * Besides not crashing:
 * - what comes out is whole replies, one for each request, no more and no fewer;
 * - an error is one line;
 * - when everybody has gone and the leases are over nothing is left: no lock, no hold, no waiter.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/password.h"
#include "command/command.h"
#include "conf/conf.h"
#include "fake_master.h"
#include "lock/broker.h"
#include "redis/quarantine.h"
#include "resp_value.h"
#include "session/peers.h"
#include "session/user.h"
#include "sim_time.h"
#include "stats/gauges.h"
#include "stats/stats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FRAME = 0xfe, CLIENTS = 3, TURNS_MAX = 2000, INPUT_MAX = 4096 };

static const struct resp_limits limits = {128, 16384, 65536, 65536, false};
static const int64_t wall_ms = INT64_C(1700000000000);

static struct fuzz_client {
    struct session s;
    struct buf in, out;
    struct resp_parser parser;
    bool there, refused, loose; /* loose: its replies are not counted any more */
    int64_t asked, answered;
} clients[CLIENTS];

static struct conf conf;
static struct broker broker;
static struct quarantine quarantine;
static struct fake_server server;
static struct master *master;
static struct resp_scratch scratch;
static struct stats_gauges gauges;
static uint64_t n_sessions;

static void require(bool ok)
{
    if (!ok)
        abort();
}

static int64_t now_ms(void)
{
    return sim_now_us() / 1000;
}

/* ---- in the place of password.c, whose hashes take milliseconds ---- */

void password_hash(const char *password, size_t len, char out[PASSWORD_HASH_MAX])
{
    (void)password, (void)len;
    strcpy(out, "hash");
}

bool password_is_hash(const char *text)
{
    return *text != '\0';
}

int password_iterations(const char *hash)
{
    return *hash != '\0';
}

bool password_fits(const char *hash, const char *password, size_t len, int iterations)
{
    (void)iterations;
    return strlen(hash) == len && memcmp(hash, password, len) == 0;
}

/* ---- what comes out ---- */

static void read_out(struct fuzz_client *c)
{
    session_flush(&c->s, now_ms());
    const char *p = buf_head(&c->out), *end = p + buf_len(&c->out);
    while (p < end) {
        c->answered += *p != '>';
        p = resp_value_end(p, end);
        require(p);
    }
    buf_consume(&c->out, buf_len(&c->out));
    buf_trim(&c->out);
    if (!c->loose)
        require(c->answered + c->s.n_requests == c->asked);
}

/* ---- clients ---- */

static void on_session(struct session *s)
{
    (void)s; /* everybody is looked at in each turn */
}

static void on_close(struct session *s, const char *reason)
{
    (void)reason;
    s->closing = true;
}

static const struct session_events session_events = {.on_ready = on_session,
                                                     .on_unblocked = on_session,
                                                     .on_close = on_close,
                                                     .on_written = cmd_written};

static struct owner *make_owner(void)
{
    char text[32];
    int len = snprintf(text, sizeof text, "conn-%llu", (unsigned long long)++n_sessions);

    return owner_get(text, (size_t)len);
}

static void open_client(struct fuzz_client *c)
{
    *c = (struct fuzz_client){.there = true};
    session_init(&c->s, (uint64_t)(c - clients) + 1, &session_events, &c->out, now_ms());
    resp_parser_init(&c->parser, &limits);
    c->s.owner = make_owner();
}

static void end_holds(struct session *s, bool orderly)
{
    broker_session_end(&broker, s, orderly, now_ms());
    owner_unref(s->owner);
    s->owner = NULL;
}

static void close_client(struct fuzz_client *c, bool orderly)
{
    if (!c->there)
        return;
    read_out(c);
    c->there = false;
    cmd_session_end(&c->s);
    end_holds(&c->s, orderly);
    session_fini(&c->s, now_ms());
    buf_fini(&c->in);
    buf_fini(&c->out);
}

static bool may_run(const struct fuzz_client *c)
{
    return c->there && !c->refused && !c->s.closing && !session_holds_back(&c->s) &&
           c->s.n_requests < 64;
}

/* As client/run.c does it. */
static void run(struct fuzz_client *c)
{
    size_t used = 0;

    while (may_run(c) && buf_len(&c->in) > 0) {
        enum resp_result result =
            resp_parse(&c->parser, &scratch, buf_head(&c->in), buf_len(&c->in), &used);
        if (result == RESP_MORE || result == RESP_REFUSED)
            buf_consume(&c->in, used);
        if (result == RESP_MORE)
            return;
        if (result == RESP_REFUSED) {
            cmd_refuse_request(&c->s, c->parser.error);
            c->asked++;
            continue;
        }
        if (result == RESP_ERROR) {
            c->refused = true;
            return;
        }
        const struct resp_arg *argv = c->parser.argv;
        int argc = c->parser.argc;
        if (argc > 0 && cmd_must_wait(&c->s, &argv[0]))
            return;
        if (argc > 0) {
            const struct cmd *cmd = cmd_find(&argv[0]);
            c->loose |= cmd && (cmd->flags & CMD_CHANNELS || strstr(cmd->name, "SUBSCRIBE") ||
                                strcmp(cmd->name, "MONITOR") == 0);
            c->asked += !cmd || strcmp(cmd->name, "SHUTDOWN") != 0 || cmd->fn == NULL;
            c->loose |= cmd && strcmp(cmd->name, "SHUTDOWN") == 0;
            c->s.n_commands++;
            if (!cmd_dispatch(&c->s, argc, argv, now_ms(), sim_now_us())) {
                c->asked--; /* it comes again */
                return;
            }
        }
        buf_consume(&c->in, used);
    }
}

/* ---- turns ---- */

static void turn(void)
{
    fake_master_pump(master, now_ms());
    for (int i = 0; i < CLIENTS; i++)
        run(&clients[i]);
    quarantine_turn(&quarantine, now_ms());
    rounds_set_wall(&broker.rounds, wall_ms + now_ms(), now_ms());
    broker_turn(&broker, now_ms());
    for (int i = 0; i < CLIENTS; i++) {
        if (!clients[i].there)
            continue;
        read_out(&clients[i]);
        if (clients[i].s.closing)
            close_client(&clients[i], true);
    }
}

static int64_t min_us(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t due_us(int64_t ms)
{
    return ms < INT64_MAX / 1000 ? ms * 1000 : INT64_MAX;
}

static void go_on(int64_t ms)
{
    int64_t end_us = sim_now_us() + ms * 1000;

    for (int n = 0; n < TURNS_MAX; n++) {
        turn();
        int64_t next_us = min_us(sim_next_us(), due_us(broker_next_ms(&broker)));
        next_us = min_us(next_us, due_us(quarantine_next_ms(&quarantine)));
        if (sim_now_us() >= end_us && next_us > end_us)
            return;
        if (next_us < sim_now_us() + 100)
            next_us = sim_now_us() + 100;
        sim_run_until(next_us < end_us ? next_us : sim_now_us() < end_us ? end_us : next_us);
    }
}

/* ---- hooks ---- */

static void hook_info(struct server *arg, struct buf *out, const char *sections)
{
    (void)arg;
    stats_info(out, sections, &gauges);
}

static void hook_shutdown(struct server *arg, bool now)
{
    (void)arg, (void)now;
    broker_drain(&broker);
}

static void hook_each(struct clients *arg, void (*each)(struct session *, void *), void *each_arg)
{
    (void)arg;
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].there)
            each(&clients[i].s, each_arg);
}

static void hook_kill(struct session *s, const char *reason)
{
    (void)reason;
    s->closing = true;
}

static void hook_reset(struct server *arg, struct session *s, int64_t at_ms)
{
    (void)arg, (void)at_ms;
    end_holds(s, true);
    s->owner = make_owner();
}

static const char *hook_address(struct session *s)
{
    return s->id == 1 ? "127.0.0.1:1" : "unix:/run/holdfast.sock";
}

static int hook_fd(struct session *s)
{
    return (int)s->id + 8;
}

static size_t hook_len(struct session *s)
{
    return buf_len(s->out);
}

static void hook_pause(struct clients *arg, int64_t until_ms, unsigned classes)
{
    (void)arg, (void)until_ms, (void)classes;
}

static void hook_pause_acquires(struct server *arg, bool paused, int64_t at_ms)
{
    (void)arg;
    broker_pause(&broker, paused, at_ms);
}

static const char *hook_trust(struct server *arg, const char *name, int64_t at_ms)
{
    (void)arg;
    return quarantine_trust(&quarantine, name, at_ms);
}

static const char *hook_adopt(struct server *arg, const char *name)
{
    (void)arg, (void)name;
    return "there is none";
}

static const char *hook_config_set(struct server *arg, const struct cmd_setting *settings, int n,
                                   char *error, size_t error_size)
{
    struct conf_error err;
    struct conf fresh;

    (void)arg;
    conf_copy(&fresh, &conf);
    for (int i = 0; i < n; i++) {
        if (conf_set_live(&fresh, settings[i].key, settings[i].value, &err) == 0)
            continue;
        snprintf(error, error_size, "%s", err.text);
        conf_fini(&fresh);
        return settings[i].key;
    }
    conf_fini(&conf);
    conf = fresh;
    return NULL;
}

static const struct peers peers = {.own = {.host = "10.0.0.1", .port = 5625},
                                   .n = 1,
                                   .v = {{.address = {.host = "10.0.0.2", .port = 5625}}},
                                   .named = 0};

static const struct cmd_hooks hooks = {
    .broker = &broker,
    .conf = &conf,
    .peers = &peers,
    .info = hook_info,
    .shutdown = hook_shutdown,
    .each_client = hook_each,
    .kill_client = hook_kill,
    .reset_client = hook_reset,
    .peer = hook_address,
    .local = hook_address,
    .fd = hook_fd,
    .input_len = hook_len,
    .output_len = hook_len,
    .pause = hook_pause,
    .pause_acquires = hook_pause_acquires,
    .trust = hook_trust,
    .adopt = hook_adopt,
    .config_set = hook_config_set,
};

/* ---- the world ---- */

static void on_state(void *arg, struct master *m, enum master_state old)
{
    enum master_state state = master_status(m, 0)->state;

    (void)arg, (void)old;
    if (state == MASTER_ACTIVE || state == MASTER_QUARANTINE)
        rounds_master_back(&broker.rounds, 0, now_ms());
    quarantine_on_state(&quarantine);
}

static void wake(void *arg)
{
    (void)arg; /* go_on() looks in each turn */
}

static void on_call(void *arg, int i, const char *text, size_t len)
{
    (void)arg;
    broker_called(&broker, i, text, len, now_ms());
}

/* With users when the input wants so: one who may do little, and nobody who says nothing. */
static void set_users(bool some)
{
    struct conf_error err;

    if (some) {
        require(conf_set(&conf, "users.ann", "secret", &err) == 0 &&
                conf_set(&conf, "users.ann.allow", "lock inspect", &err) == 0 &&
                conf_set(&conf, "users.ann.names", "a* b?", &err) == 0 &&
                conf_set(&conf, "users.root", "admin", &err) == 0 &&
                conf_set(&conf, "users.root.allow", "lock inspect admin", &err) == 0);
    }
    users_configure(&conf);
}

static void begin(bool users)
{
    static char channel[64];
    const struct conf_lock broker_conf = {
        .lease_ms = 3000,
        .max_lease_ms = 10000,
        .min_validity_ms = 50,
        .drift_ppm = 5000,
        .request_timeout_ms = 250,
        .handover_max_count = 16,
        .handover_max_time_ms = 100,
        .max_locks = 150,
        .max_locks_per_client = 100,
        .max_waiters_per_lock = 10,
        .max_waiters = 20,
    };

    log_set_level(LOG_LEVEL_ERROR);
    sim_begin(1);
    fake_net = (struct fake_net){.latency_min_us = 100, .latency_max_us = 100};
    n_sessions = 0;
    conf_init(&conf);
    conf.max_async_per_client = 4;
    set_users(users);
    cmd_init(&hooks);
    stats_reset();
    broker_init(&broker, &broker_conf, "fuzz", 1, now_ms());
    rounds_set_wall(&broker.rounds, wall_ms, now_ms());
    broker_channel(&broker, channel, sizeof channel);
    fake_server_init(&server, "a");
    struct master_setup setup = {.request_timeout_ms = 250,
                                 .quarantine_ms = 0,
                                 .max_lease_ms = 10000,
                                 .drift_ppm = 5000,
                                 .broker = "fuzz",
                                 .settings = "fuzz",
                                 .on_state = on_state};
    struct fake_link link = {.channel = channel, .wake = wake, .on_call = on_call};
    master = fake_master_new(&setup, &server, 0, &link);
    rounds_add_master(&broker.rounds, master, "a");
    master_start(master);
    quarantine_init(&quarantine, &broker.rounds);
    for (int i = 0; i < CLIENTS; i++)
        open_client(&clients[i]);
    go_on(5);
}

static void end(void)
{
    for (int i = 0; i < CLIENTS; i++)
        close_client(&clients[i], true);
    if (broker.paused)
        broker_pause(&broker, false, now_ms());
    go_on(25000);
    require(broker.n_holds == 0 && broker.n_waiters == 0 && broker.locks.count == 0);
    require(fake_server_count_locks(&server, NULL) == 0);
    rounds_close(&broker.rounds);
    master_free(master);
    broker_fini(&broker, now_ms());
    cmd_fini();
    users_fini();
    conf_fini(&conf);
    resp_scratch_fini(&scratch);
    fake_server_kill(&server);
    while (sim_step())
        ; /* what is on its way arrives nowhere */
    fake_server_fini(&server);
    sim_end();
}

/* Who: two bits; time behind it: two bits; and how he leaves. */
static void say(const uint8_t *data, size_t len)
{
    static const int64_t pauses_ms[] = {0, 5, 1200, 12000};
    struct fuzz_client *c = &clients[data[0] % 4 % CLIENTS];
    unsigned leaves = data[0] >> 4 & 3;

    if (!c->there)
        open_client(c);
    buf_append(&c->in, data + 1, len - 1);
    go_on(pauses_ms[data[0] >> 2 & 3]);
    if (leaves >= 2)
        close_client(c, leaves == 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX)
        return 0;
    begin(size > 0 && data[0] & 0x80);
    while (size > 0) {
        const uint8_t *frame = memchr(data, FRAME, size);
        size_t len = frame ? (size_t)(frame - data) : size;
        if (len > 0)
            say(data, len);
        data += frame ? len + 1 : len;
        size -= frame ? len + 1 : len;
    }
    end();
    return 0;
}
