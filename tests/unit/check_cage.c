/* Unit tests of cage and keys: what a script may use, that bounds and missing functions refuse it
 * whatever it does about that, that nothing is left to the next run, and what is recorded. That
 * answers are those of Redis is seen by scripts/check_cage. */
#include "dropin/cage.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "dropin/cage_private.h"
#include "dropin/keys.h"
#include "suite.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

static struct cage *cage;
static struct keys keys;
static const struct resp_arg names[] = {{"lock", 4}, {"mark", 4}}, args[] = {{"me", 2}, {"500", 3}};
static char answer[4096];

static struct resp_arg arg_of(const char *text)
{
    return (struct resp_arg){text, strlen(text)};
}

static void suppose(const char *command)
{
    struct resp_arg words[8];
    char text[256];
    int n = 0;
    snprintf(text, sizeof text, "%s", command);
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
        words[n++] = arg_of(w);
    keys_suppose(&keys, words, n, NULL);
}

static int run_bytes(const char *body, size_t len)
{
    struct store_reply reply = {0};
    struct buf out = {0};
    struct resp_writer w = {&out, 2};
    struct cage_job job = {.body = body,
                           .len = len,
                           .keys = names,
                           .n_keys = 2,
                           .args = args,
                           .n_args = 2,
                           .call = keys_call,
                           .arg = &keys};
    int result = cage_run(cage, &job, &reply);
    if (result == 0)
        store_reply_write(&reply, &w);
    else
        ck_assert_int_eq(reply.n_nodes, 0);
    buf_append(&out, "", 1);
    snprintf(answer, sizeof answer, "%s", buf_head(&out));
    buf_fini(&out);
    store_reply_fini(&reply);
    return result;
}

static int run(const char *body)
{
    return run_bytes(body, strlen(body));
}

static void assert_answer(const char *body, const char *expected)
{
    ck_assert_msg(run(body) == 0, "%s\n is refused: %s", body, cage_refusal(cage));
    ck_assert_msg(strcmp(answer, expected) == 0, "%s\n answers %s\n and not %s", body, answer,
                  expected);
}

static void assert_refused(const char *body, const char *why)
{
    ck_assert_msg(run(body) == -1, "%s\n answers %s", body, answer);
    ck_assert_msg(strstr(cage_refusal(cage), why) != NULL, "%s\n is refused: %s", body,
                  cage_refusal(cage));
}

/* Also in the middle of something, and when the script would rather not know. */
static void assert_refused_anyhow(const char *expression, const char *why)
{
    static const char *const forms[] = {
        "return %s",
        "pcall(function() return %s end) return 1",
        "local ok = pcall(pcall, function() return %s end) return ok and 1",
        "for i = 1, 3 do pcall(function() local a = %s end) end",
        "error({err = pcall(function() return %s end)})",
    };
    char body[1024];
    for (size_t i = 0; i < LEN(forms); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(body, sizeof body, forms[i], expression);
#pragma GCC diagnostic pop
        assert_refused(body, why);
    }
    assert_answer("return 1", ":1\r\n");
}

/* ---- what a script may use ---- */

