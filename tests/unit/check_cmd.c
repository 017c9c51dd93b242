/* cmd: requests as words, exact replies as bytes. The session has no socket and the lock commands
 * are stubs: LOCK leaves a request with the session that the test finishes. Time is the test's. */
#include "command/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "command/handlers.h"
#include "command/monitor.h"
#include "command/slowlog.h"
#include "command/syntax.h"
#include "conf/conf.h"
#include "lock/lock.h"
#include "resp_value.h"
#include "session/peers.h"
#include "session/pubsub.h"
#include "stats/stats.h"
#include "suite.h"

/* ---- the world around ---- */

static int64_t now_us;

int64_t clock_ms(void)
{
    return now_us / 1000;
}

int64_t clock_us(void)
{
    return now_us;
}

int64_t clock_wall_ms(void)
{
    return 1700000000123;
}

struct client {
    struct session s;
    struct buf out;
};

static struct client a, b;
static struct conf conf;
static char told[256]; /* what the hooks were asked, one word each */

__attribute__((format(printf, 1, 2))) static void tell(const char *fmt, ...)
{
    size_t at = strlen(told);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(told + at, sizeof(told) - at, fmt, ap);
    va_end(ap);
}

static void hook_info(struct server *server, struct buf *out, const char *sections)
{
    (void)server;
    buf_printf(out, "<%s>", sections);
}

static void hook_shutdown(struct server *server, bool now)
{
    (void)server;
    tell("shutdown=%d ", now);
}

static void hook_each_client(struct clients *clients, void (*each)(struct session *, void *arg),
                             void *arg)
{
    (void)clients;
    each(&a.s, arg);
    each(&b.s, arg);
}

static void hook_kill_client(struct session *s, const char *reason)
{
    (void)reason;
    tell("kill=%d ", (int)s->id);
}

static void hook_reset_client(struct server *server, struct session *s, int64_t now_ms)
{
    (void)server, (void)now_ms;
    tell("reset=%d ", (int)s->id);
}

static const char *hook_peer(struct session *s)
{
    return s == &a.s ? "127.0.0.1:11" : "127.0.0.1:22";
}

static const char *hook_local(struct session *s)
{
    (void)s;
    return "127.0.0.1:5625";
}

static int hook_fd(struct session *s)
{
    return (int)s->id + 6;
}

static size_t hook_len(struct session *s)
{
    (void)s;
    return 0;
}

static void hook_pause(struct clients *clients, int64_t until_ms, unsigned classes)
{
    (void)clients;
    tell("pause=%d,%s%s ", (int)until_ms, classes & CMD_LOCK ? "L" : "",
         classes & CMD_INSPECT ? "I" : "");
}

static void hook_pause_acquires(struct server *server, bool paused, int64_t now_ms)
{
    (void)server, (void)now_ms;
    tell("acquires=%s ", paused ? "paused" : "on");
}

static const char *hook_config_set(struct server *server, const struct cmd_setting *settings, int n,
                                   char *error, size_t error_size)
{
    struct conf_error err;
    struct conf fresh;

    (void)server;
    conf_copy(&fresh, &conf);
    for (int i = 0; i < n; i++) {
        if (conf_set_live(&fresh, settings[i].key, settings[i].value, &err) == 0)
            continue;
        snprintf(error, error_size, "%s", err.text);
        conf_fini(&fresh);
        return settings[i].key;
    }
    conf_fini(&conf);
    conf = fresh;
    return NULL;
}

static const char *hook_adopt(struct server *server, const char *name)
{
    (void)server;
    return strcmp(name, "a") == 0 ? NULL : "there is none";
}

static const char *hook_trust(struct server *server, const char *name, int64_t now_ms)
{
    (void)server, (void)now_ms;
    return strcmp(name, "a") == 0 ? NULL : "there is none";
}

static struct peers peers = {.named = PEERS_SELF};

static const struct cmd_hooks test_hooks = {
    .conf = &conf,
    .peers = &peers,
    .info = hook_info,
    .shutdown = hook_shutdown,
    .each_client = hook_each_client,
    .kill_client = hook_kill_client,
    .reset_client = hook_reset_client,
    .peer = hook_peer,
    .local = hook_local,
    .fd = hook_fd,
    .input_len = hook_len,
    .output_len = hook_len,
    .pause = hook_pause,
    .pause_acquires = hook_pause_acquires,
    .trust = hook_trust,
    .adopt = hook_adopt,
    .config_set = hook_config_set,
};

/* ---- lock commands ---- */

static void later_write(struct request *r, struct resp_writer *w, int64_t now_ms)
{
    (void)now_ms;
    if (r->failed)
        cmd_write_error(r, w, "NOQUORUM none");
    else
        resp_int(w, 42);
}

static void later_free(struct request *r)
{
    free(r);
}

static void later_abandon(struct request *r, int64_t now_ms)
{
    (void)now_ms;
    free(r);
}

static const struct request_type later = {
    .write = later_write, .abandon = later_abandon, .free = later_free};
static struct request *last_asked;

void cmd_lock_request(struct cmd_call *c)
{
    if (c->cmd->verb != VERB_LOCK) {
        cmd_reply_int(c, 1);
        return;
    }
    last_asked = util_alloc(sizeof(*last_asked));
    last_asked->type = &later;
    session_ask(c->session, last_asked);
}

