/* Salted hashes of passwords as text, and whether a password fits one. Keeps nothing; what it has
 * computed is wiped. */
#include "base/password.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

enum { SALT_LEN = 16, KEY_LEN = 32, ITERATIONS_MIN = 1000 };

#define SCHEME "pbkdf2-sha256:"

struct parts {
    int64_t iterations;
    unsigned char salt[SALT_LEN], key[KEY_LEN];
};

/* Reads exactly n bytes in hexadecimal, in small letters; returns the end of them, or NULL. */
static const char *parse_hex(const char *text, unsigned char *out, size_t n)
{
    if (strspn(text, "0123456789abcdef") < 2 * n)
        return NULL;
    for (size_t i = 0; i < n; i++)
        out[i] =
            (unsigned char)(util_hex_digit(text[2 * i]) * 16 + util_hex_digit(text[2 * i + 1]));
    return text + 2 * n;
}

static int parse_hash(const char *text, struct parts *p)
{
    size_t len;

    if (strncmp(text, SCHEME, strlen(SCHEME)) != 0)
        return -1;
    text += strlen(SCHEME);
    len = strcspn(text, ":");
    if (util_parse_int(text, len, ITERATIONS_MIN, PASSWORD_ITERATIONS_MAX, &p->iterations) != 0 ||
        text[len] != ':')
        return -1;
    text = parse_hex(text + len + 1, p->salt, SALT_LEN);
    if (!text || *text != ':')
        return -1;
    text = parse_hex(text + 1, p->key, KEY_LEN);
    return text && *text == '\0' ? 0 : -1;
}

static void derive(const struct parts *p, const char *password, size_t len,
                   unsigned char key[KEY_LEN])
{
    if (PKCS5_PBKDF2_HMAC(password, (int)len, p->salt, SALT_LEN, (int)p->iterations, EVP_sha256(),
                          KEY_LEN, key) != 1)
        util_die("cannot compute the hash of a password");
}

static size_t append_hex(char *out, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 2 * n;
}

void password_hash(const char *password, size_t len, char out[PASSWORD_HASH_MAX])
{
    struct parts p = {.iterations = PASSWORD_ITERATIONS};
    size_t n;

    util_random(p.salt, sizeof p.salt);
    derive(&p, password, len, p.key);
    n = (size_t)snprintf(out, PASSWORD_HASH_MAX, SCHEME "%d:", PASSWORD_ITERATIONS);
    n += append_hex(out + n, p.salt, SALT_LEN);
    out[n++] = ':';
    append_hex(out + n, p.key, KEY_LEN);
    OPENSSL_cleanse(&p, sizeof p);
}

bool password_is_hash(const char *text)
{
    return password_iterations(text) > 0;
}

int password_iterations(const char *hash)
{
    struct parts p;

    return parse_hash(hash, &p) == 0 ? (int)p.iterations : 0;
}

bool password_fits(const char *hash, const char *password, size_t len, int iterations)
{
    struct parts p;
    unsigned char key[KEY_LEN], unused[KEY_LEN];

    if (parse_hash(hash, &p) != 0)
        return false;
    derive(&p, password, len, key);
    bool fits = CRYPTO_memcmp(key, p.key, KEY_LEN) == 0;
    if (iterations > p.iterations) {
        p.iterations = iterations - p.iterations;
        derive(&p, password, len, unused);
    }
    OPENSSL_cleanse(key, sizeof key);
    return fits;
}
