/* Unit tests of call: what is guessed, asked, run again and told, over a truth in the hands of the
 * test (fake_exchange), with scripts in real Lua. */
#include "dropin/call.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "dropin/memory.h"
#include "dropin/scripts.h"
#include "fake_exchange.h"
#include "lock/broker.h"
#include "redis/partition.h"
#include "session/pubsub.h"
#include "session/session.h"
#include "stats/stats.h"
#include "suite.h"

enum { MAX_LEASE_MS = 60000, MAX_HOLD_MS = 86400000 };
enum { BROKERS = 2, CLIENTS = 3 };

static int64_t now_ms;
static struct broker brokers[BROKERS];
static struct dropin *dropins[BROKERS];

/* Connections: the last one is of the second broker. */
static struct client {
    struct session session;
    struct buf out;
} clients[CLIENTS];

/* ---- the make-believe world ---- */

static void on_session(struct session *s)
{
    (void)s;
}

static void on_session_close(struct session *s, const char *reason)
{
    (void)s;
    (void)reason;
}

static const struct session_events events = {
    .on_ready = on_session, .on_unblocked = on_session, .on_close = on_session_close};

static void write_call(struct request *r, struct resp_writer *w, int64_t at_ms)
{
    (void)at_ms;
    dropin_call_write(dropin_call_of(r), w);
}

static void abandon_call(struct request *r, int64_t at_ms)
{
    (void)at_ms;
    dropin_call_abandon(dropin_call_of(r));
}

static void free_call(struct request *r)
{
    dropin_call_free(dropin_call_of(r));
}

static const struct request_type call_type = {
    .write = write_call, .abandon = abandon_call, .free = free_call};

static void hear(struct broker *b, int64_t since_ms)
{
    for (int i = 0; i < b->rounds.n; i++)
        broker_listens(b, i, since_ms, now_ms, now_ms);
}

static void begin(void)
{
    static const struct dropin_conf conf = {.max_hold_ms = MAX_HOLD_MS};
    static const char *const ids[BROKERS] = {"aaa", "bbb"};
    const struct conf_lock lock_conf = {.lease_ms = 30000,
                                        .max_lease_ms = MAX_LEASE_MS,
                                        .request_timeout_ms = 300,
                                        .max_locks_per_client = 1000};
    now_ms = 1000000;
    for (int i = 0; i < BROKERS; i++) {
        broker_init(&brokers[i], &lock_conf, ids[i], 7, now_ms);
        rounds_set_wall(&brokers[i].rounds, INT64_C(1700000000000), now_ms);
        dropins[i] = dropin_new(&brokers[i], &conf);
    }
    for (int i = 0; i < CLIENTS; i++)
        session_init(&clients[i].session, (uint64_t)i + 1, &events, &clients[i].out, now_ms);
}

static void end_client(struct client *c)
{
    pubsub_leave(&c->session);
    session_fini(&c->session, now_ms);
    buf_fini(&c->out);
}

static void finish(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i].session.id)
            end_client(&clients[i]);
    }
    for (int i = 0; i < BROKERS; i++) {
        dropin_close(dropins[i], now_ms);
        fake_judge_all(now_ms);
        brokers[i].rounds.n = 0; /* there never were any masters */
        rounds_close(&brokers[i].rounds);
        broker_fini(&brokers[i], now_ms);
        dropin_free(dropins[i]);
    }
    fake_exchange_reset();
}

static struct dropin *dropin_of(int client)
{
    return dropins[client == CLIENTS - 1];
}

/* ---- words ---- */

struct words {
    struct resp_arg v[64];
    int n;
    char text[1024];
};

static struct words *split(const char *text)
{
    static struct words w[4];
    static unsigned next;
    struct words *it = &w[next++ % 4];
    it->n = 0;
    snprintf(it->text, sizeof it->text, "%s", text);
    for (char *p = strtok(it->text, " "); p; p = strtok(NULL, " "))
        it->v[it->n++] = (struct resp_arg){p, strlen(p)};
    return it;
}

static struct dropin_command command_of(const struct words *w)
{
    bool all = strcmp(w->v[0].ptr, "DEL") == 0 || strcmp(w->v[0].ptr, "EXISTS") == 0;
    bool none = strcmp(w->v[0].ptr, "PUBLISH") == 0;
    return (struct dropin_command){w->v, w->n, 1, none ? 0 : all ? w->n - 1 : 1, 1};
}

static void submit(int client, struct dropin_call *c)
{
    dropin_request(c)->type = &call_type;
    session_ask(&clients[client].session, dropin_request(c));
    dropin_submit(c, now_ms);
}

/* A plain command of a client. */
static void say(int client, const char *text)
{
    struct dropin_command command = command_of(split(text));
    submit(client, dropin_call_command(dropin_of(client), 0, &command));
}

static void eval_as(int client, bool read_only, const char *body, const char *keys,
                    const char *args)
{
    const struct words *k = split(keys), *a = split(args);
    const struct resp_arg text = {body, strlen(body)};
    const struct dropin_script script = {k->v, a->v, k->n, a->n, read_only};
    submit(client, dropin_call_eval(dropin_of(client), 0, &text, &script));
}

static void eval(int client, const char *body, const char *keys, const char *args)
{
    eval_as(client, false, body, keys, args);
}

/* What the client has been sent since the last time. */
static const char *heard(int client)
{
    static char text[8192];
    struct client *c = &clients[client];
    session_flush(&c->session, now_ms);
    snprintf(text, sizeof text, "%.*s", (int)buf_len(&c->out), buf_head(&c->out));
    buf_consume(&c->out, buf_len(&c->out));
    return text;
}

