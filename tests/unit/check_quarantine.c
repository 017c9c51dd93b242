/* The end of quarantines, over masters that are nothing but what they say: who is asked, when, and
 * which base comes out. */
#include "redis/quarantine.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "redis/master.h"
#include "redis/round.h"
#include "suite.h"

enum { MASTERS = 5 };

/* ---- masters ---- */

struct master {
    struct master_status status;
    int asked, activated;
    int64_t base;
    bool forced;
    int prolonged;
    const char *disagrees;
};

static struct master masters[MASTERS];

int master_ask(struct master *m, enum script script, const struct master_item *item,
               struct master_call *call, int64_t now_ms)
{
    (void)m, (void)script, (void)item, (void)call, (void)now_ms;
    return -1;
}

void master_together(struct master *m, enum script script, int n, int64_t now_ms)
{
    (void)m, (void)script, (void)n, (void)now_ms;
}

void master_publish(struct master *m, const char *text, size_t len, int64_t now_ms)
{
    (void)m, (void)text, (void)len, (void)now_ms;
}

void master_flush(struct master *m, int64_t now_ms)
{
    (void)m, (void)now_ms;
}

const char *master_disagrees(const struct master *m)
{
    return m->disagrees;
}

void master_prolong(struct master *m)
{
    m->prolonged++;
}

void master_ask_high(struct master *m)
{
    m->asked++;
}

void master_activate(struct master *m, int64_t base, bool force)
{
    m->activated++;
    m->base = base;
    m->forced = force;
}

const struct master_status *master_status(struct master *m, int64_t now_ms)
{
    (void)now_ms;
    return &m->status;
}

const char *master_name(const struct master *m)
{
    static const char *const names[MASTERS] = {"a", "b", "c", "d", "e"};

    return names[m - masters];
}

const char *master_reason(struct master *m, int64_t now_ms)
{
    (void)m, (void)now_ms;
    return "";
}

const char *master_state_name(enum master_state state)
{
    (void)state;
    return "";
}

/* ---- the scene ---- */

static struct rounds rounds;
static struct quarantine quarantine;
static int64_t now_ms;

static void begin(int n)
{
    memset(masters, 0, sizeof masters);
    rounds_init(&rounds, 100);
    for (int i = 0; i < n; i++) {
        rounds_add_master(&rounds, &masters[i], master_name(&masters[i]));
        masters[i].status.state = MASTER_ACTIVE;
    }
    quarantine_init(&quarantine, &rounds);
    now_ms = 100000;
    rounds_set_wall(&rounds, 5000000, now_ms);
}

static void finish(void)
{
    rounds_close(&rounds);
    round_fini(&rounds, now_ms);
}

static void put_in_quarantine(int i, int64_t left_ms)
{
    masters[i].status.state = MASTER_QUARANTINE;
    masters[i].status.quarantine_left_ms = left_ms;
    quarantine_on_state(&quarantine);
}

static void put(int i, enum master_state state)
{
    masters[i].status.state = state;
    quarantine_on_state(&quarantine);
}

static void says(int i, int64_t high, int64_t asked_ms)
{
    masters[i].status.high = high;
    masters[i].status.high_asked_ms = asked_ms;
}

/* Lets time go by in turns of 100 ms. */
static void pass(int64_t ms)
{
    for (int64_t end_ms = now_ms + ms; now_ms < end_ms;) {
        now_ms += 100;
        for (int i = 0; i < MASTERS; i++)
            if (masters[i].status.quarantine_left_ms > 0)
                masters[i].status.quarantine_left_ms -= 100;
        quarantine_turn(&quarantine, now_ms);
    }
}

static int64_t clock_floor(void)
{
    return (5000000 + now_ms - 100000) << 10;
}

/* ---- cases ---- */

START_TEST(nothing_to_do)
{
    begin(3);
    pass(5000);
    ck_assert_int_eq(quarantine_next_ms(&quarantine), INT64_MAX);
    ck_assert_int_eq(masters[0].asked + masters[1].asked + masters[2].asked, 0);
    finish();
}
END_TEST

START_TEST(one_master_goes_by_the_clock)
{
    begin(1);
    put_in_quarantine(0, 1000);
    says(0, 7, 1);
    pass(900);
    ck_assert_int_eq(masters[0].activated, 0);
    pass(500);
    ck_assert_int_gt(masters[0].activated, 0);
    ck_assert_int_ge(masters[0].base, 5000000LL << 10);
    ck_assert_int_le(masters[0].base, clock_floor() + 1);
    ck_assert(!masters[0].forced);
    finish();
}
END_TEST

START_TEST(one_master_never_below_what_it_has_said)
{
    int64_t high = (int64_t)1 << 50;

    begin(1);
    says(0, high, 1);
    put_in_quarantine(0, 0);
    pass(500);
    ck_assert_int_ge(masters[0].base, high);
    finish();
}
END_TEST

