/*
 * The table of scripts. embed.awk brings the texts from src/redis/lua. Their digests come from the
 * master that loads them, because the texts differ from run to run.
 */
#include "redis/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "redis/script_lua.h"

enum {
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

/* What stands before a script whose keys are those of a partition: takes the last of KEYS away. */
#define AT "local AT = KEYS[#KEYS] KEYS[#KEYS] = nil "

/* What a script says without a Cluster, and what in one, where AT is "holdfast:{tag}:". Only those
 * who listen at the node of the partition hear what is published on its own channels. */
static const struct {
    const char *mark, *by, *first; /* first: before the script, if it has the mark; NULL: nothing */
} in_partition[] = {
    {"'holdfast:master'", "MARK", "local MARK = AT .. 'master' "},
    {"'holdfast:planted'", "AT .. 'planted'", NULL},
    {"'PUBLISH', 'holdfast:wake:'", "'SPUBLISH', AT .. 'wake:'", NULL},
};

/* Returns `text`, which it frees, for the keys of a partition. */
static char *into_partition(char *text)
{
    struct buf out = {0};

    buf_printf(&out, AT);
    for (size_t i = 0; i < sizeof in_partition / sizeof in_partition[0]; i++) {
        char *filled = fill_in(text, in_partition[i].mark, in_partition[i].by);
        if (in_partition[i].first && strcmp(filled, text) != 0)
            buf_printf(&out, "%s", in_partition[i].first);
        free(text);
        text = filled;
    }
    buf_append(&out, text, strlen(text));
    free(text);
    text = util_memdup(buf_head(&out), buf_len(&out));
    buf_fini(&out);
    return text;
}

char *script_text(enum script script, const struct script_place *place)
{
    const struct script_row *row = script_get(script);
    bool mirrors = place->mirror_db != SCRIPT_NO_MIRROR;
    char db[16];
    snprintf(db, sizeof db, "%d", place->mirror_db);
    char *with_run = fill_in(mirrors ? row->mirror_text : row->text, "@RUN_ID@", place->run_id);
    char *with_db = fill_in(with_run, "@MIRROR_DB@", db);
    char *text = fill_in(with_db, "@SETTINGS@", place->settings);

    free(with_run);
    free(with_db);
    return place->in_partition ? into_partition(text) : text;
}
