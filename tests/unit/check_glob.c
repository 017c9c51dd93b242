/* Unit tests of glob: what patterns mean, compared with a matcher that tries, and that no pattern
 * is slow. */
#include "base/glob.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "suite.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

/* ---- another matcher ---- */

/* One byte of a class at p, with or without a backslash before it; returns how many it takes. */
static size_t read_class_byte(const unsigned char *p, size_t len, unsigned char *out)
{
    size_t n = p[0] == '\\' && len > 1 ? 2 : 1;
    *out = p[n - 1];
    return n;
}

/* Matches c against the class that starts after its '[' at p; *used: its bytes with the ']'. */
static bool match_class(const unsigned char *p, size_t len, unsigned char c, size_t *used)
{
    size_t i = 0;
    bool hit = false, negated = false;
    if (len > 0 && p[0] == '^') {
        negated = true;
        i++;
    }
    while (i < len && p[i] != ']') {
        unsigned char low, high;
        bool escaped = p[i] == '\\';
        i += read_class_byte(p + i, len - i, &low);
        high = low;
        /* As in Redis: after an escaped byte '-' is literal, and any byte may end a range. */
        if (!escaped && len - i >= 2 && p[i] == '-') {
            high = p[i + 1];
            i += 2;
        }
        if ((low <= c && c <= high) || (high <= c && c <= low))
            hit = true;
    }
    *used = i < len ? i + 1 : i;
    return hit != negated;
}

/* Matches c against the one element at p, which is no '*'; *used: its bytes. */
static bool match_one(const unsigned char *p, size_t len, unsigned char c, size_t *used)
{
    *used = 1;
    switch (p[0]) {
    case '?':
        return true;
    case '[': {
        bool hit = match_class(p + 1, len - 1, c, used);
        *used += 1;
        return hit;
    }
    case '\\':
        if (len > 1) {
            *used = 2;
            return p[1] == c;
        }
        return c == '\\';
    default:
        return p[0] == c;
    }
}

/* The way that Redis goes, and what it means by each element. Its steps are as many as the
 * pattern and the text have bytes, multiplied. What stands before a '*' has matched as early as it
 * can, and no later start could help what follows. So only the last '*' is ever tried again, and
 * nothing nests. */
static int match_by_trying(const char *pattern, size_t plen, const char *s, size_t slen)
{
    const unsigned char *p = (const unsigned char *)pattern;
    const unsigned char *text = (const unsigned char *)s;
    size_t pi = 0, si = 0;
    size_t star_pi = SIZE_MAX, star_si = 0; /* where to go on when the rest does not match */
    while (si < slen) {
        size_t used;
        if (pi < plen && p[pi] == '*') {
            star_pi = ++pi;
            star_si = si;
        } else if (pi < plen && match_one(p + pi, plen - pi, text[si], &used)) {
            pi += used;
            si++;
        } else if (star_pi != SIZE_MAX) {
            pi = star_pi;
            si = ++star_si;
        } else {
            return 0;
        }
    }
    while (pi < plen && p[pi] == '*')
        pi++;
    return pi == plen;
}

/* ---- the tests ---- */

