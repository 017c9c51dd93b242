#pragma once
/*
 * user: who may do what. There is one set of users in the process, made from the section [users];
 * while it is empty nobody has to log in and everything is allowed.
 *
 * A user keeps its address as long as somebody refers to it: a reload changes it in place, and
 * marks one that is no longer there as gone.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conf;
struct glob;

enum { USER_DIGEST = 32 };

struct user {
    char *name;
    char *hash; /* of the password; NULL: no password is right */
    bool
        nopass; /* any password is right; "default" is then every connection that does not log in */
    unsigned allow;         /* enum conf_allow */
    char *names;            /* the patterns as configured, */
    struct glob **patterns; /* and one by one */
    size_t n_patterns;
    bool all_names;    /* one of the patterns is "*" */
    int64_t uid;       /* of a peer over a Unix socket; -1: none */
    char *certificate; /* the common name of a client's certificate; NULL: none */
    bool gone;
    bool changed; /* what it may do is not what it was before the last users_configure() */
    unsigned refs;
    bool known;                        /* `digest` is that of its password, */
    unsigned char digest[USER_DIGEST]; /* see user_digest() */
};

void users_configure(const struct conf *);
void users_fini(void);

/* Returns another number after each users_configure(). */
unsigned users_generation(void);

/* Returns false when there are none: nobody has to log in. */
bool users_active(void);
size_t users_count(void);
struct user *users_at(size_t i);

struct user *user_find(const char *name, size_t len);
struct user *user_of_uid(int64_t uid);
struct user *user_of_certificate(const char *common_name);
/* Returns the user of connections that do not log in; NULL if there is none. */
struct user *user_of_nobody(void);

/* Passwords; login.h decides about them.
 *
 * Makes a digest of a name and a password under keys that this process has drawn. */
void user_digest(const char *name, size_t name_len, const char *password, size_t password_len,
                 unsigned char out[USER_DIGEST]);
/* Returns true when this is the digest of a password that was found right before. Takes the same
 * time for each. */
bool user_knows(const struct user *, const unsigned char digest[USER_DIGEST]);
void user_learn(struct user *, const unsigned char digest[USER_DIGEST]);
/* Returns the hash to compare a password with. For a user without a password, and for NULL: one
 * that no password fits. */
const char *user_hash(const struct user *);
/* Returns how many iterations each comparison takes: those of the slowest hash. */
int user_iterations(void);

bool user_may_use(const struct user *, const char *name, size_t len);
/* Returns true when the user may take this lock. NULL, a connection without a user, may while there
 * are no users. */
bool user_may_lock(const struct user *, const char *name, size_t len);
/* Returns what that costs at most; see glob_steps(). */
int64_t user_steps(const struct user *, size_t len);

struct user *user_ref(struct user *);
void user_unref(struct user *); /* also NULL */
