#pragma once
/*
 * script_host: runs Lua scripts as a Redis server does, in an embedded Lua 5.1 (the interpreter
 * that Redis embeds) over a store: redis.call, redis.pcall, redis.error_reply, redis.status_reply,
 * and the conversions between values of Lua and replies of Redis, as of Redis 7.0 and RESP2.
 *
 * It trusts its scripts: there is no bound on steps or memory.
 */
#include <stddef.h>

#include "dropin/store.h"

struct script_host;

struct script_host *script_host_new(void);
void script_host_free(struct script_host *); /* also NULL */

/* Compiles a script; a number that stands for it until script_host_unload(), or -1: it is no Lua,
 * and `error` (of `size` bytes) says why. `name` is for messages. */
int script_host_load(struct script_host *, const char *text, const char *name, char *error,
                     size_t size);
void script_host_unload(struct script_host *, int script);

/* A global text that all scripts see. */
void script_host_set(struct script_host *, const char *name, const char *text);

/* Runs it over the store, whose time stands still meanwhile. Adds one reply, which is an error
 * when the script failed; what it wrote before that stays, as in Redis. */
void script_host_run(struct script_host *, int script, struct store *, const struct resp_arg *keys,
                     int n_keys, const struct resp_arg *args, int n_args, struct store_reply *);
