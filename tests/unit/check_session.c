/* session: replies leave in the order of the requests, whoever finishes first; each request ends
 * exactly once, by its reply or by being abandoned. */
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "suite.h"

static struct session s;
static struct buf out;
static int n_ready, n_unblocked, n_blocked, n_written, n_freed, n_abandoned;

static void on_ready(struct session *session)
{
    ck_assert_ptr_eq(session, &s);
    n_ready++;
}

static void on_unblocked(struct session *session)
{
    ck_assert(!session_is_blocked(session));
    n_unblocked++;
}

static void on_blocked(struct session *session)
{
    ck_assert(session_is_blocked(session));
    n_blocked++;
}

static void on_close(struct session *session, const char *reason)
{
    (void)session;
    (void)reason;
    ck_abort();
}

static void on_written(struct request *r)
{
    ck_assert(r->done || r->async); /* or cancelled */
    ck_assert_ptr_eq(r->session, &s);
    n_written++;
}

static const struct session_events events = {.on_ready = on_ready,
                                             .on_unblocked = on_unblocked,
                                             .on_blocked = on_blocked,
                                             .on_close = on_close,
                                             .on_written = on_written};

/* A request that is answered by its number and the time of writing. */
struct question {
    struct request request;
    int number;
};

static void question_write(struct request *r, struct resp_writer *w, int64_t now_ms)
{
    resp_int(w, ((struct question *)r)->number * 1000 + now_ms);
}

static void question_abandon(struct request *r, int64_t now_ms)
{
    ck_assert_ptr_null(r->session);
    ck_assert(!r->done && !r->parked);
    ck_assert_int_eq(now_ms, 77);
    n_abandoned++;
}

static void question_free(struct request *r)
{
    n_freed++;
    free(r);
}

/* "<tag> <number> <time>", or "<tag> cancelled" */
static void question_push(struct session *session, const struct async *a, struct request *r,
                          struct resp_writer *w, int64_t now_ms)
{
    char text[128];
    size_t len;
    const char *tag = session_tag(a, &len);

    ck_assert_ptr_eq(session, &s);
    if (r)
        snprintf(text, sizeof text, "%.*s %d %d", (int)len, tag, ((struct question *)r)->number,
                 (int)now_ms);
    else
        snprintf(text, sizeof text, "%.*s cancelled", (int)len, tag);
    resp_simple(w, text);
}

static const struct request_type question_type = {.write = question_write,
                                                  .abandon = question_abandon,
                                                  .free = question_free,
                                                  .push = question_push};

static struct request *ask(int number)
{
    struct question *q = util_alloc(sizeof *q);

    q->request.type = &question_type;
    q->number = number;
    session_ask(&s, &q->request);
    return &q->request;
}

static void reply(const char *text)
{
    struct resp_writer w = session_reply(&s);

    resp_simple(&w, text);
    session_reply_end(&s);
}

/* What has been written since the last call. */
static void expect(const char *want)
{
    char got[4096];

    snprintf(got, sizeof got, "%.*s", (int)buf_len(&out), buf_len(&out) ? buf_head(&out) : "");
    ck_assert_str_eq(got, want);
    buf_consume(&out, buf_len(&out));
}

static void setup(void)
{
    n_ready = n_unblocked = n_blocked = n_written = n_freed = n_abandoned = 0;
    session_init(&s, 1, &events, &out, 5);
}

static void teardown(void)
{
    session_fini(&s, 77);
    buf_fini(&out);
}

START_TEST(immediate_replies_go_straight_out)
{
    reply("one");
    ck_assert_int_eq(n_ready, 1);
    reply("two");
    ck_assert_int_eq(n_ready, 1); /* said once before each flush */
    expect("+one\r\n+two\r\n");
    ck_assert_ptr_null(s.held.data);
    session_flush(&s, 0);
    reply("three");
    ck_assert_int_eq(n_ready, 2);
    ck_assert_int_eq(n_written, 0);
}
END_TEST

