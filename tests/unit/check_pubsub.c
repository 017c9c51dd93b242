/* pubsub, monitor, slowlog: sessions without sockets, a buf in place of the stream. */
#include "session/pubsub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/monitor.h"
#include "command/slowlog.h"
#include "session/session.h"
#include "stats/stats.h"
#include "suite.h"

struct client {
    struct session s;
    struct buf out;
};

static struct client a, b;

static void on_ready(struct session *s)
{
    s->ready = true;
}

static void on_unblocked(struct session *s)
{
    (void)s;
}

static void on_close(struct session *s, const char *reason)
{
    (void)s, (void)reason;
}

static const struct session_events events = {
    .on_ready = on_ready, .on_unblocked = on_unblocked, .on_close = on_close};

static void set_up(void)
{
    session_init(&a.s, 1, &events, &a.out, 0);
    session_init(&b.s, 2, &events, &b.out, 0);
}

static void client_fini(struct client *c)
{
    pubsub_leave(&c->s);
    monitor_leave(&c->s);
    session_fini(&c->s, 0);
    buf_fini(&c->out);
}

static void tear_down(void)
{
    client_fini(&a);
    client_fini(&b);
    ck_assert_uint_eq(pubsub_count_channels(), 0);
    ck_assert_uint_eq(pubsub_count_patterns(), 0);
    ck_assert_uint_eq(monitor_count, 0);
    slowlog_reset();
}

static void expect(struct client *c, const char *want)
{
    buf_append(&c->out, "", 1);
    ck_assert_str_eq(buf_head(&c->out), want);
    buf_consume(&c->out, buf_len(&c->out));
}

static uint32_t publish(const char *channel, const char *text)
{
    return pubsub_publish(channel, strlen(channel), text, strlen(text), 0);
}

static void publish_bytes(const char *channel, size_t len, const char *text)
{
    (void)pubsub_publish(channel, len, text, strlen(text), 0);
}

START_TEST(message_reaches_channel)
{
    ck_assert_uint_eq(pubsub_subscribe(&a.s, "lost", 4, false), 1);
    ck_assert_uint_eq(pubsub_subscribe(&a.s, "lost", 4, false), 1); /* a repeat changes nothing */
    b.s.proto = 3;
    ck_assert_uint_eq(pubsub_subscribe(&b.s, "lost", 4, false), 1);
    ck_assert_uint_eq(pubsub_count_channel("lost", 4), 2);

    ck_assert_uint_eq(publish("lost", "x\r\ny"), 2);
    expect(&a, "*3\r\n$7\r\nmessage\r\n$4\r\nlost\r\n$4\r\nx\r\ny\r\n");
    expect(&b, ">3\r\n$7\r\nmessage\r\n$4\r\nlost\r\n$4\r\nx\r\ny\r\n");
    ck_assert_uint_eq(publish("los", "x"), 0);
    ck_assert_uint_eq(publish("lost2", "x"), 0);
    expect(&a, "");
}
END_TEST

START_TEST(message_reaches_pattern)
{
    ck_assert_uint_eq(pubsub_subscribe(&a.s, "lock:*", 6, true), 1);
    ck_assert_uint_eq(pubsub_subscribe(&a.s, "lock:a", 6, false), 2);
    ck_assert_uint_eq(pubsub_subscribe(&a.s, "lock:*", 6, false), 3); /* no pattern */
    ck_assert_uint_eq(pubsub_count_patterns(), 1);
    ck_assert_uint_eq(pubsub_count_session(&a.s, true), 1);
    ck_assert_uint_eq(pubsub_count_session(&a.s, false), 2);

    ck_assert_uint_eq(publish("lock:a", "x"), 2);
    expect(&a, "*3\r\n$7\r\nmessage\r\n$6\r\nlock:a\r\n$1\r\nx\r\n"
               "*4\r\n$8\r\npmessage\r\n$6\r\nlock:*\r\n$6\r\nlock:a\r\n$1\r\nx\r\n");
    ck_assert_uint_eq(publish("lock:b", "x"), 1);
    ck_assert(pubsub_wanted("lock:b", 6));
    pubsub_unsubscribe(&a.s, "lock:*", 6, true);
    ck_assert(!pubsub_wanted("lock:b", 6));
    ck_assert(!pubsub_wanted("lost", 4));
}
END_TEST

