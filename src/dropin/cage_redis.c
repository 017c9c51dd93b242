/* The table `redis`: calls of Redis, and the few functions that scripts use beside them. Errors are
 * worded as Redis 7.0 does. */
#include "dropin/cage_private.h"

#include <lauxlib.h>
#include <stdio.h>

#include "dropin/lua_value.h"

#define MUCH 1e9 /* more than any number that is taken */

enum { CALL_STEPS = 20, WORD_STEPS = 4, BYTES_PER_STEP = 16 };

static int raise(lua_State *lua, const char *text)
{
    lua_value_push_error(lua, text);
    return lua_error(lua);
}

/* ---- calls ---- */

/* Takes an argument as a word, a number as Redis does: by %.17g. False: no text and no number. */
static bool take_lua_word(lua_State *lua, int i, struct resp_arg *word, char number[32])
{
    if (lua_type(lua, i) == LUA_TNUMBER) {
        word->ptr = number;
        word->len = (size_t)snprintf(number, 32, "%.17g", lua_tonumber(lua, i));
    } else {
        word->ptr = lua_tolstring(lua, i, &word->len);
    }
    return word->ptr != NULL;
}

/* Takes the arguments as words; NULL, or the error. */
static const char *take_lua_words(lua_State *lua, struct resp_arg *words, char (*numbers)[32],
                                  int n)
{
    int64_t steps = CALL_STEPS;
    if (n == 0)
        return "ERR Please specify at least one argument for this redis lib call";
    for (int i = 0; i < n; i++) {
        if (!take_lua_word(lua, i + 1, &words[i], numbers[i]))
            return "ERR Lua redis lib command arguments must be strings or integers";
        steps += WORD_STEPS + (int64_t)(words[i].len / BYTES_PER_STEP);
    }
    cage_charge(lua, steps);
    return NULL;
}

/* Pushes the reply as values of Lua, and notes that their texts are no longer than its own. */
static void push_reply(lua_State *lua, struct cage *c)
{
    size_t longest = 0;
    for (int i = 0; i < c->reply.n_nodes; i++) {
        if (c->reply.nodes[i].len > longest)
            longest = c->reply.nodes[i].len;
    }
    cage_charge(lua, c->reply.n_nodes + (int64_t)(buf_len(&c->reply.texts) / BYTES_PER_STEP));
    cage_note_text(c, longest);
    c->texts_are_noted = true;
    lua_value_push(lua, &c->reply, 0);
    c->texts_are_noted = false;
}

static void run_command(lua_State *lua, struct cage *c, const struct resp_arg *words, int n)
{
    char why[sizeof c->refusal];
    store_reply_clear(&c->reply);
    if (c->calls_left-- == 0)
        cage_refuse(lua, "calls Redis more than %d times", CAGE_CALLS);
    if (c->job->call(c->job->arg, words, n, &c->reply, why, sizeof why) < 0)
        cage_refuse(lua, "%s", why);
    push_reply(lua, c);
}

/* Pushes the reply; true: it is an error. */
static bool call(lua_State *lua)
{
    struct cage *c = cage_of(lua);
    struct resp_arg words[CAGE_WORDS];
    char numbers[CAGE_WORDS][32];
    int n = lua_gettop(lua);
    if (n > CAGE_WORDS)
        cage_refuse(lua, "calls Redis with more than %d words", CAGE_WORDS);
    const char *error = take_lua_words(lua, words, numbers, n);
    if (error) {
        lua_value_push_error(lua, error);
        return true;
    }
    run_command(lua, c, words, n);
    return c->reply.nodes[0].kind == STORE_ERROR;
}

static int redis_call(lua_State *lua)
{
    return call(lua) ? lua_error(lua) : 1;
}

static int redis_pcall(lua_State *lua)
{
    call(lua);
    return 1;
}

/* ---- replies ---- */

static bool is_one_text(lua_State *lua)
{
    bool is_it = lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING;
    if (!is_it)
        lua_value_push_error(lua, "ERR wrong number or type of arguments");
    else
        cage_charge(lua, 1 + (int64_t)(lua_objlen(lua, 1) / BYTES_PER_STEP));
    return is_it;
}

static int redis_error_reply(lua_State *lua)
{
    if (is_one_text(lua))
        lua_value_push_error(lua, lua_tostring(lua, 1));
    return 1;
}

static int redis_status_reply(lua_State *lua)
{
    size_t len;
    if (is_one_text(lua)) {
        const char *text = lua_tolstring(lua, 1, &len);
        lua_value_push_field(lua, "ok", text, len);
    }
    return 1;
}

/* ---- the rest ---- */

static int redis_sha1hex(lua_State *lua)
{
    char sha1[CAGE_SHA1 + 1];
    size_t len = 0;
    if (lua_gettop(lua) != 1)
        return raise(lua, "ERR wrong number of arguments");
    const char *text = lua_tolstring(lua, 1, &len);
    cage_charge(lua, 16 + (int64_t)len);
    cage_sha1(text ? text : "", len, sha1);
    lua_pushlstring(lua, sha1, CAGE_SHA1);
    return 1;
}

static int redis_log(lua_State *lua)
{
    if (lua_gettop(lua) < 2)
        return raise(lua, "ERR redis.log() requires two arguments or more.");
    if (!lua_isnumber(lua, 1))
        return raise(lua, "ERR First argument must be a number (log level).");
    double level = lua_tonumber(lua, 1);
    if (!(level > -1 && level < 4))
        return raise(lua, "ERR Invalid debug level.");
    return 0;
}

static int redis_replicate_commands(lua_State *lua)
{
    lua_pushboolean(lua, 1);
    return 1;
}

static int redis_setresp(lua_State *lua)
{
    if (lua_gettop(lua) != 1)
        return raise(lua, "ERR redis.setresp() requires one argument.");
    double version = lua_tonumber(lua, 1);
    version = version > -MUCH && version < MUCH ? (int)version : 0;
    if (version == 3)
        cage_refuse(lua, "uses redis.setresp(3)");
    if (version != 2)
        return raise(lua, "ERR RESP version must be 2 or 3.");
    return 0;
}

void cage_redis_open(lua_State *lua)
{
    static const struct luaL_Reg functions[] = {
        {"call", redis_call},
        {"pcall", redis_pcall},
        {"error_reply", redis_error_reply},
        {"status_reply", redis_status_reply},
        {"sha1hex", redis_sha1hex},
        {"log", redis_log},
        {"replicate_commands", redis_replicate_commands},
        {"setresp", redis_setresp},
    };
    static const char *const levels[] = {"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"};
    lua_newtable(lua);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        lua_pushcfunction(lua, functions[i].func);
        lua_setfield(lua, -2, functions[i].name);
    }
    for (int i = 0; i < 4; i++) {
        lua_pushinteger(lua, i);
        lua_setfield(lua, -2, levels[i]);
    }
}