START_TEST(what_redis_has_and_the_cage_not_refuses)
{
    static const char *const globals[] = {"_G",
                                          "_VERSION",
                                          "bit",
                                          "cjson",
                                          "cmsgpack",
                                          "struct",
                                          "collectgarbage",
                                          "load",
                                          "loadstring",
                                          "gcinfo",
                                          "rawget",
                                          "getmetatable",
                                          "setmetatable",
                                          "coroutine",
                                          "rawset",
                                          "rawequal",
                                          "dofile",
                                          "xpcall",
                                          "setfenv",
                                          "getfenv",
                                          "os",
                                          "print",
                                          "newproxy",
                                          "require",
                                          "module",
                                          "debug",
                                          "io",
                                          "loadfile"};
    static const char *const fields[] = {
        "string.dump",    "string.find",         "string.gfind",   "string.gmatch",
        "string.gsub",    "string.match",        "string.reverse", "table.foreach",
        "table.foreachi", "table.maxn",          "table.setn",     "table.sort",
        "math.random",    "math.randomseed",     "redis.set_repl", "redis.breakpoint",
        "redis.REPL_ALL", "redis.acl_check_cmd", "redis.debug",    "redis.REDIS_VERSION"};
    for (size_t i = 0; i < LEN(globals); i++)
        assert_refused_anyhow(globals[i], globals[i]);
    for (size_t i = 0; i < LEN(fields); i++)
        assert_refused_anyhow(fields[i], fields[i]);
    assert_refused_anyhow("('x'):rep(3)", "string.rep");
    assert_refused_anyhow("KEYS[1].len", "as an object");
    assert_refused_anyhow("tostring({})", "tostring() of a table");
    assert_refused_anyhow("tostring(pcall)", "tostring() of a function");
    assert_refused_anyhow("redis.setresp(3)", "setresp(3)");
    assert_refused_anyhow("next(redis)", "library");
    assert_refused_anyhow("table.insert(string, 1)", "library");
    assert_refused_anyhow("table.concat(math)", "library");
    assert_refused_anyhow("unpack(table)", "library");
    assert_refused("for k in pairs(redis) do end", "library");
    assert_refused("error(string)", "library");
    assert_refused("error(error)", "raises a function");
    assert_refused("error({})", "without err");
    assert_refused("return {map = {}}", "'map'");
    assert_refused("return {double = 1}", "'double'");
}
END_TEST

START_TEST(bytecode_and_flags_are_refused)
{
    assert_refused("\033Lua", "bytecode");
    assert_refused("#!lua flags=no-writes\nreturn 1", "flags");
}
END_TEST

START_TEST(nothing_can_be_left_to_the_next_run)
{
    assert_answer("pcall(function() string.rep = 1 end) pcall(function() redis.call = nil end) "
                  "pcall(function() tostring = 1 end) pcall(function() stray = 1 end) "
                  "KEYS[3] = 'x' ARGV.y = 1 return #KEYS",
                  ":3\r\n");
    assert_answer("return {#KEYS, type(string.rep), type(redis.call), ARGV.y or 0}",
                  "*4\r\n:2\r\n$8\r\nfunction\r\n$8\r\nfunction\r\n:0\r\n");
    assert_answer("return pcall(function() return stray end) and 1 or 0", ":0\r\n");
}
END_TEST

/* ---- bounds ---- */

START_TEST(a_script_that_goes_on_is_refused)
{
    static const char *const loops[] = {
        "(function() while true do end end)()",
        "(function() repeat until false end)()",
        "(function() for i = 1, 1e9 do end end)()",
        "(function() local function f() return f() end f() end)()",
        "(function() while true do pcall(error) end end)()",
        "string.rep('', 1e9)",
        "string.rep('x', 1e8)",
        "string.rep(KEYS[1], 2^53)",
        "table.concat({}, string.rep('x', 1e6))",
        "table.insert({}, -1e8, 1)",
        "(function() local t = {} for i = 1, 1e6 do table.insert(t, 1, i) end end)()",
        "(function() local t = {} for i = 1, 3000 do t[i] = i end "
        "for i = 1, 3000 do table.remove(t, 1) end end)()",
        "(function() local s = 'x' while true do s = s .. s end end)()",
        "(function() local s = string.rep('x', 4000) for i = 1, 3000 do local b = s < s .. 'y' end "
        "end)()",
        "redis.sha1hex(string.rep('x', 20000))",
    };
    for (size_t i = 0; i < LEN(loops); i++)
        assert_refused_anyhow(loops[i], "more than");
    assert_refused_anyhow("unpack({}, 1, 5000)", "values at once");
    assert_refused_anyhow("unpack({}, -2147483648, 2147483647)", "values at once");
    assert_refused_anyhow("string.byte(string.rep('x', 2000), 1, -1)", "values at once");
}
END_TEST

