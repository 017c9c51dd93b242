/*
 * What Lua itself offers to scripts: most functions are Lua's own, some are charged for their work
 * (cage_charges.c), and a few are ours since Lua's do too much.
 */
#include "dropin/cage_private.h"

#include <lauxlib.h>
#include <lualib.h>

static int ipairs_next(lua_State *lua)
{
    int i = luaL_checkint(lua, 2) + 1;
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_pushinteger(lua, i);
    lua_rawgeti(lua, 1, i);
    return lua_isnil(lua, -1) ? 0 : 2;
}

static int ipairs(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_pushcfunction(lua, ipairs_next);
    lua_pushvalue(lua, 1);
    lua_pushinteger(lua, 0);
    return 3;
}

static int pairs(lua_State *lua)
{
    cage_want_table(lua, 1);
    lua_pushvalue(lua, lua_upvalueindex(1)); /* next */
    lua_pushvalue(lua, 1);
    lua_pushnil(lua);
    return 3;
}

/* Replaces Lua's own unpack(), whose int counter overflows and then writes out of bounds. */
static int unpack(lua_State *lua)
{
    cage_want_table(lua, 1);
    int64_t first = luaL_optint(lua, 2, 1);
    int64_t last = lua_isnoneornil(lua, 3) ? (int64_t)lua_objlen(lua, 1) : luaL_checkint(lua, 3);
    if (first > last)
        return 0;
    cage_charge_values(lua, (double)(last - first + 1));
    luaL_checkstack(lua, (int)(last - first + 1), "too many results to unpack");
    for (int64_t i = first; i <= last; i++)
        lua_rawgeti(lua, 1, (int)i);
    return (int)(last - first + 1);
}

/* Calls like pcall() of Redis: gives the text of {err=text} in place of the table; raises a refusal
 * again. */
static int protected_call(lua_State *lua)
{
    struct cage *c = cage_of(lua);
    if (lua_gettop(lua) == 0)
        cage_refuse(lua, "uses pcall() of nothing");
    if (c->pcalls == CAGE_PCALLS)
        cage_refuse(lua, "uses pcall() deeper than %d times in itself", CAGE_PCALLS);
    lua_pushboolean(lua, 1);
    lua_insert(lua, 1);
    c->pcalls++;
    int failed = lua_pcall(lua, lua_gettop(lua) - 2, LUA_MULTRET, 0);
    c->pcalls--;
    if (c->is_refused)
        cage_refuse_on(lua);
    if (failed) {

        if (lua_istable(lua, -1)) {
            lua_getfield(lua, -1, "err");
            if (lua_isstring(lua, -1))
                lua_replace(lua, -2);
            else
                lua_pop(lua, 1);
        }
        lua_pushboolean(lua, 0);
        lua_replace(lua, 1);
    }
    return lua_gettop(lua);
}

static int on_method(lua_State *lua)
{
    const char *name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "?";
    cage_refuse(lua, "uses a text as an object: say string.%s(text, ...)", name);
}

/* ---- putting it together ---- */

static void open_library(lua_State *lua, const char *name, lua_CFunction open)
{
    lua_pushcfunction(lua, open);
    lua_pushstring(lua, name);
    lua_call(lua, 1, 0);
}

/* Takes a function over from the table of Lua's own that lies below the one on top. */
static void wrap_functions(lua_State *lua, const char *name)
{
    lua_getfield(lua, -2, name);
    lua_setfield(lua, -2, name);
}

/* Sets a library in the table on top: charged functions, and those that need not be. */
static void set_library(struct cage *c, const char *name, const char *const *others)
{
    lua_State *lua = c->lua;
    lua_getglobal(lua, name);
    lua_newtable(lua);
    cage_charges_open(c, name);
    for (; *others; others++)
        wrap_functions(lua, *others);
    cage_protect(lua, name);
    lua_setfield(lua, -3, name);
    lua_pop(lua, 1);
}

static void set_math(lua_State *lua)
{
    lua_getglobal(lua, LUA_MATHLIBNAME);
    lua_pushnil(lua);
    lua_setfield(lua, -2, "random");
    lua_pushnil(lua);
    lua_setfield(lua, -2, "randomseed");
    cage_protect(lua, LUA_MATHLIBNAME);
    lua_setfield(lua, -2, LUA_MATHLIBNAME);
}

void cage_functions_open(struct cage *c)
{
    static const char *const base[] = {"assert", "error", "select", "type", NULL};
    static const char *const string[] = {"char", "len", NULL};
    static const char *const none[] = {NULL};
    lua_State *lua = c->lua;
    open_library(lua, "", luaopen_base);
    open_library(lua, LUA_TABLIBNAME, luaopen_table);
    open_library(lua, LUA_STRLIBNAME, luaopen_string);
    open_library(lua, LUA_MATHLIBNAME, luaopen_math);
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    lua_newtable(lua);
    cage_charges_open(c, "");
    for (const char *const *name = base; *name; name++)
        wrap_functions(lua, *name);
    lua_pushcfunction(lua, ipairs);
    lua_setfield(lua, -2, "ipairs");
    lua_getfield(lua, -1, "next");
    lua_pushcclosure(lua, pairs, 1);
    lua_setfield(lua, -2, "pairs");
    lua_pushcfunction(lua, protected_call);
    lua_setfield(lua, -2, "pcall");
    lua_pushcfunction(lua, unpack);
    lua_setfield(lua, -2, "unpack");
    set_library(c, LUA_STRLIBNAME, string);
    set_library(c, LUA_TABLIBNAME, none);
    set_math(lua);
    cage_redis_open(lua);
    cage_protect(lua, "redis");
    lua_setfield(lua, -2, "redis");
    cage_set_meta(lua, "__index", cage_on_missing_global);
    lua_pushvalue(lua, -1);
    c->globals = luaL_ref(lua, LUA_REGISTRYINDEX);
    cage_set_words(lua, "KEYS", NULL, 0); /* so that no run makes their place */
    cage_set_words(lua, "ARGV", NULL, 0);
    cage_hide(lua);
    lua_replace(lua, LUA_GLOBALSINDEX);
    lua_pop(lua, 1);
    lua_pushliteral(lua, "");
    cage_set_meta(lua, "__index", on_method);
    lua_pop(lua, 1);
}

void cage_set_words(lua_State *lua, const char *name, const struct resp_arg *words, int n)
{
    struct cage *c = cage_of(lua);
    c->texts_are_noted = true;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, c->globals);
    lua_createtable(lua, n, 0);
    for (int i = 0; i < n; i++) {
        cage_note_text(c, words[i].len);
        lua_pushlstring(lua, words[i].ptr, words[i].len);
        lua_rawseti(lua, -2, i + 1);
    }
    lua_setfield(lua, -2, name);
    lua_pop(lua, 1);
    c->texts_are_noted = false;
}
