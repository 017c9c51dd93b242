/* Which server the Sentinels of a master name, and until when that counts. */
#include <check.h>
#include <stdio.h>

#include "redis/naming.h"
#include "suite.h"

enum { TIMEOUT_MS = 5000 };

static struct naming s;

/* Sentinel i names a server by a letter, '-': none; asked at, and heard at. */
static bool says(int i, char server, int64_t asked_ms, int64_t now_ms)
{
    struct naming_address a = {.port = server == '-' ? 0 : 6379};

    snprintf(a.host, sizeof a.host, "%c", server);
    return naming_take(&s, i, &a, asked_ms, now_ms);
}

static char named(void)
{
    return s.named.port ? s.named.host[0] : '-';
}

START_TEST(a_majority_of_all_that_are_configured)
{
    naming_init(&s, 5, TIMEOUT_MS);
    ck_assert_int_eq(named(), '-');
    ck_assert(!says(0, 'a', 100, 101));
    ck_assert(!says(1, 'a', 100, 101));
    ck_assert(!says(1, 'a', 102, 103));
    ck_assert_int_eq(named(), '-');
    ck_assert(says(4, 'a', 110, 111));
    ck_assert_int_eq(named(), 'a');
    naming_init(&s, 2, TIMEOUT_MS);
    ck_assert(!says(0, 'a', 100, 101));
    ck_assert(says(1, 'a', 100, 101));
    naming_init(&s, 1, TIMEOUT_MS);
    ck_assert(says(0, 'a', 100, 101));
}
END_TEST

/* It is the word that the majority cannot do without that grows too old, by when it was asked for.
 */
START_TEST(words_grow_old)
{
    naming_init(&s, 3, TIMEOUT_MS);
    says(0, 'a', 100, 150);
    says(1, 'a', 300, 350);
    ck_assert_int_eq(s.until_ms, 100 + TIMEOUT_MS);
    says(2, 'a', 200, 360);
    ck_assert_int_eq(s.until_ms, 200 + TIMEOUT_MS);
    ck_assert(!naming_pass(&s, 200 + TIMEOUT_MS - 1));
    ck_assert_int_eq(named(), 'a');
    ck_assert(naming_pass(&s, 200 + TIMEOUT_MS));
    ck_assert_int_eq(named(), '-');
    ck_assert_int_eq(s.until_ms, 0);
    ck_assert(!naming_pass(&s, 201 + TIMEOUT_MS));
    ck_assert(says(0, 'a', 5250, 5260)); /* with that of Sentinel 1, which still counts */
    ck_assert_int_eq(s.until_ms, 300 + TIMEOUT_MS);
}
END_TEST

/* An answer that was long on its way says what was true when it was asked for, and no more. */
START_TEST(a_late_answer_is_an_old_word)
{
    naming_init(&s, 3, TIMEOUT_MS);
    says(0, 'a', 6000, 6001);
    ck_assert(!says(1, 'a', 1000, 6001));
    ck_assert_int_eq(named(), '-');
    ck_assert(says(1, 'a', 1002, 6001));
    ck_assert_int_eq(s.until_ms, 6002);
}
END_TEST

START_TEST(they_move_one_by_one)
{
    naming_init(&s, 3, TIMEOUT_MS);
    for (int i = 0; i < 3; i++)
        says(i, 'a', 100, 101);
    ck_assert(!says(2, 'b', 200, 201));
    ck_assert_int_eq(named(), 'a');
    ck_assert(says(0, 'b', 300, 301));
    ck_assert_int_eq(named(), 'b');
    ck_assert_int_eq(s.until_ms, 200 + TIMEOUT_MS);
    ck_assert(!says(1, 'b', 400, 401));
    ck_assert_int_eq(s.until_ms, 300 + TIMEOUT_MS);
}
END_TEST

/* Who now names another one, or none, does not count for the first one, however lately it did. */
START_TEST(a_majority_is_lost)
{
    naming_init(&s, 3, TIMEOUT_MS);
    says(0, 'a', 100, 101);
    says(1, 'a', 100, 101);
    ck_assert(says(1, 'b', 200, 201));
    ck_assert_int_eq(named(), '-');
    ck_assert(says(1, 'a', 300, 301));
    ck_assert(says(0, '-', 400, 401));
    ck_assert_int_eq(named(), '-');
    ck_assert(!says(1, '-', 400, 401)); /* a majority that names none */
}
END_TEST

START_TEST(another_port_is_another_server)
{
    struct naming_address a = {"10.0.0.1", 6379}, b = {"10.0.0.1", 6380};

    naming_init(&s, 3, TIMEOUT_MS);
    ck_assert(!naming_take(&s, 0, &a, 100, 101));
    ck_assert(!naming_take(&s, 1, &b, 100, 101));
    ck_assert(naming_take(&s, 2, &b, 100, 101));
    ck_assert(naming_is_same(&s.named, &b));
}
END_TEST

static Suite *naming_suite(void)
{
    Suite *suite = suite_create("naming");
    TCase *c = tcase_create("naming");
    tcase_add_test(c, a_majority_of_all_that_are_configured);
    tcase_add_test(c, words_grow_old);
    tcase_add_test(c, a_late_answer_is_an_old_word);
    tcase_add_test(c, they_move_one_by_one);
    tcase_add_test(c, a_majority_is_lost);
    tcase_add_test(c, another_port_is_another_server);
    suite_add_tcase(suite, c);
    return suite;
}

int main(void)
{
    return suite_run(naming_suite());
}
