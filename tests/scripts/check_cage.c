/* Random scripts over random states of their keys, run by a real Redis and by the cage over its
 * make-believe: they answer byte for byte alike and leave the same keys behind.
 *
 *   CAGE_SEED=n    the first program (1)      CAGE_SEEDS=n   how many (20000)
 *   CAGE_SHOW=1    every program with both answers
 *
 * What the cage refuses is not compared, and is counted: at most every third may be. Set-up, script
 * and looks go to Redis as one pipeline with TIME before and after the script; a case in which a
 * millisecond ended meanwhile is run again. */
#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "dropin/cage.h"
#include "dropin/keys.h"
#include "net/resp.h"
#include "redis_proc.h"
#include "suite.h"

enum { KEYS = 3, ARGS_MAX = 4, SETUP_MAX = 16, TRIES = 40, FORGET_EVERY = 1000 };

static struct redis_proc proc;
static int fd;
static struct cage *cage;
static struct keys believed;
static uint64_t state;

static unsigned rnd(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 20) % n);
}

#define ANY(words) ((words)[rnd(sizeof(words) / sizeof(words)[0])])

/* ---- programs ---- */

static struct buf program;
static int n_keys, n_args, depth;

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buf_append(&program, text, (size_t)len);
}

static void expression(void);
static void block(int statements);

static const char *variable(void)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    return ANY(names);
}

static void number(void)
{
    static const char *const numbers[] = {
        "0",   "1",   "2",    "3",   "-1",  "1.5",  "-2.75", "100000",           "30",
        "7",   "1e3", "1e15", "0/0", "1/0", "-1/0", "2^53",  "9007199254740993", "1e300",
        "0.1", "0x10"};
    say("%s", ANY(numbers));
}

static void text(void)
{
    static const char *const texts[] = {
        "'x'",   "'owner-1'", "''",     "'12'",   "'-3'",    "'1.5'",   "'OK'",        "'f'",
        "'a b'", "'10 '",     "'0x1f'", "'-ERR'", "'z\\0y'", "\"q'q\"", "'2147483648'"};
    say("%s", ANY(texts));
}

static void key(void)
{
    if (rnd(30) == 0)
        expression();
    else
        say("KEYS[%u]", 1 + rnd((unsigned)n_keys));
}

static void argument(void)
{
    say("ARGV[%u]", 1 + rnd((unsigned)n_args + (rnd(8) == 0)));
}

static void word(void)
{
    static void (*const ways[])(void) = {number, text, argument, argument, expression};
    ANY(ways)();
}

/* A word of a call: k key, v value, f field, t time, n number; others are themselves. */
static void call_word(const char *w, size_t len)
{
    static const char *const times[] = {"100000",
                                        "200000.7",
                                        "'300000'",
                                        "0",
                                        "-5",
                                        "'x'",
                                        "9223372036854775807",
                                        "'9223372036854775'",
                                        "30000"};
    static const char *const points[] = {"4102444800000", "'4102444800'", "1000", "41024448000",
                                         "'4000000000123'"};
    if (len != 1) {
        say("'%.*s'", (int)len, w);
        return;
    }
    switch (*w) {
    case 'k':
        key();
        break;
    case 'f':
        if (rnd(2))
            say("'%c'", "fgh1"[rnd(4)]);
        else
            word();
        break;
    case 't':
        say("%s", rnd(12) ? ANY(times) : "ARGV[1]");
        break;
    case 'p':
        say("%s", ANY(points));
        break;
    case 'n':
        if (rnd(4))
            say("%d", (int)rnd(7) - 3);
        else
            word();
        break;
    default:
        word();
    }
}

