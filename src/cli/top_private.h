#pragma once
/*
 * Is shared by the files of top alone: top.c (asks again and again, hears the keys), top_screen.c
 * (what is shown), top_terminal.c (the terminal, as long as it is ours).
 */
#include "base/buf.h"
#include "cli/locks.h"
#include "cli/text.h"

enum top_sort { TOP_BY_WAITING, TOP_BY_HELD, TOP_BY_LEFT, TOP_BY_NAME, TOP_SORTS };
enum { TOP_FILTER_MAX = 128 };

/* What the user has said by keys. */
struct top_wish {
    enum top_sort sort;
    char filter[TOP_FILTER_MAX + 1]; /* of names; "": all */
    bool types;                      /* what is typed belongs to the filter */
    bool help;                       /* instead of locks */
    bool quit;
};
/* Takes keys as the terminal sends them: one, or a sequence for one that is no character. */
void top_hear(struct top_wish *, const char *keys, size_t n);

/* Index the counts of INFO from which rates are made. */
enum top_rate {
    TOP_GRANTED,
    TOP_HANDED,
    TOP_RELEASED,
    TOP_BUSY,
    TOP_TIMED_OUT,
    TOP_ERRORS,
    TOP_RATES
};

/* What the broker has answered. */
struct top_answers {
    redisReply *info, *masters;
    /* Without elements: it has no such command, or this user must not see all names. */
    redisReply *contended, *jeopardy;
    struct locks locks;
};

/* ---- top_screen.c ---- */
/* Writes the screen. `url`: of the broker. Rates are per second. Sorts the locks. */
void top_draw(struct buf *out, struct top_answers *, const double rates[TOP_RATES], const char *url,
              const struct top_wish *, const struct screen *);
/* Returns the count of INFO that a rate is of. */
int64_t top_count(const char *info, enum top_rate);
/* Writes an old screen again under a line that says what is wrong since when (clock of the wall, in
 * seconds; 0: there never was an answer). */
void top_draw_silence(struct buf *out, const struct buf *old, const char *what, int64_t since_s,
                      const struct screen *);

/* ---- top_terminal.c ---- */
/* Takes the terminal; whatever ends the program gives it back. */
void top_take_terminal(void);
/* Writes no more lines than the screen has. */
void top_show(const struct buf *frame, const struct screen *);
/* Returns the signal that asks the program to end; 0: none. */
int top_stop_signal(void);
/* Waits for keys for so long, or until the size of the screen has changed; writes them, and returns
 * how many; -1: the terminal has gone. */
int top_read_keys(char *keys, size_t size, int64_t ms);