/* ---- more than one turn takes ---- */

enum { CROWD = 5000 };

static struct client crowd[CROWD];

static void crowd_init(const char *channel, bool is_pattern)
{
    for (int i = 0; i < CROWD; i++) {
        session_init(&crowd[i].s, 10 + (uint64_t)i, &events, &crowd[i].out, 0);
        pubsub_subscribe(&crowd[i].s, channel, strlen(channel), is_pattern);
    }
}

static void crowd_fini(void)
{
    for (int i = 0; i < CROWD; i++)
        client_fini(&crowd[i]);
}

static int turns_until_told(void)
{
    int turns = 0;
    for (; pubsub_waits(); turns++)
        pubsub_turn(0);
    return turns;
}

/* Messages keep their order; who goes is not told, who comes later neither. */
START_TEST(many_listeners_are_told_over_turns)
{
    crowd_init("lock:x", false);
    uint32_t at_once = publish("lock:x", "1");
    ck_assert_uint_gt(at_once, 0);
    ck_assert_uint_lt(at_once, 1500);
    ck_assert_uint_eq(publish("lock:x", "2"), 0); /* behind the first one */
    ck_assert_uint_eq(publish("lost", "3"), 0);
    pubsub_turn(0); /* the end of the same turn, of which nothing is left */
    ck_assert_uint_eq(buf_len(&crowd[at_once].out), 0);
    pubsub_subscribe(&a.s, "lock:x", 6, false);
    pubsub_leave(&crowd[at_once].s); /* the next one */
    pubsub_leave(&crowd[CROWD - 1].s);
    ck_assert_int_gt(turns_until_told(), 2);
    expect(&a, "");
    for (int i = 0; i < CROWD; i++)
        expect(&crowd[i], i == (int)at_once || i == CROWD - 1
                              ? ""
                              : "*3\r\n$7\r\nmessage\r\n$6\r\nlock:x\r\n$1\r\n1\r\n"
                                "*3\r\n$7\r\nmessage\r\n$6\r\nlock:x\r\n$1\r\n2\r\n");
    pubsub_turn(0);
    ck_assert_uint_eq(publish("lock:x", "4"), 600); /* what one turn may do */
    crowd_fini();
    ck_assert_int_ge(turns_until_told(), 0);
}
END_TEST

/* The listeners of one pattern go while they are being told, then all others. */
START_TEST(listeners_go_while_a_message_waits)
{
    pubsub_turn(0);
    crowd_init("lock:*", true);
    pubsub_subscribe(&a.s, "lock:[xy]", 9, true);
    ck_assert_uint_lt(publish("lock:x", "1"), CROWD);
    crowd_fini();
    ck_assert(pubsub_waits());
    turns_until_told();
    expect(&a, "*4\r\n$8\r\npmessage\r\n$9\r\nlock:[xy]\r\n$6\r\nlock:x\r\n$1\r\n1\r\n");
    pubsub_leave(&a.s);
    crowd_init("lock:*", true);
    pubsub_subscribe(&a.s, "lock:[xy]", 9, true);
    ck_assert_uint_lt(publish("lock:x", "2"), CROWD);
    crowd_fini();
    pubsub_leave(&a.s);
    turns_until_told();
    pubsub_turn(0);
    expect(&a, "");
}
END_TEST

/* Costly patterns: a message is compared with some of them in each turn. */
START_TEST(patterns_are_compared_over_turns)
{
    char pattern[PUBSUB_NAME_MAX], channel[512];
    pubsub_turn(0);
    memset(channel, 'a', sizeof channel);
    for (int i = 0; i < PUBSUB_PATTERNS_MAX; i++) {
        int len = snprintf(pattern, sizeof pattern, "*%d", i);
        for (; len + 2 < 900; len += 2)
            memcpy(pattern + len, "*a", 2);
        pubsub_subscribe(&a.s, pattern, (size_t)len, true);
    }
    pubsub_subscribe(&a.s, "a*", 2, true);
    for (int i = 0; i < 20; i++)
        publish_bytes(channel, sizeof channel, "x");
    ck_assert(pubsub_waits());
    ck_assert_int_gt(turns_until_told(), 3);
    size_t len = buf_len(&a.out);
    ck_assert_uint_gt(len, 20 * sizeof channel);
    ck_assert_uint_eq(len % 20, 0);
    ck_assert_mem_eq(buf_head(&a.out), (char *)buf_head(&a.out) + len / 20, len / 20);
    buf_consume(&a.out, buf_len(&a.out));
}
END_TEST

