/* Random commands, said by a script, to a real Redis and to the store: they answer alike, word for
 * word, and leave the same behind.
 *
 *   STORE_SEED=n    the first sequence (1)      STORE_SEEDS=n   how many (400)
 *   STORE_SHOW=1    every command with both answers
 *
 * Both have the same time, which the real one tells with each answer; it goes on for some
 * microseconds within a call, so times to live are compared with 2 ms of tolerance, and none ends
 * while a sequence runs. */
#include <check.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis_proc.h"
#include "script_host.h"
#include "suite.h"

enum { STEPS = 60, WORDS = 12, WORD = 64, TEXT = 8192, TOLERANCE_MS = 2 };

static const char say[] = "return {redis.call('TIME'), redis.pcall(unpack(ARGV))}";

static struct redis_proc proc;
static redisContext *link_;
static struct store store;
static struct script_host *host;
static int script;
static uint64_t state;

static unsigned rnd(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 20) % n);
}

#define ANY(words) ((words)[rnd(sizeof(words) / sizeof(words)[0])])

/* ---- commands at random ---- */

/* What stands for a random word: k key, v value, f field, n small number, s score, b bound of a
 * score, t time to live, a point in time, c channel. Others are themselves. */
static const char *const templates[] = {
    "GET k",
    "SET k v",
    "SET k v NX",
    "SET k v XX GET",
    "SET k v NX GET PX t",
    "SET k v EX t",
    "SET k v PXAT a",
    "SET k v EXAT a XX",
    "SET k v KEEPTTL",
    "SET k v KEEPTTL PX t",
    "SET k v NX XX",
    "SET k v PX -n",
    "SET k v PX v",
    "SET k v PX",
    "SET k v GET KEEPTTL",
    "SETNX k v",
    "SETEX k t v",
    "SETEX k -n v",
    "PSETEX k t v",
    "GETSET k v",
    "GETDEL k",
    "GETEX k",
    "GETEX k PX t",
    "GETEX k PERSIST",
    "GETEX k PERSIST EX t",
    "GETEX k EXAT a",
    "MGET k k k",
    "MSET k v k v",
    "MSET k v k",
    "MSETNX k v k v",
    "INCR k",
    "DECR k",
    "INCRBY k n",
    "INCRBY k v",
    "DECRBY k n",
    "DECRBY k -9223372036854775808",
    "SET k 9223372036854775807",
    "APPEND k v",
    "STRLEN k",
    "DEL k",
    "DEL k k k",
    "UNLINK k",
    "EXISTS k k",
    "TYPE k",
    "EXPIRE k t",
    "EXPIRE k t NX",
    "PEXPIRE k t XX",
    "PEXPIRE k t GT",
    "PEXPIRE k t LT",
    "EXPIREAT k a",
    "PEXPIREAT k a GT",
    "PEXPIREAT k 1",
    "EXPIRE k -n",
    "PEXPIRE k n NX GT",
    "PEXPIRE k n GT LT",
    "PEXPIRE k t v",
    "PEXPIRE k v",
    "EXPIRE k 9223372036854775",
    "EXPIRE k 9223372036854775807",
    "PEXPIRE k 9223372036854775807",
    "PERSIST k",
    "TTL k",
    "PTTL k",
    "EXPIRETIME k",
    "PEXPIRETIME k",
    "HSET k f v",
    "HSET k f v f v",
    "HSET k f v f",
    "HMSET k f v",
    "HSETNX k f v",
    "HGET k f",
    "HMGET k f f f",
    "HGETALL k",
    "HKEYS k",
    "HVALS k",
    "HDEL k f",
    "HDEL k f f",
    "HEXISTS k f",
    "HLEN k",
    "HSTRLEN k f",
    "HINCRBY k f n",
    "HINCRBY k f v",
    "HINCRBY k f 9223372036854775807",
    "LPUSH k v",
    "RPUSH k v v",
    "LPUSHX k v",
    "RPUSHX k v",
    "LPOP k",
    "RPOP k",
    "LPOP k n",
    "RPOP k n",
    "LPOP k -1",
    "LPOP k n n",
    "LLEN k",
    "LINDEX k n",
    "LINDEX k -n",
    "LINDEX k v",
    "LRANGE k n -n",
    "LRANGE k -n n",
    "LRANGE k 0 -1",
    "LREM k 0 v",
    "LREM k n v",
    "LREM k -n v",
    "SADD k f",
    "SADD k f f",
    "SREM k f",
    "SISMEMBER k f",
    "SCARD k",
    "SMEMBERS k",
    "ZADD k s f",
    "ZADD k s f s f",
    "ZADD k NX s f",
    "ZADD k XX CH s f",
    "ZADD k GT CH s f",
    "ZADD k LT s f s f",
    "ZADD k INCR s f",
    "ZADD k NX INCR s f",
    "ZADD k XX INCR s f",
    "ZADD k GT LT s f",
    "ZADD k NX XX s f",
    "ZADD k INCR s f s f",
    "ZADD k s",
    "ZADD k v f",
    "ZADD k nan f",
    "ZADD k inf f",
    "ZADD k INCR -inf f",
    "ZINCRBY k s f",
    "ZREM k f f",
    "ZSCORE k f",
    "ZCARD k",
    "ZCOUNT k b b",
    "ZRANK k f",
    "ZREVRANK k f",
    "ZRANGE k n -n",
    "ZRANGE k 0 -1 WITHSCORES",
    "ZRANGE k -n n REV WITHSCORES",
    "ZRANGE k 0 -1 v",
    "ZREVRANGE k n n WITHSCORES",
    "ZREVRANGE k 0 -n",
    "ZRANGEBYSCORE k b b",
    "ZRANGEBYSCORE k b b WITHSCORES LIMIT n n",
    "ZRANGEBYSCORE k b b LIMIT n -1",
    "ZRANGEBYSCORE k b b LIMIT -1 n",
    "ZREMRANGEBYSCORE k b b",
    "ZRANGEBYSCORE k v b",
    "PUBLISH c v",
    "get k",
    "Set k v px t",
    "NOSUCH k",
    "GET",
    "GET k k",
    "HSET k f",
    "ZSCORE k",
    "TTL",
};

