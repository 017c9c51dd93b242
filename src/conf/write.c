/* conf_write: what CONFIG SET has changed goes into the file.
 *
 * Only the lines of those options are touched: their value is replaced where they stand, or a line
 * is added, behind the comment that shows the option (`#lease = 30s`), else at the end of its
 * section. Everything else, comments, order and line ends, stays byte by byte. The file is read
 * anew for this, so that what somebody has written into it meanwhile is kept.
 *
 * Invariant: the file is replaced by one that has been read back as it was meant, in one step
 * (rename), or not at all.
 */
#include "conf/private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

/* ---- lines ---- */

struct line {
    const char *start, *end; /* the end is before the line end */
    const char *next;
    const char *word, *word_end; /* what begins it, without blanks; for #key the key */
    bool is_section, is_comment;
};

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

static const char *trim_end(const char *start, const char *end)
{
    while (end > start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    return end;
}

/* The key of `key = value`; NULL: the text is none. */
static const char *key_end(const char *p, const char *end)
{
    for (const char *at = p; at < end; at++)
        if (*at == '=' || *at == ':')
            return trim_end(p, at);
    return NULL;
}

static struct line line_at(const char *p, const char *end)
{
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    struct line l = {.start = p, .next = newline ? newline + 1 : end};

    l.end = trim_end(p, newline ? newline : end);
    p = skip_blanks(p, l.end);
    if (p < l.end && *p == '[') {
        const char *close = memchr(p, ']', (size_t)(l.end - p));
        l.is_section = close != NULL;
        l.word = p + 1;
        l.word_end = close ? close : l.end;
        return l;
    }
    l.is_comment = p < l.end && (*p == '#' || *p == ';');
    l.word = l.is_comment ? skip_blanks(p + 1, l.end) : p;
    l.word_end = key_end(l.word, l.end);
    return l;
}

static bool word_is(const struct line *l, const char *text)
{
    return l->word_end && (size_t)(l->word_end - l->word) == strlen(text) &&
           memcmp(l->word, text, strlen(text)) == 0;
}

/* ---- one option ---- */

/* Where it stands, as offsets into the text; 0 in `insert`: there is no such section. */
struct place {
    bool found;
    size_t value, value_end; /* of `key = value`, its comment not included */
    size_t insert;           /* for a line of its own */
};

static void note_value(struct place *place, const struct line *l, const char *data)
{
    const char *p = skip_blanks(l->word_end, l->end), *end = l->end;

    p = skip_blanks(p + 1, l->end); /* behind the = */
    for (const char *at = p; at < end; at++)
        if (*at == ';' && (at == p || at[-1] == ' ' || at[-1] == '\t'))
            end = at;
    place->found = true;
    place->value = (size_t)(p - data);
    place->value_end = (size_t)(trim_end(p, end) - data);
}

static struct place find_place(const char *data, size_t len, const struct conf_option *opt)
{
    static const char bom[] = "\xef\xbb\xbf";
    const char *p = data, *end = data + len;
    bool inside = false, shown = false;
    struct place place = {0};

    if (len >= 3 && memcmp(data, bom, 3) == 0)
        p += 3;
    while (p < end && !place.found) {
        struct line l = line_at(p, end);
        if (l.is_section)
            inside = word_is(&l, opt->section);
        if (inside && !l.is_section && !l.is_comment && word_is(&l, opt->key))
            note_value(&place, &l, data);
        if (inside && l.is_comment && word_is(&l, opt->key)) {
            shown = true;
            place.insert = (size_t)(l.next - data);
        }
        if (inside && !shown && !l.is_comment && (l.is_section || l.word_end))
            place.insert = (size_t)(l.next - data);
        p = l.next;
    }
    return place;
}

static void replace(struct buf *text, size_t from, size_t to, const char *by, size_t by_len)
{
    struct buf out = {0};

    buf_append(&out, buf_head(text), from);
    buf_append(&out, by, by_len);
    buf_append(&out, buf_head(text) + to, buf_len(text) - to);
    buf_fini(text);
    *text = out;
}

static void set_option(struct buf *text, const struct conf_option *opt, const char *value)
{
    size_t len = buf_len(text);
    struct place place = find_place(buf_head(text), len, opt);
    size_t at = place.insert > 0 ? place.insert : len;
    const char *lf = len > 0 ? memchr(buf_head(text), '\n', len) : NULL;
    const char *eol = lf && lf > buf_head(text) && lf[-1] == '\r' ? "\r\n" : "\n";
    struct buf line = {0};

    if (place.found) {
        replace(text, place.value, place.value_end, value, strlen(value));
        return;
    }
    if (at > 0 && buf_head(text)[at - 1] != '\n') /* the last line has no end */
        buf_printf(&line, "%s", eol);
    if (place.insert == 0)
        buf_printf(&line, "%s[%s]%s", len > 0 ? eol : "", opt->section, eol);
    buf_printf(&line, "%s = %s%s", opt->key, value, eol);
    replace(text, at, at, buf_head(&line), buf_len(&line));
    buf_fini(&line);
}

/* ---- the text as a whole ---- */

struct first_error {
    struct conf_error *err;
    bool found;
};

static void note_error(void *arg, bool is_warning, const char *text)
{
    struct first_error *first = arg;

    if (is_warning || first->found)
        return;
    first->found = true;
    conf_refuse(first->err, "%s", text);
}

static int load_text(struct conf *conf, const struct buf *text, const char *path,
                     struct conf_error *err)
{
    struct first_error first = {.err = err};

    conf_init(conf);
    if (conf_load_bytes(conf, buf_len(text) > 0 ? buf_head(text) : "", buf_len(text), path,
                        note_error, &first) == 0)
        return 0;
    conf_fini(conf);
    return -1;
}

static bool same_value(const struct conf *a, const struct conf *b, const struct conf_option *opt)
{
    char of_a[CONF_VALUE_MAX], of_b[CONF_VALUE_MAX];

    conf_value_format(a, opt, of_a);
    conf_value_format(b, opt, of_b);
    return strcmp(of_a, of_b) == 0;
}

/* How many options were changed in the text, or -1. */
static int change_text(const struct conf *conf, struct buf *text, struct conf_error *err)
{
    char value[CONF_VALUE_MAX];
    struct conf in_file;
    size_t count;
    const struct conf_option *opt = conf_options(&count);
    int changed = 0;

    if (load_text(&in_file, text, conf->path, err) != 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (!conf->set_live[i] || same_value(conf, &in_file, &opt[i]))
            continue;
        conf_value_format(conf, &opt[i], value);
        set_option(text, &opt[i], value);
        changed++;
    }
    conf_fini(&in_file);
    return changed;
}

/* Does it say what was meant? */
static int check_text(const struct conf *conf, const struct buf *text, struct conf_error *err)
{
    struct conf as_read;
    size_t count;
    const struct conf_option *opt = conf_options(&count);
    int rc = 0;

    if (load_text(&as_read, text, conf->path, err) != 0)
        return -1;
    for (size_t i = 0; i < count && rc == 0; i++)
        if (conf->set_live[i] && !same_value(conf, &as_read, &opt[i]))
            rc = conf_refuse(err, "%s: the value cannot be written into a file", opt[i].key);
    conf_fini(&as_read);
    return rc;
}

/* ---- the file ---- */

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno != EINTR)
            return -1;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return fsync(fd);
}