static void publish_when_ready(struct session *s)
{
    s->ready = true;
    if (buf_len(s->out) < 200)
        ck_assert_uint_eq(publish("lock:x", "again"), 0);
}

static const struct session_events noisy = {
    .on_ready = publish_when_ready, .on_unblocked = on_unblocked, .on_close = on_close};

/* Who is told may publish: that comes behind, and never inside. */
START_TEST(to_tell_may_publish)
{
    pubsub_turn(0);
    a.s.events = &noisy;
    pubsub_subscribe(&a.s, "lock:x", 6, false);
    pubsub_subscribe(&b.s, "lock:x", 6, false);
    ck_assert_uint_eq(publish("lock:x", "first"), 2);
    ck_assert(!pubsub_waits());
    ck_assert_uint_eq(buf_len(&a.out), buf_len(&b.out));
    ck_assert_mem_eq(buf_head(&a.out), buf_head(&b.out), buf_len(&a.out));
    buf_consume(&a.out, buf_len(&a.out));
    buf_consume(&b.out, buf_len(&b.out));
}
END_TEST

START_TEST(what_cannot_be_told_in_time_is_dropped)
{
    pubsub_turn(0);
    crowd_init("lock:x", false);
    uint64_t before = stats.messages_dropped;
    for (int i = 0; i < 20000; i++)
        publish("lock:x", "1");
    ck_assert_uint_gt(stats.messages_dropped - before, 3000);
    crowd_fini();
    turns_until_told();
}
END_TEST

static char seen[128];

static void on_each(void *arg, const char *name, size_t len, uint32_t left)
{
    size_t at = strlen(seen);

    ck_assert_ptr_eq(arg, &a);
    snprintf(seen + at, sizeof(seen) - at, "%.*s=%u ", (int)len, name, left);
}

START_TEST(unsubscribe_all_of_one_kind)
{
    pubsub_subscribe(&a.s, "one", 3, false);
    pubsub_subscribe(&a.s, "p*", 2, true);
    pubsub_subscribe(&a.s, "two", 3, false);
    pubsub_subscribe(&b.s, "two", 3, false);
    ck_assert_uint_eq(pubsub_unsubscribe(&a.s, "none", 4, false), 3);
    ck_assert_uint_eq(pubsub_unsubscribe(&a.s, "one", 3, true), 3);

    seen[0] = '\0';
    pubsub_unsubscribe_all(&a.s, false, on_each, &a);
    ck_assert_str_eq(seen, "one=2 two=1 ");
    ck_assert_uint_eq(a.s.n_subscriptions, 1);
    ck_assert(pubsub_is_subscribed(&b.s, "two", 3, false));
    ck_assert(!pubsub_is_subscribed(&a.s, "two", 3, false));
    ck_assert_uint_eq(pubsub_unsubscribe(&a.s, "p*", 2, true), 0);
    ck_assert(!pubsub_wanted("one", 3));
}
END_TEST

START_TEST(names_are_bytes)
{
    pubsub_subscribe(&a.s, "x\0y", 3, false);
    ck_assert(!pubsub_wanted("x", 1));
    ck_assert_uint_eq(pubsub_publish("x\0y", 3, "", 0, 0), 1);
    ck_assert_uint_eq(buf_len(&a.out), strlen("*3\r\n$7\r\nmessage\r\n$3\r\nx?y\r\n$0\r\n\r\n"));
}
END_TEST

