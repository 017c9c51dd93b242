/* Bytes go in at the tail and come out at the head, unchanged, whatever the steps; and memory is
 * used as promised. */
#include "base/buf.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

START_TEST(empty)
{
    struct buf b = {0};
    ck_assert_uint_eq(buf_len(&b), 0);
    ck_assert_ptr_null(buf_head(&b));
    buf_append(&b, NULL, 0);
    buf_consume(&b, 0);
    buf_trim(&b);
    ck_assert_ptr_null(b.data);
    ck_assert_ptr_nonnull(buf_reserve(&b, 0));
    buf_fini(&b);
    buf_fini(&b);
    ck_assert_uint_eq(b.cap, 0);
}
END_TEST

START_TEST(append_and_consume)
{
    struct buf b = {0};
    buf_append(&b, "hello ", 6);
    buf_append(&b, "wor\0d", 5);
    ck_assert_uint_eq(buf_len(&b), 11);
    ck_assert_mem_eq(buf_head(&b), "hello wor\0d", 11);
    buf_consume(&b, 6);
    ck_assert_mem_eq(buf_head(&b), "wor\0d", 5);
    buf_trim(&b);
    ck_assert_uint_eq(buf_len(&b), 5);
    buf_consume(&b, 5);
    ck_assert_uint_eq(b.start, 0);
    buf_trim(&b);
    ck_assert_ptr_null(b.data);
    buf_append(&b, "again", 5);
    ck_assert_mem_eq(buf_head(&b), "again", 5);
    buf_fini(&b);
}
END_TEST

START_TEST(reserve_and_commit)
{
    struct buf b = {0};
    char *tail = buf_reserve(&b, 1000);
    memset(tail, 'x', 1000); /* the sanitizer sees when it is too short */
    ck_assert_uint_eq(buf_len(&b), 0);
    buf_commit(&b, 10);
    ck_assert_uint_eq(buf_len(&b), 10);
    ck_assert_ptr_eq(buf_reserve(&b, 10), tail + 10);
    memset(buf_reserve(&b, 5000), 'y', 5000);
    buf_commit(&b, 5000);
    ck_assert_uint_eq(buf_len(&b), 5010);
    ck_assert_int_eq(buf_head(&b)[9], 'x');
    ck_assert_int_eq(buf_head(&b)[10], 'y');
    buf_fini(&b);
}
END_TEST

START_TEST(commit_too_much)
{
    struct buf b = {0};
    buf_reserve(&b, 10);
    buf_commit(&b, b.cap + 1); /* asserts */
}
END_TEST

START_TEST(consume_too_much)
{
    struct buf b = {0};
    buf_append(&b, "abc", 3);
    buf_consume(&b, 4); /* asserts */
}
END_TEST

START_TEST(reserve_far_too_much)
{
    struct buf b = {0};
    buf_append(&b, "abc", 3);
    buf_reserve(&b, SIZE_MAX - 1); /* exits with 1 */
}
END_TEST

START_TEST(compacts_instead_of_growing)
{
    struct buf b = {0};
    buf_append(&b, "0123456789", 10);
    size_t cap = b.cap;
    for (int i = 0; i < 10000; i++) {
        buf_append(&b, "0123456789", 10);
        ck_assert_mem_eq(buf_head(&b), "0123456789", 10);
        buf_consume(&b, 10);
    }
    ck_assert_uint_eq(buf_len(&b), 10);
    ck_assert_uint_eq(b.cap, cap);
    buf_fini(&b);
}
END_TEST

