/* Items as they go over the wire, and the texts of scripts. */
#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "redis/args.h"
#include "redis/master.h"
#include "redis/script.h"
#include "suite.h"

static void expect(const struct args *it, const char *key, const char *args)
{
    struct master_item bytes;
    args_bytes(it, &bytes);
    ck_assert_uint_eq(bytes.key_len, strlen(key));
    ck_assert_uint_eq(bytes.args_len, strlen(args));
    ck_assert_int_eq(memcmp(bytes.key, key, bytes.key_len), 0);
    if (bytes.args_len > 0)
        ck_assert_int_eq(memcmp(bytes.args, args, bytes.args_len), 0);
}

START_TEST(items_are_bulk_strings)
{
    struct args *it = args_begin("x", 1);
    expect(it, "$12\r\nholdfast:{x}\r\n", "");
    args_text(it, "a b", 3);
    args_str(it, "");
    args_int(it, 0);
    args_int(it, -1);
    args_int(it, INT64_MIN);
    args_int(it, INT64_MAX);
    expect(it, "$12\r\nholdfast:{x}\r\n",
           "$3\r\na b\r\n$0\r\n\r\n$1\r\n0\r\n$2\r\n-1\r\n$20\r\n-9223372036854775808\r\n"
           "$19\r\n9223372036854775807\r\n");
    expect(args_begin("long-name", 9), "$20\r\nholdfast:{long-name}\r\n", "");
}
END_TEST

START_TEST(a_script_carries_the_run_id)
{
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        const struct script_row *row = script_get((enum script)i);
        struct script_place place = {"run1", "s", SCRIPT_NO_MIRROR, false};
        char *one = script_text((enum script)i, &place);
        place.run_id = "run2";
        char *two = script_text((enum script)i, &place);
        ck_assert_ptr_null(strstr(one, "@RUN_ID@"));
        ck_assert_int_eq(strcmp(one, two) != 0, row->deadline);
        ck_assert_int_le(row->width, SCRIPT_WIDTH_MAX);
        free(one);
        free(two);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("item");
    TCase *c = tcase_create("item");
    tcase_add_test(c, items_are_bulk_strings);
    tcase_add_test(c, a_script_carries_the_run_id);
    suite_add_tcase(s, c);
    return suite_run(s);
}
