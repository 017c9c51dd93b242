/*
 * Deliberate mistakes in the scripts (fake_server.h) and in the broker (mutants.c): for each there
 * is a story that fails, or it is found by chance (check_random.c, check_dropin.c) within so many
 * seeds. A rule whose absence nobody notices is not tested. That they all pass without a mistake is
 * seen by running them.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_server.h"

enum { SEEDS = 300 };

/* Who looks for the mistakes of LOCK and for those of drop-in, the quicker ones first. */
struct finder {
    const char *name;
    bool by_chance;
};
static const struct finder native[] = {
    {"check_forced", false},   {"check_renew", false},    {"check_restart", false},
    {"check_outage", false},   {"check_settings", false}, {"check_sentinel", false},
    {"check_rollcall", false}, {"check_random", true},    {NULL, false}};
static const struct finder drop_in[] = {
    {"check_exchange", false}, {"check_call", false}, {"check_dropin", true}, {NULL, false}};
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

static const struct finder *finders_of(enum fake_mutation m)
{
    bool in_script = m >= FAKE_GUESS_UNSEEN && m <= FAKE_HEALS_ANY;
    return in_script || m >= FAKE_REPLY_OF_GUESS ? drop_in : native;
}

static const struct finder *who_finds(enum fake_mutation mutation)
{
    for (const struct finder *f = finders_of(mutation); f->name; f++) {
        int status = run(f->name, mutation);
        if (f->by_chance ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT
                         : WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE)
            return f;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int missed = 0;
    const char *slash = strrchr(argv[0], '/');
    (void)argc;
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
    for (int i = FAKE_AS_IT_SHOULD_BE + 1; i < FAKE_MUTATIONS; i++) {
        const struct finder *f = who_finds((enum fake_mutation)i);
        printf("%-42s %s\n", fake_mutation_names[i], f ? f->name : "NOT FOUND");
        missed += !f;
    }
    return missed ? EXIT_FAILURE : EXIT_SUCCESS;
}