static const char *const calls[] = {
    "GET k",
    "GET k",
    "GET k",
    "SET k v",
    "SET k v NX",
    "SET k v NX PX t",
    "SET k v PX t NX",
    "SET k v XX EX t",
    "SET k v XX GET",
    "SET k v NX GET",
    "SET k v KEEPTTL",
    "SET k v PXAT p",
    "SET k v EXAT p NX",
    "SET k v EX t PX t",
    "set k v px t nx get",
    "SET k v NX XX",
    "SET k v BOGUS",
    "SETNX k v",
    "SETEX k t v",
    "PSETEX k t v",
    "GETSET k v",
    "GETDEL k",
    "GETEX k",
    "GETEX k PX t",
    "GETEX k EXAT p",
    "GETEX k PERSIST",
    "MGET k k",
    "STRLEN k",
    "GETRANGE k n n",
    "GETRANGE k 0 v",
    "DEL k",
    "DEL k",
    "DEL k k",
    "UNLINK k k",
    "EXISTS k",
    "EXISTS k k",
    "TYPE k",
    "EXPIRE k t",
    "PEXPIRE k t",
    "PEXPIRE k t NX",
    "PEXPIRE k t XX",
    "PEXPIRE k t GT",
    "EXPIRE k t LT",
    "PEXPIRE k t XX GT",
    "PEXPIRE k t NX GT",
    "PEXPIRE k t GT LT",
    "PEXPIRE k t v",
    "EXPIREAT k p",
    "PEXPIREAT k p",
    "PEXPIREAT k p GT",
    "PERSIST k",
    "TTL k",
    "PTTL k",
    "EXPIRETIME k",
    "PEXPIRETIME k",
    "INCR k",
    "INCRBY k n",
    "DECR k",
    "DECRBY k n",
    "HSET k f v",
    "HSET k f v f v",
    "HSET k f",
    "HSET k f v f",
    "HMSET k f v",
    "HSETNX k f v",
    "HGET k f",
    "HGET k f",
    "HMGET k f f",
    "HGETALL k",
    "HKEYS k",
    "HVALS k",
    "HDEL k f",
    "HDEL k f f",
    "HEXISTS k f",
    "HLEN k",
    "HSTRLEN k f",
    "HINCRBY k f n",
    "HINCRBY k f n",
    "HINCRBY k f v",
    "PUBLISH v v",
    "GET",
    "GET k k",
    "TTL",
    "HINCRBY k f",
};

static void redis_call(void)
{
    const char *call = ANY(calls);
    say("redis.%s(", rnd(2) ? "call" : "pcall");
    for (int i = 0; *call; i++) {
        size_t len = strcspn(call, " ");
        if (i)
            say(",");
        if (i == 0)
            say("'%.*s'", (int)len, call);
        else
            call_word(call, len);
        call += len + (call[len] == ' ');
    }
    say(")");
}

static void function(void)
{
    static const char *const names[] = {"tonumber",
                                        "tonumber",
                                        "tostring",
                                        "type",
                                        "string.len",
                                        "string.lower",
                                        "string.upper",
                                        "math.floor",
                                        "math.abs",
                                        "math.ceil",
                                        "redis.error_reply",
                                        "redis.status_reply",
                                        "redis.sha1hex",
                                        "string.byte",
                                        "math.sqrt",
                                        "table.getn",
                                        "unpack",
                                        "string.char",
                                        "next",
                                        "table.concat",
                                        "redis.setresp",
                                        "redis.replicate_commands",
                                        "ipairs",
                                        "math.modf"};
    say("%s(", ANY(names));
    if (rnd(3))
        word();
    else if (rnd(10))
        expression();
    say(")");
}

static void function_of_more(void)
{
    static const char *const names[] = {
        "string.sub", "math.max",  "math.min",      "select",       "string.byte",
        "tonumber",   "math.fmod", "table.concat",  "unpack",       "math.pow",
        "assert",     "redis.log", "string.format", "table.remove", "pcall"};
    const char *name = ANY(names);
    if (rnd(12) == 0) { /* Redis would make any text that is asked for */
        say("string.rep(");
        expression();
        say(",%d)", (int)rnd(12) - 2);
        return;
    }
    if (strcmp(name, "string.format") == 0) {
        static const char *const formats[] = {"'%d'",    "'%s'", "'%5.1f|'", "'%s%%'",  "'%x'",
                                              "'%.17g'", "'%q'", "'%c'",     "'%i-%s'", "'%5s'"};
        say("string.format(%s,", ANY(formats));
    } else if (strcmp(name, "pcall") == 0) {
        say("pcall(%s,", rnd(2) ? "tonumber" : "redis.call");
    } else {
        say("%s(", name);
        expression();
        say(",");
    }
    if (rnd(3))
        number();
    else
        expression();
    if (rnd(3) == 0) {
        say(",");
        number();
    }
    say(")");
}

