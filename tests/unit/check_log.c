/* Lines come out at the right level, in one piece, with the right prefix, whatever they hold. */
#include "base/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <termios.h>
#include <unistd.h>

#include "suite.h"

static char seen[LOG_LINE_MAX + 1];
static enum log_level seen_level;
static int lines;

static void keep_line(void *arg, enum log_level level, const char *line)
{
    ck_assert_ptr_eq(arg, &lines);
    ck_assert_uint_le(strlen(line), LOG_LINE_MAX);
    strcpy(seen, line);
    seen_level = level;
    lines++;
}

static int evaluated;

static const char *count_evaluation(void)
{
    evaluated++;
    return "thing";
}

START_TEST(levels)
{
    log_set_sink(keep_line, &lines);
    log_info("thing", "started port=%d", 7420); /* the level at the start */
    ck_assert_str_eq(seen, "thing: started port=7420");
    ck_assert_int_eq(seen_level, LOG_LEVEL_INFO);
    log_debug("thing", "not written");
    ck_assert_int_eq(lines, 1);
    for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_TRACE; level++) {
        log_set_level((enum log_level)level);
        lines = 0;
        log_error("thing", "e");
        log_warn("thing", "w");
        log_info("thing", "i");
        log_debug("thing", "d");
        log_trace("thing", "t");
        ck_assert_int_eq(lines, level + 1);
        ck_assert_int_eq(seen_level, level);
    }
    log_error(NULL, "no object");
    ck_assert_str_eq(seen, "no object");
}
END_TEST

START_TEST(nothing_is_evaluated_for_nothing)
{
    log_set_sink(keep_line, &lines);
    log_debug(count_evaluation(), "%s", count_evaluation());
    ck_assert_int_eq(evaluated, 0);
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug(count_evaluation(), "%s", count_evaluation());
    ck_assert_int_eq(evaluated, 2);
}
END_TEST

