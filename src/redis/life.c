/* Reads and compares lives. As lua/join.lua does: the two must agree on which one is newer. */
#include "redis/life.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

static int64_t life_number(const char *text, size_t len)
{
    const char *blank = memchr(text, ' ', len);
    int64_t n;

    if (!blank || util_parse_int(text, (size_t)(blank - text), 1, (int64_t)1 << 53, &n) != 0)
        return 0;
    return n;
}

bool life_is_valid(const char *text, size_t len)
{
    const char *blank = memchr(text, ' ', len);

    if (len == 0)
        return true;
    if (len > LIFE_MAX || life_number(text, len) == 0 || blank + 1 == text + len)
        return false;
    for (const char *p = blank + 1; p < text + len; p++)
        if (!isalnum((unsigned char)*p))
            return false;
    return true;
}

bool life_take(struct life *known, const char *text, size_t len)
{
    struct life heard = {{0}};

    memcpy(heard.text, text, len);
    int64_t theirs = life_number(heard.text, len),
            ours = life_number(known->text, strlen(known->text));
    if (theirs < ours || (theirs == ours && strcmp(heard.text, known->text) <= 0))
        return false;
    *known = heard;
    return true;
}
