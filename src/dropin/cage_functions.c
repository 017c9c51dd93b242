/*
 * What Lua itself offers to scripts. Most functions are Lua's own; those whose work grows with
 * bytes or elements are charged for it first, as no hook sees what C does.
 *
 * The globals of scripts are an empty table whose metatable reads from the real one and lets
 * nothing be written; libraries are made the same way. So a table that has a metatable is never a
 * script's.
 */
#include "dropin/cage_private.h"

#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An argument that makes a function work for longer is cut here: any charge of it refuses. */
#define MUCH 1e9

enum { VALUES_MAX = 1024, BYTES_PER_STEP = 8 };

/* ---- tables that nobody writes ---- */

void cage_want_own(lua_State *lua, int i)
{
    if (lua_type(lua, i) == LUA_TTABLE && lua_getmetatable(lua, i))
        cage_refuse(lua, "takes a library of Lua as a table of its own");
}

static void want_table(lua_State *lua, int i)
{
    luaL_checktype(lua, i, LUA_TTABLE);
    cage_want_own(lua, i);
}

static int on_write(lua_State *lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table");
}

static bool is_listed(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
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

static int on_missing_global(lua_State *lua)
{
    const char *name = lua_tostring(lua, 2);
    if (name && is_listed(missing_globals, name))
        cage_refuse(lua, "uses %s", name);
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
    if (is_listed(missing_fields, name))
        cage_refuse(lua, "uses %s", name);
    return 0;
}

/* The table on top gets a metatable that has this function and nothing else. */
static void set_meta(lua_State *lua, const char *event, lua_CFunction fn)
{
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, fn);
    lua_setfield(lua, -2, event);
    lua_setmetatable(lua, -2);
}

/* Puts an empty table in place of the one on top: reads go to that one, writes are errors. */
static void hide(lua_State *lua)
{
    lua_newtable(lua);
    lua_createtable(lua, 0, 2);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, on_write);
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
    hide(lua);
}

/* ---- what functions are charged ---- */

static void charge_text(lua_State *lua)
{
    size_t len;
    luaL_checklstring(lua, 1, &len);
    cage_charge(lua, 1 + (int64_t)(len / BYTES_PER_STEP));
}

static void charge_number(lua_State *lua)
{
    if (lua_type(lua, 1) == LUA_TSTRING)
        charge_text(lua);
}

static void charge_to_text(lua_State *lua)
{
    int type = lua_type(lua, 1);
    if (type == LUA_TTABLE || type == LUA_TFUNCTION)
        cage_refuse(lua, "uses tostring() of a %s", lua_typename(lua, type));
}

static double number_or(lua_State *lua, int i, double otherwise)
{
    double n = luaL_optnumber(lua, i, otherwise);
    return n >= -MUCH && n <= MUCH ? n : (n > 0 ? MUCH : -MUCH);
}

/* As many values as come back: each is copied with every call that they are given to. */
static void charge_values(lua_State *lua, double n)
{
    if (n > VALUES_MAX)
        cage_refuse(lua, "takes more than %d values at once", VALUES_MAX);
    cage_charge(lua, n > 0 ? 1 + (int64_t)n : 1);
}

static void charge_next(lua_State *lua)
{
    want_table(lua, 1);
}

static double from_start(double position, size_t len)
{
    double from = position < 0 ? position + (double)len + 1 : position;
    return from < 0 ? 0 : from;
}

static void charge_byte(lua_State *lua)
{
    size_t len;
    luaL_checklstring(lua, 1, &len);
    double first = from_start(number_or(lua, 2, 1), len);
    double last = from_start(number_or(lua, 3, first), len);
    charge_values(lua, fmin(last, (double)len) - fmax(first, 1) + 1);
}

static void charge_repeat(lua_State *lua)
{
    size_t len;
    luaL_checklstring(lua, 1, &len);
    luaL_checknumber(lua, 2);
    double n = fmax(number_or(lua, 2, 0), 0);
    cage_charge(lua, 1 + (int64_t)(n + n * (double)len / BYTES_PER_STEP));
}

/* lua_objlen() of a number would make it a text, of 14 digits. */
static void charge_format(lua_State *lua)
{
    int64_t steps = 1;
    for (int i = lua_gettop(lua); i > 0; i--) {
        size_t len = lua_type(lua, i) == LUA_TSTRING ? lua_objlen(lua, i) : 0;
        steps += 16 + (int64_t)(len / BYTES_PER_STEP);
    }
    cage_charge(lua, steps);
}

/* Elements behind the place move by one. */
static void charge_move(lua_State *lua, double n, int place)
{
    double at = luaL_checknumber(lua, place);
    if (!(at >= -MUCH && at <= MUCH))
        cage_refuse(lua, "uses a place far outside of a table");
    cage_charge(lua, 1 + (int64_t)fmax(n - at, 0));
}

static void charge_insert(lua_State *lua)
{
    want_table(lua, 1);
    if (lua_gettop(lua) == 3)
        charge_move(lua, (double)lua_objlen(lua, 1) + 1, 2);
}

static void charge_remove(lua_State *lua)
{
    want_table(lua, 1);
    if (!lua_isnoneornil(lua, 2))
        charge_move(lua, (double)lua_objlen(lua, 1), 2);
}

