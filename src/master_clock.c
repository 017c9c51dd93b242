/*
 * The time of a master against ours, from the time that each answer carries.
 *
 * A sample is known to half a round trip. The best one is kept, getting worse with age; a better
 * one takes its place. Two samples further apart than their errors, the drift allowed and some
 * tolerance mean that one of the clocks has jumped: leases on that master may be longer or shorter
 * than anybody was told.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "master_private.h"

enum {
    TOLERANCE_US = 100 * 1000,
    AGEING_PPM = 1000, /* how fast a sample gets worse */
    RESOLUTION_US = 1000
};

bool master_clock_take(struct master *m, int64_t time_ms, int64_t sent_us, int64_t now_us)
{
    struct master_clock *c = &m->clock;
    int64_t trip_us = now_us - sent_us;
    struct master_clock new = {
        .known = true,
        .offset_us = time_ms * 1000 - (sent_us + trip_us / 2),
        .error_us = trip_us / 2 + RESOLUTION_US,
        .at_us = now_us,
    };

    hist_add(&m->trip_us, trip_us);
    m->latency_us += m->latency_us ? (trip_us - m->latency_us) / 8 : trip_us;
    if (!c->known) {
        *c = new;
        return false;
    }
    int64_t age_us = now_us - c->at_us;
    int64_t apart_us = new.offset_us - c->offset_us;
    int64_t drift_us = age_us / 1000 * m->setup.drift_ppm / 1000;
    if (llabs(apart_us) > new.error_us + c->error_us + drift_us + TOLERANCE_US) {
        m->status.clock_jumps++;
        if (log_limited(&m->jump_limit, now_us / 1000))
            log_warn(m->object, "its clock has jumped by_ms=%" PRId64 " in_ms=%" PRId64,
                     apart_us / 1000, age_us / 1000);
        *c = new;
        return apart_us > 0;
    }
    if (new.error_us <= c->error_us + age_us / 1000000 * AGEING_PPM) {
        *c = new;
    }
    return false;
}