START_TEST(a_script_that_takes_much_memory_is_refused)
{
    char body[CAGE_BODY];
    size_t at = (size_t)snprintf(body, sizeof body, "local t = {} for i = 1, 40 do t[i] = {");
    while (at < sizeof body - 64)
        at += (size_t)snprintf(body + at, sizeof body - at, "1,");
    snprintf(body + at, sizeof body - at, "} end return #t");
    assert_refused(body, "more than");
    ck_assert_uint_lt(cage_memory(cage), 2 * 1024 * 1024);
}
END_TEST

/* An instruction can compare two texts, and what is allocated has to be cleared up. */
START_TEST(long_texts_count)
{
    assert_answer("for i = 1, 3000 do end return 1", ":1\r\n");
    assert_refused("local s = KEYS[1] for i = 1, 11 do s = s .. s end for i = 1, 2000 do end",
                   "steps");
    assert_answer("local s = KEYS[1] for i = 1, 12 do s = s .. s end return #s", ":16384\r\n");
    ck_assert_int_gt(cage_steps(cage), 2000);
}
END_TEST

/* Lua doubles its table of all texts now and then: that is no long text. (A text that is there
 * since an earlier run costs no memory, so the steps differ a little.) */
START_TEST(many_short_texts_are_no_long_one)
{
    long few = 0, last = 0;
    for (int i = 1; i <= 40; i++) {
        char body[128];
        snprintf(body, sizeof body, "for i = 1, 100 do local s = 'run %d,' .. i end return 1", i);
        assert_answer(body, ":1\r\n");
        last = cage_steps(cage);
        few = i == 1 ? last : few;
        ck_assert_msg(labs(last - few) < 600, "run %d: %ld steps, the first %ld", i, last, few);
    }
}
END_TEST

/* A reply can be far longer than the table that it is made of. */
START_TEST(replies_are_charged)
{
    char body[512] = "local t = {1} ";
    for (int i = 0; i < 30; i++)
        strcat(body, "t={t,t} ");
    strcat(body, "return t");
    assert_refused(body, "steps");
    assert_refused("local s, t = string.rep('x', 4000), {} for i = 1, 50 do t[i] = s end return t",
                   "steps");
    assert_refused("redis.call('SET', KEYS[1], string.rep('x', 4000)) "
                   "for i = 1, 60 do redis.call('MGET', KEYS[1], KEYS[1]) end",
                   "steps");
}
END_TEST

/* Lua takes time in the square of them. What Lua passes over is not counted. */
START_TEST(tokens_of_a_body_have_a_bound)
{
    static const struct {
        const char *body;
        int tokens, longest;
    } cases[] = {
        {"", 0, 0},
        {"a bc _d1\t\v\n\r x", 4, 3},
        {"a-b--c", 3, 1},
        {"--[[ a\n b ]] c", 1, 1},
        {"--[==[ ]] ]=] [[ ]==] c", 1, 1},
        {"-- [[ a\nb", 1, 1},
        {"--[= a\nb", 1, 1},
        {"--[[ a", 0, 0},
        {"[[ a b ]] c", 2, 9},
        {"[==[ ]] ]=]==] c", 2, 14},
        {"a[b[1]]", 7, 1},
        {"'a b' \"c ' d\"", 2, 7},
        {"'\\' b' c", 2, 6},
        {"'\\\\' b", 2, 4},
        {"'\\\r\n b' c", 2, 7},
        {"'\\\n\r b' c", 2, 7},
        {"'\\\n\n b' c", 1, 9}, /* no Lua from there on */
        {"a'b\n", 2, 3},
        {"'\\", 1, 2},
    };
    char body[CAGE_BODY] = "local a = 1 return ";
    size_t longest;
    for (size_t i = 0; i < LEN(cases); i++) {
        int n = cage_tokens(cases[i].body, strlen(cases[i].body), &longest);
        ck_assert_msg(n == cases[i].tokens && (int)longest == cases[i].longest, "%s: %d %zu",
                      cases[i].body, n, longest);
    }
    for (int i = 0; i < 1100; i++)
        strcat(body, "a, ");
    assert_refused(body, "has more than 2048 words and signs");
}
END_TEST

