#pragma once
/*
 * cli: is shared by the sub-commands of `holdfast`: their table, the options that all of them take,
 * exit statuses, messages. A sub-command is one row in main.c and its function, which gets its own
 * words only (argv[0] is its name) and returns the exit status.
 */
#include <stdbool.h>
#include <stdint.h>

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

/* What an option takes, and what its `to` points at. */
enum cli_takes {
    CLI_FLAG,   /* nothing; bool */
    CLI_TEXT,   /* const char * */
    CLI_NUMBER, /* int64_t */
    CLI_MS,     /* int64_t; a time */
    CLI_US,     /* the same; "500us" too */
    CLI_URLS,
    CLI_HELP,
    CLI_VERSION
};

struct cli_option {
    const char *name; /* NULL ends a table */
    char letter;      /* 0: none */
    enum cli_takes takes;
    void *to;
    int64_t min, max; /* of a number */
};

/* The row of those that have it, and the table of those that have nothing else. */
#define CLI_JSON                                                                                   \
    {                                                                                              \
        "json", 0, CLI_FLAG, &cli.json, 0, 0                                                       \
    }
extern const struct cli_option cli_json_only[];

/* Reads the options of a table and those that all sub-commands take, and leaves optind behind them;
 * ends the program with STATUS_USAGE at one that is wrong. Stops at the first word that is none if
 * `in_order`; else all words come to stand behind the options. */
void cli_options(int argc, char **argv, const struct cli_option *own, bool in_order);
/* Read the words behind the options: there must be none, or the name of a lock alone, which the
 * broker would take. They end the program with STATUS_USAGE. */
void cli_no_words(int argc, char **argv);
const char *cli_lock_name(int argc, char **argv);

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

int bench_main(int argc, char **argv);
int ls_main(int argc, char **argv);
int masters_main(int argc, char **argv);
int ping_main(int argc, char **argv);
int run_main(int argc, char **argv);
int script_main(int argc, char **argv);
int show_main(int argc, char **argv);
int top_main(int argc, char **argv);
int unlock_main(int argc, char **argv);
