/*
 * Tables that nobody writes, and what becomes of names that there are not. The globals of scripts
 * are an empty table whose metatable reads from the real one and lets nothing be written; libraries
 * are made the same way. So a table that has a metatable is never a script's.
 */
#include "dropin/cage_private.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

void cage_want_own(lua_State *lua, int i)
{
    if (lua_type(lua, i) == LUA_TTABLE && lua_getmetatable(lua, i))
        cage_refuse(lua, "takes a library of Lua as a table of its own");
}

void cage_want_table(lua_State *lua, int i)
{
    luaL_checktype(lua, i, LUA_TTABLE);
    cage_want_own(lua, i);
}

static int on_table_write(lua_State *lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table");
}

static bool is_known_field(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* What serves instead of what Redis has and the cage has not. */
static const struct {
    const char *name, *hint;
} missing_hints[] = {
    {"cjson", ": fields of a hash (HSET, HGET) keep several values"},
    {"cmsgpack", ": fields of a hash (HSET, HGET) keep several values"},
    {"os", ": redis.call('TIME') tells the time"},
    {"string.find", ": patterns are not served; compare whole texts, or string.sub"},
    {"string.match", ": patterns are not served; compare whole texts, or string.sub"},
    {"string.gmatch", ": patterns are not served; compare whole texts, or string.sub"},
    {"string.gsub", ": patterns are not served; compare whole texts, or string.sub"},
    {"math.random", ": the caller makes up what is random and gives it as an argument"},
};

static void refuse_missing(lua_State *lua, const char *name)
{
    const char *hint = "";
    for (size_t i = 0; i < sizeof missing_hints / sizeof missing_hints[0]; i++) {
        if (strcmp(missing_hints[i].name, name) == 0)
            hint = missing_hints[i].hint;
    }
    cage_refuse(lua, "uses %s, which is not served%s", name, hint);
}

/* Globals that some Redis has, and the cage has not. */
static const char *const missing_globals[] = {
    "_G",
    "_VERSION",
    "__redis__err__handler",
    "bit",
    "cjson",
    "cmsgpack",
    "struct",
    "collectgarbage",
    "coroutine",
    "debug",
    "dofile",
    "gcinfo",
    "getfenv",
    "getmetatable",
    "io",
    "load",
    "loadfile",
    "loadstring",
    "module",
    "newproxy",
    "os",
    "package",
    "print",
    "rawequal",
    "rawget",
    "rawset",
    "require",
    "server",
    "setfenv",
    "setmetatable",
    "xpcall",
    NULL,
};

int cage_on_missing_global(lua_State *lua)
{
    const char *name = lua_tostring(lua, 2);
    if (name && is_known_field(missing_globals, name))
        refuse_missing(lua, name);
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                      name ? name : "?");
}

/* The same of libraries. */
static const char *const missing_fields[] = {
    "string.dump",
    "string.find",
    "string.gfind",
    "string.gmatch",
    "string.gsub",
    "string.match",
    "string.reverse",
    "table.foreach",
    "table.foreachi",
    "table.maxn",
    "table.setn",
    "table.sort",
    "math.random",
    "math.randomseed",
    "redis.REDIS_VERSION",
    "redis.REDIS_VERSION_NUM",
    "redis.REPL_ALL",
    "redis.REPL_AOF",
    "redis.REPL_NONE",
    "redis.REPL_REPLICA",
    "redis.REPL_SLAVE",
    "redis.acl_check_cmd",
    "redis.breakpoint",
    "redis.debug",
    "redis.set_repl",
    "redis.register_function",
    NULL,
};

static int on_missing_field(lua_State *lua)
{
    char name[64];
    const char *field = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "";
    snprintf(name, sizeof name, "%s.%s", lua_tostring(lua, lua_upvalueindex(1)), field);
    if (is_known_field(missing_fields, name))
        refuse_missing(lua, name);
    return 0;
}

void cage_set_meta(lua_State *lua, const char *event, lua_CFunction fn)
{
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, fn);
    lua_setfield(lua, -2, event);
    lua_setmetatable(lua, -2);
}

void cage_hide(lua_State *lua)
{
    lua_newtable(lua);
    lua_createtable(lua, 0, 2);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, on_table_write);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, -2);
    lua_remove(lua, -2);
}

void cage_protect(lua_State *lua, const char *library)
{
    lua_createtable(lua, 0, 1);
    lua_pushstring(lua, library);
    lua_pushcclosure(lua, on_missing_field, 1);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -2);
    cage_hide(lua);
}
