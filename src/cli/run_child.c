/*
 * Makes this process a child subreaper (prctl(2)): a descendant whose parent dies becomes our
 * child, so that a walk over /proc finds all of them.
 */
#include "cli/run_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the command in the child; if that fails, writes errno to the pipe and exits. */
static _Noreturn void become_command(char **argv, const sigset_t *mask, pid_t parent, int pipe_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before that */
        _exit(1);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    int why = errno;
    while (write(pipe_fd, &why, sizeof why) < 0 && errno == EINTR)
        continue;
    _exit(127);
}

int run_child_start(struct run_child *c, char **argv, const sigset_t *mask)
{
    int pipe_fds[2], why = 0;
    pid_t self = getpid();
    *c = (struct run_child){0};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        become_command(argv, mask, self, pipe_fds[1]);
    int fork_error = errno;
    close(pipe_fds[1]);
    while (pid > 0 && read(pipe_fds[0], &why, sizeof why) < 0 && errno == EINTR)
        continue;
    close(pipe_fds[0]);
    if (pid < 0 || why) {
        if (pid > 0)
            waitpid(pid, NULL, 0);
        errno = pid < 0 ? fork_error : why;
        return -1;
    }
    c->pid = pid;
    return 0;
}

bool run_child_reap(struct run_child *c)
{
    pid_t pid;
    int status;
    bool has_stopped = false;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (pid != c->pid)
            continue;
        has_stopped = WIFSTOPPED(status);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            c->pid = 0;
            c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
    return has_stopped;
}

void run_child_signal(const struct run_child *c, int number)
{
    if (c->pid)
        kill(c->pid, number);
}

/* ---- the tree ---- */

struct process {
    pid_t pid, parent;
    bool ours;
};

/* Returns the parent of a living process; 0: there is no such process. */
static pid_t parent_of(const char *pid)
{
    char path[64], line[512];
    long parent = 0;
    char state = 'Z';
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t n = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[n] = '\0';
    const char *end = strrchr(line, ')'); /* of the name, which may hold anything */
    if (!end || sscanf(end + 1, " %c %ld", &state, &parent) != 2 || state == 'Z' || state == 'X')
        return 0;
    return (pid_t)parent;
}

static size_t list_processes(struct process **list)
{
    size_t n = 0;
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    *list = NULL;
    while (dir && (entry = readdir(dir))) {
        int64_t pid;
        if (util_parse_int(entry->d_name, strlen(entry->d_name), 1, INT32_MAX, &pid) != 0)
            continue;
        pid_t parent = parent_of(entry->d_name);
        if (parent == 0)
            continue;
        *list = util_realloc(*list, (n + 1) * sizeof **list);
        (*list)[n++] = (struct process){(pid_t)pid, parent, false};
    }
    if (dir)
        closedir(dir);
    return n;
}

static bool is_below(const struct process *list, size_t n, pid_t parent)
{
    if (parent == getpid())
        return true;
    for (size_t i = 0; i < n; i++) {
        if (list[i].pid == parent)
            return list[i].ours;
    }
    return false;
}

int run_child_signal_all(const struct run_child *c, int number)
{
    struct process *list;
    size_t n = list_processes(&list);
    int found = 0;
    bool grown = true;
    while (grown) {
        grown = false;
        for (size_t i = 0; i < n; i++) {
            if (list[i].ours || !is_below(list, n, list[i].parent))
                continue;
            list[i].ours = grown = true;
            found++;
        }
    }
    run_child_signal(c, number);
    for (size_t i = 0; i < n; i++) {
        if (list[i].ours && list[i].pid != c->pid)
            kill(list[i].pid, number);
    }
    free(list);
    return found == 0 && c->pid ? 1 : found; /* without /proc */
}