static const struct {
    const char *pattern, *text;
    int match;
} matches[] = {
    {"", "", 1},
    {"", "a", 0},
    {"a", "", 0},
    {"*", "", 1},
    {"*", "anything", 1},
    {"**", "", 1},
    {"a*", "abc", 1},
    {"*c", "abc", 1},
    {"*b", "abc", 0},
    {"a*c", "ac", 1},
    {"a*b*c", "axxbyyc", 1},
    {"a*b*c", "axxbyyd", 0},
    {"*ab", "aab", 1},
    {"*abac", "ababac", 1},
    {"?", "", 0},
    {"?", "a", 1},
    {"?", "ab", 0},
    {"a?c", "abc", 1},
    {"a?*", "a", 0},
    {"h[ae]llo", "hello", 1},
    {"h[ae]llo", "hillo", 0},
    {"h[^e]llo", "hallo", 1},
    {"h[^e]llo", "hello", 0},
    {"h[a-c]llo", "hbllo", 1},
    {"h[c-a]llo", "hbllo", 1},
    {"h[a-c]llo", "hdllo", 0},
    {"[a-cx-z]", "y", 1},
    {"[a-cx-z]", "m", 0},
    {"[-a]", "-", 1},
    {"[^]", "a", 1},
    {"[]", "a", 0},
    {"[", "a", 0},
    {"[", "[", 0},
    {"[ab", "b", 1},
    {"[a-", "-", 1},
    {"[\\]]", "]", 1},
    {"[\\^a]", "^", 1},
    {"[a\\-c]", "b", 0},
    {"[a\\-c]", "-", 1},
    {"[\\a-c]", "b", 0},
    {"[\\a-c]", "-", 1},
    {"[\\", "\\", 1},
    {"\\*", "*", 1},
    {"\\*", "a", 0},
    {"\\?x", "?x", 1},
    {"\\\\", "\\", 1},
    {"\\", "\\", 1},
    {"a\\", "a", 0},
    {"\\a", "a", 1},
    {"*[b]", "aab", 1},
    {"*\\*", "ab*", 1},
    {"A", "a", 0},
    {"[\x80-\xff]", "\xc3", 1},
    {"[\x80-\xff]", "a", 0},
};

static int match_once(const char *pattern, size_t plen, const char *s, size_t slen)
{
    struct glob *g = glob_new(pattern, plen);
    ck_assert_ptr_nonnull(g);
    int hit = glob_match(g, s, slen);
    ck_assert_int_eq(glob_match(g, s, slen), hit); /* nothing is left of the first time */
    glob_free(g);
    return hit;
}

START_TEST(match)
{
    const char *p = matches[_i].pattern, *s = matches[_i].text;
    ck_assert_msg(match_once(p, strlen(p), s, strlen(s)) == matches[_i].match, "\"%s\" on \"%s\"",
                  p, s);
    ck_assert_int_eq(match_by_trying(p, strlen(p), s, strlen(s)), matches[_i].match);
}
END_TEST

START_TEST(match_by_length)
{
    ck_assert_int_eq(match_once("a*c", 3, "a\0c", 3), 1);
    ck_assert_int_eq(match_once("a?c", 3, "a\0c", 3), 1);
    ck_assert_int_eq(match_once("abc", 2, "abd", 2), 1);
}
END_TEST

/* Most of random bytes would fit nothing: what fits is made from the text, and then one byte of
 * the pattern is another one. */
static size_t make_pattern(unsigned *seed, const char *text, size_t len, char *p)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        switch (rand_r(seed) % 12) {
        case 0:
            p[n++] = '?';
            break;
        case 1:
            p[n++] = '*';
            i += (size_t)rand_r(seed) % 5;
            break;
        case 2:
            n += (size_t)sprintf(p + n, "[%sa-c%c]", rand_r(seed) % 2 ? "^" : "", text[i]);
            break;
        case 3:
            n += (size_t)sprintf(p + n, "\\%c", text[i]);
            break;
        default:
            p[n++] = text[i];
        }
    }
    if (n > 0 && rand_r(seed) % 2)
        p[(size_t)rand_r(seed) % n] = "ab*?[]^-\\"[rand_r(seed) % 9];
    return n;
}

