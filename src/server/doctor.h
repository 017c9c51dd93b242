#pragma once
/*
 * doctor: looks at the masters without using them, and tells what keeps locks from being had:
 * `holdfastd -tt`.
 */
#include <stdio.h>

struct conf;

/* Connects to the masters, only looks at them, and writes to `out` what it finds, problems in
 * words. Takes 10 seconds at most. Returns the number of errors: what keeps a master from being
 * used, or locks from being had. */
int doctor_examine(const struct conf *, FILE *out);
