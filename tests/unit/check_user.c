/* Users: hashes of passwords, the set and its changes, patterns. */
#include "session/user.h"

#include <stdio.h>
#include <string.h>

#include "base/password.h"
#include "conf/conf.h"
#include "get_options.h"
#include "suite.h"

static struct conf conf;

static void set(const char *name, const char *value)
{
    struct conf_error err = {""};
    char full[80];

    snprintf(full, sizeof full, "users.%s", name);
    ck_assert_msg(conf_set(&conf, full, value, &err) == 0, "%s", err.text);
}

static void set_password(const char *name, const char *password)
{
    char hash[PASSWORD_HASH_MAX];

    password_hash(password, strlen(password), hash);
    set(name, hash);
}

/* Is this its password? By the hash, or by what was right before. */
static struct user *check(const char *name, const char *password)
{
    struct user *u = user_find(name, strlen(name));
    unsigned char digest[USER_DIGEST];

    user_digest(name, strlen(name), password, strlen(password), digest);
    if (u && user_knows(u, digest))
        return u;
    if (!password_fits(user_hash(u), password, strlen(password), user_iterations()))
        return NULL;
    user_learn(u, digest);
    return u;
}

static bool may(const char *user, const char *name)
{
    return user_may_use(user_find(user, strlen(user)), name, strlen(name));
}

static void setup(void)
{
    conf_init(&conf);
}

static void teardown(void)
{
    users_fini();
    conf_fini(&conf);
}

/* The vector for PBKDF2-HMAC-SHA-256 was computed by Python's hashlib. */
START_TEST(hashes)
{
    static const char known[] = "pbkdf2-sha256:1000:000102030405060708090a0b0c0d0e0f:"
                                "4efb2bbb6d2eb58ea8deaed54417ae2fd87fd50a8a8568709363da60d4560606";
    char hash[PASSWORD_HASH_MAX], other[PASSWORD_HASH_MAX];

    ck_assert(password_is_hash(known));
    ck_assert(password_fits(known, "secret", 6, 0));
    ck_assert(!password_fits(known, "Secret", 6, 0));
    ck_assert(!password_fits(known, "secret", 5, 0));
    ck_assert(!password_fits(known, "", 0, 0));
    password_hash("secret", 6, hash);
    password_hash("secret", 6, other);
    ck_assert(password_is_hash(hash));
    ck_assert_str_ne(hash, other);
    ck_assert(password_fits(hash, "secret", 6, 0) && password_fits(other, "secret", 6, 0));
    hash[strlen(hash) - 1] ^= 1;
    ck_assert(!password_fits(hash, "secret", 6, 0));
}
END_TEST

START_TEST(what_is_no_hash)
{
    static const char *const bad[] = {
        "",
        "secret",
        "pbkdf2-sha256:",
        "pbkdf2-sha256:1000:00:00",
        "pbkdf2-sha256:999:000102030405060708090a0b0c0d0e0f:"
        "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f",
        "pbkdf2-sha256:20001:000102030405060708090a0b0c0d0e0f:"
        "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f",
        "pbkdf2-sha256:1000:000102030405060708090a0b0c0d0e0f:"
        "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f0",
        "pbkdf2-sha256:1000:000102030405060708090a0b0c0d0e0f:"
        "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0",
        "pbkdf2-sha256:1000:000102030405060708090A0b0c0d0e0f:"
        "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!password_is_hash(bad[i]), "'%s'", bad[i]);
        ck_assert(!password_fits(bad[i], "", 0, 0));
    }
}
END_TEST

START_TEST(nobody_is_asked_without_users)
{
    users_configure(&conf);
    ck_assert(!users_active());
    ck_assert_ptr_null(user_find("default", 7));
    ck_assert_ptr_null(user_of_nobody());
}
END_TEST

START_TEST(passwords)
{
    set_password("app", "secret");
    set("robot", "none");
    users_configure(&conf);
    ck_assert(users_active());
    struct user *app = user_find("app", 3);
    for (int i = 0; i < 2; i++) { /* by the hash, and by the digest of the first time */
        ck_assert_ptr_null(check("app", "wrong"));
        ck_assert_ptr_eq(check("app", "secret"), app);
        ck_assert(app->known);
    }
    ck_assert_ptr_null(check("app", ""));
    ck_assert_ptr_null(check("app", "secret "));
    ck_assert_ptr_null(check("ap", "secret"));
    ck_assert_ptr_null(check("robot", ""));
    ck_assert_ptr_null(check("robot", "none"));
    ck_assert_ptr_null(check("nobody", "")); /* the hash kept for those who are not there */
}
END_TEST

