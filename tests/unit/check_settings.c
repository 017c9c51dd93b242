/* What brokers must share, as a text, a digest, and a difference in words. */
#include "redis/settings.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "suite.h"

static char name[] = "a", host[] = "h", path[] = "/run/r.sock", id[] = "disk-7";

START_TEST(the_text)
{
    struct conf_master masters[] = {{.name = name, .host = host, .port = 6379, .db = 2},
                                    {.name = name, .host = path, .is_unix = true},
                                    {.name = name, .host = host, .port = 1, .id = id}};
    struct conf conf = {
        .lock = {.max_lease_ms = 60000, .drift_ppm = 5000, .claim_timeout_ms = 2000},
        .master_count = 3};

    conf.masters = masters;
    static const struct {
        int64_t ms;
        const char *text;
    } quarantines[] = {
        {CONF_QUARANTINE_AUTO, "auto"}, {CONF_QUARANTINE_OFF, "off"}, {70000, "70000"}};
    for (size_t i = 0; i < 3; i++) {
        char expected[200];
        conf.quarantine_ms = quarantines[i].ms;
        char *text = settings_text(&conf);
        snprintf(expected, sizeof expected,
                 "max_lease=60000 drift=5000 quarantine=%s claim_timeout=2000 "
                 "masters=disk-7,h:6379/2,unix:/run/r.sock/0",
                 quarantines[i].text);
        ck_assert_str_eq(text, expected);
        free(text);
    }
    conf.mirror = true;
    char *text = settings_text(&conf);
    ck_assert_ptr_nonnull(strstr(text, "sock/0 mirror=yes"));
    free(text);
    static char brokers[] = "b, c,a b";
    conf.mirror = false;
    conf.brokers = brokers;
    text = settings_text(&conf);
    ck_assert_ptr_nonnull(strstr(text, "sock/0 brokers=a,b,c"));
    free(text);
}
END_TEST

START_TEST(the_digest)
{
    char one[SETTINGS_DIGEST_LEN + 1], two[SETTINGS_DIGEST_LEN + 1];

    settings_digest("", one);
    ck_assert_str_eq(one, "cbf29ce484222325");
    settings_digest("foobar", one); /* a published vector of FNV-1a */
    ck_assert_str_eq(one, "85944171f73967e8");
    settings_digest("foobaR", two);
    ck_assert_str_ne(one, two);
}
END_TEST

static const struct {
    const char *ours, *theirs, *words;
} differences[] = {
    {"max_lease=1 drift=5", "max_lease=2 drift=5", "max_lease 1 here, 2 there"},
    {"a=1 b=2", "a=3 b=4", "a 1 here, 3 there; b 2 here, 4 there"},
    {"m=a,b,c", "m=a,d,e", "m b,c here, d,e there"},
    {"m=a", "m=a,b,c", "m nothing here, b,c there"},
    {"m=ab", "m=a", "m ab here, a there"},
    {"a=1 q=off", "a=1", "q off here, nothing there"},
    {"a=1", "a=1 q=off", "q nothing here, off there"},
    {"a=1", "a=1 ", "another text"},
    {"a=1", "", "a 1 here, nothing there"},
    {"a=1", "a=\033[2J\r\nx", "a 1 here, [2Jx there"},
    {"a=1", " a ,, ", "a 1 here, nothing there"},
};

START_TEST(the_difference)
{
    char words[SETTINGS_WORDS_MAX];

    settings_difference(differences[_i].ours, differences[_i].theirs, words);
    ck_assert_str_eq(words, differences[_i].words);
}
END_TEST

START_TEST(a_difference_has_an_end)
{
    char theirs[2000] = "m=", words[SETTINGS_WORDS_MAX];

    memset(theirs + 2, 'x', sizeof theirs - 3);
    settings_difference("m=y", theirs, words);
    ck_assert_uint_eq(strlen(words), SETTINGS_WORDS_MAX - 1);
    ck_assert_str_eq(words + strlen(words) - 3, "...");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("settings");
    TCase *c = tcase_create("settings");

    tcase_add_test(c, the_text);
    tcase_add_test(c, the_digest);
    tcase_add_loop_test(c, the_difference, 0, (int)(sizeof differences / sizeof differences[0]));
    tcase_add_test(c, a_difference_has_an_end);
    suite_add_tcase(s, c);
    return suite_run(s);
}