static void assert_heard(int client, const char *expected)
{
    ck_assert_str_eq(heard(client), expected);
}

static void assert_begins(int client, const char *expected)
{
    const char *text = heard(client);
    ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0, "%s", text);
}

/* A command, judged at once. */
static void assert_says(int client, const char *text, const char *expected)
{
    say(client, text);
    fake_judge_all(now_ms);
    assert_heard(client, expected);
}

static void assert_truth(const char *name, const char *text)
{
    const struct truth *t = fake_truth(name, now_ms);
    if (!text) {
        ck_assert_int_eq(t->kind, TRUTH_FREE);
        return;
    }
    ck_assert_uint_eq(truth_len(t), strlen(text));
    ck_assert(memcmp(truth_bytes(t), text, strlen(text)) == 0);
}

static const char unlock_body[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                  "return redis.call('del', KEYS[1]) else return 0 end";
static const char lock_body[] =
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) "
    "return nil end return redis.call('pttl', KEYS[1])";

/* ---- one broker, nobody in the way ---- */

START_TEST(take_look_and_free)
{
    say(0, "SET x me NX PX 500");
    ck_assert_int_eq(fake_item(0)->what, EXCHANGE_NEW);
    ck_assert_int_eq(fake_item(0)->lease_ms, 500);
    assert_heard(0, ""); /* nothing is told before the masters have confirmed it */
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n");
    assert_truth("x", "drop-in s t me");
    assert_says(0, "GET x", "$2\r\nme\r\n");
    assert_says(0, "SET x me NX PX 500", "$-1\r\n"); /* no re-entry */
    assert_says(1, "DEL x nothing", ":1\r\n");       /* whoever asks */
    assert_truth("x", NULL);
    assert_says(0, "GET x", "$-1\r\n");
    assert_says(0, "DEL x", ":0\r\n");
    assert_says(0, "SETNX x me", ":1\r\n");
    ck_assert_int_eq(fake_truth("x", now_ms)->expires_ms, now_ms + MAX_HOLD_MS);
    assert_says(0, "TTL x", ":-1\r\n");
    assert_says(0, "SET x me XX PX 700", "+OK\r\n");
    assert_says(0, "PTTL x", ":700\r\n");
    assert_says(0, "PERSIST x", ":1\r\n");
    assert_truth("x", "drop-in s - me");
}
END_TEST

START_TEST(every_command_takes_one_exchange)
{
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    assert_says(0, "PEXPIRE x 900", ":1\r\n");
    assert_says(0, "PTTL x", ":900\r\n");
    assert_says(0, "DEL x", ":1\r\n");
    ck_assert_int_eq(fake_asked(), 4);
    assert_says(2, "SET x me NX PX 500", "+OK\r\n");
    assert_says(0, "SET x me NX PX 500", "$-1\r\n"); /* guessed free, and told at once */
    assert_says(0, "GET x", "$2\r\nme\r\n");
    ck_assert_int_eq(fake_asked(), 7);
    eval(0, "return ARGV[1]", "", "hello"); /* depends on nothing */
    assert_heard(0, "$5\r\nhello\r\n");
    ck_assert_int_eq(fake_asked(), 7);
    now_ms += 500;
    assert_says(0, "SET x me NX PX 500", "+OK\r\n"); /* what was known is over */
    ck_assert_int_eq(fake_asked(), 8);
}
END_TEST

START_TEST(what_a_change_is)
{
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    say(0, "SET x me XX PX 900");
    ck_assert_int_eq(fake_item(0)->what, EXCHANGE_IN_PLACE);
    fake_judge_all(now_ms);
    say(0, "SET x you XX PX 900");
    ck_assert_int_eq(fake_item(0)->what, EXCHANGE_NEW);
    fake_judge_all(now_ms);
    say(0, "PEXPIRE x 900"); /* to the same time is a renewal, too */
    ck_assert_int_eq(fake_item(0)->what, EXCHANGE_IN_PLACE);
    fake_judge_all(now_ms);
    say(0, "PEXPIRE x -1");
    ck_assert_int_eq(fake_item(0)->what, EXCHANGE_END);
    fake_judge_all(now_ms);
    assert_truth("x", NULL);
    say(0, "PEXPIRE x 900");
    ck_assert_int_eq(fake_item(0)->what, EXCHANGE_LOOK);
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n+OK\r\n:1\r\n:1\r\n:0\r\n");
}
END_TEST

START_TEST(what_is_written_without_a_time_keeps_its_time)
{
    assert_says(0, "HSET x me 1", ":1\r\n");
    assert_says(0, "PEXPIRE x 500", ":1\r\n");
    now_ms += 100;
    say(0, "HINCRBY x me 1");
    ck_assert_int_eq(fake_item(0)->what, EXCHANGE_IN_PLACE);
    ck_assert_int_eq(fake_item(0)->lease_ms, 400);
    ck_assert(fake_item(0)->keeps_time);
    fake_judge_all(now_ms);
    assert_heard(0, ":2\r\n");
    say(0, "PEXPIRE x 300");
    ck_assert(!fake_item(0)->keeps_time);
    fake_judge_all(now_ms);
    assert_heard(0, ":1\r\n");
    assert_says(0, "PERSIST x", ":1\r\n");
    now_ms += 1000;
    say(0, "HINCRBY x me 1");
    ck_assert_int_eq(fake_item(0)->lease_ms, MAX_HOLD_MS - 1000);
    fake_judge_all(now_ms);
    assert_heard(0, ":3\r\n");
}
END_TEST

