/* The work list: its kinds in their order, each first in, first out; what is in it says so. */
#include <check.h>
#include <signal.h>
#include <string.h>

#include "lock/locktab.h"
#include "lock/work.h"
#include "suite.h"

static struct work work;
static struct locktab tab;
static struct lock_request requests[3];
static struct hold holds[2];

static void begin(void)
{
    memset(requests, 0, sizeof requests);
    memset(holds, 0, sizeof holds);
    work_init(&work);
    locktab_init(&tab);
}

static void end(void)
{
    ck_assert(work_is_done(&work));
}

START_TEST(kinds_come_in_their_order)
{
    unsigned todo;
    struct lock *l = locktab_get(&tab, "a", 1);
    work_lock(&work, l, WORK_RUN);
    work_ready(&work, &requests[0]);
    work_ended(&work, &holds[0]);
    work_finished(&work, &requests[1]);
    ck_assert_int_eq(work_next(&work), WORK_FINISHED);
    ck_assert_ptr_eq(work_take_finished(&work), &requests[1]);
    ck_assert_int_eq(work_next(&work), WORK_ENDED);
    ck_assert_ptr_eq(work_take_ended(&work), &holds[0]);
    ck_assert_int_eq(work_next(&work), WORK_READY);
    work_finished(&work, &requests[1]); /* what a flow finishes comes before what waits to be run */
    ck_assert_int_eq(work_next(&work), WORK_FINISHED);
    ck_assert_ptr_eq(work_take_finished(&work), &requests[1]);
    ck_assert_ptr_eq(work_take_ready(&work), &requests[0]);
    ck_assert_int_eq(work_next(&work), WORK_LOCK);
    ck_assert_ptr_eq(work_take_lock(&work, &todo), l);
    ck_assert_uint_eq(todo, WORK_RUN);
}
END_TEST

START_TEST(each_kind_is_first_in_first_out)
{
    for (int i = 0; i < 3; i++)
        work_ready(&work, &requests[i]);
    work_ended(&work, &holds[1]);
    work_ended(&work, &holds[0]);
    ck_assert_ptr_eq(work_take_ended(&work), &holds[1]);
    ck_assert_ptr_eq(work_take_ended(&work), &holds[0]);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(requests[i].place, PLACE_READY);
        ck_assert_ptr_eq(work_take_ready(&work), &requests[i]);
        ck_assert_int_eq(requests[i].place, PLACE_NOWHERE);
    }
}
END_TEST

START_TEST(a_lock_stands_there_once_with_all_that_is_to_be_done)
{
    unsigned todo;
    struct lock *a = locktab_get(&tab, "a", 1), *b = locktab_get(&tab, "b", 1);
    work_lock(&work, a, WORK_RUN);
    work_lock(&work, b, WORK_LOOK);
    work_lock(&work, a, WORK_UNDEFER);
    ck_assert_ptr_eq(work_take_lock(&work, &todo), a);
    ck_assert_uint_eq(todo, WORK_RUN | WORK_UNDEFER);
    ck_assert_ptr_eq(work_take_lock(&work, &todo), b);
    ck_assert_uint_eq(todo, WORK_LOOK);
    ck_assert_uint_eq(a->todo | b->todo, 0);
}
END_TEST

START_TEST(a_lock_is_looked_at_when_nothing_refers_to_it)
{
    unsigned todo;
    struct lock *l = locktab_get(&tab, "a", 1);
    work_ref(l);
    work_ref(l);
    work_look(&work, l);
    work_unref(&work, l);
    ck_assert(work_is_done(&work));
    work_unref(&work, l);
    ck_assert_ptr_eq(work_take_lock(&work, &todo), l);
    work_look(&work, l);
    ck_assert_ptr_eq(work_take_lock(&work, &todo), l);
    ck_assert_uint_eq(todo, WORK_LOOK);
}
END_TEST

START_TEST(a_request_stands_in_one_list_at_most)
{
    work_finished(&work, &requests[0]);
    work_ready(&work, &requests[0]); /* asserts */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("work");
    TCase *c = tcase_create("work");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, kinds_come_in_their_order);
    tcase_add_test(c, each_kind_is_first_in_first_out);
    tcase_add_test(c, a_lock_stands_there_once_with_all_that_is_to_be_done);
    tcase_add_test(c, a_lock_is_looked_at_when_nothing_refers_to_it);
    tcase_add_test_raise_signal(c, a_request_stands_in_one_list_at_most, SIGABRT);
    suite_add_tcase(s, c);
    return suite_run(s);
}
