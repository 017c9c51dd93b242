/*
 * Random schedules of drop-in: clients of several brokers take, extend, count and end locks by
 * plain commands and scripts, while links break, messages are lost, late and doubled, and servers
 * restart. What they were answered must have an order, name by name, in which one Redis would have
 * answered the same: each request takes effect at one moment between its beginning and its end. One
 * that ended by an error may have had its effect or not, and may have had it for a while.
 *
 * A refusal may also come of masters that are split, because of somebody whose request was under
 * way or has failed: what is split counts as somebody else's. One from memory may be as old as that
 * (safety R19). Runs whose search is too wide are not judged to the end, and counted.
 *
 * SIM_SEEDS=n runs n seeds from SIM_FIRST (1) on; SIM_SEED=n this one alone, with a trace.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "dropin/call.h"
#include "history.h"
#include "world.h"

enum { CLIENTS = 5, NAMES = 2, OPS = 192, RUN_MS = 8000, EARLY_MS = 60, LATE_MS = 400 };
enum { STALE_MS = 1200, LEFT_MS = 4000 };

enum verb { TAKE, GET, END, EXTEND, ENTER, LEAVE };
enum outcome { RUNNING, KNOWN, UNKNOWN, NOT_DONE };

static const char *const bodies[] = {
    [END] =
        "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0",
    [EXTEND] =
        "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) "
        "end return 0",
    [ENTER] =
        "if redis.call('exists',KEYS[1])==0 or redis.call('hexists',KEYS[1],ARGV[1])==1 then "
        "local n=redis.call('hincrby',KEYS[1],ARGV[1],1) redis.call('pexpire',KEYS[1],ARGV[2]) "
        "return n end return -1",
    [LEAVE] =
        "if redis.call('hexists',KEYS[1],ARGV[1])==0 then return -1 end "
        "local n=redis.call('hincrby',KEYS[1],ARGV[1],-1) if n>0 then "
        "redis.call('pexpire',KEYS[1],ARGV[2]) return n end redis.call('del',KEYS[1]) return 0",
};

/* One request. */
struct op {
    enum verb verb;
    enum outcome outcome;
    int client, broker;
    int64_t begin_ms, end_ms, lease_ms; /* of the world's time */
    int result;
    char text[80];
};
static struct history {
    struct op ops[OPS];
    int n;
} all[NAMES];

static struct client {
    int index, broker;
    struct session session;
    struct buf out;
    struct op *op; /* under way */
    int64_t lease_ms;
} clients[CLIENTS];

static uint64_t seed;
static bool ending;
static int n_known, n_unknown, n_again, n_wide;

static int64_t now_ms(void)
{
    return sim_now_us() / 1000;
}

/* ---- clients ---- */

static void take_reply(struct client *c, const char *p)
{
    struct op *op = c->op;
    if (!op)
        history_fail("client %d was answered but had not asked: %s", c->index, p);
    op->end_ms = now_ms();
    snprintf(op->text, sizeof op->text, "%.*s", (int)strcspn(p, "\r\n"), p);
    op->outcome = KNOWN;
    if (*p == ':')
        op->result = atoi(p + 1);
    else if (*p == '+')
        op->result = 1;
    else if (*p == '_' || strncmp(p, "$-1", 3) == 0)
        op->result = 0;
    else if (*p == '$')
        op->result = atoi(strstr(p, "\r\n") + 3);
    else if (strncmp(p, "-TRYAGAIN", 9) == 0)
        op->outcome = NOT_DONE, n_again++;
    else
        op->outcome = UNKNOWN, n_unknown++;
    n_known += op->outcome == KNOWN;
    if (getenv("SIM_TRACE"))
        fprintf(stderr, "%6" PRId64 " client %d broker %d verb %d -> %s\n", now_ms(), c->index,
                c->broker, op->verb, op->text);
    c->op = NULL;
}

