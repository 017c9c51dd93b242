#include "acquire_args.h"

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
    snprintf(a->lease, sizeof a->lease, "%s", lease);
    snprintf(a->floor, sizeof a->floor, "%s", floor);
    if (strcmp(more, "-") == 0)
        snprintf(a->more, sizeof a->more, "%s", counter);
    else
        snprintf(a->more, sizeof a->more, "%s,%s", counter, more);
    a->list[0] = a->hold;
    a->list[1] = a->lease;
    a->list[2] = a->floor;
    a->list[3] = a->more;
    a->floor_value = atoll(floor);
}
