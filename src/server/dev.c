/*
 * redis-servers as children.
 *
 * The kernel ends them when this process dies, whatever it dies of (PR_SET_PDEATHSIG), so none is
 * ever left. What a killed process leaves is its directory. It holds a lock on a file in there
 * while it lives, and the kernel takes that lock away at its death: so the next --dev sees which
 * directories nobody uses any more, and removes them.
 *
 * They are in process groups of their own: Ctrl-C on the terminal is for the broker, which ends
 * them last.
 */
#include "server/dev.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "conf/conf.h"

enum { STEP_MS = 5, WAIT_MS = 1000 };

#define DEV_ROOT "/tmp"
#define DEV_PREFIX "holdfast-dev."

struct dev_master {
    struct dev *dev;
    char name[2];
    char socket[64], log[64];
    pid_t pid; /* 0: it does not run */
    struct event restart;
};

struct dev {
    char dir[40];
    int lock_fd;
    int n;
    bool watched;
    struct event on_child;
    struct dev_master masters[DEV_MASTERS_MAX];
};

/* ---- the directory ---- */

/* Removes a directory and the files in it; there are no directories below it. */
static void remove_dir(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    (void)rmdir(path);
}

/* Returns true when the directory is ours and the process that made it is dead. */
static bool is_stale(const char *path)
{
    struct stat st;
    char lock[320];
    bool stale;

    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid())
        return false;
    snprintf(lock, sizeof lock, "%s/lock", path);
    int fd = open(lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false; /* it is just being made */
    stale = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return stale;
}

static void remove_stale(void)
{
    DIR *dir = opendir(DEV_ROOT);
    struct dirent *entry;
    char path[300];

    if (!dir)
        return;
    while ((entry = readdir(dir))) {
        if (strncmp(entry->d_name, DEV_PREFIX, strlen(DEV_PREFIX)) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", DEV_ROOT, entry->d_name);
        if (is_stale(path))
            remove_dir(path);
    }
    closedir(dir);
}

/* The file gets its name only when it is locked: nobody ever finds it unlocked while we live. */
static int lock_dir(const struct dev *d)
{
    char fresh[64], name[64];

    snprintf(fresh, sizeof fresh, "%s/lock.new", d->dir);
    snprintf(name, sizeof name, "%s/lock", d->dir);
    int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) != 0 || rename(fresh, name) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

struct dev *dev_new(int n, char *error, size_t error_size)
{
    struct dev *d = util_alloc(sizeof *d);
    char dir[] = DEV_ROOT "/" DEV_PREFIX "XXXXXX";

    remove_stale();
    d->n = n;
    if (!mkdtemp(dir)) {
        snprintf(error, error_size, "--dev: cannot make a directory in %s: %s", DEV_ROOT,
                 strerror(errno));
        free(d);
        return NULL;
    }
    snprintf(d->dir, sizeof d->dir, "%s", dir);
    for (int i = 0; i < n; i++) {
        struct dev_master *m = &d->masters[i];
        m->dev = d;
        m->name[0] = (char)('a' + i);
        snprintf(m->socket, sizeof m->socket, "%s/%c.sock", dir, 'a' + i);
        snprintf(m->log, sizeof m->log, "%s/%c.log", dir, 'a' + i);
    }
    d->lock_fd = lock_dir(d);
    if (d->lock_fd < 0) {
        snprintf(error, error_size, "--dev: cannot write in %s: %s", d->dir, strerror(errno));
        dev_free(d);
        return NULL;
    }
    return d;
}

/* ---- the configuration ---- */

static void set_conf(struct conf *conf, const char *name, const char *value)
{
    struct conf_error error;

    if (conf_set(conf, name, value, &error) != 0)
        util_die("--dev: %s", error.text);
}

void dev_set_defaults(struct conf *conf)
{
    set_conf(conf, "holdfast.listen", "127.0.0.1:5625");
    set_conf(conf, "holdfast.quarantine", "off");
    set_conf(conf, "http.listen", "off");
}

void dev_set_masters(const struct dev *d, struct conf *conf)
{
    char name[16], url[80];

    conf_clear_masters(conf);
    for (int i = 0; i < d->n; i++) {
        snprintf(name, sizeof name, "masters.%s", d->masters[i].name);
        snprintf(url, sizeof url, "unix://%s", d->masters[i].socket);
        set_conf(conf, name, url);
    }
}

/* ---- the children ---- */

/* Becomes redis-server, in the child; returns only when there is none. */
static void become_redis(struct dev_master *m, pid_t parent)
{
    sigset_t signals;

    /* Not TERM, which a stopped one would not see. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it had died before */
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = open(m->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        return;
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", m->socket,
           "--unixsocketperm", "700", "--dir", m->dev->dir, "--save", "", "--appendonly", "no",
           "--daemonize", "no", "--loglevel", "warning", "--maxmemory-policy", "noeviction",
           (char *)NULL);
}

/* 0, or the errno of what went wrong. The pipe is closed by a successful exec, else it brings the
 * errno. */
static int start_one(struct dev_master *m)
{
    int fds[2], err = 0;
    pid_t parent = getpid();

    if (pipe2(fds, O_CLOEXEC) != 0)
        return errno;
    (void)unlink(m->socket);
    m->pid = fork();
    if (m->pid == 0) {
        become_redis(m, parent);
        err = errno;
        (void)!write(fds[1], &err, sizeof err);
        _exit(127);
    }
    err = m->pid < 0 ? errno : 0;
    close(fds[1]);
    if (m->pid > 0 && read(fds[0], &err, sizeof err) == (ssize_t)sizeof err)
        waitpid(m->pid, NULL, 0);
    close(fds[0]);
    if (err != 0)
        m->pid = 0;
    return err;
}

/* So that the first look at the log is not one at masters that are not there yet. Not important:
 * they are tried again anyway. */
static void wait_for_sockets(const struct dev *d)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000};

    for (int i = 0, steps = 0; i < d->n && steps < WAIT_MS / STEP_MS; steps++) {
        if (access(d->masters[i].socket, F_OK) == 0)
            i++;
        else
            nanosleep(&step, NULL);
    }
}