static void read_out(void *arg)
{
    struct client *c = arg;
    session_flush(&c->session, world_local_ms(&world.brokers[c->broker]));
    if (buf_len(&c->out) == 0)
        return;
    buf_append(&c->out, "", 1);
    take_reply(c, buf_head(&c->out));
    buf_consume(&c->out, buf_len(&c->out));
}

static void on_ready(struct session *s)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (&clients[i].session == s)
            sim_at(sim_now_us(), read_out, &clients[i]);
    }
}
static void on_close(struct session *s, const char *reason)
{
    (void)s, (void)reason;
}
static const struct session_events events = {
    .on_ready = on_ready, .on_unblocked = on_ready, .on_close = on_close};

static void write_call(struct request *r, struct resp_writer *w, int64_t ms)
{
    (void)ms;
    dropin_call_write(dropin_call_of(r), w);
}
static void abandon(struct request *r, int64_t ms)
{
    (void)ms;
    dropin_call_abandon(dropin_call_of(r));
}
static void free_call(struct request *r)
{
    dropin_call_free(dropin_call_of(r));
}
static const struct request_type call_type = {write_call, abandon, free_call};

static struct resp_arg word(const char *text)
{
    return (struct resp_arg){(char *)(uintptr_t)text, strlen(text)};
}

static struct dropin_call *call_of(struct dropin *d, const struct op *op, const char *name)
{
    char value[8], lease[16];
    snprintf(value, sizeof value, "v%d", op->client + 1);
    snprintf(lease, sizeof lease, "%" PRId64, op->lease_ms);
    if (op->verb == TAKE) {
        struct resp_arg argv[] = {word("SET"), word(name), word(value),
                                  word("NX"),  word("PX"), word(lease)};
        return dropin_call_command(d, 0, &(struct dropin_command){argv, 6, 1, 1, 1});
    }
    if (op->verb == GET) {
        struct resp_arg argv[] = {word("GET"), word(name)};
        return dropin_call_command(d, 0, &(struct dropin_command){argv, 2, 1, 1, 1});
    }
    struct resp_arg body = word(bodies[op->verb]), key = word(name),
                    args[] = {word(value), word(lease)};
    return dropin_call_eval(d, 0, &body, &(struct dropin_script){&key, args, 1, 2, false});
}

static void say(struct client *c)
{
    static const char *const names[NAMES] = {"s", "h"};
    static const enum verb of_strings[] = {TAKE, TAKE, GET, END, END, EXTEND},
                           of_hashes[] = {ENTER, ENTER, ENTER, LEAVE, LEAVE, LEAVE};
    int name = (int)sim_random(NAMES);
    struct history *h = &all[name];
    struct world_broker *wb = &world.brokers[c->broker];
    if (c->op || h->n == OPS)
        return;
    struct op *op = &h->ops[h->n++];
    *op = (struct op){.verb = name ? of_hashes[sim_random(6)] : of_strings[sim_random(6)],
                      .client = c->index,
                      .broker = c->broker,
                      .begin_ms = now_ms(),
                      .end_ms = INT64_MAX,
                      .lease_ms = sim_between(500, 3000)};
    c->op = op;
    int64_t local_ms = world_local_ms(wb);
    struct dropin_call *call = call_of(wb->dropin, op, names[name]);
    struct request *request = dropin_request(call);
    request->type = &call_type;
    if (getenv("SIM_TRACE"))
        fprintf(stderr, "%6" PRId64 " client %d broker %d verb %d of %s lease %" PRId64 "\n",
                now_ms(), c->index, c->broker, op->verb, names[name], op->lease_ms);
    session_ask(&c->session, request);
    dropin_submit(call, local_ms);
    world_wake(c->broker);
    read_out(c);
}

static int gap_ms;
static void on_client(void *arg)
{
    if (ending)
        return;
    say(arg);
    sim_at(sim_now_us() + sim_between(1, 2 * gap_ms) * 1000, on_client, arg);
}

