/* A master against a real redis-server: joining, refusals, what becomes of items when it restarts,
 * loses its data, stands still, lies. Of the scripts only that each gets through. */
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "conf/conf.h"
#include "redis/args.h"
#include "redis/master.h"
#include "redis/master_private.h" /* the number of a call, for a false answer to it */
#include "redis_proc.h"
#include "relay.h"
#include "script_args.h"
#include "stats/stats.h"
#include "suite.h"

enum { LIMIT_MS = 20000, TIMEOUT_MS = 300, NESTED = 1 + 8 * 16 };

static struct event_base *base;
static struct redis_proc redis;
static struct master_setup setup;
static struct conf_master address;
static struct master *m;
static int n_states;            /* calls of on_state */
static bool was[MASTER_STATES]; /* states that it has told */

struct asked {
    struct master_call call; /* first */
    int answers;
    enum master_result result;
    int64_t values[SCRIPT_WIDTH_MAX];
    struct master_value nested[NESTED];
    char texts[NESTED][40], text[256];
    char item_text[100];
    int n_nested, script, again;
    int order;
};

static int answers; /* of all */

static void on_state(void *arg, struct master *which, enum master_state old)
{
    enum master_state now = master_status(which, clock_ms())->state;
    (void)arg;
    ck_assert_int_ne(now, old);
    n_states++;
    was[now] = true;
}

static void on_answer(struct master_call *call, const struct master_answer *a, int64_t now_ms)
{
    struct asked *q = (struct asked *)call;

    ck_assert_int_gt(now_ms, 0);
    q->answers++;
    q->order = answers++;
    q->result = a->result;
    snprintf(q->text, sizeof q->text, "%s", a->text);
    if (a->values)
        memcpy(q->values, a->values, (size_t)script_get(q->script)->width * sizeof q->values[0]);
    if (a->item_text)
        snprintf(q->item_text, sizeof q->item_text, "%.*s", (int)a->item_text->len,
                 a->item_text->text);
    q->n_nested = a->n_nested;
    for (int i = 0; i < a->n_nested; i++) {
        q->nested[i] = a->nested[i];
        if (a->nested[i].is_text)
            snprintf(q->texts[i], sizeof q->texts[i], "%.*s", (int)a->nested[i].len,
                     a->nested[i].text);
    }
}

/* ---- the loop ---- */

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    *(bool *)arg = true;
}

static bool state_is(void *want)
{
    return master_status(m, clock_ms())->state == *(enum master_state *)want;
}

static bool is_answered(void *arg)
{
    return ((struct asked *)arg)->answers > 0;
}

/* Runs the loop until it is so. False: it was not within limit_ms. */
static bool run_until(bool (*is_so)(void *), void *arg, int64_t limit_ms)
{
    bool over = false;
    struct event *limit = evtimer_new(base, on_limit, &over);
    struct timeval tv = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};

    evtimer_add(limit, &tv);
    while (!over && !is_so(arg)) {
        master_flush(m, clock_ms());
        event_base_loop(base, EVLOOP_ONCE);
    }
    event_free(limit);
    return is_so(arg);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void run_for(int64_t ms)
{
    run_until(never, NULL, ms);
}

static void wait_state(enum master_state want)
{
    if (!run_until(state_is, &want, LIMIT_MS))
        ck_abort_msg("not %s but %s: %s", master_state_name(want),
                     master_state_name(master_status(m, clock_ms())->state),
                     master_status(m, clock_ms())->error);
}

static bool has_error(void *text)
{
    return strstr(master_status(m, clock_ms())->error, text) != NULL;
}

static void wait_error(const char *text)
{
    char copy[128];
    snprintf(copy, sizeof copy, "%s", text);
    if (!run_until(has_error, copy, LIMIT_MS))
        ck_abort_msg("no error \"%s\" but \"%s\"", text, master_status(m, clock_ms())->error);
}

/* ---- asking ---- */

/* Puts a question with its arguments, separated by blanks; those of acquire.lua, release.lua and
 * renew.lua in the words of script_args.h. */
static int put_at(struct asked *q, enum script script, const char *name, const char *args,
                  bool early)
{
    struct args *it = args_begin(name, strlen(name));
    char text[256], *at = text, *words[16], *word;
    struct master_item bytes;
    int n = 0;

    *q = (struct asked){.call.on_answer = on_answer, .script = script};
    it->early = early;
    snprintf(text, sizeof text, "%s", args);
    while (at && *at && (word = strsep(&at, " ")) != NULL && n < 16)
        words[n++] = word;
    if (script == SCRIPT_ACQUIRE) {
        struct acquire_args acquire;
        acquire_args(&acquire, words);
        it->floor = acquire.floor_value;
        it->bucket = strcmp(acquire.counter, "base") == 0 ? -1 : atoi(acquire.counter);
        for (int i = 0; i < ACQUIRE_ARGS; i++)
            args_str(it, acquire.list[i]);
    } else if (script == SCRIPT_EXCHANGE) {
        struct exchange_args exchange;
        exchange_args(&exchange, words, 0);
        it->bucket = strcmp(exchange.counter, "base") == 0 ? -1 : atoi(exchange.counter);
        it->floor = exchange.takes_token || it->bucket >= 0 ? exchange.floor_value : 0;
        for (int i = 0; i < EXCHANGE_ARGS; i++)
            args_str(it, exchange.list[i]);
    } else if (script == SCRIPT_RENEW) {
        char what[RENEW_ARG], *list[RENEW_ARGS];
        renew_args(what, list, words);
        for (int i = 0; i < RENEW_ARGS; i++)
            args_str(it, list[i]);
    } else if (script == SCRIPT_RELEASE) {
        char what[RELEASE_ARG];
        args_str(it, release_arg(what, words));
    } else if (script == SCRIPT_PEEK) {
        args_str(it, args);
    } else {
        for (int i = 0; i < n; i++)
            args_str(it, words[i]);
    }
    args_bytes(it, &bytes);
    return master_ask(m, script, &bytes, &q->call, clock_ms());
}

static int put(struct asked *q, enum script script, const char *name, const char *args)
{
    return put_at(q, script, name, args, false);
}

static void wait_answer(struct asked *q)
{
    ck_assert(run_until(is_answered, q, LIMIT_MS));
    ck_assert_int_eq(q->answers, 1);
}

static struct asked ask(enum script script, const char *name, const char *args)
{
    static struct asked q;
    ck_assert_int_eq(put(&q, script, name, args), 0);
    wait_answer(&q);
    return q;
}

static void ck_codes(struct asked q, int64_t a, int64_t b)
{
    ck_assert_msg(q.result == MASTER_ANSWERED, "%s", q.text);
    ck_assert_int_eq(q.values[0], a);
    if (script_get(q.script)->width > 1)
        ck_assert_int_eq(q.values[1], b);
}

/* ---- fixtures ---- */

