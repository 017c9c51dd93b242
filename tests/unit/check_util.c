/* Numbers, durations and sizes at their edges, the hash against values of another implementation.
 */
#include "base/util.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "suite.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(texts)
{
    char *copy = util_strdup("a");

    ck_assert_str_eq(copy, "a");
    free(copy);
    ck_assert_ptr_null(util_strdup(NULL));
    ck_assert(util_same_text(NULL, NULL) && util_same_text("a", "a"));
    ck_assert(!util_same_text(NULL, "") && !util_same_text("", NULL) && !util_same_text("a", "b"));
    for (int c = CHAR_MIN; c <= CHAR_MAX; c++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *at = c ? strchr(digits, c) : NULL;
        ck_assert_int_eq(util_hex_digit((char)c), at ? (int)(at - digits) % 16 : -1);
    }
}
END_TEST

START_TEST(memory)
{
    char *p = util_alloc(64);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(p[i], 0);
    p = util_realloc(p, 128);
    free(p);
    free(util_alloc(0));
    p = util_memdup("a\0b", 3);
    ck_assert_mem_eq(p, "a\0b\0", 4);
    free(p);
    p = util_memdup(NULL, 0);
    ck_assert_str_eq(p, "");
    free(p);
    p = util_strdup("name");
    ck_assert_str_eq(p, "name");
    free(p);
}
END_TEST

START_TEST(memory_out)
{
    volatile size_t n = SIZE_MAX / 2;
    free(util_alloc(n)); /* exits with 1 */
}
END_TEST

START_TEST(die)
{
    util_die("asked to, n=%d", 1);
}
END_TEST

START_TEST(int_good)
{
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        {"0", 0},
        {"7", 7},
        {"-1", -1},
        {"10", 10},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775807", -INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    for (size_t i = 0; i < LEN(rows); i++) {
        int64_t value = 1234;
        const char *text = rows[i].text;
        ck_assert_msg(util_parse_int(text, strlen(text), INT64_MIN, INT64_MAX, &value) == 0,
                      "\"%s\"", text);
        ck_assert_int_eq(value, rows[i].value);
    }
    int64_t value;
    ck_assert_int_eq(util_parse_int("123", 2, 0, 100, &value), 0);
    ck_assert_int_eq(value, 12);
}
END_TEST

START_TEST(int_bad)
{
    static const char *const rows[] = {
        "",
        "-",
        "+1",
        " 1",
        "1 ",
        "01",
        "-0",
        "-01",
        "00",
        "1x",
        "0x10",
        "1.0",
        "--1",
        "1e3",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "99999999999999999999999",
    };
    for (size_t i = 0; i < LEN(rows); i++) {
        int64_t value = 1234;
        ck_assert_msg(util_parse_int(rows[i], strlen(rows[i]), INT64_MIN, INT64_MAX, &value) == -1,
                      "\"%s\"", rows[i]);
        ck_assert_int_eq(value, 1234);
    }
    int64_t value = 1234;
    ck_assert_int_eq(util_parse_int("1\0", 2, 0, 9, &value), -1);
    ck_assert_int_eq(util_parse_int("4", 1, 5, 9, &value), -1);
    ck_assert_int_eq(util_parse_int("10", 2, 5, 9, &value), -1);
    ck_assert_int_eq(value, 1234);
    ck_assert_int_eq(util_parse_int("5", 1, 5, 9, &value), 0);
    ck_assert_int_eq(util_parse_int("9", 1, 5, 9, &value), 0);
}
END_TEST

START_TEST(duration_good)
{
    static const struct {
        const char *text;
        int64_t ms;
        const char *back; /* as it is written */
    } rows[] = {
        {"0", 0, "0s"},
        {"0s", 0, "0s"},
        {"250", 250, "250ms"},
        {"250ms", 250, "250ms"},
        {"30s", 30000, "30s"},
        {"30000", 30000, "30s"},
        {"90s", 90000, "1m30s"},
        {"1m30s", 90000, "1m30s"},
        {"5m", 300000, "5m"},
        {"1h", 3600000, "1h"},
        {"2d", 172800000, "2d"},
        {"1d2h3m4s5ms", 93784005, "1d2h3m4s5ms"},
        {"1h1ms", 3600001, "1h1ms"},
        {"9223372036854775807", INT64_MAX, "106751991167d7h12m55s807ms"},
    };
    for (size_t i = 0; i < LEN(rows); i++) {
        int64_t ms = -1;
        char text[48];
        ck_assert_msg(util_parse_duration(rows[i].text, &ms) == 0, "\"%s\"", rows[i].text);
        ck_assert_int_eq(ms, rows[i].ms);
        ck_assert_int_eq(util_format_duration(text, sizeof(text), ms), strlen(rows[i].back));
        ck_assert_str_eq(text, rows[i].back);
        ck_assert_int_eq(util_parse_duration(text, &ms), 0);
        ck_assert_int_eq(ms, rows[i].ms);
    }
}
END_TEST

