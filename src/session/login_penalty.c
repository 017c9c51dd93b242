/* Who has to wait after wrong passwords.
 *
 * A table of fixed size: one entry for an origin and a group of names, found by a keyed hash of
 * both. Two that fall on the same entry drive each other out, which only shortens a wait. */
#include <string.h>

#include "base/util.h"
#include "session/login.h"
#include "session/login_private.h"

enum {
    PENALTIES = 1024,
    NAME_GROUPS = 16,
    FIRST_MS = 200,
    MAX_MS = 2000,
    FORGET_MS = 60 * 1000,
    WRONG_KEPT = 16
};

struct wait {
    unsigned failures;
    int64_t last_ms, until_ms;
};

static struct penalty {
    uint64_t key; /* 0: free */
    struct wait fresh, known;
    uint64_t wrong[WRONG_KEPT]; /* marks, a ring; 0: free */
    unsigned n_wrong;
    unsigned guesses;
    int64_t guesses_since_ms;
} penalties[PENALTIES];

/* Returns the group of a name. Names wait in NAME_GROUPS groups, whether there is such a user or
 * not: whoever tries names must not learn from a wait which of them exist, and must not have a
 * first try without a wait, which costs us some milliseconds, for every name that can be. */
static unsigned group_of_name(const char *name, size_t len)
{
    uint32_t h = util_fixed_hash(name, len); /* who shares a group with whom is no secret */

    return (h ^ h >> 16) % NAME_GROUPS;
}

uint64_t penalty_key(uint64_t origin, const char *name, size_t name_len)
{
    uint64_t both[2] = {origin, group_of_name(name, name_len)};

    return util_hash(both, sizeof both) | 1;
}

static struct penalty *slot_of(uint64_t key)
{
    return &penalties[(key >> 1) % PENALTIES];
}

/* Returns the entry of this key; NULL if nothing counts against it. */
static const struct penalty *find_penalty(uint64_t key)
{
    const struct penalty *p = slot_of(key);

    return p->key == key ? p : NULL;
}

static struct penalty *find_or_make(uint64_t key)
{
    struct penalty *p = slot_of(key);

    if (p->key != key)
        *p = (struct penalty){.key = key};
    return p;
}

bool penalty_is_known(uint64_t key, uint64_t mark)
{
    const struct penalty *p = find_penalty(key);

    for (int i = 0; p && i < WRONG_KEPT; i++)
        if (p->wrong[i] == mark)
            return true;
    return false;
}

int64_t penalty_until_ms(uint64_t key, bool known)
{
    const struct penalty *p = find_penalty(key);

    if (!p)
        return 0;
    return known ? p->known.until_ms : p->fresh.until_ms;
}

static void lengthen(struct wait *w, int64_t now_ms)
{
    int64_t wait_ms = FIRST_MS;

    if (now_ms - w->last_ms > FORGET_MS)
        w->failures = 0;
    for (unsigned i = 0; i < w->failures && wait_ms < MAX_MS; i++)
        wait_ms *= 2;
    w->failures++;
    w->last_ms = now_ms;
    w->until_ms = now_ms + (wait_ms < MAX_MS ? wait_ms : MAX_MS);
}

void penalty_add(uint64_t key, uint64_t mark, int64_t now_ms)
{
    struct penalty *p = find_or_make(key);

    lengthen(&p->known, now_ms);
    if (penalty_is_known(key, mark))
        return;
    lengthen(&p->fresh, now_ms);
    p->wrong[p->n_wrong++ % WRONG_KEPT] = mark;
}

void penalty_count_guess(uint64_t key, int64_t now_ms)
{
    struct penalty *p = find_or_make(key);

    if (p->guesses == 0 || now_ms - p->guesses_since_ms > FORGET_MS) {
        p->guesses = 0;
        p->guesses_since_ms = now_ms;
    }
    p->guesses++;
}

bool penalty_is_guessed_at(uint64_t key, int64_t now_ms)
{
    const struct penalty *p = find_penalty(key);

    return p && p->guesses >= LOGIN_GUESSES && now_ms - p->guesses_since_ms <= FORGET_MS;
}

void penalty_fini(void)
{
    memset(penalties, 0, sizeof penalties);
}