START_TEST(nothing_happens_after_a_refusal)
{
    assert_refused("pcall(function() return cjson end) redis.call('SET', KEYS[1], 'x')", "cjson");
    ck_assert(!keys_wrote(&keys));
    assert_refused("pcall(string.rep, 'x', 1e9) redis.call('SET', KEYS[1], 'x')", "steps");
    ck_assert(!keys_wrote(&keys));
}
END_TEST

START_TEST(recursion_ends)
{
    assert_refused("local function f() return 1 + f() end return f()", "more than");
    assert_refused("local function f() return pcall(f) end return f()", "deeper than");
    assert_refused("local function f() local ok, n = pcall(f) return n end return f()",
                   "deeper than");
    assert_refused("local t = {} t[1] = t return t", "too deep");
}
END_TEST

START_TEST(calls_are_counted)
{
    assert_answer("for i = 1, 64 do redis.call('GET', KEYS[1]) end return 1", ":1\r\n");
    assert_refused("for i = 1, 65 do redis.pcall('GET', KEYS[1]) end return 1",
                   "more than 64 times");
    assert_refused("return redis.call('HSET', KEYS[1], unpack({}, 1, 256))", "more than 256 words");
}
END_TEST

START_TEST(bodies_have_a_bound)
{
    char body[CAGE_BODY + 2];
    memset(body, ' ', sizeof body);
    ck_assert_int_eq(run_bytes(body, CAGE_BODY), 0);
    ck_assert_int_eq(run_bytes(body, CAGE_BODY + 1), -1);
    ck_assert_str_eq(cage_refusal(cage), "has more than 16 KiB");
}
END_TEST

/* More than are kept, again and again: memory does not grow. */
START_TEST(bodies_are_kept_within_a_bound)
{
    char body[64];
    size_t most[2] = {0, 0}; /* of the first and of the last thousands */
    for (int i = 0; i < 20000; i++) {
        char expected[32];
        snprintf(body, sizeof body, "local a = {%d} return a[1]", i % 50);
        snprintf(expected, sizeof expected, ":%d\r\n", i % 50);
        assert_answer(body, expected);
        if (most[i >= 5000] < cage_memory(cage))
            most[i >= 5000] = cage_memory(cage);
    }
    ck_assert_uint_le(most[1], most[0] + most[0] / 10);
    ck_assert_uint_lt(most[1], 1024 * 1024);
}
END_TEST

/* What compiling leaves behind is collected too, however little the runs take. */
START_TEST(large_bodies_are_collected)
{
    char body[CAGE_BODY];
    for (int i = 0; i < 400; i++) {
        size_t at =
            (size_t)snprintf(body, sizeof body, "if #KEYS then return 1 end local a = %d ", i);
        while (at < 7000)
            at += (size_t)snprintf(body + at, sizeof body - at, "function f%zu() end ", at);
        ck_assert_int_eq(run_bytes(body, at), 0);
        ck_assert_uint_lt(cage_memory(cage), 1536 * 1024);
    }
}
END_TEST

/* The collector's cycles over much garbage are long. One that waited, when it had freed enough, let
 * the next runs fill that with what it no longer looks at, and then found all of it in use. */
START_TEST(garbage_does_not_grow_with_the_runs)
{
    char body[CAGE_BODY];
    for (int i = 0; i < 8; i++) {
        size_t at = (size_t)snprintf(body, sizeof body, "local a = %d ", i);
        while (at < 7000)
            at += (size_t)snprintf(body + at, sizeof body - at, "function f%zu() end ", at);
        run_bytes(body, at);
    }
    ck_assert_uint_gt(cage_memory(cage), 400 * 1024);
    for (int i = 0; i < 20000; i++) {
        snprintf(body, sizeof body, "local t = {1, 2, 3, 4, 5, 6, 7, 8} return #t + %d", i % 10);
        ck_assert_int_eq(run_bytes(body, strlen(body)), 0);
        ck_assert_uint_lt(cage_memory(cage), 1024 * 1024);
    }
    ck_assert_uint_lt(cage_memory(cage), 256 * 1024);
}
END_TEST