struct command {
    int argc;
    char words[WORDS][WORD];
    size_t lens[WORDS];
};

static void random_word(const char *kind, char *out, size_t *len)
{
    static const char *const values[] = {"a",  "bb", "7",    "-3",  "0",     "",        "x y",
                                         "07", "+1", "3.25", "1e3", "12345", "owner-1", "-0"};
    static const char *const fields[] = {"f", "g", "1", "", "owner:7", "long-name-of-a-field"};
    static const char *const scores[] = {"1",    "2",    "2", "-1.5",
                                         "3.25", "1e10", "0", "1234567890123"};
    static const char *const bounds[] = {"-inf", "+inf", "(1", "2",     "(2",
                                         "3.25", "inf",  "-1", "(-inf", ""};
    bool negative = kind[0] == '-' && kind[1] == 'n';
    char c = kind[negative] != '\0' && kind[negative + 1] == '\0' ? kind[negative] : '\0';
    switch (c) {
    case 'k':
        snprintf(out, WORD, "key%u", rnd(4));
        break;
    case 'v':
        snprintf(out, WORD, "%s", ANY(values));
        break;
    case 'f':
        snprintf(out, WORD, "%s", ANY(fields));
        break;
    case 'n':
        snprintf(out, WORD, "%s%u", negative ? "-" : "", rnd(5));
        break;
    case 's':
        snprintf(out, WORD, "%s", ANY(scores));
        break;
    case 'b':
        snprintf(out, WORD, "%s", ANY(bounds));
        break;
    case 't':
        snprintf(out, WORD, "%u", 100000 + rnd(1000000));
        break;
    case 'a':
        snprintf(out, WORD, "%s%u", rnd(3) ? "4" : "39", 100000000 + rnd(100000000));
        break;
    default:
        snprintf(out, WORD, "%s", kind);
        break;
    }
    *len = strlen(out);
    if (c == 'v' && rnd(20) == 0) { /* any byte */
        out[1] = '\0';
        out[2] = '\n';
        *len = 3;
    }
}

