/*
 * Numbers and texts as they stand in the status page. Names come from strangers: whatever bytes
 * they have, in the page they are text, of one direction, and can be told from others that look
 * alike.
 */
#include "http_private.h"

#include <string.h>

#include "buf.h"

/* ---- text ---- */

/* Bytes of the UTF-8 character at p, its number in *out; 0: there is none. */
static size_t utf8(const unsigned char *p, size_t n, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t c = len <= 1 ? p[0] : p[0] & (0xffu >> (len + 1));

    if (len == 0 || len > n || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    *out = c;
    return c < least[len] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : len;
}

/* Not: control characters, those without width, those that turn the direction or break the line. */
static bool is_plain(uint32_t c)
{
    return c >= 0x20 && !(c >= 0x7f && c <= 0xa0) && c != 0xad && c != 0x61c &&
           !(c >= 0x200b && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) &&
           !(c >= 0x2060 && c <= 0x206f) && c != 0xfeff && !(c >= 0xfff9 && c <= 0xffff) &&
           c < 0xe0000;
}

static const char *entity(uint32_t c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void http_escape(struct buf *out, const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;

    while (p < end) {
        uint32_t c;
        size_t n = utf8(p, (size_t)(end - p), &c);
        const char *as = n > 0 ? entity(c) : NULL;
        if (as) {
            buf_append(out, as, strlen(as));
        } else if (n > 0 && is_plain(c)) {
            buf_append(out, p, n);
        } else {
            n = n > 0 ? n : 1;
            for (size_t i = 0; i < n; i++)
                buf_printf(out, "\\x%02x", p[i]);
        }
        p += n;
    }
}

/* ---- numbers ---- */

void http_put_count(struct buf *out, uint64_t n)
{
    if (n >= 1000) {
        http_put_count(out, n / 1000);
        buf_printf(out, "&#8239;%03u", (unsigned)(n % 1000));
    } else {
        buf_printf(out, "%u", (unsigned)n);
    }
}

/* "2 h 5 min": n of the large unit, each of which has so many of the small one. */
static void put_two(struct buf *out, int64_t n, int64_t per, const char *large, const char *small)
{
    buf_printf(out, "%lld&nbsp;%s", (long long)(n / per), large);
    if (n % per > 0)
        buf_printf(out, " %lld&nbsp;%s", (long long)(n % per), small);
}

void http_put_ms(struct buf *out, int64_t ms)
{
    int64_t s = ms / 1000;

    if (ms < 1000)
        buf_printf(out, "%lld&nbsp;ms", (long long)ms);
    else if (s < 10)
        buf_printf(out, "%.1f&nbsp;s", (double)ms / 1000);
    else if (s < 60)
        buf_printf(out, "%lld&nbsp;s", (long long)s);
    else if (s < 3600)
        put_two(out, s, 60, "min", "s");
    else if (s < 86400)
        put_two(out, s / 60, 60, "h", "min");
    else
        put_two(out, s / 3600, 24, "d", "h");
}

void http_put_us(struct buf *out, int64_t us)
{
    if (us < 1000)
        buf_printf(out, "%lld&nbsp;\302\265s", (long long)us);
    else if (us < 10000)
        buf_printf(out, "%.1f&nbsp;ms", (double)us / 1000);
    else
        http_put_ms(out, us / 1000);
}
