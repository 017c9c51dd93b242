/* Masters that are found by Sentinels, as the configuration names them. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "conf/conf.h"
#include "redis/settings.h"
#include "suite.h"

static struct conf conf;
static char reported[4096];

static void setup(void)
{
    conf_init(&conf);
    reported[0] = 0;
}

static void teardown(void)
{
    conf_fini(&conf);
}

static void set(const char *name, const char *value)
{
    struct conf_error err = {{0}};
    ck_assert_msg(conf_set(&conf, name, value, &err) == 0, "%s: %s", name, err.text);
}

static void refused(const char *name, const char *value, const char *why)
{
    struct conf_error err = {{0}};
    ck_assert_int_eq(conf_set(&conf, name, value, &err), -1);
    ck_assert_msg(strstr(err.text, why) != NULL, "'%s' has no '%s'", err.text, why);
    ck_assert_ptr_null(strstr(err.text, "secret"));
}

struct bad {
    const char *value, *why;
};

/* Each of them is refused, up to one without a value. */
static void all_refused(const char *name, const struct bad *bad)
{
    for (; bad->value; bad++)
        refused(name, bad->value, bad->why);
}

static void on_report(void *arg, bool is_warning, const char *text)
{
    size_t len = strlen(reported);
    (void)arg;
    snprintf(reported + len, sizeof reported - len, "%s%s\n", is_warning ? "warning " : "", text);
}

static void checked(const char *expected)
{
    bool fails = strncmp(expected, "warning", 7) != 0 && *expected;
    ck_assert_int_eq(conf_check(&conf, false, on_report, NULL), fails ? -1 : 0);
    ck_assert_str_eq(reported, expected);
    reported[0] = 0;
}

static void on_get(void *arg, const char *name, const char *value)
{
    (void)name;
    snprintf(arg, 1000, "%s", value);
}

static void shown(const char *expected)
{
    char value[1000] = "";
    struct glob *glob = glob_new("masters.a", 9);
    const struct glob *const globs[] = {glob};
    conf_get(&conf, globs, 1, on_get, value);
    glob_free(glob);
    ck_assert_str_eq(value, expected);
}

/* The order in the file is each broker's own. */
START_TEST(sentinels_are_sorted)
{
    struct conf_sentinel v[CONF_SENTINELS_MAX];
    const struct conf_master *m;

    set("masters.a", "sentinel://s2,[::1]:7,s1:5/my.master-1");
    m = &conf.masters[0];
    ck_assert(m->by_sentinels && !m->sentinel_tls && !m->tls);
    ck_assert_int_eq(conf_sentinels(m, v), 3);
    ck_assert_str_eq(v[0].host, "::1");
    ck_assert_int_eq(v[0].port, 7);
    ck_assert_str_eq(v[1].host, "s1");
    ck_assert_int_eq(v[1].port, 5);
    ck_assert_str_eq(v[2].host, "s2");
    ck_assert_int_eq(v[2].port, 26379);
    ck_assert_str_eq(conf_sentinels_call_it(m), "my.master-1");
    shown("sentinel://[::1]:7,s1:5,s2:26379/my.master-1");
    char *identity = conf_master_identity(m);
    ck_assert_str_eq(identity, "sentinel:[::1]:7+s1:5+s2:26379/my.master-1/0");
    free(identity);
    checked("");
}
END_TEST

START_TEST(two_logins)
{
    const struct conf_master *m;

    set("masters.a", "sentinels://wat%40ch:secret@s1,s2,s3/m");
    set("masters.a.master", "rediss://broker:other@/3");
    set("masters.a.ca", "/a");
    set("masters.a.sentinel_ca", "/s");
    m = &conf.masters[0];
    ck_assert_str_eq(m->sentinel_user, "wat@ch");
    ck_assert_str_eq(m->sentinel_password, "secret");
    ck_assert_str_eq(m->user, "broker");
    ck_assert_str_eq(m->password, "other");
    ck_assert(m->tls && m->sentinel_tls);
    ck_assert_int_eq(m->db, 3);
    ck_assert_str_eq(m->sentinel_ca, "/s");
    shown("sentinels://wat%40ch:***@s1:26379,s2:26379,s3:26379/m");
    set("masters.a", "sentinel://s1/m"); /* what is said of the master stays */
    ck_assert_str_eq(conf.masters[0].password, "other");
    ck_assert_ptr_null(conf.masters[0].sentinel_password);
    set("masters.a.master", "redis://");
    ck_assert_ptr_null(conf.masters[0].password);
    ck_assert(!conf.masters[0].tls);
}
END_TEST

