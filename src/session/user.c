/* The users, their passwords and patterns.
 *
 * Owns the set. A password that was right is remembered as a digest under a key that never leaves
 * this process, so that a pool of connections does not pay for the hash each time. */
#include "session/user.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/password.h"
#include "base/util.h"
#include "conf/conf.h"

static struct user *users[CONF_USERS_MAX];
static size_t n_users;
static unsigned generation;
static unsigned char digest_key[32];
static bool has_key;
static char nobodys_hash[PASSWORD_HASH_MAX];
static int iterations = PASSWORD_ITERATIONS; /* of the slowest hash */

/* ---- the set ---- */

static void clear(struct user *u)
{
    for (size_t i = 0; i < u->n_patterns; i++)
        glob_free(u->patterns[i]);
    free(u->patterns);
    free(u->hash);
    free(u->certificate);
    free(u->names);
    u->names = NULL;
    u->patterns = NULL;
    u->n_patterns = 0;
    u->hash = u->certificate = NULL;
}

static void set_patterns(struct user *u, const char *names)
{
    char *text = util_strdup(names), *rest = text, *word;

    u->all_names = false;
    while ((word = strsep(&rest, " \t")) != NULL) {
        if (*word == '\0')
            continue;
        u->patterns = util_realloc(u->patterns, (u->n_patterns + 1) * sizeof u->patterns[0]);
        u->patterns[u->n_patterns++] = glob_new(word, strlen(word)); /* conf bounds its length */
        u->all_names = u->all_names || strcmp(word, "*") == 0;
    }
    free(text);
}

static void apply_conf(struct user *u, const struct conf_user *c)
{
    bool same = u->hash && c->hash && strcmp(u->hash, c->hash) == 0;

    u->known = u->known && same;
    u->changed = u->names && (u->allow != c->allow || strcmp(u->names, c->names) != 0);
    clear(u);
    u->hash = util_strdup(c->hash);
    u->names = util_strdup(c->names);
    u->nopass = c->nopass;
    u->allow = c->allow;
    u->uid = c->uid;
    u->certificate = util_strdup(c->certificate);
    set_patterns(u, c->names);
}

static struct user *take_old(const char *name)
{
    for (size_t i = 0; i < n_users; i++)
        if (users[i] && strcmp(users[i]->name, name) == 0) {
            struct user *u = users[i];
            users[i] = NULL;
            return u;
        }
    return NULL;
}

static void mark_gone(struct user *u)
{
    if (!u)
        return;
    u->gone = true;
    user_unref(u);
}

void users_configure(const struct conf *conf)
{
    struct user *fresh[CONF_USERS_MAX] = {0}; /* gcc -O2 does not see that what is copied is set */

    generation++;
    if (conf->user_count > 0 && !has_key) {
        has_key = true;
        util_random(digest_key, sizeof digest_key);
        password_hash((const char *)digest_key, sizeof digest_key, nobodys_hash);
    }
    for (size_t i = 0; i < conf->user_count; i++) {
        const struct conf_user *c = &conf->users[i];
        fresh[i] = take_old(c->name);
        if (!fresh[i]) {
            fresh[i] = util_alloc(sizeof *fresh[i]);
            fresh[i]->name = util_strdup(c->name);
            fresh[i]->refs = 1;
        }
        apply_conf(fresh[i], c);
    }
    for (size_t i = 0; i < n_users; i++)
        mark_gone(users[i]);
    n_users = conf->user_count;
    memcpy(users, fresh, n_users * sizeof users[0]);
    iterations = PASSWORD_ITERATIONS;
    for (size_t i = 0; i < n_users; i++)
        if (users[i]->hash && password_iterations(users[i]->hash) > iterations)
            iterations = password_iterations(users[i]->hash);
}

void users_fini(void)
{
    for (size_t i = 0; i < n_users; i++)
        mark_gone(users[i]);
    n_users = 0;
}

unsigned users_generation(void)
{
    return generation;
}

bool users_active(void)
{
    return n_users > 0;
}

size_t users_count(void)
{
    return n_users;
}

struct user *users_at(size_t i)
{
    return users[i];
}

struct user *user_find(const char *name, size_t len)
{
    for (size_t i = 0; i < n_users; i++)
        if (strlen(users[i]->name) == len && memcmp(users[i]->name, name, len) == 0)
            return users[i];
    return NULL;
}

struct user *user_of_uid(int64_t uid)
{
    for (size_t i = 0; i < n_users; i++)
        if (users[i]->uid >= 0 && users[i]->uid == uid)
            return users[i];
    return NULL;
}

struct user *user_of_certificate(const char *common_name)
{
    for (size_t i = 0; i < n_users; i++)
        if (users[i]->certificate && strcmp(users[i]->certificate, common_name) == 0)
            return users[i];
    return NULL;
}

struct user *user_of_nobody(void)
{
    struct user *u = user_find("default", 7);

    return u && u->nopass ? u : NULL;
}

struct user *user_ref(struct user *u)
{
    u->refs++;
    return u;
}

void user_unref(struct user *u)
{
    if (!u || --u->refs > 0)
        return;
    clear(u);
    OPENSSL_cleanse(u->digest, sizeof u->digest);
    free(u->name);
    free(u);
}

/* ---- passwords ---- */

void user_digest(const char *name, size_t name_len, const char *password, size_t password_len,
                 unsigned char out[USER_DIGEST])
{
    unsigned n = USER_DIGEST;
    unsigned char key[32];

    /* A key for each name: no name and password run into each other. */
    if (!HMAC(EVP_sha256(), digest_key, sizeof digest_key, (const unsigned char *)name, name_len,
              key, &n) ||
        !HMAC(EVP_sha256(), key, sizeof key, (const unsigned char *)password, password_len, out,
              &n))
        util_die("cannot compute a digest");
    OPENSSL_cleanse(key, sizeof key);
}

bool user_knows(const struct user *u, const unsigned char digest[USER_DIGEST])
{
    return u->known && CRYPTO_memcmp(digest, u->digest, USER_DIGEST) == 0;
}

void user_learn(struct user *u, const unsigned char digest[USER_DIGEST])
{
    u->known = true;
    memcpy(u->digest, digest, USER_DIGEST);
}

const char *user_hash(const struct user *u)
{
    return u && u->hash ? u->hash : nobodys_hash;
}

int user_iterations(void)
{
    return iterations;
}

bool user_may_lock(const struct user *u, const char *name, size_t len)
{
    return !users_active() ||
           (u && !u->gone && (u->allow & CONF_ALLOW_LOCK) && user_may_use(u, name, len));
}

bool user_may_use(const struct user *u, const char *name, size_t len)
{
    if (u->all_names)
        return true;
    for (size_t i = 0; i < u->n_patterns; i++)
        if (glob_match(u->patterns[i], name, len))
            return true;
    return false;
}

int64_t user_steps(const struct user *u, size_t len)
{
    int64_t steps = 0;

    for (size_t i = 0; i < u->n_patterns && !u->all_names; i++)
        steps += (int64_t)glob_steps(u->patterns[i], len);
    return steps;
}
