#include "redis_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 10000, POLL_MS = 5, OPTIONS_MAX = 24 };

static char said[65536];

static void fail(const char *what)
{
    perror(what);
    abort();
}

bool redis_proc_available(void)
{
    const char *path = getenv("PATH");
    char *dirs = strdup(path ? path : "/usr/bin"), *rest = dirs, *dir, file[4096];
    bool found = false;

    while (!found && (dir = strsep(&rest, ":")) != NULL) {
        snprintf(file, sizeof file, "%s/redis-server", dir);
        found = access(file, X_OK) == 0;
    }
    free(dirs);
    return found;
}

static redisContext *dial(const struct redis_proc *p)
{
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    redisContext *c = redisConnectUnix(p->path);

    if (c && c->err) {
        redisFree(c);
        c = NULL;
    }
    if (c)
        redisSetTimeout(c, limit);
    return c;
}

/* It answers, be it by an error that asks for a password. Not while it loads its data. */
static bool answers(const struct redis_proc *p)
{
    redisContext *c = dial(p);
    redisReply *r = c ? redisCommand(c, "PING") : NULL;
    bool yes = r && !(r->type == REDIS_REPLY_ERROR && strncmp(r->str, "LOADING", 7) == 0);

    if (r)
        freeReplyObject(r);
    if (c)
        redisFree(c);
    return yes;
}

static void run(const struct redis_proc *p, const char *const *options, pid_t parent)
{
    const char *argv[OPTIONS_MAX + 16] = {
        "redis-server", "--dir", p->dir,      "--port",    "0",          "--unixsocket", p->path,
        "--save",       "",      "--logfile", "redis.log", "--loglevel", "notice"};
    int n = 13;

    while (options && *options && n < OPTIONS_MAX + 15)
        argv[n++] = *options++;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    execvp(argv[0], (char *const *)(void *)argv);
    _exit(127);
}

void redis_proc_start(struct redis_proc *p, const char *const *options)
{
    struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    pid_t parent = getpid();

    if (!*p->dir) {
        snprintf(p->dir, sizeof p->dir, "/tmp/hft-XXXXXX");
        if (!mkdtemp(p->dir))
            fail("mkdtemp");
        snprintf(p->path, sizeof p->path, "%s/s", p->dir);
    }
    p->pid = fork();
    if (p->pid < 0)
        fail("fork");
    if (p->pid == 0)
        run(p, options, parent);
    for (int waited = 0; !answers(p); waited += POLL_MS) {
        if (waited > WAIT_MS || waitpid(p->pid, NULL, WNOHANG) != 0) {
            errno = ETIMEDOUT;
            fail("redis-server");
        }
        nanosleep(&pause, NULL);
    }
}

void redis_proc_kill(struct redis_proc *p)
{
    if (p->pid <= 0)
        return;
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    p->pid = 0;
}

void redis_proc_stop(struct redis_proc *p)
{
    int status;

    kill(p->pid, SIGSTOP);
    waitpid(p->pid, &status, WUNTRACED);
}

void redis_proc_continue(struct redis_proc *p)
{
    kill(p->pid, SIGCONT);
}

void redis_proc_fini(struct redis_proc *p)
{
    static const char *const files[] = {"s", "redis.log", "dump.rdb"};
    char command[128];

    redis_proc_kill(p);
    if (!*p->dir)
        return;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(command, sizeof command, "%s/%s", p->dir, files[i]);
        unlink(command);
    }
    if (rmdir(p->dir) != 0) { /* an append-only log is a directory */
        snprintf(command, sizeof command, "rm -rf '%s'", p->dir);
        if (system(command) != 0)
            fail("rm");
    }
    *p = (struct redis_proc){0};
}

static size_t put(size_t n, const char *text, size_t len)
{
    if (len > sizeof said - 1 - n)
        len = sizeof said - 1 - n;
    memcpy(said + n, text, len);
    said[n + len] = 0;
    return n + len;
}

static size_t put_reply(size_t n, const redisReply *r)
{
    char number[32];

    switch (r->type) {
    case REDIS_REPLY_INTEGER:
        return put(n, number, (size_t)snprintf(number, sizeof number, "%lld", r->integer));
    case REDIS_REPLY_NIL:
        return put(n, "(nil)", 5);
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < r->elements; i++) {
            if (i > 0)
                n = put(n, " ", 1);
            n = put_reply(n, r->element[i]);
        }
        return n;
    case REDIS_REPLY_ERROR:
        n = put(n, "-", 1);
        return put(n, r->str, (size_t)r->len);
    default:
        return put(n, r->str, (size_t)r->len);
    }
}

const char *redis_proc_do(struct redis_proc *p, const char *command)
{
    redisContext *c = dial(p);
    char *words = strdup(command), *rest = words, *word;
    const char *argv[64];
    int argc = 0;

    while (argc < 64 && (word = strsep(&rest, " ")) != NULL)
        argv[argc++] = word;
    redisReply *r = c ? redisCommandArgv(c, argc, argv, NULL) : NULL;
    if (!r)
        fail(command);
    said[0] = 0;
    put_reply(0, r);
    freeReplyObject(r);
    redisFree(c);
    free(words);
    return said;
}

long redis_proc_info(struct redis_proc *p, const char *section, const char *key)
{
    char command[64];

    snprintf(command, sizeof command, "INFO %s", section);
    const char *at = strstr(redis_proc_do(p, command), key);
    return at ? atol(at + strlen(key)) : -1;
}
