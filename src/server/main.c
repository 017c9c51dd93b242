/*
 * holdfastd: options, configuration, and from there to the server, which turns the loop until the
 * end.
 */
#include <getopt.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/log.h"
#include "base/password.h"
#include "base/util.h"
#include "conf/conf.h"
#include "redis/quorum.h"
#include "server/dev.h"
#include "server/doctor.h"
#include "server/server.h"
#include "stats/stats.h"

enum { OPTION_DEV = 256, OPTION_HASH, OPTION_USER, PASSWORD_MAX = 512 };

#define SERVICE_USER "holdfast" /* of systemd/holdfastd.service.in */

struct options {
    const char *file;   /* -c; NULL: not given */
    int port;           /* -p; -1: not given */
    char **assignments; /* -o, as they came */
    size_t n_assignments;
    int verbose;
    int n_dev;        /* --dev; 0: not given */
    int test_only;    /* -t; 2: the masters too */
    const char *user; /* --user; NULL: not given */
    struct dev *dev;  /* with n_dev */
};

static const char help_text[] =
    "usage: holdfastd [-c FILE] [-t] [-p PORT] [-o SECTION.KEY=VALUE]... [--dev[=N]]\n"
    "                 [--user=NAME] [-v] [-V] [-h] [--hash-password]\n"
    "\n"
    "A lock broker: distributed locks over the Redis protocol, kept on Redis masters.\n"
    "\n"
    "  -c FILE               configuration file (" HOLDFAST_CONFIG_FILE ")\n"
    "  -t                    check the configuration, say what is wrong, and exit\n"
    "  -tt                   look at the masters too\n"
    "  --user=NAME           with -t: see whether this user can read the files; root only\n"
    "  -p PORT               listen on this TCP port; 0: any free one\n"
    "  -o SECTION.KEY=VALUE  set an option, over what the file says; repeatable\n"
    "  --dev[=N]             try it out: N private redis-servers (1) as masters,\n"
    "                        no file needed, nothing is kept\n"
    "  --hash-password       read a password, print its hash for [users], and exit\n"
    "  -v                    log more; repeatable\n"
    "  -V, --version         print the version and exit\n"
    "  -h, --help            print this and exit\n"
    "\n"
    "Signals: TERM and INT drain and stop, a second one stops at once; HUP reads the\n"
    "configuration again. See holdfastd(8), holdfast.ini(5), holdfast-protocol(7).\n";

/* ---- options ---- */

__attribute__((format(printf, 1, 2))) static _Noreturn void refuse_switch(const char *fmt, ...)
{
    va_list args;

    fputs("holdfastd: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputs(" (try holdfastd -h)\n", stderr);
    exit(EXIT_FAILURE);
}

static int number(const char *option, const char *text, int min, int max)
{
    int64_t n;

    if (util_parse_int(text, strlen(text), min, max, &n) != 0)
        refuse_switch("%s %s: not a number from %d to %d", option, text, min, max);
    return (int)n;
}

/* A mistake on the command line is told before those in the file. */
static void add_assignment(struct options *o, char *text)
{
    struct conf conf;
    struct conf_error error;

    conf_init(&conf);
    if (conf_override(&conf, text, &error) != 0)
        refuse_switch("%s", error.text);
    conf_fini(&conf);
    o->assignments =
        util_realloc(o->assignments, (o->n_assignments + 1) * sizeof o->assignments[0]);
    o->assignments[o->n_assignments++] = text;
}

/* Reads a line of standard input, not shown while it is typed. -1: there is none. */
static int read_password(char *out, size_t size)
{
    struct termios old, quiet;
    bool tty = tcgetattr(STDIN_FILENO, &old) == 0;

    if (tty) {
        fputs("Password: ", stderr);
        quiet = old;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    }
    bool got = fgets(out, (int)size, stdin) != NULL;
    if (tty) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
        fputs("\n", stderr);
    }
    if (!got)
        return -1;
    out[strcspn(out, "\r\n")] = '\0';
    return *out ? 0 : -1;
}

