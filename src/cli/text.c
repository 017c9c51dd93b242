/*
 * What a character is and how wide comes from the locale (LC_CTYPE, set in main): in the C locale
 * everything beyond ASCII is shown as \xNN.
 */
#include "cli/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/util.h"
#include "cli/cli.h"

enum { ESCAPED = 4 }; /* columns of \xNN */

struct screen text_screen(void)
{
    struct winsize size;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    struct screen s = {.is_terminal = isatty(STDOUT_FILENO) == 1};
    if (!s.is_terminal)
        return s;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    s.columns = known && size.ws_col ? size.ws_col : 80;
    s.rows = known && size.ws_row ? size.ws_row : 24;
    s.colour = !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    return s;
}

/* Returns how many bytes the next character has; *columns is its width, -1: shown as \xNN. */
static size_t next_char(const char *text, size_t len, int *columns)
{
    mbstate_t state = {0};
    wchar_t c;
    uint32_t number;
    size_t n = mbrtowc(&c, text, len, &state);
    bool odd = utf8_read(text, len, &number) == 0 || !utf8_is_plain(number);
    if (n == 0 || n > len || odd || !iswprint((wint_t)c)) {
        *columns = -1;
        return 1;
    }
    *columns = wcwidth(c);
    return n;
}

int text_width(const char *text, size_t len)
{
    int width = 0, columns;
    for (size_t i = 0; i < len; width += columns < 0 ? ESCAPED : columns)
        i += next_char(text + i, len - i, &columns);
    return width;
}

int text_put(struct buf *out, const char *text, size_t len, int max)
{
    int width = 0, columns;
    bool cut = max > 0 && text_width(text, len) > max;
    int room = cut ? (max > 2 ? max - 2 : 0) : INT32_MAX;
    for (size_t i = 0; i < len;) {
        size_t n = next_char(text + i, len - i, &columns);
        int more = columns < 0 ? ESCAPED : columns;
        if (width + more > room)
            break;
        if (columns < 0)
            buf_printf(out, "\\x%02x", (unsigned char)text[i]);
        else
            buf_append(out, text + i, n);
        width += more;
        i += n;
    }
    if (cut && max >= 2) {
        buf_append(out, "..", 2);
        width += 2;
    }
    return width;
}

int text_room(const struct screen *s, int used)
{
    return s->columns == 0 ? 0 : s->columns > used ? s->columns - used : 1;
}

void text_tint(struct buf *out, bool colour, enum tint tint)
{
    static const char *const codes[] = {
        [TINT_NONE] = "\033[0m",  [TINT_HEAD] = "\033[1m",  [TINT_DIM] = "\033[2m",
        [TINT_GOOD] = "\033[32m", [TINT_WARN] = "\033[33m", [TINT_BAD] = "\033[31m"};
    if (colour)
        buf_append(out, codes[tint], strlen(codes[tint]));
}

const char *text_duration(char *buf, int64_t ms)
{
    int64_t s = ms / 1000;
    if (ms < 0)
        snprintf(buf, 24, "-");
    else if (ms < 1000)
        snprintf(buf, 24, "%" PRId64 "ms", ms);
    else if (ms < 10000)
        snprintf(buf, 24, "%" PRId64 ".%" PRId64 "s", s, ms % 1000 / 100);
    else if (s < 60)
        snprintf(buf, 24, "%" PRId64 "s", s);
    else if (s < 3600)
        snprintf(buf, 24, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(buf, 24, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
    else
        snprintf(buf, 24, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
    return buf;
}

const char *text_latency(char *buf, int64_t us)
{
    if (us < 1000)
        snprintf(buf, 24, "%" PRId64 "us", us);
    else if (us < 1000000)
        snprintf(buf, 24, "%.*fms", us < 10000 ? 2 : us < 100000 ? 1 : 0, (double)us / 1e3);
    else
        snprintf(buf, 24, "%.*fs", us < 100000000 ? 1 : 0, (double)us / 1e6);
    return buf;
}

json_t *text_json(const char *text, size_t len)
{
    struct buf good = {0};
    uint32_t c;
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = utf8_read(text + i, len - i, &c);
        buf_append(&good, n ? text + i : "\357\277\275", n ? n : 3);
    }
    json_t *json = json_stringn(len ? buf_head(&good) : "", buf_len(&good));
    buf_fini(&good);
    return json;
}

json_t *text_json_str(const char *text)
{
    return text_json(text, strlen(text));
}

void text_put_json(struct buf *out, json_t *json)
{
    char *text = json_dumps(json, JSON_REAL_PRECISION(15));
    if (!text)
        util_die("out of memory");
    for (size_t i = 0, n, len = strlen(text); i < len; i += n) {
        uint32_t c;
        n = utf8_read(text + i, len - i, &c);
        if (utf8_is_plain(c))
            buf_append(out, text + i, n);
        else if (c < 0x10000)
            buf_printf(out, "\\u%04x", (unsigned)c);
        else /* in UTF-16 */
            buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                       (unsigned)(0xdc00 | (c & 0x3ff)));
    }
    buf_append(out, "\n", 1);
    free(text);
    json_decref(json);
}

void text_flush(struct buf *out)
{
    while (buf_len(out) > 0) {
        ssize_t n = write(STDOUT_FILENO, buf_head(out), buf_len(out));
        if (n > 0)
            buf_consume(out, (size_t)n);
        else if (errno != EINTR)
            cli_die(STATUS_SYSTEM, "cannot write: %s", strerror(errno));
    }
    buf_fini(out);
}