/* Mostly something that arithmetic can be done with. */
static void amount(void)
{
    if (rnd(10) == 0) {
        expression();
        return;
    }
    say("(tonumber(");
    expression();
    say(") or %u)", rnd(4));
}

static void operation(void)
{
    static const char *const equals[] = {"==", "==", "==", "~=", "and", "or"};
    static const char *const sums[] = {"+", "-",  "*", "/",  "%", "^",
                                       "<", "<=", ">", ">=", "+", ".."};
    void (*side)(void) = rnd(2) ? amount : expression;
    say("(");
    side();
    say(" %s ", side == amount ? ANY(sums) : ANY(equals));
    side();
    say(")");
}

static void table(void)
{
    static const char *const fields[] = {"ok=", "err=", "x=", "[1]=", "[3]="};
    say("{");
    for (unsigned n = rnd(4); n > 0; n--) {
        say("%s", rnd(4) ? "" : ANY(fields));
        if (rnd(6))
            expression();
        else
            say("nil");
        say(",");
    }
    say("}");
}

static void unary(void)
{
    static const char *const operators[] = {"not ", "#", "-", "not ", "not "};
    const char *operator= ANY(operators);
    say("(%s", operator);
    if (*operator== '-')
        amount();
    else if (*operator== '#' && rnd(4))
        table();
    else
        expression();
    say(")");
}

static void index_of(void)
{
    static const char *const fields[] = {"[1]", "[2]", ".ok", ".err", "[0]", ".x"};
    const char *name = variable(), *field = ANY(fields);
    if (rnd(6))
        say("(type(%s)=='table' and %s%s)", name, name, field);
    else
        say("%s%s", name, field);
}

static void guarded(void)
{
    say("pcall(function() ");
    block(2);
    say(" end)");
}

static void constant(void)
{
    static const char *const constants[] = {"true",         "false", "nil",
                                            "true",         "redis", "math.huge",
                                            "#KEYS",        "#ARGV", "redis.LOG_NOTICE",
                                            "math.nothing", "false", "nil",
                                            "#ARGV",        "#KEYS"};
    say("%s", ANY(constants));
}

static void a_variable(void)
{
    say("%s", variable());
}

static void server_time(void)
{
    say("redis.call('TIME')[1]");
}

static void expression(void)
{
    static void (*const leaves[])(void) = {number,   text,       argument,   key,
                                           argument, a_variable, a_variable, index_of};
    static void (*const branches[])(void) = {
        redis_call, redis_call, redis_call, redis_call, redis_call,       redis_call,
        function,   function,   operation,  operation,  function_of_more, unary,
        table,      table,      guarded,    constant,   server_time};
    if (depth >= 5 || rnd(3) == 0) {
        ANY(leaves)();
        return;
    }
    depth++;
    ANY(branches)();
    depth--;
}

/* No table of the script's own may come into itself: Redis answers that with as much as fits. And
 * none grows in a loop over itself: Redis would never end. */
static void insert(void)
{
    say("if type(d)=='table' and #d<9 then table.insert(d,");
    if (rnd(3) == 0)
        say("%u,", rnd(3));
    say("#ARGV) end ");
}

