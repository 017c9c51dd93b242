/* What the files of stats share. For nobody else. */
#pragma once

#include "stats/gauges.h"
#include "stats/stats.h"

/* In the order of INFO. */
enum stats_section {
    STATS_SECTION_SERVER,
    STATS_SECTION_CLIENTS,
    STATS_SECTION_MEMORY,
    STATS_SECTION_PERSISTENCE,
    STATS_SECTION_STATS,
    STATS_SECTION_REPLICATION,
    STATS_SECTION_CPU,
    STATS_SECTION_COMMANDSTATS,
    STATS_SECTION_ERRORSTATS,
    STATS_SECTION_LATENCYSTATS,
    STATS_SECTION_CLUSTER,
    STATS_SECTION_KEYSPACE,
    STATS_SECTION_HOLDFAST,
    STATS_SECTIONS
};

/* The lists of stats.h and gauges.h as tables, and how the value of a row is read. */
struct stats_counter_row {
    size_t offset; /* in struct stats */
    enum stats_section section;
    const char *field, *metric, *labels, *help;
};
struct stats_hist_row {
    size_t offset;
    const char *field, *metric, *help;
};
struct stats_gauge_row {
    size_t offset; /* in struct stats_gauges */
    enum stats_unit unit;
    const char *field, *name, *metric, *labels, *help;
};
extern const struct stats_gauge_row stats_gauge_rows[];     /* ends with a field of NULL */
extern const struct stats_counter_row stats_counter_rows[]; /* ends with a field of NULL */
extern const struct stats_hist_row stats_hist_rows[];       /* the same */

int64_t stats_gauge(const struct stats_gauges *, const struct stats_gauge_row *row);
uint64_t stats_value(const struct stats_counter_row *row);
const struct hist *stats_hist(const struct stats_hist_row *row);

/* Row i of the commands, NULL after the last. */
const struct stats_command *stats_command_row(size_t i);

/* Error codes and how often: entry i, NULL after the last. The first is "other". */
struct stats_error_count {
    char code[24];
    uint64_t count;
};
const struct stats_error_count *stats_error_row(size_t i);

/* Over the last interval of stats_tick. */
struct stats_rates {
    double commands, input_bytes, output_bytes; /* per second */
};
const struct stats_rates *stats_rates(void);
