#ifndef HOLDFAST_USER_H
#define HOLDFAST_USER_H
/*
 * user: who may do what. One set a process, made from the section [users]; while it is empty
 * nobody has to say who he is and everything is allowed.
 *
 * A user keeps its address as long as somebody refers to it: a reload changes it in place, and
 * marks one that is no longer there as gone.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conf;

struct user {
    char *name;
    char *hash;      /* of the password; NULL: no password is right */
    bool nopass;     /* any password is right; "default" is then everybody who says nothing */
    unsigned allow;  /* enum conf_allow */
    char *names;     /* the patterns as configured, */
    char **patterns; /* and one by one */
    size_t n_patterns;
    bool all_names;    /* one of the patterns is "*" */
    int64_t uid;       /* of a peer over a Unix socket; -1: none */
    char *certificate; /* the common name of a client's certificate; NULL: none */
    bool gone;
    bool changed; /* what it may do is not what it was before the last users_configure() */
    unsigned refs;
    bool known;               /* `digest` is that of its password, */
    unsigned char digest[32]; /* with a key that this process has drawn */
};

void users_configure(const struct conf *);
void users_fini(void);

/* False: there are none, and nothing is asked of anybody. */
bool users_active(void);
size_t users_count(void);
struct user *users_at(size_t i);

struct user *user_find(const char *name, size_t len);
struct user *user_of_uid(int64_t uid);
struct user *user_of_certificate(const char *common_name);
/* Who a connection is that says nothing; NULL: nobody. */
struct user *user_of_nobody(void);

/* NULL: there is no such user, or that is not its password; both take the same time. */
struct user *user_check(const char *name, size_t name_len, const char *password,
                        size_t password_len);

bool user_may_use(const struct user *, const char *name, size_t len);

struct user *user_ref(struct user *);
void user_unref(struct user *); /* also NULL */

/* After a wrong password the next try for this user, and for every sixteenth other name, from
 * this address has to wait: 200 ms, twice as long after each further one, at most 2 s. Returns
 * until when, 0: not at all. */
int64_t user_penalty_until(const char *address, const char *name, size_t name_len, int64_t now_ms);
void user_penalty_add(const char *address, const char *name, size_t name_len, int64_t now_ms);
#endif