/* What scripts about locks are made of. */
static void of_locks(void)
{
    static const char *const lines[] = {
        "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 "
        "end",
        "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],30000) end",
        "if redis.call('exists',KEYS[1])==0 then redis.call('hset',KEYS[1],ARGV[1],1) "
        "redis.call('pexpire',KEYS[1],100000) return nil end",
        "if redis.call('hexists',KEYS[1],ARGV[1])==1 then redis.call('hincrby',KEYS[1],ARGV[1],1) "
        "redis.call('pexpire',KEYS[1],200000) return nil end",
        "if redis.call('hexists',KEYS[1],ARGV[1])==0 then return nil end "
        "if redis.call('hincrby',KEYS[1],ARGV[1],-1)>0 then redis.call('expire',KEYS[1],300) "
        "return 0 else redis.call('del',KEYS[1]) redis.call('publish','ch',0) return 1 end",
        "a=redis.call('get',KEYS[1]) if not a then "
        "return redis.call('set',KEYS[1],ARGV[1],'PX',100000) "
        "elseif a==ARGV[1] then return redis.call('pttl',KEYS[1]) end",
        "if redis.call('setnx',KEYS[1],ARGV[1])==1 then redis.call('expire',KEYS[1],100) "
        "return true end",
        "for _,k in ipairs(KEYS) do if redis.call('exists',k)==1 then return 0 end end "
        "for _,k in ipairs(KEYS) do redis.call('set',k,ARGV[1],'PX',100000) end return #KEYS",
        "b=redis.call('pttl',KEYS[1]) if b>0 and redis.call('get',KEYS[1])==ARGV[1] then "
        "redis.call('pexpire',KEYS[1],b+100000) return 1 end",
        "a=redis.call('set',KEYS[1],ARGV[1],'NX','PX','100000') if a then return a end",
        "c=redis.pcall('get',KEYS[1]) if type(c)=='table' and c.err then return c end",
    };
    const char *line = ANY(lines);
    buf_append(&program, line, strlen(line));
    say("\n");
}

/* Redis itself ends by an error that is a table without err. */
static void raise_error(void)
{
    switch (rnd(4)) {
    case 0:
        say("error({err=");
        text();
        say("}) ");
        break;
    case 1:
        say("error(redis.error_reply(");
        text();
        say(")) ");
        break;
    case 2:
        say("error(");
        text();
        say(",%u) ", rnd(3));
        break;
    default:
        say("error(");
        number();
        say(") ");
    }
}

static void condition(void)
{
    say("if ");
    expression();
    say(" then ");
    block(2);
    if (rnd(2)) {
        say(" else ");
        block(2);
    }
    say(" end ");
}

static void listed(void)
{
    const char *name = variable();
    if (rnd(8) == 0)
        expression();
    else if (rnd(2))
        table();
    else
        say("type(%s)=='table' and %s or KEYS", name, name);
}

static void loop(void)
{
    switch (rnd(3)) {
    case 0:
        say("for i=1,%u do ", rnd(4));
        break;
    case 1:
        say("for i,v in ipairs(");
        listed();
        say(") do ");
        break;
    default:
        say("for i,v in pairs(");
        listed();
        say(") do b=v ");
    }
    block(2);
    say(" end ");
}

static void assignment(void)
{
    say("%s=", variable());
    expression();
    say("%s", rnd(2) ? " " : "\n");
}

static void statement(void)
{
    if (depth >= 4 || rnd(2)) {
        assignment();
        return;
    }
    depth++;
    switch (rnd(14)) {
    case 12:
    case 13:
        of_locks();
        break;
    case 0:
        insert();
        break;
    case 1:
        if (rnd(3))
            of_locks();
        else
            raise_error();
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        condition();
        break;
    case 6:
        loop();
        break;
    case 7:
        if (rnd(4) == 0)
            say("%s ", rnd(3) ? "a=stray" : (rnd(2) ? "stray=1" : "math.stray=1"));
        else
            say("ARGV[%u]=%u ", 1 + rnd(3), rnd(4));
        break;
    case 8:
        say("local function f(%s) ", variable());
        block(2);
        say(" end a=f(");
        expression();
        say(") ");
        break;
    default:
        redis_call();
        say("\n");
    }
    depth--;
}

static void block(int statements)
{
    for (int i = (int)rnd((unsigned)statements + 1); i > 0; i--)
        statement();
    if (rnd(5) == 0) {
        say("do return ");
        expression();
        say(" end ");
    }
}