/* `longest` bytes of text: one word of states, and several. */
static void compare_random(size_t longest, int rounds)
{
    unsigned seed = 1;
    int hits = 0;
    for (int round = 0; round < rounds; round++) {
        char text[256], p[256 * 8];
        size_t slen = (size_t)rand_r(&seed) % longest;
        for (size_t i = 0; i < slen; i++)
            text[i] = "abcd"[rand_r(&seed) % 4];
        size_t plen = make_pattern(&seed, text, slen, p);
        if (plen > GLOB_MAX)
            continue;
        int expected = match_by_trying(p, plen, text, slen);
        ck_assert_msg(match_once(p, plen, text, slen) == expected, "\"%.*s\" on \"%.*s\"",
                      (int)plen, p, (int)slen, text);
        hits += expected;
    }
    ck_assert_int_gt(hits, rounds / 20);
    ck_assert_int_lt(hits, rounds - rounds / 20);
}

START_TEST(match_random)
{
    compare_random(12, 20000);
    compare_random(256, 1000);
}
END_TEST

/* Any bytes at all, in the pattern too. */
START_TEST(match_random_bytes)
{
    unsigned seed = 7;
    for (int round = 0; round < 20000; round++) {
        char p[9], s[5];
        size_t plen = (size_t)rand_r(&seed) % sizeof(p), slen = (size_t)rand_r(&seed) % sizeof(s);
        for (size_t i = 0; i < plen; i++)
            p[i] = rand_r(&seed) % 2 ? "[]^-\\*?a"[rand_r(&seed) % 8] : (char)rand_r(&seed);
        for (size_t i = 0; i < slen; i++)
            s[i] = rand_r(&seed) % 2 ? "[]^-\\*?a"[rand_r(&seed) % 8] : (char)rand_r(&seed);
        ck_assert_int_eq(match_once(p, plen, s, slen), match_by_trying(p, plen, s, slen));
    }
}
END_TEST

START_TEST(too_long)
{
    char pattern[GLOB_MAX + 1], text[GLOB_MAX];
    memset(pattern, '?', sizeof(pattern));
    memset(text, 'a', sizeof(text));
    ck_assert_ptr_null(glob_new(pattern, sizeof(pattern)));
    ck_assert_int_eq(match_once(pattern, GLOB_MAX, text, GLOB_MAX), 1);
    ck_assert_int_eq(match_once(pattern, GLOB_MAX, text, GLOB_MAX - 1), 0);
}
END_TEST

/* Each of these took a matcher that tries some hundred thousand steps for one text. */
START_TEST(match_is_fast)
{
    enum { TEXTS = 2000 };
    char pattern[GLOB_MAX], text[512];
    memset(text, 'a', sizeof(text));
    int64_t before_us = clock_us();
    memset(pattern, 'b', sizeof(pattern)); /* *[bbb...]z */
    memcpy(pattern, "*[", 2);
    memcpy(pattern + sizeof(pattern) - 2, "]z", 2);
    struct glob *of_class = glob_new(pattern, sizeof(pattern));
    for (size_t i = 0; i < sizeof(pattern); i += 2) /* *a*a...*z */
        memcpy(pattern + i, "*a", 2);
    pattern[sizeof(pattern) - 1] = 'z';
    struct glob *of_stars = glob_new(pattern, sizeof(pattern));
    memset(pattern, 'a', 256); /* *aaa...z */
    pattern[0] = '*';
    pattern[255] = 'z';
    struct glob *of_letters = glob_new(pattern, 256);
    for (int i = 0; i < TEXTS; i++)
        ck_assert(!glob_match(of_class, text, sizeof(text)) &&
                  !glob_match(of_stars, text, sizeof(text)) &&
                  !glob_match(of_letters, text, sizeof(text)));
    ck_assert_int_lt(clock_us() - before_us, 3000000);
    glob_free(of_class);
    glob_free(of_stars);
    glob_free(of_letters);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("glob");
    TCase *tc = tcase_create("glob");
    tcase_add_loop_test(tc, match, 0, LEN(matches));
    tcase_add_test(tc, match_by_length);
    tcase_add_test(tc, match_random);
    tcase_add_test(tc, match_random_bytes);
    tcase_add_test(tc, too_long);
    tcase_add_test(tc, match_is_fast);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
