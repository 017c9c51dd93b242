/*
 * What functions of Lua are charged: those whose work grows with bytes or elements are billed for
 * it first, as no hook sees what C does.
 */
#include "dropin/cage_private.h"

#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <string.h>

/* An argument that makes a function work for longer is cut here: any charge of it refuses. */
#define MUCH 1e9

enum { VALUES_MAX = 256, BYTES_PER_STEP = 8, NEXT_STEPS = 8, NUMBER_STEPS = 16 };

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

/* Refuses more values than VALUES_MAX, else charges a step for each: every call copies them. */
void cage_charge_values(lua_State *lua, double n)
{
    if (n > VALUES_MAX)
        cage_refuse(lua, "takes more than %d values at once", VALUES_MAX);
    cage_charge(lua, n > 0 ? 1 + (int64_t)n : 1);
}

/* Charges next() for the empty slots that it walks over. */
static void charge_next(lua_State *lua)
{
    cage_want_table(lua, 1);
    cage_charge(lua, NEXT_STEPS);
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
    cage_charge_values(lua, fmin(last, (double)len) - fmax(first, 1) + 1);
}

static void charge_repeat(lua_State *lua)
{
    size_t len;
    luaL_checklstring(lua, 1, &len);
    luaL_checknumber(lua, 2);
    double n = fmax(number_or(lua, 2, 0), 0);
    cage_charge(lua, 1 + (int64_t)(n + n * (double)len / BYTES_PER_STEP));
}

/* Asks for the length of texts only: lua_objlen() of a number would turn it into a text of 14
 * digits. */
static void charge_format(lua_State *lua)
{
    int64_t steps = 1;
    for (int i = lua_gettop(lua); i > 0; i--) {
        size_t len = lua_type(lua, i) == LUA_TSTRING ? lua_objlen(lua, i) : 0;
        steps += NUMBER_STEPS + (int64_t)(len / BYTES_PER_STEP);
    }
    cage_charge(lua, steps);
}

/* Charges for the elements behind the place, each of which moves by one. */
static void charge_move(lua_State *lua, double n, int place)
{
    double at = luaL_checknumber(lua, place);
    if (!(at >= -MUCH && at <= MUCH))
        cage_refuse(lua, "uses a place far outside of a table");
    cage_charge(lua, 1 + (int64_t)fmax(n - at, 0));
}

static void charge_insert(lua_State *lua)
{
    cage_want_table(lua, 1);
    if (lua_gettop(lua) == 3)
        charge_move(lua, (double)lua_objlen(lua, 1) + 1, 2);
}

static void charge_remove(lua_State *lua)
{
    cage_want_table(lua, 1);
    if (!lua_isnoneornil(lua, 2))
        charge_move(lua, (double)lua_objlen(lua, 1), 2);
}

/* Charges for the elements up to the first that is no text, where Lua stops as well. */
static void charge_concat(lua_State *lua)
{
    size_t separator;
    luaL_optlstring(lua, 2, "", &separator);
    cage_want_table(lua, 1);
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
    cage_want_table(lua, 1);
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

/* Charges, then runs Lua's own function in this frame, so that its errors name it as Lua would. */
static int charged_call(lua_State *lua)
{
    lua_Integer row = lua_tointeger(lua, lua_upvalueindex(1));
    rows[row].charge(lua);
    return cage_of(lua)->originals[row](lua);
}

void cage_charges_open(struct cage *c, const char *library)
{
    lua_State *lua = c->lua;
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
