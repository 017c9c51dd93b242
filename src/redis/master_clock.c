/*
 * The time of a master against ours, from the time that each answer carries.
 *
 * When it does not pass as ours does, leases on that master may be longer or shorter than anybody
 * was told (skew.h): ahead, and it is put into quarantine. That is owed until the master has
 * confirmed it, over any number of links.
 */
#include <inttypes.h>

#include "redis/master_private.h"

enum { RESOLUTION_US = 1000 };

bool master_clock_take(struct master *m, int64_t time_ms, int64_t sent_us, int64_t now_us)
{
    int64_t trip_us = now_us - sent_us, apart_us, age_us;
    struct skew_sample sample = {
        .offset_us = time_ms * 1000 - (sent_us + trip_us / 2),
        .error_us = trip_us / 2 + RESOLUTION_US,
        .at_us = now_us,
    };

    hist_add(&m->trip_us, trip_us);
    m->latency_us += m->latency_us ? (trip_us - m->latency_us) / 8 : trip_us;
    enum skew_verdict verdict = skew_take(&m->clock, &sample, m->setup.drift_ppm,
                                          m->setup.max_lease_ms * 1000, &apart_us, &age_us);
    if (verdict == SKEW_FINE)
        return false;
    m->status.clock_jumps++;
    if (log_limited(&m->jump_limit, now_us / 1000))
        log_warn(m->object, "its clock has jumped by_ms=%" PRId64 " in_ms=%" PRId64,
                 apart_us / 1000, age_us / 1000);
    if (verdict == SKEW_AHEAD) /* owed no longer than that: then all older promises are over */
        m->suspend_owed_ms = now_us / 1000 + master_quarantine_ms(m);
    return verdict == SKEW_AHEAD;
}
