/* Makes lines and has each written in one piece, so that two processes on one stderr do not mix.
 *
 * Owns the level, the destination, the choice of prefix, and what was dropped, all process-wide:
 * only the loop's thread logs. Does not know who logs what. Never allocates: it must work when
 * memory is out. Invariant: between prefix and newline stands printable UTF-8 only, whatever the
 * arguments held. */
#include "base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_private.h"
#include "base/utf8.h"

enum log_level log_current_level = LOG_LEVEL_INFO;

static const struct {
    const char *name;
    char prio; /* of syslog(3) */
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", '3'}, [LOG_LEVEL_WARN] = {"warn", '4'},
    [LOG_LEVEL_INFO] = {"info", '6'},   [LOG_LEVEL_DEBUG] = {"debug", '7'},
    [LOG_LEVEL_TRACE] = {"trace", '7'},
};

static FILE *out_file; /* NULL until the first line */
static bool out_is_journal;
static int out_facility = -1; /* of syslog; -1: lines go to out_file */
static const char *syslog_path = "/dev/log";
static uint64_t dropped;   /* lines, since that was last said, */
static uint64_t uncounted; /* and since log_look() */
static log_sink_fn out_sink;
static void *out_sink_arg;

void log_set_level(enum log_level level)
{
    log_current_level = level;
}

/* Returns true when this file is the journal. JOURNAL_STREAM is inherited also by processes whose
 * stderr was redirected since, so the file must be the one that it names. */
static bool is_journal(FILE *file)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char own[48];
    if (stream == NULL || fileno(file) < 0 || fstat(fileno(file), &st) != 0)
        return false;
    snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(stream, own) == 0;
}

void log_set_file(FILE *file)
{
    out_file = file != NULL ? file : stderr;
    out_is_journal = is_journal(out_file);
    if (out_facility < 0)
        log_out_use_fd(fileno(out_file));
}

void log_set_syslog(int facility)
{
    if (facility == out_facility)
        return;
    out_facility = facility;
    /* Connects now: later there may be no descriptor left for it. */
    if (facility >= 0)
        log_out_use_syslog(syslog_path);
    else
        log_set_file(out_file);
}

void log_set_syslog_path(const char *path)
{
    syslog_path = path;
}

void log_set_sink(log_sink_fn sink, void *arg)
{
    out_sink = sink;
    out_sink_arg = arg;
}

enum { PREFIX_MAX = 80 };

struct line {
    char text[LOG_LINE_MAX + 1];
    size_t len;
    bool cut; /* ends in "...", takes nothing more */
};

/* Writes what stands for the first character of the text; see utf8_show(). */
static size_t show_character(const char *text, size_t len, char shown[UTF8_SHOWN_MAX], size_t *n)
{
    static const char controls[] = "\n\r\t", letters[] = "nrt";
    const char *hit = memchr(controls, *text, 3);

    if (!hit)
        return utf8_show(text, len, shown, n);
    shown[0] = '\\';
    shown[1] = letters[hit - controls];
    *n = 2;
    return 1;
}

/* Takes over what nearly all of a line is made of, as it is, until there is something else or
 * hardly any room. Returns how much that was. */
static size_t append_plain(struct line *line, const char *text)
{
    char *at = line->text + line->len, *p = at, *end = line->text + LOG_LINE_MAX - UTF8_SHOWN_MAX;

    while (p < end && *text >= ' ' && *text <= '~')
        *p++ = *text++;
    line->len += (size_t)(p - at);
    return (size_t)(p - at);
}

static void append_text(struct line *line, const char *text)
{
    const char *end = text + strlen(text);
    char shown[UTF8_SHOWN_MAX];
    size_t n;

    while ((text += append_plain(line, text)) < end && !line->cut) {
        text += show_character(text, (size_t)(end - text), shown, &n);
        line->cut = line->len + n > LOG_LINE_MAX - 3;
        if (line->cut)
            n = 3;
        memcpy(line->text + line->len, line->cut ? "..." : shown, n);
        line->len += n;
    }
    line->text[line->len] = '\0';
}