/* At the border between moving the bytes and growing. */
START_TEST(reserves_to_the_last_byte)
{
    for (size_t more = 0; more < 2; more++) {
        struct buf b = {0};
        memset(buf_reserve(&b, 1000), 'a', 1000);
        buf_commit(&b, 1000);
        size_t cap = b.cap, n = b.cap - 100 + more;
        buf_consume(&b, 900);
        memset(buf_reserve(&b, n), 'b', n);
        ck_assert_uint_ge(b.cap - b.end, n);
        ck_assert_int_eq(b.cap == cap, more == 0);
        ck_assert_uint_eq(buf_len(&b), 100);
        ck_assert_int_eq(buf_head(&b)[99], 'a');
        buf_fini(&b);
    }
}
END_TEST

/* Memory grows by a factor, so the block moves some dozen times and not a thousand. */
START_TEST(growth_is_amortised)
{
    struct buf b = {0};
    int grown = 0;
    for (int i = 0; i < 1000000; i++) {
        size_t cap = b.cap;
        buf_append(&b, "x", 1);
        grown += b.cap != cap;
    }
    ck_assert_int_lt(grown, 20);
    ck_assert_uint_le(b.cap, 2100000);
    buf_fini(&b);
}
END_TEST

START_TEST(formats)
{
    struct buf b = {0};
    buf_printf(&b, "%s", "");
    ck_assert_uint_eq(buf_len(&b), 0);
    buf_printf(&b, "$%d\r\n", 5);
    buf_printf(&b, "%s", "world");
    ck_assert_mem_eq(buf_head(&b), "$5\r\nworld", 9);
    ck_assert_uint_eq(buf_len(&b), 9);
    buf_consume(&b, 4);
    /* Each length at which the text just fits, or just does not. */
    for (int n = 0; n < 600; n++) {
        struct buf c = {0};
        buf_append(&c, "ab", 2);
        buf_printf(&c, "%*d", n, 7);
        ck_assert_uint_eq(buf_len(&c), (size_t)(n == 0 ? 3 : n + 2));
        ck_assert_int_eq(buf_head(&c)[buf_len(&c) - 1], '7');
        ck_assert_mem_eq(buf_head(&c), "ab", 2);
        buf_fini(&c);
    }
    ck_assert_mem_eq(buf_head(&b), "world", 5);
    buf_fini(&b);
}
END_TEST

START_TEST(random_stream)
{
    struct buf b = {0};
    unsigned seed = (unsigned)_i + 1;
    unsigned char in = 0, out = 0; /* the stream counts up */
    size_t len = 0;
    for (int step = 0; step < 20000; step++) {
        size_t n = (size_t)rand_r(&seed) % (step % 100 == 0 ? 5000 : 100);
        if (rand_r(&seed) % 2 == 0) {
            char *tail = buf_reserve(&b, n);
            for (size_t i = 0; i < n; i++)
                tail[i] = (char)in++;
            buf_commit(&b, n);
            len += n;
        } else {
            n = n < len ? n : len;
            size_t wrong = 0;
            for (size_t i = 0; i < n; i++)
                wrong += (unsigned char)buf_head(&b)[i] != out++;
            ck_assert_uint_eq(wrong, 0);
            buf_consume(&b, n);
            len -= n;
        }
        if (step % 7 == 0)
            buf_trim(&b);
        ck_assert_uint_eq(buf_len(&b), len);
        ck_assert(b.start <= b.end && b.end <= b.cap);
    }
    buf_fini(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("buf");
    TCase *tc = tcase_create("buf");
    tcase_add_test(tc, empty);
    tcase_add_test(tc, append_and_consume);
    tcase_add_test(tc, reserve_and_commit);
    tcase_add_test_raise_signal(tc, commit_too_much, SIGABRT);
    tcase_add_test_raise_signal(tc, consume_too_much, SIGABRT);
    tcase_add_exit_test(tc, reserve_far_too_much, EXIT_FAILURE);
    tcase_add_test(tc, compacts_instead_of_growing);
    tcase_add_test(tc, reserves_to_the_last_byte);
    tcase_add_test(tc, growth_is_amortised);
    tcase_add_test(tc, formats);
    tcase_add_loop_test(tc, random_stream, 0, 5);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
