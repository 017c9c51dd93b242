#pragma once
/*
 * dev: the private redis-servers of --dev, one a master (a, b, c...), on Unix sockets in a
 * directory of their own below /tmp. They keep nothing on disk and end with this process, however
 * it ends; one that dies meanwhile is started again, empty, after DEV_RESTART_MS.
 */
#include <stddef.h>
#include <stdio.h>

#include "base/util.h"

struct conf;
struct dev;
struct event_base;

enum { DEV_MASTERS_MAX = 15, DEV_RESTART_MS = 3000 };

/* Makes the directory for n masters, and removes those that dead processes have left. NULL: `error`
 * says why. */
struct dev *dev_new(int n, char *error, size_t error_size);

/* Set the defaults of dev mode, before anything else is read, and its masters, at the end. */
void dev_set_defaults(struct conf *);
void dev_set_masters(const struct dev *, struct conf *);

/* Starts the redis-servers, and gives them a moment to listen. -1: `error` says why. */
int dev_start(struct dev *, char *error, size_t error_size) MUST_CHECK;

/* Reports the redis-servers that die from now on, and starts them again. */
void dev_watch(struct dev *, struct event_base *);
/* Ends that, before the event base is freed; does nothing without dev_watch(). */
void dev_unwatch(struct dev *);

/* Prints what can be tried now; `address` is where clients connect. */
void dev_greet(const struct dev *, FILE *, const char *address);

/* Ends the redis-servers and removes the directory. NULL is allowed. */
void dev_free(struct dev *);