static void random_program(void)
{
    buf_consume(&program, buf_len(&program));
    depth = 0;
    say("local a,b,c,d=nil,0,'',{}\n");
    block(5);
    say("return ");
    expression();
    bool is_harmless = !memmem(buf_head(&program), buf_len(&program), "error(", 6) &&
                       !memmem(buf_head(&program), buf_len(&program), "insert", 6);
    if (is_harmless && rnd(16) == 0) { /* mostly no Lua any more */
        char *at = buf_head(&program) + 26 + rnd((unsigned)buf_len(&program) - 26);
        memmove(at, at + 1, (size_t)(buf_head(&program) + buf_len(&program) - at - 1));
        program.end--;
    }
}

/* ---- cases ---- */

static struct {
    struct resp_arg keys[KEYS], args[ARGS_MAX];
    struct resp_arg setup[SETUP_MAX][6];
    int setup_words[SETUP_MAX], n_setup;
} cases;

static struct resp_arg arg_of(const char *text)
{
    return (struct resp_arg){text, strlen(text)};
}

static void set_up(const char *name, struct resp_arg a, struct resp_arg b, struct resp_arg c)
{
    struct resp_arg words[] = {arg_of(name), a, b, c};
    int n = c.ptr ? 4 : 3;
    memcpy(cases.setup[cases.n_setup], words, sizeof words);
    cases.setup_words[cases.n_setup++] = n;
}

static void random_case(void)
{
    static const char *const names[] = {"lock", "lock:2", "third key"};
    static const char *const values[] = {"owner-1", "7",  "",       "100000",
                                         "x y",     "-1", "30000",  "1.5",
                                         "1e3",     "f",  "0",      "99999999999999999999",
                                         "owner-2", "g",  "200000", "abc\r\n"};
    static const char *const fields[] = {"f", "g", "h", "owner-1"};
    static const char *const counts[] = {"1", "2", "1", "x", "9223372036854775807"};
    static const struct resp_arg none = {NULL, 0};
    n_keys = 1 + (int)rnd(KEYS);
    n_args = (int)rnd(ARGS_MAX) + 1;
    cases.n_setup = 0;
    for (int i = 0; i < n_args; i++)
        cases.args[i] = arg_of(ANY(values));
    for (int i = 0; i < n_keys; i++) {
        unsigned kind = rnd(3);
        cases.keys[i] = arg_of(names[i]);
        if (kind == 1)
            set_up("SET", cases.keys[i], rnd(2) ? cases.args[0] : arg_of(ANY(values)), none);
        for (unsigned n = kind == 2 ? 1 + rnd(3) : 0; n > 0; n--)
            set_up("HSET", cases.keys[i], arg_of(ANY(fields)), arg_of(ANY(counts)));
        if (kind && rnd(2))
            set_up("PEXPIREAT", cases.keys[i], arg_of(rnd(2) ? "4102444800123" : "4102444800999"),
                   none);
    }
    random_program();
}

/* ---- Redis ---- */

static struct buf asked, heard;

static void ask(const struct resp_arg *words, int n)
{
    struct resp_writer w = {&asked, 2};
    resp_array(&w, (size_t)n);
    for (int i = 0; i < n; i++)
        resp_bulk(&w, words[i].ptr, words[i].len);
}

static void ask_words(const char *a, const char *b, const struct resp_arg *key)
{
    struct resp_arg words[3] = {arg_of(a)};
    int n = 1;
    if (b)
        words[n++] = arg_of(b);
    if (key)
        words[n++] = *key;
    ask(words, n);
}

/* The end of the reply at `at`; NULL: it is not all there. */
static const char *reply_end(const char *at, const char *end)
{
    for (long wanted = 1; wanted > 0; wanted--) {
        const char *line = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!line)
            return NULL;
        long n = strtol(at + 1, NULL, 10);
        if (*at == '*' && n > 0)
            wanted += n;
        else if (*at == '$' && n >= 0)
            line += n + 2;
        at = line + 1;
        if (at > end)
            return NULL;
    }
    return at;
}

