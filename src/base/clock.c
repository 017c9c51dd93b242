/* Where the program gets its time from, but for what systemd is told in its own. Owns nothing. The
 * clocks used exist on every Linux since 2.6.39, so failure is not an outcome. */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

static int64_t read_us(clockid_t clock)
{
    struct timespec ts;
    int rc = clock_gettime(clock, &ts);
    assert(rc == 0);
    (void)rc;
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_ms(void)
{
    return read_us(CLOCK_BOOTTIME) / 1000;
}

int64_t clock_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}