START_TEST(duration_bad)
{
    static const char *const rows[] = {
        "",
        "s",
        "-1s",
        "-1",
        "1 s",
        " 1s",
        "1s ",
        "1S",
        "1m30",
        "30s1m",
        "1s1s",
        "1.5s",
        "1w",
        "01s",
        "1ss",
        "1sm",
        "1d1d",
        "106751991168d",
        "9223372036854775808",
        "106751991167d7h12m55s808ms",
        "9223372036854775807s",
    };
    for (size_t i = 0; i < LEN(rows); i++) {
        int64_t ms = 1234;
        ck_assert_msg(util_parse_duration(rows[i], &ms) == -1, "\"%s\"", rows[i]);
        ck_assert_int_eq(ms, 1234);
    }
}
END_TEST

START_TEST(duration_format)
{
    char text[48];
    util_format_duration(text, sizeof(text), -90000);
    ck_assert_str_eq(text, "-1m30s");
    util_format_duration(text, sizeof(text), INT64_MIN);
    ck_assert_str_eq(text, "-106751991167d7h12m55s808ms");
    ck_assert_int_eq(util_format_duration(text, 4, 90000), 5);
    ck_assert_str_eq(text, "1m3");
}
END_TEST

START_TEST(size)
{
    static const struct {
        const char *text;
        int64_t bytes; /* -1: refused */
    } rows[] = {
        {"0", 0},
        {"512", 512},
        {"512b", 512},
        {"1k", 1024},
        {"64kb", 65536},
        {"64KB", 65536},
        {"16mb", 16777216},
        {"16M", 16777216},
        {"1g", 1073741824},
        {"2tb", INT64_C(2199023255552)},
        {"8388607t", INT64_C(8388607) << 40},
        {"8388608t", -1},
        {"9223372036854775808", -1},
        {"", -1},
        {"k", -1},
        {"-1", -1},
        {"1 k", -1},
        {"1kib", -1},
        {"1.5m", -1},
        {"01k", -1},
        {"1p", -1},
    };
    for (size_t i = 0; i < LEN(rows); i++) {
        int64_t bytes = -1;
        int rc = util_parse_size(rows[i].text, &bytes);
        ck_assert_msg(rc == (rows[i].bytes < 0 ? -1 : 0), "\"%s\"", rows[i].text);
        ck_assert_int_eq(bytes, rows[i].bytes);
    }
}
END_TEST

START_TEST(random_ids)
{
    char first[41], second[41], seen[256] = {0};
    util_random_id(first, 0);
    ck_assert_str_eq(first, "");
    util_random_id(first, 40);
    ck_assert_uint_eq(strlen(first), 40);
    int letters = 0;
    for (int round = 0; round < 100; round++) {
        util_random_id(second, 40);
        ck_assert_str_ne(first, second);
        ck_assert_uint_eq(strspn(second, "abcdefghijklmnopqrstuvwxyz234567"), 40);
        for (int i = 0; i < 40; i++)
            seen[(unsigned char)second[i]] = 1;
    }
    for (int i = 0; i < 256; i++)
        letters += seen[i];
    ck_assert_int_eq(letters, 32);
}
END_TEST

/* The values with a key of zeros are those of CPython 3.11 (PYTHONHASHSEED=0). */
START_TEST(hash_values)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } rows[] = {
        {"a", UINT64_C(0x407448d2b89b1813)},
        {"1234567", UINT64_C(0xa33d651594fdae81)},
        {"12345678", UINT64_C(0x3489982430560a87)},
        {"123456789", UINT64_C(0x0fbc0f0007965fcf)},
        {"the name of a lock", UINT64_C(0xda4149aac78e82a4)},
    };
    util_hash_seed(0, 0);
    for (size_t i = 0; i < LEN(rows); i++)
        ck_assert_uint_eq(util_hash(rows[i].text, strlen(rows[i].text)), rows[i].hash);
    util_hash_seed(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908));
    ck_assert_uint_eq(util_hash("", 0), UINT64_C(0xabac0158050fc4dc));
}
END_TEST

START_TEST(hash_key)
{
    uint64_t drawn = util_hash("name", 4);
    ck_assert_uint_eq(util_hash("name", 4), drawn);
    util_hash_seed(1, 2);
    ck_assert_uint_ne(util_hash("name", 4), drawn);
    uint64_t seeded = util_hash("name", 4);
    util_hash_seed(2, 1);
    ck_assert_uint_ne(util_hash("name", 4), seeded);
}
END_TEST

START_TEST(clocks)
{
    int64_t first_us = clock_us(), ms = clock_ms(), last_us = clock_us();
    ck_assert_int_gt(first_us, 0);
    ck_assert_int_le(first_us / 1000, ms);
    ck_assert_int_le(ms, last_us / 1000);
    ck_assert_int_gt(clock_wall_ms(), INT64_C(1700000000000)); /* this was written later */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("util");
    TCase *tc = tcase_create("util");
    tcase_add_test(tc, texts);
    tcase_add_test(tc, memory);
    tcase_add_exit_test(tc, memory_out, EXIT_FAILURE);
    tcase_add_exit_test(tc, die, EXIT_FAILURE);
    tcase_add_test(tc, int_good);
    tcase_add_test(tc, int_bad);
    tcase_add_test(tc, duration_good);
    tcase_add_test(tc, duration_bad);
    tcase_add_test(tc, duration_format);
    tcase_add_test(tc, size);
    tcase_add_test(tc, random_ids);
    tcase_add_test(tc, hash_values);
    tcase_add_test(tc, hash_key);
    tcase_add_test(tc, clocks);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
