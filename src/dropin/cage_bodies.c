/* Bodies that have been compiled, by the SHA-1 of their bytes. The one that was not used for
 * longest goes first. */
#include "dropin/cage_private.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static void drop_body(struct cage *c, struct cage_body *b)
{
    HASH_DEL(c->bodies, b); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    luaL_unref(c->lua, LUA_REGISTRYINDEX, b->ref);
    c->bodies_bytes -= b->bytes;
    free(b);
}

void cage_bodies_fini(struct cage *c)
{
    while (c->bodies)
        drop_body(c, c->bodies); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
}

struct source {
    const char *body;
    size_t len;
    int ref;
    size_t longest; /* token */
};

/* Compiles the body within lua_cpcall(), as it may run out of memory. */
static int compile(lua_State *lua)
{
    struct source *s = lua_touserdata(lua, 1);
    if (luaL_loadbuffer(lua, s->body, s->len, "@user_script") != 0)
        return lua_error(lua);
    s->ref = luaL_ref(lua, LUA_REGISTRYINDEX);
    return 0;
}

static void add_compile_error(lua_State *lua, struct store_reply *out)
{
    char text[512];
    snprintf(text, sizeof text, "ERR Error compiling script (new function): %s",
             lua_tostring(lua, -1));
    store_add_line(out, STORE_ERROR, text);
}

static int refuse_body(struct cage *c, const char *why)
{
    snprintf(c->refusal, sizeof c->refusal, "%s", why);
    c->is_refused = true;
    return -1;
}

static int compile_counted(struct cage *c, struct source *s, struct store_reply *out)
{
    cage_count_compiling(c);
    int failed = lua_cpcall(c->lua, compile, s);
    if (failed && c->is_refused)
        refuse_body(c, "is too large when it is compiled");
    else if (failed)
        add_compile_error(c->lua, out);
    lua_settop(c->lua, 0);
    return failed ? -1 : 0;
}

static bool is_served(struct cage *c, struct source *s)
{
    const char *body = s->body;
    size_t len = s->len;
    char why[64];
    if (len > CAGE_BODY)
        return refuse_body(c, "has more than 16 KiB") == 0;
    if (len > 0 && body[0] == LUA_SIGNATURE[0])
        return refuse_body(c, "is bytecode") == 0;
    if (len > 1 && body[0] == '#' && body[1] == '!')
        return refuse_body(c, "begins with flags (#!lua)") == 0;
    snprintf(why, sizeof why, "has more than %d words and signs", CAGE_TOKENS);
    if (cage_tokens(body, len, &s->longest) > CAGE_TOKENS)
        return refuse_body(c, why) == 0;
    return true;
}

static bool is_full(const struct cage *c, size_t more)
{
    int n = (int)HASH_COUNT(c->bodies); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    return n >= c->bodies_max || c->bodies_bytes + more > CAGE_KEPT;
}

/* Keeps a compiled body; drops the least recently used ones to make room. */
static struct cage_body *keep_body(struct cage *c, const char *sha1, const struct source *s,
                                   size_t bytes)
{
    while (c->bodies && is_full(c, bytes))
        drop_body(c, c->bodies);
    struct cage_body *b = util_alloc(sizeof *b);
    memcpy(b->sha1, sha1, CAGE_SHA1 + 1);
    b->ref = s->ref;
    b->bytes = bytes;
    b->longest = s->longest;
    c->bodies_bytes += bytes;
    return b;
}

const struct cage_body *cage_compile(struct cage *c, const char *body, size_t len, const char *sha1,
                                     struct store_reply *out)
{
    char computed[CAGE_SHA1 + 1];
    struct cage_body *b;
    if (!sha1) {
        cage_sha1(body, len, computed);
        sha1 = computed;
    }
    unsigned hash = cage_sha1_hash(sha1);
    HASH_FIND_BYHASHVALUE(hh, c->bodies, sha1, CAGE_SHA1, hash, b);
    if (b && !b->hh.next) /* used last */
        return b;
    if (b) {
        HASH_DEL(c->bodies, b);
    } else {
        struct source s = {body, len, -1, 0};
        size_t used = c->used;
        if (!is_served(c, &s) || compile_counted(c, &s, out) < 0)
            return NULL;
        b = keep_body(c, sha1, &s, c->used - used);
    }
    HASH_ADD_BYHASHVALUE(hh, c->bodies, sha1, CAGE_SHA1, hash, b);
    return b;
}

int cage_check(struct cage *c, const char *body, size_t len, struct store_reply *out)
{
    char text[sizeof c->refusal + 32];
    c->is_refused = false;
    bool is_compiled = cage_compile(c, body, len, NULL, out) != NULL;
    cage_count_end(c);
    if (c->is_refused) {
        snprintf(text, sizeof text, "ERR the script %s", c->refusal);
        store_add_line(out, STORE_ERROR, text);
    }
    return is_compiled ? 0 : -1;
}
