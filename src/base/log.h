/* The log: one line an event, `object: text key=value...`.
 *
 *   log_warn("master a", "connection lost reason=%s", reason);
 *
 * The level is tested before any argument is evaluated, the object included, so a line that is
 * switched off costs one comparison. Lines go to stderr. Where stderr is the journal
 * (JOURNAL_STREAM names it, systemd.exec(5)) each has the prefix "<3>" to "<7>" of sd-daemon(3),
 * elsewhere a time stamp: `2026-01-31 12:00:00.123 warn  master a: connection lost reason=eof`. Or
 * they go to the socket of syslog.
 *
 * Nothing here waits for whoever reads the lines: one for which there is no room is dropped, and
 * the next line that finds some is preceded by one that says how many were dropped.
 *
 * Objects and arguments may hold text of strangers: what people must not be shown (utf8.h) comes
 * out as \n, \r, \t or \xNN, so that a line is one line. Lines longer than LOG_LINE_MAX are cut and
 * end in "...". */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_TRACE
};

#define LOG_LINE_MAX 2048 /* bytes of `object: text`, escaped */

#define log_error(object, ...) LOG_AT(LOG_LEVEL_ERROR, object, __VA_ARGS__)
#define log_warn(object, ...) LOG_AT(LOG_LEVEL_WARN, object, __VA_ARGS__)
#define log_info(object, ...) LOG_AT(LOG_LEVEL_INFO, object, __VA_ARGS__)
#define log_debug(object, ...) LOG_AT(LOG_LEVEL_DEBUG, object, __VA_ARGS__)
#define log_trace(object, ...) LOG_AT(LOG_LEVEL_TRACE, object, __VA_ARGS__)

#define LOG_AT(level, object, ...)                                                                 \
    do {                                                                                           \
        if (log_enabled(level))                                                                    \
            log_write((level), (object), __VA_ARGS__);                                             \
    } while (0)

/* Sets the level up to which lines are written, from now on; it begins as info. */
void log_set_level(enum log_level level);
extern enum log_level log_current_level; /* read by log_enabled; set through log_set_level */

static inline bool log_enabled(enum log_level level)
{
    return level <= log_current_level;
}

/* Writes to file from now on, and to stderr again for NULL. The file stays the caller's. */
void log_set_file(FILE *file);

/* Sends lines to syslog from now on, with this facility of <syslog.h>; -1: to the file again. */
void log_set_syslog(int facility);
/* For tests: the path of its socket. */
void log_set_syslog_path(const char *path);

/* Lets lines wait for room, while nothing has to be in time (at the start and at the end): a second
 * at most, and not again when that was in vain. It begins as true. */
void log_set_patient(bool patient);

/* Writes how many lines were dropped, if some were and there is room. Call it from time to time.
 * Returns how many were dropped since the last call. */
uint64_t log_look(void);

/* For tests: hands each line to `sink` instead of writing it, without prefix and newline; `line` is
 * valid during the call only. NULL ends that. */
typedef void (*log_sink_fn)(void *arg, enum log_level level, const char *line);
void log_set_sink(log_sink_fn sink, void *arg);

/* Writes the line whatever the level is: use the macros. `object` may be NULL. */
void log_write(enum log_level level, const char *object, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Keeps what strangers can cause in endless numbers to a line a second, or less. All zero at the
 * start.
 *
 *   static struct log_limit limit;
 *   if (log_limited(&limit, now_ms))
 *       log_warn(object, "... swallowed=%" PRIu64, limit.swallowed); */
struct log_limit {
    int64_t next_ms;
    uint64_t pending;   /* swallowed since the last line */
    uint64_t swallowed; /* after true: how many were swallowed before this line */
};

/* Returns true when the line may be written. */
bool log_limited(struct log_limit *limit, int64_t now_ms);
/* The same for one line in every_ms. */
bool log_limited_to(struct log_limit *limit, int64_t now_ms, int64_t every_ms);

/* Limits lines of which each counts, but which may come by the thousand, to per_second. All zero at
 * the start. Says how many it swallowed in a line of its own, before the first one of a later
 * second. Returns true when the line may be written. */
struct log_burst {
    int64_t second;
    unsigned lines;
};
bool log_burst(struct log_burst *burst, const char *object, int64_t now_ms, unsigned per_second);