/* ---- faults ---- */

static int fault_gap_ms;
static bool restarts;
struct fault {
    int kind, broker, server;
};
enum { CUT, STOP, BREAK, NET, KILL, FAULTS };

static void undo(void *arg)
{
    struct fault *f = arg;
    if (f->kind == CUT)
        fake_master_cut(world.brokers[f->broker].masters[f->server], false);
    if (f->kind == STOP)
        fake_server_stop(&world.servers[f->server], false);
    if (f->kind == NET)
        fake_net.slow_per_mille = fake_net.loss_per_mille = fake_net.copy_per_mille = 0;
    if (f->kind == KILL)
        fake_server_start(&world.servers[f->server], false);
    history_faults--;
    free(f);
}

static void on_fault(void *arg)
{
    (void)arg;
    if (ending)
        return;
    struct fault *f = malloc(sizeof *f);
    *f = (struct fault){(int)sim_random(FAULTS), (int)sim_random(world.conf.n_brokers),
                        (int)sim_random(world.conf.n_servers)};
    struct fake_server *s = &world.servers[f->server];
    struct master *m = world.brokers[f->broker].masters[f->server];
    bool can = true;
    for (int i = 0; i < world.conf.n_servers; i++)
        can = can && world.servers[i].up && fake_server_is_active(&world.servers[i]);
    if ((f->kind == CUT && fake_master_is_cut(m)) || (f->kind == STOP && (!s->up || s->stopped)) ||
        (f->kind == KILL && (!can || !restarts || s->stopped))) {
        free(f);
    } else {
        if (f->kind == CUT)
            fake_master_cut(m, true);
        else if (f->kind == STOP)
            fake_server_stop(s, true);
        else if (f->kind == BREAK)
            fake_master_break(m);
        else if (f->kind == KILL)
            fake_server_kill(s);
        else {
            fake_net.slow_per_mille = (int)sim_random(200);
            fake_net.slow_us = sim_between(1, 2 * world.conf.broker.request_timeout_ms) * 1000;
            fake_net.loss_per_mille = (int)sim_random(30);
            fake_net.copy_per_mille = (int)sim_random(100);
            fake_net.copy_us = sim_between(1, 4 * world.conf.broker.request_timeout_ms) * 1000;
        }
        history_faults++;
        sim_at(sim_now_us() + sim_between(1, 1500) * 1000, undo, f);
    }
    sim_at(sim_now_us() + sim_between(1, 2 * fault_gap_ms) * 1000, on_fault, NULL);
}

/* ---- the judge: is there an order in which one Redis would have answered the same? ---- */

struct was {
    int owner, count;          /* owner 0: nothing there */
    int64_t from_ms, until_ms; /* its time is over somewhere in between */
};
struct state {
    struct was now, before;
    int doubtful; /* 1 + the op of unknown outcome that has made it of `before`; 0: none */
};

static uint64_t done[OPS / 64];
enum { SEEN = 1 << 19 };
static uint64_t seen[SEEN];
static int n_seen, deepest, stuck_at;
static const struct history *judged;

static bool is_done(int i)
{
    return done[i / 64] >> (i % 64) & 1;
}

static bool is_new(const struct state *st)
{
    uint64_t h = 1469598103934665603ull;
    const unsigned char *parts[] = {(const unsigned char *)done, (const unsigned char *)st};
    size_t sizes[] = {sizeof done, sizeof *st};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizes[k]; i++)
            h = (h ^ parts[k][i]) * 1099511628211ull;
    h |= !h;
    uint64_t at = (h ^ (h >> 29)) % SEEN;
    for (; seen[at]; at = (at + 1) % SEEN) {
        if (seen[at] == h)
            return false;
    }
    if (++n_seen > SEEN / 2)
        return false;
    seen[at] = h;
    return true;
}