#define STUB(fn)                                                                                   \
    void fn(struct cmd_call *c)                                                                    \
    {                                                                                              \
        cmd_reply_int(c, 1);                                                                       \
    }
STUB(cmd_lock_owner)
STUB(cmd_lock_list)
STUB(cmd_lock_scan)
STUB(cmd_lock_count)
STUB(cmd_lock_type)
STUB(cmd_lock_masters)
STUB(cmd_lock_waiting)
STUB(cmd_lock_contended)
STUB(cmd_lock_jeopardy)

/* ---- sessions ---- */

static void on_ready(struct session *s)
{
    (void)s;
}

static void on_close(struct session *s, const char *reason)
{
    (void)s, (void)reason;
}

static const struct session_events events = {.on_ready = on_ready,
                                             .on_unblocked = on_ready,
                                             .on_close = on_close,
                                             .on_written = cmd_written};

static void set_up(void)
{
    now_us = 5000000;
    told[0] = '\0';
    conf_init(&conf);
    cmd_init(&test_hooks);
    stats_reset();
    session_init(&a.s, 1, &events, &a.out, 2000);
    session_init(&b.s, 2, &events, &b.out, 5000);
}

static void client_fini(struct client *c)
{
    cmd_session_end(&c->s);
    session_fini(&c->s, 0);
    buf_fini(&c->out);
}

static void tear_down(void)
{
    client_fini(&a);
    client_fini(&b);
    cmd_fini();
    conf_fini(&conf);
}

/* Words split at single spaces, without a NUL behind them: what reads on is caught by the
 * sanitizer. */
static void send_words(struct client *c, const char *line)
{
    struct resp_arg argv[40];
    int argc = 0;

    for (const char *p = line;; p++) {
        size_t len = strcspn(p, " ");
        char *word = malloc(len > 0 ? len : 1);
        memcpy(word, p, len);
        argv[argc++] = (struct resp_arg){word, len};
        p += len;
        if (*p == '\0')
            break;
    }
    c->s.n_commands++; /* as the client edge does */
    c->s.last_ms = now_us / 1000;
    cmd_dispatch(&c->s, argc, argv, now_us / 1000, now_us);
    while (argc > 0)
        free((void *)(uintptr_t)argv[--argc].ptr);
}

static char *take(struct client *c)
{
    static char text[200000];

    session_flush(&c->s, now_us / 1000);
    ck_assert_uint_lt(buf_len(&c->out), sizeof(text));
    memcpy(text, buf_len(&c->out) > 0 ? buf_head(&c->out) : "", buf_len(&c->out));
    text[buf_len(&c->out)] = '\0';
    buf_consume(&c->out, buf_len(&c->out));
    return text;
}

static void expect(struct client *c, const char *line, const char *want)
{
    send_words(c, line);
    const char *got = take(c);
    ck_assert_msg(strcmp(got, want) == 0, "%s\n got: %s\nwant: %s", line, got, want);
}

static int count_values(const char *text)
{
    const char *end = text + strlen(text);
    int n = 0;

    for (const char *p = text; p < end; n++) {
        p = resp_value_end(p, end);
        ck_assert_msg(p != NULL, "no RESP: %s", text);
    }
    return n;
}

/* ---- dispatch ---- */

struct exchange {
    const char *line, *want;
};

