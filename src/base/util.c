/* Small tools: memory, numbers, random bytes, the hash.
 *
 * Owns one thing, the key of util_hash: process-wide, drawn once, so that hashes may be kept. Knows
 * nothing of logs; util_die writes to stderr by itself, because it runs when memory is out. Text
 * comes with its length or ends in NUL, and is never trusted: each reader takes all or nothing. */
#include "base/util.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

_Noreturn void util_die(const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    /* A pipe that nobody reads must not keep us from dying. */
    struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&err, 1, 1000) == 1)
        fprintf(stderr, "fatal: %s\n", line);
    exit(EXIT_FAILURE);
}

void *util_alloc(size_t n)
{
    void *p = calloc(1, n > 0 ? n : 1);
    if (p == NULL)
        util_die("out of memory: cannot get %zu bytes", n);
    return p;
}

void *util_realloc(void *p, size_t n)
{
    p = realloc(p, n > 0 ? n : 1);
    if (p == NULL)
        util_die("out of memory: cannot get %zu bytes", n);
    return p;
}

char *util_strdup(const char *s)
{
    return s ? util_memdup(s, strlen(s)) : NULL;
}

char *util_format(const char *fmt, ...)
{
    char *text;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        util_die("out of memory: cannot get a text");
    va_end(ap);
    return text;
}

char *util_memdup(const void *p, size_t n)
{
    char *copy = util_realloc(NULL, n + 1);
    if (n > 0)
        memcpy(copy, p, n);
    copy[n] = '\0';
    return copy;
}

bool util_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

int util_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

enum { SAFE_DIGITS = 18 }; /* as many are no more than INT64_MAX */

/* Reads the digits at the start of s, at most len bytes. Returns how many there are; 0 when there
 * are none, when they have leading zeros, or when the number is above max, which is INT64_MAX or
 * more. */
static size_t read_digits(const char *s, size_t len, uint64_t max, uint64_t *out)
{
    const char *p = s, *end = s + len, *safe = len < SAFE_DIGITS ? end : s + SAFE_DIGITS;
    uint64_t value = 0;
    unsigned digit;
    for (; p < safe && (digit = (unsigned char)*p - '0') <= 9u; p++)
        value = value * 10 + digit;
    for (; p < end && (digit = (unsigned char)*p - '0') <= 9u; p++) {
        if (value > (max - digit) / 10)
            return 0;
        value = value * 10 + digit;
    }
    if (p > s + 1 && *s == '0')
        return 0;
    *out = value;
    return (size_t)(p - s);
}

int util_parse_int(const char *s, size_t len, int64_t min, int64_t max, int64_t *out)
{
    uint64_t magnitude;
    int64_t value;
    if (len > 0 && s[0] == '-') {
        size_t n = read_digits(s + 1, len - 1, (uint64_t)INT64_MAX + 1, &magnitude);
        if (n == 0 || n != len - 1 || magnitude == 0)
            return -1;
        value = -(int64_t)(magnitude - 1) - 1;
    } else {
        size_t n = read_digits(s, len, INT64_MAX, &magnitude);
        if (n == 0 || n != len)
            return -1;
        value = (int64_t)magnitude;
    }
    if (value < min || value > max)
        return -1;
    *out = value;
    return 0;
}

static const char pairs[] = "0001020304050607080910111213141516171819"
                            "2021222324252627282930313233343536373839"
                            "4041424344454647484950515253545556575859"
                            "6061626364656667686970717273747576777879"
                            "8081828384858687888990919293949596979899";

/* Takes four digits at a time, as a division by 10000 takes as long as one by 10, and those by what
 * is written for each two. */
char *util_digits(char *end, uint64_t n)
{
    for (; n >= 10000; n /= 10000) {
        unsigned four = (unsigned)(n % 10000);
        end -= 4;
        memcpy(end, pairs + (size_t)2 * (four / 100), 2);
        memcpy(end + 2, pairs + (size_t)2 * (four % 100), 2);
    }
    unsigned rest = (unsigned)n;
    if (rest >= 100) {
        end -= 2;
        memcpy(end, pairs + (size_t)2 * (rest % 100), 2);
        rest /= 100;
    }
    if (rest >= 10) {
        end -= 2;
        memcpy(end, pairs + (size_t)2 * rest, 2);
    } else {
        *--end = (char)('0' + rest);
    }
    return end;
}

char *util_put_many_digits(char *to, uint64_t n)
{
    char digits[20], *end = digits + sizeof digits;
    const char *first = util_digits(end, n);
    memcpy(to, first, (size_t)(end - first));
    return to + (end - first);
}

/* From large to small: the order in which they are written and must be read. */
static const struct {
    const char *name;
    int64_t ms;
} durations[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};

