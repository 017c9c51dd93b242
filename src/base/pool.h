/* pool: memory for small objects that come and go with every request. Spare ones of each size stand
 * ready in a list; whoever gives one back says its size again. What is kept for one size is never
 * used for another, nor given back to the system.
 *
 * Under a sanitizer nothing is kept, so that it can watch each object. */
#pragma once

#include <stddef.h>

void *pool_get(size_t n);         /* zeroed; never NULL, see util_alloc() */
void pool_put(void *p, size_t n); /* n: as it was got; p may be NULL */
