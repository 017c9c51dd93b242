/* The queue of tries to log in.
 *
 * Owns each try that waits, until its verdict has been taken or nobody wants it. One password at a
 * time is with the hasher; its try may be dropped meanwhile, and the result still counts against
 * its origin. A reload may change users meanwhile: a verdict counts for the hash that it was made
 * with.
 *
 * Invariants: a try in `queue` has no verdict; `next_ms` is not later than the first time at which
 * one of them can be compared; at most one try is with the hasher. */
#include "session/login.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/hasher.h"
#include "base/password.h"
#include "base/util.h"
#include "session/login_private.h"
#include "session/user.h"

enum { ORIGINS = 256 };

/* What a try is counted by. */
struct facts {
    uint64_t origin, key; /* see login_private.h */
    unsigned char digest[USER_DIGEST];
};

struct login {
    TAILQ_ENTRY(login) link; /* queue, while its verdict is LOGIN_WAITS */
    struct session *session; /* NULL: it is asking itself */
    struct facts facts;
    enum login_verdict verdict;
    char hash[PASSWORD_HASH_MAX]; /* that the verdict was made with */
    size_t name_len, password_len;
    char name[]; /* and the password behind it */
};

static TAILQ_HEAD(, login) queue = TAILQ_HEAD_INITIALIZER(queue);
static size_t n_waiting;
static int64_t next_ms = INT64_MAX;
static void (*tell)(struct session *); /* NULL: nobody listens */

/* What the hasher has; valid while it is busy. */
static struct {
    struct login *login; /* NULL: it has gone */
    struct facts facts;
    char hash[PASSWORD_HASH_MAX];
    char name[64];
    size_t name_len;
} current;

/* The turn in which the hasher last got a password of an origin, by a hash of the origin: two with
 * the same one take turns as if they were one. */
static uint64_t last_turn[ORIGINS], n_turns;

static struct user *user_of(const struct login *l)
{
    return user_find(l->name, l->name_len);
}

/* ---- tries ---- */

/* Returns a number that stands for this password and this hash: it changes when the user gets a new
 * password. */
static uint64_t mark_of(const struct facts *f, const char *hash)
{
    char both[USER_DIGEST + PASSWORD_HASH_MAX];

    memcpy(both, f->digest, USER_DIGEST);
    strcpy(both + USER_DIGEST, hash);
    return util_hash(both, USER_DIGEST + strlen(hash)) | 1;
}

static bool was_wrong(const struct facts *f, const struct user *u)
{
    return penalty_is_known(f->key, mark_of(f, user_hash(u)));
}

static void hold_against(const struct facts *f, const char *hash, int64_t now_ms)
{
    penalty_add(f->key, mark_of(f, hash), now_ms);
}

static struct login *make(const struct login_try *t, const struct facts *f)
{
    size_t most = HASHER_PASSWORD_MAX;
    size_t len = t->password_len < most ? t->password_len : most;
    struct login *l = util_alloc(sizeof *l + t->name_len + len);

    l->facts = *f;
    l->name_len = t->name_len;
    l->password_len = len;
    memcpy(l->name, t->name, t->name_len);
    memcpy(l->name + t->name_len, t->password, len);
    TAILQ_INSERT_TAIL(&queue, l, link);
    n_waiting++;
    return l;
}

static void leave_queue(struct login *l)
{
    TAILQ_REMOVE(&queue, l, link);
    n_waiting--;
    if (current.login == l)
        current.login = NULL;
}

void login_drop(struct login *l)
{
    if (!l)
        return;
    if (l->verdict == LOGIN_WAITS)
        leave_queue(l);
    OPENSSL_cleanse(l, sizeof *l + l->name_len + l->password_len);
    free(l);
}

static void decide_try(struct login *l, bool right)
{
    leave_queue(l);
    strcpy(l->hash, user_hash(user_of(l)));
    l->verdict = right ? LOGIN_RIGHT : LOGIN_WRONG;
    if (l->session && tell)
        tell(l->session);
}

/* ---- looking at them ---- */

/* Returns true when the password was right before, and a quick answer helps nobody who guesses. */
static bool is_right_at_once(const struct facts *f, const struct user *u, int64_t now_ms)
{
    return u && u->hash && user_knows(u, f->digest) && !penalty_is_guessed_at(f->key, now_ms);
}

/* Returns true when this try can be decided or compared now; else sets next_ms. */
static bool is_due(const struct login *l, bool known, int64_t now_ms)
{
    int64_t until_ms = penalty_until_ms(l->facts.key, known);

    if (until_ms <= now_ms)
        return true;
    if (until_ms < next_ms)
        next_ms = until_ms;
    return false;
}

static void give_to_hasher(struct login *l)
{
    const char *hash = user_hash(user_of(l));

    current.login = l;
    current.facts = l->facts;
    strcpy(current.hash, hash);
    current.name_len = l->name_len < sizeof current.name ? l->name_len : 0;
    memcpy(current.name, l->name, current.name_len);
    last_turn[l->facts.origin % ORIGINS] = ++n_turns;
    hasher_give(hash, l->name + l->name_len, l->password_len, user_iterations());
}