static void start(const char *path)
{
    if (m)
        master_free(m);
    address = (struct conf_master){.name = (char *)(uintptr_t) "a",
                                   .host = (char *)(uintptr_t)path,
                                   .is_unix = true,
                                   .user = address.user,
                                   .password = address.password};
    m = master_new(&setup, &address, 3);
    ck_assert_int_eq(master_index(m), 3);
    master_start(m);
}

static void begin_with(const char *const *options)
{
    base = event_base_new();
    redis = (struct redis_proc){0};
    redis_proc_start(&redis, options);
    address = (struct conf_master){0};
    setup = (struct master_setup){.base = base,
                                  .request_timeout_ms = TIMEOUT_MS,
                                  .max_lease_ms = 60000,
                                  .drift_ppm = 5000,
                                  .broker = "test",
                                  .settings = "max_lease=60000",
                                  .max_reply = 1 << 20,
                                  .max_in_flight = 1000,
                                  .client_name = "holdfast-test",
                                  .on_state = on_state,
                                  .arg = &setup};
    answers = n_states = 0;
    memset(was, 0, sizeof was);
    log_set_level(LOG_LEVEL_ERROR);
}

static void begin(void)
{
    begin_with(NULL);
}

static void end(void)
{
    if (m)
        master_free(m);
    m = NULL;
    redis_proc_fini(&redis);
    event_base_free(base);
}

static void begin_active(void)
{
    begin();
    start(redis.path);
    wait_state(MASTER_ACTIVE);
    run_until(never, NULL, 1);
}

/* ---- joining and asking ---- */

START_TEST(joins)
{
    const struct master_status *s = master_status(m, clock_ms());
    char run_id[64];

    snprintf(run_id, sizeof run_id, "%s", redis_proc_do(&redis, "HGET holdfast:master run_id"));
    ck_assert_str_eq(s->run_id, run_id);
    ck_assert_str_eq(s->name, "a");
    ck_assert_str_eq(s->error, "");
    ck_assert_int_eq(s->restarts + s->data_losses + s->reconnects + s->clock_jumps, 0);
    ck_assert_int_ge(atoi(s->version), 5);
    ck_assert(was[MASTER_ACTIVE]);
    ck_assert_str_eq(redis_proc_do(&redis, "HGET holdfast:master settings"), "max_lease=60000");
    ck_assert(strstr(redis_proc_do(&redis, "CLIENT LIST"), "name=holdfast-test") != NULL);
    ck_assert_int_lt(llabs(s->clock_offset_ms - (clock_wall_ms() - clock_ms())), 50);
}
END_TEST

START_TEST(every_script_gets_through)
{
    struct asked q;

    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 100 7 -"), 1, 100);
    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 100 7 -"), 1, 100);
    ck_assert_int_eq(master_status(m, clock_ms())->high, 100);
    q = ask(SCRIPT_ACQUIRE, "x", "op2 you 10000 1 7 -");
    ck_assert_int_eq(q.values[0], 0);
    ck_assert_int_gt(q.values[1], 5000);
    ck_assert_int_eq(ask(SCRIPT_ACQUIRE, "x", "op3 me 10000 1 7 -").values[0], 2);
    ck_codes(ask(SCRIPT_COMMIT, "x", "op1 150 7 -"), 1, 150);
    ck_codes(ask(SCRIPT_COMMIT, "x", "op1 120 7 -"), 2, 150);
    ck_codes(ask(SCRIPT_COMMIT, "x", "op9 200 7 -"), 0, 0);
    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op4 you 10000 1 7 prev=op1,tomb=5000"), 1,
             151); /* hand-over */
    ck_codes(ask(SCRIPT_RENEW, "x", "op1 10000 1 0 -"), -1, 0);
    ck_codes(ask(SCRIPT_RENEW, "x", "op4 20000 2 2.5 -"), 1, 0);
    q = ask(SCRIPT_TAKEOVER, "x", "op5 5000 you 1 7 none ?");
    ck_codes(q, 1, 152);
    ck_assert_int_eq(q.values[2], 2);
    q = ask(SCRIPT_PEEK, "x", "");
    ck_assert_int_eq(q.n_nested, 9);
    ck_assert_int_eq(q.nested[0].integer, 1);
    ck_assert_int_gt(q.nested[1].integer, 5000);
    ck_assert_str_eq(q.texts[2], "op5");
    ck_assert_str_eq(q.texts[3], "you");
    ck_assert_int_eq(q.nested[4].integer, 152);
    ck_assert_int_eq(q.nested[5].integer, 2);
    ck_assert_int_eq(q.nested[6].integer, 2);
    ck_assert_int_eq(q.nested[7].integer, 5);
    ck_assert_str_eq(q.texts[8], "-");
    ck_codes(ask(SCRIPT_RELEASE, "x", "op4 0 -"), -1, 0);
    ck_codes(ask(SCRIPT_RELEASE, "x", "op5 5000 -"), 1, 0);
    ck_codes(ask(SCRIPT_RELEASE, "x", "op5 0 -"), 1, 0);             /* the same answer again */
    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op5 me 10000 1 7 -"), -1, 0); /* the tombstone */
    ck_codes(ask(SCRIPT_PLANT, "x", "op6 me 300 1 0 10000 7 0 -"), 1, 0);
    ck_codes(ask(SCRIPT_PLANT, "x", "op7 me 300 1 0 10000 7 0 -"), 0, 0);
    ck_assert_int_eq(ask(SCRIPT_PEEK, "free", "").n_nested, 0);
    ck_codes(ask(SCRIPT_LINE, "x", "me"), 1, 0);
    ck_codes(ask(SCRIPT_PASS, "x", "me call"), 0, 0);
    ck_codes(ask(SCRIPT_PASS, "free", "- call"), 1, 0);
    q = ask(SCRIPT_EXCHANGE, "y", "free op8 state 10000 400 7 -");
    ck_codes(q, 1, 400);
    ck_assert_str_eq(q.item_text, "");
    ck_assert_int_eq(master_status(m, clock_ms())->high, 400);
    q = ask(SCRIPT_EXCHANGE, "y", "op8 look - - 401 7 t");
    ck_codes(q, 1, 401);
    ck_assert_int_gt(q.values[2], 5000);
    q = ask(SCRIPT_EXCHANGE, "y", "free look - - 402 7 -");
    ck_codes(q, 0, 0);
    ck_assert_str_eq(q.item_text,
                     "op=op8 token=400 count=1 seq=400 lease=10000 end=0 taken=0 owner=state");
    ck_codes(ask(SCRIPT_EXCHANGE, "y", "op8 end - - 403 7 -"), 1, 403);
    ck_assert_int_eq(master_status(m, clock_ms())->high, 403);
    ck_codes(ask(SCRIPT_EXCHANGE, "y", "free op9 state 10000 404 base -"), 1, 404);
    ck_codes(ask(SCRIPT_EXCHANGE, "y", "op9 end - - - base -"), 1, 0);
    ck_assert_int_eq(master_status(m, clock_ms())->high, 404);
    ck_assert_int_eq(master_status(m, clock_ms())->in_flight, 0);
    ck_assert_uint_gt(master_status(m, clock_ms())->trip_us->count, 20);
}
END_TEST

