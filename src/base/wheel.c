/* The timer wheel.
 *
 * A time is read as 8 digits in base 256. An entry hangs at the level of the highest digit in which
 * its time differs from the wheel's tick, in the slot of that digit (level 0 when none differs):
 *
 *   tick  ..00.00.12.f0     due ..00.00.12.f7 -> level 0, slot f7: this very tick
 *                           due ..00.00.15.01 -> level 1, slot 15: ticks 15.00 to 15.ff
 *
 * So a lower level is always due before a higher one and slots of a level are in order; there is
 * no wrapping around. When the tick enters a slot of level >= 1, its entries are spread ("cascade")
 * over the levels below.
 *
 * Owns the links of armed entries, not the entries. Does not know the time. Invariants: a slot of
 * level >= 1 that contains the tick is empty; every slot before the tick is empty; `used` and
 * `levels` have exactly the bits of the slots that are not empty. An entry that was past due when
 * added hangs in the tick's own slot, and the tick does not move on before that is empty. */
#include "base/wheel.h"

#include <assert.h>
#include <string.h>

#define DIGIT_BITS 8

static unsigned digit(int64_t time_ms, unsigned level)
{
    return (unsigned)((uint64_t)time_ms >> (level * DIGIT_BITS)) & (WHEEL_SLOTS - 1);
}

/* Returns the slot, as an index of slots, where an entry that is due then belongs. */
static uint32_t slot_for(const struct wheel *w, int64_t due_ms)
{
    int64_t at_ms = due_ms > w->tick_ms ? due_ms : w->tick_ms;
    uint64_t differs = (uint64_t)at_ms ^ (uint64_t)w->tick_ms;
    unsigned level = differs == 0 ? 0 : (63U - (unsigned)__builtin_clzll(differs)) / DIGIT_BITS;
    return level * WHEEL_SLOTS + digit(at_ms, level);
}

static void mark_used(struct wheel *w, uint32_t slot)
{
    unsigned level = slot / WHEEL_SLOTS, i = slot % WHEEL_SLOTS;
    w->used[level][i / 64] |= UINT64_C(1) << i % 64;
    w->levels |= 1U << level;
}

static void mark_empty(struct wheel *w, uint32_t slot)
{
    unsigned level = slot / WHEEL_SLOTS, i = slot % WHEEL_SLOTS;
    uint64_t *used = w->used[level];
    used[i / 64] &= ~(UINT64_C(1) << i % 64);
    if ((used[0] | used[1] | used[2] | used[3]) == 0)
        w->levels &= ~(1U << level);
}

/* Returns the first used slot of a level that has one. */
static unsigned first_used(const struct wheel *w, unsigned level)
{
    unsigned word = 0;
    while (w->used[level][word] == 0)
        word++;
    return word * 64 + (unsigned)__builtin_ctzll(w->used[level][word]);
}

/* Hangs the entry at the tail of its slot, so that one tick keeps the order of adding. */
static void link_entry(struct wheel *w, struct wheel_entry *entry)
{
    entry->slot = slot_for(w, entry->due_ms);
    if (TAILQ_EMPTY(&w->slots[entry->slot]))
        mark_used(w, entry->slot);
    TAILQ_INSERT_TAIL(&w->slots[entry->slot], entry, link);
}

void wheel_init(struct wheel *w, int64_t now_ms)
{
    assert(now_ms >= 0);
    memset(w, 0, sizeof(*w));
    w->tick_ms = now_ms;
    for (size_t i = 0; i < WHEEL_LEVELS * WHEEL_SLOTS; i++)
        TAILQ_INIT(&w->slots[i]);
}

void wheel_add(struct wheel *w, struct wheel_entry *entry, int64_t due_ms)
{
    wheel_cancel(w, entry);
    entry->due_ms = due_ms;
    link_entry(w, entry);
    w->count++;
}

void wheel_cancel(struct wheel *w, struct wheel_entry *entry)
{
    if (!wheel_armed(entry))
        return;
    TAILQ_REMOVE(&w->slots[entry->slot], entry, link);
    if (TAILQ_EMPTY(&w->slots[entry->slot]))
        mark_empty(w, entry->slot);
    entry->link.tqe_prev = NULL;
    w->count--;
}

int64_t wheel_next_ms(const struct wheel *w)
{
    if (w->levels == 0)
        return INT64_MAX;
    unsigned level = (unsigned)__builtin_ctz(w->levels);
    unsigned shift = level * DIGIT_BITS;
    uint64_t digits = (uint64_t)w->tick_ms >> shift; /* down to the digit of this level */
    return (int64_t)((digits & ~(uint64_t)(WHEEL_SLOTS - 1)) + first_used(w, level)) << shift;
}

/* Spreads the entries of a slot that the tick has just entered over the levels below. */
static void cascade(struct wheel *w, uint32_t slot)
{
    struct wheel_entry *entry;
    while ((entry = TAILQ_FIRST(&w->slots[slot])) != NULL) { /* they go to other slots */
        TAILQ_REMOVE(&w->slots[slot], entry, link);
        link_entry(w, entry);
    }
    mark_empty(w, slot);
}

struct wheel_entry *wheel_expire(struct wheel *w, int64_t now_ms)
{
    if (now_ms < w->tick_ms)
        return NULL;
    for (;;) {
        int64_t next_ms = wheel_next_ms(w);
        if (next_ms > now_ms || w->levels == 0) {
            w->tick_ms = now_ms; /* passes no slot that is used */
            return NULL;
        }
        w->tick_ms = next_ms;
        unsigned level = (unsigned)__builtin_ctz(w->levels);
        uint32_t slot = level * WHEEL_SLOTS + digit(next_ms, level);
        if (level == 0) {
            struct wheel_entry *entry = TAILQ_FIRST(&w->slots[slot]),
                               *next = TAILQ_NEXT(entry, link);
            wheel_cancel(w, entry);
            if (next) /* the one behind it is not in the cache when many are due */
                __builtin_prefetch(TAILQ_NEXT(next, link));
            return entry;
        }
        cascade(w, slot);
    }
}
