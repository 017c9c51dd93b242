/*
 * The table of scripts. embed.awk brings the texts from src/redis/lua. Their digests come from the
 * master that loads them, because the texts differ from run to run.
 */
#include "redis/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "redis/script_lua.h"

enum {
    HEAD = 3,         /* deadline, call, broker */
    ITEMS = 64,       /* a call keeps the server from others for so long */
    ITEMS_LIGHT = 100 /* of scripts that do little for each item */
};

const struct script_row script_rows[] = {
    /* name, text, items_max, head, args, width, code_min, code_max */
    [SCRIPT_ACQUIRE] = {"acquire", script_lua_acquire, ITEMS, HEAD + 2, 2, 3, ACQUIRE_ALL_NEEDED,
                        ACQUIRE_OTHER_PERMIT, .deadline = true, .gives_token = true, .floors = true,
                        .brief = true},
    [SCRIPT_EXCHANGE] = {"exchange", script_lua_exchange, ITEMS, HEAD + 2, 3, 3,
                         EXCHANGE_ALL_NEEDED, EXCHANGE_DONE, .deadline = true, .gives_token = true,
                         .floors = true, .texts = true, .brief = true},
    [SCRIPT_COMMIT] = {"commit", script_lua_commit, ITEMS, HEAD, 4, 2, COMMIT_MISSING,
                       COMMIT_LARGER, .deadline = true, .gives_token = true},
    [SCRIPT_TAKEOVER] = {"takeover", script_lua_takeover, ITEMS, HEAD, 7, 8, TAKEOVER_GONE,
                         TAKEOVER_TAKEN, .deadline = true, .gives_token = true},
    [SCRIPT_RENEW] = {"renew", script_lua_renew, ITEMS_LIGHT, HEAD, 2, 1, RENEW_MOVED, RENEW_HELD,
                      .deadline = true, .brief = true},
    [SCRIPT_PLANT] = {"plant", script_lua_plant, ITEMS, HEAD, 9, 1, PLANT_REFUSED, PLANT_THERE,
                      .deadline = true},
    [SCRIPT_RELEASE] = {"release", script_lua_release, ITEMS_LIGHT, HEAD, 1, 2, RELEASE_OTHER,
                        RELEASE_ENDED, .any_counts = true, .brief = true},
    [SCRIPT_LINE] = {"line", script_lua_line, ITEMS, HEAD, 1, 1, .code_max = INT32_MAX},
    [SCRIPT_PASS] = {"pass", script_lua_pass, ITEMS, HEAD, 2, 1, .code_min = PASS_HELD,
                     .code_max = PASS_FREE},
    [SCRIPT_PEEK] = {"peek", script_lua_peek, ITEMS, HEAD, 1, .any_counts = true},
    [SCRIPT_JOIN] = {.name = "join", .text = script_lua_join},
    [SCRIPT_ACTIVATE] = {.name = "activate", .text = script_lua_activate},
    [SCRIPT_SUSPEND] = {.name = "suspend", .text = script_lua_suspend},
};
_Static_assert(sizeof script_rows / sizeof script_rows[0] == SCRIPT_COUNT, "a row for each script");

/* Returns a copy of the text with each `mark` replaced. */
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
