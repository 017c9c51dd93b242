#pragma once
/*
 * place: since when a broker has its name at one master without a gap, from the records that the
 * master tells of (lua/roll.lua). From then on the master takes no call of another process that
 * had the name before.
 *
 *   the same life, the same record      nothing changes
 *   the same life, another record       anew
 *   another life                        as before, if the name was ours in the life before, up to
 *                                       PLACE_GAP_MS ago, and until the link broke; else anew
 *   another life, in which another     anew: what that has told is not known
 *   instance had the name before us
 *   the record of another instance      lost, for ever: it came after us
 *
 * A place that is taken in quarantine is whole only when the master is active: before, the master
 * knows nothing of the tokens that have been.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/life.h"

enum { PLACE_RECORD_MAX = 128 };
/* How long a master may have been out of sight between two lives. What it was told meanwhile, and
 * has forgotten, is not known: that another process has come under this name. Whoever starts one
 * in place of a broker that is alive but cut off needs longer to find that out. */
enum { PLACE_GAP_MS = 30000 };
/* And how long it may have been silent before its link broke, or this process stood still: a bit
 * more than a master is waited for. */
enum { PLACE_SILENCE_MS = 5000 };

struct place {
    struct life life; /* in which the rest was last told; "": never */
    char record[PLACE_RECORD_MAX];
    bool is_ours, is_lost;
    bool has_broken;   /* the link, since it was told last */
    bool is_doubtful;  /* the link broke after a silence: the next life begins anew */
    int64_t since_ms;  /* when the first answer came that proved it */
    int64_t whole_ms;  /* when it was first known to be active since then; INT64_MAX: not yet */
    int64_t joined_ms; /* when the question was sent to which this life gave its first answer */
    int64_t asked_ms;  /* when the last question was sent whose answer proved it */
    int64_t left_ms;   /* how long clients of the broker before could rely on something when it
                        * left; less than 0: it did not say so here */
    int64_t token;     /* the highest that it knew of then */
};

/* An answer of roll.lua. */
struct place_told {
    const char *record;
    size_t len;
    bool is_active;             /* the master is */
    int64_t asked_ms, heard_ms; /* when the question was sent, and when the answer came */
};

/* Takes the record that a master has told in this life. False: it is none, and nothing has
 * changed. */
bool place_take(struct place *, const char *instance, const struct place_told *,
                const struct life *) __attribute__((warn_unused_result));
/* The link to the master is lost. */
void place_broke(struct place *, int64_t now_ms);
/* Returns from when on nobody relies any more on what a broker of this name has told before us,
 * where this master's voice counts; memory_ms: how long that can be. */
int64_t place_complete_ms(const struct place *, int64_t memory_ms);