START_TEST(neighbours_travel_together)
{
    static struct asked q[300];
    char name[16], args[64];

    redis_proc_do(&redis, "CONFIG RESETSTAT");
    for (int i = 0; i < 130; i++) { /* 3 calls */
        snprintf(name, sizeof name, "n%d", i);
        snprintf(args, sizeof args, "op%d me 10000 %d %d -", i, 1000 + i, i);
        ck_assert_int_eq(put(&q[i], SCRIPT_ACQUIRE, name, args), 0);
    }
    for (int i = 0; i < 130; i++) { /* 2 */
        snprintf(name, sizeof name, "n%d", i);
        snprintf(args, sizeof args, "op%d 0 -", i);
        ck_assert_int_eq(put(&q[130 + i], SCRIPT_RELEASE, name, args), 0);
    }
    for (int i = 0; i < 40; i++) /* 39: of two kinds in turn, the first joins those before it */
        ck_assert_int_eq(
            put(&q[260 + i], i % 2 ? SCRIPT_PEEK : SCRIPT_RELEASE, "n1", i % 2 ? "" : "o 0 -"), 0);
    ck_assert_int_eq(master_status(m, clock_ms())->in_flight, 300);
    ck_assert_int_eq(answers, 0); /* never inside master_ask */
    wait_answer(&q[299]);
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(q[i].order, i);
    for (int i = 0; i < 130; i++) {
        ck_codes(q[i], 1, 1000 + i);
        ck_codes(q[130 + i], 1, 0);
    }
    ck_assert_int_eq(redis_proc_info(&redis, "commandstats", "cmdstat_evalsha:calls="), 44);
    ck_assert_int_eq(master_status(m, clock_ms())->answered, 300);
}
END_TEST

/* Locks and unlocks in turn: two calls, and only what may go first does. */
START_TEST(early_releases_go_first)
{
    static struct asked q[64];
    char name[16], args[64];

    redis_proc_do(&redis, "CONFIG RESETSTAT");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "n%d", i / 2);
        snprintf(args, sizeof args, i % 2 ? "op 0 -" : "op me 10000 %d 7 -", 5 + i / 2);
        ck_assert_int_eq(put_at(&q[i], i % 2 ? SCRIPT_RELEASE : SCRIPT_ACQUIRE, name, args, i % 2),
                         0);
    }
    wait_answer(&q[38]);
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(q[i].order, i % 2 ? i / 2 : 20 + i / 2);
        ck_codes(q[i], !(i % 2), i % 2 ? 0 : 5 + i / 2); /* there was nothing to release yet */
    }
    ck_assert_int_eq(put(&q[40], SCRIPT_RENEW, "n0", "op 10000 1 0 -"), 0);
    ck_assert_int_eq(put_at(&q[41], SCRIPT_RELEASE, "n0", "op 0 -", true), 0);
    ck_assert_int_eq(put(&q[42], SCRIPT_ACQUIRE, "n0", "op2 me 10000 5 7 -"), 0);
    ck_assert_int_eq(put(&q[43], SCRIPT_RELEASE, "n0", "op2 0 -"), 0);
    wait_answer(&q[43]);
    for (int i = 40; i < 44; i++) {
        ck_assert_int_eq(q[i].order, i);
        ck_assert_int_eq(q[i].values[0], 1);
    }
    ck_assert_int_eq(redis_proc_info(&redis, "commandstats", "cmdstat_evalsha:calls="), 6);
}
END_TEST

/* One number is said for all that rise together: see acquire.lua. */
START_TEST(tokens_of_a_call_rise_together)
{
    struct asked q[2];

    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 50 base -"), 1, 50);
    ck_codes(ask(SCRIPT_ACQUIRE, "y", "op2 me 10000 30 base -"), 1, 51);
    ck_assert_int_eq(put(&q[0], SCRIPT_ACQUIRE, "n", "op3 me 10000 40 base -"), 0);
    ck_assert_int_eq(put(&q[1], SCRIPT_ACQUIRE, "m", "op4 me 10000 45 base -"), 0);
    wait_answer(&q[1]);
    ck_codes(q[0], 1, 52);
    ck_codes(q[1], 1, 57);
    ck_assert_int_eq(master_status(m, clock_ms())->high, 57);
}
END_TEST

START_TEST(what_many_readers_have_is_shown_in_part)
{
    static struct asked q[64];
    char args[64];

    for (int i = 0; i < 20; i++) {
        snprintf(args, sizeof args, "op%d me%d %d %d 7 mode=s", i, i, 10000 + i, 100 + i);
        ck_codes(ask(SCRIPT_ACQUIRE, "x", args), 1, 100 + i);
    }
    struct asked one = ask(SCRIPT_PEEK, "x", "");
    ck_assert_int_eq(one.n_nested, NESTED);
    ck_assert_int_eq(one.nested[0].integer, 20);
    ck_assert_str_eq(one.texts[2], "op0");
    ck_assert_str_eq(one.texts[NESTED - 1], "r:me15");
    for (int i = 0; i < 64; i++) /* one call, whose answer must not be too long */
        ck_assert_int_eq(put(&q[i], SCRIPT_PEEK, "x", ""), 0);
    wait_answer(&q[63]);
    for (int i = 0; i < 64; i++) {
        ck_assert_msg(q[i].result == MASTER_ANSWERED, "%s", q[i].text);
        ck_assert_int_eq(q[i].nested[0].integer, 20);
        ck_assert_int_eq(q[i].n_nested, 1 + 2 * 8);
    }
}
END_TEST

START_TEST(more_than_its_bound_is_turned_away)
{
    static struct asked q[1001];

    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(put(&q[i], SCRIPT_PEEK, "x", ""), 0);
    ck_assert_int_eq(put(&q[1000], SCRIPT_PEEK, "x", ""), -1);
    ck_assert_str_eq(master_reason(m, clock_ms()), "overloaded");
    wait_answer(&q[999]);
    ck_assert_int_eq(put(&q[1000], SCRIPT_PEEK, "x", ""), 0);
    wait_answer(&q[1000]);
}
END_TEST

static struct asked chain;
static void on_chained(struct master_call *call, const struct master_answer *a, int64_t now_ms)
{
    struct args *it = args_begin("chain", 5);
    struct master_item bytes;

    free(call); /* the owner may */
    ck_assert_int_eq(a->result, MASTER_ANSWERED);
    if (++chain.again == 500) {
        chain.answers = 1;
        return;
    }
    struct master_call *next = util_alloc(sizeof *next);
    next->on_answer = on_chained;
    args_str(it, "");
    args_bytes(it, &bytes);
    ck_assert_int_eq(master_ask(m, SCRIPT_PEEK, &bytes, next, now_ms), 0);
    if (chain.again % 2)
        master_flush(m, now_ms);
}

/* Puts n of them and sends what may leave; returns how many the server has before it then. */
static int64_t flood(struct asked *q, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(put(&q[i], SCRIPT_PEEK, "x", ""), 0);
    master_flush(m, clock_ms());
    return m->n_before;
}

