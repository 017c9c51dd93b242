/* Makes lines and writes each in one piece, so that two processes on one stderr do not mix.
 *
 * Owns the level, the destination, and the choice of prefix, all process-wide (one thread). Does
 * not know who logs what. Never allocates: it must work when memory is out. Invariant: between
 * prefix and newline stands printable UTF-8 only, whatever the arguments held. */
#include "log.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>

#include "clock.h"

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
static int out_facility = -1; /* of syslog(3); -1: lines go to out_file */
static log_sink_fn out_sink;
static void *out_sink_arg;

void log_set_level(enum log_level level)
{
    log_current_level = level;
}

int log_level_parse(const char *name, enum log_level *out)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (strcmp(name, levels[i].name) == 0) {
            *out = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

const char *log_level_name(enum log_level level)
{
    return levels[level].name;
}

/* JOURNAL_STREAM is inherited also by those whose stderr was redirected since, so the file must be
 * the one that it names. */
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
}

void log_set_syslog(int facility)
{
    if (facility == out_facility)
        return;
    if (out_facility >= 0)
        closelog();
    out_facility = facility;
    /* Connects now: later there may be no descriptor left for it. */
    if (facility >= 0)
        openlog("holdfastd", LOG_PID | LOG_NDELAY, facility);
}

void log_set_sink(log_sink_fn sink, void *arg)
{
    out_sink = sink;
    out_sink_arg = arg;
}

/* The length of the printable character at s; 0 when the byte there must be escaped: a control
 * character (C0, DEL, C1) or no part of well-formed UTF-8 (table 3-7 of the Unicode standard). */
static size_t printable_len(const unsigned char *s)
{
    static const struct {
        unsigned char first, last; /* of the first byte */
        unsigned char second_min, second_max;
        unsigned char len;
    } shapes[] = {
        {0xc2, 0xc2, 0xa0, 0xbf, 2}, /* not C1 */
        {0xc3, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (s[0] < shapes[i].first || s[0] > shapes[i].last)
            continue;
        if (s[1] < shapes[i].second_min || s[1] > shapes[i].second_max)
            return 0;
        for (size_t k = 2; k < shapes[i].len; k++) {
            if ((s[k] & 0xc0) != 0x80)
                return 0;
        }
        return shapes[i].len;
    }
    return 0;
}

static size_t escape_byte(char *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    out[0] = '\\';
    if (c == '\n' || c == '\r' || c == '\t') {
        out[1] = c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
        return 2;
    }
    out[1] = 'x';
    out[2] = hex[c >> 4];
    out[3] = hex[c & 15];
    return 4;
}

struct line {
    char text[LOG_LINE_MAX + 1];
    size_t len;
    bool cut; /* ends in "...", takes nothing more */
};

static void append_text(struct line *line, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s != '\0' && !line->cut) {
        char piece[4];
        size_t taken = printable_len(s), n = taken;
        if (taken > 0) {
            memcpy(piece, s, taken);
        } else {
            taken = 1;
            n = escape_byte(piece, *s);
        }
        line->cut = line->len + n > LOG_LINE_MAX - 3;
        if (line->cut)
            n = 3;
        memcpy(line->text + line->len, line->cut ? "..." : piece, n);
        line->len += n;
        s += taken;
    }
    line->text[line->len] = '\0';
}

static int make_prefix(char *prefix, size_t size, enum log_level level)
{
    if (out_is_journal)
        return snprintf(prefix, size, "<%c>", levels[level].prio);
    int64_t now_ms = clock_wall_ms();
    time_t now_s = (time_t)(now_ms / 1000);
    struct tm tm;
    char stamp[32] = "";
    if (localtime_r(&now_s, &tm) != NULL)
        strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
    return snprintf(prefix, size, "%s.%03d %-5s ", stamp, (int)(now_ms % 1000), levels[level].name);
}

static void write_line(enum log_level level, const struct line *line)
{
    char whole[64 + LOG_LINE_MAX + 1];
    if (out_file == NULL)
        log_set_file(stderr);
    size_t n = (size_t)make_prefix(whole, 64, level);
    memcpy(whole + n, line->text, line->len);
    n += line->len;
    whole[n++] = '\n';
    fwrite(whole, 1, n, out_file);
    fflush(out_file);
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
    else if (out_facility >= 0)
        syslog(out_facility | (levels[level].prio - '0'), "%s", line.text);
    else
        write_line(level, &line);
}

bool log_limited(struct log_limit *limit, int64_t now_ms)
{
    return log_limited_to(limit, now_ms, 1000);
}

bool log_limited_to(struct log_limit *limit, int64_t now_ms, int64_t every_ms)
{
    /* A next_ms further off than that: the limit is of an earlier run with a time of its own. */
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