static int make_prefix(char *prefix, size_t size, enum log_level level)
{
    if (out_facility < 0 && out_is_journal)
        return snprintf(prefix, size, "<%c>", levels[level].prio);
    int64_t now_ms = clock_wall_ms();
    time_t now_s = (time_t)(now_ms / 1000);
    struct tm tm = {.tm_mday = 1};
    char stamp[32] = "";
    bool known = localtime_r(&now_s, &tm) != NULL;
    if (out_facility >= 0) { /* RFC 3164, as syslog(3) does */
        strftime(stamp, sizeof(stamp), "%h %e %T", &tm);
        return snprintf(prefix, size,
                        "<%d>%s holdfastd[%d]: ", out_facility | (levels[level].prio - '0'), stamp,
                        (int)getpid());
    }
    if (known)
        strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
    return snprintf(prefix, size, "%s.%03d %-5s ", stamp, (int)(now_ms % 1000), levels[level].name);
}

static bool write_whole_line(enum log_level level, const struct line *line)
{
    char whole[PREFIX_MAX + LOG_LINE_MAX + 2];
    if (out_file == NULL)
        log_set_file(stderr);
    size_t n = (size_t)make_prefix(whole, PREFIX_MAX, level);
    memcpy(whole + n, line->text, line->len);
    n += line->len;
    if (out_facility < 0)
        whole[n++] = '\n';
    whole[n] = '\0'; /* ends a line of syslog over a stream */
    return log_out(whole, n);
}

/* Writes how many lines were dropped. Returns false when there was no room for that. */
static bool say_dropped(void)
{
    struct line line = {.len = 0};
    char text[64];
    if (dropped == 0)
        return true;
    snprintf(text, sizeof(text), "log: lines dropped, as nobody read them n=%" PRIu64, dropped);
    append_text(&line, text);
    if (!write_whole_line(LOG_LEVEL_WARN, &line))
        return false;
    dropped = 0;
    return true;
}

uint64_t log_look(void)
{
    uint64_t n = uncounted;
    if (log_out_rest())
        (void)say_dropped();
    uncounted = 0;
    return n;
}

void log_write(enum log_level level, const char *object, const char *fmt, ...)
{
    char text[LOG_LINE_MAX + 1];
    struct line line;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    line.len = 0;
    line.cut = false;
    if (object != NULL) {
        append_text(&line, object);
        append_text(&line, ": ");
    }
    append_text(&line, text);
    if (out_sink != NULL)
        out_sink(out_sink_arg, level, line.text);
    else if (!say_dropped() || !write_whole_line(level, &line))
        dropped++, uncounted++;
}

bool log_limited(struct log_limit *limit, int64_t now_ms)
{
    return log_limited_to(limit, now_ms, 1000);
}

bool log_limited_to(struct log_limit *limit, int64_t now_ms, int64_t every_ms)
{
    /* A next_ms further off was set by another clock, as in tests that begin time anew: it does not
     * count. */
    if (now_ms < limit->next_ms && limit->next_ms - now_ms <= every_ms) {
        limit->pending++;
        return false;
    }
    limit->swallowed = limit->pending;
    limit->pending = 0;
    limit->next_ms = now_ms + every_ms;
    return true;
}

bool log_burst(struct log_burst *burst, const char *object, int64_t now_ms, unsigned per_second)
{
    if (now_ms / 1000 != burst->second) {
        unsigned swallowed = burst->lines > per_second ? burst->lines - per_second : 0;
        burst->second = now_ms / 1000;
        burst->lines = 0;
        if (swallowed > 0)
            log_warn(object, "more lines like these swallowed=%u", swallowed);
    }
    return ++burst->lines <= per_second;
}