static const struct exchange exchanges[] = {
    {"PING", "+PONG\r\n"},
    {"ping hi", "$2\r\nhi\r\n"},
    {"ping a b", "-ERR wrong number of arguments for 'ping' command\r\n"},
    {"eCHo x", "$1\r\nx\r\n"},
    {"echo", "-ERR wrong number of arguments for 'echo' command\r\n"},
    {"foo", "-ERR unknown command 'foo', with args beginning with: (holdfast keeps locks, not "
            "data; LOCK name takes a lock, UNLOCK name gives it back; HELP tells more)\r\n"},
    {"foo a b",
     "-ERR unknown command 'foo', with args beginning with: 'a' 'b' (holdfast keeps locks, not "
     "data; LOCK name takes a lock, UNLOCK name gives it back; HELP tells more)\r\n"},
    {"foo\r\n+OK x\r\ny", "-ERR unknown command 'foo  +OK', with args beginning with: 'x  y' "
                          "(holdfast keeps locks, not data; LOCK name takes a lock, "
                          "UNLOCK name gives it back; HELP tells more)\r\n"},
    {"get k", "-ERR unknown command 'get', with args beginning with: 'k' (holdfast keeps locks, "
              "not data; LOCKINFO name shows who holds a lock, HOLDS name whether "
              "it is you; HELP tells more)\r\n"},
    {"eval x 0", "-ERR unknown command 'eval', with args beginning with: 'x' '0' (holdfast keeps "
                 "locks, not data; LOCK name and UNLOCK name take the "
                 "place of lock scripts; HELP tells more)\r\n"},
    {"", "-ERR unknown command '', with args beginning with: (holdfast keeps locks, not data; LOCK "
         "name takes a lock, UNLOCK name gives it back; HELP tells more)\r\n"},
    {"client", "-ERR wrong number of arguments for 'client' command\r\n"},
    {"client foo", "-ERR unknown subcommand 'foo'. Try CLIENT HELP.\r\n"},
    {"client id x", "-ERR wrong number of arguments for 'client|id' command\r\n"},
    {"client maint_notifications on",
     "-ERR unknown subcommand 'maint_notifications'. Try CLIENT HELP.\r\n"},
    {"exec", "-ERR EXEC without MULTI\r\n"},
    {"discard", "-ERR DISCARD without MULTI\r\n"},
    {"multi x", "-ERR wrong number of arguments for 'multi' command\r\n"},
    {"select 0", "+OK\r\n"},
    {"select 15", "+OK\r\n"},
    {"select 16", "-ERR DB index is out of range\r\n"},
    {"select -1", "-ERR DB index is out of range\r\n"},
    {"select x", "-ERR value is not an integer or out of range\r\n"},
    {"time", "*2\r\n$10\r\n1700000000\r\n$6\r\n123000\r\n"},
    {"auth x",
     "-ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure your configuration is correct?\r\n"},
    {"auth default x", "+OK\r\n"},
    {"auth bob x", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
    {"auth a b c", "-ERR syntax error\r\n"},
    {"hello 4", "-NOPROTO unsupported protocol version\r\n"},
    {"hello x", "-ERR Protocol version is not an integer or out of range\r\n"},
    {"hello 3 foo", "-ERR Syntax error in HELLO option 'foo'\r\n"},
    {"hello 3 auth bob", "-ERR Syntax error in HELLO option 'auth'\r\n"},
    {"hello 3 auth bob x", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
    {"hello 3 setname \x01",
     "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"},
    {"client id", ":1\r\n"},
    {"client getname", "$-1\r\n"},
    {"client setname bob", "+OK\r\n"},
    {"client getname", "$3\r\nbob\r\n"},
    {"client setname a\nb",
     "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"},
    {"client setname ", "+OK\r\n"},
    {"client getname", "$-1\r\n"},
    {"client setinfo lib-name x", "+OK\r\n"},
    {"client setinfo foo x", "-ERR Unrecognized option 'foo'\r\n"},
    {"client setinfo LIB-VER a\tb",
     "-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n"},
    {"client no-evict on", "+OK\r\n"},
    {"client no-evict x", "-ERR syntax error\r\n"},
    {"client no-touch off", "+OK\r\n"},
    {"client reply on", "+OK\r\n"},
    {"client reply x", "-ERR syntax error\r\n"},
    {"client tracking x", "-ERR syntax error\r\n"},
    {"client pause x", "-ERR timeout is not an integer or out of range\r\n"},
    {"client pause -1", "-ERR timeout is negative\r\n"},
    {"client pause 1 foo", "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n"},
    {"client kill 1.2.3.4:5", "-ERR No such client\r\n"},
    {"client kill id 0", "-ERR client-id should be greater than 0\r\n"},
    {"client kill type x", "-ERR Unknown client type 'x'\r\n"},
    {"client kill user bob", "-ERR No such user 'bob'\r\n"},
    {"client kill skipme x", "-ERR syntax error\r\n"},
    {"client kill id 1 type", "-ERR syntax error\r\n"},
    {"client list foo", "-ERR syntax error\r\n"},
    {"client list id x", "-ERR Invalid client ID\r\n"},
    {"cluster nodes", "-ERR This instance has cluster support disabled\r\n"},
    {"config get nothing", "*0\r\n"},
    {"config set foo 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'foo'\r\n"},
    {"config set lease", "-ERR wrong number of arguments for 'config|set' command\r\n"},
    {"config set lease 1s x", "-ERR wrong number of arguments for 'config|set' command\r\n"},
    {"config rewrite",
     "-ERR unknown subcommand 'rewrite': to keep what CONFIG SET has changed, write it "
     "into the configuration file yourself\r\n"},
    {"info", "$2\r\n<>\r\n"},
    {"info server clients", "$17\r\n<server clients >\r\n"},
    {"acl whoami", "$7\r\ndefault\r\n"},
    {"acl users", "*1\r\n$7\r\ndefault\r\n"},
    {"acl list", "*1\r\n$34\r\nuser default on nopass ~* &* +@all\r\n"},
    {"acl cat foo", "-ERR Unknown category 'foo'\r\n"},
    {"slowlog len", ":0\r\n"},
    {"slowlog get", "*0\r\n"},
    {"slowlog get -2", "-ERR count should be greater than or equal to -1\r\n"},
    {"latency histogram foo", "*0\r\n"},
    {"latency latest", "*0\r\n"},
    {"latency doctor", "-ERR unknown subcommand 'doctor'. Try LATENCY HELP.\r\n"},
    {"command getkeys lock orders wait 5", "*1\r\n$6\r\norders\r\n"},
    {"command getkeys mlock 2 a b wait 5", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
    {"command getkeys munlock 1 a", "*1\r\n$1\r\na\r\n"},
    {"command getkeys mlock 3 a b", "-ERR Invalid arguments specified for command\r\n"},
    {"command getkeys mlock x a", "-ERR Invalid arguments specified for command\r\n"},
    {"command getkeys ping", "-ERR The command has no key arguments\r\n"},
    {"command getkeys foo", "-ERR Invalid command specified\r\n"},
    {"command getkeys lock", "-ERR Invalid number of arguments specified for command\r\n"},
    {"command info foo", "*1\r\n*-1\r\n"},
    {"command docs foo", "*0\r\n"},
    {"command list filterby pattern loc?", "*1\r\n$4\r\nlock\r\n"},
    {"command list filterby module x", "*0\r\n"},
    {"command list x", "-ERR syntax error\r\n"},
    {"pubsub numpat", ":0\r\n"},
    {"pubsub channels", "*0\r\n"},
    {"pubsub numsub a", "*2\r\n$1\r\na\r\n:0\r\n"},
    {"master a trust", "+OK\r\n"},
    {"master a adopt", "+OK\r\n"},
    {"master b adopt", "-ERR master 'b': there is none\r\n"},
    {"master b trust", "-ERR master 'b': there is none\r\n"},
    {"master aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa TRUST",
     "-ERR master 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa': there is "
     "none\r\n"},
    {"master a x", "-ERR syntax error\r\n"},
    {"shutdown x", "-ERR syntax error\r\n"},
    {"shutdown abort", "-ERR No shutdown in progress.\r\n"},
    {"unsubscribe", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"},
    {"help foo", "-ERR no such command 'foo': see COMMAND LIST\r\n"},
};

START_TEST(texts_are_those_of_redis)
{
    for (size_t i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++)
        expect(&a, exchanges[i].line, exchanges[i].want);
    ck_assert_str_eq(told, "");
    ck_assert_str_eq(a.s.lib_name, "x");
}
END_TEST

START_TEST(unknown_text_is_cut)
{
    char line[1000], *got;

    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    line[500] = line[700] = ' ';
    send_words(&a, line);
    got = take(&a);
    ck_assert_int_eq(count_values(got), 1);
    ck_assert_uint_lt(strlen(got), 500);
    ck_assert_ptr_nonnull(strstr(got, "; HELP tells more)\r\n"));
    ck_assert_ptr_nonnull(strstr(got, "x', with args beginning with: 'xxx"));
}
END_TEST

/* Every row is found, sorted, its syntax can be read, and whatever the arguments are it answers one
 * whole reply, in both versions of the protocol. */
static void try_row(const char *top, const struct cmd *cmd, const char *argument, int extra)
{
    char line[1024];
    int n = (cmd->arity < 0 ? -cmd->arity : cmd->arity) + (cmd->arity < 0 ? extra : 0);

    snprintf(line, sizeof(line), "%s%s%s", top != NULL ? top : "", top != NULL ? " " : "",
             cmd->name);
    for (int i = top != NULL ? 2 : 1; i < n; i++) {
        strcat(line, " ");
        strcat(line, argument);
    }
    send_words(&a, line);
    if (last_asked != NULL)
        request_finish(last_asked);
    last_asked = NULL;
    int values = count_values(take(&a));
    bool is_family = strstr(cmd->name, "SUBSCRIBE") != NULL,
         is_silent = strcmp(cmd->name, "SHUTDOWN") == 0;
    if (!is_family && !is_silent)
        ck_assert_msg(values == 1, "%s: %d replies", line, values);
    if (is_family)
        ck_assert_int_ge(values, 1);
    send_words(&a, "RESET");
    a.s.closing = false;
    take(&a);
}

static void try_rows(const char *top, const struct cmd *row, int n, const char *argument, int proto)
{
    for (int i = 0; i < n && row[i].name != NULL; i++) {
        struct syntax sx;
        cmd_syntax_parse(&sx, row[i].syntax);
        ck_assert_msg(i == 0 || strcasecmp(row[i - 1].name, row[i].name) < 0, "%s", row[i].name);
        ck_assert_msg((row[i].flags & CMD_CLASSES) != 0, "%s", row[i].name);
        ck_assert_msg(row[i].summary[strlen(row[i].summary) - 1] == '.', "%s", row[i].name);
        for (int extra = 0; extra < 4; extra++) {
            a.s.proto = (uint8_t)proto;
            try_row(top, &row[i], argument, extra);
        }
        if (row[i].subs != NULL)
            try_rows(row[i].name, row[i].subs, 1000, argument, proto);
    }
}

START_TEST(every_row_answers_once)
{
    static const char *const arguments[] = {"x",   "0", "-1", "on", "*", "99999999999999999999",
                                            "\xff"};
    int n;
    const struct cmd *table = cmd_table(&n);

    for (int i = 0; i < n; i++) {
        struct resp_arg word = {table[i].name, strlen(table[i].name)};
        ck_assert_ptr_eq(cmd_find(&word), &table[i]);
        ck_assert_int_eq(cmd_index(&table[i]), i);
    }
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
        for (int proto = 2; proto <= 3; proto++)
            try_rows(NULL, table, n, arguments[i], proto);
}
END_TEST

/* ---- connection ---- */

START_TEST(hello_changes_protocol)
{
    char want[256];

    snprintf(
        want, sizeof(want),
        "*16\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n8.4.0\r\n$5\r\nproto\r\n:"
        "2\r\n"
        "$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
        "$7\r\nmodules\r\n*0\r\n$8\r\nholdfast\r\n$%zu\r\n%s\r\n",
        strlen(stats_version()), stats_version());
    expect(&a, "hello", want);
    send_words(&a, "HELLO 3 AUTH default secret SETNAME bob");
    const char *got = take(&a);
    ck_assert_int_eq(strncmp(got, "%8\r\n", 4), 0);
    ck_assert_ptr_nonnull(strstr(got, "proto\r\n:3\r\n"));
    expect(&a, "client getname", "$3\r\nbob\r\n");
    expect(&a, "config get nothing", "%0\r\n");
    expect(&a, "reset", "+RESET\r\n");
    ck_assert_str_eq(told, "reset=1 ");
    ck_assert_int_eq(a.s.proto, 2);
    expect(&a, "client getname", "$-1\r\n");
}
END_TEST

/* A transaction in which every command was wrong, as each client knows it from Redis. */
START_TEST(nothing_runs_after_multi)
{
    static const char *const ways_out[][2] = {{"discard", "+OK\r\n"},
                                              {"exec", "-EXECABORT "},
                                              {"reset", "+RESET\r\n"},
                                              {"hello 3", "%8\r\n"},
                                              {"hello", "%8\r\n"}};

    for (size_t i = 0; i < sizeof(ways_out) / sizeof(ways_out[0]); i++) {
        expect(&a, "multi", "+OK\r\n");
        expect(&a, "multi", "-ERR MULTI calls can not be nested\r\n");
        last_asked = NULL;
        send_words(&a, "lock x");
        ck_assert_ptr_null(last_asked);
        ck_assert_int_eq(strncmp(take(&a), "-NOMULTI 'lock' was not run: ", 29), 0);
        send_words(&a, "client setname bob");
        ck_assert_int_eq(strncmp(take(&a), "-NOMULTI 'client|setname' was ", 30), 0);
        send_words(&a, "nosuch");
        ck_assert_int_eq(strncmp(take(&a), "-ERR unknown command 'nosuch'", 29), 0);
        expect(&b, "echo x", "$1\r\nx\r\n");
        send_words(&a, ways_out[i][0]);
        const char *got = take(&a);
        ck_assert_msg(strncmp(got, ways_out[i][1], strlen(ways_out[i][1])) == 0, "%s", got);
        send_words(&a, "lock x");
        ck_assert_ptr_nonnull(last_asked);
        request_finish(last_asked);
        ck_assert_str_eq(take(&a), ":42\r\n");
    }
    expect(&a, "multi", "+OK\r\n");
    expect(&a, "quit", "+OK\r\n");
    ck_assert(a.s.closing);
}
END_TEST

/* The names that handlers, rights and MONITOR see are those of the one set of locks. */
START_TEST(a_database_is_a_prefix_of_names)
{
    expect(&b, "monitor", "+OK\r\n");
    expect(&a, "select 3", "+OK\r\n");
    ck_assert_ptr_nonnull(strstr(take(&b), "\"select\" \"3\""));
    expect(&a, "unlock x", ":1\r\n");
    ck_assert_ptr_nonnull(strstr(take(&b), "\"unlock\" \"db3:x\"\r\n"));
    expect(&a, "mlock 2 x yy owner z", ":1\r\n");
    ck_assert_ptr_nonnull(
        strstr(take(&b), "\"mlock\" \"2\" \"db3:x\" \"db3:yy\" \"owner\" \"z\"\r\n"));
    expect(&a, "mlock 3 x", ":1\r\n");
    ck_assert_ptr_nonnull(strstr(take(&b), "\"mlock\" \"3\" \"db3:x\"\r\n"));
    expect(&a, "echo x", "$1\r\nx\r\n");
    ck_assert_ptr_nonnull(strstr(take(&b), "\"echo\" \"x\"\r\n"));
    send_words(&a, "client info");
    ck_assert_ptr_nonnull(strstr(take(&a), " db=3 "));
    take(&b);
    expect(&a, "reset", "+RESET\r\n");
    take(&b);
    expect(&a, "unlock x", ":1\r\n");
    ck_assert_ptr_nonnull(strstr(take(&b), "\"unlock\" \"x\"\r\n"));
}
END_TEST

START_TEST(quit_closes)
{
    expect(&a, "quit", "+OK\r\n");
    ck_assert(a.s.closing);
}
END_TEST

START_TEST(subscribed_connection_is_narrow)
{
    expect(&a, "subscribe a b",
           "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n");
    expect(&a, "psubscribe p*", "*3\r\n$10\r\npsubscribe\r\n$2\r\np*\r\n:3\r\n");
    expect(
        &a, "client list",
        "-ERR Can't execute 'client|list': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
        "RESET are allowed in this context\r\n");
    expect(&a, "foo",
           "-ERR unknown command 'foo', with args beginning with: (holdfast keeps locks, not data; "
           "LOCK name takes a lock, UNLOCK name gives it back; HELP tells "
           "more)\r\n");
    expect(&a, "ping", "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    expect(&a, "ping x", "*2\r\n$4\r\npong\r\n$1\r\nx\r\n");
    expect(&b, "pubsub channels", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    expect(&b, "pubsub channels b*", "*1\r\n$1\r\nb\r\n");
    expect(&b, "pubsub numsub a x", "*4\r\n$1\r\na\r\n:1\r\n$1\r\nx\r\n:0\r\n");
    expect(&b, "pubsub numpat", ":1\r\n");
    expect(&a, "unsubscribe",
           "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:2\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:"
           "1\r\n");
    expect(&a, "punsubscribe x", "*3\r\n$12\r\npunsubscribe\r\n$1\r\nx\r\n:1\r\n");
    expect(&a, "punsubscribe", "*3\r\n$12\r\npunsubscribe\r\n$2\r\np*\r\n:0\r\n");
    expect(&a, "ping", "+PONG\r\n");

    expect(&a, "subscribe a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    expect(&a, "reset", "+RESET\r\n");
    expect(&a, "ping", "+PONG\r\n");
    b.s.proto = 3;
    expect(&b, "subscribe a", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    expect(&b, "select 0", "+OK\r\n"); /* RESP3 is not narrowed */
}
END_TEST

START_TEST(subscriptions_are_limited)
{
    char line[PUBSUB_NAME_MAX + 32];

    for (int i = 0; i < PUBSUB_SUBSCRIPTIONS_MAX; i++) {
        snprintf(line, sizeof(line), "subscribe c%d", i);
        send_words(&a, line);
    }
    take(&a);
    expect(&a, "subscribe one-more", "-LIMIT a connection has at most 1024 subscriptions\r\n");
    expect(&a, "subscribe c7", "*3\r\n$9\r\nsubscribe\r\n$2\r\nc7\r\n:1024\r\n");
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    memcpy(line, "subscribe ", 10);
    expect(&b, line, "-LIMIT the name of a channel or pattern has at most 1024 bytes\r\n");
    ck_assert_uint_eq(b.s.n_subscriptions, 0);
}
END_TEST

START_TEST(clients_are_listed)
{
    now_us = 9500000;
    expect(&b, "client setname bob", "+OK\r\n");
    send_words(&b, "lock orders");
    request_park(last_asked);
    send_words(&a, "client list id 2 7");
    const char *got = strchr(take(&a), '\n') + 1;
    static const char want[] =
        "id=2 addr=127.0.0.1:22 laddr=127.0.0.1:5625 fd=8 name=bob age=4 idle=0 flags=b db=0 sub=0 "
        "psub=0 ssub=0 multi=-1 qbuf=0 ";
    ck_assert_msg(strncmp(got, want, strlen(want)) == 0, "%s", got);
    ck_assert_ptr_nonnull(strstr(got, " cmd=lock user=default redir=-1 resp=2 lib-name= lib-ver= "
                                      "tot-cmds=2 locks=0 in-flight=1 waiting=1 async=0\n"));
    request_finish(last_asked);
    last_asked = NULL;
    take(&b);
    expect(&a, "client list type replica", "$0\r\n\r\n");
    send_words(&a, "subscribe x");
    send_words(&b, "client list type pubsub");
    take(&a);
    got = take(&b);
    ck_assert_ptr_nonnull(strstr(got, "id=1 "));
    ck_assert_ptr_nonnull(strstr(got, " flags=P "));
    ck_assert_ptr_nonnull(strstr(got, " sub=1 psub=0 "));
    ck_assert_ptr_null(strstr(got, "id=2 "));
}
END_TEST

START_TEST(clients_are_killed)
{
    expect(&a, "client kill 127.0.0.1:22", "+OK\r\n");
    ck_assert_str_eq(told, "kill=2 ");
    expect(&a, "client kill type normal", ":1\r\n"); /* not itself */
    ck_assert_str_eq(told, "kill=2 kill=2 ");
    expect(&a, "client kill type normal skipme no", ":2\r\n");
    told[0] = '\0';
    expect(&a, "client kill id 1 skipme no", ":1\r\n");
    ck_assert_str_eq(told, "kill=1 ");
    now_us = 9500000; /* a is 7.5 s old, b 4.5 s */
    expect(&a, "client kill maxage 5 skipme no user default", ":1\r\n");
    expect(&a, "client kill maxage 4 addr 127.0.0.1:22 laddr 127.0.0.1:5625", ":1\r\n");
    expect(&a, "client kill type pubsub", ":0\r\n");
    expect(&a, "client kill type replica", ":0\r\n");
}
END_TEST

START_TEST(hooks_are_asked)
{
    expect(&a, "client pause 250", "+OK\r\n");
    expect(&a, "client pause 50 write", "+OK\r\n");
    expect(&a, "client unpause", "+OK\r\n");
    expect(&a, "pause", "+OK\r\n");
    expect(&a, "resume", "+OK\r\n");
    expect(&a, "shutdown", "");
    expect(&a, "shutdown nosave now", "");
    ck_assert_str_eq(
        told,
        "pause=5250,LI pause=5050,L pause=0, acquires=paused acquires=on shutdown=0 shutdown=1 ");
}
END_TEST

/* ---- configuration ---- */

START_TEST(config_is_shown_and_set)
{
    expect(&a, "config get lease max_lease lea?e",
           "*4\r\n$5\r\nlease\r\n$3\r\n30s\r\n$9\r\nmax_lease\r\n$2\r\n1m\r\n");
    expect(&a, "config get databases", "*2\r\n$9\r\ndatabases\r\n$1\r\n1\r\n");
    expect(&a, "config set lease 10s", "+OK\r\n");
    expect(&a, "config get lease", "*2\r\n$5\r\nlease\r\n$3\r\n10s\r\n");
    /* all or none */
    send_words(&a, "config set lease 20s listen 127.0.0.1:1");
    const char *got = take(&a);
    ck_assert_int_eq(
        strncmp(got,
                "-ERR CONFIG SET failed (possibly related to argument 'listen') - listen:", 70),
        0);
    expect(&a, "config get lease", "*2\r\n$5\r\nlease\r\n$3\r\n10s\r\n");
    expect(&a, "config set lease 20s foo 1",
           "-ERR Unknown option or number of arguments for CONFIG SET - 'foo'\r\n");
    expect(&a, "config get lease", "*2\r\n$5\r\nlease\r\n$3\r\n10s\r\n");
    /* a glob is no name */
    expect(&a, "config set leas* 1s",
           "-ERR Unknown option or number of arguments for CONFIG SET - 'leas*'\r\n");
}
END_TEST

/* ---- counts ---- */

static struct stats_command *counts_of(const char *full_name)
{
    struct stats_command *c;

    for (size_t i = 0; (c = cmd_stats(i)) != NULL; i++)
        if (strcmp(c->name, full_name) == 0)
            return c;
    ck_abort_msg("no row %s", full_name);
    return NULL;
}

static void expect_counts(const char *full_name, uint64_t ok, uint64_t failed, uint64_t rejected)
{
    struct stats_command *c = counts_of(full_name);

    ck_assert_msg(c->ok == ok && c->failed == failed && c->rejected == rejected, "%s: %d %d %d",
                  full_name, (int)c->ok, (int)c->failed, (int)c->rejected);
    ck_assert_uint_eq(c->duration_us.count, ok + failed);
}

START_TEST(each_request_counts_once)
{
    send_words(&a, "ping");
    send_words(&a, "select 77");
    send_words(&a, "client id");
    send_words(&a, "client id x");
    send_words(&a, "client foo");
    expect_counts("ping", 1, 0, 0);
    expect_counts("select", 0, 1, 0);
    expect_counts("client|id", 1, 0, 1);
    expect_counts("client", 0, 0, 1);

    /* answered later, and what came behind it */
    send_words(&a, "lock orders");
    expect_counts("lock", 0, 0, 0);
    send_words(&a, "ping");
    send_words(&a, "select 77");
    expect_counts("ping", 2, 0, 0);
    expect_counts("select", 0, 2, 0);
    now_us += 3000;
    request_finish(last_asked);
    ck_assert_str_eq(strstr(take(&a), ":42"), ":42\r\n+PONG\r\n-ERR DB index is out of range\r\n");
    expect_counts("lock", 1, 0, 0);
    ck_assert_uint_eq(counts_of("lock")->duration_us.sum_us, 3000);
    expect_counts("ping", 2, 0, 0);

    send_words(&a, "lock orders");
    last_asked->failed = true;
    request_finish(last_asked);
    ck_assert_str_eq(take(&a), "-NOQUORUM none\r\n");
    expect_counts("lock", 1, 1, 0);
    expect(&a, "config resetstat", "+OK\r\n");
    expect_counts("lock", 0, 0, 0);
    last_asked = NULL;
}
END_TEST

START_TEST(barrier_waits)
{
    struct resp_arg quit = {"quit", 4}, ping = {"ping", 4}, foo = {"foo", 3};

    ck_assert(!cmd_must_wait(&a.s, &quit));
    send_words(&a, "lock orders");
    ck_assert(cmd_must_wait(&a.s, &quit));
    ck_assert(!cmd_must_wait(&a.s, &ping));
    ck_assert(!cmd_must_wait(&a.s, &foo));
    request_finish(last_asked);
    last_asked = NULL;
    take(&a);
    ck_assert(!cmd_must_wait(&a.s, &quit));
}
END_TEST

START_TEST(slow_requests_are_kept)
{
    send_words(&a, "client setname bob");
    take(&a);
    send_words(&a, "lock orders");
    now_us += SLOWLOG_THRESHOLD_US - 1;
    request_finish(last_asked);
    take(&a);
    ck_assert_uint_eq(slowlog_count(), 0);

    send_words(&a, "lock orders wait 5");
    now_us += SLOWLOG_THRESHOLD_US;
    request_finish(last_asked);
    take(&a);
    expect(&a, "slowlog get",
           "*1\r\n*6\r\n:0\r\n:1700000000\r\n:10000\r\n*2\r\n$4\r\nLOCK\r\n$6\r\norders\r\n"
           "$12\r\n127.0.0.1:11\r\n$3\r\nbob\r\n");

    send_words(&a, "lock orders"); /* who waits for a lock is not slow */
    request_park(last_asked);
    now_us += 60000000;
    request_finish(last_asked);
    take(&a);
    expect(&a, "slowlog len", ":1\r\n");
    expect(&a, "slowlog reset", "+OK\r\n");
    expect(&a, "slowlog len", ":0\r\n");
    last_asked = NULL;
}
END_TEST

START_TEST(monitor_sees_no_secrets)
{
    expect(&b, "monitor", "+OK\r\n");
    send_words(&a, "echo x");
    send_words(&a, "hello 2 auth default secret");
    send_words(&a, "config get x");
    send_words(&a, "foo");
    ck_assert_str_eq(take(&b), "+1700000000.123000 [0 127.0.0.1:11] \"echo\" \"x\"\r\n"
                               "+1700000000.123000 [0 127.0.0.1:11] \"hello\" \"(redacted)\" "
                               "\"(redacted)\" \"(redacted)\" \"(redacted)\"\r\n");
    expect(&b, "reset", "+1700000000.123000 [0 127.0.0.1:22] \"reset\"\r\n+RESET\r\n");
    ck_assert_uint_eq(monitor_count, 0);
}
END_TEST

START_TEST(histogram_is_cumulative)
{
    hist_add(&counts_of("lock")->duration_us, 100);
    hist_add(&counts_of("lock")->duration_us, 100);
    hist_add(&counts_of("lock")->duration_us, 5000);
    expect(&a, "latency histogram lock unlock",
           "*2\r\n$4\r\nlock\r\n*4\r\n$5\r\ncalls\r\n:3\r\n$14\r\nhistogram_usec\r\n"
           "*4\r\n:128\r\n:2\r\n:8192\r\n:3\r\n");
}
END_TEST

/* ---- docs ---- */

START_TEST(docs_tell_arguments)
{
    a.s.proto = 3;
    expect(&a, "command docs holds foo client|id",
           "%2\r\n$5\r\nholds\r\n%4\r\n$7\r\nsummary\r\n"
           "$39\r\nSays how often this owner holds a lock.\r\n"
           "$5\r\nsince\r\n$5\r\n0.1.0\r\n$5\r\ngroup\r\n$7\r\ninspect\r\n"
           "$9\r\narguments\r\n*2\r\n"
           "%3\r\n$4\r\nname\r\n$4\r\nname\r\n$4\r\ntype\r\n$3\r\nkey\r\n"
           "$14\r\nkey_spec_index\r\n:0\r\n"
           "%4\r\n$4\r\nname\r\n$2\r\nid\r\n$4\r\ntype\r\n$6\r\nstring\r\n"
           "$5\r\ntoken\r\n$5\r\nOWNER\r\n$5\r\nflags\r\n~1\r\n+optional\r\n"
           "$9\r\nclient|id\r\n%3\r\n$7\r\nsummary\r\n"
           "$36\r\nShows the number of this connection.\r\n"
           "$5\r\nsince\r\n$5\r\n0.1.0\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n");
    expect(&a, "command info holds",
           "*1\r\n*10\r\n$5\r\nholds\r\n:-2\r\n~2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
           "~1\r\n+@inspect\r\n*0\r\n*0\r\n*0\r\n");
}
END_TEST

static const struct {
    const char *text, *want;
} syntaxes[] = {
    {"", ""},
    {"name", "name"},
    {"name [OWNER id]", "name OWNER:id?"},
    {"[TELL] [FAIR]", "TELL? FAIR?"},
    {"[SHARED | LIMIT n]", "(SHARED|LIMIT:n)?"},
    {"<ON | OFF>", "(ON|OFF)"},
    {"TYPE <A | B>", "TYPE:(A|B)"},
    {"channel [channel ...]", "channel+"},
    {"[arg ...]", "arg?+"},
    {"[option value ...]", "{option value+}?"},
    {"[a [b c] | D <e | f g>]", "({a {b c}?}|D:(e|{f g}))?"},
};

static void print_nodes(const struct syntax *sx, int i, const char *between, char *to)
{
    for (bool first = true; i >= 0; i = sx->node[i].next, first = false) {
        const struct syntax_node *n = &sx->node[i];
        if (!first)
            strcat(to, between);
        strncat(to, n->token != NULL ? n->token : "", n->token_len);
        strcat(to, n->token != NULL ? ":" : "");
        strncat(to, n->name != NULL ? n->name : "", n->name_len);
        if (n->child >= 0) {
            strcat(to, n->type == SYNTAX_ONEOF ? "(" : "{");
            print_nodes(sx, n->child, n->type == SYNTAX_ONEOF ? "|" : " ", to);
            strcat(to, n->type == SYNTAX_ONEOF ? ")" : "}");
        }
        strcat(to, n->optional ? "?" : "");
        strcat(to, n->multiple ? "+" : "");
    }
}

START_TEST(syntax_becomes_tree)
{
    for (size_t i = 0; i < sizeof(syntaxes) / sizeof(syntaxes[0]); i++) {
        struct syntax sx;
        char got[256] = "";
        cmd_syntax_parse(&sx, syntaxes[i].text);
        print_nodes(&sx, sx.first, " ", got);
        ck_assert_str_eq(got, syntaxes[i].want);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cmd");
    TCase *tc = tcase_create("cmd");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, texts_are_those_of_redis);
    tcase_add_test(tc, unknown_text_is_cut);
    tcase_add_test(tc, every_row_answers_once);
    tcase_add_test(tc, hello_changes_protocol);
    tcase_add_test(tc, nothing_runs_after_multi);
    tcase_add_test(tc, quit_closes);
    tcase_add_test(tc, a_database_is_a_prefix_of_names);
    tcase_add_test(tc, subscribed_connection_is_narrow);
    tcase_add_test(tc, subscriptions_are_limited);
    tcase_add_test(tc, clients_are_listed);
    tcase_add_test(tc, clients_are_killed);
    tcase_add_test(tc, hooks_are_asked);
    tcase_add_test(tc, config_is_shown_and_set);
    tcase_add_test(tc, each_request_counts_once);
    tcase_add_test(tc, barrier_waits);
    tcase_add_test(tc, slow_requests_are_kept);
    tcase_add_test(tc, monitor_sees_no_secrets);
    tcase_add_test(tc, histogram_is_cumulative);
    tcase_add_test(tc, docs_tell_arguments);
    tcase_add_test(tc, syntax_becomes_tree);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
