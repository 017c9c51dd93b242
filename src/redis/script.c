/*
 * The table of scripts. The texts come from src/redis/lua through embed.awk; the digest of each
 * comes from the master that loads it, because the text differs from run to run.
 */
#include "redis/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "redis/script_lua.h"

const struct script_row script_rows[] = {
    [SCRIPT_ACQUIRE] = {"acquire", script_lua_acquire, 5, 2, 3, true, true},
    [SCRIPT_COMMIT] = {"commit", script_lua_commit, 3, 4, 2, true, false},
    [SCRIPT_TAKEOVER] = {"takeover", script_lua_takeover, 3, 7, 8, true, false},
    [SCRIPT_RENEW] = {"renew", script_lua_renew, 3, 2, 1, true, true},
    [SCRIPT_PLANT] = {"plant", script_lua_plant, 3, 9, 1, true, false},
    [SCRIPT_RELEASE] = {"release", script_lua_release, 3, 1, 2, false, true},
    [SCRIPT_LINE] = {"line", script_lua_line, 3, 1, 1, false, false},
    [SCRIPT_PASS] = {"pass", script_lua_pass, 3, 2, 1, false, false},
    [SCRIPT_PEEK] = {"peek", script_lua_peek, 3, 1, 0, false, false},
    [SCRIPT_JOIN] = {"join", script_lua_join, 0, 0, 0, false, false},
    [SCRIPT_ACTIVATE] = {"activate", script_lua_activate, 0, 0, 0, false, false},
    [SCRIPT_SUSPEND] = {"suspend", script_lua_suspend, 0, 0, 0, false, false},
};
_Static_assert(sizeof script_rows / sizeof script_rows[0] == SCRIPT_COUNT, "a row for each script");

/* A copy of the text with each `mark` replaced. */
static char *fill_in(const char *text, const char *mark, const char *by)
{
    size_t mark_len = strlen(mark), by_len = strlen(by), n = 0;
    const char *at = text;

    while ((at = strstr(at, mark)) != NULL) {
        at += mark_len;
        n++;
    }
    char *out = util_alloc(strlen(text) + n * by_len + 1), *end = out;
    while ((at = strstr(text, mark)) != NULL) {
        memcpy(end, text, (size_t)(at - text));
        end += at - text;
        memcpy(end, by, by_len);
        end += by_len;
        text = at + mark_len;
    }
    strcpy(end, text);
    return out;
}

char *script_text(enum script script, const char *run_id, const char *settings)
{
    char *with_run = fill_in(script_get(script)->text, "@RUN_ID@", run_id);
    char *text = fill_in(with_run, "@SETTINGS@", settings);

    free(with_run);
    return text;
}
