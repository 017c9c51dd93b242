/* Looks at all slots, and works out by itself where each entry belongs. */
#include "wheel_check.h"

#include <stdio.h>

static int broken(const char *what, size_t slot)
{
    fprintf(stderr, "wheel: %s, level %zu slot %zu\n", what, slot / WHEEL_SLOTS,
            slot % WHEEL_SLOTS);
    return -1;
}

/* Returns the slot of the highest digit in base 256 in which the times differ. */
static size_t slot_of(int64_t tick_ms, int64_t due_ms)
{
    size_t level = WHEEL_LEVELS - 1;
    if (due_ms <= tick_ms)
        return (uint64_t)tick_ms % WHEEL_SLOTS;
    while (level > 0 && due_ms >> 8 * level == tick_ms >> 8 * level)
        level--;
    return level * WHEEL_SLOTS + (uint64_t)due_ms / (UINT64_C(1) << 8 * level) % WHEEL_SLOTS;
}

static int check_slot(const struct wheel *w, size_t slot, size_t *count)
{
    const struct wheel_entry *entry;
    struct wheel_entry *const *last = &w->slots[slot].tqh_first;
    TAILQ_FOREACH(entry, &w->slots[slot], link) {
        if (entry->link.tqe_prev != last)
            return broken("links do not fit", slot);
        last = &entry->link.tqe_next;
        if (entry->slot != slot)
            return broken("entry names another slot", slot);
        if (slot_of(w->tick_ms, entry->due_ms) != slot)
            return broken("entry is where it does not belong", slot);
        if (++*count > w->count)
            return broken("more entries than counted", slot);
    }
    return w->slots[slot].tqh_last == last ? 0 : broken("links do not fit", slot);
}

int wheel_check(const struct wheel *w)
{
    size_t count = 0;
    uint32_t levels = 0;
    for (size_t slot = 0; slot < WHEEL_LEVELS * WHEEL_SLOTS; slot++) {
        size_t level = slot / WHEEL_SLOTS, i = slot % WHEEL_SLOTS;
        bool used = !TAILQ_EMPTY(&w->slots[slot]);
        if (check_slot(w, slot, &count) != 0)
            return -1;
        if ((w->used[level][i / 64] >> i % 64 & 1) != used)
            return broken("bit of the slot is wrong", slot);
        if (used)
            levels |= 1U << level;
    }
    if (levels != w->levels)
        return broken("bit of a level is wrong", 0);
    if (count != w->count)
        return broken("fewer entries than counted", 0);
    return 0;
}