START_TEST(scripts)
{
    eval(0, lock_body, "x", "500 me");
    eval(0, lock_body, "x", "500 me");
    eval(0, lock_body, "x", "500 you");
    eval(0, unlock_body, "y", "me");
    fake_judge_all(now_ms);
    assert_heard(0, "$-1\r\n$-1\r\n:500\r\n:0\r\n");
    assert_truth("x", "drop-in h t 2:me1:2");
}
END_TEST

START_TEST(several_keys_are_one_exchange)
{
    static const char body[] =
        "for i = 1, #KEYS do if redis.call('exists', KEYS[i]) == 1 then return 0 end end "
        "for i = 1, #KEYS do redis.call('set', KEYS[i], ARGV[1], 'PX', 500) end return #KEYS";
    assert_says(2, "SET b other NX PX 500", "+OK\r\n");
    eval(0, body, "a b c", "me");
    fake_judge(0, now_ms); /* guessed free: b is not */
    ck_assert_int_eq(fake_waiting(), 1);
    fake_judge_all(now_ms); /* nothing is written any more, but of two keys all must be true */
    assert_heard(0, ":0\r\n");
    assert_truth("a", NULL);
    assert_says(2, "DEL b", ":1\r\n");
    eval(0, body, "a b c", "me");
    fake_judge_all(now_ms);
    assert_heard(0, ":3\r\n");
    assert_truth("c", "drop-in s t me");
}
END_TEST

/* As a Redis Cluster refuses them. */
START_TEST(keys_of_several_partitions)
{
    static const char refused[] = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
    partitions_use(PARTITIONS);
    assert_says(0, "DEL a b", refused);
    assert_says(0, "DEL {t}a {t}b", ":0\r\n");
    eval(0, "return 1", "a b", "x");
    assert_heard(0, refused);
    eval(0, "return 1", "{t}a {t}b", "x");
    fake_judge_all(now_ms);
    assert_heard(0, ":1\r\n");
    partitions_use(0);
}
END_TEST

/* ---- guesses that are wrong ---- */

START_TEST(two_brokers_with_the_same_guess)
{
    say(0, "SET x me NX PX 500");
    say(2, "SET x you NX PX 500");
    fake_judge(1, now_ms);
    fake_judge_all(now_ms);
    assert_heard(2, "+OK\r\n");
    assert_heard(0, "$-1\r\n");
    assert_truth("x", "drop-in s t you");
}
END_TEST

START_TEST(memory_that_is_stale)
{
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    assert_says(2, "DEL x", ":1\r\n");
    assert_says(2, "SET x you NX PX 900", "+OK\r\n");
    eval(0, unlock_body, "x", "me"); /* still mine, as far as I know */
    ck_assert_int_eq(fake_item(0)->what, EXCHANGE_END);
    fake_judge_all(now_ms);
    assert_heard(0, ":0\r\n");
    assert_truth("x", "drop-in s t you");
    assert_says(0, "PTTL x", ":900\r\n");
}
END_TEST

START_TEST(a_time_that_ends_between_run_and_exchange)
{
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    now_ms += 499;
    say(0, "PEXPIRE x 500");
    now_ms += 1;
    fake_judge_all(now_ms);
    assert_heard(0, ":0\r\n");
    assert_truth("x", NULL);
}
END_TEST

/* It may last a moment more than is known: nobody takes it over for that. */
START_TEST(a_look_at_a_time_tells_what_the_masters_say)
{
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    say(0, "PTTL x");
    ck_assert(fake_item(0)->wants_time);
    now_ms += 100; /* while the question is under way */
    fake_judge_all(now_ms);
    assert_heard(0, ":400\r\n");
}
END_TEST

START_TEST(four_runs_at_most)
{
    fake_put("x", TRUTH_DROPIN, "drop-in h t 2:me1:1", now_ms + 500);
    eval(0, lock_body, "x", "500 me");
    for (int i = 0; i < DROPIN_ASKS; i++) {
        char text[64];
        snprintf(text, sizeof text, "drop-in h t 2:me1:%d", i);
        ck_assert_int_eq(fake_waiting(), 1);
        fake_put("x", TRUTH_DROPIN, text, now_ms + 500);
        fake_judge(0, now_ms);
    }
    assert_begins(0, "-TRYAGAIN 'x' ");
    assert_truth("x", "drop-in h t 2:me1:3"); /* nothing was done */
    ck_assert_uint_eq(stats.drop_in_again, 1);
}
END_TEST

START_TEST(a_failure_is_told_and_forgotten)
{
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    say(0, "SET x you XX PX 500");
    fake_fail(true, now_ms);
    assert_begins(0, "-NOQUORUM ");
    ck_assert_uint_eq(dropin_figures(dropins[0]).n_names, 0);
    assert_says(0, "GET x", "$3\r\nyou\r\n");
    say(0, "DEL x");
    fake_fail(false, now_ms);
    assert_begins(0, "-NOQUORUM ");
    assert_says(0, "DEL x", ":1\r\n");
    fake_put("y", TRUTH_DROPIN, "drop-in h t 2:me1:1", now_ms + 500);
    eval(0, lock_body, "y", "500 me");
    fake_judge(0, now_ms); /* told what stands there, and tries again */
    fake_fail(true, now_ms);
    assert_begins(0, "-NOQUORUM ");
    ck_assert_uint_eq(dropin_figures(dropins[0]).n_names, 0);
}
END_TEST

/* ---- split votes ---- */

static void pass(int64_t ms)
{
    now_ms += ms;
    for (int i = 0; i < BROKERS; i++)
        broker_turn(&brokers[i], now_ms);
}

START_TEST(split_votes_are_asked_again)
{
    say(0, "SET x me NX PX 500");
    fake_refuse(TRUTH_SPLIT, now_ms);
    ck_assert_int_eq(fake_waiting(), 0);
    assert_heard(0, "");
    pass(100);
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n");
}
END_TEST

