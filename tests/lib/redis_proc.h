#pragma once
/*
 * A private redis-server: on a Unix socket in a directory of its own, ended with the process that
 * started it. All calls block, at most some seconds; what goes wrong ends the test by abort().
 */
#include <stdbool.h>
#include <sys/types.h>

struct redis_proc {
    pid_t pid; /* 0: not running */
    char dir[64];
    char path[80]; /* of the socket */
};

/* Whether there is a redis-server to be run. */
bool redis_proc_available(void);

/* Starts it and waits until it answers. `options` are more arguments, ended by NULL; or NULL. The
 * same struct may be started again after redis_proc_kill(): in the same directory. */
void redis_proc_start(struct redis_proc *, const char *const *options);
void redis_proc_kill(struct redis_proc *); /* SIGKILL, and its end is waited for */
void redis_proc_stop(struct redis_proc *); /* SIGSTOP: it stands when this returns */
void redis_proc_continue(struct redis_proc *);
/* Kills it and removes the directory. */
void redis_proc_fini(struct redis_proc *);

/* One command, words separated by blanks, over a connection of its own. Returns the reply as text,
 * in memory that is used again: an error with '-' before it, a nil as "(nil)", elements joined by
 * blanks. */
const char *redis_proc_do(struct redis_proc *, const char *command);
/* The number behind `key` in a reply of INFO; -1: it is not there. */
long redis_proc_info(struct redis_proc *, const char *section, const char *key);
