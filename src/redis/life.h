#ifndef HOLDFAST_LIFE_H
#define HOLDFAST_LIFE_H
/*
 * life: one time that a server serves as one of the masters, as a text: "<number> <run_id>".
 *
 * The lives of a master are numbered upwards by lua/join.lua. Brokers remember the newest one of
 * each master and tell the other masters, so that a run which has been followed by another one is
 * known when it comes back.
 */
#include <stdbool.h>
#include <stddef.h>

enum { LIFE_MAX = 20 + 1 + 64 };

struct life {
    char text[LIFE_MAX + 1]; /* "": none is known */
};

/* Whether these bytes can stand for a life; none at all can. */
bool life_is_valid(const char *text, size_t len);
/* Takes over a life that is newer than the known one: it has the higher number, or of two that have
 * the same (brokers have seen each another server) the later one by its text, as everywhere. False:
 * it is not newer. The bytes must be valid. */
bool life_take(struct life *, const char *text, size_t len);
#endif
