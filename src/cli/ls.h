#ifndef HOLDFAST_LS_H
#define HOLDFAST_LS_H
/*
 * ls: locks as a table, also for top.
 */
#include "locks.h"
#include "table.h"

void ls_table(struct table *t);
void ls_add_row(struct table *t, const struct locks_row *row);
#endif
