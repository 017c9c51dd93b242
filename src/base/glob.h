#pragma once
/*
 * glob: patterns as Redis understands them, made ready once and then compared with many texts.
 *
 * `*` any bytes, `?` one byte, `[a-z]` one of these, `[^x]` one that is none of these, and `\x` for
 * a literal x. An unclosed class ends with the pattern. Bytes are compared as they are.
 *
 * The cost has a bound that no pattern can exceed: glob_new() takes some 200 instructions for each
 * byte of the pattern, glob_match() some 10 for each byte of the text and each 64 elements of the
 * pattern.
 */
#include <stdbool.h>
#include <stddef.h>

/* Bytes of a pattern. */
enum { GLOB_MAX = 1024 };

struct glob;

/* Makes a pattern ready; NULL if it is longer than GLOB_MAX. */
struct glob *glob_new(const char *pattern, size_t len);
void glob_free(struct glob *); /* NULL is allowed */

/* Returns true when the pattern matches the whole text. */
bool glob_match(const struct glob *, const char *text, size_t len);

/* Returns a bound of what glob_match() does for a text of this length, in looks at 64 elements: for
 * callers that bound the work of a turn. */
size_t glob_steps(const struct glob *, size_t len);
