#pragma once
/*
 * Between the files of doctor: doctor.c (looking at the masters, judging what is seen) and
 * doctor_table.c (a line for each).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "conf/conf.h"
#include "redis/master.h"

/* What a look at a master has brought. */
struct doctor_seen {
    const struct conf_master *conf;
    struct master *master;
    struct master_status status;
    struct master_look look;
    bool good;       /* it could be used: look counts; else: */
    char error[400]; /* why not */
    int64_t clock_offset_ms;
};

/* Prints them as a table, each with whether it could be used. */
void doctor_table(const struct conf *, const struct doctor_seen *, const bool *usable, FILE *out);
