/*
 * holdfast top: shows one screen of a broker, each second anew. A broker that goes away is shown as
 * such and tried again.
 *
 * The terminal is in raw mode on its second screen meanwhile; whatever ends the program puts it
 * back (atexit, and signals only set a flag).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/ls.h"
#include "cli/masters.h"

enum { LOCKS_MAX = 500, ERROR_MAX = 1024 };

/* Another screen, no cursor, lines that are too long are cut; and back. */
#define ENTER_SCREEN "\033[?1049h\033[?25l\033[?7l"
#define LEAVE_SCREEN "\033[?7h\033[?25h\033[?1049l"
#define HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

/* Index the counts of INFO from which rates are made. */
enum { GRANTED, HANDED_OVER, RELEASED, RENEWED, BUSY, TIMED_OUT, N_RATES };
static const char *const rate_fields[N_RATES] = {"acquires_granted", "handovers",
                                                 "releases_client",  "renewals_ok",
                                                 "acquires_busy",    "acquires_timeout"};

struct top {
    struct link link;
    int64_t counts[N_RATES], counted_us; /* of the screen before; counted_us 0: none */
    double rates[N_RATES];
    char error[ERROR_MAX];
};

static struct termios saved_terminal;
static volatile sig_atomic_t stop_signal, resized;

static void on_stop(int number)
{
    stop_signal = number;
}

static void on_resize(int number)
{
    (void)number;
    resized = 1;
}

/* ---- one screen ---- */

static void count_rates(struct top *t, const char *info)
{
    int64_t now_us = clock_us();
    double seconds = (double)(now_us - t->counted_us) / 1e6;
    for (int i = 0; i < N_RATES; i++) {
        int64_t count = ask_info_int(info, rate_fields[i]);
        bool known = t->counted_us && count >= t->counts[i];
        t->rates[i] = known ? (double)(count - t->counts[i]) / seconds : 0;
        t->counts[i] = count;
    }
    t->counted_us = now_us;
}

static void put_summary(const struct top *t, const char *info, struct buf *out,
                        const struct screen *s)
{
    char version[32], up[24], time_text[16];
    time_t wall = time(NULL);
    struct tm tm;
    bool ready = ask_info_int(info, "ready") != 0, draining = ask_info_int(info, "draining") != 0;
    strftime(time_text, sizeof time_text, "%H:%M:%S", localtime_r(&wall, &tm));
    text_tint(out, s->colour, TINT_HEAD);
    buf_printf(out, "holdfastd %s",
               ask_info_text(info, "holdfast_version", version, sizeof version));
    text_tint(out, s->colour, TINT_NONE);
    buf_printf(out, "  %s  up %s  ", t->link.url->shown,
               text_duration(up, 1000 * ask_info_int(info, "uptime_in_seconds")));
    text_tint(out, s->colour, draining ? TINT_WARN : ready ? TINT_GOOD : TINT_BAD);
    buf_printf(out, "%s: %lld of %lld masters",
               draining ? "draining"
               : ready  ? "ready"
                        : "not ready",
               (long long)ask_info_int(info, "quorum_available"),
               (long long)ask_info_int(info, "masters"));
    text_tint(out, s->colour, TINT_NONE);
    buf_printf(out, "  %s\n", time_text);
}

/* Returns the part "p99" of a field "acquire_us:count=1,p50=2,p99=3,...". */
static int64_t info_part(const char *info, const char *field, const char *part)
{
    char text[128], key[16];
    int64_t n = 0;
    ask_info_text(info, field, text, sizeof text);
    snprintf(key, sizeof key, ",%s=", part);
    const char *at = strstr(text, key);
    if (at) {
        at += strlen(key);
        if (util_parse_int(at, strspn(at, "0123456789"), 0, INT64_MAX, &n) != 0)
            n = 0;
    }
    return n;
}

static void put_quantiles(struct buf *out, const char *label, const char *info, const char *field)
{
    char p50[24], p99[24], max[24];
    buf_printf(out, "%-10s %8s p50          %8s p99          %8s max\n", label,
               text_latency(p50, info_part(info, field, "p50")),
               text_latency(p99, info_part(info, field, "p99")),
               text_latency(max, info_part(info, field, "max")));
}