START_TEST(escapes)
{
    static const struct {
        const char *text, *line;
    } rows[] = {
        {"plain ~ \"quoted\" back\\slash", "plain ~ \"quoted\" back\\slash"},
        {"two\nlines\r\n\t", "two\\nlines\\r\\n\\t"},
        {"\x1b[31mred\x7f\x01", "\\x1b[31mred\\x7f\\x01"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92",
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92"},
        {"c1 \xc2\x9b", "c1 \\xc2\\x9b"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"cut \xe2\x82", "cut \\xe2\\x82"},
        {"cut \xc3", "cut \\xc3"},
        {"\xc3(", "\\xc3("},
        {"long \xc0\x8a", "long \\xc0\\x8a"},
        {"surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80"},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"\xe0\x80\x8a", "\\xe0\\x80\\x8a"},
        {"a\xe2\x80\xae"
         "b",
         "a\\xe2\\x80\\xae"
         "b"}, /* U+202E, right to left from here */
        {"no\xe2\x80\x8bwidth", "no\\xe2\\x80\\x8bwidth"},
        {"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},
        {"line\xe2\x80\xa8", "line\\xe2\\x80\\xa8"},
        {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"}, /* a tag */
    };
    log_set_sink(keep_line, &lines);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        log_error(NULL, "%s", rows[i].text);
        ck_assert_str_eq(seen, rows[i].line);
        log_error(rows[i].text, "x");
        ck_assert_mem_eq(seen, rows[i].line, strlen(rows[i].line));
        ck_assert_str_eq(seen + strlen(rows[i].line), ": x");
    }
}
END_TEST

START_TEST(long_lines)
{
    static char text[3 * LOG_LINE_MAX];
    log_set_sink(keep_line, &lines);
    for (size_t n = LOG_LINE_MAX - 10; n < LOG_LINE_MAX + 10; n++) {
        memset(text, 'a', n);
        text[n] = '\0';
        log_error(NULL, "%s", text);
        if (n <= LOG_LINE_MAX - 3)
            ck_assert_str_eq(seen, text);
        else
            ck_assert_str_eq(seen + strlen(seen) - 4, "a...");
    }
    memset(text, '\n', sizeof(text) - 1);
    log_error(text, "%s", text);
    ck_assert_uint_ge(strlen(seen), LOG_LINE_MAX - 4);
    ck_assert_str_eq(seen + strlen(seen) - 5, "\\n...");
}
END_TEST

/* What was written to the file so far. */
static const char *read_back(FILE *file)
{
    static char text[4096];
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    return text;
}

START_TEST(time_stamps)
{
    FILE *file = tmpfile();
    int year, month, day, hour, minute, second, ms, end = 0;
    char level[8];
    unsetenv("JOURNAL_STREAM");
    log_set_file(file);
    log_warn("thing", "text\n");
    const char *text = read_back(file);
    ck_assert_int_eq(sscanf(text, "%4d-%2d-%2d %2d:%2d:%2d.%3d %7s%n", &year, &month, &day, &hour,
                            &minute, &second, &ms, level, &end),
                     8);
    ck_assert_int_eq(end, (int)strlen("2026-01-31 12:00:00.123 warn"));
    ck_assert_str_eq(level, "warn");
    ck_assert_str_eq(text + end, "  thing: text\\n\n");
    fclose(file);
}
END_TEST

START_TEST(journal)
{
    static const char *const prefixes[] = {"<3>t: x\n", "<4>t: x\n", "<6>t: x\n", "<7>t: x\n",
                                           "<7>t: x\n"};
    char stream[64];
    struct stat st;
    for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_TRACE; level++) {
        FILE *file = tmpfile();
        ck_assert_int_eq(fstat(fileno(file), &st), 0);
        snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
        setenv("JOURNAL_STREAM", stream, 1);
        log_set_file(file);
        log_write((enum log_level)level, "t", "x");
        ck_assert_str_eq(read_back(file), prefixes[level]);
        fclose(file);
    }
    FILE *other = tmpfile(); /* the journal is elsewhere: stderr was redirected */
    setenv("JOURNAL_STREAM", "1:2", 1);
    log_set_file(other);
    log_error("t", "x");
    ck_assert_ptr_nonnull(strstr(read_back(other), " error t: x\n"));
    fclose(other);
}
END_TEST

START_TEST(limits)
{
    struct log_limit limit = {0};
    ck_assert(log_limited(&limit, 0));
    ck_assert_uint_eq(limit.swallowed, 0);
    for (int ms = 0; ms < 1000; ms++)
        ck_assert(!log_limited(&limit, ms));
    ck_assert(log_limited(&limit, 1000));
    ck_assert_uint_eq(limit.swallowed, 1000);
    ck_assert(!log_limited(&limit, 1999));
    ck_assert(log_limited(&limit, 5000));
    ck_assert_uint_eq(limit.swallowed, 1);
    ck_assert(log_limited(&limit, 9000));
    ck_assert_uint_eq(limit.swallowed, 0);
    ck_assert(log_limited(&limit, 0)); /* a new run with a time of its own */
    ck_assert(!log_limited(&limit, 1));
}
END_TEST

START_TEST(limits_by_the_minute)
{
    struct log_limit limit = {0};
    ck_assert(log_limited_to(&limit, 500, 60000));
    for (int s = 1; s < 60; s++)
        ck_assert(!log_limited_to(&limit, 500 + s * 1000, 60000));
    ck_assert(log_limited_to(&limit, 60500, 60000));
    ck_assert_uint_eq(limit.swallowed, 59);
}
END_TEST

START_TEST(bursts)
{
    struct log_burst burst = {0};
    log_set_sink(keep_line, &lines);
    for (int i = 0; i < 30; i++)
        ck_assert_int_eq(log_burst(&burst, "thing", 5000 + i, 20), i < 20);
    ck_assert_int_eq(lines, 0);
    ck_assert(log_burst(&burst, "thing", 7000, 20));
    ck_assert_str_eq(seen, "thing: more lines like these swallowed=10");
    ck_assert(log_burst(&burst, "thing", 9000, 20));
    ck_assert_int_eq(lines, 1);
}
END_TEST