/* Large ones: fewer of them are kept. */
START_TEST(kept_bodies_have_a_bound_of_bytes)
{
    struct store_reply out = {0};
    char body[CAGE_BODY];
    cage_free(cage);
    cage = cage_new(100000);
    for (int i = 0; i < 300; i++) {
        size_t at = (size_t)snprintf(body, sizeof body, "local a = %d ", i);
        while (at < 7000)
            at += (size_t)snprintf(body + at, sizeof body - at, "a = '%d%zu' ", i, at);
        ck_assert_msg(cage_check(cage, body, at, &out) == 0, "%.*s", (int)out.nodes[0].len,
                      store_text(&out, out.nodes));
        ck_assert_uint_lt(cage_memory(cage), 3 * CAGE_KEPT);
    }
    ck_assert_uint_gt(cage_memory(cage), CAGE_KEPT / 2);
    ck_assert_int_eq(out.n_nodes, 0);
    store_reply_fini(&out);
}
END_TEST

static void assert_check(const char *body, const char *expected)
{
    struct store_reply out = {0};
    int result = cage_check(cage, body, strlen(body), &out);
    ck_assert_int_eq(result, *expected ? -1 : 0);
    ck_assert_int_eq(out.n_nodes, *expected != '\0');
    if (*expected) {
        ck_assert_int_eq(out.nodes[0].kind, STORE_ERROR);
        ck_assert_uint_eq(out.nodes[0].len, strlen(expected));
        ck_assert_mem_eq(store_text(&out, &out.nodes[0]), expected, strlen(expected));
    }
    store_reply_fini(&out);
}

START_TEST(a_body_is_checked_without_a_run)
{
    assert_check("while true do redis.call('SET', KEYS[1], 'x') end", "");
    ck_assert(!keys_wrote(&keys));
    assert_check("return (", "ERR Error compiling script (new function): user_script:1: unexpected "
                             "symbol near '<eof>'");
    assert_check("#!lua\n", "ERR the script begins with flags (#!lua)");
    assert_check("return 1", "");
}
END_TEST

/* What refuses a script does not depend on what ran before it. */
START_TEST(a_script_takes_the_same_steps_each_time)
{
    static const char body[] =
        "local t = {} for i = 1, 20 do t[i] = i .. 'x' end return table.concat(t)";
    long steps = 0;
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(run(body), 0);
        if (i > 1)
            ck_assert_int_le(labs(cage_steps(cage) - steps), 200);
        steps = cage_steps(cage);
        assert_refused("while true do end", "steps");
    }
}
END_TEST

/* ---- keys ---- */

START_TEST(other_keys_and_commands_refuse)
{
    assert_refused_anyhow("redis.call('GET', 'other')",
                          "calls GET on 'other', which is not among its KEYS");
    assert_refused_anyhow("redis.pcall('DEL', KEYS[1], 'other')", "calls DEL on 'other'");
    assert_refused_anyhow("redis.call('lpush', KEYS[1], 1)",
                          "calls lpush, which is not served: lists are");
    assert_refused_anyhow("redis.pcall('ZADD', KEYS[1], 1, 2)", "LIMIT");
    assert_refused_anyhow("redis.call('FLUSHALL')", "calls FLUSHALL");
    assert_refused_anyhow("redis.call('KEYS', '*')", "not served: LOCKS lists the locks");
    assert_refused_anyhow("redis.call('SADD', KEYS[1], 'x')", "LIMIT");
    assert_refused_anyhow("redis.call('SELECT', 1)", "stays in its database");
    assert_refused_anyhow("cjson.encode({})", "fields of a hash");
    assert_refused_anyhow("redis.call('nonsense\\r\\n')", "calls nonsense??, which");
}
END_TEST

