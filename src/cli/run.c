/*
 * holdfast run: takes a lock, runs a command, and passes signals on.
 *
 *   ask for the lock -> start the command -> it ends -> give the lock back
 *                            |
 *              lost, or --max-hold is over: TERM to all of its processes, KILL after --grace
 *
 * Signals are blocked and read from a signalfd, so that nothing interrupts anything. One that the
 * terminal has sent (ssi_code SI_KERNEL) the command has got itself; one that a process has sent to
 * us is passed on.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/run_child.h"
#include "cli/run_lock.h"

enum { RELEASE_MS = 3000, SWEEP_MS = 100, MAXHOLD_SLACK_MS = 5000, LEASE_MIN_MS = 100 };

enum on_lost { ON_LOST_TERM, ON_LOST_KILL, ON_LOST_IGNORE };

struct run {
    struct run_lock lock;
    struct run_child child;
    sigset_t mask; /* of before */
    int signal_fd;
    char **command;
    enum on_lost on_lost;
    int64_t maxhold_ms; /* 0: none */
    int64_t grace_ms;
    int64_t conflict_status;

    int64_t hold_until_ms; /* by --max-hold */
    int64_t kill_at_ms;    /* INT64_MAX: nobody is to be killed */
    bool ending;           /* the command is being ended by us */
    bool lost;             /* it has been told, or ignored */
    int end_signal;        /* came before there was a command */
};

/* ---- options ---- */

static enum on_lost on_lost_of(const char *word)
{
    static const char *const words[] = {"term", "kill", "ignore"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(word, words[i]) == 0)
            return (enum on_lost)i;
    }
    cli_usage("--on-lost %s: term, kill or ignore", word);
}

static void run_options(struct run *r, int argc, char **argv)
{
    const char *owner = NULL, *on_lost = "term";
    int64_t lease_ms = -1;
    const struct cli_option own[] = {
        {"wait", 0, CLI_MS, &r->lock.wait_ms, 0, 0},
        {"lease", 0, CLI_MS, &lease_ms, 0, 0},
        {"max-hold", 0, CLI_MS, &r->maxhold_ms, 0, 0},
        {"shared", 0, CLI_FLAG, &r->lock.shared, 0, 0},
        {"limit", 0, CLI_NUMBER, &r->lock.limit, 1, CLI_LIMIT_MAX},
        {"fair", 0, CLI_FLAG, &r->lock.fair, 0, 0},
        {"owner", 0, CLI_TEXT, &owner, 0, 0},
        {"on-lost", 0, CLI_TEXT, &on_lost, 0, 0},
        {"grace", 0, CLI_MS, &r->grace_ms, 0, 0},
        {"conflict-exit-code", 'E', CLI_NUMBER, &r->conflict_status, 0, 255},
        {"verbose", 'v', CLI_FLAG, &r->lock.verbose, 0, 0},
        {0}};
    cli_options(argc, argv, own, true);
    if (optind == argc || strcmp(argv[optind - 1], "--") == 0)
        cli_usage("which lock? NAME -- COMMAND");
    r->lock.name = argv[optind++];
    cli_check_name(r->lock.name);
    cli_options(argc, argv, own, true); /* takes the -- too */
    r->on_lost = on_lost_of(on_lost);
    if (owner && (!*owner || strlen(owner) >= sizeof r->lock.owner || strpbrk(owner, "\r\n")))
        cli_usage("--owner: 1 to 256 bytes without line breaks");
    strcpy(r->lock.owner, owner ? owner : "");
    if (lease_ms >= 0 && lease_ms < LEASE_MIN_MS)
        cli_usage("--lease: at least %dms", LEASE_MIN_MS);
    r->lock.lease_ms = lease_ms > 0 ? lease_ms : 0;
    if (r->lock.shared && r->lock.limit)
        cli_usage("--shared or --limit, not both");
    if (optind == argc)
        cli_usage("which command? NAME -- COMMAND");
    r->command = argv + optind;
}

/* ---- signals ---- */

