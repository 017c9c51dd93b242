/*
 * Deliberate mistakes in the scripts (fake_server.h) and in the broker (mutants.c): for each there
 * is a story that fails (check_forced.c, check_renew.c, check_restart.c, check_settings.c), or it
 * is found by chance (check_random.c, check_dropin.c) within so many seeds. A rule whose absence
 * nobody notices is not tested.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_server.h"

enum { SEEDS = 300 };

static const char *const stories[] = {"check_forced", "check_renew", "check_restart",
                                      "check_settings"};
static const char *const by_chance[] = {"check_random", "check_dropin"};
static char directory[1000];

/* Runs a program beside this one with the mistake in it; its status as of wait(). */
static int run(const char *name, enum fake_mutation mutation)
{
    char path[1100], number[16], seeds[16];
    int status = 0;
    snprintf(path, sizeof path, "%s%s", directory, name);
    snprintf(number, sizeof number, "%d", (int)mutation);
    snprintf(seeds, sizeof seeds, "%d", SEEDS);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("SIM_MUTATION", number, 1);
        setenv("SIM_SEEDS", seeds, 1);
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(77);
        execl(path, name, (char *)NULL);
        _exit(77);
    }
    waitpid(pid, &status, 0);
    return status;
}

static const char *who_finds(enum fake_mutation mutation)
{
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        int status = run(stories[i], mutation);
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE)
            return "by a story";
    }
    for (size_t i = 0; i < sizeof by_chance / sizeof by_chance[0]; i++) {
        int status = run(by_chance[i], mutation);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
            return "by chance";
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int missed = 0;
    const char *slash = strrchr(argv[0], '/');
    (void)argc;
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        if (run(stories[i], FAKE_AS_IT_SHOULD_BE) != 0) {
            fprintf(stderr, "%s fails without any mistake\n", stories[i]);
            return EXIT_FAILURE;
        }
    }
    for (int i = FAKE_AS_IT_SHOULD_BE + 1; i < FAKE_MUTATIONS; i++) {
        const char *how = who_finds((enum fake_mutation)i);
        printf("%-42s %s\n", fake_mutation_names[i], how ? how : "NOT FOUND");
        missed += !how;
    }
    return missed ? EXIT_FAILURE : EXIT_SUCCESS;
}
