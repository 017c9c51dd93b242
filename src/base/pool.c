/* Spare objects by size, last in first out: the one that was given back last is in the cache. They
 * are cut from slabs, without what malloc would add to each: a million locks feel that. A slab
 * stays with its size for ever.
 *
 * Invariant: whatever is in a list has the size of its class; larger objects are malloc's own. */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { STEP = 8, CLASSES = 128, SLAB = 32 * 1024 };

struct spare {
    struct spare *next;
};

static struct spare *spares[CLASSES];

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

static size_t class_of(size_t n)
{
    return (n + STEP - 1) / STEP;
}

static void cut_slab(size_t class)
{
    size_t size = class * STEP;
    char *slab = util_realloc(NULL, SLAB);
    for (size_t at = SLAB / size * size; at > 0; at -= size) { /* the first of them comes first */
        struct spare *s = (struct spare *)(void *)(slab + at - size);
        s->next = spares[class];
        spares[class] = s;
    }
}

void *pool_get(size_t n)
{
    size_t class = class_of(n);
    if (!POOL_KEEPS || class >= CLASSES || class == 0)
        return util_alloc(n);
    if (!spares[class])
        cut_slab(class);
    struct spare *s = spares[class];
    spares[class] = s->next;
    return memset(s, 0, n);
}

void pool_put(void *p, size_t n)
{
    size_t class = class_of(n);
    if (!POOL_KEEPS || class >= CLASSES || class == 0) {
        free(p);
        return;
    }
    struct spare *s = p;
    if (!s)
        return;
    s->next = spares[class];
    spares[class] = s;
}
