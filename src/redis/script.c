/*
 * The table of scripts. embed.awk brings the texts from src/redis/lua. Their digests come from the
 * master that loads them, because the texts differ from run to run.
 */
#include "redis/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "redis/script_lua.h"

enum {
    HEAD = 3,         /* deadline, call, broker */
    ITEMS = 64,       /* a call keeps the server from others for so long */
    ITEMS_LIGHT = 100 /* of scripts that do little for each item */
};

const struct script_row script_rows[SCRIPT_COUNT] = {
#define SCRIPT(id, file, ...)                                                                      \
    [SCRIPT_##id] = {.name = #file,                                                                \
                     .text = script_lua_##file,                                                    \
                     .mirror_text = script_lua_##file##_mirror,                                    \
                     __VA_ARGS__},
#include "redis/script_rows.h"
};

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

char *script_text(enum script script, const char *run_id, const char *settings, int mirror_db)
{
    const struct script_row *row = script_get(script);
    bool mirrors = mirror_db != SCRIPT_NO_MIRROR;
    char db[16];
    snprintf(db, sizeof db, "%d", mirror_db);
    char *with_run = fill_in(mirrors ? row->mirror_text : row->text, "@RUN_ID@", run_id);
    char *with_db = fill_in(with_run, "@MIRROR_DB@", db);
    char *text = fill_in(with_db, "@SETTINGS@", settings);

    free(with_run);
    free(with_db);
    return text;
}
