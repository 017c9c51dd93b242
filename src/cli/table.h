#pragma once
/*
 * table: prints rows of cells in columns as wide as they have to be. On a terminal that is too
 * narrow the widest of the flexible columns give way.
 */
#include "cli/text.h"

struct buf;

struct table_column {
    const char *head; /* NULL ends the columns */
    bool right;
    bool flexible;
};

struct table_cell {
    char *text;
    size_t len;
    int width;
    enum tint tint;
};

struct table {
    const struct table_column *columns;
    int n_columns;
    struct table_cell *cells; /* row by row */
    size_t n_cells;
};

void table_init(struct table *t, const struct table_column *columns);
void table_fini(struct table *t);

/* Add the next cell, left to right and row by row. */
void table_add(struct table *t, enum tint tint, const char *text, size_t len);
void table_addf(struct table *t, enum tint tint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends the heads and at most max_rows rows (-1: all). */
void table_print(const struct table *t, struct buf *out, const struct screen *screen, int max_rows);
