/* The main() of the unit tests in one call. A suite in which nothing ran counts as a failure: an
 * empty green test hides more than a red one. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "redis_proc.h"

enum { LEFT_OUT = 77 };

int suite_run(Suite *s)
{
    SRunner *runner = srunner_create(s);

    srunner_run_all(runner, CK_ENV);

    int run = srunner_ntests_run(runner);
    int failed = srunner_ntests_failed(runner);

    srunner_free(runner);
    if (run == 0)
        fprintf(stderr, "no check ran\n");
    return run > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int suite_run_with_redis(Suite *s)
{
    if (redis_proc_available())
        return suite_run(s);
    fprintf(stderr, "redis-server is not there\n");
    srunner_free(srunner_create(s));
    return LEFT_OUT;
}
