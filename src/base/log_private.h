#pragma once
/* Between log.c (what a line is) and log_out.c (where it goes). */
#include <stdbool.h>
#include <stddef.h>

/* Sends lines to this descriptor, which stays the caller's. */
void log_out_use_fd(int fd);
/* Sends lines to the socket of syslog at this path. */
void log_out_use_syslog(const char *path);

/* Writes one whole line, which a newline ends, or for syslog nothing; a NUL stands behind it.
 * Returns false when there is no room, or nobody takes it. */
bool log_out(const char *line, size_t len);
/* Writes what is left of a line that was written in part. Returns false while some is left. */
bool log_out_rest(void);