START_TEST(what_is_about_to_end_is_not_taken)
{
    fake_put("x", TRUTH_DROPIN, "drop-in s t other", now_ms + 5);
    fake_margin_ms = 10;
    say(0, "SET x me NX PX 500");
    ck_assert_int_eq(fake_item(0)->guess->kind, TRUTH_FREE);
    fake_judge(0, now_ms);
    ck_assert_int_eq(fake_waiting(), 0); /* it pauses, and takes nothing over */
    assert_heard(0, "");
    assert_truth("x", "drop-in s t other");
    pass(10);
    ck_assert_int_eq(fake_item(0)->guess->kind, TRUTH_FREE);
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n");
}
END_TEST

static void split_for_ever(void)
{
    for (int i = 0; i < DROPIN_ASKS; i++) {
        ck_assert_int_eq(fake_waiting(), 1);
        fake_refuse(TRUTH_SPLIT, now_ms);
        pass(40);
    }
    ck_assert_int_eq(fake_waiting(), 0);
}

START_TEST(a_split_vote_is_somebody_else)
{
    say(0, "SET x me NX PX 500");
    split_for_ever();
    assert_heard(0, "$-1\r\n");
    eval(0, lock_body, "x", "500 me"); /* may be the one that has it */
    split_for_ever();
    assert_begins(0, "-TRYAGAIN 'x'");
    eval(0, unlock_body, "x", "me"); /* might be its own: nobody knows */
    split_for_ever();
    assert_begins(0, "-TRYAGAIN ");
    say(0, "GET x");
    split_for_ever();
    assert_begins(0, "-TRYAGAIN ");
}
END_TEST

/* ---- turns ---- */

START_TEST(calls_about_a_name_go_in_their_order)
{
    say(0, "SET x me NX PX 500");
    say(0, "GET x");
    say(1, "DEL x");
    say(0, "SET x you NX PX 500");
    say(1, "GET x");
    say(1, "GET y");
    ck_assert_int_eq(fake_waiting(), 2); /* the first, and the one of another name */
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n$2\r\nme\r\n+OK\r\n");
    assert_heard(1, ":1\r\n$3\r\nyou\r\n$-1\r\n");
}
END_TEST

START_TEST(looks_go_side_by_side)
{
    fake_put("x", TRUTH_DROPIN, "drop-in s t other", now_ms + 500);
    assert_says(0, "GET x", "$5\r\nother\r\n");
    say(0, "GET x");
    say(1, "SET x me NX PX 500"); /* only a look, as far as is known */
    say(1, "GET x");
    say(1, "DEL x"); /* writes: goes when those before it have their answers */
    say(1, "GET x");
    say(0, "GET x");
    ck_assert_int_eq(fake_waiting(), 3);
    for (int i = 0; i < 3; i++)
        fake_judge(0, now_ms);
    ck_assert_int_eq(fake_waiting(), 1);
    fake_judge(0, now_ms);
    ck_assert_int_eq(fake_waiting(), 2); /* those behind it, at once */
    fake_judge_all(now_ms);
    assert_heard(0, "$5\r\nother\r\n$-1\r\n");
    assert_heard(1, "$-1\r\n$5\r\nother\r\n:1\r\n$-1\r\n");
}
END_TEST

START_TEST(a_look_that_turns_to_write_keeps_back_those_behind)
{
    fake_put("x", TRUTH_DROPIN, "drop-in s t other", now_ms + 500);
    assert_says(0, "GET x", "$5\r\nother\r\n");
    say(0, "SET x me NX PX 500");
    say(0, "GET x");
    fake_end("x");
    fake_judge(0, now_ms);
    ck_assert_int_eq(fake_waiting(), 2);
    fake_judge(0, now_ms); /* the GET, too early */
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n$2\r\nme\r\n");
}
END_TEST

START_TEST(an_answer_that_comes_before_an_earlier_one)
{
    fake_put("x", TRUTH_DROPIN, "drop-in s t other", now_ms + 500);
    assert_says(0, "GET x", "$5\r\nother\r\n");
    say(0, "SET x me NX PX 500");
    say(0, "GET x");
    fake_end("x");
    fake_judge(1, now_ms); /* free: but the call before it will take it */
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n$2\r\nme\r\n");
}
END_TEST

START_TEST(who_has_waited_for_too_long_is_told)
{
    say(0, "SET x me NX PX 5000");
    say(0, "DEL x");
    now_ms += 301;
    fake_fail(false, now_ms);
    ck_assert_int_eq(fake_waiting(), 0);
    assert_heard(0, "-NOQUORUM only 1 of 3 masters answered\r\n"
                    "-TRYAGAIN 'x' is waited for by others: nothing was done\r\n");
}
END_TEST

START_TEST(what_took_too_long_is_not_tried_again)
{
    say(0, "SET x me NX PX 5000");
    fake_put("x", TRUTH_DROPIN, "drop-in s t other", now_ms + 5000);
    now_ms += 301;
    fake_judge_all(now_ms);
    assert_heard(0, "$-1\r\n"); /* that is sure by now */
    say(0, "SET y me NX PX 5000");
    fake_refuse(TRUTH_SPLIT, now_ms);
    fake_put("x", TRUTH_DROPIN, "drop-in s t me", now_ms + 5000);
    eval(0, unlock_body, "x", "me");
    fake_put("x", TRUTH_DROPIN, "drop-in s t me", now_ms + 5000);
    now_ms += 301;
    fake_judge_all(now_ms);
    assert_heard(0, "");
    pass(0);
    assert_heard(0, "-TRYAGAIN 'y' is being changed by others: nothing was done\r\n"
                    "-TRYAGAIN 'x' is being changed by others: nothing was done\r\n");
}
END_TEST

