/*
 * Deliberate mistakes in the scripts (fake_server.h): the simulation has to find each one within so
 * many seeds. A rule whose absence nobody notices is not tested.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_server.h"

enum { SEEDS = 300 };

static const enum fake_mutation mutations[] = {
    FAKE_NO_DEADLINE, FAKE_NO_QUARANTINE,   FAKE_RELEASE_ANY,  FAKE_RENEW_CREATES,
    FAKE_NO_FLOOR,    FAKE_SCRIPTS_SURVIVE, FAKE_JUMPS_UNSEEN,
};

/* Runs check_random beside this program with the mistake in it; true: it has failed, as it must. */
static int is_found(const char *program, enum fake_mutation mutation)
{
    char number[16], seeds[16];
    int status = 0;
    snprintf(number, sizeof number, "%d", (int)mutation);
    snprintf(seeds, sizeof seeds, "%d", SEEDS);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("SIM_MUTATION", number, 1);
        setenv("SIM_SEEDS", seeds, 1);
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(77);
        execl(program, program, (char *)NULL);
        _exit(77);
    }
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int main(int argc, char **argv)
{
    char program[1024];
    int missed = 0;
    const char *slash = strrchr(argv[0], '/');
    (void)argc;
    snprintf(program, sizeof program, "%.*scheck_random", slash ? (int)(slash + 1 - argv[0]) : 0,
             argv[0]);
    for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
        int found = is_found(program, mutations[i]);
        printf("%-30s %s\n", fake_mutation_names[mutations[i]], found ? "found" : "NOT FOUND");
        missed += !found;
    }
    return missed ? EXIT_FAILURE : EXIT_SUCCESS;
}
