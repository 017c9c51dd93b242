/* Who is who, and who waits: by the right password, after wrong ones, from many sides; users that
 * change meanwhile, tries that go. The hasher has no thread here: it computes at once. */
#include "session/login.h"

#include <stdio.h>
#include <string.h>

#include "base/hasher.h"
#include "base/password.h"
#include "base/util.h"
#include "conf/conf.h"
#include "session/user.h"
#include "suite.h"

enum { HERE = 1, THERE = 2 };

static struct conf conf;
static int64_t now_ms;
static struct session *told;

static void on_verdict(struct session *s)
{
    told = s;
}

static void set(const char *name, const char *password)
{
    struct conf_error err = {""};
    char full[80], hash[PASSWORD_HASH_MAX] = "none";

    if (password)
        password_hash(password, strlen(password), hash);
    snprintf(full, sizeof full, "users.%s", name);
    ck_assert_msg(conf_set(&conf, full, hash, &err) == 0, "%s", err.text);
}

static void setup(void)
{
    now_ms = 100000;
    told = NULL;
    util_hash_seed(1, 2); /* with it no two origins of a test meet in one entry of the table */
    conf_init(&conf);
    set("app", "secret");
    set("ops", "other");
    set("robot", NULL);
    users_configure(&conf);
    login_init(on_verdict);
}

static void teardown(void)
{
    login_fini();
    users_fini();
    conf_fini(&conf);
}

/* One connection: its number is its session. */
struct client {
    struct login *login;
    struct user *user;
    const char *name, *password;
    uint64_t origin;
};

static enum login_verdict again(struct client *c)
{
    const struct login_try try = {.origin = c->origin,
                                  .name = c->name,
                                  .name_len = strlen(c->name),
                                  .password = c->password,
                                  .password_len = strlen(c->password)};

    return login_ask(&c->login, (struct session *)c, &try, now_ms, &c->user);
}

static enum login_verdict ask(struct client *c, uint64_t origin, const char *name,
                              const char *password)
{
    *c = (struct client){.name = name, .password = password, .origin = origin};
    return again(c);
}

static enum login_verdict once(uint64_t origin, const char *name, const char *password)
{
    struct client c;
    enum login_verdict verdict = ask(&c, origin, name, password);

    login_drop(c.login);
    return verdict;
}

/* Lets time pass until the try has a verdict; returns how long that was. */
static int64_t wait_for(struct client *c, enum login_verdict verdict)
{
    int64_t start_ms = now_ms;

    while (login_waits(c->login)) {
        ck_assert_int_lt(login_next_ms(), INT64_MAX);
        now_ms = login_next_ms() > now_ms ? login_next_ms() : now_ms;
        login_turn(now_ms);
    }
    ck_assert_int_eq(again(c), verdict);
    ck_assert_ptr_null(c->login);
    return now_ms - start_ms;
}

START_TEST(verdicts)
{
    struct client c;
    char longest[HASHER_PASSWORD_MAX + 1] = "";

    ck_assert_int_eq(ask(&c, HERE, "app", "secret"), LOGIN_RIGHT);
    ck_assert_ptr_eq(c.user, user_find("app", 3));
    ck_assert_int_eq(ask(&c, HERE, "app", "secret"), LOGIN_RIGHT);
    ck_assert_int_eq(once(HERE, "app", "wrong"), LOGIN_WRONG);
    ck_assert_int_eq(once(HERE, "nobody", ""), LOGIN_WRONG);
    ck_assert_int_eq(once(THERE, "robot", ""), LOGIN_WRONG);
    ck_assert_int_eq(once(3, "robot", "none"), LOGIN_WRONG);
    ck_assert_int_eq(once(4, "app", ""), LOGIN_WRONG);
    memset(longest, 'x', sizeof longest - 1);
    ck_assert_int_eq(once(5, "app", longest), LOGIN_WRONG);
    set("long", longest);
    users_configure(&conf);
    ck_assert_int_eq(once(5, "long", longest), LOGIN_WRONG);
    ck_assert_int_eq(login_waiting(), 0);
}
END_TEST

START_TEST(the_wait_grows)
{
    static const int wait_ms[] = {200, 400, 800, 1600, 2000, 2000};
    char password[] = "a";
    struct client c;

    for (int same = 0; same < 2; same++) { /* another one each time; the same one */
        ck_assert_int_eq(once(HERE, "app", "first"), LOGIN_WRONG);
        for (size_t i = 0; i < sizeof wait_ms / sizeof wait_ms[0]; i++) {
            ck_assert_int_eq(once(THERE + 2 * i + same, "app", "x"), LOGIN_WRONG);
            ck_assert_int_eq(ask(&c, HERE, "app", same ? "first" : password), LOGIN_WAITS);
            ck_assert_int_eq(wait_for(&c, LOGIN_WRONG), wait_ms[i]);
            password[0]++;
        }
        now_ms += 61000;
    }
    ck_assert_int_eq(once(HERE, "app", "first"), LOGIN_WRONG); /* forgotten */
}
END_TEST

/* Also when it has not been right before. */
START_TEST(an_old_password_in_many_clients)
{
    struct client old[8], c;

    for (int i = 0; i < 8; i++)
        ask(&old[i], HERE, "app", "old");
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++)
            if (!login_waits(old[i].login) && again(&old[i]) == LOGIN_WRONG)
                ask(&old[i], HERE, "app", "old");
        int64_t start_ms = now_ms;
        if (ask(&c, HERE, "app", "secret") == LOGIN_WAITS)
            wait_for(&c, LOGIN_RIGHT);
        ck_assert_int_le(now_ms - start_ms, round == 0 ? 200 : 0);
        now_ms += 150;
        login_turn(now_ms);
    }
    for (int i = 0; i < 8; i++)
        login_drop(old[i].login);
}
END_TEST

