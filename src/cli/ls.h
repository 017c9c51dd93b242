#pragma once
/* ls: shows locks as a table, also for top. */
#include "cli/locks.h"
#include "cli/table.h"

void ls_table(struct table *t);
void ls_add_row(struct table *t, const struct locks_row *row);
