#pragma once
/* masters: shows the reply to MASTERS as a table, also for top. */
#include "cli/ask.h"
#include "cli/table.h"

/* Fills a table that is new; table_fini() is the caller's. */
void masters_table(struct table *t, const redisReply *masters);
