/* user: the section [users]: names, hashes of passwords, and what each user may do.
 *
 * Knows how a user is written, not how one is recognised. A message never repeats a hash.
 *
 * Invariants: names are unique and keep the order in which they were first seen; a user without a
 * line of its own name has only been mentioned by an option, and conf_check refuses it; the array
 * has room for CONF_USERS_MAX. */
#include "conf/private.h"

#include <stdlib.h>
#include <string.h>

#include "base/glob.h"

#include "base/password.h"

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-@"

static const struct conf_name allow_names[] = {{"lock", CONF_ALLOW_LOCK},
                                               {"drop-in", CONF_ALLOW_DROP_IN},
                                               {"inspect", CONF_ALLOW_INSPECT},
                                               {"admin", CONF_ALLOW_ADMIN},
                                               {NULL, 0}};

void conf_clear_users(struct conf *conf)
{
    for (size_t i = 0; i < conf->user_count; i++) {
        struct conf_user *u = &conf->users[i];
        free(u->name);
        free(u->hash);
        free(u->names);
        free(u->certificate);
    }
    free(conf->users);
    conf->users = NULL;
    conf->user_count = 0;
}

void conf_users_copy(struct conf *dst, const struct conf *src)
{
    dst->user_count = src->user_count;
    dst->users = src->user_count > 0 ? util_alloc(CONF_USERS_MAX * sizeof(*dst->users)) : NULL;
    for (size_t i = 0; i < src->user_count; i++) {
        struct conf_user *to = &dst->users[i];
        *to = src->users[i];
        to->name = util_strdup(to->name);
        to->names = util_strdup(to->names);
        to->hash = util_strdup(to->hash);
        to->certificate = util_strdup(to->certificate);
    }
}

bool conf_users_same(const struct conf *a, const struct conf *b)
{
    if (a->user_count != b->user_count)
        return false;
    for (size_t i = 0; i < a->user_count; i++) {
        const struct conf_user *x = &a->users[i], *y = &b->users[i];
        if (!util_same_text(x->name, y->name) || !util_same_text(x->hash, y->hash) ||
            !util_same_text(x->names, y->names) ||
            !util_same_text(x->certificate, y->certificate) || x->nopass != y->nopass ||
            x->allow != y->allow || x->uid != y->uid)
            return false;
    }
    return true;
}

/* ---- one option ---- */

static int set_password(struct conf_user *u, const char *value, struct conf_error *err)
{
    bool nopass = strcmp(value, "nopass") == 0, none = strcmp(value, "none") == 0;

    if (nopass && strcmp(u->name, "default") != 0)
        return conf_refuse(err, "only the user default can be nopass");
    if (!nopass && !none && !password_is_hash(value))
        return conf_refuse(err, "must be what holdfastd --hash-password prints, or none");
    free(u->hash);
    u->hash = nopass || none ? NULL : util_strdup(value);
    u->nopass = nopass;
    u->defined = true;
    return 0;
}

static int set_allow(struct conf_user *u, const char *value, struct conf_error *err)
{
    char *text = util_strdup(value), *rest = text, *word;
    unsigned allow = 0;
    int rc = 0;

    while (rc == 0 && (word = strsep(&rest, " \t,")) != NULL) {
        const struct conf_name *name = allow_names;
        while (name->name != NULL && strcmp(name->name, word) != 0)
            name++;
        if (name->name != NULL)
            allow |= (unsigned)name->value;
        else if (*word != '\0')
            rc = conf_refuse(err, "must be some of lock, drop-in, inspect and admin");
    }
    free(text);
    if (rc == 0)
        u->allow = allow;
    return rc;
}

static int set_names(struct conf_user *u, const char *value, struct conf_error *err)
{
    if (value[strspn(value, " \t")] == '\0')
        return conf_refuse(err, "must be patterns of names, such as orders:* jobs:*");
    for (const char *p = value; *p != '\0'; p += strspn(p, " \t")) {
        size_t len = strcspn(p, " \t");
        if (len > GLOB_MAX)
            return conf_refuse(err, "a pattern of names has at most %d bytes", GLOB_MAX);
        p += len;
    }
    free(u->names);
    u->names = util_strdup(value);
    return 0;
}

static int set_uid(struct conf_user *u, const char *value, struct conf_error *err)
{
    if (util_parse_int(value, strlen(value), 0, UINT32_MAX - 1, &u->uid) != 0)
        return conf_refuse(err, "must be the number of a user of this machine, as id -u says");
    return 0;
}

static int set_certificate(struct conf_user *u, const char *value, struct conf_error *err)
{
    if (value[0] == '\0' || strlen(value) > 64)
        return conf_refuse(err, "must be the common name (CN) of a client's certificate");
    free(u->certificate);
    u->certificate = util_strdup(value);
    return 0;
}

static const struct {
    const char *key; /* what stands behind the name of the user */
    int (*set)(struct conf_user *, const char *value, struct conf_error *);
} setters[CONF_USER_KEYS] = {{"", set_password},
                             {".allow", set_allow},
                             {".names", set_names},
                             {".uid", set_uid},
                             {".certificate", set_certificate}};

/* ---- setting by name ---- */

static struct conf_user *find_or_add(struct conf *conf, const char *name, size_t len,
                                     struct conf_error *err)
{
    for (size_t i = 0; i < conf->user_count; i++) {
        struct conf_user *u = &conf->users[i];
        if (strlen(u->name) == len && memcmp(u->name, name, len) == 0)
            return u;
    }
    if (len == 0 || len > CONF_USER_NAME_MAX || strspn(name, NAME_BYTES) < len) {
        conf_refuse(err, "a user's name is 1 to %d of the bytes A-Z a-z 0-9 _ - @",
                    CONF_USER_NAME_MAX);
        return NULL;
    }
    if (conf->user_count == CONF_USERS_MAX) {
        conf_refuse(err, "more than %d users", CONF_USERS_MAX);
        return NULL;
    }
    if (conf->users == NULL)
        conf->users = util_alloc(CONF_USERS_MAX * sizeof(*conf->users));
    struct conf_user *u = &conf->users[conf->user_count++];
    *u = (struct conf_user){.name = util_memdup(name, len),
                            .names = util_strdup("*"),
                            .allow = CONF_ALLOW_LOCK | CONF_ALLOW_DROP_IN | CONF_ALLOW_INSPECT,
                            .uid = -1};
    return u;
}

int conf_user_set(struct conf *conf, const char *key, const char *value, int line,
                  struct conf_error *err)
{
    size_t len = strcspn(key, "."), before = conf->user_count;
    int i = 0, rc;

    while (i < CONF_USER_KEYS && strcmp(key + len, setters[i].key) != 0)
        i++;
    if (i == CONF_USER_KEYS)
        return conf_refuse(err, "a user has only .allow, .names, .uid and .certificate");
    struct conf_user *u = find_or_add(conf, key, len, err);
    if (u == NULL)
        return -1;
    if (line > 0 && u->line[i] > 0)
        return conf_refuse(err, "is set in line %d already", u->line[i]);
    rc = setters[i].set(u, value, err);
    if (rc == 0) {
        u->line[i] = line;
    } else if (conf->user_count > before) { /* it is as if it had never been mentioned */
        free(u->name);
        free(u->names);
        conf->user_count--;
    }
    return rc;
}