static void random_command(struct command *c)
{
    char text[128];
    snprintf(text, sizeof text, "%s", ANY(templates));
    c->argc = 0;
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " "), c->argc++) {
        if (c->argc == 0)
            c->lens[0] = (size_t)snprintf(c->words[0], WORD, "%s", w);
        else
            random_word(w, c->words[c->argc], &c->lens[c->argc]);
    }
}

static void command_of(struct command *c, const char *name, const char *a, const char *b,
                       const char *d)
{
    const char *const words[] = {name, a, b, d};
    for (c->argc = 0; c->argc < 4 && words[c->argc]; c->argc++)
        c->lens[c->argc] = (size_t)snprintf(c->words[c->argc], WORD, "%s", words[c->argc]);
}

static void show(const struct command *c, char out[TEXT])
{
    out[0] = '\0';
    for (int i = 0; i < c->argc; i++) {
        strcat(out, i ? " '" : "'");
        for (size_t j = 0; j < c->lens[i]; j++)
            sprintf(out + strlen(out), c->words[i][j] >= ' ' ? "%c" : "\\x%02x", c->words[i][j]);
        strcat(out, "'");
    }
}

/* ---- answers as text ---- */

static void add(char *out, const char *mark, const char *text, size_t len)
{
    size_t at = strlen(out);
    ck_assert_uint_lt(at + 4 * len + 16, TEXT);
    at += (size_t)sprintf(out + at, "%s", mark);
    for (size_t i = 0; i < len; i++) {
        unsigned char b = (unsigned char)text[i];
        at += (size_t)sprintf(out + at, b >= ' ' && b < 127 ? "%c" : "\\x%02x", b);
    }
    strcat(out, " ");
}

static void real_text(const redisReply *r, char *out)
{
    char number[32];
    switch (r->type) {
    case REDIS_REPLY_INTEGER:
        snprintf(number, sizeof number, "%lld", r->integer);
        add(out, ":", number, strlen(number));
        break;
    case REDIS_REPLY_STRING:
        add(out, "$", r->str, r->len);
        break;
    case REDIS_REPLY_STATUS:
        add(out, "+", r->str, r->len);
        break;
    case REDIS_REPLY_ERROR:
        add(out, "-", r->str, r->len);
        break;
    case REDIS_REPLY_ARRAY:
        snprintf(number, sizeof number, "%zu", r->elements);
        add(out, "*", number, strlen(number));
        for (size_t i = 0; i < r->elements; i++)
            real_text(r->element[i], out);
        break;
    default:
        add(out, "nil", "", 0);
    }
}

static void store_text_of(const struct store_reply *r, int from, char *out)
{
    static const char *const marks[] = {
        [STORE_STATUS] = "+", [STORE_ERROR] = "-", [STORE_BULK] = "$"};
    for (int i = from; i < r->n_nodes; i++) {
        const struct store_node *n = &r->nodes[i];
        char number[32];
        snprintf(number, sizeof number, "%" PRId64, n->n);
        if (n->kind == STORE_NIL)
            add(out, "nil", "", 0);
        else if (n->kind == STORE_INT || n->kind == STORE_ARRAY || n->kind == STORE_MAP)
            add(out, n->kind == STORE_INT ? ":" : "*", number, strlen(number));
        else
            add(out, marks[n->kind], store_text(r, n), n->len);
    }
}