/* Decides all tries that need no hash; returns the next one for the hasher, or NULL. */
static struct login *look_at_all(int64_t now_ms)
{
    struct login *l, *next, *best = NULL;
    bool free_hasher = !hasher_is_busy();

    next_ms = INT64_MAX;
    for (l = TAILQ_FIRST(&queue); l; l = next) {
        struct user *u = user_of(l);
        bool known = was_wrong(&l->facts, u);
        next = TAILQ_NEXT(l, link);
        if (is_right_at_once(&l->facts, u, now_ms)) {
            decide_try(l, true);
        } else if (l == current.login || !is_due(l, known, now_ms)) {
            continue;
        } else if (known) {
            hold_against(&l->facts, user_hash(u), now_ms);
            decide_try(l, false);
        } else if (free_hasher && (!best || last_turn[l->facts.origin % ORIGINS] <
                                                last_turn[best->facts.origin % ORIGINS])) {
            best = l;
        }
    }
    return best;
}

/* Takes the result of the hasher. A reload may have removed the user meanwhile, or changed its
 * password. */
static void take_result(bool fits, int64_t now_ms)
{
    struct user *u = user_find(current.name, current.name_len);
    struct login *l = current.login;

    current.login = NULL;
    if (strcmp(current.hash, user_hash(u)) != 0)
        return; /* if it still waits, it is looked at again */
    fits = fits && u && u->hash;
    if (fits)
        user_learn(u, current.facts.digest);
    else
        hold_against(&current.facts, current.hash, now_ms);
    if (l)
        decide_try(l, fits);
}

/* Gives the hasher one password in a turn, no more, also when there is no thread and the result is
 * there at once. */
void login_turn(int64_t now_ms)
{
    bool fits;

    for (int given = 0;; given++) {
        if (hasher_take(&fits))
            take_result(fits, now_ms);
        struct login *l = look_at_all(now_ms);
        if (!l)
            return;
        if (given > 0) {
            next_ms = now_ms;
            return;
        }
        give_to_hasher(l);
    }
}

/* ---- for those who ask ---- */

void login_init(void (*on_verdict)(struct session *))
{
    tell = on_verdict;
}

static bool is_crowded(uint64_t origin)
{
    const struct login *l;
    size_t n = 0;

    if (n_waiting >= LOGIN_WAITING_MAX)
        return true;
    TAILQ_FOREACH(l, &queue, link)
        n += l->facts.origin == origin;
    return n >= LOGIN_WAITING_ORIGIN_MAX;
}

/* Takes the verdict on a try that has waited; LOGIN_WAITS: there is none, or it counts no more. */
static enum login_verdict take_verdict(struct login **login, struct user **user)
{
    struct login *l = *login;
    enum login_verdict verdict = l->verdict;
    struct user *u = user_of(l);

    if (verdict == LOGIN_WAITS)
        return verdict;
    if (strcmp(l->hash, user_hash(u)) != 0) { /* a reload has come between */
        l->verdict = LOGIN_WAITS;
        TAILQ_INSERT_TAIL(&queue, l, link);
        n_waiting++;
        next_ms = 0;
        return LOGIN_WAITS;
    }
    *user = u;
    *login = NULL;
    login_drop(l);
    return verdict;
}

enum login_verdict login_ask(struct login **login, struct session *s, const struct login_try *t,
                             int64_t now_ms, struct user **user)
{
    struct user *u = user_find(t->name, t->name_len);
    struct facts f;

    if (!*login) {
        *user = u;
        if (u && u->nopass)
            return LOGIN_RIGHT;
        f.origin = t->origin;
        f.key = penalty_key(t->origin, t->name, t->name_len);
        user_digest(t->name, t->name_len, t->password, t->password_len, f.digest);
        if (is_right_at_once(&f, u, now_ms))
            return LOGIN_RIGHT;
        if (u && u->known && !user_knows(u, f.digest) && !was_wrong(&f, u))
            penalty_count_guess(f.key, now_ms);
        if (is_crowded(t->origin))
            return LOGIN_CROWDED;
        *login = make(t, &f);
    }
    if ((*login)->verdict == LOGIN_WAITS)
        login_turn(now_ms);
    enum login_verdict verdict = take_verdict(login, user);
    if (verdict == LOGIN_WAITS)
        (*login)->session = s; /* from now on it is told */
    return verdict;
}

bool login_waits(const struct login *l)
{
    return l && l->verdict == LOGIN_WAITS;
}

int64_t login_next_ms(void)
{
    return next_ms;
}

size_t login_waiting(void)
{
    return n_waiting;
}

void login_fini(void)
{
    assert(TAILQ_EMPTY(&queue));
    next_ms = INT64_MAX;
    penalty_fini();
}
