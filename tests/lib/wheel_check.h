#pragma once
/* wheel_check: the invariants of a timer wheel. */
#include "base/wheel.h"

/* Checks every one. Returns 0, or -1 and says on stderr what is broken. */
int wheel_check(const struct wheel *w);
