/*
 * Writes numbers and texts for the status page. Names come from strangers: whatever bytes they
 * have, in the page they are text, of one direction, and can be told from others that look alike.
 */
#include "http/private.h"

#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

/* ---- text ---- */

static const char *html_entity(char c)
{
    static const char special[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    const char *at = c ? strchr(special, c) : NULL;

    return at ? entities[at - special] : NULL;
}

void http_escape(struct buf *out, const char *text, size_t len)
{
    const char *end = text + len;
    char shown[UTF8_SHOWN_MAX];
    size_t n;

    while (text < end) {
        const char *as = html_entity(*text);
        text += utf8_show(text, (size_t)(end - text), shown, &n);
        if (as)
            buf_append(out, as, strlen(as));
        else
            buf_append(out, shown, n);
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

/* Appends "2 h 5 min" for n of the small unit, `per` of which are one of the large unit. */
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