/* Lua stops at the first element that is no text, and so does the bill. */
static void charge_concat(lua_State *lua)
{
    size_t separator;
    luaL_optlstring(lua, 2, "", &separator);
    want_table(lua, 1);
    int first = (int)number_or(lua, 3, 1);
    int last = (int)number_or(lua, 4, (double)lua_objlen(lua, 1));
    for (int i = first; i <= last; i++) {
        lua_rawgeti(lua, 1, i);
        bool is_text = lua_isstring(lua, -1);
        size_t len = lua_type(lua, -1) == LUA_TSTRING ? lua_objlen(lua, -1) : 0;
        lua_pop(lua, 1);
        cage_charge(lua, 4 + (int64_t)((len + separator) / BYTES_PER_STEP));
        if (!is_text)
            return;
    }
}

static void charge_table(lua_State *lua)
{
    want_table(lua, 1);
}

struct charged {
    const char *library, *name; /* library "": a global */
    void (*charge)(lua_State *);
};
static const struct charged rows[] = {
    {"", "next", charge_next},
    {"", "tonumber", charge_number},
    {"", "tostring", charge_to_text},
    {LUA_STRLIBNAME, "byte", charge_byte},
    {LUA_STRLIBNAME, "format", charge_format},
    {LUA_STRLIBNAME, "lower", charge_text},
    {LUA_STRLIBNAME, "rep", charge_repeat},
    {LUA_STRLIBNAME, "sub", charge_text},
    {LUA_STRLIBNAME, "upper", charge_text},
    {LUA_TABLIBNAME, "concat", charge_concat},
    {LUA_TABLIBNAME, "getn", charge_table},
    {LUA_TABLIBNAME, "insert", charge_insert},
    {LUA_TABLIBNAME, "remove", charge_remove},
};
enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert((int)ROWS <= (int)CAGE_FUNCTIONS, "room for all");

/* In the frame of Lua's own function, so that its errors name it as ever. */
static int charged_call(lua_State *lua)
{
    lua_Integer row = lua_tointeger(lua, lua_upvalueindex(1));
    rows[row].charge(lua);
    return cage_of(lua)->originals[row](lua);
}

/* ---- functions of our own ---- */

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
    want_table(lua, 1);
    lua_pushvalue(lua, lua_upvalueindex(1)); /* next */
    lua_pushvalue(lua, 1);
    lua_pushnil(lua);
    return 3;
}

/* Lua's own counts in int, and writes where it should not when that overflows. */
static int unpack(lua_State *lua)
{
    want_table(lua, 1);
    int64_t first = luaL_optint(lua, 2, 1);
    int64_t last = lua_isnoneornil(lua, 3) ? (int64_t)lua_objlen(lua, 1) : luaL_checkint(lua, 3);
    if (first > last)
        return 0;
    charge_values(lua, (double)(last - first + 1));
    luaL_checkstack(lua, (int)(last - first + 1), "too many results to unpack");
    for (int64_t i = first; i <= last; i++)
        lua_rawgeti(lua, 1, (int)i);
    return (int)(last - first + 1);
}

/* As Redis: the text of {err=text} instead of the table. A refusal goes on. */
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
static void take_over(lua_State *lua, const char *name)
{
    lua_getfield(lua, -2, name);
    lua_setfield(lua, -2, name);
}

/* Pushes a table with those functions of a library that are charged. */
static void push_charged(struct cage *c, const char *library)
{
    lua_State *lua = c->lua;
    lua_newtable(lua);
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].library, library) != 0)
            continue;
        lua_getfield(lua, -2, rows[i].name);
        c->originals[i] = lua_tocfunction(lua, -1);
        lua_pop(lua, 1);
        lua_pushinteger(lua, i);
        lua_pushcclosure(lua, charged_call, 1);
        lua_setfield(lua, -2, rows[i].name);
    }
}

/* Sets a library in the table on top: charged functions, and those that need not be. */
static void set_library(struct cage *c, const char *name, const char *const *others)
{
    lua_State *lua = c->lua;
    lua_getglobal(lua, name);
    push_charged(c, name);
    for (; *others; others++)
        take_over(lua, *others);
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
    push_charged(c, "");
    for (const char *const *name = base; *name; name++)
        take_over(lua, *name);
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
    set_meta(lua, "__index", on_missing_global);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, LUA_REGISTRYINDEX, "globals"); /* for cage_set_words() */
    cage_set_words(lua, "KEYS", NULL, 0);            /* so that no run makes their place */
    cage_set_words(lua, "ARGV", NULL, 0);
    hide(lua);
    lua_replace(lua, LUA_GLOBALSINDEX);
    lua_pop(lua, 1);
    lua_pushliteral(lua, "");
    set_meta(lua, "__index", on_method);
    lua_pop(lua, 1);
}

void cage_set_words(lua_State *lua, const char *name, const struct resp_arg *words, int n)
{
    lua_getfield(lua, LUA_REGISTRYINDEX, "globals");
    lua_createtable(lua, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushlstring(lua, words[i].ptr, words[i].len);
        lua_rawseti(lua, -2, i + 1);
    }
    lua_setfield(lua, -2, name);
    lua_pop(lua, 1);
}
