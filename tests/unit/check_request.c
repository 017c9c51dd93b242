/* Requests to a Redis server, byte for byte. */
#include <check.h>
#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "net/request.h"
#include "suite.h"

static struct buf out;

static void expect(const char *bytes)
{
    ck_assert_uint_eq(buf_len(&out), strlen(bytes));
    ck_assert_int_eq(memcmp(buf_head(&out), bytes, strlen(bytes)), 0);
    buf_fini(&out);
    out = (struct buf){0};
}

START_TEST(arrays_and_strings)
{
    request_array(&out, 0);
    request_array(&out, 9);
    request_array(&out, 10);
    request_array(&out, INT64_MAX);
    expect("*0\r\n*9\r\n*10\r\n*9223372036854775807\r\n");
    request_text(&out, "a\r\nb", 4);
    request_str(&out, "");
    request_str(&out, "ten bytes.");
    expect("$4\r\na\r\nb\r\n$0\r\n\r\n$10\r\nten bytes.\r\n");
    memcpy(request_room(&out, 3), "abc", 3);
    expect("$3\r\nabc\r\n");
}
END_TEST

START_TEST(integers)
{
    request_int(&out, 0);
    request_int(&out, -1);
    request_int(&out, INT64_MIN);
    request_int(&out, INT64_MAX);
    expect("$1\r\n0\r\n$2\r\n-1\r\n$20\r\n-9223372036854775808\r\n$19\r\n9223372036854775807\r\n");
}
END_TEST

START_TEST(words)
{
    request_words(&out, "PING");
    request_words(&out, "CLIENT SETINFO lib-name x");
    expect("*1\r\n$4\r\nPING\r\n"
           "*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nlib-name\r\n$1\r\nx\r\n");
}
END_TEST

static Suite *request_suite(void)
{
    Suite *s = suite_create("request");
    TCase *c = tcase_create("request");
    tcase_add_test(c, arrays_and_strings);
    tcase_add_test(c, integers);
    tcase_add_test(c, words);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(request_suite());
}
