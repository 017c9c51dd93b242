/* The wheel against a plain list, over random operations and jumps in time, and its promises one by
 * one: order, horizon, few wake-ups. */
#include "base/wheel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "wheel_check.h"

#define TIMERS 300
#define STEPS 6000

/* What the wheel is compared with: each timer with its place in the order, found by looking at all.
 */
struct timer {
    struct wheel_entry entry;
    bool armed;
    int64_t due_ms, key_ms; /* key_ms: due_ms, or the tick at which it was added past due */
    uint64_t number;        /* of the adding */
};

struct model {
    struct wheel wheel;
    struct timer timers[TIMERS];
    int64_t tick_ms, now_ms;
    uint64_t added;
    uint64_t random;
    int expired;
};

static uint64_t draw(struct model *m, uint64_t below)
{
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (m->random >> 20) % below;
}

/* A distance that is as likely to be small as large. */
static int64_t draw_span(struct model *m)
{
    return (int64_t)draw(m, UINT64_C(1) << (1 + draw(m, 43)));
}

/* One assertion for all timers: each costs a write, and this runs after every step. */
static void check_all(struct model *m)
{
    ck_assert_int_eq(wheel_check(&m->wheel), 0);
    size_t armed = 0, wrong = 0;
    int64_t first_ms = INT64_MAX;
    for (int i = 0; i < TIMERS; i++) {
        struct timer *t = &m->timers[i];
        wrong += wheel_armed(&t->entry) != t->armed;
        armed += t->armed;
        if (t->armed && t->key_ms < first_ms)
            first_ms = t->key_ms;
    }
    int64_t next_ms = wheel_next_ms(&m->wheel);
    bool near = first_ms / 256 == m->tick_ms / 256 || armed == 0;
    ck_assert_msg(wrong == 0 && m->wheel.count == armed, "wrong entries are armed");
    ck_assert_msg(near ? next_ms == first_ms : next_ms <= first_ms && next_ms >= m->tick_ms,
                  "next_ms is %" PRId64 ", first due is %" PRId64, next_ms, first_ms);
}

static void add(struct model *m, int64_t due_ms)
{
    struct timer *t = &m->timers[draw(m, TIMERS)];
    wheel_add(&m->wheel, &t->entry, due_ms);
    t->armed = true;
    t->due_ms = due_ms;
    t->key_ms = due_ms > m->tick_ms ? due_ms : m->tick_ms;
    t->number = m->added++;
    ck_assert_int_eq(t->entry.due_ms, due_ms);
}

static void cancel(struct model *m)
{
    struct timer *t = &m->timers[draw(m, TIMERS)];
    wheel_cancel(&m->wheel, &t->entry);
    t->armed = false;
}

static struct timer *first_due(struct model *m, int64_t now_ms)
{
    struct timer *first = NULL;
    for (int i = 0; i < TIMERS; i++) {
        struct timer *t = &m->timers[i];
        if (!t->armed || t->due_ms > now_ms)
            continue;
        if (first == NULL || t->key_ms < first->key_ms ||
            (t->key_ms == first->key_ms && t->number < first->number))
            first = t;
    }
    return first;
}

static void expire(struct model *m)
{
    for (;;) {
        struct timer *expected = first_due(m, m->now_ms);
        struct wheel_entry *entry = wheel_expire(&m->wheel, m->now_ms);
        ck_assert_ptr_eq(entry, expected == NULL ? NULL : &expected->entry);
        m->tick_ms = expected == NULL ? m->now_ms : expected->key_ms;
        if (expected != NULL) {
            expected->armed = false;
            m->expired++;
        }
        check_all(m);
        if (entry == NULL)
            return;
        /* Who is told that it is time arms and cancels others, some of them for this very pass. */
        if (draw(m, 4) == 0)
            add(m, m->tick_ms - 5 + (int64_t)draw(m, 12));
        if (draw(m, 4) == 0)
            cancel(m);
    }
}

static void step(struct model *m)
{
    switch (draw(m, 8)) {
    case 0:
    case 1:
    case 2:
        add(m, m->now_ms + draw_span(m));
        break;
    case 3:
        add(m, m->now_ms - draw_span(m));
        break;
    case 4:
        add(m, draw(m, 20) == 0 ? INT64_MAX : m->now_ms + (int64_t)draw(m, 600));
        break;
    case 5:
        cancel(m);
        break;
    case 6: /* as the loop does: sleep until something may be due */
        if (wheel_next_ms(&m->wheel) > m->now_ms && m->wheel.count > 0)
            m->now_ms = wheel_next_ms(&m->wheel);
        if (m->now_ms > INT64_C(1) << 60) /* got to the one that is never due */
            m->now_ms = m->tick_ms;
        expire(m);
        break;
    default:
        m->now_ms += draw(m, 10) == 0 ? draw_span(m) : (int64_t)draw(m, 400);
        expire(m);
        break;
    }
    check_all(m);
}

START_TEST(random_model)
{
    static struct model m;
    memset(&m, 0, sizeof(m));
    m.random = (uint64_t)_i * 7919 + 1;
    /* Starts at both sides of borders between slots of high levels. */
    m.now_ms = _i == 0 ? 0 : (INT64_C(1) << (8 * (_i % 6))) - _i;
    m.now_ms = m.now_ms < 0 ? 0 : m.now_ms;
    m.tick_ms = m.now_ms;
    wheel_init(&m.wheel, m.now_ms);
    for (int i = 0; i < STEPS; i++)
        step(&m);
    ck_assert_int_gt(m.expired, STEPS / 10);
}
END_TEST

