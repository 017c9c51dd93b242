#pragma once
/*
 * text: writes bytes of strangers (names, owners) and numbers for people, on the kind of screen
 * that there is, or as JSON.
 */
#include <jansson.h>
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

/* Returns how many columns text_put() takes for it. */
int text_width(const char *text, size_t len);
/* Appends text in at most `max` columns (0: no limit), with ".." at the end when something is cut
 * off. What must not be shown (utf8.h) or is no character in this locale comes as \xNN. Returns the
 * columns taken. */
int text_put(struct buf *out, const char *text, size_t len, int max);

/* Returns the columns left beside those used, at least 1; 0: no limit. For text_put(). */
int text_room(const struct screen *, int used);

/* Appends the code that turns a colour on or off; nothing unless `colour`. */
void text_tint(struct buf *out, bool colour, enum tint tint);

/* Writes "850ms" "4.2s" "42s" "5m07s" "3h12m" "4d02h"; returns buf, which needs 24 bytes. */
const char *text_duration(char *buf, int64_t ms);
/* Writes "850us" "4.20ms" "1.3s"; the same. */
const char *text_latency(char *buf, int64_t us);

/* Returns text as a JSON string. Bytes that are no UTF-8 come out as U+FFFD. */
json_t *text_json(const char *text, size_t len);
json_t *text_json_str(const char *text);
/* Appends the JSON in a line and frees it. What must not be shown (utf8.h) comes as \uXXXX. */
void text_put_json(struct buf *out, json_t *json);

/* Writes the buffer to stdout and empties it; ends the program when that fails. */
void text_flush(struct buf *out);