START_TEST(nobody)
{
    set("default", "nopass");
    set("default.allow", "inspect");
    users_configure(&conf);
    ck_assert_ptr_eq(user_of_nobody(), user_find("default", 7));
    ck_assert(user_of_nobody()->nopass);
    ck_assert_uint_eq(user_of_nobody()->allow, CONF_ALLOW_INSPECT);
}
END_TEST

START_TEST(patterns)
{
    set("app", "none");
    set("app.names", " orders:*  jobs:[ab]? ");
    set("all", "none");
    set("any", "none");
    set("any.names", "x *");
    users_configure(&conf);
    ck_assert(may("app", "orders:") && may("app", "orders:17") && may("app", "jobs:a1"));
    ck_assert(!may("app", "order") && !may("app", "jobs:c1") && !may("app", "") &&
              !may("app", "*"));
    ck_assert(may("all", "x") && may("any", "anything"));
    ck_assert(user_find("all", 3)->all_names && user_find("any", 3)->all_names);
    ck_assert(!user_find("app", 3)->all_names);
}
END_TEST

START_TEST(other_ways_in)
{
    set("app", "none");
    set("app.uid", "1000");
    set("web", "none");
    set("web.certificate", "web.example");
    users_configure(&conf);
    ck_assert_str_eq(user_of_uid(1000)->name, "app");
    ck_assert_ptr_null(user_of_uid(0));
    ck_assert_ptr_null(user_of_uid(-1));
    ck_assert_str_eq(user_of_certificate("web.example")->name, "web");
    ck_assert_ptr_null(user_of_certificate("web.example.org"));
}
END_TEST

START_TEST(changes)
{
    set_password("a", "one");
    set_password("b", "two");
    users_configure(&conf);
    struct user *a = user_ref(check("a", "one")), *b = user_ref(check("b", "two"));
    conf_clear_users(&conf);
    set_password("c", "x");
    set_password("b", "new");
    set("b.allow", "admin");
    users_configure(&conf);
    ck_assert(a->gone && !b->gone);
    ck_assert_ptr_eq(user_find("b", 1), b);
    ck_assert_uint_eq(b->allow, CONF_ALLOW_ADMIN);
    ck_assert(b->changed && !user_find("c", 1)->changed);
    ck_assert_ptr_null(check("b", "two"));
    ck_assert_ptr_eq(check("b", "new"), b);
    ck_assert_ptr_null(check("a", "one"));
    user_unref(a);
    user_unref(b);
    ck_assert_ptr_eq(user_find("b", 1), b);
    conf_clear_users(&conf);
    users_configure(&conf);
    ck_assert(!users_active());
}
END_TEST

/* Whoever exists, and whatever its hash: the work is the same. */
START_TEST(work)
{
    static const char slow[] = "pbkdf2-sha256:20000:000102030405060708090a0b0c0d0e0f:"
                               "4efb2bbb6d2eb58ea8deaed54417ae2fd87fd50a8a8568709363da60d4560606";
    static const char fast[] = "pbkdf2-sha256:1000:000102030405060708090a0b0c0d0e0f:"
                               "4efb2bbb6d2eb58ea8deaed54417ae2fd87fd50a8a8568709363da60d4560606";

    set("fast", fast);
    set("none", "none");
    users_configure(&conf);
    ck_assert_int_eq(user_iterations(), PASSWORD_ITERATIONS);
    ck_assert(password_fits(fast, "secret", 6, PASSWORD_ITERATIONS));
    ck_assert_str_eq(user_hash(user_find("fast", 4)), fast);
    ck_assert_str_eq(user_hash(user_find("none", 4)), user_hash(NULL));
    ck_assert_int_le(password_iterations(user_hash(NULL)), user_iterations());
    set("slow", slow);
    users_configure(&conf);
    ck_assert_int_eq(user_iterations(), 20000);
}
END_TEST

static void expect_refused(const char *name, const char *value, const char *expected)
{
    struct conf_error err = {""};
    size_t before = conf.user_count;

    ck_assert_int_eq(conf_set(&conf, name, value, &err), -1);
    ck_assert_str_eq(err.text, expected);
    ck_assert_uint_eq(conf.user_count, before);
}