/* Both lists of a subscription stay whole when many come and go in odd orders. */
START_TEST(many_come_and_go)
{
    char name[16];

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        pubsub_subscribe(&a.s, name, strlen(name), i % 3 == 0);
        if (i % 2 == 0)
            pubsub_subscribe(&b.s, name, strlen(name), i % 3 == 0);
    }
    for (int i = 0; i < 1000; i += 7) {
        snprintf(name, sizeof(name), "c%d", i);
        pubsub_unsubscribe(&a.s, name, strlen(name), i % 3 == 0);
    }
    ck_assert_uint_eq(a.s.n_subscriptions, 1000 - 143);
    ck_assert_uint_eq(b.s.n_subscriptions, 500);
    ck_assert_uint_eq(pubsub_count_session(&a.s, true) + pubsub_count_session(&a.s, false),
                      a.s.n_subscriptions);
    pubsub_leave(&a.s);
    ck_assert_uint_eq(pubsub_count_channels() + pubsub_count_patterns(), 500);
}
END_TEST

START_TEST(monitor_shows_words)
{
    struct resp_arg argv[] = {{"lock", 4}, {"a\"\\\n\x01\xff", 6}, {"", 0}};

    ck_assert_int_eq(monitor_join(&a.s), 0);
    ck_assert_int_eq(monitor_join(&a.s), 0);
    ck_assert_int_eq(monitor_join(&b.s), 0);
    ck_assert_uint_eq(monitor_count, 2);
    monitor_feed(
        &(struct monitor_request){
            .peer = "1.2.3.4:5", .argc = 3, .argv = argv, .wall_ms = 1700000000007},
        0);
    expect(&a, "+1700000000.007000 [0 1.2.3.4:5] \"lock\" \"a\\\"\\\\\\n\\x01\\xff\" \"\"\r\n");
    monitor_leave(&a.s);
    buf_consume(&b.out, buf_len(&b.out));
    monitor_feed(&(struct monitor_request){.peer = "u", .argc = 2, .argv = argv, .secret = true},
                 0);
    expect(&b, "+0.000000 [0 u] \"lock\" \"(redacted)\"\r\n");
    expect(&a, "");
}
END_TEST

START_TEST(slowlog_is_bounded)
{
    char big[300];
    struct resp_arg argv[12];

    memset(big, 'x', sizeof(big));
    for (int i = 0; i < 12; i++)
        argv[i] = (struct resp_arg){big, 2};
    argv[1].len = sizeof(big);
    for (int i = 0; i < SLOWLOG_LEN + 5; i++)
        slowlog_add(i, 10000 + i, 12, argv, false, "peer", NULL);
    ck_assert_uint_eq(slowlog_count(), SLOWLOG_LEN);
    const struct slowlog_entry *e = slowlog_get(0);
    ck_assert_int_eq(e->id, SLOWLOG_LEN + 4);
    ck_assert_int_eq(e->argc, SLOWLOG_ARGS);
    ck_assert_str_eq(e->argv[0], "xx");
    ck_assert_str_eq(e->argv[1] + SLOWLOG_ARG_LEN, "... (172 more bytes)");
    ck_assert_str_eq(e->argv[7], "... (5 more arguments)");
    ck_assert_int_eq(slowlog_get(SLOWLOG_LEN - 1)->id, 5);

    slowlog_reset();
    ck_assert_uint_eq(slowlog_count(), 0);
    slowlog_add(0, 1, 2, argv, true, "peer", "me");
    e = slowlog_get(0);
    ck_assert_int_eq(e->id, SLOWLOG_LEN + 5); /* ids go on */
    ck_assert_str_eq(e->argv[1], "(redacted)");
    ck_assert_str_eq(e->name, "me");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pubsub");
    TCase *tc = tcase_create("pubsub");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, message_reaches_channel);
    tcase_add_test(tc, message_reaches_pattern);
    tcase_add_test(tc, many_listeners_are_told_over_turns);
    tcase_add_test(tc, listeners_go_while_a_message_waits);
    tcase_add_test(tc, patterns_are_compared_over_turns);
    tcase_add_test(tc, to_tell_may_publish);
    tcase_add_test(tc, what_cannot_be_told_in_time_is_dropped);
    tcase_add_test(tc, unsubscribe_all_of_one_kind);
    tcase_add_test(tc, names_are_bytes);
    tcase_add_test(tc, many_come_and_go);
    tcase_add_test(tc, monitor_shows_words);
    tcase_add_test(tc, slowlog_is_bounded);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