static int hash_password(void)
{
    char password[PASSWORD_MAX], hash[PASSWORD_HASH_MAX];

    if (read_password(password, sizeof password) != 0) {
        fputs("holdfastd: the password is empty\n", stderr);
        return EXIT_FAILURE;
    }
    password_hash(password, strlen(password), hash);
    explicit_bzero(password, sizeof password);
    puts(hash);
    return EXIT_SUCCESS;
}

/* Reports what getopt_long has just rejected. */
static _Noreturn void refuse_option(int result, char **argv)
{
    const char *word = argv[optind - 1];

    if (result == ':')
        refuse_switch("-%c: its argument is missing", optopt);
    if (optopt > 0 && optopt < OPTION_DEV && strncmp(word, "--", 2) != 0)
        refuse_switch("-%c: no such option", optopt);
    if (optopt != 0)
        refuse_switch("%s: it takes no argument", word);
    refuse_switch("%s: no such option", word);
}

static void take_switch(struct options *o, int option, char **argv)
{
    switch (option) {
    case 'c':
        o->file = optarg;
        break;
    case 't':
        o->test_only++;
        break;
    case 'p':
        o->port = number("-p", optarg, 0, 65535);
        break;
    case 'o':
        add_assignment(o, optarg);
        break;
    case OPTION_DEV:
        o->n_dev = optarg ? number("--dev", optarg, 1, DEV_MASTERS_MAX) : 1;
        break;
    case OPTION_USER:
        o->user = optarg;
        break;
    case OPTION_HASH:
        exit(hash_password());
    case 'v':
        o->verbose++;
        break;
    case 'V':
        printf("holdfastd %s\n", stats_version());
        exit(EXIT_SUCCESS);
    case 'h':
        fputs(help_text, stdout);
        exit(EXIT_SUCCESS);
    default:
        refuse_option(option, argv);
    }
}

static void parse_switches(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {{"dev", optional_argument, NULL, OPTION_DEV},
                                          {"hash-password", no_argument, NULL, OPTION_HASH},
                                          {"user", required_argument, NULL, OPTION_USER},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {NULL, 0, NULL, 0}};
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":c:tp:o:vVh", longs, NULL)) != -1)
        take_switch(o, option, argv);
    if (optind < argc)
        refuse_switch("%s: no arguments are expected", argv[optind]);
    if (o->user && (!o->test_only || geteuid() != 0))
        refuse_switch("--user %s: it goes with -t, and only root can ask that", o->user);
    for (size_t i = 0; o->n_dev && i < o->n_assignments; i++)
        if (strncmp(o->assignments[i], "masters.", 8) == 0)
            refuse_switch("-o %s: --dev brings masters of its own", o->assignments[i]);
}

/* ---- configuration ---- */

/* Sets the port of every plain TCP address in the list (-p). */
static void set_port(struct conf *conf, int port)
{
    for (size_t i = 0; i < conf->listen.count; i++)
        if (!conf->listen.v[i].is_unix && !conf->listen.v[i].tls)
            conf->listen.v[i].port = port;
}

static int set_options(const struct options *o, struct conf *conf, conf_report_fn report, void *arg)
{
    struct conf_error error;
    int status = 0;

    for (size_t i = 0; i < o->n_assignments; i++) {
        if (conf_override(conf, o->assignments[i], &error) == 0)
            continue;
        report(arg, false, error.text);
        status = -1;
    }
    if (o->port >= 0)
        set_port(conf, o->port);
    return status;
}

/* server_setup.load: what the file says, and over it what the command line says. In dev mode there
 * is a file only when it was named, and the masters are its own. */