/* ---- nobody reads ---- */

enum { LINES = 5000 };

static void write_lines(void)
{
    log_set_patient(false);
    for (int i = 0; i < LINES; i++)
        log_warn("thing", "line %d %0100d", i, 0);
}

/* What there is to read now; the caller frees it. */
static char *read_all(int fd, size_t *len)
{
    char *text = NULL;
    ssize_t n = 1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (*len = 0; n > 0; *len += n > 0 ? (size_t)n : 0) {
        text = realloc(text, *len + 65536);
        n = read(fd, text + *len, 65535);
    }
    text[*len] = '\0';
    return text;
}

/* Whole lines in order, and where some are missing how many. Returns how many were written or told
 * to be missing. */
static int check_lines(char *text)
{
    int next = 0, n;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char want[160];
        ck_assert_uint_gt(strlen(line), 23);
        if (sscanf(line + 23, " warn  log: lines dropped, as nobody read them n=%d", &n) == 1) {
            next += n;
            continue;
        }
        snprintf(want, sizeof want, " warn  thing: line %d %0100d", next++, 0);
        ck_assert_str_eq(line + 23, want);
    }
    return next;
}

static void check_dropped(int in, int out)
{
    FILE *file = fdopen(out, "w");
    size_t len, more;
    log_set_file(file);
    (void)log_look();
    write_lines();
    ck_assert_int_eq(fcntl(out, F_GETFL) & O_NONBLOCK, 0); /* others may have the file too */
    char *text = read_all(in, &len);
    uint64_t dropped = log_look();
    ck_assert(dropped > 0 && dropped < LINES);
    ck_assert_uint_eq(log_look(), 0);
    char *end = read_all(in, &more);
    text = realloc(text, len + more + 1);
    memcpy(text + len, end, more + 1);
    ck_assert_int_eq(check_lines(text), LINES);
    free(text);
    free(end);
    log_warn("thing", "again");
    text = read_all(in, &len);
    ck_assert_str_eq(text + 23, " warn  thing: again\n");
    free(text);
    log_set_file(NULL);
    fclose(file);
    close(in);
}

START_TEST(a_pipe_that_nobody_reads)
{
    int fds[2];
    unsetenv("JOURNAL_STREAM");
    ck_assert_int_eq(pipe(fds), 0);
    check_dropped(fds[0], fds[1]);
}
END_TEST

START_TEST(a_socket_that_nobody_reads)
{
    int fds[2], size = 5000;
    unsetenv("JOURNAL_STREAM");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    check_dropped(fds[0], fds[1]);
}
END_TEST

START_TEST(a_terminal_that_stands_still)
{
    int in = posix_openpt(O_RDWR | O_NOCTTY), out;
    struct termios raw;
    unsetenv("JOURNAL_STREAM");
    ck_assert(in >= 0 && grantpt(in) == 0 && unlockpt(in) == 0);
    out = open(ptsname(in), O_WRONLY | O_NOCTTY);
    ck_assert_int_eq(tcgetattr(out, &raw), 0);
    cfmakeraw(&raw);
    ck_assert_int_eq(tcsetattr(out, TCSANOW, &raw), 0);
    check_dropped(in, out);
}
END_TEST

/* ---- syslog ---- */