/* Sends what has been asked, and takes so many replies: ends[i] is behind reply i. */
static void talk(int n, size_t *ends)
{
    int got = 0;
    size_t sent = 0;
    while (sent < buf_len(&asked)) {
        ssize_t len = write(fd, buf_head(&asked) + sent, buf_len(&asked) - sent);
        ck_assert_int_gt(len, 0);
        sent += (size_t)len;
    }
    buf_consume(&asked, buf_len(&asked));
    buf_consume(&heard, buf_len(&heard));
    while (got < n) {
        ssize_t len = read(fd, buf_reserve(&heard, 65536), 65536);
        ck_assert_msg(len > 0, "redis has gone at\n%.*s", (int)buf_len(&program),
                      buf_head(&program));
        buf_commit(&heard, (size_t)len);
        const char *head = buf_head(&heard), *end = head + buf_len(&heard);
        for (const char *next; got < n; got++) {
            next = reply_end(head + (got ? ends[got - 1] : 0), end);
            if (!next)
                break;
            ends[got] = (size_t)(next - head);
        }
    }
}

static int64_t time_us(const char *reply)
{
    const char *seconds = strchr(reply + 4, '\n') + 1;
    const char *us = strchr(strchr(seconds, '\n') + 1, '\n') + 1;
    return atoll(seconds) * 1000000 + atoll(us);
}

enum { LOOKS = 4 };
static const char *const looks[LOOKS] = {"TYPE", "GET", "HGETALL", "PEXPIRETIME"};

/* Runs the case on Redis: `out` gets the bytes of its answer and of all looks. False: a
 * millisecond has ended meanwhile. */
static bool run_on_redis(struct buf *out, int64_t *now_us)
{
    static const struct resp_arg flush[] = {{"FLUSHALL", 8}};
    struct resp_arg words[3 + KEYS + ARGS_MAX] = {{"EVAL", 4},
                                                  {buf_head(&program), buf_len(&program)}};
    char count[8];
    size_t ends[SETUP_MAX + 4 + KEYS * LOOKS];
    int n = 3, replies = cases.n_setup + 4 + n_keys * LOOKS;
    snprintf(count, sizeof count, "%d", n_keys);
    words[2] = arg_of(count);
    for (int i = 0; i < n_keys; i++)
        words[n++] = cases.keys[i];
    for (int i = 0; i < n_args; i++)
        words[n++] = cases.args[i];
    ask(flush, 1);
    for (int i = 0; i < cases.n_setup; i++)
        ask(cases.setup[i], cases.setup_words[i]);
    ask_words("TIME", NULL, NULL);
    ask(words, n);
    ask_words("TIME", NULL, NULL);
    for (int i = 0; i < n_keys; i++) {
        for (int j = 0; j < LOOKS; j++)
            ask_words(looks[j], NULL, &cases.keys[i]);
    }
    talk(replies, ends);
    const char *head = buf_head(&heard);
    int at = cases.n_setup + 1; /* TIME, EVAL, TIME */
    *now_us = time_us(head + ends[at - 1]);
    bool is_still = *now_us / 1000 == time_us(head + ends[at + 1]) / 1000;
    buf_consume(out, buf_len(out));
    buf_append(out, head + ends[at], ends[at + 1] - ends[at]);
    buf_append(out, head + ends[at + 2], ends[replies - 1] - ends[at + 2]);
    return is_still;
}

/* ---- the cage ---- */

