/* Both directions walk the tree by recursion: a reply is as deep as a script's table may be. */
#include "dropin/lua_value.h"

#include <lauxlib.h>
#include <stdint.h>
#include <string.h>

enum { TABLE_STEPS = 8, BYTES_PER_STEP = 16 };

/* ---- from a reply to a value ---- */

static int push_array(lua_State *lua, const struct store_reply *r, int i)
{
    int64_t n = r->nodes[i++].n;
    luaL_checkstack(lua, 4, "nested too deep");
    lua_createtable(lua, (int)n, 0);
    for (int j = 1; j <= n; j++) {
        i = lua_value_push(lua, r, i);
        lua_rawseti(lua, -2, j);
    }
    return i;
}

void lua_value_push_field(lua_State *lua, const char *field, const char *text, size_t len)
{
    lua_newtable(lua);
    lua_pushstring(lua, field);
    lua_pushlstring(lua, text, len);
    lua_rawset(lua, -3);
}

static bool is_lua_line_end(char c)
{
    return c == '\r' || c == '\n';
}

void lua_value_push_error(lua_State *lua, const char *text)
{
    if (*text == '-')
        text++;
    const char *blank = strchr(text, ' '), *code = blank ? text : "ERR";
    size_t code_len = blank ? (size_t)(blank - code) : 3;
    if (blank)
        text = blank + 1;
    while (is_lua_line_end(*text))
        text++;
    size_t len = strlen(text);
    while (len && is_lua_line_end(text[len - 1]))
        len--;
    lua_newtable(lua);
    lua_pushliteral(lua, "err");
    lua_pushlstring(lua, code, code_len);
    lua_pushliteral(lua, " ");
    lua_pushlstring(lua, text, len);
    lua_concat(lua, 3);
    lua_rawset(lua, -3);
}

int lua_value_push(lua_State *lua, const struct store_reply *r, int i)
{
    const struct store_node *node = &r->nodes[i];
    switch ((enum store_kind)node->kind) {
    case STORE_NIL:
        lua_pushboolean(lua, 0);
        break;
    case STORE_STATUS:
        lua_value_push_field(lua, "ok", store_text(r, node), node->len);
        break;
    case STORE_ERROR: /* as Redis marks an error that a command has counted already */
        lua_value_push_field(lua, "err", store_text(r, node), node->len);
        lua_pushliteral(lua, "ignore_error_stats_update");
        lua_pushboolean(lua, 1);
        lua_rawset(lua, -3);
        break;
    case STORE_INT:
        lua_pushnumber(lua, (lua_Number)node->n);
        break;
    case STORE_BULK:
        lua_pushlstring(lua, store_text(r, node), node->len);
        break;
    case STORE_ARRAY:
    case STORE_MAP:
        return push_array(lua, r, i);
    }
    return i + 1;
}

/* ---- from a value to a reply ---- */

/* Adds the field `name` of the table on top; false: it has none that is a text. */
static bool add_field(lua_State *lua, const char *name, enum store_kind kind,
                      struct store_reply *out)
{
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    bool is_text = lua_type(lua, -1) == LUA_TSTRING;
    if (is_text)
        store_add_line(out, kind, lua_tostring(lua, -1));
    lua_pop(lua, 1);
    return is_text;
}

/* Tables by which scripts make replies that RESP2 does not have. */
static const char *special_kind(lua_State *lua)
{
    static const struct {
        const char *field;
        int type;
        const char *text;
    } kinds[] = {
        {"double", LUA_TNUMBER, "a table with the field 'double' as its reply"},
        {"map", LUA_TTABLE, "a table with the field 'map' as its reply"},
        {"set", LUA_TTABLE, "a table with the field 'set' as its reply"},
        {"big_number", LUA_TSTRING, "a table with the field 'big_number' as its reply"},
        {"verbatim_string", LUA_TTABLE, "a table with the field 'verbatim_string' as its reply"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        lua_pushstring(lua, kinds[i].field);
        lua_rawget(lua, -2);
        bool is_it = lua_type(lua, -1) == kinds[i].type;
        lua_pop(lua, 1);
        if (is_it)
            return kinds[i].text;
    }
    return NULL;
}

/* Cuts a number towards zero; what is no 64-bit integer becomes the least one, as on x86-64. */
static int64_t towards_zero(double d)
{
    return d >= -0x1p63 && d < 0x1p63 ? (int64_t)d : INT64_MIN;
}

struct adding {
    struct store_reply *out;
    void (*charge)(lua_State *, int64_t steps);
};

static const char *add_lua_value(lua_State *lua, const struct adding *a, int depth);

static const char *add_table(lua_State *lua, const struct adding *a, int depth)
{
    struct store_reply *out = a->out;
    const char *special = NULL;
    if (add_field(lua, "err", STORE_ERROR, out) || add_field(lua, "ok", STORE_STATUS, out))
        return NULL;
    if (depth == LUA_VALUE_DEPTH)
        special = "tables too deep in each other as its reply";
    else
        special = special_kind(lua);
    if (special)
        return special;
    luaL_checkstack(lua, 4, "nested too deep");
    int at = out->n_nodes;
    store_add_array(out, 0);
    for (int i = 1;; i++) { /* up to the first nil */
        lua_rawgeti(lua, -1, i);
        if (lua_isnil(lua, -1)) {
            lua_pop(lua, 1);
            out->nodes[at].n = i - 1;
            return NULL;
        }
        special = add_lua_value(lua, a, depth + 1);
        if (special)
            return special;
    }
}

static const char *add_lua_value(lua_State *lua, const struct adding *a, int depth)
{
    struct store_reply *out = a->out;
    size_t len = lua_type(lua, -1) == LUA_TSTRING ? lua_objlen(lua, -1) : 0;
    const char *text, *special = NULL;
    if (a->charge)
        a->charge(lua, (lua_istable(lua, -1) ? TABLE_STEPS : 1) + (int64_t)(len / BYTES_PER_STEP));
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text = lua_tolstring(lua, -1, &len);
        store_add_text(out, STORE_BULK, text, len);
        break;
    case LUA_TNUMBER:
        store_add_int(out, towards_zero(lua_tonumber(lua, -1)));
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(lua, -1))
            store_add_int(out, 1);
        else
            store_add_nil(out);
        break;
    case LUA_TTABLE:
        special = add_table(lua, a, depth);
        break;
    default:
        store_add_nil(out);
        break;
    }
    lua_pop(lua, 1);
    return special;
}

const char *lua_value_add(lua_State *lua, struct store_reply *out,
                          void (*charge)(lua_State *, int64_t steps))
{
    struct adding a = {out, charge};
    return add_lua_value(lua, &a, 0);
}
