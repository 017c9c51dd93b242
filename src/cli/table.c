/*
 * Columns are separated by two spaces; the last one is not padded. On a screen that is too narrow
 * for all, the last ones are left out.
 */
#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"

enum { GAP = 2, COLUMNS_MAX = 16, NARROWEST = 6 };

void table_init(struct table *t, const struct table_column *columns)
{
    *t = (struct table){.columns = columns};
    while (columns[t->n_columns].head)
        t->n_columns++;
    if (t->n_columns > COLUMNS_MAX)
        util_die("a table of %d columns", t->n_columns);
}

void table_fini(struct table *t)
{
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i].text);
    free(t->cells);
    *t = (struct table){0};
}

void table_add(struct table *t, enum tint tint, const char *text, size_t len)
{
    t->cells = util_realloc(t->cells, (t->n_cells + 1) * sizeof t->cells[0]);
    t->cells[t->n_cells++] =
        (struct table_cell){util_memdup(text, len), len, text_width(text, len), tint};
}

void table_addf(struct table *t, enum tint tint, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    table_add(t, tint, text, strlen(text));
}

/* Takes what is too much from the widest flexible column, a column of the screen at a time. Returns
 * how many columns of the table there is room for; at least one. */
static int fit_columns(const struct table *t, int *widths, int columns)
{
    int sum = GAP * (t->n_columns - 1);
    for (int i = 0; i < t->n_columns; i++)
        sum += widths[i];
    int n = t->n_columns;
    while (columns > 0 && sum > columns) {
        int widest = -1;
        for (int i = 0; i < t->n_columns; i++) {
            if (t->columns[i].flexible && widths[i] > NARROWEST &&
                (widest < 0 || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest >= 0) {
            widths[widest]--;
            sum--;
        } else if (n > 1) {
            sum -= widths[--n] + GAP;
        } else {
            sum = widths[0] = columns;
        }
    }
    return n;
}

static void pad_cell(struct buf *out, int n)
{
    if (n > 0)
        buf_printf(out, "%*s", n, "");
}

static void print_row(const struct table *t, struct buf *out, const struct table_cell *cells,
                      const int *widths, int n, bool colour)
{
    while (n > 0 && cells[n - 1].len == 0)
        n--;
    for (int i = 0; i < n; i++) {
        const struct table_cell *c = &cells[i];
        int width = c->width < widths[i] ? c->width : widths[i];
        pad_cell(out, (i ? GAP : 0) + (t->columns[i].right ? widths[i] - width : 0));
        if (c->tint)
            text_tint(out, colour, c->tint);
        width = text_put(out, c->text, c->len, widths[i]);
        if (c->tint)
            text_tint(out, colour, TINT_NONE);
        if (!t->columns[i].right && i + 1 < n)
            pad_cell(out, widths[i] - width);
    }
    buf_append(out, "\n", 1);
}

void table_print(const struct table *t, struct buf *out, const struct screen *screen, int max_rows)
{
    int widths[COLUMNS_MAX] = {0};
    char heads[COLUMNS_MAX][32];
    struct table_cell cells[COLUMNS_MAX];
    size_t rows = t->n_cells / (size_t)t->n_columns;
    for (int i = 0; i < t->n_columns; i++) {
        int len = snprintf(heads[i], sizeof heads[i], "%s", t->columns[i].head);
        cells[i] = (struct table_cell){heads[i], (size_t)len, len, TINT_HEAD};
        widths[i] = len;
    }
    for (size_t i = 0; i < t->n_cells; i++) {
        int *width = &widths[i % (size_t)t->n_columns];
        *width = t->cells[i].width > *width ? t->cells[i].width : *width;
    }
    int n = fit_columns(t, widths, screen->columns);
    print_row(t, out, cells, widths, n, screen->colour);
    for (size_t i = 0; i < rows && (max_rows < 0 || (int)i < max_rows); i++)
        print_row(t, out, &t->cells[i * (size_t)t->n_columns], widths, n, screen->colour);
}