static int load(void *arg, struct conf *conf, conf_report_fn report, void *report_arg)
{
    const struct options *o = arg;
    const char *file = o->file ? o->file : HOLDFAST_CONFIG_FILE;
    int status = 0;

    conf_init(conf);
    if (o->n_dev)
        dev_set_defaults(conf);
    if (o->file || !o->n_dev)
        status = conf_load_file(conf, file, report, report_arg);
    if (set_options(o, conf, report, report_arg) != 0)
        status = -1;
    if (o->dev)
        dev_set_masters(o->dev, conf);
    if (status == 0 && conf_read_secrets(conf, report, report_arg) != 0)
        status = -1;
    if (status == 0 && conf_check(conf, o->n_dev > 0, report, report_arg) != 0)
        status = -1;
    if (status != 0)
        conf_fini(conf);
    return status;
}

static void to_stderr(void *arg, bool is_warning, const char *text)
{
    (void)arg;
    fprintf(stderr, "holdfastd: %s%s\n", is_warning ? "warning: " : "", text);
}

/* Checks that the user of the service can read what root can: when the configuration is that of the
 * service, or --user names somebody. */
static int test_files(const struct options *o, const struct conf *conf)
{
    bool is_service = conf->path && strcmp(conf->path, HOLDFAST_CONFIG_FILE) == 0 &&
                      geteuid() == 0 && getpwnam(SERVICE_USER);

    if (!o->user && !is_service)
        return 0;
    return server_check_files(conf, o->user ? o->user : SERVICE_USER, to_stderr, NULL);
}

/* Loads the configuration with all the files that it names. -1: what is wrong has been reported. */
static int load_for_test(struct options *o, struct conf *conf)
{
    char error[512];

    if (load(o, conf, to_stderr, NULL) != 0)
        return -1;
    int status = server_check_tls(conf, error, sizeof error);
    if (*error)
        to_stderr(NULL, status == 0, error);
    if (status == 0)
        status = test_files(o, conf);
    if (status != 0)
        conf_fini(conf);
    return status;
}

/* -t */
static int test(struct options *o)
{
    struct conf conf;
    int errors = 0;

    if (load_for_test(o, &conf) != 0)
        return EXIT_FAILURE;
    if (o->n_dev)
        printf("the configuration is good: %d private master%s\n", o->n_dev, util_plural(o->n_dev));
    else if (conf_is_clustered(&conf))
        printf("%s is good: a Redis Cluster\n", conf.path);
    else if (conf.master_count == 1)
        printf("%s is good: 1 master\n", conf.path);
    else
        printf("%s is good: %zu masters, %d of them are a majority\n", conf.path, conf.master_count,
               quorum_need((int)conf.master_count));
    if (o->test_only > 1 && !o->n_dev) {
        log_set_level(o->verbose > 0 ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
        errors = doctor_examine(&conf, stdout);
    }
    conf_fini(&conf);
    return errors > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- the broker ---- */

static int run_daemon(struct options *o)
{
    const struct server_setup setup = {.load = load, .arg = o, .verbose = o->verbose};
    struct server *server;
    struct conf conf;
    char error[512];

    if (o->n_dev && !(o->dev = dev_new(o->n_dev, error, sizeof error)))
        goto failed;
    if (load(o, &conf, to_stderr, NULL) != 0)
        return EXIT_FAILURE;
    if (o->dev && dev_start(o->dev, error, sizeof error) != 0) {
        conf_fini(&conf);
        goto failed;
    }
    server = server_new(&setup, &conf, error, sizeof error);
    if (!server)
        goto failed;
    if (o->dev) {
        dev_watch(o->dev, server_base(server));
        dev_greet(o->dev, stdout, server_address(server));
    }
    server_run(server);
    if (o->dev)
        dev_unwatch(o->dev);
    server_free(server);
    return EXIT_SUCCESS;
failed:
    fprintf(stderr, "holdfastd: %s\n", error);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct options options = {.port = -1};

    parse_switches(&options, argc, argv);
    int status = options.test_only ? test(&options) : run_daemon(&options);
    dev_free(options.dev);
    free(options.assignments);
    return status;
}
