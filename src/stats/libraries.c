/* A table that is as long as there may be names: nothing is allocated, and none is ever taken out.
 */
#include "stats/libraries.h"

#include <ctype.h>
#include <string.h>

static struct library table[LIBRARIES_MAX + 2] = {
    [LIBRARY_UNKNOWN] = {.name = "unknown"}, [LIBRARY_OTHER] = {.name = "other"}};
static int n_names; /* from 1 on */

/* Writes what is kept of a name. */
static void write_name(char out[LIBRARY_NAME_MAX + 1], const char *name, size_t len)
{
    size_t n = 0;
    while (n < len && n < LIBRARY_NAME_MAX && name[n] != '(') {
        unsigned char c = (unsigned char)name[n];
        out[n++] = (char)(c < 0x80 && (isalnum(c) || strchr("._/@+-", c)) ? c : '_');
    }
    out[n] = '\0';
}

uint8_t library_find(const char *name, size_t len)
{
    char kept[LIBRARY_NAME_MAX + 1];
    write_name(kept, name, len);
    if (kept[0] == '\0')
        return LIBRARY_UNKNOWN;
    for (int i = 0; i <= n_names; i++) {
        if (strcmp(table[i].name, kept) == 0)
            return (uint8_t)i;
    }
    if (n_names == LIBRARIES_MAX || strcmp(table[LIBRARY_OTHER].name, kept) == 0)
        return LIBRARY_OTHER;
    strcpy(table[++n_names].name, kept);
    return (uint8_t)n_names;
}

void library_move(int from, int to)
{
    if (from >= 0)
        table[from].connections--;
    if (to >= 0)
        table[to].connections++;
}

void library_count(uint8_t library)
{
    table[library].commands++;
}

const struct library *library_row(size_t i)
{
    for (size_t k = 0; k < LIBRARIES_MAX + 2; k++) {
        const struct library *l = &table[k];
        if ((l->connections > 0 || l->commands > 0) && i-- == 0)
            return l;
    }
    return NULL;
}

void libraries_reset(void)
{
    for (size_t k = 0; k < LIBRARIES_MAX + 2; k++)
        table[k].commands = 0;
}