START_TEST(refused_ones)
{
    char many[400] = "sentinel://s0";

    all_refused("masters.a",
                (const struct bad[]){{"sentinel://", "has no host"},
                                     {"sentinel://s1", "what they call the master"},
                                     {"sentinel://s1/", "what they call the master"},
                                     {"sentinel://s1/a b", "what they call the master"},
                                     {"sentinel://u:secret@s1,/m", "has no host"},
                                     {"sentinel://u:secret@s1:0/m", "port of a Sentinel"},
                                     {"sentinel://s1:x/m", "port of a Sentinel"},
                                     {"sentinel://s1,s1:26379/m", "named twice"},
                                     {"sentinel://s1;s2/m", "what they call the master"},
                                     {NULL, NULL}});
    for (int i = 1; i <= CONF_SENTINELS_MAX; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",s%d", i);
    strcat(many, "/m");
    refused("masters.a", many, "more than 15 Sentinels");
    all_refused("masters.a.master",
                (const struct bad[]){{"redis://u:secret@host/1", "has a host"},
                                     {"unix:///x", "neither a redis:// nor a rediss://"},
                                     {"redis://u:secret@/x", "number of the database"},
                                     {NULL, NULL}});
}
END_TEST

START_TEST(what_does_not_fit)
{
    set("masters.a", "redis://s");
    set("masters.a.master", "redis://u:p@");
    checked("a: has options for Sentinels but no sentinel:// address\n");
    set("masters.a", "sentinel://u@s1,s2,s3/m");
    set("masters.a.sentinel_key", "/k");
    checked("a: has options for TLS to Sentinels but no sentinels:// address\n"
            "a.sentinel_key: has no certificate\n"
            "a: has a user for Sentinels but no password\n");
    conf_clear_masters(&conf);
    set("masters.a", "sentinel://s1,s2/m");
    checked("warning a: with 2 Sentinels the loss of one stops all locks there: name three\n");
    set("masters.a.ca", "/a");
    set("masters.a", "sentinel://s1,s2,s3/m");
    checked("a: has options for TLS but no rediss:// in its option .master\n");
}
END_TEST

/* For how long the word of Sentinels counts is shared, where there are some. */
START_TEST(shared_settings)
{
    char *text;

    set("masters.a", "sentinel://s1,s2,s3/m");
    set("sentinel_timeout", "7s");
    text = settings_text(&conf);
    ck_assert_msg(strstr(text, " masters=sentinel:s1:26379+s2:26379+s3:26379/m/0 "
                               "sentinel_timeout=7000") != NULL,
                  "%s", text);
    free(text);
    set("masters.a", "redis://h");
    text = settings_text(&conf);
    ck_assert_ptr_null(strstr(text, "sentinel"));
    free(text);
}
END_TEST

/* The nodes of a Cluster are only where to ask first: brokers may name others. */
START_TEST(a_cluster)
{
    struct conf_sentinel v[CONF_SENTINELS_MAX];
    const struct conf_master *m;

    set("masters.c", "cluster://u:p@h2,[::1]:7/");
    m = &conf.masters[0];
    ck_assert(m->by_cluster && !m->tls && conf_is_clustered(&conf));
    ck_assert_int_eq(conf_cluster_nodes(m, v), 2);
    ck_assert_str_eq(v[0].host, "::1");
    ck_assert_int_eq(v[1].port, 6379);
    ck_assert_str_eq(m->user, "u");
    set("masters.c", "cluster://h1");
    ck_assert(!m->user);
    char *identity = conf_master_identity(m);
    ck_assert_str_eq(identity, "cluster:c");
    free(identity);
    set("brokers", "a b");
    char *text = settings_text(&conf);
    ck_assert_msg(strstr(text, " masters=cluster:c sentinel_timeout=5000 partitions=64") != NULL,
                  "%s", text);
    free(text);
    all_refused("masters.c", (const struct bad[]){{"cluster://", "has no host"},
                                                  {"clusters://h", "by TLS is not served yet"},
                                                  {"cluster://h/1", "no other database"},
                                                  {"cluster://h x", "is not cluster://"},
                                                  {"cluster://h,h:6379", "a node is named twice"},
                                                  {"cluster://h:0", "the port of a node"},
                                                  {NULL, NULL}});
    set("masters.c", "redis://h");
    ck_assert(!m->by_cluster);
}
END_TEST

START_TEST(what_a_cluster_needs)
{
    set("masters.c", "cluster://h1");
    checked("c: a Redis Cluster needs the list of all brokers (name and brokers)\n");
    set("brokers", "broker");
    checked("");
    set("drop_in.mirror", "yes");
    set("masters.c.ca", "/a");
    checked("c: there is no mirror in a Redis Cluster\n"
            "c: has options for TLS but no rediss:// address\n");
    conf_clear_masters(&conf);
    set("drop_in.mirror", "no");
    set("masters.c", "cluster://h1");
    set("masters.d", "redis://h2");
    set("masters.e", "redis://h3");
    checked("c: a Redis Cluster is the only one in [masters]\n");
}
END_TEST

static Suite *address_suite(void)
{
    Suite *s = suite_create("address");
    TCase *c = tcase_create("address");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, sentinels_are_sorted);
    tcase_add_test(c, two_logins);
    tcase_add_test(c, refused_ones);
    tcase_add_test(c, what_does_not_fit);
    tcase_add_test(c, shared_settings);
    tcase_add_test(c, a_cluster);
    tcase_add_test(c, what_a_cluster_needs);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(address_suite());
}
