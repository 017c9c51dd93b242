/* Names in a store: few of them are looked through, many are found by their hashes; the replies to
 * commands are held to a redis-server by tests/scripts/check_store. */
#include "dropin/store.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

enum { MANY = 100 };

static struct store store;
static struct store_reply reply;

static struct resp_arg word(const char *text)
{
    return (struct resp_arg){text, strlen(text)};
}

/* Says a command of three words and a number behind the second one; returns the number that it
 * gives. */
static int64_t say(const char *command, const char *key, int n)
{
    char name[16];
    snprintf(name, sizeof name, "%s%d", key, n);
    const struct resp_arg argv[] = {word(command), word(name), word("v")};
    int argc = strcmp(command, "SETNX") == 0 ? 3 : 2;
    store_reply_clear(&reply);
    store_call(&store, argv, argc, &reply);
    return reply.nodes[0].n;
}

static int64_t say_field(const char *command, int n)
{
    char field[16];
    snprintf(field, sizeof field, "f%d", n);
    const struct resp_arg argv[] = {word(command), word("hash"), word(field), word("v")};
    store_reply_clear(&reply);
    store_call(&store, argv, strcmp(command, "HSET") == 0 ? 4 : 3, &reply);
    return reply.nodes[0].n;
}

static void setup(void)
{
    store_init(&store);
    store.now_us = 1000000;
}

static void teardown(void)
{
    store_fini(&store);
    store_reply_fini(&reply);
}

/* Keys are told in the order in which they were made; those with odd numbers are left. */
static void note_key(void *arg, const char *key, size_t len)
{
    char want[16];
    int *number = arg;
    int want_len = snprintf(want, sizeof want, "k%d", *number);
    ck_assert_int_eq((int)len, want_len);
    ck_assert_mem_eq(key, want, len);
    *number += 2;
}

START_TEST(keys_few_and_many)
{
    int odd = 1;
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(say("SETNX", "k", i), 1);
        for (int j = 0; j <= i; j++)
            ck_assert_int_eq(say("EXISTS", "k", j), 1);
        ck_assert_int_eq(say("SETNX", "k", i), 0);
        ck_assert_int_eq(say("EXISTS", "k", i + 1), 0);
    }
    for (int i = 0; i < MANY; i += 2)
        ck_assert_int_eq(say("DEL", "k", i), 1);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(say("EXISTS", "k", i), i % 2);
    store_each(&store, note_key, &odd);
    ck_assert_int_eq(odd, MANY + 1);
    for (int i = 1; i < MANY; i += 2)
        ck_assert_int_eq(say("DEL", "k", i), 1);
    ck_assert_int_eq(say("SETNX", "k", 0), 1);
}
END_TEST

START_TEST(fields_few_and_many)
{
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(say_field("HSET", i), 1);
        ck_assert_int_eq(say_field("HSET", i), 0);
        ck_assert_int_eq(say_field("HEXISTS", i + 1), 0);
        ck_assert_int_eq(say("HLEN", "hash", 0), 0); /* of another key */
    }
    for (int i = MANY - 1; i >= 0; i--) {
        ck_assert_int_eq(say_field("HDEL", i), 1);
        ck_assert_int_eq(say_field("HDEL", i), 0);
    }
    ck_assert_int_eq(say_field("HSET", 0), 1); /* a new hash: the empty one has gone */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store");
    TCase *t = tcase_create("store");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, keys_few_and_many);
    tcase_add_test(t, fields_few_and_many);
    suite_add_tcase(s, t);
    return suite_run(s);
}