static void assert_seen(const char *body, const char *expected)
{
    char seen[16] = "";
    keys_begin(&keys, names, 2, 1000000);
    suppose("SET lock me PX 5000");
    ck_assert_msg(run(body) == 0, "%s: %s", body, cage_refusal(cage));
    for (int i = 0; i < 2; i++) {
        const struct keys_seen *k = &keys.seen[i];
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s%s%s%s%s", i ? " " : "",
                 k->is_read ? "r" : "", k->read_time ? "t" : "", k->wrote_value ? "W" : "",
                 k->wrote_time ? "T" : "");
    }
    ck_assert_msg(strcmp(seen, expected) == 0, "%s: %s", body, seen);
    ck_assert_int_eq(keys_wrote(&keys), strpbrk(expected, "WT") != NULL);
}

START_TEST(reads_and_writes_are_recorded)
{
    assert_seen("return 1", " ");
    assert_seen("return redis.call('GET', KEYS[1])", "r ");
    assert_seen("return redis.call('PTTL', KEYS[1])", "rt ");
    assert_seen("return redis.call('SET', KEYS[1], 'me')", "rWT ");
    assert_seen("return redis.call('SET', KEYS[1], 'x', 'NX')", "r ");
    assert_seen("return redis.call('SET', KEYS[2], 'x', 'NX', 'PX', 10)", " rWT");
    assert_seen("return redis.call('PEXPIRE', KEYS[1], 5000)", "rT "); /* what it was */
    assert_seen("return redis.call('PEXPIRE', KEYS[1], 1, 'GT')", "rt ");
    assert_seen("return redis.call('PEXPIRE', KEYS[1], -1)", "rWT ");
    assert_seen("return redis.call('PEXPIRE', KEYS[2], 5000)", " r");
    assert_seen("return redis.call('PERSIST', KEYS[1])", "rT ");
    assert_seen("return redis.call('DEL', KEYS[1], KEYS[2])", "rWT r");
    assert_seen("return redis.call('GETDEL', KEYS[1])", "rWT ");
    assert_seen("return redis.call('GETEX', KEYS[1])", "r ");
    assert_seen("return redis.call('GETEX', KEYS[1], 'PERSIST')", "rT ");
    assert_seen("return redis.pcall('INCR', KEYS[1])", "r ");
    assert_seen("return redis.call('INCR', KEYS[2])", " rW");
    assert_seen("return redis.call('HINCRBY', KEYS[2], ARGV[1], 1)", " rW");
    assert_seen("return redis.call('HSET', KEYS[2], 'f', 1)", " rW");
    assert_seen("return redis.call('HDEL', KEYS[2], 'f')", " r");
    assert_seen("redis.call('HSET', KEYS[2], 'f', 1) return redis.call('HDEL', KEYS[2], 'f')",
                " rWT");
}
END_TEST

