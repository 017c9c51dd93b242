/* CONFIG REWRITE: what has been set goes to where it belongs, and every other byte stays. */
#include "conf/conf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

static char dir[64], path[128];
static struct conf conf;
static struct conf_error err;
static int changed;

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert(fputs(text, file) >= 0 && fclose(file) == 0);
}

static const char *read_file(void)
{
    static char text[4096];
    FILE *file = fopen(path, "r");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void ignore(void *arg, bool is_warning, const char *text)
{
    (void)arg, (void)is_warning, (void)text;
}

static void setup(void)
{
    strcpy(dir, "/tmp/check_conf_write.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/holdfast.ini", dir);
    conf_init(&conf);
    changed = -1;
}

static void teardown(void)
{
    struct dirent *entry;
    DIR *d = opendir(dir);
    char name[512];

    conf_fini(&conf);
    while ((entry = readdir(d)) != NULL) {
        snprintf(name, sizeof name, "%s/%s", dir, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(name);
    }
    closedir(d);
    rmdir(dir);
}

static void load(const char *text)
{
    write_file(path, text);
    ck_assert_int_eq(conf_load_file(&conf, path, ignore, NULL), 0);
}

static void set(const char *name, const char *value)
{
    ck_assert_msg(conf_set_live(&conf, name, value, &err) == 0, "%s", err.text);
}

static void rewrites(int n, const char *expected)
{
    ck_assert_msg(conf_rewrite(&conf, &changed, &err) == 0, "%s", err.text);
    ck_assert_int_eq(changed, n);
    ck_assert_str_eq(read_file(), expected);
}

static void refused(const char *why)
{
    ck_assert_int_eq(conf_rewrite(&conf, &changed, &err), -1);
    ck_assert_msg(strstr(err.text, why) != NULL, "'%s', not '%s'", err.text, why);
}

static int count_files(void)
{
    DIR *d = opendir(dir);
    int n = 0;
    struct dirent *entry;

    while ((entry = readdir(d)) != NULL)
        n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

START_TEST(a_value_is_replaced_where_it_stands)
{
    load("# top\n[masters]\na = redis://127.0.0.1\n\n[holdfast]\n"
         "lease   =  10s   ; why not\n  log_level: info\n# the end\n");
    set("lease", "20s");
    set("log_level", "debug");
    rewrites(2, "# top\n[masters]\na = redis://127.0.0.1\n\n[holdfast]\n"
                "lease   =  20s   ; why not\n  log_level: debug\n# the end\n");
    rewrites(0, read_file());
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(a_line_is_added_behind_the_comment_that_shows_it)
{
    load("[holdfast]\n# The lease.\n#lease = 30s\n# other\nlog_level = info\n\n"
         "[masters]\na = redis://127.0.0.1\n");
    set("lease", "12s");
    rewrites(1, "[holdfast]\n# The lease.\n#lease = 30s\nlease = 12s\n# other\nlog_level = info\n\n"
                "[masters]\na = redis://127.0.0.1\n");
}
END_TEST

START_TEST(else_at_the_end_of_its_section)
{
    load("[holdfast]\nlog_level = info\n\n# masters follow\n[masters]\na = redis://127.0.0.1\n");
    set("lease", "12s");
    set("limits.idle_timeout", "1h");
    rewrites(2, "[holdfast]\nlog_level = info\nlease = 12s\n\n# masters follow\n"
                "[masters]\na = redis://127.0.0.1\n\n[limits]\nidle_timeout = 1h\n");
}
END_TEST

START_TEST(line_ends_are_kept)
{
    load("\xef\xbb\xbf[holdfast]\r\nlease = 10s\r\n[masters]\r\na = redis://127.0.0.1");
    set("lease", "20s");
    set("limits.idle_timeout", "1h");
    rewrites(2, "\xef\xbb\xbf[holdfast]\r\nlease = 20s\r\n[masters]\r\na = redis://127.0.0.1\r\n"
                "\r\n[limits]\r\nidle_timeout = 1h\r\n");
}
END_TEST

/* What came from the command line or is as by default is not written. */
START_TEST(only_what_was_set)
{
    load("[masters]\na = redis://127.0.0.1\n");
    ck_assert_int_eq(conf_override(&conf, "holdfast.log_level=debug", &err), 0);
    set("lease", "30s");
    rewrites(0, "[masters]\na = redis://127.0.0.1\n");
}
END_TEST

/* The same key in another section is another option. */
START_TEST(sections_are_told_apart)
{
    load("[masters]\na = redis://127.0.0.1\na.ca = /x\n[tls]\nca = /a\ncertificate = /b\n");
    set("tls.ca", "/c");
    rewrites(1, "[masters]\na = redis://127.0.0.1\na.ca = /x\n[tls]\nca = /c\ncertificate = /b\n");
}
END_TEST

START_TEST(what_others_wrote_meanwhile_is_kept)
{
    load("[masters]\na = redis://127.0.0.1\n[holdfast]\nlease = 10s\n");
    set("lease", "20s");
    write_file(path, "[masters]\nb = redis://127.0.0.2\n[holdfast]\nlease = 15s\n# new\n");
    rewrites(1, "[masters]\nb = redis://127.0.0.2\n[holdfast]\nlease = 20s\n# new\n");
}
END_TEST

START_TEST(a_file_with_an_error_is_left_alone)
{
    load("[holdfast]\nlease = 10s\n");
    set("lease", "20s");
    write_file(path, "[holdfast]\nlease = 10s\nnonsense\n");
    refused("holdfast.ini:3: is neither");
    ck_assert_str_eq(read_file(), "[holdfast]\nlease = 10s\nnonsense\n");
}
END_TEST

START_TEST(no_file)
{
    set("lease", "20s");
    refused("there is no configuration file");
    load("[holdfast]\nlease = 10s\n");
    unlink(path);
    refused("No such file");
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

/* A directory that takes no new file; the superuser may do everything. */
START_TEST(not_writable)
{
    if (geteuid() == 0)
        return;
    load("[holdfast]\nlease = 10s\n");
    set("lease", "20s");
    chmod(dir, 0500);
    refused("cannot be written: Permission denied");
    chmod(dir, 0700);
    ck_assert_str_eq(read_file(), "[holdfast]\nlease = 10s\n");
}
END_TEST

/* A link stays a link, permissions stay what they are. */
START_TEST(links_and_permissions)
{
    char link_path[160];
    struct stat st;

    load("[holdfast]\nlease = 10s\n");
    ck_assert_int_eq(chmod(path, 0640), 0);
    snprintf(link_path, sizeof link_path, "%s/link.ini", dir);
    ck_assert_int_eq(symlink(path, link_path), 0);
    ck_assert_int_eq(conf_load_file(&conf, link_path, ignore, NULL), 0);
    set("lease", "20s");
    rewrites(1, "[holdfast]\nlease = 20s\n");
    ck_assert(lstat(link_path, &st) == 0 && S_ISLNK(st.st_mode));
    ck_assert(stat(path, &st) == 0 && (st.st_mode & 07777) == 0640);
    ck_assert_int_eq(count_files(), 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conf_write");
    TCase *t = tcase_create("conf_write");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_value_is_replaced_where_it_stands);
    tcase_add_test(t, a_line_is_added_behind_the_comment_that_shows_it);
    tcase_add_test(t, else_at_the_end_of_its_section);
    tcase_add_test(t, line_ends_are_kept);
    tcase_add_test(t, only_what_was_set);
    tcase_add_test(t, sections_are_told_apart);
    tcase_add_test(t, what_others_wrote_meanwhile_is_kept);
    tcase_add_test(t, a_file_with_an_error_is_left_alone);
    tcase_add_test(t, no_file);
    tcase_add_test(t, not_writable);
    tcase_add_test(t, links_and_permissions);
    suite_add_tcase(s, t);
    return suite_run(s);
}
