#pragma once
/*
 * turns: calls about the same names go in the order in which they came: a line for each name, a
 * seat in it for each call. Those that only look go side by side; one that writes goes when all
 * before it have left, and keeps those behind it back.
 *
 *     seat --turns_join--> waits --turns_may_go, turns_go--> under way --turns_leave--> gone
 *                            ^                                   |
 *                            +------------turns_wait-------------+
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <uthash.h>

struct locktab_name;
struct turn_line;

/* So many go side by side in one line. */
enum { TURNS_LOOK_MAX = 64 };

struct seat {
    TAILQ_ENTRY(seat) next;
    struct turn_line *line; /* NULL: in none */
    void *call;
    bool under_way, writes;
};
TAILQ_HEAD(seats, seat);

struct turn_line {
    UT_hash_handle hh;
    struct seats seats; /* never empty, but for the line of no name */
    TAILQ_ENTRY(turn_line) looked_at;
    bool is_listed; /* in turns->lines: somebody may go on */
    size_t len;
    char name[];
};

struct turns {
    struct turn_line *by_name;
    TAILQ_HEAD(, turn_line) lines; /* in which somebody may go on */
};

void turns_init(struct turns *);
void turns_fini(struct turns *); /* must be empty */
/* Takes the last seat of the line of this name. */
void turns_join(struct turns *, struct seat *, const struct locktab_name *, void *call);
/* True when it may go, as far as this line is concerned: all before it are under way and look, and
 * are fewer than TURNS_LOOK_MAX; or none is before it. */
bool turns_may_go(const struct seat *, bool writes);
void turns_go(struct turns *, struct seat *, bool writes);
void turns_wait(struct turns *, struct seat *);
void turns_leave(struct turns *, struct seat *);

/* Returns the next call that waits in a line where something has changed, and behind none that
 * waits; NULL: that was all. */
void *turns_next(struct turns *);
/* Calls `each` for the calls in the line of a name. */
void turns_each(struct turns *, const struct locktab_name *, void (*each)(void *call));