/* What is right is told at once: so many may try it in vain, no more. */
START_TEST(guesses_are_counted_when_they_come)
{
    struct client c;
    char password[8];
    int n = 0;

    ck_assert_int_eq(once(HERE, "app", "secret"), LOGIN_RIGHT);
    for (int i = 0; i < 100; i++) {
        snprintf(password, sizeof password, "%d", i);
        ask(&c, HERE, "app", password);
        login_drop(c.login); /* it does not stay to hear */
        n += once(HERE, "app", "secret") == LOGIN_RIGHT;
    }
    ck_assert_int_eq(n, LOGIN_GUESSES - 1);
    ck_assert_int_eq(once(THERE, "app", "secret"), LOGIN_RIGHT);
    now_ms += 61000;
    ck_assert_int_eq(once(HERE, "app", "secret"), LOGIN_RIGHT);
}
END_TEST

/* Trying many names is no way around, and whether a user exists makes no difference. */
START_TEST(names_wait_in_groups)
{
    char name[8];
    int waiting = 0;

    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "x%d", i);
        once(HERE, name, "a");
    }
    for (int i = 100; i < 400; i++) {
        snprintf(name, sizeof name, "y%d", i);
        waiting += once(HERE, name, "b") == LOGIN_WAITS;
    }
    ck_assert_int_gt(waiting, 250);
    ck_assert_int_eq(once(THERE, "x0", "a"), LOGIN_WRONG);
    ck_assert_int_eq(once(THERE, "app", "a"), LOGIN_WAITS); /* of the same group */
    ck_assert_int_eq(once(THERE, "ops", "a"), LOGIN_WRONG);
}
END_TEST

START_TEST(there_is_room_for_so_many)
{
    static struct client c[LOGIN_WAITING_MAX];
    int n = 0;

    for (uint64_t origin = 10; n < LOGIN_WAITING_MAX; origin++) {
        ck_assert_int_eq(once(origin, "app", "x"), LOGIN_WRONG);
        for (int i = 0; i < LOGIN_WAITING_ORIGIN_MAX; i++)
            ck_assert_int_eq(ask(&c[n++], origin, "app", "y"), LOGIN_WAITS);
        if (n < LOGIN_WAITING_MAX)
            ck_assert_int_eq(once(origin, "ops", "y"), LOGIN_CROWDED);
    }
    ck_assert_int_eq(once(HERE, "app", "secret"), LOGIN_CROWDED);
    login_drop(c[0].login);
    ck_assert_int_eq(once(HERE, "app", "secret"), LOGIN_RIGHT);
    ck_assert_int_eq(ask(&c[0], HERE, "app", "secret"), LOGIN_RIGHT);
    for (int i = 1; i < LOGIN_WAITING_MAX; i++)
        login_drop(c[i].login);
    ck_assert_int_eq(login_waiting(), 0);
}
END_TEST

START_TEST(users_that_change)
{
    struct client c;

    once(HERE, "app", "x");
    ck_assert_int_eq(ask(&c, HERE, "app", "new"), LOGIN_WAITS);
    set("app", "new");
    users_configure(&conf);
    wait_for(&c, LOGIN_RIGHT);
    ck_assert_ptr_eq(told, (struct session *)&c);
    once(THERE, "app", "x");
    ck_assert_int_eq(ask(&c, THERE, "app", "newer"), LOGIN_WAITS);
    login_turn(now_ms += 200); /* there is a verdict, which nobody has taken */
    ck_assert(!login_waits(c.login));
    set("app", "newer");
    users_configure(&conf);
    now_ms += 200;
    ck_assert_int_ne(again(&c), LOGIN_WRONG);
    wait_for(&c, LOGIN_RIGHT);
}
END_TEST

/* The thread takes them one by one, each origin in its turn. */
START_TEST(origins_take_turns)
{
    struct client many[8], one;
    char names[8][4];

    ck_assert_int_ge(hasher_start(), 0);
    for (int i = 0; i < 8; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        ck_assert_int_eq(ask(&many[i], HERE, names[i], "x"), LOGIN_WAITS);
    }
    ck_assert_int_eq(ask(&one, THERE, "app", "secret"), LOGIN_WAITS);
    while (login_waits(one.login))
        login_turn(now_ms);
    int done = 0;
    for (int i = 0; i < 8; i++)
        done += !login_waits(many[i].login);
    ck_assert_int_le(done, 2);
    ck_assert_int_eq(again(&one), LOGIN_RIGHT);
    login_drop(many[7].login);
    many[7].login = NULL;
    for (int i = 0; i < 7; i++)
        login_drop(many[i].login); /* one of them is with the thread */
    hasher_stop();
    ck_assert(!hasher_is_busy());
}
END_TEST

int main(void)
{
    Suite *s = suite_create("login");
    TCase *t = tcase_create("login");

    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, verdicts);
    tcase_add_test(t, the_wait_grows);
    tcase_add_test(t, an_old_password_in_many_clients);
    tcase_add_test(t, guesses_are_counted_when_they_come);
    tcase_add_test(t, names_wait_in_groups);
    tcase_add_test(t, there_is_room_for_so_many);
    tcase_add_test(t, users_that_change);
    tcase_add_test(t, origins_take_turns);
    suite_add_tcase(s, t);
    return suite_run(s);
}
