/* One run: compiled, called, its value or its error as a reply. All that can raise an error of Lua
 * happens within one protected call. */
#include "dropin/cage_private.h"

#include <lauxlib.h>
#include <stdio.h>

#include "dropin/lua_value.h"

/* Writes the error as the error handler of Redis does: level 0 is the handler, 1 the raiser. */
static int on_lua_error(lua_State *lua)
{
    lua_Debug at;
    bool is_known = lua_getstack(lua, 1, &at) && lua_getinfo(lua, "Sl", &at);
    if (is_known && *at.what == 'C')
        is_known = lua_getstack(lua, 2, &at) && lua_getinfo(lua, "Sl", &at);
    if (cage_of(lua)->is_refused)
        return 1;
    int type = lua_type(lua, 1);
    if (type == LUA_TFUNCTION)
        cage_refuse(lua, "raises a function as its error");
    if (type != LUA_TTABLE) {
        lua_newtable(lua);
        lua_pushliteral(lua, "ERR ");
        if (type == LUA_TNIL)
            lua_pushliteral(lua, "nil");
        else if (type == LUA_TBOOLEAN)
            lua_pushstring(lua, lua_toboolean(lua, 1) ? "true" : "false");
        else
            lua_pushvalue(lua, 1);
        lua_concat(lua, 2);
        lua_setfield(lua, 2, "err");
        lua_replace(lua, 1);
    }
    cage_want_own(lua, 1);
    if (is_known) {
        lua_pushstring(lua, at.source);
        lua_setfield(lua, 1, "source");
        lua_pushinteger(lua, at.currentline);
        lua_setfield(lua, 1, "line");
    }
    return 1;
}

/* Adds the error on top to the reply, worded as Redis words it for a client. */
static void add_error(lua_State *lua, const char *sha1, struct store_reply *out)
{
    int error = lua_gettop(lua);
    lua_getfield(lua, error, "err");
    lua_getfield(lua, error, "source");
    lua_getfield(lua, error, "line");
    if (!lua_isstring(lua, -3)) /* there Redis itself ends */
        cage_refuse(lua, "raises a table without err as its error");
    const char *text = lua_tostring(lua, -3), *source = lua_tostring(lua, -2);
    if (source && lua_isstring(lua, -1))
        text = lua_pushfstring(lua, "%s script: %s, on %s:%s.", text, sha1, source,
                               lua_tostring(lua, -1));
    store_add_line(out, STORE_ERROR, text);
}

struct run {
    const struct cage_job *job;
    const struct cage_body *body;
    struct store_reply *out;
};

static int run_body(lua_State *lua)
{
    const struct run *r = lua_touserdata(lua, 1);
    lua_pop(lua, 1);
    cage_set_words(lua, "KEYS", r->job->keys, r->job->n_keys);
    cage_set_words(lua, "ARGV", r->job->args, r->job->n_args);
    lua_pushcfunction(lua, on_lua_error);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, r->body->ref);
    int failed = lua_pcall(lua, 0, 1, 1);
    if (cage_of(lua)->is_refused)
        cage_refuse_on(lua);
    cage_charge(lua, 0); /* what the last instructions have allocated */
    if (failed) {
        add_error(lua, r->body->sha1, r->out);
        return 0;
    }
    const char *special = lua_value_add(lua, r->out, cage_charge);
    if (special)
        cage_refuse(lua, "gives %s", special);
    return 0;
}

int cage_run(struct cage *c, const struct cage_job *job, struct store_reply *out)
{
    c->is_refused = false;
    c->refusal[0] = '\0';
    c->job = job;
    const struct cage_body *body = cage_compile(c, job->body, job->len, job->sha1, out);
    if (body) {
        struct run r = {job, body, out};
        cage_count(c, body->longest);
        if (lua_cpcall(c->lua, run_body, &r) != 0)
            lua_settop(c->lua, 0);
    }
    cage_count_end(c);
    c->job = NULL;
    if (c->is_refused)
        store_reply_clear(out);
    return c->is_refused ? -1 : 0;
}
