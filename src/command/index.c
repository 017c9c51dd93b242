/*
 * The rows of all commands and sub-commands by number, and by name in any case: the table is hashed
 * once, and what was looked up last is found without that.
 */
#include <assert.h>
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/command_private.h"

enum {
    INDEX_SLOTS = 256, /* a power of two, more than twice the rows of the table */
    RECENT = 16,       /* a power of two */
};

static struct cmd_row *rows;
static int n_rows, n_top;
static int first_sub[INDEX_SLOTS]; /* by row of the table: the row of its first sub-command */
static uint8_t slots[INDEX_SLOTS]; /* row + 1; 0: free */

/* ---- words ---- */

static unsigned char to_upper(unsigned char c)
{
    return c >= 'a' && c <= 'z' ? (unsigned char)(c - ('a' - 'A')) : c;
}

bool cmd_word_equals(const struct resp_arg *word, const char *upper)
{
    for (size_t i = 0; i < word->len; i++)
        if (upper[i] == '\0' || to_upper((unsigned char)word->ptr[i]) != (unsigned char)upper[i])
            return false;
    return upper[word->len] == '\0';
}

/* FNV-1a over the upper-cased bytes. The table is ours: nobody can choose names that collide. */
static unsigned hash_word(const char *ptr, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ to_upper((unsigned char)ptr[i])) * 16777619u;
    return (h ^ h >> 16) & (INDEX_SLOTS - 1);
}

/* ---- the index ---- */

static void index_add(const char *name, int row)
{
    unsigned slot = hash_word(name, strlen(name));

    while (slots[slot] != 0)
        slot = (slot + 1) & (INDEX_SLOTS - 1);
    slots[slot] = (uint8_t)(row + 1);
}

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
    row->subject = cmd_names(cmd) == CMD_NAMES_COUNTED ? 2 : 1;
    row->counts.name = row->full_name;
}

void cmd_index_init(void)
{
    const struct cmd *table = cmd_table(&n_top);
    int n = n_top;

    assert(n_top < INDEX_SLOTS / 2);
    memset(slots, 0, sizeof(slots));
    for (int i = 0; i < n_top; i++)
        for (const struct cmd *sub = table[i].subs; sub != NULL && sub->name != NULL; sub++)
            n++;
    free(rows);
    rows = util_alloc((size_t)n * sizeof(*rows));
    n_rows = n;
    n = n_top;
    for (int i = 0; i < n_top; i++) {
        assert(i == 0 || strcmp(table[i - 1].name, table[i].name) < 0);
        row_init(&rows[i], NULL, &table[i]);
        index_add(table[i].name, i);
        first_sub[i] = n;
        for (const struct cmd *sub = table[i].subs; sub != NULL && sub->name != NULL; sub++)
            row_init(&rows[n++], &table[i], sub);
    }
}

void cmd_index_fini(void)
{
    free(rows);
    rows = NULL;
    n_rows = n_top = 0;
    memset(slots, 0, sizeof(slots));
}

struct cmd_row *cmd_row(int number)
{
    return &rows[number];
}

struct cmd_row *cmd_row_of(const struct cmd *cmd, const struct cmd *sub)
{
    ptrdiff_t row = cmd - rows[0].cmd;

    return &rows[sub != NULL ? first_sub[row] + (sub - cmd->subs) : row];
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
    for (unsigned slot = hash_word(word->ptr, word->len); slots[slot] != 0;
         slot = (slot + 1) & (INDEX_SLOTS - 1)) {
        const struct cmd *cmd = rows[slots[slot] - 1].cmd;
        if (!cmd_word_is(word, cmd->name))
            continue;
        recent[at].cmd = cmd;
        recent[at].len = word->len;
        return cmd;
    }
    return NULL;
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
