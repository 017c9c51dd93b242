#pragma once
/*
 * run_child: starts, signals and reaps the command of `holdfast run`. It stays in our process
 * group, so that a terminal treats both as one job, and whatever it starts stays below us, so that
 * all of it can be found.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/util.h"

struct run_child {
    pid_t pid;  /* 0: not started, or ended */
    int status; /* exit status as a shell tells it, once it has ended */
};

/* Runs argv with the signal mask and dispositions of before. The kernel kills it when this process
 * dies. 0, or -1: errno says why it cannot be run. */
int run_child_start(struct run_child *c, char **argv, const sigset_t *mask) MUST_CHECK;

/* Reaps what has ended, after SIGCHLD: the command, whose status is kept, and other descendants.
 * True: a signal has stopped the command since the last call, and it has not been seen to go on. */
bool run_child_reap(struct run_child *c);

/* Sends a signal to the command alone, if it runs. */
void run_child_signal(const struct run_child *c, int number);

/* Sends a signal to every living descendant, the command first; returns how many there are. */
int run_child_signal_all(const struct run_child *c, int number);