START_TEST(replies_keep_the_order_of_requests)
{
    struct request *a = ask(1), *b = ask(2);

    reply("three");
    ck_assert_uint_eq(s.n_requests, 3);
    ck_assert_uint_eq(s.held_len, strlen("+three\r\n"));
    request_finish(b);
    ck_assert_int_eq(n_ready, 0); /* nothing can be written yet */
    session_flush(&s, 1);
    expect("");
    request_finish(a);
    ck_assert_int_eq(n_ready, 1);
    expect(""); /* at the last moment only, */
    session_flush(&s, 9);
    expect(":1009\r\n:2009\r\n+three\r\n"); /* and with its time */
    ck_assert_int_eq(n_written, 2);
    ck_assert_int_eq(n_freed, 2);
    ck_assert_uint_eq(s.n_requests, 0);
    ck_assert_uint_eq(s.held_len, 0);
}
END_TEST

START_TEST(held_replies_of_any_size)
{
    char text[3000], want[sizeof text * 2 + 64];
    struct request *a = ask(1);

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    reply(text);
    reply("short");
    for (int i = 0; i < 2000; i++) /* more than the free list keeps */
        reply("");
    request_finish(a);
    session_flush(&s, 0);
    ck_assert_uint_eq(buf_len(&out), 7 + strlen(text) + 3 + 8 + 2000 * 3);
    snprintf(want, sizeof want, ":1000\r\n+%s\r\n+short\r\n+\r\n", text);
    ck_assert_int_eq(memcmp(buf_head(&out), want, strlen(want)), 0);
    ck_assert_uint_eq(s.n_requests, 0);
    ck_assert_uint_eq(s.held.cap, 0);
}
END_TEST

START_TEST(parked_requests_block)
{
    struct request *a = ask(1), *b = ask(2);

    ck_assert(!session_is_blocked(&s));
    request_park(a);
    request_park(a);
    request_park(b);
    ck_assert_uint_eq(s.n_parked, 2);
    ck_assert_int_eq(n_blocked, 1);
    ck_assert(session_is_blocked(&s));
    request_unpark(a);
    request_unpark(a);
    ck_assert_int_eq(n_unblocked, 0);
    request_finish(b); /* finishing unparks */
    ck_assert_int_eq(n_unblocked, 1);
    ck_assert(b->waited && b->done && !b->parked);
    request_finish(a);
    ck_assert_int_eq(n_unblocked, 1);
    session_flush(&s, 0);
    expect(":1000\r\n:2000\r\n");
}
END_TEST

START_TEST(end_abandons_what_is_not_done)
{
    struct request *a = ask(1), *b = ask(2), *c = ask(3);

    reply("four");
    request_finish(b);
    request_park(c);
    session_fini(&s, 77);
    ck_assert_int_eq(n_abandoned, 2); /* a and c; */
    ck_assert_int_eq(n_freed, 1);     /* b and the reply are freed at once, */
    request_park(a);
    request_finish(a); /* the others when their road ends */
    request_finish(c);
    ck_assert_int_eq(n_freed, 3);
    ck_assert_int_eq(n_ready + n_unblocked + n_written, 0);
    ck_assert_uint_eq(buf_len(&out), 0);
    setup();
}
END_TEST

START_TEST(messages_follow_finished_replies)
{
    struct request *a = ask(1), *b = ask(2);
    struct resp_writer w;

    request_finish(a);
    w = session_push(&s, 4);
    resp_push(&w, 1);
    resp_str(&w, "lost");
    session_push_end(&s);
    expect(":1004\r\n*1\r\n$4\r\nlost\r\n"); /* before the reply that is not there yet */
    ck_assert_int_eq(n_written, 1);
    ck_assert(s.ready);
    request_finish(b);
    session_flush(&s, 5);
    expect(":2005\r\n");
    ck_assert(!s.ready);
}
END_TEST

/* A reply that is written sends messages to its own connection. */
static void chatty_write(struct request *r, struct resp_writer *w, int64_t now_ms)
{
    resp_array(w, 2);
    resp_int(w, 1);
    for (int i = 0; i < 2; i++) {
        struct resp_writer message = session_push(r->session, now_ms);
        resp_simple(&message, i ? "second" : "first");
        session_push_end(r->session);
    }
    resp_int(w, 2);
}

START_TEST(messages_do_not_interrupt_a_reply)
{
    static const struct request_type chatty = {
        .write = chatty_write, .abandon = question_abandon, .free = question_free};
    struct request *a = ask(1), *b = ask(2);

    a->type = &chatty;
    request_finish(a);
    request_finish(b);
    session_flush(&s, 0);
    expect("*2\r\n:1\r\n:2\r\n+first\r\n+second\r\n:2000\r\n");
    ck_assert_int_eq(n_written, 2);
    ck_assert_int_eq(n_freed, 2);
    ck_assert_uint_eq(s.held.cap, 0);
}
END_TEST