/* Runs it on both; their answers as text. The store's time is then the real one's. */
static void ask_both(const struct command *c, char real[TEXT], char own[TEXT])
{
    const char *argv[3 + WORDS] = {"EVAL", say, "0"};
    size_t lens[3 + WORDS] = {4, sizeof say - 1, 1};
    struct resp_arg args[WORDS];
    for (int i = 0; i < c->argc; i++) {
        argv[3 + i] = c->words[i];
        lens[3 + i] = c->lens[i];
        args[i] = (struct resp_arg){c->words[i], c->lens[i]};
    }
    redisReply *r = redisCommandArgv(link_, 3 + c->argc, argv, lens);
    ck_assert_msg(r && r->type == REDIS_REPLY_ARRAY && r->elements == 2, "%s", r ? r->str : "");
    const redisReply *time = r->element[0];
    store.now_us = atoll(time->element[0]->str) * 1000000 + atoll(time->element[1]->str);
    real[0] = own[0] = '\0';
    real_text(r->element[1], real);
    freeReplyObject(r);
    struct store_reply out = {0};
    script_host_run(host, script, &store, NULL, 0, args, c->argc, &out);
    ck_assert_int_eq(out.nodes[0].kind, STORE_ARRAY);
    store_text_of(&out, 4, own); /* behind the array, the array of TIME and its two texts */
    store_reply_fini(&out);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The members of a set come in any order. */
static void sort_words(char text[TEXT])
{
    char copy[TEXT], *words[256];
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        words[n++] = w;
    qsort(words, n, sizeof words[0], by_text);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        add(text, "", words[i], strlen(words[i]));
}

static bool is_alike(const struct command *c, char real[TEXT], char own[TEXT])
{
    if (strcmp(c->words[0], "SMEMBERS") == 0) {
        sort_words(real);
        sort_words(own);
    }
    bool is_time = strstr(c->words[0], "TTL") || strstr(c->words[0], "TIME");
    if (is_time && real[0] == ':' && own[0] == ':' && atoll(own + 1) > 1)
        return llabs(atoll(real + 1) - atoll(own + 1)) <= TOLERANCE_MS;
    return strcmp(real, own) == 0;
}

/* ---- sequences ---- */

static char history[STEPS + 64][640];
static int n_history;

static void step(const struct command *c, uint64_t seed)
{
    char real[TEXT], own[TEXT], text[TEXT];
    ask_both(c, real, own);
    bool alike = is_alike(c, real, own);
    show(c, text);
    snprintf(history[n_history++], sizeof history[0], "%.300s -> %.300s", text, real);
    if (getenv("STORE_SHOW"))
        printf("%s\n  redis %s\n  store %s\n", text, real, own);
    if (alike)
        return;
    for (int i = 0; i < n_history; i++)
        printf("  %s\n", history[i]);
    ck_abort_msg("STORE_SEED=%" PRIu64 ": %s\n  redis answers %s\n  store answers %s", seed, text,
                 real, own);
}

/* All that is there, told by commands. */
static void compare_all(uint64_t seed)
{
    struct command c;
    char key[] = "key0";
    for (int i = 0; i < 4; i++) {
        key[3] = (char)('0' + i);
        command_of(&c, "TYPE", key, NULL, NULL);
        step(&c, seed);
        command_of(&c, "PTTL", key, NULL, NULL);
        step(&c, seed);
        static const char *const looks[][3] = {{"GET", NULL, NULL},
                                               {"HGETALL", NULL, NULL},
                                               {"SMEMBERS", NULL, NULL},
                                               {"LRANGE", "0", "-1"},
                                               {"ZRANGEBYSCORE", "-inf", "+inf"}};
        for (int j = 0; j < 5; j++) {
            command_of(&c, looks[j][0], key, looks[j][1], looks[j][2]);
            step(&c, seed);
        }
    }
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(the_store_answers_as_redis_does)
{
    uint64_t first = number_of("STORE_SEED", 1), n = number_of("STORE_SEEDS", 400);
    for (uint64_t seed = first; seed < first + n; seed++) {
        state = seed * 0x9e3779b97f4a7c15ULL + 1;
        n_history = 0;
        freeReplyObject(redisCommand(link_, "FLUSHALL"));
        store_flush(&store);
        for (int i = 0; i < STEPS; i++) {
            struct command c;
            random_command(&c);
            step(&c, seed);
        }
        compare_all(seed);
    }
}
END_TEST

static void setup(void)
{
    char error[256];
    redis_proc_start(&proc, NULL);
    link_ = redisConnectUnix(proc.path);
    ck_assert(link_ && !link_->err);
    store_init(&store);
    host = script_host_new();
    script = script_host_load(host, say, "say", error, sizeof error);
    ck_assert_msg(script >= 0, "%s", error);
}

static void teardown(void)
{
    redisFree(link_);
    redis_proc_fini(&proc);
    script_host_free(host);
    store_fini(&store);
}

int main(void)
{
    Suite *s = suite_create("store");
    TCase *tc = tcase_create("redis");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, the_store_answers_as_redis_does);
    suite_add_tcase(s, tc);
    return suite_run_with_redis(s);
}
