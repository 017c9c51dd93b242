#pragma once
/*
 * login: whether a name and a password are those of a user, and who has to wait for the answer.
 *
 * A try waits in a queue until its password is compared with a hash (hasher.h), one at a time, the
 * origins in turn; an origin is an address (of IPv6 its first 64 bits) or the uid of a local peer.
 *
 * After a wrong password the next one from this origin for this user, and for every sixteenth other
 * name, is not compared for 200 ms, then for twice as long after each further one, at most 2 s. A
 * client that repeats a password that was wrong before waits as long, but makes nobody wait who has
 * another one. A password that was right before is right at once, without a hash, unless
 * LOGIN_GUESSES wrong ones came within a minute: then it waits with the others, as an answer at
 * once would tell that it is right.
 *
 * Whether there is such a user makes no difference to any wait or work.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct login;
struct session;
struct user;

enum {
    LOGIN_WAITING_MAX = 512,        /* tries that wait at a time, */
    LOGIN_WAITING_ORIGIN_MAX = 128, /* of them from one origin */
    LOGIN_GUESSES = 32
};

enum login_verdict {
    LOGIN_WAITS, /* on_verdict follows: ask again then, with the same name and password */
    LOGIN_RIGHT,
    LOGIN_WRONG,
    LOGIN_CROWDED /* too many wait already: the password was not compared */
};

struct login_try {
    uint64_t origin;
    const char *name, *password; /* during the call only */
    size_t name_len, password_len;
};

/* Sets up the queue of tries. `on_verdict` is called when the verdict on a try that waits is known;
 * never from login_ask(). */
void login_init(void (*on_verdict)(struct session *));

/* Asks for the verdict on the try of a session, for the first time or again. `*login` is NULL at
 * first, and when there is a verdict; while it is not, the same try is asked for again. `*user` is
 * set for LOGIN_RIGHT and stays the set's. */
enum login_verdict login_ask(struct login **login, struct session *, const struct login_try *,
                             int64_t now_ms, struct user **user);
/* Returns true while there is no verdict; false for NULL. */
bool login_waits(const struct login *);
/* Drops a try whose verdict nobody wants any more; NULL is allowed. */
void login_drop(struct login *);

/* Takes results and begins what is due. Call it at login_next_ms(), when hasher_start()'s
 * descriptor is readable, and after users_configure(). */
void login_turn(int64_t now_ms);
int64_t login_next_ms(void); /* INT64_MAX: at no time */
size_t login_waiting(void);

/* Forgets all wrong passwords. No try may be waiting. */
void login_fini(void);
