/* The end of quarantines, over masters that are nothing but what they say: who is asked, when, and
 * which base comes out. */
#include "redis/quarantine.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "redis/master.h"
#include "redis/place.h"
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
    struct place place;
    int rolls;
    enum master_roll what; /* the last time */
    int64_t token;
    int partition;
};

static struct master masters[MASTERS];

int master_partition(const struct master *m)
{
    return m->partition;
}

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

void master_roll(struct master *m, enum master_roll what, int64_t token, int64_t left_ms)
{
    (void)left_ms;
    m->rolls++;
    m->what = what;
    m->token = token;
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

/* Groups of `size` masters, one behind the other. */
static void begin_groups(int n, int size)
{
    memset(masters, 0, sizeof masters);
    rounds_init(&rounds, 100);
    for (int i = 0; i < n; i++) {
        masters[i].partition = i / size;
        rounds_add_master(&rounds, &masters[i], master_name(&masters[i]));
        masters[i].status.state = MASTER_ACTIVE;
    }
    quarantine_init(&quarantine, &rounds);
    now_ms = 100000;
    rounds_set_wall(&rounds, 5000000, now_ms);
}

static void begin(int n)
{
    begin_groups(n, n);
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

/* What other groups have given is of other names. */
START_TEST(a_master_goes_by_its_own_group)
{
    begin_groups(4, 1);
    says(0, clock_floor() * 10, 200000);
    says(2, clock_floor() * 10, 200000);
    put_in_quarantine(1, 1000);
    put_in_quarantine(3, 9000); /* is not waited for */
    pass(900);
    ck_assert_int_eq(masters[1].activated, 0);
    pass(200);
    ck_assert_int_gt(masters[1].activated, 0);
    ck_assert_int_lt(masters[1].base, clock_floor() * 10);
    ck_assert_int_eq(masters[0].asked + masters[2].asked + masters[3].asked, 0);
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

/* ---- the roll call ---- */

enum { MEMORY_MS = 1000 + 5 + 1000 };

/* With a list of brokers; this one has had its place at all masters since so long. */
static void begin_roll_groups(int n, int size, int64_t since_ms)
{
    begin_groups(n, size);
    rollcall_begin(&quarantine.roll, 1000, 5000);
    for (int i = 0; i < n; i++) {
        struct master_status *s = &masters[i].status;
        s->place = &masters[i].place;
        s->life = "1 x";
        s->roll_veto = s->roll_missing = "";
        masters[i].place = (struct place){.is_ours = true,
                                          .life = {"1 x"},
                                          .since_ms = now_ms - since_ms,
                                          .whole_ms = now_ms - since_ms,
                                          .asked_ms = now_ms,
                                          .left_ms = -1};
    }
}

static void begin_roll(int n, int64_t since_ms)
{
    begin_roll_groups(n, n, since_ms);
}

/* It has begun another life, in which it has told that the place is still ours. */
static void lose(int i)
{
    put_in_quarantine(i, 60000);
    masters[i].status.life = "2 y";
    strcpy(masters[i].place.life.text, "2 y");
    masters[i].place.joined_ms = masters[i].place.asked_ms = now_ms;
    masters[i].what = MASTER_IS_HERE;
}

static bool signs(int i, int64_t within_ms)
{
    quarantine_set_done(&quarantine, i, true);
    pass(within_ms);
    return masters[i].what == MASTER_SIGNS;
}

START_TEST(signs_when_all_is_there)
{
    begin_roll(1, MEMORY_MS);
    lose(0);
    pass(500);
    ck_assert_int_eq(masters[0].what, MASTER_IS_HERE);
    says(0, (int64_t)1 << 50, 1);
    ck_assert(signs(0, 100));
    ck_assert_int_eq(masters[0].token, (int64_t)1 << 50);
    ck_assert_int_eq(masters[0].activated, 0);
    finish();
}
END_TEST

START_TEST(signs_not_with_a_short_memory)
{
    begin_roll(1, MEMORY_MS - 1000);
    lose(0);
    ck_assert(!signs(0, 900));
    ck_assert(signs(0, 500));
    finish();
}
END_TEST

/* The one before has left: it knew for how long somebody could rely on it. */
START_TEST(signs_after_a_clean_leave)
{
    begin_roll(1, 100);
    masters[0].place.left_ms = _i;
    masters[0].place.token = (int64_t)1 << 51;
    lose(0);
    ck_assert_int_eq(signs(0, 300), _i == 0);
    if (_i == 0)
        ck_assert_int_eq(masters[0].token, (int64_t)1 << 51);
    finish();
}
END_TEST

/* It has come to it only in this life. */
START_TEST(signs_not_as_a_stranger)
{
    begin_roll(1, MEMORY_MS);
    lose(0);
    masters[0].place.whole_ms = INT64_MAX;
    ck_assert(!signs(0, 5000));
    finish();
}
END_TEST

/* What other groups know is of other names, and they are not asked. */
START_TEST(signs_by_its_own_group)
{
    begin_roll_groups(2, 1, MEMORY_MS);
    masters[1].place.asked_ms -= 1000;
    lose(0);
    ck_assert(signs(0, 100));
    ck_assert_int_eq(masters[1].rolls, 0);
    finish();
    begin_roll_groups(2, 1, MEMORY_MS);
    masters[0].place.since_ms += 1000;
    lose(0);
    ck_assert(!signs(0, 900));
    ck_assert(signs(0, 500));
    finish();
}
END_TEST

/* A restart of any of them is one that it could not sign for. */
START_TEST(remembers_what_the_worst_group_does)
{
    begin_roll_groups(2, 1, MEMORY_MS);
    ck_assert_int_eq(rollcall_memory_left_ms(&quarantine.roll, now_ms), 0);
    masters[1].place.since_ms = now_ms - MEMORY_MS + 300;
    ck_assert_int_eq(rollcall_memory_left_ms(&quarantine.roll, now_ms), 300);
    masters[0].place.whole_ms = INT64_MAX;
    ck_assert_int_eq(rollcall_memory_left_ms(&quarantine.roll, now_ms), quarantine.roll.memory_ms);
    finish();
}
END_TEST

START_TEST(signs_not_without_its_name)
{
    begin_roll(3, MEMORY_MS);
    lose(0);
    masters[2].place.is_lost = true;
    masters[1].place.asked_ms = masters[2].place.asked_ms = now_ms;
    ck_assert(!signs(0, 5000));
    finish();
}
END_TEST

/* The others are asked whether the name is still ours, and two of three have to say so. */
START_TEST(signs_when_the_others_have_said_so)
{
    begin_roll(3, MEMORY_MS);
    now_ms += 100;
    lose(0);
    ck_assert(!signs(0, 500));
    ck_assert_int_gt(masters[1].rolls, 0);
    masters[1].place.asked_ms = now_ms;
    ck_assert(!signs(0, 500));
    masters[2].place.asked_ms = now_ms;
    ck_assert(signs(0, 500));
    finish();
}
END_TEST

/* One is down, which may know of another process; or it has been lost, too. */
START_TEST(signs_when_nobody_may_know_better)
{
    begin_roll(3, MEMORY_MS);
    now_ms += 100;
    lose(0);
    put(1, MASTER_DOWN);
    masters[2].place.asked_ms = now_ms;
    ck_assert(!signs(0, 500));
    lose(1);
    ck_assert(signs(0, 500));
    ck_assert_int_eq(masters[1].what, MASTER_IS_HERE);
    masters[2].place.asked_ms = now_ms;
    ck_assert(signs(1, 500));
    finish();
}
END_TEST

START_TEST(signs_not_what_only_masters_remember)
{
    begin_roll(1, MEMORY_MS);
    lose(0);
    rollcall_set_unsure(&quarantine.roll, now_ms + MEMORY_MS);
    ck_assert(!signs(0, MEMORY_MS - 200));
    ck_assert(signs(0, 500));
    finish();
}
END_TEST

START_TEST(signs_not_against_a_veto)
{
    begin_roll(1, MEMORY_MS);
    lose(0);
    masters[0].status.roll_veto = "two brokers have the name b";
    ck_assert(!signs(0, 5000));
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
    tcase_add_test(c, a_master_goes_by_its_own_group);
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
    tcase_add_test(c, signs_when_all_is_there);
    tcase_add_test(c, signs_not_with_a_short_memory);
    tcase_add_loop_test(c, signs_after_a_clean_leave, 0, 1);
    tcase_add_loop_test(c, signs_after_a_clean_leave, 900, 901);
    tcase_add_test(c, signs_not_as_a_stranger);
    tcase_add_test(c, signs_by_its_own_group);
    tcase_add_test(c, remembers_what_the_worst_group_does);
    tcase_add_test(c, signs_not_without_its_name);
    tcase_add_test(c, signs_when_the_others_have_said_so);
    tcase_add_test(c, signs_when_nobody_may_know_better);
    tcase_add_test(c, signs_not_what_only_masters_remember);
    tcase_add_test(c, signs_not_against_a_veto);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(quarantine_suite());
}