/* So little that a renewal waits only for some milliseconds behind it. */
START_TEST(a_slow_server_has_little_before_it)
{
    enum { MANY = 512, CALL = 64 };
    static struct asked q[MANY];

    start(redis.path);
    wait_state(MASTER_ACTIVE);
    ask(SCRIPT_PEEK, "x", "");
    ck_assert_int_eq(flood(q, MANY), MANY);
    wait_answer(&q[MANY - 1]);
    redis_proc_stop(&redis);
    ck_assert_int_eq(flood(q, CALL), CALL);
    run_for(200);
    redis_proc_continue(&redis);
    wait_answer(&q[CALL - 1]);
    ck_assert_int_eq(flood(q, MANY), CALL);
    wait_answer(&q[MANY - 1]);
}
END_TEST

START_TEST(an_answer_may_ask_again)
{
    static const struct master_answer first = {.result = MASTER_ANSWERED, .text = ""};

    chain = (struct asked){0};
    on_chained(util_alloc(sizeof(struct master_call)), &first, clock_ms());
    wait_answer(&chain);
}
END_TEST

/* ---- quarantine ---- */

START_TEST(quarantine_and_its_end)
{
    struct asked q;

    setup.quarantine_ms = 700;
    start(redis.path);
    wait_state(MASTER_QUARANTINE);
    ck_assert_int_gt(master_status(m, clock_ms())->quarantine_left_ms, 100);
    ck_assert_int_eq(put(&q, SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -"), -1);
    ck_assert_str_eq(master_reason(m, clock_ms()), "quarantined 1s");
    ck_codes(ask(SCRIPT_PLANT, "x", "op1 me 500 1 0 10000 7 0 -"), 1, 0);
    ck_codes(ask(SCRIPT_RELEASE, "x", "op1 0 -"), 1, 0);
    master_activate(m, 5000, false); /* too early */
    run_for(100);
    ck_assert_int_eq(master_status(m, clock_ms())->state, MASTER_QUARANTINE);
    run_for(700);
    ck_assert_int_eq(master_status(m, clock_ms())->quarantine_left_ms, 0);
    master_activate(m, 5000, false);
    wait_state(MASTER_ACTIVE);
    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op2 me 10000 1 7 -"), 1, 5001);
}
END_TEST

START_TEST(quarantine_by_itself_and_by_force)
{
    setup.quarantine_ms = -1;
    start(redis.path);
    wait_state(MASTER_QUARANTINE);
    int64_t left_ms = master_status(m, clock_ms())->quarantine_left_ms;
    ck_assert_int_gt(left_ms, 60300 - TIMEOUT_MS);
    ck_assert_int_le(left_ms, 61300); /* max_lease, drift, a second */
    master_activate(m, 0, true);
    wait_state(MASTER_ACTIVE);
}
END_TEST

START_TEST(settings_that_change_are_seen_and_can_be_adopted)
{
    start(redis.path);
    wait_state(MASTER_ACTIVE);
    redis_proc_do(&redis, "HSET holdfast:master settings max_lease=1");
    wait_state(MASTER_REFUSED);
    ck_assert_ptr_nonnull(strstr(master_status(m, clock_ms())->error, "brokers disagree"));
    master_adopt(m);
    wait_state(MASTER_ACTIVE);
    ck_assert_str_eq(redis_proc_do(&redis, "HGET holdfast:master settings"), "max_lease=60000");
}
END_TEST

/* Said twice, the second time while the first is being tried. */
START_TEST(adopted_twice)
{
    start(redis.path);
    wait_state(MASTER_ACTIVE);
    redis_proc_do(&redis, "HSET holdfast:master settings max_lease=1");
    wait_state(MASTER_REFUSED);
    master_adopt(m);
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    master_adopt(m);
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    wait_state(MASTER_ACTIVE);
}
END_TEST

/* By each call, and known when its answer comes; what is in force is asked then. */
START_TEST(settings_that_change_are_seen_by_each_call)
{
    struct asked q;

    start(redis.path);
    wait_state(MASTER_ACTIVE);
    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -"), 1, 1);
    redis_proc_do(&redis, "HSET holdfast:master settings max_lease=1 digest 0123456789abcdef");
    redis_proc_do(&redis, "HDEL holdfast:master ready");
    q = ask(SCRIPT_RENEW, "x", "op1 10000 1 0 -");
    ck_assert_int_eq(q.result, MASTER_REJECTED);
    ck_assert_ptr_nonnull(strstr(q.text, "SETTINGS"));
    ck_assert_ptr_nonnull(master_disagrees(m));
    wait_state(MASTER_REFUSED);
    ck_assert_ptr_nonnull(strstr(master_disagrees(m), "max_lease 60000 here, 1 there"));
    master_adopt(m);
    wait_state(MASTER_ACTIVE);
    ck_assert_ptr_null(master_disagrees(m));
    ck_codes(ask(SCRIPT_RENEW, "x", "op1 10000 1 0 -"), 1, 0);
}
END_TEST

/* As after a restart that has lost nothing, for all that can be known. */
START_TEST(quarantine_whatever_is_kept)
{
    redis_proc_do(&redis, "CONFIG SET appendonly yes");
    redis_proc_do(&redis, "CONFIG SET appendfsync always");
    redis_proc_do(&redis, "HSET holdfast:master run_id before");
    setup.quarantine_ms = -1;
    start(redis.path);
    wait_state(MASTER_QUARANTINE);
}
END_TEST

/* By which it knows what is too old to be still under way. */
START_TEST(calls_are_numbered_by_its_time)
{
    start(redis.path);
    wait_state(MASTER_ACTIVE);
    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -"), 1, 1);
    int64_t off_us =
        atoll(redis_proc_do(&redis, "HGET holdfast:master last:test")) - clock_wall_ms() * 1000;
    ck_assert_int_lt(llabs(off_us), 60 * 1000000);
}
END_TEST

START_TEST(what_another_broker_does_is_seen)
{
    setup.quarantine_ms = 60000;
    start(redis.path);
    wait_state(MASTER_QUARANTINE);
    redis_proc_do(&redis, "HSET holdfast:master state active");
    wait_state(MASTER_ACTIVE);
    redis_proc_do(&redis, "HSET holdfast:master state quarantine");
    struct asked q = ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -");
    ck_assert_int_eq(q.result, MASTER_REJECTED);
    ck_assert(strncmp(q.text, "QUARANTINE", 10) == 0);
    wait_state(MASTER_QUARANTINE);
}
END_TEST

/* ---- restarts and losses ---- */

START_TEST(a_restart_is_seen)
{
    struct asked q;

    redis_proc_stop(&redis);
    ck_assert_int_eq(put(&q, SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -"), 0);
    master_flush(m, clock_ms());
    redis_proc_kill(&redis);
    wait_answer(&q);
    ck_assert_int_eq(q.result, MASTER_UNKNOWN);
    ck_assert_int_eq(put(&q, SCRIPT_RELEASE, "x", "op1 0 -"), -1);
    setup.quarantine_ms = 60000;
    master_configure(m, &setup, &address);
    redis_proc_start(&redis, NULL);
    wait_state(MASTER_QUARANTINE);
    ck_assert_int_eq(master_status(m, clock_ms())->restarts, 1);
    ck_assert_int_eq(master_status(m, clock_ms())->data_losses, 0);
    ck_assert(was[MASTER_DOWN]);
}
END_TEST

START_TEST(scripts_lost)
{
    redis_proc_do(&redis, "SCRIPT FLUSH");
    struct asked q = ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -");
    ck_assert_int_eq(q.result, MASTER_REJECTED);
    ck_assert(strncmp(q.text, "NOSCRIPT", 8) == 0);
    wait_state(MASTER_ACTIVE);
    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -"), 1, 1);
    const struct master_status *s = master_status(m, clock_ms());
    ck_assert_int_eq(s->restarts + s->data_losses + s->reconnects, 0);
    ck_assert_int_eq(s->rejected, 1);
}
END_TEST

START_TEST(data_lost)
{
    struct asked q[2];

    setup.quarantine_ms = 60000;
    master_configure(m, &setup, &address);
    redis_proc_do(&redis, "FLUSHALL");
    ck_assert_int_eq(put(&q[0], SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -"), 0);
    ck_assert_int_eq(put(&q[1], SCRIPT_RENEW, "x", "op1 1000 1 1 -"), 0);
    wait_answer(&q[1]);
    ck_assert_int_eq(q[0].result, MASTER_REJECTED);
    ck_assert_int_eq(q[1].result, MASTER_REJECTED);
    ck_assert(strncmp(q[0].text, "STRANGER", 8) == 0);
    ck_assert_int_eq(put(&q[0], SCRIPT_ACQUIRE, "x", "op2 me 10000 1 7 -"), -1);
    wait_state(MASTER_QUARANTINE);
    ck_assert_int_eq(master_status(m, clock_ms())->data_losses, 1);
    ck_assert_int_eq(master_status(m, clock_ms())->restarts, 0);
}
END_TEST

START_TEST(data_lost_while_idle)
{
    setup.quarantine_ms = 60000;
    master_configure(m, &setup, &address);
    redis_proc_do(&redis, "FLUSHALL");
    wait_state(MASTER_QUARANTINE);
    ck_assert_int_eq(master_status(m, clock_ms())->data_losses, 1);
}
END_TEST

START_TEST(an_error_in_the_middle_is_no_proof)
{
    redis_proc_do(&redis, "CONFIG SET maxmemory 1");
    struct asked q = ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -");
    ck_assert_int_eq(q.result, MASTER_UNKNOWN);
    ck_assert(strstr(q.text, "OOM") != NULL);
    redis_proc_do(&redis, "CONFIG SET maxmemory 0");
    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op2 me 10000 1 7 -"), 1, 1);
}
END_TEST

START_TEST(late_items_are_turned_away)
{
    struct asked q, release;

    redis_proc_stop(&redis);
    ck_assert_int_eq(put(&q, SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -"), 0);
    run_for(TIMEOUT_MS + 50);
    ck_assert(master_status(m, clock_ms())->stalled);
    ck_assert_int_eq(put(&release, SCRIPT_ACQUIRE, "x", "op2 me 10000 1 7 -"), -1);
    ck_assert_str_eq(master_reason(m, clock_ms()), "stalled");
    ck_assert_int_eq(put(&release, SCRIPT_RELEASE, "x", "op1 0 -"), 0);
    run_for(2 * TIMEOUT_MS);
    redis_proc_continue(&redis);
    wait_answer(&release);
    ck_assert_int_eq(q.result, MASTER_REJECTED);
    ck_assert(strncmp(q.text, "LATE", 4) == 0);
    ck_codes(release, 0, 0);
    ck_assert_int_eq(master_status(m, clock_ms())->state, MASTER_ACTIVE);
    ck_assert_int_eq(master_status(m, clock_ms())->clock_jumps, 0);
}
END_TEST

START_TEST(one_that_stands_still_is_dropped)
{
    struct asked q;

    redis_proc_stop(&redis);
    ck_assert_int_eq(put(&q, SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -"), 0);
    wait_answer(&q);
    ck_assert_int_eq(q.result, MASTER_UNKNOWN);
    ck_assert_str_eq(q.text, "it does not answer");
    redis_proc_continue(&redis);
    wait_state(MASTER_ACTIVE);
}
END_TEST

START_TEST(one_that_stands_still_while_idle_is_dropped)
{
    redis_proc_stop(&redis);
    wait_error("it does not answer");
    redis_proc_continue(&redis);
    wait_state(MASTER_ACTIVE);
}
END_TEST

/* ---- refusals ---- */

static void ck_refused(const char *why)
{
    wait_state(MASTER_REFUSED);
    const char *error = master_status(m, clock_ms())->error;
    ck_assert_msg(strstr(error, why) != NULL, "%s", error);
    ck_assert_str_eq(master_reason(m, clock_ms()),
                     master_disagrees(m)
                         ? "refused, brokers disagree: configure all alike, or MASTER a ADOPT"
                         : "refused");
}

START_TEST(passwords)
{
    redis_proc_do(&redis, "CONFIG SET requirepass secret");
    start(redis.path);
    ck_refused("asks for a password");
    address.password = (char *)(uintptr_t) "wrong";
    start(redis.path);
    ck_refused("does not accept the password");
    ck_assert(strstr(master_status(m, clock_ms())->error, "wrong") == NULL);
    address.password = (char *)(uintptr_t) "secret";
    master_configure(m, &setup, &address);
    wait_state(MASTER_ACTIVE);
}
END_TEST

START_TEST(a_user_with_a_password)
{
    redis_proc_do(&redis, "ACL SETUSER hf on >pw ~holdfast:* +@all -config");
    address.user = (char *)(uintptr_t) "hf";
    address.password = (char *)(uintptr_t) "pw";
    start(redis.path);
    wait_state(MASTER_ACTIVE);
    ck_codes(ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -"), 1, 1);
}
END_TEST

START_TEST(a_replica)
{
    start(redis.path);
    wait_state(MASTER_ACTIVE);
    redis_proc_do(&redis, "REPLICAOF 127.0.0.1 1");
    struct asked q = ask(SCRIPT_ACQUIRE, "x", "op1 me 10000 1 7 -");
    ck_assert_int_eq(q.result, MASTER_UNKNOWN);
    ck_refused("no master");
    redis_proc_do(&redis, "REPLICAOF NO ONE");
    wait_state(MASTER_ACTIVE);
}
END_TEST

START_TEST(one_that_evicts)
{
    redis_proc_do(&redis, "CONFIG SET maxmemory-policy allkeys-lru");
    start(redis.path);
    ck_refused("allkeys-lru");
    redis_proc_do(&redis, "CONFIG SET maxmemory-policy noeviction");
    wait_state(MASTER_ACTIVE);
    ck_assert_str_eq(master_status(m, clock_ms())->error, "");
}
END_TEST

START_TEST(brokers_that_disagree)
{
    redis_proc_do(&redis, "CONFIG SET loglevel notice");
    start(redis.path);
    wait_state(MASTER_ACTIVE);
    setup.settings = "max_lease=1";
    start(redis.path);
    ck_refused("brokers disagree: max_lease 1 here, 60000 there: give all brokers the same "
               "configuration, or say MASTER a ADOPT");
    ck_assert_ptr_nonnull(master_disagrees(m));
}
END_TEST

START_TEST(the_same_server_twice)
{
    struct master *first;

    start(redis.path);
    wait_state(MASTER_ACTIVE);
    first = m;
    m = NULL;
    start(redis.path);
    ck_refused("the same server as master a");
    master_free(m);
    m = NULL;
    setup.arg = &first; /* another set */
    start(redis.path);
    wait_state(MASTER_ACTIVE);
    master_free(first);
}
END_TEST

/* ---- lies and broken links ---- */

static struct relay *relay;
static char relay_path[100];

static void begin_relayed(void)
{
    begin();
    snprintf(relay_path, sizeof relay_path, "%s/r", redis.dir);
    relay = relay_new(base, relay_path, redis.path);
    start(relay_path);
    wait_state(MASTER_ACTIVE);
}

static void end_relayed(void)
{
    if (m)
        master_free(m);
    m = NULL;
    relay_free(relay);
    end();
}

static const struct {
    const char *bytes, *why;
} unsolicited[] = {
    {":1\r\n", "nobody had asked"},
    {"+", "nobody had asked"},
    {"*4294967295\r\n", "no Redis protocol"},
    {"*2000000\r\n", "too many elements"},
    {"HTTP/1.1 400 Bad Request\r\n", "no Redis protocol"},
};

START_TEST(unsolicited_bytes_end_the_link)
{
    relay_say(relay, unsolicited[_i].bytes, strlen(unsolicited[_i].bytes));
    wait_error(unsolicited[_i].why);
    wait_state(MASTER_ACTIVE);
    ck_assert_int_eq(master_status(m, clock_ms())->reconnects, 1);
}
END_TEST

#define ONES_7 ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"
#define ONES_14 ONES_7 ONES_7
static const struct {
    enum script script;
    const char *bytes, *why;
} lies[] = {
    {SCRIPT_RENEW, "+OK\r\n", "none that the script renew gives"},
    {SCRIPT_RENEW, ":1\r\n", "none that the script"},
    {SCRIPT_RENEW, "$-1\r\n", "none that the script"},
    {SCRIPT_RENEW, "*-1\r\n", "none that the script"},
    {SCRIPT_RENEW, "*0\r\n", "none that the script"},
    {SCRIPT_TAKEOVER, "*2\r\n:1700000000000\r\n:@\r\n", "none that the script"},
    {SCRIPT_RENEW, "*2\r\n:1700000000000\r\n:2\r\n", "none that the script"},
    {SCRIPT_RENEW, "*2\r\n:1700000000000\r\n*0\r\n", "none that the script"},
    {SCRIPT_RENEW, "*3\r\n:1700000000000\r\n:@\r\n$1\r\n1\r\n", "none that the script"},
    {SCRIPT_RENEW, "*3\r\n:1700000000000\r\n:@\r\n*1\r\n:1\r\n", "none that the script"},
    {SCRIPT_RENEW, "*3\r\n:1700000000000\r\n:@\r\n:3\r\n", "none that the script"},
    {SCRIPT_RENEW, "*3\r\n:1700000000000\r\n:@\r\n:257\r\n", "none that the script"},
    {SCRIPT_RENEW, "*3\r\n:-1\r\n:1\r\n:1\r\n", "none that the script"},
    {SCRIPT_RENEW, "*4\r\n:1700000000000\r\n:@\r\n:1\r\n:1\r\n", "none that the script"},
    {SCRIPT_ACQUIRE, "*5\r\n:1700000000000\r\n:@\r\n:1\r\n:-1\r\n:0\r\n",
     "none that the script acquire gives"},
    {SCRIPT_ACQUIRE, "*5\r\n:1700000000000\r\n:@\r\n:1\r\n:9007199254740992\r\n:0\r\n",
     "none that the script"},
    {SCRIPT_ACQUIRE, "*3\r\n:1700000000000\r\n:@\r\n:0\r\n", "none that the script"},
    {SCRIPT_RENEW, "$17\r\n1700000000 123456\r\n", "none that the script"},
    {SCRIPT_RENEW, "$19\r\n1700000000 123456 2\r\n", "none that the script"},
    {SCRIPT_RENEW, "$36\r\n1700000000 123456 @ 1\r\n", "none that the script"},
    {SCRIPT_RENEW, "$28\r\n1700000000  @\r\n", "none that the script"},
    {SCRIPT_RENEW, "$35\r\n1700000000 123456 @ \r\n", "none that the script"},
    {SCRIPT_RENEW, "$20\r\n0 0 @\r\n", "none that the script"},
    {SCRIPT_RENEW, "$35\r\n9007199254740992 0 @\r\n", "none that the script"},
    {SCRIPT_RENEW, "$21\r\n-1 0 @\r\n", "none that the script"},
    {SCRIPT_RENEW, "$0\r\n\r\n", "none that the script"},
    {SCRIPT_TAKEOVER, "$34\r\n1700000000 123456 @\r\n", "none that the script"},
    {SCRIPT_ACQUIRE, "$36\r\n1700000000 123456 @ 0\r\n", "none that the script"},
    {SCRIPT_ACQUIRE, "$51\r\n1700000000 123456 @ 9007199254740992\r\n", "none that the script"},
    {SCRIPT_ACQUIRE, "$37\r\n1700000000 123456 @ -1\r\n", "none that the script"},
    {SCRIPT_ACQUIRE, "$38\r\n1700000000 123456 @ 1 1\r\n", "none that the script"},
    {SCRIPT_RENEW, "*2\r\n:1700000000000\r\n:@\r\n", "none that the script"},
    {SCRIPT_ACQUIRE, "*3\r\n:1700000000000\r\n:@\r\n+1\r\n", "none that the script"},
    {SCRIPT_ACQUIRE, "*5\r\n:1700000000000\r\n:@\r\n:-6\r\n:0\r\n:0\r\n", "none that the script"},
    {SCRIPT_ACQUIRE, "*5\r\n:1700000000000\r\n:@\r\n:4\r\n:0\r\n:0\r\n", "none that the script"},
    {SCRIPT_ACQUIRE, "*5\r\n:1700000000000\r\n:@\r\n:1\r\n:5\r\n:-1\r\n", "none that the script"},
    {SCRIPT_TAKEOVER,
     "*10\r\n:1700000000000\r\n:@\r\n:1\r\n:9\r\n:1\r\n:8\r\n:0\r\n:0\r\n:0\r\n:-1\r\n",
     "none that the script takeover gives"},
    {SCRIPT_TAKEOVER, "*9\r\n:1700000000000\r\n:@\r\n:1\r\n:9\r\n:1\r\n:8\r\n:0\r\n:0\r\n:0\r\n",
     "none that the script takeover gives"},
    {SCRIPT_EXCHANGE, "*5\r\n:1700000000000\r\n:@\r\n:0\r\n:0\r\n:0\r\n",
     "none that the script exchange gives"},
    {SCRIPT_EXCHANGE, "*6\r\n:1700000000000\r\n:@\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
     "none that the script"},
    {SCRIPT_EXCHANGE, "*6\r\n:1700000000000\r\n:@\r\n:0\r\n:0\r\n:-1\r\n$1\r\nx\r\n",
     "none that the script"},
    {SCRIPT_EXCHANGE, "*6\r\n:1700000000000\r\n:@\r\n:2\r\n:0\r\n:0\r\n$1\r\nx\r\n",
     "none that the script"},
    {SCRIPT_EXCHANGE, "*6\r\n:1700000000000\r\n:@\r\n:0\r\n:0\r\n:0\r\n+OK\r\n",
     "none that the script"},
    {SCRIPT_LINE, "*3\r\n:1700000000000\r\n:@\r\n:-1\r\n", "none that the script line gives"},
    {SCRIPT_RENEW, "*3\r\n:1700000000000\r\n:2\r\n:1\r\n",
     "none that the script"}, /* of another call */
    {SCRIPT_ACQUIRE, "*2000000000\r\n", "too many elements"},
    {SCRIPT_ACQUIRE, "*1\r\n*1\r\n*1\r\n", "nested too deeply"},
    {SCRIPT_ACQUIRE, "%1\r\n+a\r\n+b\r\n", ""},
    {SCRIPT_PEEK, "*3\r\n:1700000000000\r\n:@\r\n:1\r\n", "none that the script"},
    {SCRIPT_PEEK,
     "*3\r\n:1700000000000\r\n:@\r\n*140\r\n" ONES_14 ONES_14 ONES_14 ONES_14 ONES_14 ONES_14
         ONES_14 ONES_14 ONES_14 ONES_14,
     "none that the script"},
    {SCRIPT_PEEK, "*3\r\n:1700000000000\r\n:@\r\n*1\r\n+OK\r\n", "none that the script"},
};

START_TEST(a_lie_is_no_answer)
{
    static const char *const args[SCRIPT_COUNT] = {[SCRIPT_RENEW] = "op 1000 1 1 -",
                                                   [SCRIPT_ACQUIRE] = "op me 1000 1 7 -",
                                                   [SCRIPT_EXCHANGE] = "op look - - 1 7 -",
                                                   [SCRIPT_TAKEOVER] = "op 0 me 1 7 none ?",
                                                   [SCRIPT_PEEK] = "",
                                                   [SCRIPT_LINE] = "-"};
    struct asked q[2];

    relay_replace(relay, lies[_i].bytes, strlen(lies[_i].bytes));
    for (int i = 0; i < 2; i++) { /* the second one goes down with the first */
        ck_assert_int_eq(put(&q[i], i ? SCRIPT_RELEASE : lies[_i].script, "x",
                             i ? "op 0 -" : args[lies[_i].script]),
                         0);
    }
    wait_answer(&q[1]);
    ck_assert_int_eq(q[0].answers, 1);
    ck_assert_int_eq(q[0].result, MASTER_UNKNOWN);
    ck_assert_int_eq(q[1].result, MASTER_UNKNOWN);
    ck_assert_msg(strstr(q[0].text, lies[_i].why) != NULL, "%s", q[0].text);
    ck_assert_int_eq(master_status(m, clock_ms())->state, MASTER_DOWN);
    relay_replace(relay, NULL, 0);
    wait_state(MASTER_ACTIVE);
}
END_TEST

START_TEST(error_texts_are_made_harmless)
{
    struct asked q;
    static const char lie[] = "-ERR a\rb\tc\x1b[31m\xff\r\n";

    relay_replace(relay, lie, sizeof lie - 1);
    ck_assert_int_eq(put(&q, SCRIPT_RELEASE, "x", "op 0 -"), 0);
    wait_answer(&q);
    ck_assert_int_eq(q.result, MASTER_UNKNOWN);
    for (const char *p = q.text; *p; p++)
        ck_assert_msg(*p >= 0x20 && *p < 0x7f, "%s", q.text);
}
END_TEST

START_TEST(a_reply_without_end_is_bounded)
{
    static char flood[200000];
    struct asked q;

    setup.max_reply = 65536;
    master_configure(m, &setup, &address);
    relay_cut(relay);
    wait_state(MASTER_DOWN);
    wait_state(MASTER_ACTIVE);
    memset(flood, 'x', sizeof flood);
    flood[0] = '+';
    relay_replace(relay, flood, sizeof flood);
    ck_assert_int_eq(put(&q, SCRIPT_RELEASE, "x", "op 0 -"), 0);
    wait_answer(&q);
    ck_assert_int_eq(q.result, MASTER_UNKNOWN);
    ck_assert(strstr(q.text, "longer than") != NULL);
}
END_TEST

START_TEST(lies_while_greeting)
{
    static const char *const texts[] = {
        "+OK\r\n",
        ":1\r\n",
        "$3\r\nabc\r\n",
        "*0\r\n",
        "-ERR no\r\n",
        "$-1\r\n",
        "-LOADING soon\r\n",
        "+OK\r\n+OK\r\n:1\r\n+OK\r\n$10\r\nrun_id:a'b\r\n*0\r\n",
        "+OK\r\n:1\r\n+OK\r\n$10\r\nrun_id:a'b\r\n*0\r\n",
        "+OK\r\n:1\r\n+OK\r\n$10\r\n\n:\r:\n::\n\n\n\r\n*0\r\n",
    };

    relay_replace(relay, texts[_i], strlen(texts[_i]));
    relay_cut(relay);
    wait_state(MASTER_DOWN);
    run_for(300);
    enum master_state s = master_status(m, clock_ms())->state;
    ck_assert_int_ne(s, MASTER_ACTIVE);
    ck_assert_int_ne(s, MASTER_QUARANTINE);
    relay_replace(relay, NULL, 0);
    relay_cut(relay);
    wait_state(MASTER_ACTIVE);
}
END_TEST

START_TEST(a_server_that_lets_nobody_in_says_why)
{
    static const char lie[] = "-DENIED Redis is running in protected mode\r\n";

    relay_replace(relay, lie, sizeof lie - 1);
    relay_cut(relay);
    ck_refused("protected mode");
}
END_TEST

START_TEST(a_broken_link)
{
    struct asked sent, unsent;

    relay_hold(relay, true);
    ck_assert_int_eq(put(&sent, SCRIPT_RELEASE, "x", "op 0 -"), 0);
    master_flush(m, clock_ms());
    event_base_loop(base, EVLOOP_ONCE);
    relay_cut(relay);
    ck_assert_int_eq(put(&unsent, SCRIPT_RELEASE, "x", "op 0 -"), 0);
    while (!unsent.answers) /* nobody flushes */
        event_base_loop(base, EVLOOP_ONCE);
    ck_assert_int_eq(sent.result, MASTER_UNKNOWN);
    ck_assert_int_eq(unsent.result, MASTER_REJECTED);
    ck_assert_str_eq(unsent.text, "not sent");
    ck_assert_int_eq(sent.order, 0);
    relay_hold(relay, false);
    wait_state(MASTER_ACTIVE);
    ck_assert_int_eq(master_status(m, clock_ms())->restarts, 0);
}
END_TEST

START_TEST(the_old_link_is_killed)
{
    ck_assert_int_eq(relay_servers(relay), 1);
    relay_cut(relay);
    wait_state(MASTER_DOWN);
    wait_state(MASTER_ACTIVE);
    run_for(50);
    ck_assert_int_eq(relay_servers(relay), 1);
}
END_TEST

/* Asks for a renewal that is answered at a time far ahead. */
static void ask_far_ahead(struct asked *q, int code)
{
    static char text[100];

    ck_assert_int_eq(put(q, SCRIPT_RENEW, "x", "op 1000 1 1 -"), 0);
    master_flush(m, clock_ms());
    int len = snprintf(text, sizeof text, "*3\r\n:9000000000000\r\n:%" PRId64 "\r\n:%d\r\n",
                       m->last_number, code);
    relay_replace(relay, text, (size_t)len);
    wait_answer(q);
    ck_assert_int_eq(q->result, MASTER_UNKNOWN);
}

START_TEST(a_jump_of_its_clock_is_seen)
{
    struct asked q;

    ck_codes(ask(SCRIPT_RENEW, "x", "op 1000 1 1 -"), 0, 0);
    ask_far_ahead(&q, 0);
    ck_assert_int_eq(master_status(m, clock_ms())->clock_jumps, 1);
    relay_replace(relay, NULL, 0);
    ck_codes(ask(SCRIPT_RELEASE, "x", "op 0 -"), 0, 0);
    ck_assert_int_eq(master_status(m, clock_ms())->clock_jumps, 2);
}
END_TEST

START_TEST(a_jump_ahead_is_followed_by_quarantine)
{
    struct asked q;
    struct master_setup longer = setup;

    longer.quarantine_ms = 5000;
    master_configure(m, &longer, &address);
    ck_codes(ask(SCRIPT_RENEW, "x", "op 1000 1 1 -"), 0, 0);
    ask_far_ahead(&q, 1);
    ck_assert_int_eq(master_status(m, clock_ms())->state, MASTER_QUARANTINE);
    ck_assert_int_eq(put(&q, SCRIPT_COMMIT, "x", "op 60 7 -"), -1);
    relay_replace(relay, NULL, 0);
    ck_codes(ask(SCRIPT_RELEASE, "x", "op 0 -"), 0, 0);
    ck_assert_str_eq(redis_proc_do(&redis, "HGET holdfast:master state"), "quarantine");
}
END_TEST

START_TEST(nothing_is_forgotten_at_the_end)
{
    struct asked q[2];

    relay_hold(relay, true);
    ck_assert_int_eq(put(&q[0], SCRIPT_RELEASE, "x", "op 0 -"), 0);
    master_flush(m, clock_ms());
    ck_assert_int_eq(put(&q[1], SCRIPT_RELEASE, "x", "op 0 -"), 0);
    master_free(m);
    m = NULL;
    ck_assert_int_eq(q[0].answers, 1);
    ck_assert_int_eq(q[0].result, MASTER_UNKNOWN);
    ck_assert_int_eq(q[1].answers, 1);
    ck_assert_int_eq(q[1].result, MASTER_REJECTED);
}
END_TEST

static TCase *add_case(Suite *s, const char *name, void (*setup_fn)(void), void (*end_fn)(void))
{
    TCase *c = tcase_create(name);

    tcase_add_checked_fixture(c, setup_fn, end_fn);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    return c;
}

int main(void)
{
    Suite *s = suite_create("master");
    TCase *c;

    c = add_case(s, "active", begin_active, end);
    tcase_add_test(c, joins);
    tcase_add_test(c, every_script_gets_through);
    tcase_add_test(c, neighbours_travel_together);
    tcase_add_test(c, early_releases_go_first);
    tcase_add_test(c, tokens_of_a_call_rise_together);
    tcase_add_test(c, what_many_readers_have_is_shown_in_part);
    tcase_add_test(c, more_than_its_bound_is_turned_away);
    tcase_add_test(c, a_slow_server_has_little_before_it);
    tcase_add_test(c, an_answer_may_ask_again);
    tcase_add_test(c, a_restart_is_seen);
    tcase_add_test(c, scripts_lost);
    tcase_add_test(c, data_lost);
    tcase_add_test(c, data_lost_while_idle);
    tcase_add_test(c, an_error_in_the_middle_is_no_proof);
    tcase_add_test(c, late_items_are_turned_away);
    tcase_add_test(c, one_that_stands_still_is_dropped);
    tcase_add_test(c, one_that_stands_still_while_idle_is_dropped);
    c = add_case(s, "quarantine", begin, end);
    tcase_add_test(c, quarantine_and_its_end);
    tcase_add_test(c, quarantine_by_itself_and_by_force);
    tcase_add_test(c, quarantine_whatever_is_kept);
    tcase_add_test(c, calls_are_numbered_by_its_time);
    tcase_add_test(c, settings_that_change_are_seen_and_can_be_adopted);
    tcase_add_test(c, adopted_twice);
    tcase_add_test(c, settings_that_change_are_seen_by_each_call);
    tcase_add_test(c, what_another_broker_does_is_seen);
    c = add_case(s, "refused", begin, end);
    tcase_add_test(c, passwords);
    tcase_add_test(c, a_user_with_a_password);
    tcase_add_test(c, a_replica);
    tcase_add_test(c, one_that_evicts);
    tcase_add_test(c, brokers_that_disagree);
    tcase_add_test(c, the_same_server_twice);
    c = add_case(s, "relayed", begin_relayed, end_relayed);
    tcase_add_loop_test(c, unsolicited_bytes_end_the_link, 0,
                        (int)(sizeof unsolicited / sizeof unsolicited[0]));
    tcase_add_loop_test(c, a_lie_is_no_answer, 0, (int)(sizeof lies / sizeof lies[0]));
    tcase_add_test(c, error_texts_are_made_harmless);
    tcase_add_test(c, a_reply_without_end_is_bounded);
    tcase_add_loop_test(c, lies_while_greeting, 0, 10);
    tcase_add_test(c, a_server_that_lets_nobody_in_says_why);
    tcase_add_test(c, a_broken_link);
    tcase_add_test(c, the_old_link_is_killed);
    tcase_add_test(c, a_jump_of_its_clock_is_seen);
    tcase_add_test(c, a_jump_ahead_is_followed_by_quarantine);
    tcase_add_test(c, nothing_is_forgotten_at_the_end);
    return suite_run_with_redis(s);
}
