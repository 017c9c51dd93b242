/*
 * One interpreter for all stores. Scripts are kept in Lua's registry. Which store and which reply
 * belong to the run at hand stands in the host, which redis.call finds as its upvalue.
 *
 * Invariant: between two runs the stack is empty.
 */
#include "script_host.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "dropin/lua_value.h"
#include "dropin/store_private.h"

enum { ARGS_MAX = 1024 };

struct script_host {
    lua_State *lua;
    struct store *store;      /* of this run */
    struct store_reply reply; /* of the command at hand */
};

/* ---- what scripts call ---- */

static struct script_host *host_of(lua_State *lua)
{
    return lua_touserdata(lua, lua_upvalueindex(1));
}

/* A number is told as Redis does it: as %.17g writes it. */
static bool take_argument(lua_State *lua, int i, struct resp_arg *arg, char number[32])
{
    if (lua_type(lua, i) == LUA_TNUMBER) {
        arg->ptr = number;
        arg->len = (size_t)snprintf(number, 32, "%.17g", lua_tonumber(lua, i));
    } else {
        arg->ptr = lua_tolstring(lua, i, &arg->len);
    }
    return arg->ptr != NULL;
}

static int run_command(lua_State *lua, bool raises)
{
    struct script_host *h = host_of(lua);
    struct resp_arg argv[ARGS_MAX];
    static char numbers[ARGS_MAX][32];
    int argc = lua_gettop(lua), taken = 0;
    store_reply_clear(&h->reply);
    if (argc > ARGS_MAX)
        return luaL_error(lua, "more than %d words in a command", ARGS_MAX);
    while (taken < argc && take_argument(lua, taken + 1, &argv[taken], numbers[taken]))
        taken++;
    if (argc == 0)
        store_add_error(&h->reply,
                        "ERR Please specify at least one argument for this redis.call()");
    else if (taken < argc)
        store_add_error(&h->reply,
                        "ERR Lua redis lib command arguments must be strings or integers");
    else
        store_call(h->store, argv, argc, &h->reply);
    lua_value_push(lua, &h->reply, 0);
    return raises && h->reply.nodes[0].kind == STORE_ERROR ? lua_error(lua) : 1;
}

static int redis_call(lua_State *lua)
{
    return run_command(lua, true);
}

static int redis_pcall(lua_State *lua)
{
    return run_command(lua, false);
}

static int error_reply(lua_State *lua)
{
    lua_value_push_error(lua, luaL_checkstring(lua, 1));
    return 1;
}

static int status_reply(lua_State *lua)
{
    size_t len;
    const char *text = luaL_checklstring(lua, 1, &len);
    lua_value_push_field(lua, "ok", text, len);
    return 1;
}

static void give(struct script_host *h, const char *name, lua_CFunction fn)
{
    lua_pushlightuserdata(h->lua, h);
    lua_pushcclosure(h->lua, fn, 1);
    lua_setfield(h->lua, -2, name);
}

static void open_library(lua_State *lua, const char *name, lua_CFunction open)
{
    lua_pushcfunction(lua, open);
    lua_pushstring(lua, name);
    lua_call(lua, 1, 0);
}

struct script_host *script_host_new(void)
{
    struct script_host *h = util_alloc(sizeof *h);
    store_learn(store_list_commands);
    store_learn(store_zset_commands);
    h->lua = luaL_newstate();
    if (!h->lua)
        util_die("out of memory");
    open_library(h->lua, "", luaopen_base);
    open_library(h->lua, LUA_TABLIBNAME, luaopen_table);
    open_library(h->lua, LUA_STRLIBNAME, luaopen_string);
    open_library(h->lua, LUA_MATHLIBNAME, luaopen_math);
    lua_createtable(h->lua, 0, 4);
    give(h, "call", redis_call);
    give(h, "pcall", redis_pcall);
    give(h, "error_reply", error_reply);
    give(h, "status_reply", status_reply);
    lua_setglobal(h->lua, "redis");
    return h;
}

void script_host_free(struct script_host *h)
{
    if (!h)
        return;
    lua_close(h->lua);
    store_reply_fini(&h->reply);
    free(h);
}

/* ---- scripts ---- */

int script_host_load(struct script_host *h, const char *text, const char *name, char *error,
                     size_t size)
{
    char chunk[64];
    snprintf(chunk, sizeof chunk, "@%s", name);
    if (luaL_loadbuffer(h->lua, text, strlen(text), chunk) != 0) {
        snprintf(error, size, "%s", lua_tostring(h->lua, -1));
        lua_pop(h->lua, 1);
        return -1;
    }
    return luaL_ref(h->lua, LUA_REGISTRYINDEX);
}

void script_host_unload(struct script_host *h, int script)
{
    luaL_unref(h->lua, LUA_REGISTRYINDEX, script);
}

void script_host_set(struct script_host *h, const char *name, const char *text)
{
    lua_pushstring(h->lua, text);
    lua_setglobal(h->lua, name);
}

static void set_words(lua_State *lua, const char *name, const struct resp_arg *words, int n)
{
    lua_createtable(lua, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushlstring(lua, words[i].ptr, words[i].len);
        lua_rawseti(lua, -2, i + 1);
    }
    lua_setglobal(lua, name);
}

/* What a script raised: a table with `err`, or a text of Lua's own. */
static void add_raised(lua_State *lua, struct store_reply *out)
{
    if (lua_istable(lua, -1)) {
        lua_getfield(lua, -1, "err");
        lua_remove(lua, -2);
        store_add_line(out, STORE_ERROR, lua_isstring(lua, -1) ? lua_tostring(lua, -1) : "");
        lua_pop(lua, 1);
        return;
    }
    const char *text = lua_tostring(lua, -1);
    char error[512];
    snprintf(error, sizeof error, "ERR %s",
             text ? text : "the script raised something that is no text");
    store_add_error(out, error);
    lua_pop(lua, 1);
}

void script_host_run(struct script_host *h, int script, struct store *store,
                     const struct resp_arg *keys, int n_keys, const struct resp_arg *args,
                     int n_args, struct store_reply *out)
{
    h->store = store;
    set_words(h->lua, "KEYS", keys, n_keys);
    set_words(h->lua, "ARGV", args, n_args);
    lua_rawgeti(h->lua, LUA_REGISTRYINDEX, script);
    if (lua_pcall(h->lua, 0, 1, 0) != 0)
        add_raised(h->lua, out);
    else
        (void)lua_value_add(h->lua, out, NULL);
    h->store = NULL;
}
