/*
 * Measures a body before it is compiled, since Lua takes time in the square of its tokens: walks
 * over blanks, comments and texts just as Lua does. What Lua takes for one token may count as
 * several here (`==`, 1.5), never the other way round.
 */
#include "dropin/cage_private.h"

#include <string.h>

static bool is_end_of_line(char c)
{
    return c == '\n' || c == '\r';
}

static bool is_of_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns the end of a long text or comment that begins at `at` by [[ or [=[; NULL: none does. */
static const char *long_end(const char *at, const char *end)
{
    const char *p = at + 1;
    while (p < end && *p == '=')
        p++;
    if (at == end || *at != '[' || p >= end || *p != '[')
        return NULL;
    size_t level = (size_t)(p - at - 1);
    for (p++; (p = memchr(p, ']', (size_t)(end - p))); p++) {
        size_t n = 1;
        while (p + n < end && p[n] == '=')
            n++;
        if (n == level + 1 && p + n < end && p[n] == ']')
            return p + n + 1;
    }
    return end;
}

/* Returns the end of a text in quotes; `end` when its line does not close it, which is no Lua. */
static const char *quoted_end(const char *at, const char *end)
{
    char quote = *at++;
    for (; at < end && *at != quote; at++) {
        if (is_end_of_line(*at))
            return end;
        if (*at != '\\' || ++at >= end)
            continue;
        bool is_pair = at + 1 < end && is_end_of_line(*at) && is_end_of_line(at[1]) && *at != at[1];
        at += is_pair;
    }
    return at < end ? at + 1 : end;
}

static const char *comment_end(const char *at, const char *end)
{
    const char *behind = long_end(at, end);
    while (!behind && at < end && !is_end_of_line(*at))
        at++;
    return behind ? behind : at;
}

static const char *token_end(const char *at, const char *end)
{
    const char *behind = NULL;
    if (*at == '[')
        behind = long_end(at, end);
    else if (*at == '"' || *at == '\'')
        return quoted_end(at, end);
    if (behind)
        return behind;
    while (at < end && is_of_word(*at))
        behind = ++at;
    return behind ? behind : at + 1;
}

int cage_tokens(const char *body, size_t len, size_t *longest)
{
    const char *end = body + len;
    int n = 0;
    *longest = 0;
    for (const char *at = body, *behind; at < end; at = behind) {
        if (*at == ' ' || (*at >= '\t' && *at <= '\r')) {
            behind = at + 1;
        } else if (end - at > 1 && at[0] == '-' && at[1] == '-') {
            behind = comment_end(at + 2, end);
        } else {
            behind = token_end(at, end);
            if ((size_t)(behind - at) > *longest)
                *longest = (size_t)(behind - at);
            n++;
        }
    }
    return n;
}
