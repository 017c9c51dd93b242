/*
 * Counts what a run takes, and refuses. Lua's own collector stands still while a script runs, so
 * that memory and steps are the same in each run of it; cage_count_end() lets it work off as much
 * as the run has left, when there is as much garbage as there is in use.
 *
 * A refusal is an error of Lua whose value nobody sees; `is_refused` makes pcall raise it again.
 */
#include "dropin/cage_private.h"

#include <lauxlib.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/util.h"

/* The hook runs after so many instructions of Lua: after each one when texts are long, as each can
 * then cost much; else more seldom. */
enum { HOOK_INSTRUCTIONS = 64, HOOK_STEPS = 256 };
/* Bytes that Lua allocates for a text beside its characters, about. */
enum { TEXT_HEADER = 24 };

/* ---- long texts make instructions dear ---- */

static int64_t instruction_steps(const struct cage *c)
{
    return CAGE_INSTRUCTION + (int64_t)(c->longest / CAGE_LONG_TEXT);
}

static void on_instructions(lua_State *lua, lua_Debug *event)
{
    struct cage *c = cage_of(lua);
    (void)event;
    cage_charge(lua, c->hook_instructions * instruction_steps(c));
}

/* By halves: each time Lua begins to count anew, which a script could use to put the hook off. */
static void set_hook(struct cage *c)
{
    int n = HOOK_INSTRUCTIONS;
    while (n > 1 && n * instruction_steps(c) > HOOK_STEPS)
        n /= 2;
    if (n == c->hook_instructions)
        return;
    c->hook_instructions = n;
    lua_sethook(c->lua, on_instructions, LUA_MASKCOUNT, n);
}

void cage_note_text(struct cage *c, size_t len)
{
    if (c->hook_instructions == 0 || len <= c->longest)
        return;
    c->longest = len;
    set_hook(c);
}

/* ---- memory ---- */

/* Lua has one table of all texts. It doubles now and then, in whichever run that happens, and is
 * halved by the collector: Lua makes the new one, and the next thing that it does with memory is to
 * free the old one. Nothing else is freed in that order. It is neither a text nor this run's to pay
 * for. */
static void forget_table(struct cage *c, size_t freed)
{
    bool is_power = (freed & (freed - 1)) == 0;
    if (!freed || !is_power || (c->fresh != 2 * freed && 2 * c->fresh != freed))
        return;
    c->table = c->fresh;
    c->allocated -= c->fresh;
    if (c->used_max != SIZE_MAX)
        c->used_max = c->used_max + c->fresh - freed;
    c->longest = c->longest_before;
    if (c->hook_instructions)
        set_hook(c);
}

static void *allocate(void *arg, void *ptr, size_t old, size_t size)
{
    struct cage *c = arg;
    if (size == 0) {
        pool_put(ptr, old);
        if (ptr)
            forget_table(c, old);
        c->fresh = 0;
        c->used -= old;
        return NULL;
    }
    bool is_table = !ptr && size == 2 * c->table; /* so may a text be, once */
    if (size > old && !is_table && c->used + (size - old) > c->used_max) {
        if (!c->is_refused)
            snprintf(c->refusal, sizeof c->refusal, "needs more than %d KiB of memory",
                     CAGE_MEMORY / 1024);
        c->is_refused = true;
        return NULL;
    }
    c->used = c->used - old + size;
    c->allocated += size;
    c->taken += size;
    c->fresh = ptr ? 0 : size;
    c->longest_before = c->longest;
    if (!c->texts_are_noted && c->fresh > TEXT_HEADER)
        cage_note_text(c, c->fresh - TEXT_HEADER);
    void *made = pool_get(size);
    if (ptr) {
        memcpy(made, ptr, old < size ? old : size);
        pool_put(ptr, old);
    }
    return made;
}

/* ---- counting and refusing ---- */

struct cage *cage_of(lua_State *lua)
{
    void *arg;
    lua_getallocf(lua, &arg);
    return arg;
}

void cage_refuse_on(lua_State *lua)
{
    lua_pushlightuserdata(lua, NULL); /* takes no memory */
    lua_error(lua);
    abort();
}

void cage_refuse(lua_State *lua, const char *fmt, ...)
{
    struct cage *c = cage_of(lua);
    va_list args;
    va_start(args, fmt);
    if (!c->is_refused)
        vsnprintf(c->refusal, sizeof c->refusal, fmt, args);
    va_end(args);
    c->is_refused = true;
    cage_refuse_on(lua);
}

void cage_charge(lua_State *lua, int64_t steps)
{
    struct cage *c = cage_of(lua);
    c->steps_left -= steps + (int64_t)(c->allocated / CAGE_STEP_BYTES);
    c->allocated %= CAGE_STEP_BYTES;
    if (c->steps_left >= 0)
        return;
    c->steps_left = 0; /* what was asked for was not done */
    cage_refuse(lua, "takes more than %d steps", (int)c->steps_max);
}

static void count_hook(struct cage *c, size_t bytes)
{
    c->used_max = c->used + bytes;
    c->allocated = c->longest = 0;
    c->texts_are_noted = false;
    c->steps_max = c->job && c->job->steps_max > 0 ? c->job->steps_max : CAGE_STEPS;
    c->steps_left = c->steps_max;
    c->calls_left = CAGE_CALLS;
    c->pcalls = 0;
}

void cage_count(struct cage *c, size_t longest)
{
    count_hook(c, CAGE_MEMORY);
    c->longest = longest;
    c->hook_instructions = 0;
    set_hook(c);
}

void cage_count_compiling(struct cage *c)
{
    count_hook(c, CAGE_COMPILE);
    c->hook_instructions = 0;
    lua_sethook(c->lua, NULL, 0, 0);
}

void cage_count_end(struct cage *c)
{
    int kib = 16 + (int)(c->taken / 256);
    c->used_max = SIZE_MAX;
    c->taken = 0;
    if (c->used < c->collect_from)
        return;
    bool is_done = lua_gc(c->lua, LUA_GCSTEP, kib) == 1; /* all has been looked at */
    /* What is made during a cycle outlives it: one that paused would find it all in use. */
    c->collect_from = is_done ? 2 * c->used + CAGE_GARBAGE : 0;
    lua_gc(c->lua, LUA_GCSTOP, 0);
}

/* ---- the whole ---- */

struct cage *cage_new(int bodies_max)
{
    struct cage *c = util_alloc(sizeof *c);
    c->bodies_max = bodies_max;
    c->used_max = SIZE_MAX;
    c->lua = lua_newstate(allocate, c);
    if (!c->lua)
        util_die("out of memory");
    cage_functions_open(c);
    lua_gc(c->lua, LUA_GCCOLLECT, 0);
    lua_gc(c->lua, LUA_GCSTOP, 0);
    return c;
}

void cage_free(struct cage *c)
{
    if (!c)
        return;
    cage_bodies_fini(c);
    lua_close(c->lua);
    store_reply_fini(&c->reply);
    free(c);
}

const char *cage_refusal(const struct cage *c)
{
    return c->refusal;
}

long cage_steps(const struct cage *c)
{
    return (long)(c->steps_max - c->steps_left);
}

size_t cage_memory(const struct cage *c)
{
    return c->used;
}

void cage_sha1(const char *body, size_t len, char out[CAGE_SHA1 + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[SHA_DIGEST_LENGTH];
    SHA1((const unsigned char *)body, len, digest);
    for (int i = 0; i < CAGE_SHA1; i++)
        out[i] = digits[i % 2 ? digest[i / 2] & 15 : digest[i / 2] >> 4];
    out[CAGE_SHA1] = '\0';
}