/* An operation of another broker: nobody tells this one when it ends. */
START_TEST(no_refusal_from_memory_of_others)
{
    brokers[0].rounds.n = 1;
    hear(&brokers[0], now_ms - 1);
    fake_put("x", TRUTH_DROPIN, "drop-in s t other", now_ms + 500);
    assert_says(0, "GET x", "$5\r\nother\r\n");
    say(0, "SET x me NX PX 500");
    ck_assert_int_eq(fake_waiting(), 1);
    fake_end("x");
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n");
}
END_TEST

/* ---- memory ---- */

START_TEST(a_refusal_from_memory)
{
    brokers[0].rounds.n = 1;
    hear(&brokers[0], now_ms - 1);
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    say(1, "SET x you NX PX 500");
    say(1, "SETNX x you");
    ck_assert_int_eq(fake_waiting(), 0);
    assert_heard(1, "$-1\r\n:0\r\n");
    say(1, "SET x you NX XX");
    say(1, "SET x you NX GET"); /* tells the value: the masters are asked */
    ck_assert_int_eq(fake_waiting(), 2);
    fake_judge_all(now_ms);
    assert_heard(1, "-ERR syntax error\r\n$2\r\nme\r\n");
    now_ms += 500; /* its time is over */
    hear(&brokers[0], now_ms - 500);
    assert_says(1, "SET x you NX PX 500", "+OK\r\n");
}
END_TEST

static void tell_end(const char *op, const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "%s holdfast:{%s}", op, name);
    dropin_called(dropins[0], text, strlen(text));
}

START_TEST(no_refusal_from_memory_that_may_be_wrong)
{
    brokers[0].rounds.n = 1;
    hear(&brokers[0], now_ms - 1);
    assert_says(0, "SET x me NX PX 5000", "+OK\r\n");
    now_ms += 1001; /* deaf for a second */
    say(1, "SET x you NX PX 500");
    ck_assert_int_eq(fake_waiting(), 1);
    fake_judge_all(now_ms);
    assert_heard(1, "$-1\r\n");
    hear(&brokers[0], now_ms - 1); /* hears again, but has missed something */
    assert_says(0, "DEL x", ":1\r\n");
    assert_says(0, "SET x me NX PX 5000", "+OK\r\n");
    hear(&brokers[0], now_ms + 1);
    say(1, "SET x you NX PX 500");
    ck_assert_int_eq(fake_waiting(), 1);
    fake_judge_all(now_ms);
    assert_heard(1, "$-1\r\n");
}
END_TEST

START_TEST(the_end_of_a_hold_is_told)
{
    char op[DROPIN_OP_MAX + 1];
    brokers[0].rounds.n = 1;
    hear(&brokers[0], now_ms - 1);
    assert_says(0, "SET x me NX PX 5000", "+OK\r\n");
    snprintf(op, sizeof op, "%s", fake_truth("x", now_ms)->op);
    assert_says(2, "DEL x", ":1\r\n");
    tell_end("aaa.other", "x");
    tell_end(op, "y");
    dropin_called(dropins[0], "nonsense", 8);
    dropin_called(dropins[0], "op key", 6);
    ck_assert_uint_eq(dropin_figures(dropins[0]).n_names, 1);
    tell_end(op, "x");
    ck_assert_uint_eq(dropin_figures(dropins[0]).n_names, 0);
    assert_says(1, "SET x you NX PX 500", "+OK\r\n");
}
END_TEST

/* The hold has ended before this broker knows that it has it. */
START_TEST(the_end_of_a_hold_is_told_before_it_is_confirmed)
{
    brokers[0].rounds.n = 1;
    hear(&brokers[0], now_ms - 1);
    say(0, "SET x me NX PX 5000");
    tell_end("aaa.1", "x");
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n");
    fake_end("x");
    say(1, "SET x you NX PX 500");
    ck_assert_int_eq(fake_waiting(), 1);
    fake_judge_all(now_ms);
    assert_heard(1, "+OK\r\n");
}
END_TEST

static struct spot *spot_of(const char *name)
{
    const struct locktab_name hashed = locktab_name(name, strlen(name));
    return spot_get(&brokers[0], &hashed);
}

static void put_memory(struct memory *m, unsigned i, size_t bytes)
{
    char name[16], *text = util_alloc(bytes);
    struct truth t = {.kind = TRUTH_DROPIN, .op = "x.1", .expires_ms = INT64_MAX};
    snprintf(name, sizeof name, "%u", i);
    truth_set_text(&t, text, bytes);
    memory_put(m, spot_of(name), &t, 0);
    truth_fini(&t);
    free(text);
}

static uint8_t guessed(struct memory *m, const char *name)
{
    struct truth t = {0};
    memory_guess(m, spot_of(name), &t, now_ms);
    truth_fini(&t);
    spot_leave(&brokers[0], spot_of(name));
    return t.kind;
}

START_TEST(memory_is_bounded)
{
    struct memory m;
    struct truth t = {0};
    uint32_t n = MEMORY_BYTES_MAX / DROPIN_STATE_MAX;
    memory_init(&m, &brokers[0]);
    for (uint32_t i = 0; i < n; i++) {
        put_memory(&m, i, DROPIN_STATE_MAX);
        ck_assert_uint_le(m.bytes, MEMORY_BYTES_MAX);
    }
    ck_assert_uint_lt(brokers[0].n_remembered, n);
    ck_assert_int_eq(guessed(&m, "0"), TRUTH_FREE);
    ck_assert_int_eq(guessed(&m, "30000"), TRUTH_DROPIN);
    t = (struct truth){.kind = TRUTH_DROPIN, .op = "x.1"};
    t.expires_ms = now_ms;
    memory_put(&m, spot_of("over"), &t, 0);
    ck_assert_int_eq(guessed(&m, "over"), TRUTH_FREE);
    memory_close(&m);
    ck_assert_uint_eq(m.bytes, 0);
}
END_TEST