START_TEST(what_this_broker_has_seen_counts)
{
    int64_t seen = (int64_t)1 << 51;

    begin(1);
    rounds_saw_token(&rounds, seen);
    put_in_quarantine(0, 0);
    pass(500);
    ck_assert_int_ge(masters[0].base, seen);
    finish();
}
END_TEST

START_TEST(others_are_asked_after_the_end)
{
    begin(3);
    put_in_quarantine(1, 1000);
    says(0, 10, now_ms);
    says(2, 20, now_ms + 900); /* asked while it was still going on */
    pass(900);
    ck_assert_int_eq(masters[0].asked + masters[2].asked, 0);
    pass(5000);
    ck_assert_int_gt(masters[0].asked, 0);
    ck_assert_int_gt(masters[2].asked, 0);
    ck_assert_int_eq(masters[1].asked, 0);
    ck_assert_int_eq(masters[1].activated, 0);
    says(0, 30, now_ms);
    pass(500);
    ck_assert_int_eq(masters[1].activated, 0); /* N-Q+1 is 2 */
    says(2, 25, now_ms);
    pass(500);
    ck_assert_int_gt(masters[1].activated, 0);
    ck_assert_int_eq(masters[1].base, 30);
    ck_assert(!masters[1].forced);
    finish();
}
END_TEST

START_TEST(three_of_five_are_enough)
{
    begin(5);
    put(4, MASTER_DOWN);
    put_in_quarantine(0, 0);
    pass(300);
    for (int i = 1; i <= 2; i++)
        says(i, 10 * i, now_ms);
    pass(300);
    ck_assert_int_eq(masters[0].activated, 0);
    says(3, 5, now_ms);
    pass(300);
    ck_assert_int_gt(masters[0].activated, 0);
    ck_assert_int_eq(masters[0].base, 20);
    finish();
}
END_TEST

/* Two restarts one inside the other: the first waits for the second, then both go by the clock. */
START_TEST(waits_for_another_quarantine)
{
    begin(3);
    put_in_quarantine(0, 0);
    put_in_quarantine(1, 20000);
    pass(19000);
    ck_assert_int_eq(masters[0].activated, 0);
    says(2, (int64_t)1 << 50, now_ms + 1500);
    pass(1500);
    ck_assert_int_gt(masters[0].activated, 0);
    ck_assert_int_gt(masters[1].activated, 0);
    ck_assert_int_ge(masters[0].base, (int64_t)1 << 50);
    finish();
}
END_TEST

START_TEST(waits_a_while_for_those_who_may_come_back)
{
    begin(3);
    put(1, MASTER_DOWN);
    put(2, MASTER_CONNECTING);
    put_in_quarantine(0, 0);
    pass(4500);
    ck_assert_int_eq(masters[0].activated, 0);
    pass(1000);
    ck_assert_int_gt(masters[0].activated, 0);
    finish();
}
END_TEST

START_TEST(does_not_wait_for_the_refused)
{
    begin(3);
    put(1, MASTER_REFUSED);
    put(2, MASTER_REFUSED);
    put_in_quarantine(0, 0);
    pass(300);
    ck_assert_int_gt(masters[0].activated, 0);
    finish();
}
END_TEST

/* Another end was announced (its clock is behind ours): what was asked before does not count. */
START_TEST(an_end_that_moves_is_waited_for_again)
{
    begin(3);
    put_in_quarantine(0, 0);
    pass(300);
    says(1, 10, now_ms);
    says(2, 10, now_ms);
    masters[0].status.quarantine_left_ms = 1000;
    pass(300);
    int before = masters[0].activated;
    pass(2000);
    ck_assert_int_eq(masters[0].activated, before);
    says(1, 11, now_ms);
    says(2, 12, now_ms);
    pass(300);
    ck_assert_int_gt(masters[0].activated, before);
    ck_assert_int_eq(masters[0].base, 12);
    finish();
}
END_TEST

START_TEST(trust_ends_it_at_once)
{
    begin(3);
    put_in_quarantine(1, 50000);
    ck_assert_ptr_nonnull(quarantine_trust(&quarantine, "a", now_ms));
    ck_assert_ptr_nonnull(quarantine_trust(&quarantine, "x", now_ms));
    ck_assert_ptr_null(quarantine_trust(&quarantine, "b", now_ms));
    pass(300);
    ck_assert_int_eq(masters[1].activated, 0); /* the others are asked all the same */
    says(0, 8, now_ms);
    says(2, 9, now_ms);
    pass(300);
    ck_assert_int_gt(masters[1].activated, 0);
    ck_assert_int_eq(masters[1].base, 9);
    ck_assert(masters[1].forced);
    finish();
}
END_TEST

