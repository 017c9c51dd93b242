/*
 * A load generator for what redis-benchmark does not do: several commands in turn on one name, a
 * fixed rate, and connections that stay open. Against anything that speaks RESP.
 *
 *     load -p 5625 -c 200 -s 3 -- LOCK 'x:{name}' LEASE 10000 , UNLOCK 'x:{name}'
 *
 * Each of the commands between commas waits for the reply to the one before it; all of them
 * together are one round, whose time is measured. {name} is a random number of 12 digits, the same
 * in all commands of one round, or with -u the next of 0, 1, 2...; {conn} is the number of the
 * connection. Without a rate a connection begins the next round when one has ended. With a rate
 * rounds are due at fixed times, on whichever connection is free, and their time counts from when
 * they were due: a server that stalls is not spared the rounds that could not be asked meanwhile.
 *
 * Prints one object of JSON: rounds, seconds, errors, nils, percentiles in microseconds.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/hist.h"
#include "base/util.h"

enum { COMMANDS_MAX = 8, WORDS_MAX = 32, OUT_MAX = 4096, IN_MAX = 4096, EVENTS = 512 };

struct command {
    const char *words[WORDS_MAX];
    int n;
};

struct conn {
    TAILQ_ENTRY(conn) idle;
    int fd, number;
    int step; /* the command whose reply is to come; -1: idle */
    int64_t name, due_us;
    size_t len;
    char in[IN_MAX]; /* of a reply that is not complete */
};

static struct {
    const char *path;
    int port, conns;
    double seconds, rate, keep_s;
    int64_t rounds; /* 0: until the time is over */
    bool counted;   /* -u */
    struct command commands[COMMANDS_MAX];
    int n_commands;
} plan = {.conns = 1, .seconds = 3};

static struct {
    TAILQ_HEAD(, conn) idle;
    struct conn *conns;
    int epoll;
    int64_t started_us, stop_us, next_name, begun, done, errors, nils;
    int n_busy;
    struct hist hist;
    char first_error[200];
} run;

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- requests ---- */

static int64_t draw_name(void)
{
    static uint64_t x;
    if (plan.counted)
        return run.next_name++;
    if (x == 0)
        util_random(&x, sizeof x);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (int64_t)(x % 1000000000000u);
}

static size_t put_word(char *to, size_t size, const char *word, const struct conn *c)
{
    char text[512];
    size_t n = 0;
    for (const char *p = word; *p && n + 16 < sizeof text;) {
        if (strncmp(p, "{name}", 6) == 0) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%012" PRId64, c->name);
            p += 6;
        } else if (strncmp(p, "{conn}", 6) == 0) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%d", c->number);
            p += 6;
        } else {
            text[n++] = *p++;
        }
    }
    text[n] = '\0';
    return (size_t)snprintf(to, size, "$%zu\r\n%s\r\n", n, text);
}

static void ask(struct conn *c)
{
    const struct command *command = &plan.commands[c->step];
    char out[OUT_MAX];
    size_t n = (size_t)snprintf(out, sizeof out, "*%d\r\n", command->n);
    for (int i = 0; i < command->n && n < sizeof out; i++)
        n += put_word(out + n, sizeof out - n, command->words[i], c);
    if (n >= sizeof out || send(c->fd, out, n, MSG_NOSIGNAL) != (ssize_t)n)
        util_die("connection %d: send: %s", c->number, strerror(errno));
}

static void begin(struct conn *c, int64_t due_us)
{
    c->step = 0;
    c->name = draw_name();
    c->due_us = due_us;
    run.begun++;
    run.n_busy++;
    ask(c);
}

static bool is_over(int64_t at_us)
{
    return at_us >= run.stop_us || (plan.rounds > 0 && run.begun >= plan.rounds);
}

/* ---- replies ---- */

/* The length of one reply that stands at p, or 0: not complete. */
static size_t reply_len(const char *p, size_t len)
{
    const char *end = memchr(p, '\n', len);
    if (!end)
        return 0;
    size_t n = (size_t)(end - p) + 1;
    long count = strtol(p + 1, NULL, 10);
    if (*p == '$' && count >= 0)
        n += (size_t)count + 2;
    for (long i = 0; *p == '*' && i < count; i++) {
        size_t one = n < len ? reply_len(p + n, len - n) : 0;
        if (one == 0)
            return 0;
        n += one;
    }
    return n <= len ? n : 0;
}

static void note(const char *reply)
{
    if (*reply == '-') {
        if (run.errors++ == 0)
            snprintf(run.first_error, sizeof run.first_error, "%.*s",
                     (int)strcspn(reply + 1, "\r\n\"\\"), reply + 1);
    } else if (reply[1] == '-' && reply[2] == '1' && (*reply == '$' || *reply == '*')) {
        run.nils++;
    }
}

static void on_reply(struct conn *c, const char *reply)
{
    note(reply);
    if (++c->step < plan.n_commands) {
        ask(c);
        return;
    }
    int64_t at_us = now_us();
    hist_add(&run.hist, at_us - c->due_us);
    run.done++;
    run.n_busy--;
    c->step = -1;
    if (plan.rate > 0)
        TAILQ_INSERT_TAIL(&run.idle, c, idle);
    else if (!is_over(at_us))
        begin(c, at_us);
}

