/* holdfast: finds the sub-command in the table, and has what all of them share. */
#include <getopt.h>
#include <inttypes.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/text.h"

struct cli cli;
const struct cli_option cli_json_only[] = {CLI_JSON, {0}};

static const struct cli_command commands[] = {
    {"run", run_main, "runs a command while it holds a lock",
     "[OPTION]... NAME -- COMMAND [ARGUMENT]...\n"
     "\n"
     "Takes the lock NAME, runs COMMAND, and gives the lock back when it has ended. Ends\n"
     "with the status of COMMAND; 128+N when signal N has ended it.\n"
     "\n"
     "      --wait T        wait so long for the lock; 0: try once [for ever]\n"
     "      --lease T       hold by leases of T, renewed from here [the broker's, watched]\n"
     "      --max-hold T    end COMMAND after T\n"
     "      --shared        as a reader, together with others\n"
     "      --limit N       as one of N at a time\n"
     "      --fair          wait in the line of all brokers\n"
     "      --owner ID      hold as ID [one made up at random]\n"
     "      --on-lost HOW   when the lock is lost: term, kill or ignore [term]\n"
     "      --grace T       from TERM to KILL [10s]\n"
     "  -E, --conflict-exit-code N\n"
     "                      end with N when somebody else has the lock [75]\n"
     "  -v, --verbose       say what happens to the lock, and who has it meanwhile\n"},
    {"ls", ls_main, "lists the locks that are held or waited for",
     "[OPTION]... [PATTERN]\n"
     "\n"
     "Lists the locks of this broker's clients whose name matches PATTERN (* ? [a-z]).\n"
     "\n"
     "  -1, --names         the names alone, one a line\n"
     "      --json          as JSON\n"},
    {"show", show_main, "shows all about one lock",
     "[OPTION]... NAME\n"
     "\n"
     "Shows who holds NAME, who waits for it, and what each master says.\n"
     "\n"
     "      --json          as JSON\n"},
    {"masters", masters_main, "shows the Redis masters and how they do",
     "[OPTION]...\n"
     "\n"
     "      --json          as JSON\n"},
    {"top", top_main, "shows locks, masters and rates, each second anew",
     "[OPTION]...\n"
     "\n"
     "  -d, --delay T       time from screen to screen [1s]\n"
     "\n"
     "q ends it. When the output is no terminal, one screen is written.\n"},
    {"unlock", unlock_main, "frees a lock whoever holds it",
     "--force [OPTION]... NAME\n"
     "\n"
     "Frees NAME, which others hold; all of them are told. Status 1: nobody held it.\n"
     "\n"
     "  -f, --force         required: the holder may be at work\n"},
    {"script", script_main, "shows what a Lua script would do with a lock",
     "[OPTION]... FILE [KEY... [, ARGUMENT...]]\n"
     "\n"
     "Runs the script in FILE (-: the input) over the states in which its keys can be found,\n"
     "with nothing behind them, and shows for each what it would write and answer through\n"
     "holdfast. Without keys and arguments some are made up. Status 65: it is refused in one\n"
     "of the states. No broker is asked.\n"
     "\n"
     "      --json          as JSON\n"},
    {"ping", ping_main, "asks whether a broker is there and ready",
     "[OPTION]...\n"
     "\n"
     "      --json          as JSON\n"},
    {"bench", bench_main, "measures locking under load",
     "[OPTION]...\n"
     "\n"
     "  -c, --clients N     so many clients, each a connection [50]\n"
     "  -n, --names N       locks to choose from at random [1]\n"
     "      --hold T        hold each for T, as 2ms or 500us [0]\n"
     "      --think T       pause between two locks [0]\n"
     "      --duration T    measure for T [10s]\n"
     "      --wait T        give up waiting after T; 0: never [0]\n"
     "      --lease T       LOCK with LEASE T [watched locks]\n"
     "      --shared        all are readers\n"
     "      --limit N       N clients have a lock at a time\n"
     "      --prefix TEXT   names begin with TEXT [bench:]\n"
     "      --json          as JSON\n"},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static const char common_help[] =
    "  -u, --url URL       the broker, redis://[[USER:]PASSWORD@]HOST[:PORT], rediss:// for TLS,\n"
    "                      or unix:///PATH; several, to be tried in turn: with commas, or -u\n"
    "                      again [HOLDFAST_URL, else " URL_DEFAULT "]\n"
    "      --cacert FILE   TLS: whom to believe [HOLDFAST_CACERT, else the system]\n"
    "      --cert FILE     TLS: our certificate [HOLDFAST_CERT, else none]\n"
    "      --key FILE      TLS: its key [HOLDFAST_KEY, else in --cert]\n"
    "  -h, --help          print this and exit\n";

/* ---- messages ---- */

__attribute__((format(printf, 1, 0))) static void print_message(const char *fmt, va_list args)
{
    char line[2048];
    struct buf shown = {0};
    vsnprintf(line, sizeof line, fmt, args);
    text_put(&shown, line, strlen(line), 0); /* names and answers of strangers are in it */
    fprintf(stderr, "holdfast: %.*s\n", (int)buf_len(&shown), buf_head(&shown));
    buf_fini(&shown);
}

void cli_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(fmt, args);
    va_end(args);
}