static void open_signals(struct run *r)
{
    static const int numbers[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                                  SIGALRM, SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action;
        bool ignored = sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN;
        if (!ignored || numbers[i] == SIGCHLD) /* nohup: stays ignored, for the command too */
            sigaddset(&set, numbers[i]);
    }
    signal(SIGCHLD, SIG_DFL); /* ignored, its children would leave no status */
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, &r->mask);
    r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signal_fd < 0)
        cli_die(STATUS_SYSTEM, "signalfd: %s", strerror(errno));
}

static void on_run_signal(struct run *r, const struct signalfd_siginfo *info)
{
    int number = (int)info->ssi_signo;
    bool from_process = info->ssi_code <= 0;
    if (number == SIGCHLD) {
        /* Once for each stop: that it goes on is never told when it dies of what comes next. */
        if (run_child_reap(&r->child) && !r->ending)
            raise(SIGSTOP); /* a job stops as a whole */
    } else if (r->child.pid) {
        if (from_process || number == SIGCONT)
            run_child_signal(&r->child, number);
    } else if (number == SIGTSTP) {
        raise(SIGSTOP);
    } else if (number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM) {
        r->end_signal = number;
    }
}

/* ---- turns ---- */

/* Waits for signals, the lock and the child until due_ms at most, and handles what comes. */
static void run_turn(struct run *r, int64_t due_ms)
{
    struct pollfd fds[1 + RUN_LOCK_FDS] = {{r->signal_fd, POLLIN, 0}};
    struct signalfd_siginfo info;
    int64_t lock_due_ms = run_lock_due_ms(&r->lock), now_ms = clock_ms();
    int64_t pause_ms = (lock_due_ms < due_ms ? lock_due_ms : due_ms) - now_ms;
    run_lock_fds(&r->lock, fds + 1);
    if (pause_ms > 60000)
        pause_ms = 60000;
    if (poll(fds, 1 + RUN_LOCK_FDS, pause_ms < 0 ? 0 : (int)pause_ms) < 0)
        memset(fds, 0, sizeof fds);
    while (read(r->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        on_run_signal(r, &info);
    run_lock_turn(&r->lock, fds + 1, clock_ms());
}

/* Waits until the lock is held. Returns STATUS_OK, or the exit status. */
static int take_lock(struct run *r)
{
    run_lock_start(&r->lock, clock_ms());
    while (r->lock.state == RUN_LOCK_ASKING && !r->end_signal)
        run_turn(r, INT64_MAX);
    if (r->end_signal && r->lock.state == RUN_LOCK_ASKING) {
        run_lock_cancel(&r->lock, clock_ms());
        while (r->lock.state == RUN_LOCK_RELEASING)
            run_turn(r, INT64_MAX);
    }
    if (r->end_signal)
        return 128 + r->end_signal;
    if (r->lock.state == RUN_LOCK_HELD)
        return STATUS_OK;
    if (r->lock.state == RUN_LOCK_NOT_GRANTED && r->lock.verbose)
        cli_warn("%s: %s", r->lock.name, r->lock.why);
    if (r->lock.state == RUN_LOCK_NOT_GRANTED)
        return (int)r->conflict_status;
    if (strncmp(r->lock.why, "KIND ", 5) == 0) /* a sentence that names the lock follows */
        cli_warn("%s", r->lock.why + 5);
    else
        cli_warn("%s: %s", r->lock.name, r->lock.why);
    return r->lock.status;
}

static int start_command(struct run *r)
{
    char token[24];
    snprintf(token, sizeof token, "%" PRId64, r->lock.token);
    setenv("HOLDFAST_TOKEN", token, 1);
    setenv("HOLDFAST_LOCK", r->lock.name, 1);
    if (run_child_start(&r->child, r->command, &r->mask) == 0)
        return STATUS_OK;
    cli_warn("%s: %s", r->command[0], strerror(errno));
    return errno == ENOENT ? STATUS_NOT_FOUND : errno == EAGAIN ? STATUS_SYSTEM : STATUS_NO_EXEC;
}

static void end_command(struct run *r, const char *why, int64_t now_ms)
{
    static const char *const deeds[] = {"ending", "killing", "going on without it,"};
    cli_warn("%s: lock %s: %s %s", r->lock.name, why, deeds[r->on_lost], r->command[0]);
    r->lost = true;
    if (r->on_lost == ON_LOST_IGNORE) {
        run_lock_release(&r->lock, now_ms, RELEASE_MS);
        return;
    }
    r->ending = true;
    r->kill_at_ms = now_ms;
    if (r->on_lost == ON_LOST_KILL)
        return;
    r->kill_at_ms += r->grace_ms;
    run_child_signal_all(&r->child, SIGTERM);
    run_child_signal_all(&r->child, SIGCONT); /* a stopped one must wake up to hear of it */
}

static void watch_command(struct run *r)
{
    char why[600];
    while (r->child.pid || (r->ending && run_child_signal_all(&r->child, 0) > 0)) {
        int64_t due_ms = r->ending ? clock_ms() + SWEEP_MS : r->hold_until_ms;
        run_turn(r, due_ms < r->kill_at_ms ? due_ms : r->kill_at_ms);
        int64_t now_ms = clock_ms();
        if (!r->lost && r->child.pid && r->lock.state == RUN_LOCK_LOST) {
            snprintf(why, sizeof why, "lost (%s)", r->lock.why);
            end_command(r, why, now_ms);
        } else if (!r->lost && r->child.pid && now_ms >= r->hold_until_ms) {
            end_command(r, "kept for as long as --max-hold allows", now_ms);
            r->hold_until_ms = INT64_MAX;
        }
        if (now_ms >= r->kill_at_ms) {
            run_child_signal_all(&r->child, SIGKILL);
            r->kill_at_ms = now_ms + SWEEP_MS;
        }
    }
}

static void give_back(struct run *r)
{
    if (r->lost && r->on_lost == ON_LOST_IGNORE) /* that was then */
        return;
    bool was_lost = r->lock.state == RUN_LOCK_LOST;
    int64_t now_ms = clock_ms();
    run_lock_release(&r->lock, now_ms, was_lost ? SWEEP_MS : RELEASE_MS);
    while (r->lock.state == RUN_LOCK_RELEASING)
        run_turn(r, INT64_MAX);
    if (was_lost)
        return;
    if (r->lock.state == RUN_LOCK_LOST) {
        r->lost = true;
        cli_warn("%s: the lock had been lost before %s ended", r->lock.name, r->command[0]);
    } else if (r->lock.why[0]) {
        cli_warn("%s: %s", r->lock.name, r->lock.why);
    }
}

int run_main(int argc, char **argv)
{
    struct run *r = util_alloc(sizeof *r);
    *r = (struct run){.lock = {.wait_ms = -1},
                      .grace_ms = 10000,
                      .conflict_status = STATUS_NOT_GRANTED,
                      .hold_until_ms = INT64_MAX,
                      .kill_at_ms = INT64_MAX};
    run_options(r, argc, argv);
    r->lock.urls = cli_urls();
    r->lock.tells = r->lock.verbose || isatty(STDERR_FILENO) == 1;
    if (r->lock.owner[0] == '\0')
        run_lock_make_owner(&r->lock);
    if (r->maxhold_ms)
        r->lock.maxhold_ms = r->maxhold_ms + r->grace_ms + MAXHOLD_SLACK_MS;
    open_signals(r);
    int status = take_lock(r);
    bool held = r->lock.state == RUN_LOCK_HELD;
    if (held && status == STATUS_OK) {
        if (r->lock.verbose)
            cli_warn("%s: granted, token %" PRId64, r->lock.name, r->lock.token);
        if (r->maxhold_ms)
            r->hold_until_ms = clock_ms() + r->maxhold_ms;
        status = start_command(r);
    }
    if (held) {
        watch_command(r);
        give_back(r);
        if (status == STATUS_OK)
            status = r->lost && r->on_lost != ON_LOST_IGNORE ? STATUS_LOST : r->child.status;
    }
    run_lock_fini(&r->lock);
    close(r->signal_fd);
    free(r);
    return status;
}
