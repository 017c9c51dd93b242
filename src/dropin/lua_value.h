#pragma once
/* lua_value: turns replies of Redis into values of Lua and back, as Redis 7.0 does for scripts that
 * speak RESP2.
 *
 * A nil is false, a status {ok=text}, an error {err=text}. On the way back numbers are cut towards
 * zero, true is 1, false and nil are a nil, what is neither text, number nor table is a nil, and an
 * array ends at its first nil; a table with a text `err` is an error, with a text `ok` a status. */

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dropin/store.h"

/* How deep tables may stand in each other in a reply. */
enum { LUA_VALUE_DEPTH = 32 };

/* Pushes node i of the reply; returns the node behind all that belongs to it. May raise an error of
 * Lua: memory. */
int lua_value_push(lua_State *, const struct store_reply *, int i);

/* Pushes {field=text}. */
void lua_value_push_field(lua_State *, const char *field, const char *text, size_t len);
/* Pushes {err=text}. The text may begin with a '-', which is left out; its first word is its code,
 * and what has no blank gets ERR. Line ends around what follows the code are cut off. */
void lua_value_push_error(lua_State *, const char *text);

/* Adds the value on top to the reply and pops it. Returns NULL, or what in it no reply can tell:
 * then the reply is of no use. May raise an error of Lua: memory. `charge` is told the steps for
 * each value that is added, since a table that holds another one twice makes a reply far longer
 * than itself; it may raise an error. NULL: nobody counts. */
const char *lua_value_add(lua_State *, struct store_reply *,
                          void (*charge)(lua_State *, int64_t steps));
