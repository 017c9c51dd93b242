/*
 * The masters as a table: what each is and how it answers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "server/doctor_private.h"
#include "stats/stats.h"

enum { COLUMNS = 7, CELL_MAX = 80 };

static const char *state_of(const struct doctor_seen *seen, bool usable)
{
    if (!seen->good)
        return seen->status.state == MASTER_REFUSED ? "refused" : "down";
    if (!usable)
        return "unusable";
    return seen->look.quarantine_left_ms > 0 ? "quarantine" : "good";
}

static void fill_row(char cells[COLUMNS][CELL_MAX], const struct doctor_seen *seen, bool usable)
{
    const struct hist *trips = seen->status.trip_us;
    const char *persists = !seen->look.aof           ? "no"
                           : seen->look.fsync_always ? "each write"
                           : seen->look.fsync_known  ? "late"
                                                     : "yes";

    snprintf(cells[0], CELL_MAX, "%s", seen->conf->name);
    snprintf(cells[1], CELL_MAX, "%s", seen->status.address);
    snprintf(cells[2], CELL_MAX, "%s", state_of(seen, usable));
    snprintf(cells[3], CELL_MAX, "%s", seen->status.version);
    if (!seen->good)
        return;
    snprintf(cells[4], CELL_MAX, "%s", persists);
    snprintf(cells[5], CELL_MAX, "%.2f %.2f %.2f ms", (double)hist_quantile(trips, 0.5) / 1000,
             (double)hist_quantile(trips, 0.99) / 1000, (double)hist_quantile(trips, 1) / 1000);
    snprintf(cells[6], CELL_MAX, "%+.3f s", (double)seen->clock_offset_ms / 1000);
}

static void print_columns(FILE *out, char rows[][COLUMNS][CELL_MAX], size_t n)
{
    int width[COLUMNS] = {0};

    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < COLUMNS; k++)
            if ((int)strlen(rows[i][k]) > width[k])
                width[k] = (int)strlen(rows[i][k]);
    for (size_t i = 0; i < n; i++) {
        int last = COLUMNS - 1;
        while (last > 0 && !rows[i][last][0])
            last--;
        for (int k = 0; k < last; k++)
            fprintf(out, "%-*s  ", width[k], rows[i][k]);
        fprintf(out, "%s\n", rows[i][last]);
    }
}

void doctor_table(const struct conf *conf, const struct doctor_seen *seen, const bool *usable,
                  FILE *out)
{
    static const char *const heads[COLUMNS] = {
        "MASTER", "ADDRESS", "STATE", "VERSION", "PERSISTS", "ROUND TRIP 50% 99% MAX", "CLOCK"};
    char(*rows)[COLUMNS][CELL_MAX] = util_alloc((conf->master_count + 1) * sizeof *rows);

    for (int k = 0; k < COLUMNS; k++)
        snprintf(rows[0][k], CELL_MAX, "%s", heads[k]);
    for (size_t i = 0; i < conf->master_count; i++)
        fill_row(rows[i + 1], &seen[i], usable[i]);
    print_columns(out, rows, conf->master_count + 1);
    free(rows);
}
