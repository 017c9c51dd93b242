#include "script_args.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void acquire_args(struct acquire_args *a, char *const words[ACQUIRE_WORDS])
{
    const char *op = words[0], *owner = words[1], *lease = words[2], *floor = words[3];
    const char *counter = words[4], *more = words[5];
    snprintf(a->hold, sizeof a->hold,
             "op=%s token=%s count=1 seq=%s lease=%s end=0 taken=0 owner=%s", op, floor, floor,
             lease, owner);
    snprintf(a->more, sizeof a->more, "%s%s%s", lease, strcmp(more, "-") == 0 ? "" : ",",
             strcmp(more, "-") == 0 ? "" : more);
    snprintf(a->counter, sizeof a->counter, "%s", counter);
    a->list[0] = a->hold;
    a->list[1] = a->more;
    a->floor_value = atoll(floor);
}

char *release_arg(char out[RELEASE_ARG], char *const words[RELEASE_WORDS])
{
    const char *op = words[0], *tomb = words[1], *more = words[2];
    bool is_usual = strcmp(more, "-") == 0;
    if (is_usual && strcmp(tomb, "0") == 0)
        snprintf(out, RELEASE_ARG, "%s", op);
    else
        snprintf(out, RELEASE_ARG, "%s %s,%s", op, tomb, is_usual ? "-,keep,call,-" : more);
    return out;
}

void renew_args(char what[RENEW_ARG], char *list[RENEW_ARGS], char *const words[RENEW_WORDS])
{
    const char *op = words[0], *count = words[2], *seq = words[3], *part = words[4];
    if (strcmp(count, "-") == 0)
        snprintf(what, RENEW_ARG, "%s", op);
    else
        snprintf(what, RENEW_ARG, "%s %s,%s,%s", op, count, seq, part);
    list[0] = what;
    list[1] = words[1];
}
