/* A hierarchical timer wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP
 * 1987): ticks of 1 ms, intrusive entries, and the time passed in by the caller.
 *
 * Add and cancel are O(1). An entry moves down a level at most WHEEL_LEVELS - 1 times in its life
 * (twice when it is due within 4 hours), and time that nothing is due in is skipped, be it days.
 * The levels cover all of int64_t, so there is no horizon. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define WHEEL_LEVELS 8
#define WHEEL_SLOTS 256 /* per level; each level is 256 times as coarse as the one below */

/* Part of the object that is due. All zero is an entry that is not armed. It must not move nor be
 * freed while armed. The fields are read-only for others; due_ms is what was last passed. */
struct wheel_entry {
    TAILQ_ENTRY(wheel_entry) link; /* tqe_prev is NULL: not armed */
    int64_t due_ms;
    uint32_t slot;
};

/* Must not move while an entry is armed (some 32 KB). Needs no fini. */
struct wheel {
    int64_t tick_ms; /* everything due before it has been handed out */
    size_t count;    /* armed entries */
    uint32_t levels; /* bit i: level i holds an entry */
    uint64_t used[WHEEL_LEVELS][WHEEL_SLOTS / 64];
    TAILQ_HEAD(wheel_slot, wheel_entry) slots[WHEEL_LEVELS * WHEEL_SLOTS];
};

/* Makes an empty wheel; now_ms >= 0, of any clock that does not go back. */
void wheel_init(struct wheel *w, int64_t now_ms);

/* Arms the entry, or moves it when it is armed. A due_ms in the past is handed out by the next
 * wheel_expire. */
void wheel_add(struct wheel *w, struct wheel_entry *entry, int64_t due_ms);

/* Disarms the entry; nothing happens when it is not armed. */
void wheel_cancel(struct wheel *w, struct wheel_entry *entry);

static inline bool wheel_armed(const struct wheel_entry *entry)
{
    return entry->link.tqe_prev != NULL;
}

/* Takes out one entry with due_ms <= now_ms; NULL: none is left. Call it until then:
 *
 *   while ((entry = wheel_expire(&wheel, now_ms)) != NULL)
 *       ...
 *
 * Entries come by tick, those of one tick in the order in which they were added. One that was past
 * due when it was added counts for the tick that the wheel was at. In between, entries may be added
 * and cancelled; added ones with due_ms <= now_ms come in the same pass, so do not add one for "at
 * once" on every expiry. A now_ms lower than before gives NULL. */
struct wheel_entry *wheel_expire(struct wheel *w, int64_t now_ms);

/* Returns a time before which no entry is due; INT64_MAX if there is no entry. Exact when an entry
 * is due within the tick's 256 ms; otherwise the start of the slot that is next, which may be
 * earlier than its first entry. A wheel_expire at that time brings the entries nearer, so an entry
 * costs at most WHEEL_LEVELS wake-ups. In the past when something is overdue. */
int64_t wheel_next_ms(const struct wheel *w);
