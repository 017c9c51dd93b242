#include "script_args.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A field by its name; what a script is told when a test does not say it. */
struct field {
    const char *name, *usual;
};

static bool is_none(const char *word)
{
    return strcmp(word, "-") == 0;
}

/* The value of a field in "name=value,name=value"; a `part`, which has any bytes, stands last. */
static const char *value_of(const struct field *f, const char *given, size_t *len)
{
    size_t name_len = strlen(f->name);
    for (const char *at = given; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, f->name, name_len) != 0 || at[name_len] != '=')
            continue;
        at += name_len + 1;
        *len = strcmp(f->name, "part") == 0 ? strlen(at) : strcspn(at, ",");
        return at;
    }
    *len = strlen(f->usual);
    return f->usual;
}

/* Adds all fields as a script wants them: " name=value name=value". */
static void add_fields(char *out, size_t size, const struct field *fields, const char *given)
{
    for (const struct field *f = fields; f->name; f++) {
        size_t len, end = strlen(out);
        const char *value = value_of(f, given, &len);
        snprintf(out + end, size - end, " %s=%.*s", f->name, (int)len, value);
    }
}

void acquire_args(struct acquire_args *a, char *const words[ACQUIRE_WORDS])
{
    static const struct field fields[] = {{"prev", "-"},     {"tomb", "0"},  {"ticket", "-"},
                                          {"place", "keep"}, {"judge", "-"}, {"maxhold", "0"},
                                          {"mode", "x"},     {"group", "-"}, {NULL, NULL}};
    const char *op = words[0], *owner = words[1], *lease = words[2], *floor = words[3];
    const char *counter = words[4], *more = words[5];
    snprintf(a->hold, sizeof a->hold,
             "op=%s token=%s count=1 seq=%s lease=%s end=0 taken=0 owner=%s", op, floor, floor,
             lease, owner);
    snprintf(a->wish, sizeof a->wish, "%s%s", is_none(more) ? "" : "lease=", lease);
    if (!is_none(more))
        add_fields(a->wish, sizeof a->wish, fields, more);
    snprintf(a->counter, sizeof a->counter, "%s", counter);
    a->list[0] = a->hold;
    a->list[1] = a->wish;
    a->floor_value = atoll(floor);
}

char *release_arg(char out[RELEASE_ARG], char *const words[RELEASE_WORDS])
{
    static const struct field fields[] = {
        {"ticket", "-"}, {"place", "keep"}, {"next", "call"}, {"part", "-"}, {NULL, NULL}};
    const char *op = words[0], *tomb = words[1], *more = words[2];
    snprintf(out, RELEASE_ARG, "%s", op);
    if (is_none(more) && strcmp(tomb, "0") == 0)
        return out;
    snprintf(out, RELEASE_ARG, "%s tomb=%s", op, tomb);
    add_fields(out, RELEASE_ARG, fields, is_none(more) ? "" : more);
    return out;
}

void renew_args(char what[RENEW_ARG], char *list[RENEW_ARGS], char *const words[RENEW_WORDS])
{
    const char *op = words[0], *count = words[2], *seq = words[3], *part = words[4];
    if (is_none(count))
        snprintf(what, RENEW_ARG, "%s", op);
    else
        snprintf(what, RENEW_ARG, "%s count=%s seq=%s part=%s", op, count, seq, part);
    list[0] = what;
    list[1] = words[1];
}

static void exchange_hold(struct exchange_args *a, char *const words[EXCHANGE_WORDS])
{
    const struct field version = {"v", words[4]};
    size_t len;
    const char *op = words[1], *seq = value_of(&version, words[6], &len);
    if (strcmp(op, "look") == 0 || strcmp(op, "end") == 0)
        snprintf(a->hold, sizeof a->hold, "%s", op[0] == 'e' ? "-" : "");
    else
        snprintf(a->hold, sizeof a->hold,
                 "op=%s token=%s count=1 seq=%.*s lease=%s end=0 taken=0 owner=%s", op, words[4],
                 (int)len, seq, words[3], words[2]);
}

static void exchange_usual_wish(struct exchange_args *a, char *const words[EXCHANGE_WORDS])
{
    const char *expect = words[0], *lease = words[3], *more = words[6];
    bool is_written = strlen(a->hold) > 1, is_free = strcmp(expect, "free") == 0;
    if (is_free)
        snprintf(a->wish, sizeof a->wish, "%s", is_written ? lease : "free");
    else if (is_written)
        snprintf(a->wish, sizeof a->wish, "lease=%s op=%s ", lease, expect);
    else
        snprintf(a->wish, sizeof a->wish, "%sop=%s ", strcmp(more, "t") == 0 ? "t " : "", expect);
}

void exchange_args(struct exchange_args *a, char *const words[EXCHANGE_WORDS], int64_t now_ms)
{
    const char *expect = words[0], *lease = words[3], *more = words[6];
    const struct field fields[] = {{"token", strcmp(expect, "free") == 0 ? "new" : "kept"},
                                   {"tomb", "0"},
                                   {"by", "-"},
                                   {"as", "vote"},
                                   {"seq", "-"},
                                   {"time", "-"},
                                   {"group", "-"},
                                   {NULL, NULL}};
    exchange_hold(a, words);
    if (is_none(more) || strcmp(more, "t") == 0 ||
        (strncmp(more, "v=", 2) == 0 && !strchr(more, ','))) {
        exchange_usual_wish(a, words);
    } else {
        bool is_late = strstr(more, "as=heal") || strstr(more, "as=back");
        snprintf(a->wish, sizeof a->wish, "expect=%s lease=%lld", expect,
                 (long long)(is_none(lease) ? 0 : atoll(lease) + (is_late ? now_ms : 0)));
        add_fields(a->wish, sizeof a->wish, fields, more);
    }
    snprintf(a->counter, sizeof a->counter, "%s", words[5]);
    a->list[0] = a->hold;
    a->list[1] = a->wish;
    a->floor_value = atoll(words[4]);
    a->takes_token = strchr("123456789", a->wish[0]) || strstr(a->wish, "token=new");
}