void cli_die(int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(fmt, args);
    va_end(args);
    exit(status);
}

void cli_usage(const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (cli.command)
        cli_die(STATUS_USAGE, "%s: %s (try holdfast %s -h)", cli.command->name, line,
                cli.command->name);
    cli_die(STATUS_USAGE, "%s (try holdfast -h)", line);
}

/* ---- options ---- */

static void print_help(void)
{
    if (cli.command) {
        printf("usage: holdfast %s %s%s", cli.command->name, cli.command->help, common_help);
        return;
    }
    printf("usage: holdfast COMMAND [OPTION]... [ARGUMENT]...\n"
           "\n"
           "Distributed locks of holdfastd(8), for people and scripts.\n"
           "\n");
    for (int i = 0; i < N_COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    printf("\n"
           "`holdfast COMMAND -h` shows its options. These always are:\n"
           "\n"
           "%s"
           "  -V, --version       print the version and exit (before COMMAND)\n"
           "\n"
           "See holdfast(1).\n",
           common_help);
}

static void add_urls(const char *list, const char *from)
{
    char error[256];
    if (urls_add(&cli.urls, list, error, sizeof error) != 0)
        cli_usage("%s: %s", from, error);
}

static int64_t parse_ms(const char *option, const char *text)
{
    int64_t ms;
    if (util_parse_duration(text, &ms) != 0 || ms > INT64_C(1) << 35)
        cli_usage("--%s %s: not a time of at most a year, such as 500ms, 10s, 1m30s", option, text);
    return ms;
}

static int64_t parse_us(const char *option, const char *text)
{
    size_t len = strlen(text);
    int64_t us;
    if (len > 2 && strcmp(text + len - 2, "us") == 0 &&
        util_parse_int(text, len - 2, 0, INT64_C(1000000000), &us) == 0)
        return us;
    return parse_ms(option, text) * 1000;
}

static void take_option(const struct cli_option *o)
{
    switch (o->takes) {
    case CLI_FLAG:
        *(bool *)o->to = true;
        break;
    case CLI_TEXT:
        *(const char **)o->to = optarg;
        break;
    case CLI_NUMBER:
        if (util_parse_int(optarg, strlen(optarg), o->min, o->max, o->to) != 0)
            cli_usage("--%s %s: not a number from %" PRId64 " to %" PRId64, o->name, optarg, o->min,
                      o->max);
        break;
    case CLI_MS:
        *(int64_t *)o->to = parse_ms(o->name, optarg);
        break;
    case CLI_US:
        *(int64_t *)o->to = parse_us(o->name, optarg);
        break;
    case CLI_URLS:
        add_urls(optarg, "-u");
        break;
    case CLI_HELP:
        print_help();
        exit(STATUS_OK);
    case CLI_VERSION:
        printf("holdfast %s\n", PACKAGE_VERSION);
        exit(STATUS_OK);
    }
}

static _Noreturn void refuse_word(int c, const char *word)
{
    if (c == ':')
        cli_usage("%s: its value is missing", word);
    if (optopt > 0 && optopt < 128 && strncmp(word, "--", 2) != 0)
        cli_usage("-%c: no such option", optopt);
    cli_usage("%s: %s", word, optopt ? "it takes no value" : "no such option");
}

/* What getopt_long() wants to know of a table, and returns: a row's number from FIRST_ROW on. */
enum { ROWS_MAX = 24, FIRST_ROW = 256 };

struct getopt_rows {
    const struct cli_option *v[ROWS_MAX];
    struct option longs[ROWS_MAX + 1];
    char shorts[2 * ROWS_MAX + 3];
    int n;
};

static void add_rows(struct getopt_rows *rows, const struct cli_option *o)
{
    char *end = rows->shorts + strlen(rows->shorts);
    for (; o->name; o++, rows->n++) {
        bool has_value = o->takes >= CLI_TEXT && o->takes <= CLI_URLS;
        if (rows->n == ROWS_MAX)
            util_die("more than %d options", ROWS_MAX);
        rows->v[rows->n] = o;
        rows->longs[rows->n] = (struct option){o->name, has_value, NULL, FIRST_ROW + rows->n};
        if (o->letter)
            end += sprintf(end, has_value ? "%c:" : "%c", o->letter);
    }
}

void cli_options(int argc, char **argv, const struct cli_option *own, bool in_order)
{
    static const struct cli_option shared[] = {
        {"help", 'h', CLI_HELP, NULL, 0, 0},
        {"url", 'u', CLI_URLS, NULL, 0, 0},
        {"cacert", 0, CLI_TEXT, &cli.tls_files.ca, 0, 0},
        {"cert", 0, CLI_TEXT, &cli.tls_files.certificate, 0, 0},
        {"key", 0, CLI_TEXT, &cli.tls_files.key, 0, 0},
        {0}};
    struct getopt_rows rows = {.shorts = "+:"};
    int c;
    add_rows(&rows, own);
    add_rows(&rows, shared);
    while ((c = getopt_long(argc, argv, rows.shorts + !in_order, rows.longs, NULL)) != -1) {
        int i = c - FIRST_ROW;
        if (i < 0)
            for (i = 0; i < rows.n && rows.v[i]->letter != c; i++)
                continue;
        if (i == rows.n)
            refuse_word(c, argv[optind - 1]);
        take_option(rows.v[i]);
    }
}

void cli_no_words(int argc, char **argv)
{
    if (optind < argc)
        cli_usage("%s: no arguments are expected", argv[optind]);
}

const char *cli_lock_name(int argc, char **argv)
{
    if (argc - optind != 1)
        cli_usage("which lock? One name");
    cli_check_name(argv[optind]);
    return argv[optind];
}

static const char *file_of(const char *option, const char *variable)
{
    const char *environment = getenv(variable);
    return option || !environment || !*environment ? option : environment;
}

static void prepare_tls(void)
{
    struct tls_files *files = &cli.tls_files;
    char error[TLS_REASON_MAX];
    files->ca = file_of(files->ca, "HOLDFAST_CACERT");
    files->certificate = file_of(files->certificate, "HOLDFAST_CERT");
    files->key = file_of(files->key, "HOLDFAST_KEY");
    cli.tls = tls_client_new(files, error, sizeof error);
    if (!cli.tls)
        cli_usage("%s", error);
}

const struct urls *cli_urls(void)
{
    const char *environment = getenv("HOLDFAST_URL");
    if (cli.urls.n == 0 && environment && *environment)
        add_urls(environment, "HOLDFAST_URL");
    if (cli.urls.n == 0)
        add_urls(URL_DEFAULT, "default");
    for (size_t i = 0; i < cli.urls.n; i++) {
        if (cli.urls.v[i].at.tls && !cli.tls)
            prepare_tls();
        cli.urls.v[i].tls = cli.urls.v[i].at.tls ? cli.tls : NULL;
    }
    return &cli.urls;
}

void cli_check_name(const char *name)
{
    if (name[0] == '\0' || strlen(name) > 512)
        cli_usage("the name has %zu bytes, it must have 1 to 512", strlen(name));
    if (strpbrk(name, "\r\n"))
        cli_usage("the name has a line break in it");
}

int cli_status_of(const char *error)
{
    static const struct {
        const char *code;
        int status;
    } codes[] = {
        {"NOQUORUM ", STATUS_NO_BROKER}, {"DRAINING ", STATUS_NO_BROKER},
        {"PAUSED ", STATUS_NO_BROKER},   {"LOADING ", STATUS_NO_BROKER},
        {"NOAUTH ", STATUS_DENIED},      {"WRONGPASS ", STATUS_DENIED},
        {"NOPERM ", STATUS_DENIED},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strncmp(error, codes[i].code, strlen(codes[i].code)) == 0)
            return codes[i].status;
    }
    return STATUS_REFUSED;
}

static const struct cli_command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct cli_option own[] = {{"version", 'V', CLI_VERSION, NULL, 0, 0}, {0}};
    setlocale(LC_CTYPE, "");
    opterr = 0;
    cli_options(argc, argv, own, true);
    if (optind == argc)
        cli_usage("which command?");
    argc -= optind;
    argv += optind;
    bool help = strcmp(argv[0], "help") == 0;
    if (argc > help) {
        cli.command = find_command(argv[help]);
        if (!cli.command)
            cli_usage("%s: no such command", argv[help]);
    }
    if (help || !cli.command) {
        print_help();
        return STATUS_OK;
    }
    optind = 0; /* getopt_long() begins anew */
    int status = cli.command->main(argc, argv);
    urls_fini(&cli.urls);
    tls_context_free(cli.tls);
    return status;
}