static bool run_in_cage(struct buf *out, int64_t now_us)
{
    struct store_reply reply = {0};
    struct resp_writer w = {out, 2};
    struct cage_job job = {.body = buf_head(&program),
                           .len = buf_len(&program),
                           .keys = cases.keys,
                           .n_keys = n_keys,
                           .args = cases.args,
                           .n_args = n_args,
                           .call = keys_call,
                           .arg = &believed};
    buf_consume(out, buf_len(out));
    keys_begin(&believed, cases.keys, n_keys, now_us);
    for (int i = 0; i < cases.n_setup; i++)
        keys_suppose(&believed, cases.setup[i], cases.setup_words[i], NULL);
    bool is_served = cage_run(cage, &job, &reply) == 0;
    if (is_served)
        store_reply_write(&reply, &w);
    for (int i = 0; is_served && i < n_keys; i++) {
        for (int j = 0; j < LOOKS; j++) {
            struct resp_arg words[] = {arg_of(looks[j]), cases.keys[i]};
            store_reply_clear(&reply);
            keys_suppose(&believed, words, 2, &reply);
            store_reply_write(&reply, &w);
        }
    }
    store_reply_fini(&reply);
    return is_served;
}

static void show(const char *title, const struct buf *b)
{
    printf("--- %s\n", title);
    for (size_t i = 0; i < buf_len(b); i++) {
        unsigned char c = (unsigned char)buf_head(b)[i];
        if (c == '\r')
            continue;
        printf(c == '\n' || (c >= ' ' && c < 127) ? "%c" : "\\x%02x", c);
    }
    printf("\n");
}

static void show_case(const struct buf *redis, const struct buf *own)
{
    show("program", &program);
    for (int i = 0; i < n_args; i++)
        printf("ARGV[%d] = %s\n", i + 1, cases.args[i].ptr);
    for (int i = 0; i < cases.n_setup; i++)
        printf("%s %s %s %s\n", cases.setup[i][0].ptr, cases.setup[i][1].ptr, cases.setup[i][2].ptr,
               cases.setup_words[i] > 3 ? cases.setup[i][3].ptr : "");
    show("redis", redis);
    show("cage", own);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 10) : otherwise;
}

/* True: served. */
static bool compare(uint64_t seed)
{
    static struct buf redis, own;
    for (int i = 0; i < TRIES; i++) {
        int64_t now_us;
        bool is_still = run_on_redis(&redis, &now_us);
        if (!run_in_cage(&own, now_us)) {
            if (getenv("CAGE_SHOW")) {
                show("program", &program);
                printf("refused: %s\n", cage_refusal(cage));
            }
            return false;
        }
        bool alike = buf_len(&redis) == buf_len(&own) &&
                     memcmp(buf_head(&redis), buf_head(&own), buf_len(&own)) == 0;
        if (alike && getenv("CAGE_SHOW"))
            show_case(&redis, &own);
        if (alike)
            return true;
        if (is_still && i >= TRIES / 2)
            break;
    }
    show_case(&redis, &own);
    ck_abort_msg("CAGE_SEED=%" PRIu64 ": they differ", seed);
}

START_TEST(the_cage_answers_as_redis_does)
{
    uint64_t first = number_of("CAGE_SEED", 1), n = number_of("CAGE_SEEDS", 20000), refused = 0;
    size_t end;
    for (uint64_t seed = first; seed < first + n; seed++) {
        state = seed * 0x9e3779b97f4a7c15ULL + 1;
        random_case();
        refused += !compare(seed);
        if (seed % FORGET_EVERY == 0) {
            ask_words("SCRIPT", "FLUSH", NULL);
            talk(1, &end);
        }
    }
    printf("%" PRIu64 " of %" PRIu64 " refused\n", refused, n);
    ck_assert_uint_le(refused, n / 3);
}
END_TEST

static void setup(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    /* large hashes have no order in Redis */
    static const char *const options[] = {"--hash-max-listpack-value", "1000000", NULL};
    redis_proc_start(&proc, options);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", proc.path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    cage = cage_new(8);
}

static void teardown(void)
{
    close(fd);
    redis_proc_fini(&proc);
    cage_free(cage);
    keys_fini(&believed);
    buf_fini(&program);
    buf_fini(&asked);
    buf_fini(&heard);
}

int main(void)
{
    Suite *s = suite_create("cage");
    TCase *tc = tcase_create("redis");
    setenv("LC_ALL", "C", 1); /* texts are compared as bytes */
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, the_cage_answers_as_redis_does);
    suite_add_tcase(s, tc);
    return suite_run_with_redis(s);
}
