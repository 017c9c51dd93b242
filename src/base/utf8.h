#pragma once
/*
 * utf8: bytes of strangers as text that people may be shown: in the log, on terminals, on the
 * status page. What is no UTF-8, controls, takes no room, turns the direction or breaks the line
 * comes out as \xNN, so that a text cannot pass for another one nor change what stands beside it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_SHOWN_MAX = 16 };

/* Reads the character at the start of text: its code point goes to `*c`. Returns its bytes; 0 if
 * they are no UTF-8. len is not 0. */
size_t utf8_read(const char *text, size_t len, uint32_t *c);

/* Returns true when people may be shown this character as it is. */
bool utf8_is_plain(uint32_t c);

/* Writes the first character of the text, or its bytes as \xNN, to `shown` (no NUL behind), and how
 * many bytes these are to `*n`. Returns how many bytes of the text that was. len is not 0. */
size_t utf8_show(const char *text, size_t len, char shown[UTF8_SHOWN_MAX], size_t *n);