/* The name in the directory is on the disk too. What fails here has no consequence but after a loss
 * of power. */
static void sync_directory(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');

    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

/* A new file beside it takes its place, with its owner and permissions. */
static int replace_file(const char *path, const struct buf *text, struct conf_error *err)
{
    char temp[PATH_MAX + 16];
    struct stat st;
    int fd = -1;

    snprintf(temp, sizeof temp, "%s.XXXXXX", path);
    if (stat(path, &st) != 0 || access(path, W_OK) != 0 || (fd = mkostemp(temp, O_CLOEXEC)) < 0)
        return conf_refuse(err, "%s cannot be written: %s", path, strerror(errno));
    bool kept = fchmod(fd, st.st_mode & 07777) == 0 &&
                (fchown(fd, st.st_uid, st.st_gid) == 0 || st.st_uid == geteuid());
    if (!kept || write_all(fd, buf_head(text), buf_len(text)) != 0 || rename(temp, path) != 0) {
        conf_refuse(err, "%s cannot be written: %s", path, strerror(errno));
        close(fd);
        unlink(temp);
        return -1;
    }
    close(fd);
    sync_directory(path);
    return 0;
}

int conf_rewrite(const struct conf *conf, int *changed, struct conf_error *err)
{
    char path[PATH_MAX];
    struct buf text = {0};
    size_t len;
    char *data;
    int rc = -1;

    if (!conf->path)
        return conf_refuse(err, "there is no configuration file");
    if (!realpath(conf->path, path)) /* a symbolic link stays one */
        return conf_refuse(err, "%s: %s", conf->path, strerror(errno));
    data = conf_read_file(path, CONF_FILE_MAX, &len, err);
    if (!data)
        return -1;
    buf_append(&text, data, len);
    *changed = change_text(conf, &text, err);
    if (*changed == 0)
        rc = 0;
    else if (*changed > 0 && check_text(conf, &text, err) == 0)
        rc = replace_file(path, &text, err);
    if (buf_len(&text) > 0)
        explicit_bzero(buf_head(&text), buf_len(&text));
    explicit_bzero(data, len);
    free(data);
    buf_fini(&text);
    return rc;
}
