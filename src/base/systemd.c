/* The protocol is libsystemd's business; here is what to do without it, and where credentials are.
 */
#include "base/systemd.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#ifdef HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>

void systemd_notify(const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)sd_notify(0, text);
}

/* Sends the time by CLOCK_MONOTONIC: the manager orders it against its own requests to reload. */
void systemd_notify_reloading(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    systemd_notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64,
                   (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
}

int64_t systemd_watchdog_ms(void)
{
    uint64_t us = 0;

    return sd_watchdog_enabled(0, &us) > 0 ? (int64_t)(us / 1000) : 0;
}

#else

void systemd_notify(const char *fmt, ...)
{
    (void)fmt;
}

void systemd_notify_reloading(void)
{
}

int64_t systemd_watchdog_ms(void)
{
    return 0;
}

#endif
