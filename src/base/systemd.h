#pragma once
/*
 * systemd: what the service manager is told, sd_notify(3). Nothing happens when there is none, or
 * when this was built without libsystemd.
 */
#include <stdint.h>

/* Sends one message, as sd_notify(3) describes it: "READY=1", "STATUS=...". Never blocks. */
void systemd_notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Tells that a reload begins; READY=1 tells that it is over. */
void systemd_notify_reloading(void);

/* Returns the longest time that may pass between two WATCHDOG=1; 0: none is expected. */
int64_t systemd_watchdog_ms(void);