/* ---- locks of LOCK ---- */

START_TEST(a_native_hold_is_never_written)
{
    fake_put("x", TRUTH_NATIVE, "worker 7", now_ms + 500);
    assert_says(0, "GET x", "$8\r\nworker 7\r\n");
    assert_says(0, "PTTL x", ":500\r\n");
    assert_says(0, "SET x me NX PX 500", "$-1\r\n");
    assert_says(0, "SET y me NX PX 500", "+OK\r\n");
    assert_says(0, "DEL x y", ":1\r\n"); /* leaves x, frees y */
    assert_truth("x", "worker 7");
    assert_truth("y", NULL);
    assert_says(0, "DEL x", ":0\r\n");
    say(0, "PEXPIRE x 900");
    fake_judge_all(now_ms);
    assert_begins(0, "-ERR the command writes to 'x', which is held by LOCK, by worker 7:");
    eval(0, "redis.pcall('set', KEYS[1], 'me') return 1", "x", "");
    fake_judge_all(now_ms);
    assert_begins(0, "-ERR the script writes to 'x', which is held by LOCK");
    eval(0, unlock_body, "x", "worker 7"); /* whoever knows the owner does not free it either */
    fake_judge_all(now_ms);
    assert_heard(0, ":0\r\n");
    assert_truth("x", "worker 7");
}
END_TEST

START_TEST(readers_and_what_is_no_lock)
{
    say(0, "SET x me NX PX 500");
    fake_put("x", TRUTH_NATIVE, "", now_ms + 500); /* readers */
    fake_judge_all(now_ms);
    assert_heard(0, "$-1\r\n");
    say(0, "DEL y");
    fake_refuse(TRUTH_FOREIGN, now_ms);
    assert_begins(0, "-ERR the command asks for 'y': what the masters have there is no lock");
    say(0, "GET y");
    fake_put("y", TRUTH_DROPIN, "drop-in x", now_ms + 500);
    fake_judge_all(now_ms);
    assert_begins(0, "-ERR the command asks for 'y': what the masters have there is no lock");
}
END_TEST

/* ---- what is published ---- */

static void subscribe(int client, const char *channel)
{
    (void)pubsub_subscribe(&clients[client].session, channel, strlen(channel), false);
}

