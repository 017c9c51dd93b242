#ifndef HOLDFAST_CLI_H
#define HOLDFAST_CLI_H
/*
 * cli: is shared by the sub-commands of `holdfast`: their table, the options that all of them take,
 * exit statuses, messages. A sub-command is one row in main.c and its function, which gets its own
 * words only (argv[0] is its name) and returns the exit status.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/url.h"
#include "net/tls.h"

/* Those of sysexits(3) where one fits. `run` ends with the status of its command otherwise. */
enum cli_status {
    STATUS_OK = 0,
    STATUS_NO = 1,           /* unlock: nobody held it */
    STATUS_USAGE = 64,       /* EX_USAGE */
    STATUS_REFUSED = 65,     /* EX_DATAERR: the broker answered with an error */
    STATUS_NO_BROKER = 69,   /* EX_UNAVAILABLE: no broker, or no majority of its masters */
    STATUS_SYSTEM = 71,      /* EX_OSERR */
    STATUS_NOT_GRANTED = 75, /* EX_TEMPFAIL: somebody else has the lock */
    STATUS_DENIED = 77,      /* EX_NOPERM: password or permission */
    STATUS_LOST = 79,        /* the lock was lost while the command ran */
    STATUS_NO_EXEC = 126,
    STATUS_NOT_FOUND = 127
};

enum { CLI_LIMIT_MAX = 4096 }; /* permits that a broker gives out for a name */

struct cli_command {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *summary;
    const char *help; /* after "usage: holdfast NAME " */
};

struct cli {
    const struct cli_command *command; /* the one that runs; NULL: none yet */
    struct urls urls;
    struct tls_files tls_files; /* for rediss:// */
    struct ssl_ctx_st *tls;
    bool json;
};
extern struct cli cli;

enum { CLI_OPT_CACERT = 1000, CLI_OPT_CERT, CLI_OPT_KEY };

/* Options that all sub-commands take; --json only those that name it. */
#define CLI_SHORT "hu:"
#define CLI_LONGS                                                                                  \
    {"help", no_argument, NULL, 'h'}, {"url", required_argument, NULL, 'u'},                       \
        {"cacert", required_argument, NULL, CLI_OPT_CACERT},                                       \
        {"cert", required_argument, NULL, CLI_OPT_CERT},                                           \
    {                                                                                              \
        "key", required_argument, NULL, CLI_OPT_KEY                                                \
    }
#define CLI_JSON                                                                                   \
    {                                                                                              \
        "json", no_argument, NULL, 'J'                                                             \
    }

/* Takes an option that all sub-commands have, for the default branch of a switch over
 * getopt_long(); ends the program with STATUS_USAGE if it is none. */
void cli_option(int option, char **argv);

/* Returns the addresses of -u, else of HOLDFAST_URL, else the default. Call after the options. */
const struct urls *cli_urls(void);

/* Write "holdfast: ..." on stderr; the last two end the program. */
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void cli_die(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program with STATUS_USAGE unless the broker would take it as the name of a lock. */
void cli_check_name(const char *name);

/* Returns the exit status for an error of the broker. */
int cli_status_of(const char *error);

/* Read the value of an option, or end the program with STATUS_USAGE. */
int64_t cli_duration_ms(const char *option, const char *text);
int64_t cli_number(const char *option, const char *text, int64_t min, int64_t max);

int bench_main(int argc, char **argv);
int ls_main(int argc, char **argv);
int masters_main(int argc, char **argv);
int ping_main(int argc, char **argv);
int run_main(int argc, char **argv);
int show_main(int argc, char **argv);
int top_main(int argc, char **argv);
int unlock_main(int argc, char **argv);

#endif