/* Redis 7.0, with which the store is compared, does not have them. */
START_TEST(conditions_on_the_value)
{
    static const char wrong_type[] =
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    assert_seen("return redis.call('SET', KEYS[1], 'x', 'IFEQ', 'me', 'PX', 100)", "rWT ");
    ck_assert_str_eq(answer, "+OK\r\n");
    assert_seen("return redis.call('SET', KEYS[1], 'x', 'PX', 100, 'ifeq', 'x')", "r ");
    ck_assert_str_eq(answer, "$-1\r\n");
    assert_seen("return redis.call('SET', KEYS[1], 'x', 'IFEQ', 'm', 'GET')", "r ");
    ck_assert_str_eq(answer, "$2\r\nme\r\n");
    assert_seen("return redis.call('SET', KEYS[2], 'x', 'IFEQ', '')", " r");
    ck_assert_str_eq(answer, "$-1\r\n");
    assert_seen("return redis.call('SET', KEYS[1], 'x', 'IFNE', 'me')", "r ");
    assert_seen("return redis.call('SET', KEYS[1], 'x', 'IFNE', 'm')", "rWT ");
    assert_seen("return redis.call('SET', KEYS[2], 'x', 'IFNE', 'm')", " rWT");
    assert_seen("return redis.call('DELEX', KEYS[1], 'IFEQ', 'm')", "r ");
    ck_assert_str_eq(answer, ":0\r\n");
    assert_seen("return redis.call('DELEX', KEYS[1], 'IFEQ', 'me')", "rWT ");
    ck_assert_str_eq(answer, ":1\r\n");
    assert_seen("return redis.call('DELEX', KEYS[1], 'ifne', 'm')", "rWT ");
    assert_seen("return redis.call('DELEX', KEYS[2], 'IFNE', 'm')", " r");
    assert_seen("return redis.call('DELEX', KEYS[1])", "rWT ");
    assert_seen("return redis.call('DELIFEQ', KEYS[1], 'm')", "r ");
    assert_seen("return redis.call('DELIFEQ', KEYS[1], 'me')", "rWT ");
    assert_seen("return redis.pcall('DELEX', KEYS[1], 'IF', 'me')", "r ");
    ck_assert_str_eq(answer, "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE\r\n");
    assert_seen("return redis.pcall('DELEX', KEYS[1], 'IFEQ')", "r ");
    ck_assert_str_eq(answer, "-ERR wrong number of arguments for 'delex' command\r\n");
    assert_seen("return redis.pcall('SET', KEYS[1], 'x', 'NX', 'IFEQ', 'me')", "r ");
    assert_seen("return redis.pcall('SET', KEYS[1], 'x', 'IFEQ', 'me', 'XX')", "r ");
    assert_seen("return redis.pcall('SET', KEYS[1], 'x', 'IFEQ')", "r ");
    ck_assert_str_eq(answer, "-ERR syntax error\r\n");
    keys_begin(&keys, names, 2, 1000000);
    suppose("HSET lock f v");
    assert_answer("return redis.pcall('SET', KEYS[1], 'x', 'IFEQ', 'v')", wrong_type);
    assert_answer("return redis.pcall('DELEX', KEYS[1], 'IFEQ', 'v')", wrong_type);
    assert_answer("return redis.pcall('DELIFEQ', KEYS[1], 'v')", wrong_type);
    assert_answer("return redis.pcall('DELEX', KEYS[1])", ":1\r\n");
}
END_TEST

static void assert_end(const char *body, int expected)
{
    char why[200] = "";
    keys_begin(&keys, names, 2, 1000000);
    ck_assert_msg(run(body) == 0, "%s", body);
    ck_assert_msg(keys_end(&keys, why, sizeof why) == expected, "%s: %s", body, why);
    ck_assert_int_eq(strstr(why, "counts in 'mark'") != NULL, expected < 0);
}

/* A counter that is to stay would end with the time that locks without one are given. */
START_TEST(counters_without_a_time_are_told)
{
    assert_end("return redis.call('INCR', KEYS[2])", -1);
    assert_end(
        "redis.call('SET', KEYS[1], 'me', 'PX', 500) return redis.call('DECRBY', KEYS[2], 2)", -1);
    assert_end("redis.call('INCR', KEYS[2]) redis.call('PEXPIRE', KEYS[2], 500) "
               "redis.call('PERSIST', KEYS[2])",
               -1);
    assert_end("redis.call('INCR', KEYS[2]) return redis.call('PEXPIRE', KEYS[2], 500)", 0);
    assert_end("redis.call('INCRBY', KEYS[2], 1) redis.call('DEL', KEYS[2])", 0);
    assert_end("redis.call('HSET', KEYS[2], 'f', 1) redis.pcall('INCR', KEYS[2])", 0);
    assert_end("redis.call('SET', KEYS[2], '7')", 0);
    assert_end("redis.call('INCR', KEYS[2]) redis.call('SET', KEYS[2], 'me')", 0);
}
END_TEST

