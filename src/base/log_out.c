/* Where lines go, without waiting for whoever reads them.
 *
 * The file that we were given as stderr may be shared with other processes, so O_NONBLOCK must not
 * be set on it. Pipes and terminals are opened again, which gives a file of our own; sockets are
 * told with each line; anything else, and what cannot be opened again, is only written to when
 * poll() says that there is room (a pipe that is not full takes a line of at most PIPE_BUF at
 * once).
 *
 * Invariant: `rest` is what is left of the last line, of which a part is written; no other line is
 * begun before it is gone. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_private.h"

enum { PATIENCE_MS = 1000, LINE_MAX_LEN = LOG_LINE_MAX + 128 };

_Static_assert(LINE_MAX_LEN <= PIPE_BUF, "a line is one write");

static int out_fd = STDERR_FILENO;
static int own_fd = -1; /* out_fd when it was opened here */
static bool is_socket, is_own_nonblocking;
static bool is_stream; /* syslog by a stream: a NUL ends a line */
static char syslog_path[sizeof((struct sockaddr_un *)0)->sun_path];
static int patience_ms = PATIENCE_MS;

static char rest[LINE_MAX_LEN];
static size_t rest_len;

void log_set_patient(bool patient)
{
    patience_ms = patient ? PATIENCE_MS : 0;
}

/* ---- the file ---- */

static void let_go_of_fd(void)
{
    if (own_fd >= 0)
        close(own_fd);
    own_fd = out_fd = -1;
    is_socket = is_own_nonblocking = is_stream = false;
    rest_len = 0;
}

/* Opens the same pipe or terminal as a file of our own; -1 if that is not possible. */
static int open_again(int fd)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void log_out_use_fd(int fd)
{
    struct stat st;

    let_go_of_fd();
    syslog_path[0] = '\0';
    out_fd = fd;
    if (fstat(fd, &st) != 0)
        return;
    is_socket = S_ISSOCK(st.st_mode);
    if ((S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) && (own_fd = open_again(fd)) >= 0)
        out_fd = own_fd;
    is_own_nonblocking = own_fd >= 0;
}

/* ---- syslog ---- */

static int connect_to(const struct sockaddr_un *to, int type)
{
    int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof *to) == 0)
        return fd;
    int err = errno;
    if (fd >= 0)
        close(fd);
    errno = err;
    return -1;
}

/* Connects, also again: the syslog daemon may have been restarted. */
static void connect_syslog(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    let_go_of_fd();
    strcpy(to.sun_path, syslog_path);
    own_fd = connect_to(&to, SOCK_DGRAM);
    is_stream = own_fd < 0 && errno == EPROTOTYPE;
    if (is_stream)
        own_fd = connect_to(&to, SOCK_STREAM);
    out_fd = own_fd;
    is_socket = true;
}

void log_out_use_syslog(const char *path)
{
    snprintf(syslog_path, sizeof syslog_path, "%s", path);
    connect_syslog();
}

/* ---- writing ---- */

static bool takes_bytes(int wait_ms)
{
    struct pollfd p = {.fd = out_fd, .events = POLLOUT};

    return poll(&p, 1, wait_ms) == 1 && (p.revents & POLLOUT) != 0;
}

static ssize_t write_now(const char *bytes, size_t len)
{
    if (is_socket)
        return send(out_fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!is_own_nonblocking && !takes_bytes(0)) {
        errno = EAGAIN;
        return -1;
    }
    return write(out_fd, bytes, len);
}

/* Writes some of the bytes and returns how many; -1: none. Waits a moment, once, while lines may
 * wait (log_set_patient). */
static ssize_t write_some(const char *bytes, size_t len)
{
    ssize_t n = write_now(bytes, len);

    if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        return n;
    if (patience_ms > 0 && takes_bytes(patience_ms))
        return write_now(bytes, len);
    patience_ms = 0;
    return -1;
}

bool log_out_rest(void)
{
    ssize_t n = rest_len > 0 ? write_some(rest, rest_len) : 0;

    if (n > 0) {
        rest_len -= (size_t)n;
        memmove(rest, rest + n, rest_len);
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        rest_len = 0;
    }
    return rest_len == 0;
}

bool log_out(const char *line, size_t len)
{
    if (!log_out_rest())
        return false;
    ssize_t n = write_some(line, len + is_stream);
    if (n < 0 && syslog_path[0] && errno != EAGAIN && errno != EINTR && errno != ENOBUFS &&
        errno != EMSGSIZE) {
        connect_syslog();
        n = write_some(line, len + is_stream);
    }
    if (n <= 0)
        return false;
    rest_len = len + is_stream - (size_t)n;
    memcpy(rest, line + n, rest_len);
    return true;
}
