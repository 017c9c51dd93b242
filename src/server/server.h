#pragma once
/*
 * server: the broker as a whole. Makes the parts and ties them together, turns the loop, and goes
 * through the phases
 *
 *     RUNS --TERM, INT, SHUTDOWN--> DRAINS --no watched lock left,--> ENDS
 *      |                                     drain_timeout, or            ^
 *      |                                     a second signal              |
 *      +--SHUTDOWN NOW----------------------------------------------------+
 *
 * One a process: it has the process's signals.
 */
#include "conf/conf.h"

struct event_base;
struct server;

struct server_setup {
    /* Makes the configuration anew, from the file and the command line, and checks it; for SIGHUP.
     * -1: everything that is wrong has been reported, and `out` needs no conf_fini. */
    int (*load)(void *arg, struct conf *out, conf_report_fn report, void *report_arg);
    void *arg;
    int verbose; /* the log has so many levels more than the configuration says */
};

/* Takes over `conf`, opens the sockets, starts to connect to the masters; conf is checked, with its
 * secrets read. NULL: `error` says why, in one line. */
struct server *server_new(const struct server_setup *, struct conf *conf, char *error,
                          size_t error_size);

/* Reads each file that the configuration names for TLS. -1: `error` says what is wrong; 0: it may
 * hold a warning, else "". */
int server_check_tls(const struct conf *, char *error, size_t error_size) MUST_CHECK;

/* Checks that `user` can read the files that the configuration names, itself among them, and use
 * the Unix sockets of masters; only root can check. Reports what that user cannot, from a child
 * process. -1: there is something, or no such user. */
int server_check_files(const struct conf *, const char *user, conf_report_fn, void *arg) MUST_CHECK;

/* Turns the loop until the end has come: by signals or SHUTDOWN. */
void server_run(struct server *);

/* Ends all connections, lets releases leave as far as the masters answer within request_timeout,
 * and frees everything. */
void server_free(struct server *);

struct event_base *server_base(struct server *);
/* Returns where clients connect: the first address, "127.0.0.1:5625" or "unix:/path". */
const char *server_address(const struct server *);