/* What one Redis would do: its answer. */
static int run(const struct op *op, struct was *w)
{
    int me = op->client + 1, mine = w->owner == me;
    bool writes = false;
    int answer = 0;
    switch (op->verb) {
    case TAKE:
        answer = writes = !w->owner;
        break;
    case GET:
        return w->owner;
    case END:
        if (mine)
            memset(w, 0, sizeof *w);
        return mine;
    case EXTEND:
        answer = writes = mine;
        break;
    case ENTER:
        writes = !w->owner || mine;
        answer = writes ? w->count + 1 : -1;
        break;
    case LEAVE:
        answer = mine ? w->count - 1 : -1;
        writes = answer > 0;
        if (answer == 0)
            memset(w, 0, sizeof *w);
        break;
    }
    if (writes) {
        int64_t end_ms = op->outcome == KNOWN ? op->end_ms : op->begin_ms + 600;
        w->owner = me;
        w->count = op->verb == ENTER || op->verb == LEAVE ? answer : 0;
        w->from_ms = op->begin_ms + op->lease_ms - EARLY_MS;
        w->until_ms = end_ms + op->lease_ms + LATE_MS;
    }
    return answer;
}

static bool search(struct state st);

/* Was somebody else's request under way, or may it have left something on a minority? Then the
 * masters may be split, and what is split counts as somebody else's. */
static bool may_be_split(int i)
{
    const struct op *op = &judged->ops[i];
    for (int j = 0; j < judged->n; j++) {
        const struct op *its = &judged->ops[j];
        int64_t gone_ms = its->outcome == KNOWN ? its->end_ms : its->end_ms + LEFT_MS;
        if (j != i && its->verb != GET && its->begin_ms <= op->end_ms && gone_ms >= op->begin_ms)
            return true;
    }
    return false;
}

static bool is_refusal(const struct op *op)
{
    return op->outcome == KNOWN &&
           op->result == (op->verb == ENTER || op->verb == LEAVE ? -1 : 0) && op->verb != GET;
}

static bool try_op(int i, struct state st)
{
    const struct op *op = &judged->ops[i];
    struct state after = st;
    int answer = run(op, &after.now);
    bool is_unknown = op->outcome == UNKNOWN, ok = false;
    if (!is_unknown && answer != op->result) {
        if (!is_refusal(op) || !may_be_split(i))
            return false;
        after = st;
    }
    bool changes = memcmp(&after.now, &st.now, sizeof st.now) != 0;
    if (is_unknown && !changes)
        return false;
    if (changes) {
        memset(&after.before, 0, sizeof after.before);
        after.doubtful = 0;
        if (is_unknown && after.now.owner) {
            after.before = st.now;
            after.doubtful = i + 1;
        }
    }
    done[i / 64] |= UINT64_C(1) << (i % 64);
    ok = search(after);
    done[i / 64] &= ~(UINT64_C(1) << (i % 64));
    return ok;
}

static int64_t earliest(const struct op *op)
{
    return op->verb == TAKE && op->result == 0 ? op->begin_ms - STALE_MS : op->begin_ms;
}