int dev_start(struct dev *d, char *error, size_t error_size)
{
    for (int i = 0; i < d->n; i++) {
        int err = start_one(&d->masters[i]);
        if (err == ENOENT)
            snprintf(error, error_size,
                     "--dev needs redis-server, which is not there: "
                     "install the package redis-server");
        else if (err != 0)
            snprintf(error, error_size, "--dev: cannot start redis-server: %s", strerror(err));
        if (err != 0)
            return -1;
    }
    wait_for_sockets(d);
    return 0;
}

static const struct timeval restart_after = {.tv_sec = DEV_RESTART_MS / 1000};

static void on_restart(evutil_socket_t fd, short what, void *arg)
{
    struct dev_master *m = arg;
    int err = start_one(m);

    (void)fd, (void)what;
    if (err == 0) {
        log_info("dev", "redis-server of master %s runs again, empty pid=%ld", m->name,
                 (long)m->pid);
        return;
    }
    log_warn("dev", "redis-server of master %s cannot be started: %s", m->name, strerror(err));
    evtimer_add(&m->restart, &restart_after);
}

static void say_ended(const struct dev_master *m, int status)
{
    char how[128];

    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "was killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "ended with status %d, see %s", WEXITSTATUS(status), m->log);
    log_warn("dev", "redis-server of master %s %s, it is started again in %d s", m->name, how,
             DEV_RESTART_MS / 1000);
}

static void on_child(evutil_socket_t number, short what, void *arg)
{
    struct dev *d = arg;
    int status;

    (void)number, (void)what;
    for (int i = 0; i < d->n; i++) {
        struct dev_master *m = &d->masters[i];
        if (m->pid == 0 || waitpid(m->pid, &status, WNOHANG) != m->pid)
            continue;
        say_ended(m, status);
        m->pid = 0;
        evtimer_add(&m->restart, &restart_after);
    }
}

void dev_watch(struct dev *d, struct event_base *base)
{
    for (int i = 0; i < d->n; i++)
        evtimer_assign(&d->masters[i].restart, base, on_restart, &d->masters[i]);
    evsignal_assign(&d->on_child, base, SIGCHLD, on_child, d);
    evsignal_add(&d->on_child, NULL);
    d->watched = true;
    on_child(SIGCHLD, 0, d); /* who has died before this */
}

void dev_unwatch(struct dev *d)
{
    if (!d->watched)
        return;
    d->watched = false;
    event_del(&d->on_child);
    for (int i = 0; i < d->n; i++)
        event_del(&d->masters[i].restart);
}

void dev_free(struct dev *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->n; i++) {
        if (d->masters[i].pid == 0)
            continue;
        kill(d->masters[i].pid,
             SIGKILL); /* they have nothing to save, and a stopped one would not hear TERM */
        waitpid(d->masters[i].pid, NULL, 0);
    }
    remove_dir(d->dir);
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    free(d);
}

/* ---- the screen ---- */

/* The option that takes redis-cli there. */
static void redis_cli_option(char *out, size_t size, const char *address)
{
    const char *colon = strrchr(address, ':');

    if (strncmp(address, "unix:", 5) == 0)
        snprintf(out, size, "-s %s", address + 5);
    else
        snprintf(out, size, "-p %s", colon ? colon + 1 : address);
}

void dev_greet(const struct dev *d, FILE *out, const char *address)
{
    char option[128];

    redis_cli_option(option, sizeof option, address);
    fprintf(out,
            "\n"
            "  holdfastd is there for you to try, on %s, and keeps nothing.\n"
            "  In another terminal:\n"
            "\n"
            "    redis-cli %s LOCK hello OWNER me LEASE 30000    for 30 s: token, validity in ms\n"
            "    redis-cli %s UNLOCK hello OWNER me\n"
            "\n"
            "  Without LEASE a lock is kept for as long as the connection lives: `redis-cli %s`,\n"
            "  then LOCK hello, and QUIT. `help @lock` explains the commands.\n"
            "\n"
            "  %s\n"
            "  Stop or kill them and see what happens. Who is killed starts again after %d s,\n"
            "  and has forgotten everything.\n"
            "\n",
            address, option, option, option,
            d->n == 1 ? "The locks are kept by one redis-server."
                      : "The locks are kept by a majority of these redis-servers.",
            DEV_RESTART_MS / 1000);
    for (int i = 0; i < d->n; i++)
        fprintf(out, "    %s  pid %-7ld redis-cli -s %s GET 'holdfast:{hello}'\n",
                d->masters[i].name, (long)d->masters[i].pid, d->masters[i].socket);
    fprintf(out, "\n  Ctrl-C ends all of it.\n\n");
    fflush(out);
}
