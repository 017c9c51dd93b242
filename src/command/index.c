/*
 * The rows of all commands and sub-commands by number, and by name in any case: the table is in
 * order, and what was looked up last is found without a search.
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "command/command_private.h"

enum { RECENT = 16 /* a power of two */ };

static struct cmd_row *rows;
static int n_rows, n_top;

/* ---- words ---- */

bool cmd_word_equals(const struct resp_arg *word, const char *upper)
{
    for (size_t i = 0; i < word->len; i++)
        if (upper[i] == '\0' || toupper((unsigned char)word->ptr[i]) != (unsigned char)upper[i])
            return false;
    return upper[word->len] == '\0';
}

/* ---- the index ---- */

static void row_init(struct cmd_row *row, const struct cmd *parent, const struct cmd *cmd)
{
    int len = parent != NULL ? snprintf(row->full_name, sizeof(row->full_name), "%s|%s",
                                        parent->name, cmd->name)
                             : snprintf(row->full_name, sizeof(row->full_name), "%s", cmd->name);

    assert(len > 0 && (size_t)len < sizeof(row->full_name));
    assert(strlen(cmd->name) <= CMD_NAME_MAX);
    for (char *p = row->full_name; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    row->cmd = cmd;
    row->number = (uint16_t)(row - rows);
    row->subject = cmd_names(cmd) == CMD_NAMES_COUNTED  ? 2
                   : cmd_names(cmd) == CMD_NAMES_SCRIPT ? 3
                                                        : 1;
    row->counts.name = row->full_name;
}

void cmd_index_init(void)
{
    const struct cmd *table = cmd_table(&n_top);
    int n = n_top;

    for (int i = 0; i < n_top; i++)
        for (const struct cmd *sub = table[i].subs; sub != NULL && sub->name != NULL; sub++)
            n++;
    free(rows);
    rows = util_alloc((size_t)n * sizeof(*rows));
    n_rows = n;
    n = n_top;
    for (int i = 0; i < n_top; i++) {
        assert(i == 0 || strcasecmp(table[i - 1].name, table[i].name) < 0);
        row_init(&rows[i], NULL, &table[i]);
        for (const struct cmd *sub = table[i].subs; sub != NULL && sub->name != NULL; sub++)
            row_init(&rows[n++], &table[i], sub);
    }
}

void cmd_index_fini(void)
{
    free(rows);
    rows = NULL;
    n_rows = n_top = 0;
}

struct cmd_row *cmd_row(int number)
{
    return &rows[number];
}

struct cmd_row *cmd_row_of(const struct cmd *cmd, const struct cmd *sub)
{
    return &rows[cmd_index(sub != NULL ? sub : cmd)];
}

/* For bsearch(3). Names are in capitals, and in order for strcasecmp(). */
static int compare_word(const void *key, const void *row)
{
    const struct resp_arg *word = key;
    const char *name = ((const struct cmd *)row)->name;
    int order = strncasecmp(word->ptr, name, word->len);

    return order != 0 ? order : (int)word->len - (int)strlen(name);
}

const struct cmd *cmd_find(const struct resp_arg *word)
{
    /* Found last, by length and first letter: most requests are like some before. */
    static struct {
        const struct cmd *cmd;
        size_t len;
    } recent[RECENT];

    if (word->len == 0 || word->len > CMD_NAME_MAX)
        return NULL;
    unsigned at = ((unsigned)word->len * 5 + (unsigned char)word->ptr[0]) & (RECENT - 1);
    if (word->len == recent[at].len && memcmp(word->ptr, recent[at].cmd->name, word->len) == 0)
        return recent[at].cmd;
    const struct cmd *cmd = bsearch(word, rows[0].cmd, (size_t)n_top, sizeof *cmd, compare_word);
    if (cmd != NULL) {
        recent[at].cmd = cmd;
        recent[at].len = word->len;
    }
    return cmd;
}

const struct cmd *cmd_find_sub(const struct cmd *cmd, const struct resp_arg *word)
{
    for (const struct cmd *sub = cmd->subs; sub != NULL && sub->name != NULL; sub++)
        if (cmd_word_is(word, sub->name))
            return sub;
    return NULL;
}

int cmd_index(const struct cmd *cmd)
{
    const struct cmd *table = cmd_table(&(int){0});

    if (cmd >= table && cmd < table + n_top)
        return (int)(cmd - table);
    for (int i = n_top; i < n_rows; i++)
        if (rows[i].cmd == cmd)
            return i;
    assert(!"a command of the table");
    return 0;
}

const char *cmd_full_name(int index)
{
    return index >= 0 && index < n_rows ? rows[index].full_name : "";
}

struct stats_command *cmd_stats(size_t index)
{
    return index < (size_t)n_rows ? &rows[index].counts : NULL;
}