static void on_readable(struct conn *c)
{
    ssize_t got = recv(c->fd, c->in + c->len, sizeof c->in - c->len, 0);
    if (got <= 0)
        util_die("connection %d: %s", c->number, got == 0 ? "closed" : strerror(errno));
    c->len += (size_t)got;
    size_t n = reply_len(c->in, c->len);
    if (n == 0 && c->len == sizeof c->in)
        util_die("connection %d: a reply of more than %d bytes", c->number, IN_MAX);
    if (n > 0) {
        c->len = 0; /* one request at a time: nothing is behind its reply */
        on_reply(c, c->in);
    }
}

/* ---- the run ---- */

/* Until when to wait, in ms, having begun what is due. */
static int begin_due(void)
{
    int64_t at_us = now_us(), due_us = 0;
    struct conn *c;
    while ((c = TAILQ_FIRST(&run.idle)) != NULL) {
        due_us = run.started_us + (int64_t)((double)run.begun * 1e6 / plan.rate);
        if (due_us > at_us || is_over(due_us))
            break;
        TAILQ_REMOVE(&run.idle, c, idle);
        begin(c, due_us);
    }
    /* epoll counts in milliseconds: what is due sooner is waited for awake */
    return !c ? 100 : due_us - at_us > 1500 ? (int)((due_us - at_us) / 1000) : 0;
}

static void go(void)
{
    struct epoll_event events[EVENTS];
    run.started_us = now_us();
    run.stop_us = run.started_us + (int64_t)(plan.seconds * 1e6);
    for (int i = 0; i < plan.conns && plan.rate == 0 && !is_over(now_us()); i++)
        begin(&run.conns[i], now_us());
    while (run.n_busy > 0 || (plan.rate > 0 && !is_over(now_us()))) {
        int n = epoll_wait(run.epoll, events, EVENTS, plan.rate > 0 ? begin_due() : 1000);
        for (int i = 0; i < n; i++)
            on_readable(events[i].data.ptr);
        if (now_us() > run.stop_us + 20000000)
            util_die("no reply for 20 s, %d are missing", run.n_busy);
    }
}

static void dial(struct conn *c)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)plan.port)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    int on = 1, failed;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(plan.path ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    if (plan.path) {
        snprintf(un.sun_path, sizeof un.sun_path, "%s", plan.path);
        failed = connect(c->fd, (struct sockaddr *)&un, sizeof un);
    } else {
        failed = connect(c->fd, (struct sockaddr *)&in, sizeof in);
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if (failed || epoll_ctl(run.epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        util_die("connection %d: %s", c->number, strerror(errno));
}

static void open_all(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    TAILQ_INIT(&run.idle);
    run.epoll = epoll_create1(0);
    run.conns = util_alloc((size_t)plan.conns * sizeof *run.conns);
    for (int i = 0; i < plan.conns; i++) {
        struct conn *c = &run.conns[i];
        c->number = i;
        c->step = -1;
        dial(c);
        if (plan.rate > 0)
            TAILQ_INSERT_TAIL(&run.idle, c, idle);
    }
}

static void print(double seconds)
{
    printf("{\"rounds\": %" PRId64 ", \"seconds\": %.4f, \"rate\": %.1f, \"errors\": %" PRId64
           ", \"nils\": %" PRId64 ", \"p50\": %" PRId64 ", \"p99\": %" PRId64 ", \"p999\": %" PRId64
           ", \"max\": %" PRId64 ", \"first_error\": \"%s\"}\n",
           run.done, seconds, (double)run.done / seconds, run.errors, run.nils,
           hist_quantile(&run.hist, 0.5), hist_quantile(&run.hist, 0.99),
           hist_quantile(&run.hist, 0.999), (int64_t)run.hist.max_us, run.first_error);
    fflush(stdout);
}

static void parse_commands(char **words, int n)
{
    for (int i = 0; i < n; i++) {
        struct command *c = &plan.commands[plan.n_commands];
        if (strcmp(words[i], ",") == 0)
            plan.n_commands++;
        else if (c->n < WORDS_MAX)
            c->words[c->n++] = words[i];
        if (plan.n_commands == COMMANDS_MAX)
            util_die("at most %d commands", COMMANDS_MAX - 1);
    }
    plan.n_commands += n > 0;
}

int main(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "+p:a:c:s:r:n:uk:")) != -1) {
        switch (option) {
        case 'p':
            plan.port = atoi(optarg);
            break;
        case 'a':
            plan.path = optarg;
            break;
        case 'c':
            plan.conns = atoi(optarg);
            break;
        case 's':
            plan.seconds = atof(optarg);
            break;
        case 'r':
            plan.rate = atof(optarg);
            break;
        case 'n':
            plan.rounds = atoll(optarg);
            break;
        case 'u':
            plan.counted = true;
            break;
        case 'k':
            plan.keep_s = atof(optarg);
            break;
        default:
            util_die("usage: load (-p PORT | -a PATH) [-c CONNS] [-s SECONDS] [-r RATE] "
                     "[-n ROUNDS] [-u] [-k SECONDS-TO-STAY] -- WORD... [, WORD...]");
        }
    }
    parse_commands(argv + optind, argc - optind);
    open_all();
    if (plan.n_commands > 0)
        go();
    print((double)(now_us() - run.started_us) / 1e6);
    usleep((useconds_t)(plan.keep_s * 1e6));
    return 0;
}