START_TEST(starts_empty)
{
    static struct wheel w;
    struct wheel_entry e = {0};
    wheel_init(&w, 1000);
    ck_assert_int_eq(wheel_check(&w), 0);
    ck_assert_int_eq(wheel_next_ms(&w), INT64_MAX);
    ck_assert_ptr_null(wheel_expire(&w, 1000));
    ck_assert_ptr_null(wheel_expire(&w, INT64_MAX));
    ck_assert(!wheel_armed(&e));
    wheel_cancel(&w, &e);
    ck_assert_int_eq(wheel_check(&w), 0);
    ck_assert_uint_le(sizeof(struct wheel_entry), 32);
}
END_TEST

START_TEST(never_early)
{
    static struct wheel w;
    static const int64_t spans[] = {1, 255, 256, 257, 65535, 65536, 65537, INT64_C(1) << 40};
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        for (int64_t start_ms = 0; start_ms < 70000; start_ms += 251) {
            struct wheel_entry e = {0};
            int64_t due_ms = start_ms + spans[i];
            wheel_init(&w, start_ms);
            wheel_add(&w, &e, due_ms);
            ck_assert_ptr_null(wheel_expire(&w, start_ms));
            ck_assert_ptr_null(wheel_expire(&w, due_ms - 1));
            ck_assert_int_eq(wheel_next_ms(&w), due_ms);
            ck_assert_ptr_eq(wheel_expire(&w, due_ms), &e);
            ck_assert(!wheel_armed(&e));
            ck_assert_ptr_null(wheel_expire(&w, due_ms));
        }
    }
}
END_TEST

START_TEST(past_due)
{
    static struct wheel w;
    struct wheel_entry a = {0}, b = {0}, c = {0};
    wheel_init(&w, 1000);
    wheel_add(&w, &c, 1001);
    wheel_add(&w, &a, -5);
    wheel_add(&w, &b, INT64_MIN);
    ck_assert_int_le(wheel_next_ms(&w), 1000);
    ck_assert_ptr_null(wheel_expire(&w, 999)); /* the clock of somebody else */
    ck_assert_int_eq(wheel_check(&w), 0);
    ck_assert_ptr_eq(wheel_expire(&w, 1000), &a);
    ck_assert_ptr_eq(wheel_expire(&w, 1000), &b);
    ck_assert_ptr_null(wheel_expire(&w, 1000));
    ck_assert_ptr_eq(wheel_expire(&w, 1001), &c);
}
END_TEST

START_TEST(moves_when_armed)
{
    static struct wheel w;
    struct wheel_entry a = {0}, b = {0};
    wheel_init(&w, 0);
    wheel_add(&w, &a, 10);
    wheel_add(&w, &b, 20);
    wheel_add(&w, &a, 30);
    ck_assert_uint_eq(w.count, 2);
    ck_assert_ptr_eq(wheel_expire(&w, 100), &b);
    ck_assert_ptr_eq(wheel_expire(&w, 100), &a);
    ck_assert_ptr_null(wheel_expire(&w, 100));
}
END_TEST

/* Sleeping until wheel_next_ms is enough, and does not spin. */
START_TEST(few_wakes)
{
    static struct wheel w;
    static struct wheel_entry entries[2000];
    struct model m = {.random = 5};
    size_t wakes = 0, expired = 0;
    int64_t now_ms = 77;
    wheel_init(&w, now_ms);
    for (size_t i = 0; i < 2000; i++)
        wheel_add(&w, &entries[i], now_ms + draw_span(&m));
    while (w.count > 0) {
        int64_t next_ms = wheel_next_ms(&w);
        ck_assert(wakes == 0 || next_ms > now_ms);
        now_ms = next_ms;
        wakes++;
        for (struct wheel_entry *e; (e = wheel_expire(&w, now_ms)) != NULL; expired++)
            ck_assert_int_eq(e->due_ms, now_ms);
    }
    ck_assert_uint_eq(expired, 2000);
    ck_assert_uint_lt(wakes, 2000 * WHEEL_LEVELS);
}
END_TEST

static struct wheel whole; /* broken in one place each */
static struct wheel_entry hung[3];

static void hang_three(void)
{
    memset(hung, 0, sizeof(hung));
    wheel_init(&whole, 0);
    for (int i = 0; i < 3; i++)
        wheel_add(&whole, &hung[i], i == 2 ? 1000 : 5);
    ck_assert_int_eq(wheel_check(&whole), 0);
}

START_TEST(check_sees)
{
    hang_three();
    whole.count++;
    ck_assert_int_eq(wheel_check(&whole), -1);
    hang_three();
    whole.count--;
    ck_assert_int_eq(wheel_check(&whole), -1);
    hang_three();
    whole.used[0][0] ^= 1U << 5;
    ck_assert_int_eq(wheel_check(&whole), -1);
    hang_three();
    whole.used[3][2] |= 1;
    ck_assert_int_eq(wheel_check(&whole), -1);
    hang_three();
    whole.levels &= ~2U;
    ck_assert_int_eq(wheel_check(&whole), -1);
    hang_three();
    hung[1].link.tqe_prev = &hung[2].link.tqe_next;
    ck_assert_int_eq(wheel_check(&whole), -1);
    hang_three();
    hung[0].due_ms = 6;
    ck_assert_int_eq(wheel_check(&whole), -1);
    hang_three();
    hung[2].slot++;
    ck_assert_int_eq(wheel_check(&whole), -1);
    hang_three();
    whole.tick_ms = 1000; /* without the cascade */
    ck_assert_int_eq(wheel_check(&whole), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wheel");
    TCase *tc = tcase_create("wheel");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, starts_empty);
    tcase_add_test(tc, never_early);
    tcase_add_test(tc, past_due);
    tcase_add_test(tc, moves_when_armed);
    tcase_add_test(tc, few_wakes);
    tcase_add_test(tc, check_sees);
    tcase_add_loop_test(tc, random_model, 0, 12);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