static int listen_at(const char *path, int type)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type, 0);
    strcpy(at.sun_path, path);
    unlink(path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    if (type == SOCK_STREAM)
        ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

/* The next message; its facility and level as a number. */
static const char *take(int fd, int *priority)
{
    static char text[4096];
    char month[8];
    int pid, day, hour, minute, second, end = 0;
    ssize_t n = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_int_eq(sscanf(text, "<%d>%3s %2d %2d:%2d:%2d holdfastd[%d]: %n", priority, month,
                            &day, &hour, &minute, &second, &pid, &end),
                     7);
    ck_assert_int_eq(pid, getpid());
    return text + end;
}

START_TEST(to_syslog)
{
    static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG, LOG_DEBUG};
    char path[] = "/tmp/hft-syslog-XXXXXX";
    FILE *file = tmpfile();
    int priority, fd;
    close(mkstemp(path));
    fd = listen_at(path, SOCK_DGRAM);
    log_set_file(file);
    log_set_syslog_path(path);
    log_set_syslog(LOG_LOCAL3);
    for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_TRACE; level++) {
        log_write((enum log_level)level, "t%n", "100%% \n level=%d", level);
        const char *text = take(fd, &priority);
        ck_assert_int_eq(priority, LOG_LOCAL3 | priorities[level]);
        ck_assert_mem_eq(text, "t%n: 100% \\n level=", 18);
    }
    ck_assert_str_eq(read_back(file), "");
    close(fd); /* it is started anew */
    fd = listen_at(path, SOCK_DGRAM);
    log_set_syslog(LOG_DAEMON);
    log_write(LOG_LEVEL_ERROR, "t", "x");
    ck_assert_str_eq(take(fd, &priority), "t: x");
    ck_assert_int_eq(priority, LOG_DAEMON | LOG_ERR);
    close(fd);
    unlink(path);
    (void)log_look();
    log_write(LOG_LEVEL_ERROR, "t", "nobody is there");
    ck_assert_uint_eq(log_look(), 1);
    fd = listen_at(path, SOCK_STREAM);
    log_write(LOG_LEVEL_ERROR, "t", "y");
    int stream = accept(fd, NULL, NULL);
    ck_assert_str_eq(take(stream, &priority), "log: lines dropped, as nobody read them n=1");
    log_write(LOG_LEVEL_ERROR, "t", "again");
    ck_assert_str_eq(take(stream, &priority), "t: again");
    close(stream);
    close(fd);
    log_set_syslog(-1);
    log_write(LOG_LEVEL_ERROR, "t", "z");
    ck_assert_ptr_nonnull(strstr(read_back(file), "t: z"));
    fclose(file);
    unlink(path);
}
END_TEST

START_TEST(a_syslog_that_nobody_reads)
{
    char path[] = "/tmp/hft-syslog-XXXXXX";
    int fd, priority;
    close(mkstemp(path));
    fd = listen_at(path, SOCK_DGRAM);
    log_set_syslog_path(path);
    log_set_syslog(LOG_LOCAL3);
    write_lines();
    uint64_t dropped = log_look();
    ck_assert_uint_gt(dropped, 0);
    for (uint64_t i = 0; i < LINES - dropped; i++)
        ck_assert_ptr_nonnull(strstr(take(fd, &priority), "thing: line "));
    log_warn("thing", "again");
    ck_assert_ptr_nonnull(strstr(take(fd, &priority), "lines dropped"));
    ck_assert_str_eq(take(fd, &priority), "thing: again");
    log_set_syslog(-1);
    close(fd);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tc = tcase_create("log");
    tcase_add_test(tc, levels);
    tcase_add_test(tc, nothing_is_evaluated_for_nothing);
    tcase_add_test(tc, escapes);
    tcase_add_test(tc, long_lines);
    tcase_add_test(tc, time_stamps);
    tcase_add_test(tc, journal);
    tcase_add_test(tc, limits);
    tcase_add_test(tc, limits_by_the_minute);
    tcase_add_test(tc, bursts);
    tcase_add_test(tc, a_pipe_that_nobody_reads);
    tcase_add_test(tc, a_socket_that_nobody_reads);
    tcase_add_test(tc, a_terminal_that_stands_still);
    tcase_add_test(tc, to_syslog);
    tcase_add_test(tc, a_syslog_that_nobody_reads);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
