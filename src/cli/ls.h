#pragma once
/* ls: shows locks as a table, also for top. */
#include "cli/locks.h"
#include "cli/table.h"

/* With WAITERS there is a seventh cell behind those of ls_add_row(). */
void ls_table(struct table *t, bool with_waiters);
void ls_add_row(struct table *t, const struct locks_row *row);
