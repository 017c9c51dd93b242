/* The users, their passwords and patterns, and who has to wait after a wrong password.
 *
 * Owns the set, and a table of penalties of fixed size: one entry an address and group of names,
 * found by a keyed hash of both; two that meet in one entry drive each other out, which only
 * shortens a wait.
 *
 * A password that was right is remembered as a digest under a key that never leaves this process,
 * so that a pool of connections does not pay for the hash each time. A wrong one always pays, for a
 * user that does not exist too. */
#include "user.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "password.h"
#include "util.h"

enum {
    PENALTIES = 1024,
    NAME_GROUPS = 16,
    PENALTY_FIRST_MS = 200,
    PENALTY_MAX_MS = 2000,
    PENALTY_FORGET_MS = 60 * 1000
};

static struct user *users[CONF_USERS_MAX];
static size_t n_users;
static unsigned char digest_key[32];
static bool has_key;
static char nobodys_hash[PASSWORD_HASH_MAX];

static struct penalty {
    uint64_t who; /* 0: free */
    unsigned failures;
    int64_t last_ms, until_ms;
} penalties[PENALTIES];

/* ---- the set ---- */

static char *copy(const char *s)
{
    return s ? util_strdup(s) : NULL;
}

static void clear(struct user *u)
{
    for (size_t i = 0; i < u->n_patterns; i++)
        free(u->patterns[i]);
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
        u->patterns[u->n_patterns++] = util_strdup(word);
        u->all_names = u->all_names || strcmp(word, "*") == 0;
    }
    free(text);
}

static void set(struct user *u, const struct conf_user *c)
{
    bool same = u->hash && c->hash && strcmp(u->hash, c->hash) == 0;

    u->known = u->known && same;
    u->changed = u->names && (u->allow != c->allow || strcmp(u->names, c->names) != 0);
    clear(u);
    u->hash = copy(c->hash);
    u->names = util_strdup(c->names);
    u->nopass = c->nopass;
    u->allow = c->allow;
    u->uid = c->uid;
    u->certificate = copy(c->certificate);
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

static void let_go(struct user *u)
{
    if (!u)
        return;
    u->gone = true;
    user_unref(u);
}

static void draw_key(void)
{
    if (has_key)
        return;
    has_key = true;
    util_random(digest_key, sizeof digest_key);
    password_hash("", 0, nobodys_hash);
}

void users_configure(const struct conf *conf)
{
    struct user *fresh[CONF_USERS_MAX];

    if (conf->user_count > 0)
        draw_key();
    for (size_t i = 0; i < conf->user_count; i++) {
        const struct conf_user *c = &conf->users[i];
        fresh[i] = take_old(c->name);
        if (!fresh[i]) {
            fresh[i] = util_alloc(sizeof *fresh[i]);
            fresh[i]->name = util_strdup(c->name);
            fresh[i]->refs = 1;
        }
        set(fresh[i], c);
    }
    for (size_t i = 0; i < n_users; i++)
        let_go(users[i]);
    n_users = conf->user_count;
    memcpy(users, fresh, n_users * sizeof users[0]);
}

void users_fini(void)
{
    for (size_t i = 0; i < n_users; i++)
        let_go(users[i]);
    n_users = 0;
    memset(penalties, 0, sizeof penalties);
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

static void digest_of(const char *password, size_t len, unsigned char out[32])
{
    unsigned n = 32;

    if (!HMAC(EVP_sha256(), digest_key, sizeof digest_key, (const unsigned char *)password, len,
              out, &n))
        util_die("cannot compute a digest");
}

struct user *user_check(const char *name, size_t name_len, const char *password,
                        size_t password_len)
{
    struct user *u = user_find(name, name_len);
    unsigned char digest[32];

    if (u && u->nopass)
        return u;
    digest_of(password, password_len, digest);
    bool fits = u && u->hash && u->known && CRYPTO_memcmp(digest, u->digest, sizeof digest) == 0;
    if (!fits) {
        fits = password_fits(u && u->hash ? u->hash : nobodys_hash, password, password_len) && u &&
               u->hash;
        if (fits) {
            u->known = true;
            memcpy(u->digest, digest, sizeof digest);
        }
    }
    OPENSSL_cleanse(digest, sizeof digest);
    return fits ? u : NULL;
}

bool user_may_use(const struct user *u, const char *name, size_t len)
{
    if (u->all_names)
        return true;
    for (size_t i = 0; i < u->n_patterns; i++)
        if (util_match(u->patterns[i], strlen(u->patterns[i]), name, len))
            return true;
    return false;
}

/* ---- penalties ---- */

/* Names wait in NAME_GROUPS groups, whether there is such a user or not: who tries names must not
 * learn from a wait which of them exist, and must not have a first try without a wait, which costs
 * us some milliseconds, for every name that there is. */
static unsigned group_of(const char *name, size_t len)
{
    uint32_t h = 2166136261u; /* FNV-1a: who shares a group with whom is no secret */

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    return (h ^ h >> 16) % NAME_GROUPS;
}

static struct penalty *find(const char *address, const char *name, size_t len, uint64_t *who)
{
    char text[160];
    int n = snprintf(text, sizeof text, "%.127s %u", address, group_of(name, len));

    *who = util_hash(text, (size_t)n) | 1;
    return &penalties[(*who >> 1) % PENALTIES];
}

int64_t user_penalty_until(const char *address, const char *name, size_t name_len, int64_t now_ms)
{
    uint64_t who;
    const struct penalty *p = find(address, name, name_len, &who);

    return p->who == who && p->until_ms > now_ms ? p->until_ms : 0;
}

void user_penalty_add(const char *address, const char *name, size_t name_len, int64_t now_ms)
{
    uint64_t who;
    struct penalty *p = find(address, name, name_len, &who);
    int64_t wait_ms = PENALTY_FIRST_MS;

    if (p->who != who || now_ms - p->last_ms > PENALTY_FORGET_MS)
        *p = (struct penalty){.who = who};
    for (unsigned i = 0; i < p->failures && wait_ms < PENALTY_MAX_MS; i++)
        wait_ms *= 2;
    p->failures++;
    p->last_ms = now_ms;
    p->until_ms = now_ms + (wait_ms < PENALTY_MAX_MS ? wait_ms : PENALTY_MAX_MS);
}