START_TEST(refused_options)
{
    expect_refused("users.app", "secret",
                   "app: must be what holdfastd --hash-password prints, or none");
    expect_refused("users.app", "nopass", "app: only the user default can be nopass");
    expect_refused("users.app.allow", "lock all",
                   "app.allow: must be some of lock, drop-in, inspect and admin");
    expect_refused("users.app.names", " ",
                   "app.names: must be patterns of names, such as orders:* jobs:*");
    expect_refused("users.app.uid", "-1",
                   "app.uid: must be the number of a user of this machine, as id -u says");
    expect_refused("users.app.certificate", "",
                   "app.certificate: must be the common name (CN) of a client's certificate");
    expect_refused("users.app.x", "1",
                   "app.x: a user has only .allow, .names, .uid and .certificate");
    expect_refused("users.a b", "none",
                   "a b: a user's name is 1 to 60 of the bytes A-Z a-z 0-9 _ - @");
    expect_refused("users.", "none", ": a user's name is 1 to 60 of the bytes A-Z a-z 0-9 _ - @");
}
END_TEST

static char reported[1024];

static void on_report(void *arg, bool is_warning, const char *text)
{
    size_t n = strlen(reported);

    (void)arg;
    snprintf(reported + n, sizeof reported - n, "%s%s\n", is_warning ? "warning: " : "", text);
}

static void expect_check(const char *text, const char *expected)
{
    struct conf c;

    reported[0] = '\0';
    conf_init(&c);
    int rc = conf_load_bytes(&c, text, strlen(text), "x.ini", on_report, NULL);
    if (rc == 0)
        rc = conf_check(&c, false, on_report, NULL);
    ck_assert(rc == 0 || strlen(expected) > 0);
    ck_assert_str_eq(reported, expected);
    conf_fini(&c);
}

#define MASTER "[masters]\na=redis://h\n"

START_TEST(checks)
{
    expect_check(MASTER
                 "[users]\na=none\na.uid=1\nb=none\nb.uid=1\na.certificate=x\nb.certificate=x\n",
                 "user b has the same uid as a\nuser b has the same certificate as a\n");
    expect_check(MASTER "[users]\na.uid=1\n",
                 "user a has options but no password (a = the hash that holdfastd --hash-password "
                 "prints, or none)\n");
    expect_check(MASTER "[users]\na=none\na.uid=1\na=none\na.uid=2\n",
                 "x.ini:6: a: is set in line 4 already\n"
                 "x.ini:7: a.uid: is set in line 5 already\n");
    expect_check("[holdfast]\nlisten=*:1\n" MASTER "[users]\na=none\n", "");
    expect_check("[holdfast]\nlisten=*:1\n" MASTER,
                 "x.ini:2: listen: * is open to other machines: whoever reaches it can take and "
                 "free locks (name some in section [users], or set protected_mode = no)\n");
    expect_check("[holdfast]\nlisten=*:1\nprotected_mode=no\n" MASTER,
                 "warning: x.ini:2: listen: * is open to other machines: whoever reaches it can "
                 "take and free locks\n");
}
END_TEST

static int n_changes;

static void on_change(void *arg, const struct conf_change *change)
{
    (void)arg;
    ck_assert_str_eq(change->name, "users");
    ck_assert_str_eq(change->new_value, "");
    ck_assert(!change->needs_restart);
    n_changes++;
}

static void on_get(void *arg, const char *name, const char *value)
{
    (void)arg;
    ck_assert_ptr_null(strstr(name, "users"));
    ck_assert_ptr_null(strstr(value, "pbkdf2"));
}

START_TEST(copies)
{
    struct conf copy;
    struct conf_error err;

    set_password("a", "secret");
    set("a.names", "x");
    conf_copy(&copy, &conf);
    ck_assert_uint_eq(conf_diff(&conf, &copy, on_change, NULL), 0);
    set("a.names", "y");
    ck_assert_uint_eq(conf_diff(&conf, &copy, on_change, NULL), 1);
    conf_take_users(&copy, &conf);
    ck_assert_uint_eq(conf_diff(&conf, &copy, on_change, NULL), 0);
    ck_assert_int_eq(n_changes, 1);
    (void)get_options(&conf, "*", on_get, NULL);
    ck_assert_int_eq(conf_set_live(&conf, "users.a", "none", &err), -1);
    conf_fini(&copy);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("user");
    TCase *t = tcase_create("user");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, hashes);
    tcase_add_test(t, what_is_no_hash);
    tcase_add_test(t, nobody_is_asked_without_users);
    tcase_add_test(t, passwords);
    tcase_add_test(t, nobody);
    tcase_add_test(t, patterns);
    tcase_add_test(t, other_ways_in);
    tcase_add_test(t, changes);
    tcase_add_test(t, work);
    tcase_add_test(t, refused_options);
    tcase_add_test(t, checks);
    tcase_add_test(t, copies);
    suite_add_tcase(s, t);
    return suite_run(s);
}