static void put_figures(const struct top *t, const char *info, struct buf *out)
{
    long long lost = 0;
    static const char *const losses[] = {"lost_no_quorum", "lost_gone",   "lost_moved",
                                         "lost_left",      "lost_forced", "lost_pause"};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        lost += ask_info_int(info, losses[i]);
    buf_printf(out, "locks      %8lld held         %8lld waiting      %8lld clients\n",
               (long long)ask_info_int(info, "locks_held"),
               (long long)ask_info_int(info, "waiters"),
               (long long)ask_info_int(info, "connected_clients"));
    buf_printf(out, "a second   %8.1f taken        %8.1f handed over  %8.1f released\n",
               t->rates[GRANTED], t->rates[HANDED_OVER], t->rates[RELEASED]);
    buf_printf(out, "           %8.1f busy         %8.1f timed out    %8.1f renewed\n",
               t->rates[BUSY], t->rates[TIMED_OUT], t->rates[RENEWED]);
    buf_printf(out, "so far     %8lld lost         %8lld in jeopardy  %8lld deadlocks\n", lost,
               (long long)ask_info_int(info, "jeopardies"),
               (long long)ask_info_int(info, "acquires_deadlock"));
    put_quantiles(out, "acquire", info, "acquire_us");
    put_quantiles(out, "with wait", info, "wait_us");
}

/* Sorts locks by how many wait, then by how long they are held. */
static int by_interest(const void *a, const void *b)
{
    const struct locks_row *x = a, *y = b;
    int64_t waiting = ask_int(y->info, "waiting") - ask_int(x->info, "waiting");
    int64_t held =
        ask_int(locks_holder(y->info), "held_ms") - ask_int(locks_holder(x->info), "held_ms");
    int64_t order = waiting ? waiting : held;
    return order < 0 ? -1 : order > 0 ? 1 : strcmp(x->name, y->name);
}

static void put_locks(struct locks *locks, struct buf *out, const struct screen *s, int rows)
{
    struct table t;
    size_t shown = s->rows && rows < 0 ? 0 : s->rows ? (size_t)rows : locks->n;
    if (locks->n > 0)
        qsort(locks->v, locks->n, sizeof locks->v[0], by_interest);
    ls_table(&t);
    for (size_t i = 0; i < locks->n && i < shown; i++)
        ls_add_row(&t, &locks->v[i]);
    table_print(&t, out, s, -1);
    table_fini(&t);
}

static int lines_of(const struct buf *out)
{
    int lines = 0;
    const char *text = buf_head(out);
    for (size_t i = 0; i < buf_len(out); i++)
        lines += text[i] == '\n';
    return lines;
}

static redisReply *ask_typed(struct link *link, const char *word, int type)
{
    link_send(link, 1, &word);
    redisReply *reply = ask_try_reply(link);
    if (reply && reply->type != type) {
        if (reply->type == REDIS_REPLY_ERROR)
            snprintf(link->error, sizeof link->error, "%s: %.200s", word, reply->str);
        freeReplyObject(reply);
        link_close(link);
        return NULL;
    }
    return reply;
}

/* Appends the screen. -1: the link is closed and its error set. */
static int put_screen(struct top *t, struct buf *out, const struct screen *s)
{
    struct locks locks;
    struct table table;
    redisReply *error = NULL, *masters, *info = ask_typed(&t->link, "INFO", REDIS_REPLY_STRING);
    if (!info)
        return -1;
    masters = ask_typed(&t->link, "MASTERS", REDIS_REPLY_ARRAY);
    if (!masters || locks_get(&locks, &t->link, NULL, LOCKS_MAX, true, &error) != 0) {
        freeReplyObject(info);
        if (masters)
            freeReplyObject(masters);
        if (error)
            freeReplyObject(error);
        link_close(&t->link);
        return -1;
    }
    count_rates(t, info->str);
    put_summary(t, info->str, out, s);
    put_figures(t, info->str, out);
    buf_printf(out, "\n");
    masters_table(&table, masters);
    table_print(&table, out, s, s->rows ? (s->rows - 13 > 3 ? s->rows - 13 : 3) : -1);
    table_fini(&table);
    buf_printf(out, "\n");
    put_locks(&locks, out, s, s->rows - lines_of(out) - 1);
    locks_fini(&locks);
    freeReplyObject(masters);
    freeReplyObject(info);
    return 0;
}

