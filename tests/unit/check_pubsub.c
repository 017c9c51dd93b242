/* pubsub, monitor, slowlog: sessions without sockets, a buf in place of the stream. */
#include "pubsub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor.h"
#include "session.h"
#include "slowlog.h"
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
    ck_assert(!pubsub_wanted("lost", 4));
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
    ck_assert(!pubsub_wanted("one", 3));
    ck_assert(pubsub_is_subscribed(&b.s, "two", 3, false));
    ck_assert(!pubsub_is_subscribed(&a.s, "two", 3, false));
    ck_assert_uint_eq(pubsub_unsubscribe(&a.s, "p*", 2, true), 0);
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

    monitor_join(&a.s);
    monitor_join(&a.s);
    monitor_join(&b.s);
    ck_assert_uint_eq(monitor_count, 2);
    monitor_feed("1.2.3.4:5", 3, argv, false, 1700000000007, 0);
    expect(&a, "+1700000000.007000 [0 1.2.3.4:5] \"lock\" \"a\\\"\\\\\\n\\x01\\xff\" \"\"\r\n");
    monitor_leave(&a.s);
    buf_consume(&b.out, buf_len(&b.out));
    monitor_feed("u", 2, argv, true, 0, 0);
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
    tcase_add_test(tc, unsubscribe_all_of_one_kind);
    tcase_add_test(tc, names_are_bytes);
    tcase_add_test(tc, many_come_and_go);
    tcase_add_test(tc, monitor_shows_words);
    tcase_add_test(tc, slowlog_is_bounded);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