START_TEST(resp3_is_written_as_such)
{
    struct resp_writer w;

    s.proto = 3;
    w = session_push(&s, 0);
    resp_push(&w, 0);
    session_push_end(&s);
    w = session_reply(&s);
    resp_null(&w);
    session_reply_end(&s);
    expect(">0\r\n_\r\n");
}
END_TEST

/* ---- requests with a tag ---- */

static struct request *new_question(int number)
{
    struct question *q = util_alloc(sizeof *q);

    q->request.type = &question_type;
    q->number = number;
    return &q->request;
}

/* As command.c does. */
static struct request *ask_async(int number, const char *tag)
{
    struct request *r = new_question(number);
    struct resp_writer w;

    session_ask_async(&s, r, tag, strlen(tag));
    w = session_reply(&s);
    resp_simple(&w, "QUEUED");
    session_queued(&s, r);
    session_reply_end(&s);
    return r;
}

START_TEST(an_end_is_told_outside_of_the_order)
{
    struct request *a = ask_async(1, "a"), *b = ask_async(2, "b");

    request_park(a);
    ck_assert(!session_is_blocked(&s) && !session_holds_back(&s));
    ck_assert_int_eq(n_blocked, 0);
    ck_assert_uint_eq(s.n_async, 2);
    ck_assert_uint_eq(s.n_async_waits, 1);
    struct request *later = ask(3);
    request_finish(b);
    session_flush(&s, 5);
    expect("+QUEUED\r\n+QUEUED\r\n+b 2 5\r\n");
    ck_assert(!session_has_tag(&s, "b", 1) && session_has_tag(&s, "a", 1));
    request_finish(a);
    request_finish(later);
    session_flush(&s, 6);
    expect("+a 1 6\r\n:3006\r\n"); /* in the order in which they ended */
    ck_assert_uint_eq(s.n_async + s.n_async_waits, 0);
    ck_assert_int_eq(n_unblocked, 0);
    ck_assert_int_eq(n_written, 3);
    ck_assert_int_eq(n_freed, 3);
}
END_TEST

START_TEST(an_end_waits_for_its_queued)
{
    struct request *first = ask(1), *a = ask_async(2, "a"), *second = ask(3),
                   *b = ask_async(4, "b");

    request_finish(b);
    request_finish(a);
    session_flush(&s, 5);
    expect("");
    request_finish(first);
    session_flush(&s, 6);
    expect(":1006\r\n+QUEUED\r\n+a 2 6\r\n");
    request_finish(second);
    session_flush(&s, 7);
    expect(":3007\r\n+QUEUED\r\n+b 4 7\r\n");
}
END_TEST

/* While the command runs that asks, its reply is not written yet. */
START_TEST(an_end_before_queued_is_kept)
{
    struct request *a = new_question(1);
    struct resp_writer w;

    session_ask_async(&s, a, "a", 1);
    request_finish(a);
    session_flush(&s, 5);
    expect("");
    w = session_reply(&s);
    resp_simple(&w, "QUEUED");
    session_queued(&s, a);
    session_reply_end(&s);
    ck_assert(s.ready);
    session_flush(&s, 6);
    expect("+QUEUED\r\n+a 1 6\r\n");
}
END_TEST

START_TEST(cancelled_requests_are_nobodys)
{
    struct request *a = ask_async(1, "a"), *b = ask_async(2, "b");

    request_park(a);
    request_finish(b);
    ck_assert_ptr_null(session_cancel(&s, "b", 1));
    ck_assert_ptr_null(session_cancel(&s, "c", 1));
    ck_assert_ptr_eq(session_cancel(&s, "a", 1), a);
    ck_assert_ptr_null(session_cancel(&s, "a", 1));
    ck_assert(!a->session && !a->async && !a->parked);
    ck_assert_uint_eq(s.n_async_waits, 0);
    session_flush(&s, 5);
    expect("+QUEUED\r\n+QUEUED\r\n+b 2 5\r\n+a cancelled\r\n");
    ck_assert_int_eq(n_written, 2);
    request_finish(a); /* its road has ended */
    ck_assert_int_eq(n_freed, 2);
    a = ask_async(3, "a");
    session_cancel_all(&s, 77);
    ck_assert_int_eq(n_abandoned, 1);
    ck_assert(!session_has_tag(&s, "a", 1));
    request_finish(a);
    session_flush(&s, 6);
    expect("+QUEUED\r\n");
}
END_TEST

