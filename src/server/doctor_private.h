/* Between doctor.c (looks at the masters) and doctor_findings.c (judges what was seen). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "redis/master.h"
#include "server/doctor.h"

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

/* Writes what was seen of all masters, and a judgement in words. Returns the number of errors. */
int doctor_tell(const struct conf *, const struct doctor_seen *, FILE *out);
