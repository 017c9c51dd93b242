#pragma once

#include <check.h>

/* Runs the suite and returns what main() returns: EXIT_SUCCESS, or EXIT_FAILURE when a check failed
 * or when there was none to run. Frees the suite. Check's own environment variables work:
 * CK_VERBOSITY=verbose, CK_RUN_CASE=name, CK_FORK=no for a debugger. */
int suite_run(Suite *s);
/* The same for one that starts a redis-server: without any it runs nothing and returns 77, which
 * means that it was left out. */
int suite_run_with_redis(Suite *s);
