/* What the words of a command say: options, numbers, times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "dropin/store_private.h"

bool store_int(const struct resp_arg *arg, int64_t *out)
{
    return util_parse_int(arg->ptr, arg->len, INT64_MIN, INT64_MAX, out) == 0;
}

bool store_want_int(struct store_run *run, const struct resp_arg *arg, int64_t *out)
{
    if (store_int(arg, out))
        return true;
    store_add_error(run->out, "ERR value is not an integer or out of range");
    return false;
}

bool store_want_double(struct store_run *run, const struct resp_arg *arg, double *out)
{
    char text[128], *end;
    if (arg->len > 0 && arg->len < sizeof text && !strchr(" \t\n\v\f\r", arg->ptr[0])) {
        memcpy(text, arg->ptr, arg->len);
        text[arg->len] = '\0';
        *out = strtod(text, &end);
        if (end == text + arg->len && !isnan(*out))
            return true;
    }
    store_add_error(run->out, "ERR value is not a valid float");
    return false;
}

static bool invalid_time(struct store_run *run)
{
    char text[96], name[32];
    size_t len = run->argv[0].len < sizeof name ? run->argv[0].len : sizeof name - 1;
    for (size_t i = 0; i < len; i++)
        name[i] = (char)(run->argv[0].ptr[i] | 0x20);
    snprintf(text, sizeof text, "ERR invalid expire time in '%.*s' command", (int)len, name);
    store_add_error(run->out, text);
    return false;
}

bool store_want_time(struct store_run *run, const struct resp_arg *arg, int64_t unit_ms,
                     bool is_relative, bool may_be_past, int64_t *at_ms)
{
    int64_t n;
    if (!store_want_int(run, arg, &n))
        return false;
    if (!may_be_past && n <= 0)
        return invalid_time(run);
    if (n > INT64_MAX / unit_ms || n < INT64_MIN / unit_ms)
        return invalid_time(run);
    n *= unit_ms;
    if (is_relative && n > INT64_MAX - run->now_ms)
        return invalid_time(run);
    *at_ms = is_relative ? n + run->now_ms : n;
    return true;
}

bool store_range(int64_t n, int64_t *start, int64_t *stop)
{
    if (*start < 0)
        *start = *start + n < 0 ? 0 : *start + n;
    if (*stop < 0)
        *stop += n;
    if (*stop >= n)
        *stop = n - 1;
    return *start <= *stop && *start < n;
}