START_TEST(trust_does_not_wait_for_other_quarantines)
{
    begin(3);
    put_in_quarantine(0, 50000);
    put_in_quarantine(1, 50000);
    put_in_quarantine(2, 50000);
    ck_assert_ptr_null(quarantine_trust(&quarantine, "b", now_ms));
    pass(300);
    ck_assert_int_gt(masters[1].activated, 0);
    ck_assert(masters[1].forced);
    ck_assert_int_eq(masters[0].activated + masters[2].activated, 0);
    finish();
}
END_TEST

/* To the millisecond: also for one that says that a moment is left, and one that ends a moment
 * later. */
START_TEST(looks_when_it_ends)
{
    begin(3);
    put_in_quarantine(0, 1000);
    put_in_quarantine(1, 1001);
    quarantine_turn(&quarantine, now_ms);
    ck_assert_int_eq(quarantine_next_ms(&quarantine), now_ms + 1000);
    now_ms += 1000;
    says(2, 9, now_ms);
    masters[0].status.quarantine_left_ms = 0;
    masters[1].status.quarantine_left_ms = 1;
    quarantine_turn(&quarantine, now_ms);
    ck_assert_int_eq(masters[0].activated, 0); /* the other one is not over */
    ck_assert_int_eq(quarantine_next_ms(&quarantine), now_ms + 1);
    now_ms++;
    says(2, 9, now_ms);
    masters[1].status.quarantine_left_ms = 0;
    quarantine_turn(&quarantine, now_ms);
    ck_assert_int_eq(masters[0].activated, 1);
    ck_assert_int_eq(masters[1].activated, 1);
    masters[0].status.quarantine_left_ms = 1; /* its clock is a little behind ours */
    now_ms = quarantine_next_ms(&quarantine);
    quarantine_turn(&quarantine, now_ms);
    ck_assert_int_eq(quarantine_next_ms(&quarantine), now_ms + 1);
    finish();
}
END_TEST

/* Other brokers may go on granting where a master has their settings in force: until it has ours,
 * no quarantine ends, and then each begins anew; but for those that an administrator trusts. */
START_TEST(a_veto_keeps_all_in_quarantine)
{
    begin(3);
    put_in_quarantine(1, 1000);
    put_in_quarantine(2, 1000);
    masters[0].disagrees = "other settings";
    put(0, MASTER_REFUSED);
    pass(9000);
    ck_assert_int_eq(masters[1].activated + masters[2].activated, 0);
    ck_assert_int_gt(masters[1].prolonged, 9);
    masters[0].disagrees = NULL;
    put(0, MASTER_ACTIVE);
    int before = masters[1].prolonged;
    pass(100);
    ck_assert_int_eq(masters[1].prolonged, before + 1);
    ck_assert_int_eq(masters[2].prolonged, before + 1);
    ck_assert_int_eq(masters[1].activated, 0);
    put_in_quarantine(1, 2000); /* as it says then */
    put_in_quarantine(2, 2000);
    pass(1900);
    ck_assert_int_eq(masters[1].activated, 0);
    pass(6000);
    ck_assert_int_gt(masters[1].activated, 0);
    finish();
}
END_TEST

START_TEST(trust_after_a_veto)
{
    begin(3);
    put_in_quarantine(1, 1000);
    masters[0].disagrees = "other settings";
    put(0, MASTER_REFUSED);
    pass(1000);
    ck_assert_ptr_null(quarantine_trust(&quarantine, "b", now_ms));
    int before = masters[1].prolonged;
    pass(1000);
    ck_assert_int_eq(masters[1].activated, 0);
    masters[0].disagrees = NULL;
    put(0, MASTER_ACTIVE);
    pass(600);
    says(0, 8, now_ms);
    says(2, 9, now_ms);
    pass(600);
    ck_assert_int_eq(masters[1].prolonged, before);
    ck_assert(masters[1].forced);
    finish();
}
END_TEST

static Suite *quarantine_suite(void)
{
    Suite *s = suite_create("quarantine");
    TCase *c = tcase_create("quarantine");

    tcase_add_test(c, nothing_to_do);
    tcase_add_test(c, one_master_goes_by_the_clock);
    tcase_add_test(c, one_master_never_below_what_it_has_said);
    tcase_add_test(c, what_this_broker_has_seen_counts);
    tcase_add_test(c, others_are_asked_after_the_end);
    tcase_add_test(c, three_of_five_are_enough);
    tcase_add_test(c, waits_for_another_quarantine);
    tcase_add_test(c, waits_a_while_for_those_who_may_come_back);
    tcase_add_test(c, does_not_wait_for_the_refused);
    tcase_add_test(c, an_end_that_moves_is_waited_for_again);
    tcase_add_test(c, trust_ends_it_at_once);
    tcase_add_test(c, looks_when_it_ends);
    tcase_add_test(c, trust_does_not_wait_for_other_quarantines);
    tcase_add_test(c, a_veto_keeps_all_in_quarantine);
    tcase_add_test(c, trust_after_a_veto);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(quarantine_suite());
}
