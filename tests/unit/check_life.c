/* Lives of masters: which texts are some, and which one is newer. */
#include <check.h>
#include <string.h>

#include "redis/life.h"
#include "suite.h"

static bool valid(const char *text)
{
    return life_is_valid(text, strlen(text));
}

static bool takes(struct life *l, const char *text)
{
    return life_take(l, text, strlen(text));
}

START_TEST(valid_ones)
{
    char longest[LIFE_MAX + 2] = "1 ";

    ck_assert(valid(""));
    ck_assert(valid("1 a"));
    ck_assert(valid("9007199254740992 0123456789abcdef"));
    ck_assert(!valid("0 a"));
    ck_assert(!valid("-1 a"));
    ck_assert(!valid("a"));
    ck_assert(!valid("1"));
    ck_assert(!valid("1 "));
    ck_assert(!valid("1 a b"));
    ck_assert(!valid("1 a\n"));
    ck_assert(!valid("9007199254740993 a"));
    memset(longest + 2, 'r', LIFE_MAX - 2);
    ck_assert(valid(longest));
    longest[LIFE_MAX] = 'r';
    ck_assert(!valid(longest));
}
END_TEST

START_TEST(the_newer_one_is_taken)
{
    struct life l = {{0}};

    ck_assert(!takes(&l, ""));
    ck_assert(takes(&l, "9 b"));
    ck_assert(!takes(&l, "9 b"));
    ck_assert(!takes(&l, ""));
    ck_assert(!takes(&l, "8 c"));
    ck_assert(!takes(&l, "9 a"));
    ck_assert(takes(&l, "9 c"));
    ck_assert(takes(&l, "10 a"));
    ck_assert_str_eq(l.text, "10 a");
}
END_TEST

static Suite *life_suite(void)
{
    Suite *s = suite_create("life");
    TCase *c = tcase_create("life");
    tcase_add_test(c, valid_ones);
    tcase_add_test(c, the_newer_one_is_taken);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(life_suite());
}