START_TEST(end_abandons_those_with_a_tag)
{
    struct request *a = ask_async(1, "a"), *b = ask_async(2, "b");

    request_park(a);
    request_finish(b);
    session_fini(&s, 77);
    ck_assert_int_eq(n_abandoned, 1); /* nobody is told of the other one */
    ck_assert_int_eq(n_freed, 1);
    request_finish(a);
    ck_assert_int_eq(n_freed, 2);
    session_init(&s, 1, &events, &out, 5);
    buf_consume(&out, buf_len(&out));
}
END_TEST

START_TEST(those_that_wait_are_shown_in_order)
{
    struct request *a = ask_async(1, "a"), *b = ask_async(2, "b"), *c = ask_async(3, "c"),
                   *plain = ask(4);

    ck_assert_ptr_null(session_waiting(&s, NULL));
    request_park(c);
    request_park(a);
    ck_assert_ptr_eq(session_waiting(&s, NULL), a);
    request_park(plain);
    ck_assert_ptr_eq(session_waiting(&s, NULL), plain);
    ck_assert_ptr_eq(session_waiting(&s, plain), a);
    ck_assert_ptr_eq(session_waiting(&s, a), c);
    ck_assert_ptr_null(session_waiting(&s, c));
    request_finish(a);
    request_finish(b);
    request_finish(c);
    request_finish(plain);
    session_flush(&s, 1);
    buf_consume(&out, buf_len(&out));
}
END_TEST

/* Random traffic against a plain list: each reply once, in order. */
START_TEST(random_order)
{
    enum { STEPS = 20000, MAX = 40 };
    struct request *open[MAX];
    int n_open = 0, n_asked = 0, n_answered = 0;
    unsigned rng = 1;

    for (int i = 0; i < STEPS; i++) {
        rng = rng * 1103515245 + 12345;
        unsigned pick = rng >> 16;
        if (pick % 4 == 0 && n_open < MAX) {
            open[n_open++] = ask(++n_asked);
        } else if (pick % 4 == 1) {
            struct resp_writer w = session_reply(&s);
            resp_int(&w, ++n_asked * 1000);
            session_reply_end(&s);
        } else if (pick % 4 == 2 && n_open > 0) {
            unsigned at = pick / 4 % (unsigned)n_open;
            if (pick & 64)
                request_park(open[at]);
            request_finish(open[at]);
            open[at] = open[--n_open];
        } else {
            session_flush(&s, 0);
        }
        while (buf_len(&out) > 0) {
            char want[32];
            int len = snprintf(want, sizeof want, ":%d\r\n", ++n_answered * 1000);
            ck_assert_uint_ge(buf_len(&out), (size_t)len);
            ck_assert_int_eq(memcmp(buf_head(&out), want, (size_t)len), 0);
            buf_consume(&out, (size_t)len);
        }
    }
    ck_assert_int_gt(n_answered, STEPS / 8);
    while (n_open > 0)
        request_finish(open[--n_open]);
    ck_assert_uint_eq(s.n_parked, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("session");
    TCase *tc = tcase_create("session");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, immediate_replies_go_straight_out);
    tcase_add_test(tc, replies_keep_the_order_of_requests);
    tcase_add_test(tc, held_replies_of_any_size);
    tcase_add_test(tc, parked_requests_block);
    tcase_add_test(tc, end_abandons_what_is_not_done);
    tcase_add_test(tc, messages_follow_finished_replies);
    tcase_add_test(tc, messages_do_not_interrupt_a_reply);
    tcase_add_test(tc, resp3_is_written_as_such);
    tcase_add_test(tc, an_end_is_told_outside_of_the_order);
    tcase_add_test(tc, an_end_waits_for_its_queued);
    tcase_add_test(tc, an_end_before_queued_is_kept);
    tcase_add_test(tc, cancelled_requests_are_nobodys);
    tcase_add_test(tc, end_abandons_those_with_a_tag);
    tcase_add_test(tc, those_that_wait_are_shown_in_order);
    tcase_add_test(tc, random_order);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
