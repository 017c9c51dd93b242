#pragma once
/*
 * password: salted hashes of passwords, PBKDF2 with HMAC-SHA-256 (RFC 8018), as text:
 *
 *     pbkdf2-sha256:ITERATIONS:SALT:HASH        salt (16 bytes) and hash (32 bytes) in hexadecimal
 *
 * The number of iterations is bounded, since a broker has one thread for them (hasher.h): the
 * default takes a few milliseconds. So a password should be a long random one, as programs can
 * have.
 */
#include <stdbool.h>
#include <stddef.h>

enum { PASSWORD_HASH_MAX = 160, PASSWORD_ITERATIONS = 10000, PASSWORD_ITERATIONS_MAX = 20000 };

/* Makes a hash with a new salt. */
void password_hash(const char *password, size_t len, char out[PASSWORD_HASH_MAX]);

/* Returns true when this is the text of a hash. */
bool password_is_hash(const char *text);

/* Returns its number of iterations; 0 if it is no hash. */
int password_iterations(const char *hash);

/* Returns true when the password fits the hash; false also when `hash` is none. Takes the time of
 * so many iterations, or of those of the hash when these are more, in each case, so that the time
 * tells nothing. */
bool password_fits(const char *hash, const char *password, size_t len, int iterations);