/* Finds the unit that the letters at s spell, from row `from` of durations on. */
static size_t find_duration(const char *s, size_t len, size_t from)
{
    size_t i = from;
    while (i < LEN(durations) &&
           (strlen(durations[i].name) != len || memcmp(durations[i].name, s, len) != 0))
        i++;
    return i;
}

int util_parse_duration(const char *s, int64_t *out_ms)
{
    if (util_parse_int(s, strlen(s), 0, INT64_MAX, out_ms) == 0)
        return 0;
    int64_t sum = 0;
    size_t unit = 0; /* the next one may not be larger than this row */
    do {
        uint64_t value;
        size_t n = read_digits(s, strlen(s), INT64_MAX, &value);
        if (n == 0)
            return -1;
        s += n;
        size_t letters = strcspn(s, "0123456789");
        unit = find_duration(s, letters, unit);
        if (unit == LEN(durations))
            return -1;
        int64_t part;
        if (__builtin_mul_overflow((int64_t)value, durations[unit].ms, &part) ||
            __builtin_add_overflow(sum, part, &sum))
            return -1;
        s += letters;
        unit++;
    } while (*s != '\0');
    *out_ms = sum;
    return 0;
}

int util_format_duration(char *buf, size_t size, int64_t ms)
{
    char text[48] = "";
    int len = 0;
    uint64_t rest = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;
    if (ms < 0)
        text[len++] = '-';
    for (size_t i = 0; i < LEN(durations); i++) {
        uint64_t count = rest / (uint64_t)durations[i].ms;
        rest -= count * (uint64_t)durations[i].ms;
        if (count > 0)
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%llu%s",
                            (unsigned long long)count, durations[i].name);
    }
    return snprintf(buf, size, "%s", len > 0 ? text : "0s");
}

int util_parse_size(const char *s, int64_t *out_bytes)
{
    static const struct {
        const char *name;
        int shift;
    } sizes[] = {
        {"", 0},    {"b", 0},  {"k", 10},  {"kb", 10}, {"m", 20},
        {"mb", 20}, {"g", 30}, {"gb", 30}, {"t", 40},  {"tb", 40},
    };
    uint64_t value;
    size_t n = read_digits(s, strlen(s), INT64_MAX, &value);
    if (n == 0)
        return -1;
    for (size_t i = 0; i < LEN(sizes); i++) {
        if (strcasecmp(s + n, sizes[i].name) != 0)
            continue;
        if (value > (uint64_t)INT64_MAX >> sizes[i].shift)
            return -1;
        *out_bytes = (int64_t)(value << sizes[i].shift);
        return 0;
    }
    return -1;
}

const char *util_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

void util_random(void *buf, size_t n)
{
    char *p = buf;
    while (n > 0) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0 && errno != EINTR)
            util_die("getrandom: %s", strerror(errno));
        if (got > 0) {
            p += got;
            n -= (size_t)got;
        }
    }
}

void util_random_id(char *out, size_t n)
{
    util_random(out, n);
    for (size_t i = 0; i < n; i++)
        out[i] = "abcdefghijklmnopqrstuvwxyz234567"[(unsigned char)out[i] & 31];
    out[n] = '\0';
}

/* xorshift64*, by Marsaglia and Vigna: jitter needs no more. */
uint64_t util_jitter(uint64_t *state, uint64_t below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return below ? (*state * 0x2545f4914f6cdd1dULL >> 11) % below : 0;
}

static struct {
    uint64_t k0, k1;
    bool drawn;
} hash_key;

void util_hash_seed(uint64_t k0, uint64_t k1)
{
    hash_key.k0 = k0;
    hash_key.k1 = k1;
    hash_key.drawn = true;
}

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* Mixes the state once: SipRound, figure 2.1 of the paper. */
static inline __attribute__((always_inline)) void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

/* Returns the next 8 bytes as a little-endian word. */
static inline uint64_t load_word(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return le64toh(word);
}

uint32_t util_fixed_hash(const char *text, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

uint64_t util_hash(const void *p, size_t n)
{
    if (!hash_key.drawn) {
        uint64_t k[2];
        util_random(k, sizeof(k));
        util_hash_seed(k[0], k[1]);
    }
    uint64_t v[4] = {
        hash_key.k0 ^ UINT64_C(0x736f6d6570736575),
        hash_key.k1 ^ UINT64_C(0x646f72616e646f6d),
        hash_key.k0 ^ UINT64_C(0x6c7967656e657261),
        hash_key.k1 ^ UINT64_C(0x7465646279746573),
    };
    const unsigned char *bytes = p;
    size_t whole = n - n % 8;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word = load_word(bytes + i);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)n << 56;
    for (size_t i = whole; i < n; i++)
        last |= (uint64_t)bytes[i] << (8 * (i - whole));
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
