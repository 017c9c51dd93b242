/* load: a configuration file into struct conf, by inih.
 *
 * inih cuts lines into section, key and value. What it does not tell is seen here, in the reader
 * that hands it one line after the other: the number of the line, lines that are longer than its
 * buffer, and lines that it could make nothing of (it reports only the first). Indentation is taken
 * off, so that an indented line is a setting of its own and not the rest of the one above.
 *
 * Every error is reported with file and line, up to ERRORS_MAX of them. */
#include "conf/private.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ERRORS_MAX = 100 };

struct load {
    struct conf *conf;
    const char *path;
    conf_report_fn report;
    void *arg;
    /* reader */
    const char *next, *end;
    int line;       /* the line that inih has */
    bool needs_key; /* it must lead to a call of on_key, or it is no setting */
    int errors;
    char bad_section[32]; /* the unknown section we are in, reported already */
};

__attribute__((format(printf, 2, 3))) static void load_fail(struct load *load, const char *fmt, ...)
{
    struct conf_error text, line;
    char path[200];
    va_list ap;

    load->errors++;
    if (load->errors > ERRORS_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(text.text, sizeof(text.text), fmt, ap);
    va_end(ap);
    conf_printable(path, sizeof(path), load->path);
    if (load->errors == ERRORS_MAX)
        conf_refuse(&line, "%s:%d: too many errors, the rest is not shown", path, load->line);
    else if (load->line > 0)
        conf_refuse(&line, "%s:%d: %.300s", path, load->line, text.text);
    else
        conf_refuse(&line, "%s: %.300s", path, text.text);
    load->report(load->arg, false, line.text);
}

/* ---- what inih calls ---- */

/* Returns true for a line that must hold key = value; reports a broken section. */
static bool line_needs_key(struct load *load, const char *text)
{
    const char *end;

    if (*text == '\0' || *text == '#' || *text == ';')
        return false;
    if (*text != '[')
        return true;
    end = strchr(text, ']');
    if (end == NULL) {
        load_fail(load, "there is a [ without ]");
        return false;
    }
    end += 1 + strspn(end + 1, " \t");
    if (strchr("#;", *end) == NULL)
        load_fail(load, "only a comment may follow a [section] in its line");
    return false;
}

static void line_finish(struct load *load)
{
    if (load->needs_key)
        load_fail(load, "is neither key = value nor a [section] nor a # comment");
    load->needs_key = false;
}

/* Gives inih a line, as an ini_reader: like fgets, but a line that does not fit is an error and
 * becomes empty. */
static char *on_read(char *out, int size, void *stream)
{
    struct load *load = stream;
    const char *start, *newline;
    size_t len;

    line_finish(load);
    if (load->next == load->end)
        return NULL;
    start = load->next;
    newline = memchr(start, '\n', (size_t)(load->end - start));
    load->next = newline != NULL ? newline + 1 : load->end;
    load->line++;
    len = (size_t)((newline != NULL ? newline : load->end) - start);
    while (len > 0 && isspace((unsigned char)start[len - 1]))
        len--;
    for (; len > 0 && isspace((unsigned char)*start); len--)
        start++;
    if (len > (size_t)size - 2) {
        load_fail(load, "the line is longer than %d bytes", size - 2);
        len = 0;
    }
    memcpy(out, start, len);
    out[len] = '\0';
    load->needs_key = line_needs_key(load, out);
    return out;
}

static bool section_ok(struct load *load, const char *section)
{
    char shown[40];

    if (conf_section_known(section))
        return true;
    conf_printable(shown, sizeof(shown), section);
    if (section[0] == '\0')
        load_fail(load, "a setting before the first [section]");
    else if (strncmp(load->bad_section, section, sizeof(load->bad_section) - 1) != 0)
        load_fail(
            load,
            "unknown section [%s] (known are [holdfast], [drop_in], [http], [limits], [masters], "
            "[tls], [users])",
            shown);
    snprintf(load->bad_section, sizeof(load->bad_section), "%s", section);
    return false;
}

/* Sets one option, as an ini_handler. Reports errors itself: inih always hears that all is well. */
static int on_key(void *user, const char *section, const char *key, const char *value)
{
    struct load *load = user;
    struct conf_error err;

    load->needs_key = false;
    if (!section_ok(load, section))
        return 1;
    if (conf_set_at(load->conf, section, key, value, load->line, &err) != 0)
        load_fail(load, "%s", err.text);
    return 1;
}

static void parse_file(struct load *load)
{
    int rc = ini_parse_stream(on_read, load, on_key, load);

    if (rc < 0) {
        load_fail(load, "cannot be parsed: out of memory");
    } else if (rc > 0 && load->errors == 0) {
        load->line = rc;
        load_fail(load, "cannot be parsed");
    }
}

/* ---- files ---- */

int conf_load_bytes(struct conf *conf, const char *data, size_t len, const char *path,
                    conf_report_fn report, void *arg)
{
    static const char bom[] = {'\xef', '\xbb', '\xbf'};
    struct load load = {.conf = conf, .path = path, .report = report, .arg = arg};
    char *copy = util_strdup(path);

    free(conf->path);
    conf->path = copy;
    memset(conf->line, 0, sizeof(conf->line));
    if (len > CONF_FILE_MAX) {
        load_fail(&load, "is larger than %d bytes", CONF_FILE_MAX);
    } else if (memchr(data, '\0', len) != NULL) {
        load_fail(&load, "holds a NUL byte, so it is not a text file");
    } else {
        load.next = data;
        load.end = data + len;
        if (len >= sizeof(bom) && memcmp(data, bom, sizeof(bom)) == 0)
            load.next += sizeof(bom);
        parse_file(&load);
    }
    return load.errors == 0 ? 0 : -1;
}

char *conf_read_file(const char *path, size_t max, size_t *len, struct conf_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char *data;
    ssize_t n = 1;

    if (fd < 0) {
        conf_refuse(err, "cannot be read: %s", strerror(errno));
        return NULL;
    }
    data = util_alloc(max + 2);
    for (*len = 0; *len <= max && n != 0; *len += n > 0 ? (size_t)n : 0) {
        n = read(fd, data + *len, max + 1 - *len);
        if (n < 0 && errno != EINTR)
            break;
    }
    if (n < 0)
        conf_refuse(err, "cannot be read: %s", strerror(errno));
    else if (*len > max)
        conf_refuse(err, "is larger than %zu bytes", max);
    close(fd);
    if (n >= 0 && *len <= max)
        return data;
    explicit_bzero(data, max);
    free(data);
    return NULL;
}

int conf_load_file(struct conf *conf, const char *path, conf_report_fn report, void *arg)
{
    struct load load = {.path = path, .report = report, .arg = arg};
    struct conf_error err;
    size_t len;
    char *data = conf_read_file(path, CONF_FILE_MAX, &len, &err);
    int rc;

    if (data == NULL) {
        load_fail(&load, "%s", err.text);
        return -1;
    }
    rc = conf_load_bytes(conf, data, len, path, report, arg);
    explicit_bzero(data, len);
    free(data);
    return rc;
}