static bool search(struct state st)
{
    int64_t first_ms = INT64_MAX;
    bool is_over = true;
    if (!is_new(&st))
        return n_seen > SEEN / 2;
    for (int i = 0; i < judged->n; i++) {
        const struct op *op = &judged->ops[i];
        if (op->outcome != KNOWN || is_done(i))
            continue;
        is_over = false;
        if (op->end_ms < first_ms)
            first_ms = op->end_ms;
    }
    if (is_over)
        return true;
    int depth = 0;
    for (int i = 0; i < judged->n; i++)
        depth += is_done(i);
    if (depth > deepest) {
        deepest = depth;
        for (stuck_at = 0;
             judged->ops[stuck_at].outcome != KNOWN || judged->ops[stuck_at].end_ms != first_ms;)
            stuck_at++;
    }
    /* what is in doubt is put back */
    if (st.doubtful) {
        int i = st.doubtful - 1;
        struct state back = {.now = st.before};
        done[i / 64] &= ~(UINT64_C(1) << (i % 64));
        bool ok = search(back);
        done[i / 64] |= UINT64_C(1) << (i % 64);
        if (ok)
            return true;
    }
    for (int i = 0; i < judged->n; i++) {
        const struct op *op = &judged->ops[i];
        if (is_done(i) || (op->outcome != KNOWN && op->outcome != UNKNOWN) ||
            earliest(op) > first_ms)
            continue;
        int64_t end_ms = op->outcome == KNOWN ? op->end_ms : first_ms;
        bool may_end = st.now.owner && end_ms >= st.now.from_ms,
             must_end = st.now.owner && op->begin_ms > st.now.until_ms;
        if (!must_end && try_op(i, st))
            return true;
        if (may_end && try_op(i, (struct state){{0}, {0}, 0}))
            return true;
    }
    return false;
}

static void judge(int name)
{
    struct state st;
    memset(&st, 0, sizeof st);
    memset(seen, 0, sizeof seen);
    memset(done, 0, sizeof done);
    n_seen = deepest = 0;
    judged = &all[name];
    if (search(st)) {
        n_wide += n_seen > SEEN / 2;
        return;
    }
    for (int i = 0; i < judged->n; i++) {
        const struct op *op = &judged->ops[i];
        static const char *const verbs[] = {"TAKE", "GET", "END", "EXTEND", "ENTER", "LEAVE"};
        fprintf(stderr,
                "%3d %6" PRId64 " to %6" PRId64 " client %d broker %d %-6s %" PRId64 " -> %s\n", i,
                op->begin_ms, op->end_ms, op->client + 1, op->broker, verbs[op->verb], op->lease_ms,
                op->text);
    }
    history_fail("the answers of name %d have no order: stuck at %d (%d states)", name, stuck_at,
                 n_seen);
}

/* ---- one run ---- */

static void run_seed(void)
{
    struct world_conf conf;
    sim_begin(seed);
    world_defaults(&conf, seed);
    conf.n_servers = sim_chance(200) ? 1 : sim_chance(800) ? 3 : 5;
    conf.n_brokers = (int)sim_between(1, 3);
    conf.broker.request_timeout_ms = sim_between(30, 200);
    fake_net = (struct fake_net){.latency_min_us = 50, .latency_max_us = sim_between(100, 5000)};
    gap_ms = (int)sim_between(5, 150);
    fault_gap_ms = (int)sim_between(50, 2000);
    restarts = sim_chance(300);
    sim_end();
    memset(all, 0, sizeof all);
    ending = false;
    history_faults = 0;
    world_begin(&conf);
    world_settle();
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &clients[i];
        memset(c, 0, sizeof *c);
        c->index = i;
        c->broker = (int)sim_random(conf.n_brokers);
        session_init(&c->session, 1000 + (uint64_t)i, &events, &c->out,
                     world_local_ms(&world.brokers[c->broker]));
        on_client(c);
    }
    on_fault(NULL);
    world_run_ms(RUN_MS);
    ending = true;
    world_run_ms(8000);
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i].op)
            history_fail("client %d was not answered: verb %d since %" PRId64, i,
                         clients[i].op->verb, clients[i].op->begin_ms);
    }
    for (int i = 0; i < CLIENTS; i++) {
        session_fini(&clients[i].session, world_local_ms(&world.brokers[clients[i].broker]));
        buf_fini(&clients[i].out);
    }
    world_end();
    for (int i = 0; i < NAMES; i++)
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
    printf("%" PRIu64 " seeds: %d answers, %d unknown, %d to be tried again, %d too wide\n", n,
           n_known, n_unknown, n_again, n_wide);
    return n_known ? EXIT_SUCCESS : EXIT_FAILURE;
}