/* ---- the terminal ---- */

static void restore_terminal(void)
{
    ssize_t n = write(STDOUT_FILENO, LEAVE_SCREEN, sizeof LEAVE_SCREEN - 1);
    (void)n;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved_terminal);
}

static void take_terminal(void)
{
    struct termios raw;
    struct sigaction stop = {.sa_handler = on_stop}, resize = {.sa_handler = on_resize};
    struct buf out = {0};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    sigaction(SIGWINCH, &resize, NULL);
    if (tcgetattr(STDIN_FILENO, &saved_terminal) != 0)
        cli_die(STATUS_USAGE, "top: its input must be the terminal too");
    raw = saved_terminal;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_lflag |= ISIG;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* no stop on the second screen */
    atexit(restore_terminal);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    buf_append(&out, ENTER_SCREEN, sizeof ENTER_SCREEN - 1);
    text_flush(&out);
}

/* Writes no more lines than the screen has, each cleared before it is written: behind one that
 * fills the screen's width the cursor stands on its last character, and a clear would take that. */
static void show_screen(const struct buf *frame, const struct screen *s)
{
    struct buf out = {0};
    const char *text = buf_head(frame), *end = text + buf_len(frame);
    int row = 0;
    buf_append(&out, HOME, sizeof HOME - 1);
    for (; text < end && row < s->rows; row++) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        buf_append(&out, CLEAR_LINE, sizeof CLEAR_LINE - 1);
        buf_append(&out, text, (size_t)((eol ? eol : end) - text));
        text = eol ? eol + 1 : end;
        if (row + 1 < s->rows)
            buf_append(&out, "\r\n", 2);
    }
    if (row < s->rows)
        buf_append(&out, CLEAR_BELOW, sizeof CLEAR_BELOW - 1);
    text_flush(&out);
}

/* Waits, and handles keys. False: the user wants to leave. */
static bool pause_screen(int64_t ms)
{
    int64_t until_ms = clock_ms() + ms;
    for (;;) {
        struct pollfd fd = {STDIN_FILENO, POLLIN, 0};
        int64_t left_ms = until_ms - clock_ms();
        char key;
        if (stop_signal)
            return false;
        if (left_ms <= 0 || resized)
            return true;
        if (poll(&fd, 1, (int)left_ms) <= 0)
            continue;
        if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
            return false;
        if (key == ' ' || key == '\n')
            return true;
    }
}

static void run_live(struct top *t, int64_t delay_ms)
{
    bool again = true;
    take_terminal();
    while (again) {
        struct screen s = text_screen();
        struct buf frame = {0};
        resized = 0;
        if (!link_is_open(&t->link) &&
            ask_try_open(&t->link, cli_urls(), t->error, sizeof t->error) != 0) {
            t->counted_us = 0;
            buf_printf(&frame, "no broker: %s\n\ntrying again; q ends\n", t->error);
        } else if (put_screen(t, &frame, &s) != 0) {
            buf_fini(&frame);
            buf_printf(&frame, "%s\n\ntrying again; q ends\n", t->link.error);
        }
        show_screen(&frame, &s);
        buf_fini(&frame);
        again = pause_screen(delay_ms);
    }
}

int top_main(int argc, char **argv)
{
    struct screen screen = text_screen();
    struct top t = {0};
    int64_t delay_ms = 1000;
    const struct cli_option own[] = {{"delay", 'd', CLI_MS, &delay_ms, 0, 0}, {0}};
    cli_options(argc, argv, own, false);
    cli_no_words(argc, argv);
    if (delay_ms < 100)
        delay_ms = 100;
    ask_open(&t.link, cli_urls());
    if (screen.is_terminal) {
        run_live(&t, delay_ms);
    } else {
        struct buf out = {0};
        if (put_screen(&t, &out, &screen) != 0)
            cli_die(STATUS_NO_BROKER, "%s", t.link.error);
        text_flush(&out);
    }
    link_close(&t.link);
    return stop_signal ? 128 + stop_signal : STATUS_OK;
}
