/* util: small tools: memory that does not fail, strict numbers, random bytes, and a hash that
 * strangers cannot aim at.
 *
 * The room base has what everything stands on: memory, bytes, time, the timer wheel, the log,
 * checked state machines, passwords. Nothing here knows of locks, sockets or Redis. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK __attribute__((warn_unused_result))

/* Memory. When it is out the process ends through util_die. The caller frees with free(3). A size
 * of 0 gives a pointer that may be freed. */
void *util_alloc(size_t n); /* zeroed */
void *util_realloc(void *p, size_t n);
char *util_strdup(const char *s); /* NULL for NULL */
char *util_memdup(const void *p,
                  size_t n); /* copies n bytes, which may hold NULs, and appends a NUL */
/* Returns a text as printf would write it. */
char *util_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Returns true when both texts are the same, or both are NULL. */
bool util_same_text(const char *a, const char *b);

/* Returns what a hexadecimal digit of either case stands for; -1: it is none. */
int util_hex_digit(char c);

/* Reads all len bytes of s as one decimal number in min..max. One number has one spelling: no
 * '+', no spaces, no leading zeros, no "-0". Returns 0, or -1 and leaves *out alone. */
int util_parse_int(const char *s, size_t len, int64_t min, int64_t max, int64_t *out) MUST_CHECK;

/* Writes the decimal digits of n so that they end before `end`, 20 at most; returns the first. */
char *util_digits(char *end, uint64_t n);
char *util_put_many_digits(char *to, uint64_t n); /* for util_put_digits() alone */
/* Writes the same from `to` on, 20 bytes at most and no NUL; returns the end. */
static inline char *util_put_digits(char *to, uint64_t n)
{
    if (n >= 10)
        return util_put_many_digits(to, n);
    *to = (char)('0' + n); /* what most numbers of a protocol are */
    return to + 1;
}

/* Reads "250ms" "30s" "5m" "1h" "2d", and these joined from large to small, each unit once:
 * "1m30s". A bare number is in ms. Never negative. Reads whatever util_format_duration writes for
 * ms >= 0. Returns 0, or -1 and leaves *out_ms alone. */
int util_parse_duration(const char *s, int64_t *out_ms) MUST_CHECK;

/* Reads "512" "512b" "64k" "64kb" "16mb" "1g" "1tb", in either case, powers of 1024, never
 * negative. Returns 0, or -1 and leaves *out_bytes alone. */
int util_parse_size(const char *s, int64_t *out_bytes) MUST_CHECK;

/* Writes the exact duration, as "30s", "1m30s", "250ms" or "0s". Returns what snprintf would; 48
 * bytes are enough for every value. */
int util_format_duration(char *buf, size_t size, int64_t ms);

static inline int64_t util_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns the ending of a noun behind the number n: "" for one, else "s". */
const char *util_plural(int64_t n);

/* Fills buf by getrandom(2): good for secrets. */
void util_random(void *buf, size_t n);

/* Writes n characters of [a-z2-7], 5 random bits each, and a NUL: out holds n + 1 bytes. */
void util_random_id(char *out, size_t n);

/* Returns a number below `below`, for jitter, and moves the state, which is not 0: the same
 * sequence for the same state. */
uint64_t util_jitter(uint64_t *state, uint64_t below);

/* Hashes by SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) with a
 * key that is drawn at the first use, because names come from strangers. */
uint64_t util_hash(const void *p, size_t n);
/* The same in every process for ever, for what brokers must agree on: FNV-1a. */
uint32_t util_fixed_hash(const char *text, size_t len);

/* Sets the key, before anything is hashed: for tests that want the same order in every run. */
void util_hash_seed(uint64_t k0, uint64_t k1);

/* Writes one line on stderr and exits with status 1. */
_Noreturn void util_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