static void assert_written(const char *command, int proto, const char *expected)
{
    struct buf out = {0};
    struct resp_writer w = {&out, proto};
    struct store_reply reply = {0};
    struct resp_arg words[] = {arg_of(command), names[0]};
    keys_suppose(&keys, words, 2, &reply);
    store_reply_write(&reply, &w);
    buf_append(&out, "", 1);
    ck_assert_str_eq(buf_head(&out), expected);
    buf_fini(&out);
    store_reply_fini(&reply);
}

START_TEST(replies_are_written_in_both_protocols)
{
    assert_written("GET", 2, "$-1\r\n");
    assert_written("GET", 3, "_\r\n");
    assert_written("HGETALL", 3, "%0\r\n");
    suppose("HSET lock f 1");
    assert_written("HGETALL", 2, "*2\r\n$1\r\nf\r\n$1\r\n1\r\n");
    assert_written("HGETALL", 3, "%1\r\n$1\r\nf\r\n$1\r\n1\r\n");
    assert_written("HKEYS", 3, "*1\r\n$1\r\nf\r\n");
    assert_answer("return redis.call('HGETALL', KEYS[1])", "*2\r\n$1\r\nf\r\n$1\r\n1\r\n");
}
END_TEST

START_TEST(publish_and_time_are_recorded)
{
    keys_begin(&keys, names, 2, 1234567890);
    assert_answer("return redis.call('TIME')", "*2\r\n$4\r\n1234\r\n$6\r\n567890\r\n");
    ck_assert(keys.read_clock && !keys_wrote(&keys));
    assert_answer("return redis.call('PUBLISH', 'ch', ARGV[1])", ":0\r\n");
    ck_assert(keys_wrote(&keys));
    ck_assert_int_eq(keys.published.n_nodes, 2);
    ck_assert_mem_eq(store_text(&keys.published, &keys.published.nodes[1]), "me", 2);
}
END_TEST

static void setup(void)
{
    cage = cage_new(4);
    keys_begin(&keys, names, 2, 1000000);
}

static void teardown(void)
{
    cage_free(cage);
    keys_fini(&keys);
    memset(&keys, 0, sizeof keys);
}

int main(void)
{
    Suite *s = suite_create("cage");
    TCase *tc = tcase_create("cage");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_redis_has_and_the_cage_not_refuses);
    tcase_add_test(tc, bytecode_and_flags_are_refused);
    tcase_add_test(tc, nothing_can_be_left_to_the_next_run);
    tcase_add_test(tc, a_script_that_goes_on_is_refused);
    tcase_add_test(tc, a_script_that_takes_much_memory_is_refused);
    tcase_add_test(tc, long_texts_count);
    tcase_add_test(tc, many_short_texts_are_no_long_one);
    tcase_add_test(tc, replies_are_charged);
    tcase_add_test(tc, tokens_of_a_body_have_a_bound);
    tcase_add_test(tc, nothing_happens_after_a_refusal);
    tcase_add_test(tc, recursion_ends);
    tcase_add_test(tc, calls_are_counted);
    tcase_add_test(tc, bodies_have_a_bound);
    tcase_add_test(tc, bodies_are_kept_within_a_bound);
    tcase_add_test(tc, large_bodies_are_collected);
    tcase_add_test(tc, garbage_does_not_grow_with_the_runs);
    tcase_add_test(tc, kept_bodies_have_a_bound_of_bytes);
    tcase_add_test(tc, a_body_is_checked_without_a_run);
    tcase_add_test(tc, a_script_takes_the_same_steps_each_time);
    tcase_add_test(tc, other_keys_and_commands_refuse);
    tcase_add_test(tc, reads_and_writes_are_recorded);
    tcase_add_test(tc, conditions_on_the_value);
    tcase_add_test(tc, counters_without_a_time_are_told);
    tcase_add_test(tc, replies_are_written_in_both_protocols);
    tcase_add_test(tc, publish_and_time_are_recorded);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
