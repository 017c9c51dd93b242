#pragma once
/* Between login.c (the queue) and login_penalty.c (who has to wait, and until when). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the key of the entry that counts a try: of an origin and a group of names. Never 0. */
uint64_t penalty_key(uint64_t origin, const char *name, size_t name_len);

/* Returns true when this password was wrong before, for the same name from the same origin. `mark`
 * stands for name and password, and is not 0. */
bool penalty_is_known(uint64_t key, uint64_t mark);
/* Returns the time before which no password is compared that is not known to be wrong; with `known`
 * the one before which the answer to a known one must not come. */
int64_t penalty_until_ms(uint64_t key, bool known);
void penalty_add(uint64_t key, uint64_t mark, int64_t now_ms);

/* Counts a password that is not the one that was right before. */
void penalty_count_guess(uint64_t key, int64_t now_ms);
/* Returns true when so many of these came in the last minute that a right one must wait too. */
bool penalty_is_guessed_at(uint64_t key, int64_t now_ms);

void penalty_fini(void);
