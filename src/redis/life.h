#pragma once
/*
 * life: one period for which a server serves as one of the masters, as a text: "<number> <run_id>".
 *
 * lua/join.lua numbers the lives of a master upwards. Brokers remember the newest life of each
 * master and tell it to the other masters, so that a run whose place another run has taken is
 * recognized when it comes back.
 */
#include <stdbool.h>
#include <stddef.h>

enum { LIFE_MAX = 20 + 1 + 64 };

struct life {
    char text[LIFE_MAX + 1]; /* "": none is known */
};

/* Tells whether these bytes can be a life; no bytes can. */
bool life_is_valid(const char *text, size_t len);
/* Replaces the known life if this one is newer, and tells whether it was. Newer is the higher
 * number; of two with the same number (two brokers have seen different servers) the greater text,
 * as in lua/join.lua. The bytes must be valid. */
bool life_take(struct life *, const char *text, size_t len);