START_TEST(a_message_is_published_once_and_after_the_confirmation)
{
    static const char body[] =
        "if redis.call('get', KEYS[1]) ~= ARGV[1] then redis.call('publish', 'c', 'no') return 0 "
        "end redis.call('del', KEYS[1]) redis.call('publish', 'c', ARGV[1]) return 1";
    subscribe(1, "c");
    fake_put("x", TRUTH_DROPIN, "drop-in s t me", now_ms + 500);
    eval(0, body, "x", "me"); /* guessed free: would publish 'no' */
    assert_heard(1, "");
    fake_judge(0, now_ms);
    assert_heard(1, "");
    fake_judge_all(now_ms);
    assert_heard(0, ":1\r\n");
    assert_heard(1, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nme\r\n");
    eval(0, body, "x", "me");
    fake_judge(0, now_ms);
    assert_heard(0, ":0\r\n");
    assert_heard(1, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nno\r\n");
    eval(0, body, "x", "me");
    fake_fail(true, now_ms);
    assert_begins(0, "-NOQUORUM ");
    assert_heard(1, "");
    say(0, "PUBLISH c hello");
    assert_heard(0, ":1\r\n");
    assert_heard(1, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nhello\r\n");
}
END_TEST

/* ---- connections ---- */

START_TEST(a_call_whose_connection_has_gone_is_finished)
{
    say(0, "SET x me NX PX 500");
    say(0, "PEXPIRE x 900");
    end_client(&clients[0]);
    clients[0].session.id = 0;
    fake_judge_all(now_ms);
    assert_truth("x", "drop-in s t me");
    ck_assert_int_eq(fake_truth("x", now_ms)->expires_ms, now_ms + 900);
}
END_TEST

/* ---- errors ---- */

START_TEST(what_cannot_be_run)
{
    char text[700], name[600];
    memset(name, 'n', sizeof name);
    name[LOCK_NAME_MAX + 1] = '\0';
    snprintf(text, sizeof text, "GET %s", name);
    say(0, text);
    assert_begins(0, "-ERR the key has 513 bytes, the name of a lock must have 1 to 512\r\n");
    say(0, "GET a\nb");
    assert_begins(0, "-ERR the key has a NUL, CR or LF in it");
    say(0, "DEL a b c d e f g h i j k l m n o p p");
    say(0, "DEL a b c d e f g h i j k l m n o p q");
    ck_assert_int_eq(fake_waiting(), 1);
    fake_judge_all(now_ms);
    assert_begins(0, ":0\r\n-ERR more than 16 keys at once");
    eval(0, "return redis.call('lpush', KEYS[1], 1)", "x", "");
    assert_begins(0, "-ERR the script calls lpush, which is not served");
    eval(0, "return redis.call('get', 'other')", "x", "");
    assert_begins(0, "-ERR the script calls get on 'other', which is not among its KEYS");
    eval_as(0, true, "return redis.call('set', KEYS[1], 1)", "x", "");
    assert_begins(0, "-ERR Write commands are not allowed from read-only scripts. script: ");
    eval(0, "redis.call('set', KEYS[1], string.rep('x', 4085)) return 1", "x", "");
    fake_judge_all(now_ms);
    assert_begins(0, "-ERR the script writes more to 'x' than a lock can keep: 4096 bytes");
    assert_truth("x", NULL);
}
END_TEST

/* What a refusal depends on is true. */
START_TEST(a_refusal_is_of_the_confirmed_state)
{
    static const char body[] = "if redis.call('exists', KEYS[1]) == 0 then "
                               "return redis.call('lpush', KEYS[1], 1) else return 7 end";
    fake_put("x", TRUTH_DROPIN, "drop-in s t me", now_ms + 500);
    eval(0, body, "x", "");
    ck_assert_int_eq(fake_item(0)->what, EXCHANGE_LOOK);
    fake_judge_all(now_ms);
    assert_heard(0, ":7\r\n");
}
END_TEST

START_TEST(a_script_that_fails_has_written)
{
    eval(0, "redis.call('set', KEYS[1], 'me', 'PX', 500) return redis.call('hget', KEYS[1], 'a')",
         "x", "");
    fake_judge_all(now_ms);
    assert_begins(0, "-WRONGTYPE Operation against");
    assert_truth("x", "drop-in s t me");
}
END_TEST

START_TEST(draining_and_paused)
{
    assert_says(0, "SET x me NX PX 5000", "+OK\r\n");
    broker_pause(&brokers[0], true, now_ms);
    say(0, "SET y me NX PX 500");
    assert_begins(0, "-PAUSED ");
    assert_says(0, "PEXPIRE x 900", ":1\r\n");
    broker_pause(&brokers[0], false, now_ms);
    assert_says(0, "SET y me NX PX 500", "+OK\r\n");
    broker_drain(&brokers[0]);
    say(0, "SET z me NX PX 500");
    assert_begins(0, "-DRAINING ");
    assert_says(0, "SET y me NX PX 500", "$-1\r\n");
    assert_says(0, "DEL x", ":1\r\n");
    say(0, "DEL y"); /* under way at the end */
    say(0, "DEL y"); /* waits for its turn */
    dropin_close(dropins[0], now_ms);
    fake_judge_all(now_ms);
    say(0, "GET y");
    assert_heard(0, ":1\r\n-DRAINING this broker is going down: ask another one\r\n"
                    "-DRAINING this broker is going down: ask another one\r\n");
}
END_TEST

/* ---- MULTI and WATCH ---- */

static struct dropin_watch *watch;

static void say_watch(const char *names)
{
    const struct words *w = split(names);
    submit(0, dropin_call_watch(dropins[0], 0, watch, w->v, w->n));
}

static void say_exec(const char *first, const char *second)
{
    const struct dropin_command commands[] = {command_of(split(first)), command_of(split(second))};
    submit(0, dropin_call_multi(dropins[0], 0, commands, 2, watch));
    dropin_watch_drop(watch);
    watch = dropin_watch_new();
}

START_TEST(commands_together)
{
    watch = dropin_watch_new();
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    say_watch("x");
    say_exec("GET x", "DEL x y"); /* right behind it */
    ck_assert_int_eq(fake_waiting(), 1);
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n*2\r\n$2\r\nme\r\n:1\r\n");
    say_watch("x");
    fake_judge_all(now_ms);
    assert_says(2, "SET x you NX PX 500", "+OK\r\n");
    say_exec("SET y me NX PX 500", "EXISTS y");
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n*-1\r\n");
    assert_truth("y", NULL);
    say_exec("SET y me NX PX 500", "EXISTS y"); /* nothing is watched any more */
    fake_judge_all(now_ms);
    assert_heard(0, "*2\r\n+OK\r\n:1\r\n");
    say_watch("x");
    fake_fail(false, now_ms);
    say_exec("DEL y", "EXISTS y"); /* nobody knows what x was */
    fake_judge_all(now_ms);
    assert_begins(0, "-NOQUORUM ");
    assert_truth("y", "drop-in s t me");
    dropin_watch_drop(watch);
}
END_TEST

START_TEST(a_watched_lock_that_is_renewed_or_over)
{
    watch = dropin_watch_new();
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    say_watch("x");
    fake_judge_all(now_ms);
    assert_says(1, "PEXPIRE x 500", ":1\r\n");
    say_exec("SET y me NX PX 500", "EXISTS y");
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n*-1\r\n");
    say_watch("x");
    fake_judge_all(now_ms);
    now_ms += 500;
    say_exec("SET y me NX PX 500", "EXISTS y");
    assert_heard(0, "+OK\r\n*-1\r\n");
    say_watch("x nothing");
    fake_judge_all(now_ms);
    say_exec("SET y me NX PX 500", "EXISTS y");
    ck_assert_int_eq(fake_waiting(), 1);
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n*2\r\n+OK\r\n:1\r\n");
    dropin_watch_drop(watch);
}
END_TEST

/* ---- scripts, databases, figures ---- */

static void evalsha(const char *sha1)
{
    const struct resp_arg text = {sha1, strlen(sha1)};
    submit(0, dropin_call_evalsha(dropins[0], 0, &text, &(struct dropin_script){.n_keys = 0}));
}

START_TEST(scripts_are_kept)
{
    static const char sha1[] = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    static const char upper[] = "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB";
    const struct resp_arg body = {"return 1", 8}, name = {sha1, 40};
    struct store_reply reply = {0};
    evalsha(sha1);
    assert_heard(0, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    dropin_script_load(dropins[0], &body, &reply);
    ck_assert(memcmp(store_text(&reply, &reply.nodes[0]), sha1, 40) == 0);
    evalsha(sha1);
    evalsha(upper);
    assert_heard(0, ":1\r\n:1\r\n");
    ck_assert(dropin_script_exists(dropins[0], &name));
    dropin_script_flush(dropins[0]);
    ck_assert(!dropin_script_exists(dropins[0], &name));
    eval(0, "return 1", "", "");
    evalsha(sha1);
    assert_heard(0, ":1\r\n:1\r\n");
    evalsha("short");
    assert_begins(0, "-NOSCRIPT ");
    for (int i = 0; i < SCRIPTS_MAX; i++) {
        char text[64];
        snprintf(text, sizeof text, "return %d", i + 2);
        store_reply_clear(&reply);
        dropin_script_load(dropins[0], &(struct resp_arg){text, strlen(text)}, &reply);
    }
    ck_assert_uint_eq(dropin_figures(dropins[0]).n_scripts, SCRIPTS_MAX);
    ck_assert(!dropin_script_exists(dropins[0], &name));
    store_reply_clear(&reply);
    dropin_script_load(dropins[0], &(struct resp_arg){"return (", 8}, &reply);
    ck_assert_int_eq(reply.nodes[0].kind, STORE_ERROR);
    store_reply_fini(&reply);
    eval(0, "return redis.call('incr', KEYS[1])", "x", "");
    fake_judge_all(now_ms);
    assert_begins(0, "-ERR the script counts in 'x', which has no time to live");
    assert_truth("x", NULL);
}
END_TEST

START_TEST(databases_are_other_names)
{
    const struct words *w = split("SET x me NX PX 500");
    const struct dropin_command command = command_of(w);
    assert_says(0, "SET x me NX PX 500", "+OK\r\n");
    submit(0, dropin_call_command(dropins[0], 3, &command));
    fake_judge_all(now_ms);
    assert_heard(0, "+OK\r\n");
    assert_truth("db3:x", "drop-in s t me");
    const struct words *keys = split("x");
    const struct resp_arg body = {"return redis.call('get', KEYS[1])", 33};
    submit(0,
           dropin_call_eval(dropins[0], 3, &body, &(struct dropin_script){keys->v, NULL, 1, 0, 0}));
    fake_judge_all(now_ms);
    assert_heard(0, "$2\r\nme\r\n");
}
END_TEST

START_TEST(long_times_are_counted)
{
    assert_says(0, "SET x me NX PX 60000", "+OK\r\n");
    ck_assert_uint_eq(stats.drop_in_long, 0);
    assert_says(0, "SET y me NX PX 60001", "+OK\r\n");
    ck_assert_uint_eq(stats.drop_in_long, 1);
    assert_says(0, "SET y me NX PX 60001", "$-1\r\n");
    ck_assert_uint_eq(stats.drop_in_long, 1);
    assert_says(0, "SET z me NX EXAT 2500000000", "+OK\r\n");
    assert_says(0, "EXPIRETIME z", ":2500000000\r\n");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("call");
    TCase *t = tcase_create("call");
    tcase_add_checked_fixture(t, begin, finish);
    tcase_add_test(t, take_look_and_free);
    tcase_add_test(t, every_command_takes_one_exchange);
    tcase_add_test(t, what_a_change_is);
    tcase_add_test(t, what_is_written_without_a_time_keeps_its_time);
    tcase_add_test(t, scripts);
    tcase_add_test(t, several_keys_are_one_exchange);
    tcase_add_test(t, keys_of_several_partitions);

    tcase_add_test(t, two_brokers_with_the_same_guess);
    tcase_add_test(t, memory_that_is_stale);
    tcase_add_test(t, a_time_that_ends_between_run_and_exchange);
    tcase_add_test(t, what_is_about_to_end_is_not_taken);
    tcase_add_test(t, a_look_at_a_time_tells_what_the_masters_say);
    tcase_add_test(t, four_runs_at_most);
    tcase_add_test(t, a_failure_is_told_and_forgotten);
    tcase_add_test(t, split_votes_are_asked_again);
    tcase_add_test(t, a_split_vote_is_somebody_else);
    tcase_add_test(t, calls_about_a_name_go_in_their_order);
    tcase_add_test(t, looks_go_side_by_side);
    tcase_add_test(t, a_look_that_turns_to_write_keeps_back_those_behind);
    tcase_add_test(t, an_answer_that_comes_before_an_earlier_one);
    tcase_add_test(t, who_has_waited_for_too_long_is_told);
    tcase_add_test(t, what_took_too_long_is_not_tried_again);
    tcase_add_test(t, no_refusal_from_memory_of_others);
    tcase_add_test(t, a_refusal_from_memory);
    tcase_add_test(t, no_refusal_from_memory_that_may_be_wrong);
    tcase_add_test(t, the_end_of_a_hold_is_told);
    tcase_add_test(t, the_end_of_a_hold_is_told_before_it_is_confirmed);
    tcase_add_test(t, memory_is_bounded);
    tcase_add_test(t, a_native_hold_is_never_written);
    tcase_add_test(t, readers_and_what_is_no_lock);
    tcase_add_test(t, a_message_is_published_once_and_after_the_confirmation);
    tcase_add_test(t, a_call_whose_connection_has_gone_is_finished);
    tcase_add_test(t, what_cannot_be_run);
    tcase_add_test(t, a_refusal_is_of_the_confirmed_state);
    tcase_add_test(t, a_script_that_fails_has_written);
    tcase_add_test(t, draining_and_paused);
    tcase_add_test(t, commands_together);
    tcase_add_test(t, a_watched_lock_that_is_renewed_or_over);
    tcase_add_test(t, scripts_are_kept);
    tcase_add_test(t, databases_are_other_names);
    tcase_add_test(t, long_times_are_counted);
    suite_add_tcase(s, t);
    return suite_run(s);
}
