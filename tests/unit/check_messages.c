/* Unit tests of messages: what comes over several masters is told once. */
#include "dropin/messages.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "redis/rounds.h"
#include "session/pubsub.h"
#include "session/session.h"
#include "suite.h"

static struct rounds rounds;
static struct messages *messages;
static struct session session;
static struct buf out;
static int listening, ready;

static void on_session(struct session *s)
{
    (void)s;
}

static void on_close(struct session *s, const char *reason)
{
    (void)s, (void)reason;
}

static const struct session_events events = {
    .on_ready = on_session, .on_unblocked = on_session, .on_close = on_close};

static void set_listening(void *arg, bool on)
{
    (void)arg;
    listening = on;
}

static void set_up(void)
{
    const struct messages_setup setup = {
        .rounds = &rounds, .broker = "us", .listen = set_listening};
    rounds_init(&rounds, 300);
    rounds.n = rounds.n_all = 3;
    rounds.closed = true; /* nothing is sent: there are no masters */
    messages = messages_new(&setup);
    listening = ready = 0;
    session_init(&session, 1, &events, &out, 0);
    pubsub_subscribe(&session, "c", 1, false);
}

static void tear_down(void)
{
    pubsub_leave(&session);
    session_fini(&session, 0);
    buf_fini(&out);
    messages_free(messages);
}

/* Hears this and returns how many messages were told. */
static int hear(const char *text)
{
    int n = 0;
    messages_heard(messages, text, strlen(text), 0);
    pubsub_turn(0);
    buf_append(&out, "", 1);
    for (const char *at = buf_head(&out); (at = strstr(at, "message")); at++)
        n++;
    buf_consume(&out, buf_len(&out));
    return n;
}

static int hear_number(const char *broker, unsigned long long number)
{
    char text[64];
    snprintf(text, sizeof text, "%s %llu 1 cm", broker, number);
    return hear(text);
}

START_TEST(each_number_is_told_once_in_whatever_order)
{
    static const int numbers[] = {5, 7, 6, 1, 1028, 8, 1029, 5000};
    for (int repeat = 0; repeat < 3; repeat++) {
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            ck_assert_int_eq(hear_number("b1", (unsigned)numbers[i]), repeat == 0);
    }
    ck_assert_int_eq(hear_number("b1", 4999), 1);
    ck_assert_int_eq(hear_number("b1", 3977), 1);
    ck_assert_int_eq(hear_number("b1", 3976), 0); /* too long ago for anybody to know */
    ck_assert_int_eq(hear_number("b2", 4999), 1);
    ck_assert_int_eq(hear_number("us", 6000), 0);
    ck_assert_int_eq(hear_number("b1", INT64_MAX), 1);
    ck_assert_int_eq(hear_number("b1", INT64_MAX), 0);
}
END_TEST

START_TEST(each_of_many_in_a_row)
{
    for (unsigned i = 0; i < 5000; i++) {
        ck_assert_int_eq(hear_number("b1", i), 1);
        if (i >= 700)
            ck_assert_int_eq(hear_number("b1", i - 700), 0);
    }
}
END_TEST

START_TEST(what_is_no_message_is_left_alone)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "b1",
                                        "b1 ",
                                        "b1 1",
                                        "b1 1 ",
                                        "b1 1 1",
                                        "b1 1 1 ",
                                        "b1 1 2 c",
                                        "b1 x 1 cm",
                                        "b1 1 x cm",
                                        "b1 -1 1 cm",
                                        "b1 1 -1 cm",
                                        "b1 99999999999999999999 1 cm",
                                        "b1 1 4 lostm",
                                        "b1 1 6 lock:xm",
                                        "an-id-that-is-longer-than-any-broker-has 1 1 cm"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_int_eq(hear(texts[i]), 0);
    ck_assert_int_eq(hear("b1 1 1 c"), 1); /* an empty one */
}
END_TEST

static void on_ready(struct messages_wait *w, int64_t now_ms)
{
    ck_assert(!w->waits);
    (void)now_ms;
    ready++;
}

START_TEST(a_majority_of_masters_is_enough)
{
    struct messages_wait first = {.on_ready = on_ready}, second = {.on_ready = on_ready};
    ck_assert(!messages_want(messages, 1000));
    ck_assert(listening);
    messages_wait(messages, &first, 1000);
    messages_wait(messages, &second, 1100);
    messages_listens(messages, 2, true, 1100);
    ck_assert_int_eq(ready, 0);
    messages_stop_waiting(messages, &second);
    messages_listens(messages, 0, true, 1100);
    ck_assert_int_eq(ready, 1);
    ck_assert(messages_want(messages, 1200));
    messages_listens(messages, 0, false, 1300);
    ck_assert(!messages_want(messages, 1300));
    messages_wait(messages, &first, 1300);
    messages_look(messages, 1599);
    ck_assert_int_eq(ready, 1);
    messages_look(messages, 1600);
    ck_assert_int_eq(ready, 2);
}
END_TEST

/* What is published goes through the masters of one group, and nobody knows which. */
START_TEST(each_group_is_listened_to)
{
    rounds.n = 1;
    for (int i = 0; i < rounds.n_all; i++) {
        ck_assert(!messages_want(messages, 1000));
        messages_listens(messages, i, true, 1000);
    }
    ck_assert(messages_want(messages, 1000));
    messages_listens(messages, 1, false, 1000);
    ck_assert(!messages_want(messages, 1000));
}
END_TEST

START_TEST(listening_ends_a_while_after_the_last_subscription)
{
    ck_assert(!messages_want(messages, 1000));
    messages_look(messages, 100000);
    ck_assert(listening);
    pubsub_unsubscribe(&session, "c", 1, false);
    pubsub_subscribe(&session, "lost", 4, false);
    messages_look(messages, 159999);
    ck_assert(listening);
    messages_look(messages, 160000);
    ck_assert(!listening);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("messages");
    TCase *t = tcase_create("messages");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, each_number_is_told_once_in_whatever_order);
    tcase_add_test(t, each_of_many_in_a_row);
    tcase_add_test(t, what_is_no_message_is_left_alone);
    tcase_add_test(t, a_majority_of_masters_is_enough);
    tcase_add_test(t, each_group_is_listened_to);
    tcase_add_test(t, listening_ends_a_while_after_the_last_subscription);
    suite_add_tcase(s, t);
    return suite_run(s);
}
