/* The table of locks, its owners and queues: growth and shrinking a few buckets at a time, scans
 * that miss nothing. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/lock.h"
#include "lock/locktab.h"
#include "lock/queue.h"
#include "suite.h"

static struct locktab tab;

static void begin(void)
{
    util_hash_seed(1, 2);
    locktab_init(&tab);
}

static void drop(void *arg, struct lock *l)
{
    (void)arg;
    locktab_drop(&tab, l);
}

static void end(void)
{
    uint64_t cursor = 0;
    do
        cursor = locktab_scan(&tab, cursor, drop, NULL);
    while (cursor);
    locktab_fini(&tab); /* asserts that it is empty */
}

static struct lock *get(int i)
{
    char name[32];
    int len = snprintf(name, sizeof name, "lock:%d", i);
    return locktab_get(&tab, name, (size_t)len);
}

static struct lock *find(int i)
{
    char name[32];
    int len = snprintf(name, sizeof name, "lock:%d", i);
    return locktab_find(&tab, name, (size_t)len);
}

START_TEST(a_name_is_found_again_and_only_that)
{
    struct lock *a = locktab_get(&tab, "a\1b", 3);
    ck_assert_ptr_eq(locktab_get(&tab, "a\1b", 3), a);
    ck_assert_ptr_eq(locktab_find(&tab, "a\1b", 3), a);
    ck_assert_ptr_null(locktab_find(&tab, "a\1", 2));
    ck_assert_ptr_null(locktab_find(&tab, "a\1c", 3));
    ck_assert_str_eq(a->name, "a\1b");
    ck_assert_uint_eq(tab.count, 1);
}
END_TEST

START_TEST(a_lock_in_use_is_not_dropped)
{
    struct lock *a = get(1);
    a->refs = 1;
    locktab_drop(&tab, a);
    ck_assert_ptr_eq(find(1), a);
    a->refs = 0;
    queue_get(a);
    locktab_drop(&tab, a);
    ck_assert_ptr_eq(find(1), a);
    free(a->queue);
    a->queue = NULL;
    locktab_drop(&tab, a);
    ck_assert_ptr_null(find(1));
}
END_TEST

START_TEST(it_grows_and_shrinks_and_loses_nothing)
{
    enum { N = 50000 };
    int missing = 0;
    for (int i = 0; i < N; i++) {
        get(i);
        missing += find(i / 2) == NULL; /* also while buckets move */
    }
    ck_assert_uint_gt(tab.mask, N / 2);
    for (int i = 0; i < N; i++)
        missing += find(i) == NULL;
    for (int i = 0; i < N; i += 1) {
        if (i % 100)
            locktab_drop(&tab, find(i));
    }
    for (int i = 0; i < N; i++)
        missing += (find(i) == NULL) != (i % 100 != 0);
    ck_assert_int_eq(missing, 0);
    ck_assert_uint_eq(tab.count, N / 100);
    ck_assert_uint_lt(tab.mask, N);
}
END_TEST

static unsigned char seen[20000];

static void mark(void *arg, struct lock *l)
{
    (void)arg;
    int i = atoi(l->name + 5);
    if (i < 20000 && seen[i] < 255)
        seen[i]++;
}

START_TEST(a_scan_sees_everything_through_a_resize)
{
    uint64_t cursor = 0;
    int steps = 0, unseen = 0;
    for (int i = 0; i < 3000; i++)
        get(i);
    do {
        cursor = locktab_scan(&tab, cursor, mark, NULL);
        if (++steps == 500) {
            for (int i = 3000; i < 20000; i++)
                get(i);
        }
    } while (cursor);
    for (int i = 0; i < 3000; i++)
        unseen += seen[i] == 0;
    ck_assert_int_eq(unseen, 0);
    ck_assert_int_gt(steps, 500);
}
END_TEST

START_TEST(a_scan_sees_what_stays_while_the_table_shrinks)
{
    uint64_t cursor = 0;
    int steps = 0, unseen = 0;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < 20000; i++)
        get(i);
    size_t mask = tab.mask;
    do {
        cursor = locktab_scan(&tab, cursor, mark, NULL);
        if (++steps == 5000) {
            for (int i = 0; i < 20000; i++) {
                if (i % 40)
                    locktab_drop(&tab, find(i));
            }
        }
    } while (cursor);
    ck_assert_uint_lt(tab.mask, mask);
    for (int i = 0; i < 20000; i += 40)
        unseen += seen[i] == 0;
    ck_assert_int_eq(unseen, 0);
}
END_TEST

static void drop_others(void *arg, struct lock *l)
{
    int *left = arg;
    for (int i = 0; i < 3000; i++) {
        struct lock *other = find(i);
        if (other && other != l && other->hash % 1024 == l->hash % 1024)
            locktab_drop(&tab, other);
    }
    ++*left;
}

START_TEST(a_scan_lets_go_what_it_would_have_seen_next)
{
    uint64_t cursor = 0;
    int left = 0;
    for (int i = 0; i < 1000; i++)
        get(i);
    do
        cursor = locktab_scan(&tab, cursor, drop_others, &left);
    while (cursor);
    ck_assert_uint_eq(tab.count, (size_t)left); /* each bucket has kept the one that was seen */
    ck_assert_int_lt(left, 900);
}
END_TEST

START_TEST(owners_are_one_object_for_each_id)
{
    struct owner *a = owner_get("web-1", 5), *b = owner_get("web-1", 5), *c = owner_get("web-2", 5);
    ck_assert_ptr_eq(a, b);
    ck_assert_ptr_ne(a, c);
    ck_assert(owner_same(a, b) && !owner_same(a, c));
    owner_used(a, 7);
    owner_used(b, 7);
    ck_assert(!a->shared);
    owner_used(a, 8);
    ck_assert(a->shared);
    owner_unref(a);
    ck_assert_ptr_eq(owner_get("web-1", 5), b);
    owner_unref(b);
    owner_unref(b);
    a = owner_get("web-1", 5);
    ck_assert(!a->shared); /* nobody had it in between */
    owner_unref(a);
    owner_unref(c);
    owner_unref(NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("locktab");
    TCase *c = tcase_create("locktab");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, a_name_is_found_again_and_only_that);
    tcase_add_test(c, a_lock_in_use_is_not_dropped);
    tcase_add_test(c, it_grows_and_shrinks_and_loses_nothing);
    tcase_add_test(c, a_scan_sees_everything_through_a_resize);
    tcase_add_test(c, a_scan_sees_what_stays_while_the_table_shrinks);
    tcase_add_test(c, a_scan_lets_go_what_it_would_have_seen_next);
    tcase_add_test(c, owners_are_one_object_for_each_id);
    suite_add_tcase(s, c);
    return suite_run(s);
}
