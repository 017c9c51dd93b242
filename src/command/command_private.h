#pragma once
/* Between command.c and index.c: the rows by number and by what is in the table. */
#include <stdint.h>

#include "command/command.h"
#include "stats/stats.h"

enum { CMD_NAME_MAX = 32 }; /* bytes of the name of a command or a sub-command */

/* What belongs to one row, in the order of cmd_index(). */
struct cmd_row {
    const struct cmd *cmd;
    uint16_t number; /* cmd_index(cmd) */
    uint8_t subject; /* which word of a request says what it is about; of several names the first */
    char full_name[2 * CMD_NAME_MAX + 2];
    struct stats_command counts;
};

/* Makes the rows from cmd_table(), whose names are in order; a second call makes them anew. */
void cmd_index_init(void);
void cmd_index_fini(void);

/* Returns the row of a number that is one. */
struct cmd_row *cmd_row(int number);
/* Returns the row of a command, or of its sub-command `sub` unless that is NULL. */
struct cmd_row *cmd_row_of(const struct cmd *, const struct cmd *sub);
