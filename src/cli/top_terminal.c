/*
 * The terminal of top: in raw mode, on its second screen. Whatever ends the program puts it back
 * (atexit, and signals only set a flag).
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/top_private.h"

/* Another screen, no cursor, lines that are too long are cut; and back. */
#define ENTER_SCREEN "\033[?1049h\033[?25l\033[?7l"
#define LEAVE_SCREEN "\033[?7h\033[?25h\033[?1049l"
#define HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

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

static void restore_terminal(void)
{
    ssize_t n = write(STDOUT_FILENO, LEAVE_SCREEN, sizeof LEAVE_SCREEN - 1);
    (void)n;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved_terminal);
}

void top_take_terminal(void)
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

/* Each line is cleared before it is written: behind one that fills the screen's width the cursor
 * stands on its last character, and a clear would take that. */
void top_show(const struct buf *frame, const struct screen *s)
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

int top_stop_signal(void)
{
    return stop_signal;
}

int top_read_keys(char *keys, size_t size, int64_t ms)
{
    int64_t until_ms = clock_ms() + ms;
    for (;;) {
        struct pollfd fd = {STDIN_FILENO, POLLIN, 0};
        int64_t left_ms = until_ms - clock_ms();
        if (stop_signal || resized) {
            resized = 0;
            return 0;
        }
        if (poll(&fd, 1, left_ms > 0 ? (int)left_ms : 0) > 0) {
            ssize_t n = read(STDIN_FILENO, keys, size);
            return n > 0 ? (int)n : -1;
        }
        if (left_ms <= 0)
            return 0;
    }
}
