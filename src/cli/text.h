#ifndef HOLDFAST_TEXT_H
#define HOLDFAST_TEXT_H
/*
 * text: bytes of strangers (names, owners) as text on a screen, numbers for people, and what kind
 * of screen it is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum tint { TINT_NONE, TINT_HEAD, TINT_DIM, TINT_GOOD, TINT_WARN, TINT_BAD };

/* How stdout shows things. */
struct screen {
    bool is_terminal;
    bool colour; /* a terminal, and neither NO_COLOR nor TERM=dumb */
    int columns; /* 0: no limit, it is no terminal */
    int rows;
};
struct screen text_screen(void);

/* Columns that it takes as text_put() writes it. */
int text_width(const char *text, size_t len);
/* Appends it: what must not be shown (utf8.h) or is no character here as \xNN, at most `max`
 * columns (0: no limit), and ".." at the end when something is cut off. Returns the columns taken.
 */
int text_put(struct buf *out, const char *text, size_t len, int max);

/* Columns that are left beside those used, at least 1; 0: no limit. For text_put(). */
int text_room(const struct screen *, int used);

/* Colours on and off; nothing unless `colour`. */
void text_tint(struct buf *out, bool colour, enum tint tint);

/* "850ms" "4.2s" "42s" "5m07s" "3h12m" "4d02h"; returns buf, which needs 24 bytes. */
const char *text_duration(char *buf, int64_t ms);
/* "850us" "4.20ms" "1.3s" */
const char *text_latency(char *buf, int64_t us);

/* Writes all of it to stdout; dies when it cannot. */
void text_flush(struct buf *out);
#endif
