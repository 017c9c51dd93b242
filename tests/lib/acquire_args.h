#ifndef HOLDFAST_ACQUIRE_ARGS_H
#define HOLDFAST_ACQUIRE_ARGS_H
/*
 * acquire.lua is given a hold as it is to stand on the master, and says how far its token is above
 * the floor. Tests are easier to read by the parts of the hold, and by the token:
 *
 *   op owner lease floor counter more    (more: from `prev` on; "-": there is nothing to say)
 */
#include <stdint.h>

enum { ACQUIRE_WORDS = 6, ACQUIRE_ARGS = 4 };

struct acquire_args {
    char hold[640], lease[24], floor[24], more[512];
    char *list[ACQUIRE_ARGS]; /* into the above */
    int64_t floor_value;
};

void acquire_args(struct acquire_args *, char *const words[ACQUIRE_WORDS]);
#endif
