/* Counts. Owns the counters, the histograms, the error codes and the rates; is lent the counts of
 * the commands. Does not know the time (it is passed in), nor how the numbers are shown: that is
 * info.c and metrics.c.
 *
 * Invariant: adding is O(1) and takes no memory, whatever comes in. */
#include "stats/private.h"

#include <string.h>

#include "stats/libraries.h"
#include "stats/recent.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#else
#define PACKAGE_VERSION "unknown"
#endif

enum { ERRORS_MAX = 32 };

struct stats stats;

static struct stats_error_count errors[ERRORS_MAX] = {{.code = "other"}};
static size_t errors_len = 1;

static stats_command_fn command_row;

static struct stats_rates rates;
static struct {
    int64_t at_ms;
    uint64_t commands, input_bytes, output_bytes;
} last_tick;

const struct stats_counter_row stats_counter_rows[] = {
#define ROW(field, metric, labels, help)                                                           \
    {offsetof(struct stats, field), SECTION, #field, "holdfast_" metric "_total", labels, help},
#define SECTION STATS_SECTION_STATS
    STATS_REDIS_COUNTERS(ROW)
#undef SECTION
#define SECTION STATS_SECTION_HOLDFAST
        STATS_OWN_COUNTERS(ROW)
#undef SECTION
#undef ROW
            {.field = NULL}};

const struct stats_hist_row stats_hist_rows[] = {
#define ROW(field, metric, help) {offsetof(struct stats, field), #field, metric, help},
    STATS_HISTS(ROW)
#undef ROW
        {.field = NULL}};

const struct stats_gauge_row stats_gauge_rows[] = {
#define ROW(field, unit, name, metric, labels, help)                                               \
    {offsetof(struct stats_gauges, field), STATS_UNIT_##unit, #field, name, metric, labels, help},
    STATS_GAUGES(ROW)
#undef ROW
        {.field = NULL}};

const char *stats_version(void)
{
    return PACKAGE_VERSION;
}

/* ---- the tables ---- */

int64_t stats_gauge(const struct stats_gauges *g, const struct stats_gauge_row *row)
{
    return *(const int64_t *)(const void *)((const char *)g + row->offset);
}

uint64_t stats_value(const struct stats_counter_row *row)
{
    return *(const uint64_t *)(const void *)((const char *)&stats + row->offset);
}

const struct hist *stats_hist(const struct stats_hist_row *row)
{
    return (const struct hist *)(const void *)((const char *)&stats + row->offset);
}

void stats_set_commands(stats_command_fn row)
{
    command_row = row;
}

const struct stats_command *stats_command_row(size_t i)
{
    return command_row ? command_row(i) : NULL;
}

/* ---- errors ---- */

static size_t code_len(const char *text)
{
    size_t len = 0;

    while ((text[len] >= 'A' && text[len] <= 'Z') || (text[len] >= 'a' && text[len] <= 'z') ||
           (text[len] >= '0' && text[len] <= '9') || text[len] == '_')
        len++;
    if (text[len] != ' ' && text[len] != '\0')
        return 0;
    return len < sizeof errors[0].code ? len : 0;
}

void stats_error(const char *text)
{
    if (*text == '-')
        text++;
    size_t len = code_len(text);
    size_t i = 1;

    while (i < errors_len && (memcmp(errors[i].code, text, len) != 0 || errors[i].code[len]))
        i++;
    if (len == 0 || i == ERRORS_MAX) {
        errors[0].count++;
        return;
    }
    if (i == errors_len) {
        memcpy(errors[i].code, text, len);
        errors_len++;
    }
    errors[i].count++;
}

uint64_t stats_error_count(void)
{
    uint64_t n = 0;

    for (size_t i = 0; i < errors_len; i++)
        n += errors[i].count;
    return n;
}

const struct stats_error_count *stats_error_row(size_t i)
{
    return i < errors_len ? &errors[i] : NULL;
}

/* ---- rates, reset ---- */

void stats_tick(int64_t now_ms)
{
    double seconds = (double)(now_ms - last_tick.at_ms) / 1000;

    if (last_tick.at_ms > 0 && seconds > 0) {
        rates.commands = (double)(stats.total_commands_processed - last_tick.commands) / seconds;
        rates.input_bytes = (double)(stats.total_net_input_bytes - last_tick.input_bytes) / seconds;
        rates.output_bytes =
            (double)(stats.total_net_output_bytes - last_tick.output_bytes) / seconds;
    }
    last_tick.at_ms = now_ms;
    last_tick.commands = stats.total_commands_processed;
    last_tick.input_bytes = stats.total_net_input_bytes;
    last_tick.output_bytes = stats.total_net_output_bytes;
    recent_tick(now_ms);
}

const struct stats_rates *stats_rates(void)
{
    return &rates;
}

void stats_reset(void)
{
    struct stats_command *command;

    memset(&stats, 0, sizeof stats);
    libraries_reset();
    recent_reset();
    memset(errors + 1, 0, sizeof errors - sizeof errors[0]);
    errors[0].count = 0;
    errors_len = 1;
    last_tick.commands = last_tick.input_bytes = last_tick.output_bytes = 0;
    for (size_t i = 0; command_row && (command = command_row(i)); i++) {
        command->ok = command->failed = command->rejected = 0;
        memset(&command->duration_us, 0, sizeof command->duration_us);
    }
}
