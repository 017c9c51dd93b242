/* Spare objects by size class, last in first out: the one that was given back last is in the cache.
 *
 * Invariants: at most SPARES objects of a class are kept, the rest goes back to malloc; a size
 * above the largest class always comes from there. */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

enum { STEP = 16, CLASSES = 40, SPARES = 1024 };

struct spare {
    struct spare *next;
};

static struct {
    struct spare *first;
    unsigned n;
} spares[CLASSES];

#if defined(__SANITIZE_ADDRESS__)
#define POOL_KEEPS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define POOL_KEEPS 0
#endif
#endif
#ifndef POOL_KEEPS
#define POOL_KEEPS 1
#endif

/* All sizes of a class get the memory of its largest, cut as malloc cuts it: its own eight bytes
 * fill the step. */
static size_t class_of(size_t n)
{
    return (n + STEP / 2 - 1) / STEP;
}

static size_t size_of(size_t class)
{
    return class * STEP + STEP / 2;
}

void *pool_get(size_t n)
{
    size_t class = class_of(n);
    if (!POOL_KEEPS || class >= CLASSES)
        return util_alloc(n);
    struct spare *s = spares[class].first;
    if (!s)
        return util_alloc(size_of(class));
    spares[class].first = s->next;
    spares[class].n--;
    return memset(s, 0, n);
}

void pool_put(void *p, size_t n)
{
    size_t class = class_of(n);
    if (!POOL_KEEPS || class >= CLASSES || !p || spares[class].n >= SPARES) {
        free(p);
        return;
    }
    struct spare *s = p;
    s->next = spares[class].first;
    spares[class].first = s;
    spares[class].n++;
}
