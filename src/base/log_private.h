#ifndef HOLDFAST_LOG_PRIVATE_H
#define HOLDFAST_LOG_PRIVATE_H
/* Between log.c (what a line is) and log_out.c (where it goes). */
#include <stdbool.h>
#include <stddef.h>

/* Lines go to this descriptor, which stays the caller's. */
void log_out_use_fd(int fd);
/* Lines go to the socket of syslog at this path. */
void log_out_use_syslog(const char *path);

/* Writes one whole line, ended by a newline or, for syslog, by nothing; a NUL is behind it. False:
 * there is no room for it, or nobody who takes it. */
bool log_out(const char *line, size_t len);
/* What is left of a line that was written in part. False: it still has to wait. */
bool log_out_rest(void);
#endif
